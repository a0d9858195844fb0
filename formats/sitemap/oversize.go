package sitemap

import (
	"bytes"
	"io"

	"golang.org/x/net/html"
)

// maxToken is the length of the longest XML token that is held in memory, in bytes. The reader uses
// only the beginning of a longer token.
const maxToken = 4 << 20

// rewound is a reader that first repeats bytes that a tokenizer has buffered.
type rewound struct {
	head []byte
	in   io.Reader
}

// Read implements io.Reader.
func (r *rewound) Read(p []byte) (int, error) {
	if len(r.head) == 0 {
		return r.in.Read(p)
	}
	n := copy(p, r.head)
	r.head = r.head[n:]
	return n, nil
}

// tokenize begins to read tokens at the current place of the input.
func (x *reader) tokenize() {
	x.z = html.NewTokenizer(&x.src)
	x.z.SetMaxBuf(maxToken)
	x.z.AllowCDATA(true)
}

// skipLong continues after a token that is longer than maxToken. The parameter raw is the beginning of
// the token. A tag keeps its name, but loses its attributes. The result is false if reading must end.
func (x *reader) skipLong(raw []byte) (more bool, err error) {
	end := endOf(raw)
	tag := !end.text && end.mark == ""
	closing := tag && raw[1] == '/'
	if tag {
		x.readTag(bytes.TrimPrefix(raw[1:], []byte("/")))
		x.tag.attrs, x.tag.empty = false, false
	}
	for _, c := range raw {
		end.add(c)
	}
	x.src.head = append(bytes.Clone(x.z.Buffered()), x.src.head...)
	if err := x.skipTo(end); err != nil {
		return false, err
	}
	x.tokenize()
	switch {
	case closing:
		return x.closes(), nil
	case tag:
		return x.opens()
	}
	return true, nil
}

// skipTo drops the rest of a token. The < that ends a text stays in the input.
func (x *reader) skipTo(end *tokenEnd) error {
	buf := make([]byte, headLen)
	for {
		n, err := x.src.Read(buf)
		for i, c := range buf[:n] {
			if !end.add(c) {
				continue
			}
			if end.text {
				i--
			}
			x.src.head = append(bytes.Clone(buf[i+1:n]), x.src.head...)
			return nil
		}
		if err == io.EOF {
			x.sum.Cut = x.sum.Cut || !end.text
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// tokenEnd finds the end of a token, byte by byte.
type tokenEnd struct {
	text  bool   // the token is a text, which ends before the next <
	mark  string // text that ends a comment, CDATA or a declaration; "" for texts and tags
	last  []byte // last bytes, at most as many as mark has
	equal bool   // the last byte of a tag, apart from white space, is =
	quote byte   // quote of the attribute's value that the last byte of a tag belongs to, or 0
}

// endOf returns the finder for a token that begins with raw.
func endOf(raw []byte) *tokenEnd {
	switch {
	case bytes.HasPrefix(raw, []byte("<![CDATA[")):
		return &tokenEnd{mark: "]]>"}
	case bytes.HasPrefix(raw, []byte("<!--")):
		return &tokenEnd{mark: "-->"}
	}
	if len(raw) < 2 || raw[0] != '<' || !beginsTag(raw[1]) {
		return &tokenEnd{text: true}
	}
	if raw[1] == '!' || raw[1] == '?' {
		return &tokenEnd{mark: ">"}
	}
	return &tokenEnd{}
}

// add reads a byte and reports whether it is the last of the token or, for a text, the first after it.
func (t *tokenEnd) add(c byte) bool {
	switch {
	case t.text:
		return c == '<'
	case t.mark != "":
		if len(t.last) == len(t.mark) {
			copy(t.last, t.last[1:])
			t.last = t.last[:len(t.last)-1]
		}
		t.last = append(t.last, c)
		return string(t.last) == t.mark
	case t.quote != 0:
		if c == t.quote {
			t.quote = 0
		}
	case t.equal && (c == '"' || c == '\''):
		t.quote = c
	case c == '>':
		return true
	}
	if c != ' ' && c != '\t' && c != '\r' && c != '\n' && c != '\f' {
		t.equal = c == '=' && t.quote == 0
	}
	return false
}

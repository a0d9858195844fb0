// Package lexer cuts an HTML document in memory into tokens, as the HTML Standard's tokenizer does
// (13.2.5). The lexer also resolves character references.
package lexer

import (
	"bytes"

	"golang.org/x/net/html/atom"
)

// Kind is the kind of a token.
type Kind uint8

// The kinds of tokens. Comments and doctypes are skipped.
const (
	EndOfFile Kind = iota
	Text
	StartTag
	EndTag
)

// Lexer cuts an HTML document into tokens (HTML, 13.2.5). A fuzz test checks that Lexer finds the
// same tokens as x/net/html's tokenizer. Lexer costs much less, because texts and values are ranges
// of the document and only known attributes are kept. It never changes the document.
type Lexer struct {
	Src   []byte // the document in UTF-8
	pos   int
	Raw   atom.Atom // current raw text element; 0 if none; a caller that sets 0 reads the content of the element as markup
	CDATA bool      // whether CDATA sections are text, as within svg and math

	// These fields describe the token.
	Name  atom.Atom // name of a tag; 0 if the name is unknown
	Empty bool      // whether the tag ends in "/>"; in XML, svg and math such an element has no content
	Attrs Attrs     // attributes of a start tag
	Text  []byte    // bytes of a text, with unresolved references
	Refs  bool      // whether the text may hold character references
}

// Next reads a token and returns its kind.
func (z *Lexer) Next() Kind {
	if z.Raw != 0 {
		end := z.rawEnd()
		z.Refs = z.Raw == atom.Title || z.Raw == atom.Textarea
		z.Raw = 0
		if end > z.pos {
			z.Text, z.pos = z.Src[z.pos:end], end
			return Text
		}
	}
	for start := z.pos; ; {
		i := bytes.IndexByte(z.Src[z.pos:], '<')
		if i < 0 || z.pos+i+1 >= len(z.Src) {
			z.pos = len(z.Src)
			return z.data(start, z.pos)
		}
		at := z.pos + i
		c := z.Src[at+1]
		if !IsLetter(c) && c != '/' && c != '!' && c != '?' {
			z.pos = at + 1 // this less-than sign is text
			continue
		}
		if at > start {
			z.pos = at
			return z.data(start, at)
		}
		switch {
		case IsLetter(c):
			z.pos = at + 1
			return z.readTag(StartTag)
		case c == '/' && at+2 >= len(z.Src):
			z.pos = len(z.Src)
			return z.data(start, z.pos)
		case c == '/' && IsLetter(z.Src[at+2]):
			z.pos = at + 2
			return z.readTag(EndTag)
		case c == '!':
			z.pos = at + 2
			if z.declaration() {
				return Text
			}
		default:
			z.pos = at + 1
			z.skipPast('>')
		}
		start = z.pos
	}
}

// IsLetter reports whether c is an ASCII letter.
func IsLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// isGap reports whether c is white space within a tag.
func isGap(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' }

// EndsName reports whether c ends a tag's name.
func EndsName(c byte) bool { return isGap(c) || c == '/' || c == '>' }

func (z *Lexer) data(start, end int) Kind {
	if start == end {
		return EndOfFile
	}
	z.Text, z.Refs = z.Src[start:end], true
	return Text
}

func (z *Lexer) skipPast(c byte) {
	if i := bytes.IndexByte(z.Src[z.pos:], c); i >= 0 {
		z.pos += i + 1
	} else {
		z.pos = len(z.Src)
	}
}

var (
	cdataOpen  = []byte("[CDATA[")
	cdataClose = []byte("]]>")
)

// declaration skips a comment or declaration, which begins with "<!". If the method finds a CDATA
// section that is text, the result is true.
func (z *Lexer) declaration() bool {
	rest := z.Src[z.pos:]
	switch {
	case len(rest) >= 2 && rest[0] == '-' && rest[1] == '-':
		z.pos += 2
		z.comment()
	case z.CDATA && bytes.HasPrefix(rest, cdataOpen):
		rest = rest[len(cdataOpen):]
		z.pos += len(cdataOpen)
		end, next := len(rest), len(rest)
		if i := bytes.Index(rest, cdataClose); i >= 0 {
			end, next = i, i+len(cdataClose)
		}
		z.pos += next
		z.Text, z.Refs = rest[:end], false
		return true
	default:
		z.skipPast('>')
	}
	return false
}

// comment skips the data and the end of a comment. The end is "-->" or "--!>". A ">" also ends a
// comment if only dashes, or nothing, precede it.
func (z *Lexer) comment() {
	from := z.pos
	for {
		i := bytes.IndexByte(z.Src[z.pos:], '>')
		if i < 0 {
			z.pos = len(z.Src)
			return
		}
		first := z.pos == from
		z.pos += i + 1
		d := z.Src[from : z.pos-1]
		if bytes.HasSuffix(d, []byte("--")) || bytes.HasSuffix(d, []byte("--!")) || first && len(bytes.Trim(d, "-")) == 0 {
			return
		}
	}
}

// readTag reads the rest of a tag, beginning with its name. A tag that is incomplete at the end of
// the file is dropped.
func (z *Lexer) readTag(kind Kind) Kind {
	var low [32]byte
	n, i := 0, z.pos
	for ; i < len(z.Src) && !EndsName(z.Src[i]); i++ {
		c := z.Src[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if n < len(low) {
			low[n] = c
		}
		n++
	}
	z.Name = 0
	if n <= len(low) {
		z.Name = atom.Lookup(low[:n])
	}
	z.pos = i
	z.Attrs.seen = 0
	unquoted := false // whether the preceding byte belongs to an unquoted value
	for left := maxAttrs; ; left-- {
		z.skipGaps()
		if z.pos >= len(z.Src) {
			return EndOfFile
		}
		if z.Src[z.pos] == '>' {
			z.Empty = z.Src[z.pos-1] == '/' && !unquoted
			z.pos++
			break
		}
		key, value := z.attribute()
		unquoted = len(value) > 0 && z.Src[z.pos-1] == '/'
		if kind == StartTag && left > 0 {
			z.Attrs.keepAttr(key, value)
		}
	}
	if kind == StartTag {
		switch z.Name {
		case atom.Iframe, atom.Noembed, atom.Noframes, atom.Noscript, atom.Plaintext, atom.Script, atom.Style, atom.Textarea,
			atom.Title, atom.Xmp:
			z.Raw = z.Name
		}
	}
	return kind
}

func (z *Lexer) skipGaps() {
	for z.pos < len(z.Src) && isGap(z.Src[z.pos]) {
		z.pos++
	}
}

// attribute reads an attribute's name and value.
func (z *Lexer) attribute() (key, value []byte) {
	start := z.pos
	for z.pos < len(z.Src) {
		c := z.Src[z.pos]
		if c == '=' && z.pos > start || EndsName(c) {
			break
		}
		z.pos++
	}
	key = z.Src[start:z.pos]
	z.skipGaps()
	if z.pos >= len(z.Src) {
		return key, nil
	}
	switch z.Src[z.pos] {
	case '/':
		z.pos++
		return key, z.Src[z.pos:z.pos]
	case '=':
		z.pos++
	default:
		return key, z.Src[z.pos:z.pos]
	}
	z.skipGaps()
	if z.pos >= len(z.Src) {
		return key, nil
	}
	switch q := z.Src[z.pos]; q {
	case '>':
		return key, z.Src[z.pos:z.pos]
	case '"', '\'':
		z.pos++
		start = z.pos
		z.skipPast(q)
		return key, z.Src[start:max(start, z.pos-1)]
	}
	start = z.pos
	for z.pos < len(z.Src) && !isGap(z.Src[z.pos]) && z.Src[z.pos] != '>' {
		z.pos++
	}
	return key, z.Src[start:z.pos]
}

// closes reports whether the end tag of the current raw text element begins at i.
func (z *Lexer) closes(i int) bool {
	name := z.Raw.String()
	end := i + 2 + len(name)
	return end < len(z.Src) && z.Src[i+1] == '/' && EndsName(z.Src[end]) && foldEqual(z.Src[i+2:end], name)
}

func foldEqual(p []byte, lower string) bool {
	for i := range p {
		if c := p[i]; c != lower[i] && c != lower[i]-('a'-'A') {
			return false
		}
	}
	return true
}

// rawEnd returns the end of the text of the current raw text element.
func (z *Lexer) rawEnd() int {
	switch z.Raw {
	case atom.Plaintext:
		return len(z.Src)
	case atom.Script:
		return z.scriptEnd()
	}
	for i := z.pos; ; i += 2 {
		j := bytes.Index(z.Src[i:], endOpen)
		if j < 0 {
			return len(z.Src)
		}
		if i += j; z.closes(i) {
			return i
		}
	}
}

var (
	endOpen     = []byte("</")
	commentOpen = []byte("!--")
)

// scriptEnd returns the end of a script's text (13.2.5.15 to 31). Inside "<!--", a <script> makes
// the next </script> part of the script.
func (z *Lexer) scriptEnd() int {
	hidden, dashes := false, 0
	inside := false // whether i is between "<!--" and "-->"
	for i := z.pos; i < len(z.Src); i++ {
		if !inside {
			j := bytes.IndexByte(z.Src[i:], '<')
			if j < 0 {
				break
			}
			if i += j; z.closes(i) {
				return i
			}
			if bytes.HasPrefix(z.Src[i+1:], commentOpen) {
				i += len(commentOpen)
				inside, hidden, dashes = true, false, 2
			}
			continue
		}
		switch c := z.Src[i]; c {
		case '-':
			dashes++
			continue
		case '>':
			if dashes >= 2 {
				inside = false
			}
		case '<':
			switch {
			case z.closes(i):
				if !hidden {
					return i
				}
				hidden = false
				i += len("</script")
			case hidden || i+1 >= len(z.Src) || z.Src[i+1] == '/':
			case !IsLetter(z.Src[i+1]):
				inside = false // x/net/html treats this as the end of the comment, too
			case i+7 < len(z.Src) && EndsName(z.Src[i+7]) && foldEqual(z.Src[i+1:i+7], "script"):
				hidden = true
				i += len("<script")
			}
		}
		dashes = 0
	}
	return len(z.Src)
}

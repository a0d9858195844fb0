package parse

import (
	"bytes"

	"golang.org/x/net/html/atom"
)

// tokenKind is what a lexer found.
type tokenKind uint8

const (
	endOfFile tokenKind = iota
	textToken
	startTag
	endTag
)

// lexer cuts an HTML document into tokens (HTML, 13.2.5). It finds what x/net/html's
// tokenizer finds, which a fuzz test holds it to, at a fraction of the cost: the
// document lies in memory, so that text and values are ranges of it, and of
// attributes only those that the pass looks at are kept. Comments and doctypes are
// passed over. It never changes the document.
type lexer struct {
	src   []byte
	pos   int
	raw   atom.Atom // raw text element whose end tag is awaited; 0: none
	cdata bool      // within svg or math: CDATA sections are text

	name  atom.Atom // of a tag; 0: a name that nobody knows
	empty bool      // whether the tag ends in "/>": to XML, and within svg and math, an element without content
	attrs tagAttrs  // of a start tag
	text  []byte    // of text, as it stands
	refs  bool      // whether text may hold character references
}

// next reads a token.
func (z *lexer) next() tokenKind {
	if z.raw != 0 {
		end := z.rawEnd()
		z.refs = z.raw == atom.Title || z.raw == atom.Textarea
		z.raw = 0
		if end > z.pos {
			z.text, z.pos = z.src[z.pos:end], end
			return textToken
		}
	}
	for start := z.pos; ; {
		i := bytes.IndexByte(z.src[z.pos:], '<')
		if i < 0 || z.pos+i+1 >= len(z.src) {
			z.pos = len(z.src)
			return z.data(start, z.pos)
		}
		at := z.pos + i
		c := z.src[at+1]
		if !isLetter(c) && c != '/' && c != '!' && c != '?' {
			z.pos = at + 1 // a less-than sign is text
			continue
		}
		if at > start {
			z.pos = at
			return z.data(start, at)
		}
		switch {
		case isLetter(c):
			z.pos = at + 1
			return z.tag(startTag)
		case c == '/' && at+2 >= len(z.src):
			z.pos = len(z.src)
			return z.data(start, z.pos)
		case c == '/' && isLetter(z.src[at+2]):
			z.pos = at + 2
			return z.tag(endTag)
		case c == '!':
			z.pos = at + 2
			if z.declaration() {
				return textToken
			}
		default:
			z.pos = at + 1
			z.skipPast('>')
		}
		start = z.pos
	}
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// isGap reports whether c is white space within a tag.
func isGap(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' }

// endsName reports whether c ends a tag's name.
func endsName(c byte) bool { return isGap(c) || c == '/' || c == '>' }

func (z *lexer) data(start, end int) tokenKind {
	if start == end {
		return endOfFile
	}
	z.text, z.refs = z.src[start:end], true
	return textToken
}

func (z *lexer) skipPast(c byte) {
	if i := bytes.IndexByte(z.src[z.pos:], c); i >= 0 {
		z.pos += i + 1
	} else {
		z.pos = len(z.src)
	}
}

var (
	cdataOpen  = []byte("[CDATA[")
	cdataClose = []byte("]]>")
)

// declaration passes over what begins with "<!", or takes a CDATA section's text.
func (z *lexer) declaration() bool {
	rest := z.src[z.pos:]
	switch {
	case len(rest) >= 2 && rest[0] == '-' && rest[1] == '-':
		z.pos += 2
		z.comment()
	case z.cdata && bytes.HasPrefix(rest, cdataOpen):
		rest = rest[len(cdataOpen):]
		z.pos += len(cdataOpen)
		end, next := len(rest), len(rest)
		if i := bytes.Index(rest, cdataClose); i >= 0 {
			end, next = i, i+len(cdataClose)
		}
		z.pos += next
		z.text, z.refs = rest[:end], false
		return true
	default:
		z.skipPast('>')
	}
	return false
}

// comment passes over a comment's data and its end: "-->", "--!>", or a ">" right at
// its beginning that only dashes precede.
func (z *lexer) comment() {
	from := z.pos
	for {
		i := bytes.IndexByte(z.src[z.pos:], '>')
		if i < 0 {
			z.pos = len(z.src)
			return
		}
		first := z.pos == from
		z.pos += i + 1
		d := z.src[from : z.pos-1]
		if bytes.HasSuffix(d, []byte("--")) || bytes.HasSuffix(d, []byte("--!")) || first && len(bytes.Trim(d, "-")) == 0 {
			return
		}
	}
}

// tag reads a tag from its name on. A tag that the end of the file cuts is none.
func (z *lexer) tag(kind tokenKind) tokenKind {
	var low [32]byte
	n, i := 0, z.pos
	for ; i < len(z.src) && !endsName(z.src[i]); i++ {
		c := z.src[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if n < len(low) {
			low[n] = c
		}
		n++
	}
	z.name = 0
	if n <= len(low) {
		z.name = atom.Lookup(low[:n])
	}
	z.pos = i
	z.attrs.has = 0
	unquoted := false // whether the last byte read is of a value
	for left := maxAttrs; ; left-- {
		z.skipGaps()
		if z.pos >= len(z.src) {
			return endOfFile
		}
		if z.src[z.pos] == '>' {
			z.empty = z.src[z.pos-1] == '/' && !unquoted
			z.pos++
			break
		}
		key, value := z.attribute()
		unquoted = len(value) > 0 && z.src[z.pos-1] == '/'
		if kind == startTag && left > 0 {
			z.attrs.put(key, value)
		}
	}
	if kind == startTag {
		switch z.name {
		case atom.Iframe, atom.Noembed, atom.Noframes, atom.Noscript, atom.Plaintext, atom.Script, atom.Style, atom.Textarea,
			atom.Title, atom.Xmp:
			z.raw = z.name
		}
	}
	return kind
}

func (z *lexer) skipGaps() {
	for z.pos < len(z.src) && isGap(z.src[z.pos]) {
		z.pos++
	}
}

// attribute reads a name and what follows it.
func (z *lexer) attribute() (key, value []byte) {
	start := z.pos
	for z.pos < len(z.src) {
		c := z.src[z.pos]
		if c == '=' && z.pos > start || endsName(c) {
			break
		}
		z.pos++
	}
	key = z.src[start:z.pos]
	z.skipGaps()
	if z.pos >= len(z.src) {
		return key, nil
	}
	switch z.src[z.pos] {
	case '/':
		z.pos++
		return key, z.src[z.pos:z.pos]
	case '=':
		z.pos++
	default:
		return key, z.src[z.pos:z.pos]
	}
	z.skipGaps()
	if z.pos >= len(z.src) {
		return key, nil
	}
	switch q := z.src[z.pos]; q {
	case '>':
		return key, z.src[z.pos:z.pos]
	case '"', '\'':
		z.pos++
		start = z.pos
		z.skipPast(q)
		return key, z.src[start:max(start, z.pos-1)]
	}
	start = z.pos
	for z.pos < len(z.src) && !isGap(z.src[z.pos]) && z.src[z.pos] != '>' {
		z.pos++
	}
	return key, z.src[start:z.pos]
}

// closes reports whether an end tag of the raw text element begins at i.
func (z *lexer) closes(i int) bool {
	name := z.raw.String()
	end := i + 2 + len(name)
	return end < len(z.src) && z.src[i+1] == '/' && endsName(z.src[end]) && foldEqual(z.src[i+2:end], name)
}

func foldEqual(p []byte, lower string) bool {
	for i := range p {
		if c := p[i]; c != lower[i] && c != lower[i]-('a'-'A') {
			return false
		}
	}
	return true
}

// rawEnd is where the text of the open raw text element ends.
func (z *lexer) rawEnd() int {
	switch z.raw {
	case atom.Plaintext:
		return len(z.src)
	case atom.Script:
		return z.scriptEnd()
	}
	for i := z.pos; ; i += 2 {
		j := bytes.Index(z.src[i:], endOpen)
		if j < 0 {
			return len(z.src)
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

// scriptEnd is where a script ends (13.2.5.15 to 31): within what looks like a
// comment, a <script> hides the </script> that follows it.
func (z *lexer) scriptEnd() int {
	hidden, dashes := false, 0
	inside := false // within "<!--"
	for i := z.pos; i < len(z.src); i++ {
		if !inside {
			j := bytes.IndexByte(z.src[i:], '<')
			if j < 0 {
				break
			}
			if i += j; z.closes(i) {
				return i
			}
			if bytes.HasPrefix(z.src[i+1:], commentOpen) {
				i += len(commentOpen)
				inside, hidden, dashes = true, false, 2
			}
			continue
		}
		switch c := z.src[i]; c {
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
			case hidden || i+1 >= len(z.src) || z.src[i+1] == '/':
			case !isLetter(z.src[i+1]):
				inside = false // as x/net/html has it
			case i+7 < len(z.src) && endsName(z.src[i+7]) && foldEqual(z.src[i+1:i+7], "script"):
				hidden = true
				i += len("<script")
			}
		}
		dashes = 0
	}
	return len(z.src)
}

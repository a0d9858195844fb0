package jsonld

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"

	"crawlbatch.io/crawlbatch/stages/parse/fold"
	"crawlbatch.io/crawlbatch/stages/parse/lexer"
)

// scanner reads what pages write for JSON (RFC 8259). Of JSON it finds what is
// there. Of what is none it gives what can be told: comments and CDATA marks are
// passed over, commas and colons may be missing or too many, strings may hold line
// feeds and quotes, keys may have no quotes, and the end may be missing.
//
// Each method leaves pos behind what it read, and no byte is looked at more than a
// few times: time is linear in src, and no memory is taken.
type scanner struct {
	src []byte
	pos int
}

var (
	commentEnd = []byte("*/")
	lineMarks  = [...][]byte{[]byte("<![CDATA["), []byte("]]>"), []byte("<!--"), []byte("-->")}
	literals   = [...][]byte{[]byte("true"), []byte("false"), []byte("null")}
)

// blank is where white space that begins at i ends; lines: it holds a line feed.
func (z *scanner) blank(i int) (end int, lines bool) {
	for ; i < len(z.src); i++ {
		switch c := z.src[i]; {
		case c == '\n':
			lines = true
		case c <= ' ':
		case c == 0xC2 && i+1 < len(z.src) && z.src[i+1] == 0xA0: // no-break space
			i++
		case c == 0xEF && bytes.HasPrefix(z.src[i:], fold.BOM):
			i += len(fold.BOM) - 1
		default:
			return i, lines
		}
	}
	return i, lines
}

// gap passes over what stands between tokens.
func (z *scanner) gap() {
	for {
		z.pos, _ = z.blank(z.pos)
		rest := z.src[z.pos:]
		if len(rest) < 2 {
			return
		}
		switch {
		case rest[0] == '/' && rest[1] == '/':
			z.pos += 2
			if end, _ := z.blank(z.pos); z.mark(end) {
				continue // of a mark that a comment hides from scripts the line goes on
			}
			if i := bytes.IndexByte(z.src[z.pos:], '\n'); i >= 0 {
				z.pos += i
			} else {
				z.pos = len(z.src)
			}
		case rest[0] == '/' && rest[1] == '*':
			if i := bytes.Index(rest[2:], commentEnd); i >= 0 {
				z.pos += 2 + i + len(commentEnd)
			} else {
				z.pos = len(z.src)
			}
		case !z.mark(z.pos):
			return
		}
	}
}

// mark passes over one of lineMarks that stands at i.
func (z *scanner) mark(i int) bool {
	for _, m := range lineMarks {
		if bytes.HasPrefix(z.src[i:], m) {
			z.pos = i + len(m)
			return true
		}
	}
	return false
}

// peek passes over a gap and returns the byte behind it, 0 at the end.
func (z *scanner) peek() byte {
	if z.gap(); z.pos < len(z.src) {
		return z.src[z.pos]
	}
	return 0
}

// member moves to the next member's value of the open object and returns its key;
// false at the object's end, which it passes over.
func (z *scanner) member() (key []byte, ok bool) {
	for {
		c := z.peek()
		start := z.pos
		switch {
		case z.pos >= len(z.src):
			return nil, false
		case c == '}', c == ']':
			z.pos++
			return nil, false
		case c == '"', c == '\'':
			i := bytes.IndexByte(z.src[start+1:], c)
			if i < 0 {
				z.pos = len(z.src)
				return nil, false
			}
			key, z.pos = z.src[start+1:start+1+i], start+i+2
		case lexer.IsLetter(c), c == '@', c == '_', c == '$':
			for z.pos++; z.pos < len(z.src) && isWordByte(z.src[z.pos]); {
				z.pos++
			}
			key = z.src[start:z.pos]
		default:
			z.pos++
			continue
		}
		if z.peek() == ':' {
			z.pos++
			return key, true
		}
		if c == '"' || c == '\'' {
			z.pos = start + 1 // the quote was of something else: what follows it may be a key
		}
	}
}

func isWordByte(c byte) bool {
	return lexer.IsLetter(c) || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// element moves to the next element of the open array; false at the array's end.
func (z *scanner) element() bool {
	for {
		switch z.peek() {
		case 0:
			if z.pos >= len(z.src) {
				return false
			}
			return true
		case ']':
			z.pos++
			return false
		case '}': // of the object around: the array was not ended
			return false
		case ',', ';', ':':
			z.pos++
		default:
			return true
		}
	}
}

// str reads the string that begins at pos and returns what its quotes hold, as it
// stands. A quote ends it where what follows can follow a string (ends).
func (z *scanner) str(colon bool) []byte {
	quote, start := z.src[z.pos], z.pos+1
	for i := start; ; i++ {
		j := bytes.IndexByte(z.src[i:], quote)
		if j < 0 {
			z.pos = len(z.src)
			return z.src[start:]
		}
		i += j
		escapes := 0
		for i-escapes > start && z.src[i-escapes-1] == '\\' {
			escapes++
		}
		if escapes%2 == 0 && z.ends(i+1, colon) {
			z.pos = i + 1
			return z.src[start:i]
		}
	}
}

// ends reports whether what stands at i may follow a string. In JSON something of it
// always does; elsewhere it tells a quote within a text from the one at its end.
func (z *scanner) ends(i int, colon bool) bool {
	i, lines := z.blank(i)
	if i >= len(z.src) {
		return true
	}
	switch z.src[i] {
	case '}', ']', '/':
		return true
	case ':':
		return colon
	case '"', '\'':
		return lines // a comma is missing
	case ',':
		if i, _ = z.blank(i + 1); i >= len(z.src) {
			return true
		}
		switch c := z.src[i]; c {
		case '"', '\'', '{', '[', '}', ']', ',', '-', '/':
			return true
		default:
			if c >= '0' && c <= '9' {
				return true
			}
			for _, l := range literals {
				if bytes.HasPrefix(z.src[i:], l) {
					return true
				}
			}
			end := i
			for end < min(len(z.src), i+32) && (isWordByte(z.src[end]) || z.src[end] == '@') {
				end++
			}
			return end > i && end < len(z.src) && z.src[end] == ':' // a key without quotes
		}
	}
	return false
}

// skip passes over a value, whatever it is. Where there is none it stays.
func (z *scanner) skip() {
	depth := 0
	for {
		switch c := z.peek(); c {
		case 0:
			if z.pos >= len(z.src) {
				return
			}
			z.pos++
		case '"', '\'':
			z.str(depth > 0)
		case '{', '[':
			depth++
			z.pos++
		case '}', ']', ',', ':', ';':
			if depth == 0 {
				return
			}
			if c == '}' || c == ']' {
				depth--
			}
			z.pos++
		default:
			for z.pos++; z.pos < len(z.src) && (isWordByte(z.src[z.pos]) || z.src[z.pos] == '.' || z.src[z.pos] == '+'); {
				z.pos++
			}
		}
		if depth == 0 {
			return
		}
	}
}

// text reads a value that is meant to be a text, white space folded, at most max
// bytes of it: a string, the first of a list, or the @value or name of an object. It
// is "" for anything else.
func (z *scanner) text(max int) (s string) {
	switch z.peek() {
	case '"', '\'':
		return foldJSON(z.str(false), max)
	case '[':
		z.pos++
		for z.element() {
			if c := z.peek(); s == "" && (c == '"' || c == '\'') {
				s = foldJSON(z.str(false), max)
			} else {
				z.skip()
			}
		}
	case '{':
		z.pos++
		for {
			key, ok := z.member()
			if !ok {
				return s
			}
			if c := z.peek(); (c == '"' || c == '\'') && s == "" && (string(key) == "@value" || string(key) == "name") {
				s = foldJSON(z.str(false), max)
			} else {
				z.skip()
			}
		}
	default:
		z.skip()
	}
	return s
}

// foldJSON is fold of what a string's quotes hold: its escapes are resolved, and
// character references too, since most of those who write them there mean them.
func foldJSON(raw []byte, max int) string {
	raw = fold.Prefix(raw, 8*max)
	if bytes.IndexByte(raw, '\\') >= 0 {
		raw = unquote(make([]byte, 0, len(raw)), raw)
	}
	if bytes.IndexByte(raw, '&') >= 0 {
		raw = lexer.Unescape(make([]byte, 0, len(raw)), raw, true)
	}
	return fold.Bytes(raw, max)
}

// unquote appends p to dst with its escapes resolved (RFC 8259, 7). What is none
// stands for the byte behind the backslash.
func unquote(dst, p []byte) []byte {
	for {
		i := bytes.IndexByte(p, '\\')
		if i < 0 || i+1 >= len(p) {
			return append(dst, p...)
		}
		dst = append(dst, p[:i]...)
		c := p[i+1]
		p = p[i+2:]
		switch c {
		case 'n', 'r', 't', 'b', 'f':
			dst = append(dst, ' ')
		case 'u':
			r, ok := hex4(p)
			if !ok {
				dst = append(dst, 'u')
				continue
			}
			p = p[4:]
			if utf16.IsSurrogate(r) {
				low := rune(utf8.RuneError)
				if len(p) >= 6 && p[0] == '\\' && p[1] == 'u' {
					low, _ = hex4(p[2:])
				}
				if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
					p = p[6:]
				}
			}
			dst = utf8.AppendRune(dst, r)
		default:
			dst = append(dst, c)
		}
	}
}

func hex4(p []byte) (r rune, ok bool) {
	if len(p) < 4 {
		return 0, false
	}
	for _, c := range p[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

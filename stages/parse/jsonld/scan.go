package jsonld

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"crawlbatch.io/crawlbatch/stages/parse/fold"
	"crawlbatch.io/crawlbatch/stages/parse/lexer"
)

// scanner reads JSON (RFC 8259), including JSON with the errors that are usual in pages. The
// scanner skips comments and CDATA marks. Commas and colons may be missing or repeated. Strings may
// contain line feeds and quotes. Keys may lack quotes, and the end may be missing.
//
// A method that reads or skips something moves pos to its end. The time is linear in src.
type scanner struct {
	src     []byte
	pos     int
	gapEnds ['\'' + 1]int // by quote, the end of the last gap that skipGapAfter skipped
}

var (
	commentEnd = []byte("*/")
	lineMarks  = [...][]byte{[]byte("<![CDATA["), []byte("]]>"), []byte("<!--"), []byte("-->")}
	literals   = [...][]byte{[]byte("true"), []byte("false"), []byte("null")}
)

// whiteSpaceEnd returns the end of the white space at i, and whether the white space holds a
// line feed.
func (z *scanner) whiteSpaceEnd(i int) (end int, lines bool) {
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

// skipGap skips white space, comments and marks between two tokens.
func (z *scanner) skipGap() {
	for {
		z.pos, _ = z.whiteSpaceEnd(z.pos)
		rest := z.src[z.pos:]
		if len(rest) < 2 {
			return
		}
		switch {
		case rest[0] == '/' && rest[1] == '/':
			z.pos += 2
			if end, _ := z.whiteSpaceEnd(z.pos); z.skipMark(end) {
				continue // JSON may follow on this line, because the comment only hides a CDATA mark from scripts
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
		case !z.skipMark(z.pos):
			return
		}
	}
}

// skipGapAfter skips the gap after a key in quotes. nextMember goes back if no colon follows, and then
// finds the quotes in the gap's comments too. After these quotes, skipGapAfter skips only white space,
// because otherwise it would read the same comments after each of them.
func (z *scanner) skipGapAfter(quote byte) {
	if z.pos < z.gapEnds[quote] {
		z.pos, _ = z.whiteSpaceEnd(z.pos)
		return
	}
	z.skipGap()
	z.gapEnds[quote] = z.pos
}

// skipMark skips a CDATA or comment mark at i, and reports whether there is one.
func (z *scanner) skipMark(i int) bool {
	for _, m := range lineMarks {
		if bytes.HasPrefix(z.src[i:], m) {
			z.pos = i + len(m)
			return true
		}
	}
	return false
}

// peek skips a gap and returns the next byte, or 0 at the end.
func (z *scanner) peek() byte {
	if z.skipGap(); z.pos < len(z.src) {
		return z.src[z.pos]
	}
	return 0
}

// nextMember moves to the value of the object's next member and returns the member's key. If the
// object ends, nextMember skips the end and returns false.
func (z *scanner) nextMember() (key []byte, ok bool) {
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
			z.skipGapAfter(c)
		case lexer.IsLetter(c), c == '@', c == '_', c == '$':
			for z.pos++; z.pos < len(z.src) && isWordByte(z.src[z.pos]); {
				z.pos++
			}
			key = z.src[start:z.pos]
			z.skipGap()
		default:
			z.pos++
			continue
		}
		if z.pos < len(z.src) && z.src[z.pos] == ':' {
			z.pos++
			return key, true
		}
		if c == '"' || c == '\'' {
			z.pos = start + 1 // this quote does not begin a key, but a key may follow the quote
		}
	}
}

func isWordByte(c byte) bool {
	return lexer.IsLetter(c) || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// nextElement moves to the next element of the list. If the list ends, nextElement returns
// false.
func (z *scanner) nextElement() bool {
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
		case '}': // this is the end of the object around the list, so the list's own end is missing
			return false
		case ',', ';', ':':
			z.pos++
		default:
			return true
		}
	}
}

// eachMember calls read for every member of the object at pos. key is the member's key without the
// prefix of schema.org. read must move pos to the end of the member's value.
func (z *scanner) eachMember(read func(key []byte)) {
	z.pos++
	for {
		key, ok := z.nextMember()
		if !ok {
			return
		}
		read(localName(key))
	}
}

// eachElement calls read for every element of the list at pos. If the value is not a list, eachElement
// calls read for the value itself.
func (z *scanner) eachElement(read func()) {
	if z.peek() != '[' {
		read()
		return
	}
	z.pos++
	for z.nextElement() {
		read()
	}
}

// atString reports whether a string follows.
func (z *scanner) atString() bool {
	c := z.peek()
	return c == '"' || c == '\''
}

// str reads the string at pos and returns its content without resolving escapes. A quote ends the
// string if the next token can follow a string (see canFollowString).
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
		if escapes%2 == 0 && z.canFollowString(i+1, colon) {
			z.pos = i + 1
			return z.src[start:i]
		}
	}
}

// canFollowString reports whether the token at i can follow a string. This check tells the closing
// quote from unescaped quotes within a string. colon is true if the string may be a key.
func (z *scanner) canFollowString(i int, colon bool) bool {
	i, lines := z.whiteSpaceEnd(i)
	if i >= len(z.src) {
		return true
	}
	switch z.src[i] {
	case '}', ']', '/':
		return true
	case ':':
		return colon
	case '"', '\'':
		return lines // a quote on the next line begins the next string, because a comma is missing; a quote on this line is part of the string
	case ',':
		if i, _ = z.whiteSpaceEnd(i + 1); i >= len(z.src) {
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

// skipValue skips a value of any kind. If there is no value, pos does not move.
func (z *scanner) skipValue() {
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

// readText reads a text of at most max bytes and folds its white space. The text is a string,
// the first string of a list, or the @value or name of an object. If the value is not a text,
// readText returns "".
func (z *scanner) readText(max int) (s string) {
	take := func() {
		if z.atString() && s == "" {
			s = foldJSON(z.str(false), max)
		} else {
			z.skipValue()
		}
	}
	if z.peek() != '{' {
		z.eachElement(take)
		return s
	}
	z.eachMember(func(key []byte) {
		if string(key) == "@value" || string(key) == "name" {
			take()
		} else {
			z.skipValue()
		}
	})
	return s
}

// foldJSON folds the raw content of a string and resolves its escapes. It also resolves character
// references, because most authors who write such references in JSON mean the character.
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

// unquote appends p to dst with its escapes resolved (RFC 8259, 7). For an unknown escape, unquote
// appends the byte after the backslash.
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
	n, err := strconv.ParseUint(string(p[:4]), 16, 16)
	return rune(n), err == nil
}

package robots

import (
	"slices"
	"strings"
)

// Reading selects how rules are compared with URLs.
type Reading uint8

const (
	// Every compares the URL and each of its spellings in both ways, as Google's parser
	// and as RFC 9309 (rfcForm). One denial denies.
	Every Reading = iota
	// Google compares octets as Google's parser does, without decoding escapes. It ignores
	// spellings.
	Google
)

// ReadingOf returns the reading of a round from the schema.FormatVersion of its start.json.
func ReadingOf(format int) Reading {
	if format < 2 {
		return Google
	}
	return Every
}

// rfcForm brings a path to the form in which RFC 9309 (sections 2.2.2 and 2.2.3)
// compares octets:
//   - it decodes escapes of unreserved octets, escapes octets that a URI must not
//     contain, and puts hex digits in upper case;
//   - a literal star becomes %2A on both sides, so '*' in a rule is always the wildcard;
//   - %24 becomes '$', and %27 an apostrophe, which the URL Standard escapes in queries;
//   - a percent sign without two hex digits becomes %25;
//   - escapes of other reserved octets stay, so %2F is not a slash.
func rfcForm(s string, rule bool) string {
	i := firstChange(s, rule)
	if i == len(s) {
		return s
	}
	const hex = "0123456789ABCDEF"
	out := make([]byte, i, len(s)+16)
	copy(out, s)
	for ; i < len(s); i++ {
		c := s[i]
		escaped := false
		if isEscape(s, i) {
			c, escaped = octet(s, i), true
			i += 2
		}
		switch {
		case stands[c] && !escaped, escaped && decoded(c), c == '*' && rule && !escaped:
			out = append(out, c)
		default:
			out = append(out, '%', hex[c>>4], hex[c&0xF])
		}
	}
	return string(out)
}

// firstChange is the index of the first octet that rfcForm changes, len(s) if none.
func firstChange(s string, rule bool) int {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case stands[c], c == '*' && rule:
		case isEscape(s, i) && !decoded(octet(s, i)) && upper(s[i+1]) == s[i+1] && upper(s[i+2]) == s[i+2]:
			i += 2
		default:
			return i
		}
	}
	return len(s)
}

// stands marks the octets that a URI may contain unescaped (RFC 3986, section 2), without
// the star.
var stands = func() (t [256]bool) {
	for c := '!'; c <= '~'; c++ {
		t[c] = !strings.ContainsRune("\"%*<>\\^`{|}", c)
	}
	return t
}()

// decoded reports whether rfcForm decodes the escape of an octet.
func decoded(c byte) bool {
	switch {
	case 'a' <= c|0x20 && c|0x20 <= 'z', '0' <= c && c <= '9':
		return true
	}
	return c == '-' || c == '.' || c == '_' || c == '~' || c == '$' || c == '\''
}

// octet decodes the escape at s[i].
func octet(s string, i int) byte {
	digit := func(c byte) byte {
		if c <= '9' {
			return c - '0'
		}
		return upper(c) - 'A' + 10
	}
	return digit(s[i+1])<<4 | digit(s[i+2])
}

// rfc returns the pattern in the form of rfcForm.
func (p pattern) rfc() pattern {
	text, end := p.text, ""
	if p.anchored {
		text, end = text[:len(text)-1], "$"
	}
	if firstChange(text, true) < len(text) {
		p.text = rfcForm(text, true) + end
	}
	return p
}

// rfcRules returns the rules in the form of rfcForm; nil if no rule changes.
func rfcRules(rules []rule) []rule {
	var out []rule
	for i := range rules {
		p := rules[i].rfc()
		if p.text == rules[i].text {
			continue
		}
		if out == nil {
			out = slices.Clone(rules)
		}
		out[i].pattern, out[i].directory = p, pattern{}
		if out[i].allow {
			out[i].directory, _ = p.directory()
		}
	}
	return out
}

package robots

import (
	"slices"
	"strings"
)

// rfcForm brings a path to the form in which RFC 9309 (sections 2.2.2 and 2.2.3) compares octets:
//   - it decodes escapes of unreserved octets, escapes octets that a URI must not
//     contain, and puts hex digits in upper case;
//   - a literal star becomes %2A in rules and in URLs, so '*' in a rule is always the wildcard;
//   - %24 becomes '$', and %27 an apostrophe, which the URL Standard escapes in queries;
//   - a percent sign without two hex digits becomes %25;
//   - escapes of other reserved octets stay, so %2F is not a slash.
func rfcForm(s string, rule bool) string {
	i := firstChange(s, rule)
	if i == len(s) {
		return s
	}
	out := append(make([]byte, 0, len(s)+16), s[:i]...)
	for ; i < len(s); i++ {
		c, escaped := octet(s, i)
		if escaped {
			i += 2
		}
		if unescapedOctets[c] && !escaped || escaped && isDecoded(c) || c == '*' && rule && !escaped {
			out = append(out, c)
		} else {
			out = appendEscape(out, c)
		}
	}
	return string(out)
}

// firstChange returns the index of the first octet that rfcForm changes, or len(s) if there is
// none.
func firstChange(s string, rule bool) int {
	for i := 0; i < len(s); i++ {
		c, escaped := octet(s, i)
		switch {
		case !escaped && (unescapedOctets[c] || c == '*' && rule):
		case escaped && !isDecoded(c) && s[i+1:i+3] == strings.ToUpper(s[i+1:i+3]):
			i += 2
		default:
			return i
		}
	}
	return len(s)
}

// unescapedOctets contains true for each octet that a URI may contain unescaped (RFC 3986, section
// 2), except the star.
var unescapedOctets = func() (t [256]bool) {
	for c := '!'; c <= '~'; c++ {
		t[c] = !strings.ContainsRune("\"%*<>\\^`{|}", c)
	}
	return t
}()

// isDecoded reports whether rfcForm decodes an escape of this octet.
func isDecoded(c byte) bool {
	switch {
	case 'a' <= c|0x20 && c|0x20 <= 'z', '0' <= c && c <= '9':
		return true
	}
	return c == '-' || c == '.' || c == '_' || c == '~' || c == '$' || c == '\''
}

// rfcPattern returns the pattern with its text in rfcForm.
func (p pattern) rfcPattern() pattern {
	text, anchored := strings.CutSuffix(p.text, "$")
	if p.text = rfcForm(text, true); anchored {
		p.text += "$"
	}
	return p
}

// rfcRules returns the rules in rfcForm, or nil if all rules already have this form.
func rfcRules(rules []rule) []rule {
	var out []rule
	for i := range rules {
		p := rules[i].rfcPattern()
		if p.text == rules[i].text {
			continue
		}
		if out == nil {
			out = slices.Clone(rules)
		}
		out[i] = makeRule(p, rules[i].allow, rules[i].line, rules[i].num)
	}
	return out
}

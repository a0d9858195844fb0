// Package secret hides secrets in the names of sources, which are URLs of sitemaps and feeds.
package secret

import (
	"slices"
	"strconv"
	"strings"
)

// hidden replaces the value of a secret parameter.
const hidden = "***"

// maxEscapes is how often a text may be escaped.
const maxEscapes = 3

// secretWords are parts of the names of parameters whose values are secrets: of a private feed
// ("token", "api_key"), or of a signed address ("X-Amz-Signature", "sig"). They also match other names,
// such as "keyword". That hides more than needed, which does no harm.
var secretWords = []string{"auth", "cred", "hash", "hmac", "jwt", "key", "pass", "pwd", "secret", "session", "sig", "ticket", "token"}

// Hide replaces the values of parameters with secret names in a URL, before the URL is stored, printed or
// logged. The argument may also be a text that ends with such a URL.
func Hide(s string) string {
	at := strings.IndexByte(s, '?')
	if at < 0 {
		return s
	}
	elements := strings.Split(s[at+1:], "&")
	for i, e := range elements {
		if end := secretAt(e); end >= 0 {
			elements[i] = e[:end] + hidden
			continue
		}
		// The name may have escapes, or the value may be an escaped URL with a secret of its own.
		for range maxEscapes {
			plain := unescape(e)
			if secretAt(plain) >= 0 {
				elements[i] = elements[i][:strings.IndexByte(elements[i], '=')+1] + hidden
				break
			}
			if plain == e {
				break
			}
			e = plain
		}
	}
	return s[:at+1] + strings.Join(elements, "&")
}

// unescape replaces the percent escapes of a text, and keeps malformed ones: a server may accept them.
func unescape(s string) string {
	var plain strings.Builder
	for len(s) > 0 {
		if s[0] == '%' && len(s) > 2 {
			if c, err := strconv.ParseUint(s[1:3], 16, 8); err == nil {
				plain.WriteByte(byte(c))
				s = s[3:]
				continue
			}
		}
		plain.WriteByte(s[0])
		s = s[1:]
	}
	return plain.String()
}

// secretAt returns the offset of the first value in a part of a query whose name is secret, or -1. The
// value ends with the part, because for some servers ; separates parameters and for others it does not.
func secretAt(part string) int {
	name := 0 // where the current name begins
	for i, c := range []byte(part) {
		switch c {
		case '=':
			if isSecret(part[name:i]) {
				return i + 1
			}
			name = i + 1
		case '&', ';', '?', '#':
			name = i + 1
		}
	}
	return -1
}

func isSecret(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(name, word) })
}

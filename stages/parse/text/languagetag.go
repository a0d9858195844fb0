package text

import "strings"

// MaxLanguageTag bounds the length of a language tag, in bytes. RFC 5646, 4.4.1, says at least 35.
const MaxLanguageTag = 35

// LanguageTag returns a BCP 47 tag in its usual letter case (RFC 5646, 2.1.1): de, pt-BR,
// zh-Hant-TW. LanguageTag also accepts x-default, and underscores in place of hyphens. If p is not
// a tag, the result is "".
func LanguageTag(p []byte) string {
	if len(p) == 0 {
		return ""
	}
	s := strings.TrimFunc(string(p), func(r rune) bool { return r <= ' ' })
	if len(s) > MaxLanguageTag {
		return ""
	}
	subtags := strings.Split(strings.ReplaceAll(s, "_", "-"), "-")
	extended := false // whether a subtag of one character was read; all later subtags are private or belong to an extension
	for i, sub := range subtags {
		if !isSubtag(sub) || i == 0 && sub[0] <= '9' {
			return ""
		}
		sub = strings.ToLower(sub)
		if i > 0 && !extended && sub[0] > '9' {
			switch len(sub) {
			case 2: // the subtag is a region
				sub = strings.ToUpper(sub)
			case 4: // the subtag is a script
				sub = strings.ToUpper(sub[:1]) + sub[1:]
			}
		}
		extended = extended || len(sub) == 1
		subtags[i] = sub
	}
	if len(subtags) == 1 && extended {
		return ""
	}
	return strings.Join(subtags, "-")
}

// isSubtag reports whether s is one to eight ASCII letters and digits.
func isSubtag(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return s != "" && len(s) <= 8
}

package frontier

import (
	"slices"
	"strings"
)

// A site with endless URLs is recognised only if both its URLs and its pages are alike. Alike URLs
// alone prove nothing: the URLs of articles may differ only in a number. Alike pages alone prove
// nothing: sites have copies of pages.
const (
	alikePercent  = 95        // a pattern is a trap only if at least this percentage of its pages resemble the page before
	alikeDistance = 3         // texts are nearly the same if their fingerprints differ in at most this number of bits
	alikeWords    = 20        // pages with fewer words are not alike
	longWords     = 100       // texts with more words are alike only if they are equal: of so many, a fingerprint hides the few that differ
	mostUnlike    = 2         // a pattern with more pages that do not resemble the page before is no trap: it has content
	fewWords      = 10        // texts with fewer words are never alike, because galleries and pages made by scripts have such texts
	maxNames      = 32        // bounds the number of query parameters in a pattern
	patternNumber = "0"       // replaces each number and identifier
	idLetters     = "abcdef-" // characters of identifiers, in addition to digits
	idLength      = 8         // least length of an identifier, in characters
)

// pattern returns a URL's host and its pattern: the path with "0" in place of numbers and identifiers,
// and the names of the query parameters without their values.
func pattern(url string) (host, p string) {
	rest := hostAndPath(url)
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		return rest, ""
	}
	host, rest = rest[:end], rest[end:]
	path, query, has := strings.Cut(rest, "?")
	var b strings.Builder
	for s := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		b.WriteByte('/')
		if identifier(s) {
			s = patternNumber
		}
		digits := false
		for n := range len(s) {
			digit := s[n] >= '0' && s[n] <= '9'
			if !digit {
				b.WriteByte(s[n])
			} else if !digits {
				b.WriteString(patternNumber)
			}
			digits = digit
		}
	}
	if has {
		var names []string
		for f := range strings.SplitSeq(query, "&") {
			name, _, _ := strings.Cut(f, "=")
			if len(names) < maxNames && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		b.WriteString("?" + strings.Join(names, "&"))
	}
	return host, b.String()
}

// identifier reports whether a path segment looks like the ID of a session or an object. An ID is
// hexadecimal or a UUID, and has at least one digit.
func identifier(s string) bool {
	return len(s) >= idLength && strings.Trim(strings.ToLower(s), "0123456789"+idLetters) == "" && strings.ContainsAny(s, "0123456789")
}

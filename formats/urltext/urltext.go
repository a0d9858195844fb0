// Package urltext takes the URL out of a line or a field that people and programs wrote.
//
// The parser of the URL Standard repairs its input: it removes tabs and line ends, turns backslashes into
// slashes, ignores invisible characters in hosts, and reads octets that are not UTF-8 as U+FFFD. The result
// may be the URL of another page. Package urltext cuts off what is surely not the URL, and refuses a text in
// which the end of the URL, or a character of it, is in doubt. It never removes anything within a URL: the
// result is one stretch of the text, in which each octet that is not UTF-8 is percent-encoded, so that the
// server gets this octet. Whether the result is a URL, package urlkey decides.
//
// The package imports the standard library only.
package urltext

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The reasons to refuse a text.
const (
	whySpace = "it has a space after the first word, so it is not clear where the URL ends: " +
		"put notes after a tab, or after a space and #, and write a space of the URL as %20"
	whyBackslash = `it has a backslash: write a slash, or %5C if the backslash belongs to the URL`
	whyControl   = "it has a control character or a line end (%U) inside: remove it, or percent-encode it if it belongs to the URL"
	whyReplaced  = "it has U+FFFD, with which some program replaced an octet that it could not read: write the octet as %XX"
	whyInvisible = "it has a character that cannot be seen (%U) inside: remove it, or percent-encode it if it belongs to the URL"
)

// Line returns the URL in a line of a list that has one URL per line. The URL ends at a tab, or at a space before
// "#"; the rest is a note, as in the seed lists of other crawlers. White space, control characters and
// invisible characters around the URL do not count, such as a byte order mark where files were joined. Quotes,
// commas and other visible characters do: some URLs have them, and a text that begins with one is no URL. why is
// "", or says why the line is refused; url is then the whole line, for display. A line that begins with "#",
// and one of several words that does not begin as a URL, is returned as it is.
func Line(line []byte) (url, why string) {
	text := trim(line)
	if len(text) == 0 || text[0] == '#' {
		return string(line), ""
	}
	end := len(text)
	for _, separator := range []string{"\t", " #"} {
		if i := bytes.Index(text[:end], []byte(separator)); i >= 0 {
			end = i
		}
	}
	text = trim(text[:end])
	if bytes.IndexByte(text, ' ') >= 0 && !isWeb(text) {
		return string(line), ""
	}
	if url, why = check(text, true); why != "" {
		url = string(line)
	}
	return url, why
}

// isWeb reports whether a text begins with the scheme of a URL of the web.
func isWeb(text []byte) bool {
	scheme, _, _ := bytes.Cut(text, []byte(":"))
	return bytes.EqualFold(scheme, []byte("http")) || bytes.EqualFold(scheme, []byte("https"))
}

// Field returns the URL in a field that holds nothing else, such as one of CSV, JSON or XML. Spaces within it
// belong to the URL. Otherwise Field is like Line.
func Field(field []byte) (url, why string) {
	if url, why = check(trim(field), false); why != "" {
		url = string(field)
	}
	return url, why
}

// trim drops what is around a URL.
func trim(text []byte) []byte {
	return bytes.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || invisible(r) })
}

// invisible reports whether r has no visible form and no effect on the letters around it. The joiners U+200C and
// U+200D have one: words of Persian and Hindi need them.
func invisible(r rune) bool {
	return unicode.Is(unicode.Cf, r) && r != '\u200c' && r != '\u200d'
}

// check returns a trimmed text with the octets percent-encoded that are not UTF-8, or the reason to refuse it.
func check(text []byte, line bool) (url, why string) {
	clean := true
	for _, c := range text {
		if c <= ' ' || c >= 0x7f || c == '\\' {
			clean = false
			break
		}
	}
	if clean {
		return string(text), ""
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, "%%%02X", text[i])
			i++
			continue
		case r == utf8.RuneError:
			return "", whyReplaced
		case r == '\\':
			return "", whyBackslash
		case unicode.IsControl(r), r == '\u2028', r == '\u2029':
			return "", fmt.Sprintf(whyControl, r)
		case invisible(r), line && r != ' ' && unicode.IsSpace(r):
			return "", fmt.Sprintf(whyInvisible, r)
		case line && r == ' ':
			return "", whySpace
		}
		b.Write(text[i : i+n])
		i += n
	}
	return b.String(), ""
}

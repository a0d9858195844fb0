package urltext

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

const refused = "refused"

func TestURLsInLinesAndFields(t *testing.T) {
	const u = "http://h.example/a"
	for _, c := range []struct{ name, text, line, field string }{
		{"plain", u, u, u},
		{"white space around", " \t" + u + " \r\v\f", u, u},
		{"a tab and a date", u + "\t2024-01-01", u, refused},
		{"a tab and metadata of Nutch", u + "\tnutch.score=2\tk=a b", u, refused},
		{"a space, a tab and a note", u + " \tnote", u, refused},
		{"a note", u + " # note", u, u + " # note"},
		{"a note without a space", u + " #note", u, u + " #note"},
		{"a note after a tab", u + "\t# note", u, refused},
		{"a note with a tab", u + " # a\tb", u, refused},
		{"a fragment", u + "#note", u + "#note", u + "#note"},
		{"a comment", "# " + u + "\tx", "# " + u + "\tx", refused},
		{"a space inside", u + " b", refused, u + " b"},
		{"a space and a date", u + " 2024-01-01", refused, u + " 2024-01-01"},
		{"Latin-1", "http://h.example/caf\xe9?q=\xfc\xfc", "http://h.example/caf%E9?q=%FC%FC", "http://h.example/caf%E9?q=%FC%FC"},
		{"cut UTF-8", "http://h.example/\xe2\x82", "http://h.example/%E2%82", "http://h.example/%E2%82"},
		{"a surrogate", "http://h.example/\xed\xa0\x80", "http://h.example/%ED%A0%80", "http://h.example/%ED%A0%80"},
		{"UTF-8", "http://h.example/café", "http://h.example/café", "http://h.example/café"},
		{"U+FFFD that the text has", "http://h.example/\ufffd", refused, refused},
		{"a byte order mark", "\ufeff" + u, u, u},
		{"a byte order mark inside", "http://h.ex\ufeffample/a", refused, refused},
		{"NBSP around", "\u00a0" + u + "\u00a0", u, u},
		{"NBSP inside", u + "\u00a0b", refused, u + "\u00a0b"},
		{"a zero-width space around", u + "\u200b", u, u},
		{"a zero-width space in the host", "http://h.exam\u200bple/a", refused, refused},
		{"a soft hyphen in the host", "http://h.exam\u00adple/a", refused, refused},
		{"a mark of direction at the end", u + "\u200e", u, u},
		{"a joiner of Persian", "http://h.example/می\u200cشود", "http://h.example/می\u200cشود", "http://h.example/می\u200cشود"},
		{"a vertical tab inside", u + "\vb", refused, refused},
		{"a form feed inside", u + "\fb", refused, refused},
		{"CR inside", u + "\rhttp://h.example/b", refused, refused},
		{"LF inside", u + "\nb", refused, refused},
		{"CRLF inside", "http://h.example/\r\n  a", refused, refused},
		{"NUL inside", u + "\x00b", refused, refused},
		{"NULs at the end", u + "\x00\x00", u, u},
		{"DEL inside", u + "\x7fb", refused, refused},
		{"NEL inside", u + "\u0085b", refused, refused},
		{"a line separator inside", u + "\u2028http://h.example/b", refused, refused},
		{"a line separator at the end", u + "\u2028", u, u},
		{"a paragraph separator inside", u + "\u2029b", refused, refused},
		{"quotes, which make it no URL", `"` + u + `"`, `"` + u + `"`, `"` + u + `"`},
		{"quotes inside", u + `?q="x"`, u + `?q="x"`, u + `?q="x"`},
		{"angle brackets, which make it no URL", "<" + u + ">", "<" + u + ">", "<" + u + ">"},
		{"single quotes, which URLs may have", u + "'b'", u + "'b'", u + "'b'"},
		{"a backslash", `http:\\h.example\a`, refused, refused},
		{"a comma at the end, which URLs may have", u + ",", u + ",", u + ","},
		{"a semicolon at the end, which URLs may have", u + ";", u + ";", u + ";"},
		{"fields with commas", u + ",5,x", u + ",5,x", u + ",5,x"},
		{"escapes", u + "%00%0A%5C", u + "%00%0A%5C", u + "%00%0A%5C"},
		{"empty", "", "", ""},
		{"no URL", "a.example", "a.example", "a.example"},
		{"a pattern with a note", "*.example/b # note", "*.example/b", "*.example/b # note"},
		{"words", " no URL", " no URL", "no URL"},
		{"a scheme in capitals and a space", "HTTPS:h b", refused, "HTTPS:h b"},
	} {
		for kind, f := range map[string]struct {
			of   func([]byte) (string, string)
			want string
		}{"line": {Line, c.line}, "field": {Field, c.field}} {
			got, why := f.of([]byte(c.text))
			switch {
			case (why != "") != (f.want == refused):
				t.Errorf("%s, as a %s: %q, refused with %q", c.name, kind, got, why)
			case why == "" && got != f.want:
				t.Errorf("%s, as a %s: %q, want %q", c.name, kind, got, f.want)
			case why != "" && got != c.text:
				t.Errorf("%s, as a %s: shows %q", c.name, kind, got)
			}
		}
	}
}

// escaped percent-encodes the octets of a text that are not UTF-8.
func escaped(text []byte) string {
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, "%%%02X", text[0])
		} else {
			b.Write(text[:n])
		}
		text = text[n:]
	}
	return b.String()
}

// A URL is one stretch of its text, except for the escapes of octets that are not UTF-8. It has nothing that the parser of
// the URL Standard removes or turns into another character.
func FuzzText(f *testing.F) {
	for _, s := range []string{"http://h/b\t2024", "http://h/d # note", "http://h/caf\xe9", "\ufeffhttp://h/\u200b", "http:\\\\h/", "\x00\xa0\xff\u2028"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for name, of := range map[string]func([]byte) (string, string){"line": Line, "field": Field} {
			url, why := of(text)
			if why != "" || len(trim(text)) == 0 || name == "line" && trim(text)[0] == '#' {
				if url != string(text) && (why != "" || name == "line") {
					t.Fatalf("%s %q: shows %q", name, text, url)
				}
				continue
			}
			if name == "line" && url == string(text) && !isWeb(trim(text)) {
				continue // the planner refuses it
			}
			if !strings.Contains(escaped(text), url) {
				t.Fatalf("%s %q: %q is no part of it", name, text, url)
			}
			if !utf8.ValidString(url) || strings.ContainsAny(url, "\t\r\n\\\x00\u200b\ufeff\u2028\ufffd") || name == "line" && strings.Contains(url, " ") && isWeb([]byte(url)) {
				t.Fatalf("%s %q: %q", name, text, url)
			}
		}
	})
}

package urlkey

import (
	"strings"
	"testing"
)

func TestMergedNamesTheSteps(t *testing.T) {
	all := Rules{Sessions: true, HTTPS: []string{"*"}, WWW: true, IndexFiles: true, TrailingSlash: true, Rewrite: []Rewrite{{Name: "own name", Match: "/print/", Replace: "/"}}}
	for _, tc := range []struct {
		raw   string
		rules Rules
		want  string
	}{
		{"http://a.test/x?a=1&b=2", Rules{}, ""},
		{"http://a.test/x#fragment", Rules{}, ""},
		{"http://a.test/%7ex", Rules{}, "escapes"},
		{"http://a.test/x?%61=1", Rules{}, "escapes"},
		{"http://a.test/x?b=2&a=1", Rules{}, "order"},
		{"http://a.test/x?b=2&a=1&b=1", Rules{}, "order"},
		{"http://a.test/x?", Rules{}, "empty"},
		{"http://a.test/x?a&&b", Rules{}, "empty"},
		{"http://a.test/x?utm_source=a", Rules{}, "tracking"},
		{"http://a.test/%78?b=%32&a=1&utm_source=a&", Rules{}, "escapes order empty tracking"},
		{"http://www.a.test/print/x/index.html;jsessionid=1?b&a", all, "order sessions https www index_files trailing_slash rewrite"},
		{"https://a.test/x", all, ""},
	} {
		c, err := NewWithRules(defaults, tc.rules)
		if err != nil {
			t.Fatal(err)
		}
		k, sent, err := c.Sent(tc.raw, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(c.Merged(tc.raw, "", k.URL, sent).Names(), " "); got != tc.want {
			t.Errorf("%s is %s (%s): %q, want %q", tc.raw, k.URL, sent, got, tc.want)
		}
	}
}

// What differs from its canonical form does so by a step, and what does not differ by none.
func FuzzMergedBy(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	c := canonicalizer(f, defaults...)
	f.Fuzz(func(t *testing.T, raw string) {
		k, sent, err := c.Sent(raw, "")
		if err == nil && (sent == "") != (MergedBy(k.URL, sent) == 0) {
			t.Errorf("%q is %q, sent as %q: %q", raw, k.URL, sent, MergedBy(k.URL, sent).Names())
		}
	})
}

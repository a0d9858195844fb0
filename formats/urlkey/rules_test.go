package urlkey

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func ruled(t testing.TB, r Rules) *Canonicalizer {
	t.Helper()
	c, err := NewWithRules(defaults, r)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRules(t *testing.T) {
	sessions, https := Rules{Sessions: true}, Rules{HTTPS: []string{"Example.ORG", "[::1]"}}
	www, index, slash := Rules{WWW: true}, Rules{IndexFiles: true}, Rules{TrailingSlash: true}
	all := Rules{Sessions: true, HTTPS: []string{"*"}, WWW: true, IndexFiles: true, TrailingSlash: true}
	print := Rules{Rewrite: []Rewrite{{Match: `^(https?://[^/]+)/print/`, Replace: `$1/`}}}
	order := Rules{Rewrite: []Rewrite{{Match: "/a$", Replace: "/b", Last: true}, {Match: "/[ab]$", Replace: "/c"}}}
	for _, tc := range []struct {
		name      string
		rules     Rules
		raw       string
		url, sent string
	}{
		{"no rule", Rules{}, "http://www.example.org/x/index.html;jsessionid=1?PHPSESSID=2", "http://www.example.org/x/index.html;jsessionid=1?PHPSESSID=2", ""},
		{"session in the path", sessions, "http://a.test/x;jsessionid=0A1b?q=1", "http://a.test/x?q=1", ""},
		{"session in an inner segment, other case", sessions, "http://a.test/x;v=2;JSessionID=1;w/y", "http://a.test/x;v=2;w/y", ""},
		{"two sessions in the path", sessions, "http://a.test/x;jsessionid=1;jsessionid=2/y;jsessionid=", "http://a.test/x/y", ""},
		{"session in the query", sessions, "http://a.test/?PHPSESSID=abc&a=1&b=2", "http://a.test/?a=1&b=2", ""},
		{"session and order", sessions, "http://a.test/%7Ex;jsessionid=9?b=2&a=1&CFID=3", "http://a.test/~x?a=1&b=2", ""},
		{"escaped name", sessions, "http://a.test/?%50HPSESSID=abc", "http://a.test/", ""},
		{"ASP session", sessions, "http://a.test/?ASPSESSIONIDQQCTBSAB=ABCDEFGHIJKLMNOPQRSTUVWX&x", "http://a.test/?x", ""},
		{"sid", sessions, "http://a.test/?sid=0123456789abcdef0123456789abcdef", "http://a.test/", ""},
		{"sid of a story", sessions, "http://a.test/?sid=26/11/23/1234&x", "http://a.test/?sid=26/11/23/1234&x", ""},
		{"short sid", sessions, "http://a.test/?sid=1234", "http://a.test/?sid=1234", ""},
		{"escaped semicolon is data", sessions, "http://a.test/x%3Bjsessionid=1", "http://a.test/x%3Bjsessionid=1", ""},
		{"https", https, "http://sub.example.org/x", "https://sub.example.org/x", ""},
		{"https, another host", https, "http://notexample.org/x", "http://notexample.org/x", ""},
		{"https, a port", https, "http://example.org:8080/x", "http://example.org:8080/x", ""},
		{"https, port 443", https, "http://example.org:443/x", "http://example.org:443/x", ""},
		{"https, the default port", https, "http://example.org:80/x", "https://example.org/x", ""},
		{"https, an address", https, "http://[::1]/", "https://[::1]/", ""},
		{"https keeps the path", https, "http://example.org/%41", "https://example.org/A", "https://example.org/%41"},
		{"www", www, "http://www.example.org:81/x", "http://example.org:81/x", ""},
		{"www twice", www, "http://www.www.example.org/", "http://example.org/", ""},
		{"www is the domain", www, "http://www.co.uk/", "http://www.co.uk/", ""},
		{"www of a private suffix", www, "http://www.github.io/", "http://www.github.io/", ""},
		{"www1", www, "http://www1.example.org/", "http://www1.example.org/", ""},
		{"index", index, "http://a.test/x/Index.HTML?q", "http://a.test/x/?q", ""},
		{"index of the root", index, "http://a.test/default.aspx", "http://a.test/", ""},
		{"no index", index, "http://a.test/myindex.html", "http://a.test/myindex.html", ""},
		{"index as a folder", index, "http://a.test/index.php/x", "http://a.test/index.php/x", ""},
		{"slash", slash, "http://a.test/x/?q", "http://a.test/x?q", ""},
		{"slashes", slash, "http://a.test//x///", "http://a.test//x", ""},
		{"slash of the root", slash, "http://a.test", "http://a.test/", ""},
		{"only slashes", slash, "http://a.test///", "http://a.test/", ""},
		{"all", all, "http://www.example.org/x/index.php;jsessionid=1?sid=0123456789abcdef", "https://example.org/x", ""},
		{"rewrite", print, "http://a.test/print/x", "http://a.test/x", ""},
		{"rewrite again", print, "http://a.test/print/print/x", "http://a.test/x", ""},
		{"standard form after a rewrite", Rules{Rewrite: []Rewrite{{Match: "/x", Replace: "/../%7e?b&a"}}}, "http://a.test/y/x", "http://a.test/~?a&b", ""},
		{"switches after a rewrite", Rules{TrailingSlash: true, Rewrite: []Rewrite{{Match: "/x$", Replace: "/"}}}, "http://a.test/y/x", "http://a.test/y", ""},
		// The first rewrite ends the first pass. The second pass applies the second rewrite to its result.
		{"order", order, "http://a.test/a", "http://a.test/c", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k, sent, err := ruled(t, tc.rules).Sent(tc.raw, "")
			if err != nil || k.URL != tc.url || sent != tc.sent {
				t.Errorf("Sent(%q) = %q, %q, %v; want %q, %q", tc.raw, k.URL, sent, err, tc.url, tc.sent)
			}
		})
	}
}

func TestHostileRewrites(t *testing.T) {
	for name, tc := range map[string]struct{ match, replace, raw string }{
		"a circle":          {"/(a|b)$", "/a/$1", "http://a.test/a"},
		"growth":            {"x", "xxxxxxxxxxxxxxxx", "http://a.test/x"},
		"no URL":            {"^http:", "mailto:", "http://a.test/"},
		"no host":           {"a.test", "", "http://a.test/"},
		"not UTF-8 and NUL": {"a.test", "\xff\x00", "http://a.test/"},
	} {
		c := ruled(t, Rules{Rewrite: []Rewrite{{Name: name, Match: tc.match, Replace: tc.replace}}})
		if k, err := c.Canonical(tc.raw, ""); !errors.Is(err, ErrRewrite) {
			t.Errorf("%s: %+v, %v", name, k, err)
		}
		if _, _, err := c.Sent(tc.raw, ""); !errors.Is(err, ErrRewrite) {
			t.Errorf("%s: %v", name, err)
		}
		if k, err := c.Plain().Canonical(tc.raw, ""); err != nil || k.URL != tc.raw {
			t.Errorf("%s: without rules %q, %v", name, k.URL, err)
		}
	}
	for name, r := range map[string]Rules{
		"empty":           {Rewrite: []Rewrite{{}}},
		"Perl's syntax":   {Rewrite: []Rewrite{{Match: `(?=x)`}}},
		"two lines":       {Rewrite: []Rewrite{{Match: "(\n"}}},
		"repeat":          {Rewrite: []Rewrite{{Match: `((a{100}){100}){100}`}}},
		"long":            {Rewrite: []Rewrite{{Match: strings.Repeat("a", MaxExpression+1)}}},
		"long replaced":   {Rewrite: []Rewrite{{Match: "a", Replace: strings.Repeat("a", MaxExpression+1)}}},
		"many":            {Rewrite: make([]Rewrite, MaxRules+1)},
		"URL as a host":   {HTTPS: []string{"http://example.org/"}},
		"host and a port": {HTTPS: []string{"example.org:81"}},
		"star in a host":  {HTTPS: []string{"*.example.org"}},
		"no host":         {HTTPS: []string{""}},
	} {
		if _, err := NewWithRules(nil, r); !errors.Is(err, ErrRule) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSteps(t *testing.T) {
	c := ruled(t, Rules{Sessions: true, HTTPS: []string{"example.org"}, WWW: true, IndexFiles: true, TrailingSlash: true,
		Rewrite: []Rewrite{{Name: "print", Match: "/print/", Replace: "/"}, {Match: "old", Replace: "new"}}})
	got, err := c.Steps("HTTP://www.example.org/print/old/index.php;jsessionid=1", "")
	want := []Step{
		{"standard", "HTTP://www.example.org/print/old/index.php;jsessionid=1", "http://www.example.org/print/old/index.php;jsessionid=1"},
		{"sessions", "http://www.example.org/print/old/index.php;jsessionid=1", "http://www.example.org/print/old/index.php"},
		{"https", "http://www.example.org/print/old/index.php", "https://www.example.org/print/old/index.php"},
		{"www", "https://www.example.org/print/old/index.php", "https://example.org/print/old/index.php"},
		{"index_files", "https://example.org/print/old/index.php", "https://example.org/print/old/"},
		{"trailing_slash", "https://example.org/print/old/", "https://example.org/print/old"},
		{"print", "https://example.org/print/old", "https://example.org/old"},
		{"rewrite 2", "https://example.org/old", "https://example.org/new"},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("steps %+v, %v", got, err)
	}
	if got, err := c.Steps("https://example.org/new", ""); err != nil || got != nil {
		t.Errorf("a canonical URL has steps %+v, %v", got, err)
	}
}

// FuzzRules checks, for any rules, that a canonical URL is its own canonical form, and that Sent
// returns the same for what it says to send.
func FuzzRules(f *testing.F) {
	for i, s := range seeds {
		f.Add(s, uint8(i*17), "/(index|print)/", "/$1x/", "b$", "")
		f.Add(s, uint8(255), "([^/]+)/([^/]+)$", "$2/$1", "[?&;]x=[^&;]*", ";jsessionid=1")
	}
	f.Add("http://www.www.example.com//index.php;jsessionid=1;v/..;jsessionid=2/Default.ASPX//?sid=0123456789abcdef&sid=1&%53ID=2", uint8(31), "a", "a", "%", "%2")
	f.Fuzz(func(t *testing.T, raw string, on uint8, match, replace, match2, replace2 string) {
		r := Rules{Sessions: on&1 > 0, WWW: on&2 > 0, IndexFiles: on&4 > 0, TrailingSlash: on&8 > 0}
		if on&16 > 0 {
			r.HTTPS = []string{"*"}
		}
		if on&32 > 0 {
			r.Rewrite = append(r.Rewrite, Rewrite{Match: match, Replace: replace, Last: on&64 > 0})
		}
		if on&128 > 0 {
			r.Rewrite = append(r.Rewrite, Rewrite{Match: match2, Replace: replace2})
		}
		c, err := NewWithRules(defaults, r)
		if err != nil {
			t.Skip()
		}
		k, sent, err := c.Sent(raw, "")
		if k2, err2 := c.Canonical(raw, ""); k2 != k || (err == nil) != (err2 == nil) {
			t.Fatalf("Sent(%q) = %+v, %v; Canonical %+v, %v", raw, k, err, k2, err2)
		}
		if err != nil {
			return
		}
		if again, none, err := c.Sent(k.URL, ""); err != nil || again != k || none != "" {
			t.Fatalf("Sent(%q) = %+v\nand again     %+v, %q, %v", raw, k, again, none, err)
		}
		if of, err := KeyOf(k.URL); err != nil || of != k {
			t.Fatalf("KeyOf(%q) = %+v, %v; want %+v", k.URL, of, err, k)
		}
		if sent != "" {
			if of, same, err := c.Sent(sent, ""); err != nil || of != k || same != sent {
				t.Fatalf("%q, sent for %q, gives %+v, %q, %v", sent, raw, of, same, err)
			}
		}
		steps, err := c.Steps(raw, "")
		if err != nil || len(steps) > 0 && steps[len(steps)-1].To != k.URL || len(steps) == 0 && raw != k.URL {
			t.Fatalf("steps of %q to %q: %+v, %v", raw, k.URL, steps, err)
		}
	})
}

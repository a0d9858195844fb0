package response

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/formats/manifest"
)

func TestCookieRules(t *testing.T) {
	set := http1.Header{
		{Name: "Set-Cookie", Value: "a=1"}, {Name: "set-cookie", Value: "b=2; Path=/x"}, {Name: "Set-Cookie", Value: "c=3; Domain=example.co.uk"},
		{Name: "Set-Cookie", Value: "d=4; Domain=co.uk"}, {Name: "Set-Cookie", Value: "e=5; Secure"}, {Name: "Set-Cookie", Value: "f=6; Max-Age=0"},
		{Name: "Set-Cookie", Value: "no cookie"}, {Name: "Set-Cookie", Value: "g=7; Domain=other.co.uk"}, {Name: "Set-Cookie", Value: "=8"},
	}
	for _, tt := range []struct{ url, want string }{
		{"https://www.example.co.uk/x/100%", "b=2; a=1; c=3; e=5; 8"},
		{"https://www.example.co.uk/y", "a=1; c=3; e=5; 8"},
		{"http://www.example.co.uk/", "a=1; c=3; 8"},
		{"http://www.example.co.uk:8080/?q=/x", "a=1; c=3; 8"},
		{"https://example.co.uk/x", "c=3"},
		{"https://other.co.uk/", ""},
		{"https://notexample.co.uk/", ""},
	} {
		var c Cookies
		c.Take("https://www.example.co.uk/start", "", set)
		if got := c.Field(tt.url); got != tt.want {
			t.Errorf("%s gets %q, want %q", tt.url, got, tt.want)
		}
	}
	var many Cookies
	for n := range 100 {
		h := http1.Header{}
		for i := range 100 {
			h = append(h, http1.Field{Name: "Set-Cookie", Value: fmt.Sprintf("n%d-%d=%s", n, i, strings.Repeat("x", 200))})
		}
		many.Take("http://a.com/", "", h)
	}
	if got := many.Field("http://a.com/"); len(got) > maxCookieField || len(got) < maxCookieField/2 {
		t.Errorf("a Cookie field of %d bytes", len(got))
	}
}

// FuzzCookies checks that a Cookie field is one line of limited length, that each call returns the
// same field, and that no other site gets it.
func FuzzCookies(f *testing.F) {
	for _, s := range []string{"a=1", "a=1; Path=/x; Secure; HttpOnly\nb=\"2\"", "c=3; Domain=.example.org; Max-Age=9", "\x00=\xff", "=; Expires=never", "d=a b,c\\;"} {
		f.Add(s, "/x/y?z")
	}
	f.Fuzz(func(t *testing.T, lines, path string) {
		var h http1.Header
		for line := range strings.SplitSeq(lines, "\n") {
			h = append(h, http1.Field{Name: "Set-Cookie", Value: line})
		}
		var c Cookies
		c.Take("https://www.example.org/start", "", h)
		own := "https://www.example.org/" + strings.TrimPrefix(path, "/")
		field := c.Field(own)
		if len(field) > maxCookieField || strings.ContainsAny(field, "\r\n\x00") || field != c.Field(own) {
			t.Errorf("field %q", field)
		}
		for _, other := range []string{"https://www.example.com/", "https://org/", "https://example.org.evil.example/", "https://wwwexample.org/"} {
			if got := c.Field(other); got != "" {
				t.Errorf("%s gets %q", other, got)
			}
		}
	})
}

// TestCookiesOfAChainAreBounded checks the limit, and that a resumed chain has the same cookies.
func TestCookiesOfAChainAreBounded(t *testing.T) {
	var c, resumed Cookies
	var head http1.Header
	for i := range maxCookies {
		head = append(head, http1.Field{Name: "Set-Cookie", Value: string(rune('a'+i%26)) + strings.Repeat("x", i) + "=" + strings.Repeat("&", 3<<10)})
	}
	hop := manifest.Hop{URL: "http://a.com/", Set: c.Take("http://a.com/", "", head)}
	hop.Set = append(hop.Set, c.Take("http://www.a.com/", "", head)...)
	size := 0
	for _, line := range hop.Set {
		size += len(line)
	}
	if size == 0 || size > MaxCookieBytes {
		t.Errorf("%d bytes of Set-Cookie are kept", size)
	}
	resumed.Resume(hop)
	if d := cmp.Diff(c.Field("http://a.com/"), resumed.Field("http://a.com/")); d != "" || resumed.kept != size {
		t.Errorf("after a resume, %d bytes: %s", resumed.kept, d)
	}
}

// A server gets the value back as it sent it: what it compares are octets.
func TestCookieValuesComeBackAsTheyWereSent(t *testing.T) {
	for set, want := range map[string]string{
		"a=1, 2":                         "a=1, 2",
		"a=x y":                          "a=x y",
		`a="quoted, text"`:               `a="quoted, text"`,
		`a=say "yes"`:                    `a=say "yes"`,
		`a=back\\slash`:                  `a=back\\slash`,
		"a=caf\xe9":                      "a=caf\xe9",
		"a=\u00fc":                       "a=\u00fc",
		"a=b=c==":                        "a=b=c==",
		"a=":                             "a=",
		"cart[id]=7":                     "cart[id]=7",
		"a b=c":                          "a b=c",
		"value":                          "value",
		"=value":                         "value",
		" a = 1 ; Path=/":                "a=1",
		"a={\"json\": [1, 2]}; HttpOnly": "a={\"json\": [1, 2]}",
		"a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT": "",
		"a=1; Max-Age=-1":      "",
		"a=1; Domain=":         "a=1",
		"a=1; Path=no/slash":   "a=1",
		"a=1; SameSite=Strict": "a=1",
		"a=1; Unknown=x; ; =":  "a=1",
		"":                     "",
		"=":                    "",
		"; Path=/":             "",
		"a=\x01":               "",
	} {
		var c Cookies
		c.Take("https://example.org/start", "", http1.Header{{Name: "Set-Cookie", Value: set}})
		if got := c.Field("https://example.org/"); got != want {
			t.Errorf("%q comes back as %q, want %q", set, got, want)
		}
	}
}

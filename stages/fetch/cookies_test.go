package fetch

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// A site that wants to see its cookie back gets it, on the way to the document and
// nowhere else.
func TestCookiesLiveAsLongAsAChainOfRedirects(t *testing.T) {
	var mu sync.Mutex
	got := map[string][]string{}
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			got[r.URL.RequestURI()] = append(got[r.URL.RequestURI()], r.Header.Get("Cookie"))
			mu.Unlock()
			switch r.URL.Path {
			case "/wall": // itself, with a cookie
				if r.Header.Get("Cookie") == "" {
					w.Header().Add("Set-Cookie", "seen=1; Path=/")
					w.Header().Add("Set-Cookie", "elsewhere=1; Path=/other")
					w.Header().Add("Set-Cookie", "foreign=1; Domain=b.org")
					w.Header().Add("Set-Cookie", "suffix=1; Domain=com")
					w.Header().Add("Set-Cookie", "safe=1; Secure")
					w.Header().Add("Set-Cookie", "huge="+strings.Repeat("x", maxCookie))
					http.Redirect(w, r, "/wall", http.StatusFound)
					return
				}
			case "/detour": // by way of another URL and back
				if r.Header.Get("Cookie") == "" {
					http.Redirect(w, r, "/consent?back=detour", http.StatusFound)
					return
				}
			case "/consent":
				w.Header().Add("Set-Cookie", "consent=yes")
				http.Redirect(w, r, "/detour", http.StatusFound)
				return
			case "/stubborn": // whatever is sent back, it wants another
				w.Header().Add("Set-Cookie", fmt.Sprintf("n=%d; Path=/", len(got["/stubborn"])))
				http.Redirect(w, r, "/stubborn", http.StatusFound)
				return
			case "/forgetful": // a loop, cookie or not
				w.Header().Add("Set-Cookie", "a=b")
				http.Redirect(w, r, "/forgetful", http.StatusFound)
				return
			}
			page(w, r)
		}), "http://a.com/wall", "http://a.com/detour", "http://a.com/stubborn", "http://a.com/forgetful", "http://a.com/other/page")
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		l.checkPace(r)
		l.checkCaptures(r)
		fetches := l.outcomes(r)
		for u, want := range map[string]struct {
			outcome   schema.Outcome
			redirects int32
			cookies   string
		}{
			"/wall":       {schema.OK, 1, " seen=1"},
			"/detour":     {schema.OK, 2, " consent=yes"},
			"/stubborn":   {schema.RedirectLimit, 5, " n=1 n=2 n=3 n=4 n=5"},
			"/forgetful":  {schema.RedirectLimit, 1, " a=b"},
			"/other/page": {schema.OK, 0, ""},
		} {
			f := fetches["http://a.com"+u]
			if f.Outcome != want.outcome || f.Redirects != want.redirects || f.FinalURL != "http://a.com"+u {
				t.Errorf("%s: %s at %s after %d redirects (error %q), want %s after %d", u, f.Outcome, f.FinalURL, f.Redirects, f.Error, want.outcome, want.redirects)
			}
			if sent := strings.Join(got[u], " "); sent != want.cookies {
				t.Errorf("%s was asked for with cookies %q, want %q", u, sent, want.cookies)
			}
		}
		if asked := got["/consent?back=detour"]; len(asked) != 1 || asked[0] != "" {
			t.Errorf("/consent was asked for with %q", asked)
		}
		// The request as it is archived has them.
		var requests strings.Builder
		for _, f := range r.FilesOf(stages.FileWARC) {
			obj, err := l.bucket.Open(t.Context(), f.Key)
			if err != nil {
				t.Fatal(err)
			}
			for in := warc.NewReader(io.NewSectionReader(obj, 0, obj.Size()), warc.ReaderOptions{}); ; {
				e, err := in.Next()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if e.Type == warc.Request {
					if _, err := io.Copy(&requests, e); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := obj.Close(); err != nil {
				t.Error(err)
			}
		}
		if n := strings.Count(requests.String(), "Cookie: seen=1\r\n"); n != 1 {
			t.Errorf("%d archived requests have the cookie", n)
		}
	})
}

func TestCookieRules(t *testing.T) {
	set := wire.Header{
		{Name: "Set-Cookie", Value: "a=1"}, {Name: "set-cookie", Value: "b=2; Path=/x"}, {Name: "Set-Cookie", Value: "c=3; Domain=example.co.uk"},
		{Name: "Set-Cookie", Value: "d=4; Domain=co.uk"}, {Name: "Set-Cookie", Value: "e=5; Secure"}, {Name: "Set-Cookie", Value: "f=6; Max-Age=0"},
		{Name: "Set-Cookie", Value: "no cookie"}, {Name: "Set-Cookie", Value: "g=7; Domain=other.co.uk"}, {Name: "Set-Cookie", Value: "=8"},
	}
	for _, tt := range []struct{ url, want string }{
		{"https://www.example.co.uk/x/100%", "b=2; a=1; c=3; e=5"},
		{"https://www.example.co.uk/y", "a=1; c=3; e=5"},
		{"http://www.example.co.uk/", "a=1; c=3"},
		{"http://www.example.co.uk:8080/?q=/x", "a=1; c=3"},
		{"https://example.co.uk/x", "c=3"},
		{"https://other.co.uk/", ""},
		{"https://notexample.co.uk/", ""},
	} {
		var c cookies
		c.take("https://www.example.co.uk/start", set)
		if got := c.field(tt.url); got != tt.want {
			t.Errorf("%s gets %q, want %q", tt.url, got, tt.want)
		}
	}
	var many cookies
	for n := range 100 {
		h := wire.Header{}
		for i := range 100 {
			h = append(h, wire.Field{Name: "Set-Cookie", Value: fmt.Sprintf("n%d-%d=%s", n, i, strings.Repeat("x", 200))})
		}
		many.take("http://a.com/", h)
	}
	if got := many.field("http://a.com/"); len(got) > maxCookieField || len(got) < maxCookieField/2 {
		t.Errorf("a Cookie field of %d bytes", len(got))
	}
}

// FuzzCookies holds what is sent back to being one bounded line, never sent to another
// site, and to what the same chain would send again.
func FuzzCookies(f *testing.F) {
	for _, s := range []string{"a=1", "a=1; Path=/x; Secure; HttpOnly\nb=\"2\"", "c=3; Domain=.example.org; Max-Age=9", "\x00=\xff", "=; Expires=never", "d=a b,c\\;"} {
		f.Add(s, "/x/y?z")
	}
	f.Fuzz(func(t *testing.T, lines, path string) {
		var h wire.Header
		for line := range strings.SplitSeq(lines, "\n") {
			h = append(h, wire.Field{Name: "Set-Cookie", Value: line})
		}
		var c cookies
		c.take("https://www.example.org/start", h)
		own := "https://www.example.org/" + strings.TrimPrefix(path, "/")
		field := c.field(own)
		if len(field) > maxCookieField || strings.ContainsAny(field, "\r\n\x00") || field != c.field(own) {
			t.Errorf("field %q", field)
		}
		for _, other := range []string{"https://www.example.com/", "https://org/", "https://example.org.evil.example/", "https://wwwexample.org/"} {
			if got := c.field(other); got != "" {
				t.Errorf("%s gets %q", other, got)
			}
		}
	})
}

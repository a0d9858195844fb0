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
)

// A cookie is sent to later hops of the redirect chain that set it, and nowhere else.
func TestCookiesLiveAsLongAsAChainOfRedirects(t *testing.T) {
	var mu sync.Mutex
	got := map[string][]string{}
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			got[r.URL.RequestURI()] = append(got[r.URL.RequestURI()], r.Header.Get("Cookie"))
			mu.Unlock()
			switch r.URL.Path {
			case "/wall": // redirects to itself with a cookie
				if r.Header.Get("Cookie") == "" {
					w.Header().Add("Set-Cookie", "seen=1; Path=/")
					w.Header().Add("Set-Cookie", "elsewhere=1; Path=/other")
					w.Header().Add("Set-Cookie", "foreign=1; Domain=b.org")
					w.Header().Add("Set-Cookie", "suffix=1; Domain=com")
					w.Header().Add("Set-Cookie", "safe=1; Secure")
					w.Header().Add("Set-Cookie", "huge="+strings.Repeat("x", 4<<10))
					http.Redirect(w, r, "/wall", http.StatusFound)
					return
				}
			case "/detour": // redirects to another URL, which redirects back
				if r.Header.Get("Cookie") == "" {
					http.Redirect(w, r, "/consent?back=detour", http.StatusFound)
					return
				}
			case "/consent":
				w.Header().Add("Set-Cookie", "consent=yes")
				http.Redirect(w, r, "/detour", http.StatusFound)
				return
			case "/stubborn": // redirects with another cookie each time
				w.Header().Add("Set-Cookie", fmt.Sprintf("n=%d; Path=/", len(got["/stubborn"])))
				http.Redirect(w, r, "/stubborn", http.StatusFound)
				return
			case "/forgetful": // redirects to itself, with or without a cookie
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
				t.Errorf("%s was requested with cookies %q, want %q", u, sent, want.cookies)
			}
		}
		if asked := got["/consent?back=detour"]; len(asked) != 1 || asked[0] != "" {
			t.Errorf("/consent was requested with cookies %q", asked)
		}
		// The stored request has the cookies that were sent.
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

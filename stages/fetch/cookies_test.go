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

// wall answers with a redirect until the request has a cookie, and then with what next answers.
func wall(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Cookie") != "human=yes, really" {
			w.Header().Set("Set-Cookie", "human=yes, really; Path=/")
			http.Redirect(w, r, r.URL.RequestURI(), http.StatusFound)
			return
		}
		next(w, r)
	}
}

// robots.txt and sitemaps may be behind the same wall as pages.
func TestRobotsAndSitemapsBehindACookieWall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, wall(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/robots.txt":
				io.WriteString(w, "User-agent: *\nDisallow: /private\nSitemap: http://a.com/map.xml\n")
			case "/map.xml":
				w.Header().Set("Content-Type", "application/xml")
				io.WriteString(w, urlset("http://a.com/listed"))
			default:
				page(w, r)
			}
		}), "http://a.com/", "http://a.com/private/x")
		l.parser = mapParser{}
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		fetches := l.outcomes(r)
		for u, want := range map[string]schema.Outcome{"http://a.com/": schema.OK, "http://a.com/private/x": schema.RobotsDenied} {
			if got := fetches[u].Outcome; got != want {
				t.Errorf("%s: %s, want %s", u, got, want)
			}
		}
		if maps := l.sitemapOutcomes(r); maps["http://a.com/map.xml"] != schema.OK {
			t.Errorf("sitemaps: %v", maps)
		}
	})
}

// Gates lie on the way of many chains, and may be planned because an earlier round found them.
func TestChainsPassThroughGates(t *testing.T) {
	bubble(t, func(t *testing.T) {
		asked := map[string]int{}
		var mu sync.Mutex
		has := func(r *http.Request, name string) bool { _, err := r.Cookie(name); return err == nil }
		l := newLab(t, noRobots(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			asked[r.URL.RequestURI()]++
			mu.Unlock()
			switch path := r.URL.Path; {
			case strings.HasPrefix(path, "/bounce"): // /bounce → /bounce?cookieSet=1 → /bounce
				if r.URL.RawQuery != "" {
					http.Redirect(w, r, path, http.StatusFound)
					return
				}
				if !has(r, "bounced") {
					w.Header().Set("Set-Cookie", "bounced=1; Path=/")
					http.Redirect(w, r, path+"?cookieSet=1", http.StatusFound)
					return
				}
			case strings.HasPrefix(path, "/shop/"):
				if !has(r, "age") {
					w.Header().Set("Set-Cookie", "back="+path+"; Path=/")
					http.Redirect(w, r, "/gate", http.StatusFound)
					return
				}
			case path == "/gate":
				if back, err := r.Cookie("back"); err == nil {
					w.Header().Set("Set-Cookie", "age=18; Path=/")
					http.Redirect(w, r, back.Value, http.StatusFound)
					return
				}
			case strings.HasPrefix(path, "/old/"):
				w.Header().Set("Set-Cookie", "session=1; Path=/")
				http.Redirect(w, r, "/new/"+strings.TrimPrefix(path, "/old/"), http.StatusMovedPermanently)
				return
			case strings.HasPrefix(path, "/members/"):
				w.Header().Set("Set-Cookie", "session=1; Path=/")
				http.Redirect(w, r, "/login", http.StatusFound)
				return
			}
			page(w, r)
		}), "http://a.com/bounce/1", "http://a.com/bounce/1?cookieSet=1", "http://a.com/shop/1", "http://a.com/shop/2", "http://a.com/shop/3",
			"http://a.com/old/1", "http://a.com/old/2", "http://a.com/new/1", "http://a.com/new/2", "http://a.com/members/1", "http://a.com/members/2", "http://a.com/members/3")
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		l.checkPace(r)
		fetches := l.outcomes(r)
		for _, u := range []string{"/bounce/1", "/shop/1", "/shop/2", "/shop/3", "/new/1", "/new/2"} {
			if f := fetches["http://a.com"+u]; f.Outcome != schema.OK || f.FinalURL != "http://a.com"+u {
				t.Errorf("%s: %s at %s", u, f.Outcome, f.FinalURL)
			}
		}
		for _, n := range []string{"1", "2"} {
			if f := fetches["http://a.com/old/"+n]; f.Outcome != schema.Redirected || asked["/new/"+n] != 1 {
				t.Errorf("/old/%s: %s; its target was requested %d times", n, f.Outcome, asked["/new/"+n])
			}
		}
		redirected := 0
		for _, u := range []string{"/members/1", "/members/2", "/members/3"} {
			if fetches["http://a.com"+u].Outcome == schema.Redirected {
				redirected++
			}
		}
		if redirected != 2 || asked["/login"] != 1 {
			t.Errorf("the login page was requested %d times; %d of 3 URLs end there as redirected", asked["/login"], redirected)
		}
	})
}

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

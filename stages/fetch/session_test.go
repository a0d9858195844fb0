package fetch

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
)

// A session asks for robots.txt once, and its URLs share the delay of their host.
func TestASessionSharesRobotsAndPace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var asked []string
		l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.URL.Path)
			switch r.URL.Path {
			case "/robots.txt":
				_, _ = w.Write([]byte("User-agent: *\nDisallow: /private\nCrawl-delay: 7\n"))
			case "/moved":
				http.Redirect(w, r, "/b", http.StatusFound)
			default:
				_, _ = w.Write([]byte("text of " + r.URL.Path))
			}
		})
		s, err := newSession(l.env(nil, t.TempDir()), l.cfg, options{parser: l.parser, hooks: hooks{tune: l.web.tune},
			barred: func(url, _ string) bool { return url == "http://a.com/barred" }}, func(stages.Wait) {})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var sent []schema.Time
		for _, c := range []struct {
			path    string
			outcome schema.Outcome
		}{{"a", schema.OK}, {"b", schema.OK}, {"private", schema.RobotsDenied}, {"moved", schema.OK}, {"b", schema.OK}} {
			rows, err := s.Fetch(t.Context(), "http://a.com/"+c.path)
			if err != nil {
				t.Fatal(err)
			}
			if rows.Fetch == nil || rows.Fetch.Outcome != c.outcome || rows.Fetch.URL != "http://a.com/"+c.path {
				t.Errorf("%s: %+v, want %s", c.path, rows.Fetch, c.outcome)
			}
			for _, r := range rows.Requests {
				sent = append(sent, r.Start)
			}
		}
		if want := []string{"/robots.txt", "/a", "/b", "/moved", "/b", "/b"}; !slices.Equal(asked, want) {
			t.Errorf("requested %q, want %q", asked, want)
		}
		for i := 1; i < len(sent); i++ {
			if gap := sent[i].Sub(sent[i-1]); gap < 7*time.Second {
				t.Errorf("request %d came %v after the one before it, want at least 7s", i, gap)
			}
		}
		if _, err := s.Fetch(t.Context(), "ftp://a.com/"); err == nil {
			t.Error("ftp is fetched")
		}
	})
}

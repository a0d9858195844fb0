package planner

import (
	"errors"
	"slices"
	"testing"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/scope"
	"crawlbatch.io/crawlbatch/planner/source"
)

func TestFilters(t *testing.T) {
	cfg := Default()
	cfg.Exclude = []string{"*/secret/*"}
	cfg.Filters = []scope.Filter{
		{Name: "day", Match: `/calendar/today$`, Accept: true},
		{Name: "calendar", Match: `/calendar/`},
		{Match: `\.(?i:zip|exe)$`},
	}
	s, err := cfg.Scope()
	if err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]string{
		"http://a.example/x":                  " ",
		"http://a.example/calendar/1":         "filtered calendar",
		"http://a.example/calendar/today":     " ",
		"http://a.example/secret/calendar/1":  "out_of_scope */secret/*",
		"http://a.example/calendar/today.ZIP": "filtered calendar",
		"http://a.example/x.ZIP":              "filtered filter 3",
		"http://a.example/secret/today":       "out_of_scope */secret/*",
	} {
		if reason, detail := s.Refusal(url, ""); string(reason)+" "+detail != want {
			t.Errorf("%s: %q %q, want %q", url, reason, detail, want)
		}
	}
	cfg.Filters = []scope.Filter{{Match: "("}}
	if _, err := cfg.Scope(); !errors.Is(err, ErrConfig) || !errors.Is(err, urlkey.ErrRule) {
		t.Error(err)
	}
}

func ruledConfig() Config {
	cfg := Default()
	cfg.Rules = urlkey.Rules{WWW: true, IndexFiles: true, Rewrite: []urlkey.Rewrite{{Name: "grows", Match: "grow", Replace: "growgrow"}}}
	return cfg
}

func TestSourcesPassTheRules(t *testing.T) {
	m, parts, refused := commitAndRead(t, bucket(t), plan(t, ruledConfig(), lines("http://www.a.example/index.html", "http://a.example/", "http://a.example/grow")))
	if got := planned(parts); !slices.Equal(got, []string{"http://a.example/"}) {
		t.Errorf("planned %q", got)
	}
	if f := parts[0][0].Form; f != (schema.Form{SentFrom: schema.SentBySource}) { // rules changed the path, and so the resource
		t.Errorf("it is asked for as %+v", f)
	}
	if len(refused) != 1 || refused[0].Reason != schema.SkipFiltered || refused[0].Line != 3 || refused[0].Detail != urlkey.ErrRewrite.Error() {
		t.Errorf("refused %+v of %v", refused, m.Refused)
	}
}

// After its rules have changed, a crawl knows URLs in forms that are no longer canonical. These
// forms come from an earlier crawl or from redirects. The crawl plans the canonical URL once. It
// takes nothing over from the other forms.
func TestKnownURLInAFormThatIsNoLongerCanonical(t *testing.T) {
	www := source.Entry{URL: "http://www.a.example/x", File: source.FrontierName, Due: true, Depth: 2, Priority: 700, ETag: `"www"`, ContentDigest: "W", Fetches: 3, FetchedAt: 5}
	own := source.Entry{URL: "http://a.example/x", File: source.FrontierName, Depth: 3, Priority: 400, ETag: `"own"`, ContentDigest: "O", Fetches: 1, FetchedAt: 4}
	other := source.Entry{URL: "http://a.example/", File: source.FrontierName, Due: true}
	for _, tc := range []struct {
		name string
		of   []source.Entry
		etag string
		want bool
	}{
		{"alone", []source.Entry{www, other}, "", true},
		{"beside its new form", []source.Entry{www, own, other}, `"own"`, true},
		{"after the crawl planned its new form", []source.Entry{www, spent(own), other}, "", false},
		{"after the new form, which is due again", []source.Entry{www, spent(due(own)), other}, `"own"`, true},
		{"after a later month planned its new form", []source.Entry{by(2, www), by(3, own), other}, "", false},
		{"as above, in the other order", []source.Entry{by(3, own), by(2, www), other}, "", false},
		{"after a month planned both", []source.Entry{by(2, www), by(2, own), other}, `"own"`, true},
		{"with a form that is not due and newer", []source.Entry{by(2, www), by(9, notDue(www)), by(3, own), other}, "", false},
		{"as the target of a redirect, after its new form", []source.Entry{by(0, www), by(1, own), other}, "", false},
		{"beside what is only known of the new form", []source.Entry{by(2, history(own)), by(2, www), other}, `"own"`, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, parts, _ := commitAndRead(t, bucket(t), plan(t, ruledConfig(), known(tc.of...)))
			i := slices.IndexFunc(parts[0], func(u schema.PlannedURL) bool { return u.URL == own.URL })
			if i < 0 != !tc.want {
				t.Fatalf("planned %q", planned(parts))
			}
			if tc.want {
				if u := parts[0][i]; u.ETag != tc.etag || u.Depth != 2 || u.Priority != 700 || u.ContentDigest == "W" {
					t.Errorf("planned %+v", u)
				}
			}
		})
	}
}

func spent(e source.Entry) source.Entry { e.Spent = true; return e }
func due(e source.Entry) source.Entry   { e.Due = true; return e }

func by(round int32, e source.Entry) source.Entry { e.Planned = round; return e }
func notDue(e source.Entry) source.Entry          { e.Due = false; return e }
func history(e source.Entry) source.Entry         { e.History = true; return e }

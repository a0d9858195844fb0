package verify

import (
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
)

const spelledRules = "User-agent: *\nDisallow: /%7Ejoe/\nDisallow: /q?z=1&a=2\n"

// spelledJudge judges by spelledRules, with the spellings of a plan and of redirects.
func spelledJudge(t *testing.T, reading robots.Reading) *judge {
	t.Helper()
	j := archived(t, []reply{{epoch: 1, at: 1, raw: response(200, "", spelledRules)}})
	j.round.reading = reading
	if reading == robots.Google {
		return j
	}
	j.spellings = &spellings{
		planned: map[string][]string{originURL + "/q?a=2&z=1": {originURL + "/q?z=1&a=2"}, originURL + "/q?a=3&z=1": {originURL + "/q?z=1&a=3"}},
		chains: map[string][]hop{originURL + "/start": {
			{epoch: 1, start: 5, url: originURL + "/start", target: originURL + "/%71?a=2", spelling: originURL + "/q?z=1&a=2"},
			{epoch: 1, start: 10, url: originURL + "/again", target: originURL + "/q?a=2&b&z=1", spelling: originURL + "/q?z=1&a=2&b"},
			{epoch: 2, start: 3, url: originURL + "/later", target: originURL + "/q?a=2&b&z=1"},
		}},
	}
	return j
}

func TestARequestIsJudgedInEverySpelling(t *testing.T) {
	for _, c := range []struct {
		name, url, planned string
		at                 int64
		epoch              int32
		want               string // by every reading; "": nothing
		noted              bool   // of a round that read as Google does
	}{
		{"no spelling", "/a", "/a", 9, 1, "", false},
		{"an escaped rule", "/~joe/a", "/~joe/a", 9, 1, `denied it: "Disallow: /%7Ejoe/" in line 2`, true},
		{"a spelling of the plan", "/q?a=2&z=1", "/q?a=2&z=1", 9, 1, `denied it as http://a.test/q?z=1&a=2: "Disallow: /q?z=1&a=2" in line 3`, false},
		{"and of a URL that was led back to", "/q?a=2&z=1", "/start", 9, 1, "denied it as", false},
		{"another spelling of the plan", "/q?a=3&z=1", "/q?a=3&z=1", 9, 1, "", false},
		{"a spelling of a redirect", "/q?a=2&b&z=1", "/start", 11, 1, "denied it as http://a.test/q?z=1&a=2&b", false},
		{"of one that came later", "/q?a=2&b&z=1", "/start", 9, 1, "", false},
		{"of one before the last", "/q?a=2&b&z=1", "/start", 4, 2, "", false},
		{"of another chain", "/q?a=2&b&z=1", "/other", 11, 1, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, reading := range []robots.Reading{robots.Every, robots.Google} {
				j := spelledJudge(t, reading)
				q := asked{
					URL: originURL + c.url, PlannedURL: originURL + c.planned, Epoch: c.epoch, Start: c.at, DelayMS: 2000,
					Digest: warc.DigestOf([]byte(spelledRules)).Value(),
				}
				j.names(&q)
				if _, err := j.request(t.Context(), &q); err != nil {
					t.Fatal(err)
				}
				report := j.summary()
				if reading == robots.Google {
					if len(report.Violations) > 0 || (len(report.Notes) > 0) != c.noted {
						t.Errorf("as Google reads: %+v, notes %q", report.Violations, report.Notes)
					}
					continue
				}
				if found := report.Violations; c.want == "" && len(found) > 0 || c.want != "" && (len(found) != 1 || !strings.Contains(found[0].Problem, c.want)) {
					t.Errorf("found %+v, want %q", found, c.want)
				}
			}
		})
	}
}

func TestVerdictsAreThoseOfEverySpelling(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		name string
		row  judged
		want string
	}{
		{"denied in a spelling", judged{URL: originURL + "/q?a=2&z=1", Outcome: "robots_denied", Allowed: &no, Rule: "Disallow: /q?z=1&a=2"}, ""},
		{"allowed in spite of a spelling", judged{URL: originURL + "/q?a=2&z=1", Outcome: "ok", Allowed: &yes}, "says allowed=false by"},
		{"denied by escapes", judged{URL: originURL + "/~joe/a", Outcome: "robots_denied", Allowed: &no, Rule: "Disallow: /%7Ejoe/"}, ""},
		{"a redirect to a denied spelling", judged{URL: originURL + "/a", Outcome: "robots_denied", Allowed: &yes, Error: "redirect to " + originURL + "/q?z=1&a=2&b: Disallow: /q?z=1&a=2"}, ""},
		{"a redirect to another spelling", judged{URL: originURL + "/a", Outcome: "robots_denied", Allowed: &yes, Error: "redirect to " + originURL + "/q?a=2&b&z=1: Disallow: /q?z=1&a=2"}, "says allowed=true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := spelledJudge(t, robots.Every)
			if err := j.fetches(t.Context(), seq([]judged{c.row})); err != nil {
				t.Fatal(err)
			}
			if found := j.summary().Violations; c.want == "" && len(found) > 0 || c.want != "" && (len(found) != 1 || !strings.Contains(found[0].Problem, c.want)) {
				t.Errorf("found %+v, want %q", found, c.want)
			}
		})
	}
}

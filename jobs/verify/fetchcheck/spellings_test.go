package fetchcheck

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
	"crawlbatch.io/crawlbatch/stages"
)

const spelledRules = "User-agent: *\nDisallow: /%7Ejoe/\nDisallow: /q?z=1&a=2\n"

// spelledJudge returns a judge that has the rules in spelledRules, and spellings from a plan and
// from redirects.
func spelledJudge(t *testing.T) *judge {
	t.Helper()
	j := archived(t, []reply{{epoch: 1, at: 1, raw: rawResponse(200, "", spelledRules)}})
	j.spellings = &partitionSpellings{
		planned: map[string][]string{originURL + "/q?a=2&z=1": {originURL + "/q?z=1&a=2"}, originURL + "/q?a=3&z=1": {originURL + "/q?z=1&a=3"},
			originURL + "/five": {"1", "2", "3", "4", "5"}},
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
		want               string // the expected problem; "" if no problem is expected
	}{
		{"no spelling", "/a", "/a", 9, 1, ""},
		{"an escaped rule", "/~joe/a", "/~joe/a", 9, 1, `denied it: "Disallow: /%7Ejoe/" in line 2`},
		{"a spelling of the plan", "/q?a=2&z=1", "/q?a=2&z=1", 9, 1, `denied it as http://a.test/q?z=1&a=2: "Disallow: /q?z=1&a=2" in line 3`},
		{"and of a URL that was led back to", "/q?a=2&z=1", "/start", 9, 1, "denied it as"},
		{"more spellings than are asked for", "/five", "/start", 9, 1, "though more than 4 spellings of it were known, such as 1"},
		{"another spelling of the plan", "/q?a=3&z=1", "/q?a=3&z=1", 9, 1, ""},
		{"a spelling of a redirect", "/q?a=2&b&z=1", "/start", 11, 1, "denied it as http://a.test/q?z=1&a=2&b"},
		{"of one that came later", "/q?a=2&b&z=1", "/start", 9, 1, ""},
		{"of one before the last", "/q?a=2&b&z=1", "/start", 4, 2, ""},
		{"of another chain", "/q?a=2&b&z=1", "/other", 11, 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := spelledJudge(t)
			q := requestRow{
				URL: originURL + c.url, PlannedURL: originURL + c.planned, Epoch: c.epoch, Start: schema.Time(c.at), DelayMS: 2000,
				Digest: warc.DigestOf([]byte(spelledRules)).Value(),
			}
			j.nameRobots(&q)
			if _, err := j.request(t.Context(), &q); err != nil {
				t.Fatal(err)
			}
			if found := j.Report().Violations; c.want == "" && len(found) > 0 || c.want != "" && (len(found) != 1 || !strings.Contains(found[0].Problem, c.want)) {
				t.Errorf("found %+v, want %q", found, c.want)
			}
		})
	}
}

func TestVerdictsAreThoseOfEverySpelling(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		name string
		row  fetchRow
		want string
	}{
		{"denied in a spelling", fetchRow{URL: originURL + "/q?a=2&z=1", Outcome: "robots_denied", Allowed: &no, Rule: "Disallow: /q?z=1&a=2"}, ""},
		{"allowed in spite of a spelling", fetchRow{URL: originURL + "/q?a=2&z=1", Outcome: "ok", Allowed: &yes}, "says allowed=false by"},
		{"denied by escapes", fetchRow{URL: originURL + "/~joe/a", Outcome: "robots_denied", Allowed: &no, Rule: "Disallow: /%7Ejoe/"}, ""},
		{"a redirect to a denied spelling", fetchRow{URL: originURL + "/a", Outcome: "robots_denied", Allowed: &yes, Error: "redirect to a URL that robots.txt denies", Detail: originURL + "/q?z=1&a=2&b: Disallow: /q?z=1&a=2"}, ""},
		{"a redirect to another spelling", fetchRow{URL: originURL + "/a", Outcome: "robots_denied", Allowed: &yes, Error: "redirect to a URL that robots.txt denies", Detail: originURL + "/q?a=2&b&z=1: Disallow: /q?z=1&a=2"}, "says allowed=true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := spelledJudge(t)
			if err := j.fetches(t.Context(), seq([]fetchRow{c.row})); err != nil {
				t.Fatal(err)
			}
			if found := j.Report().Violations; c.want == "" && len(found) > 0 || c.want != "" && (len(found) != 1 || !strings.Contains(found[0].Problem, c.want)) {
				t.Errorf("found %+v, want %q", found, c.want)
			}
		})
	}
}

// In TestSpellingsOfRedirectsTargetsAreReadFromThePlan, the plan lists planned URLs and other known URLs.
// The spellings of a known URL count if a redirect led to it, whether it was requested or denied.
func TestSpellingsOfRedirectsTargetsAreReadFromThePlan(t *testing.T) {
	j := archived(t, []reply{{epoch: 1, at: 1, raw: rawResponse(200, "", spelledRules)}})
	yes := true
	requests := tableOf(t, j.Bucket, "requests.parquet", []schema.Request{
		{URL: originURL + "/start", PlannedURL: originURL + "/start"}, {URL: originURL + "/q?a=2&z=1", PlannedURL: originURL + "/start"},
	})
	fetches := tableOf(t, j.Bucket, "fetches.parquet", []schema.Fetch{
		{URL: originURL + "/denied", Outcome: schema.RobotsDenied, RobotsAllowed: &yes, Error: "redirect to a URL that robots.txt denies", ErrorDetail: originURL + "/q?z=1&a=5: Disallow: /q?z"},
	})
	j.round.Plan = &manifest.Plan{Partitions: []manifest.PlanPartition{{
		File: manifest.File{Key: tableOf(t, j.Bucket, "plan.parquet", []schema.PlannedURL{{URL: originURL + "/start"}, {URL: originURL + "/denied"}})},
		Spellings: &manifest.File{Key: tableOf(t, j.Bucket, "spellings.parquet", []schema.PlannedURL{
			{URL: originURL + "/q?a=2&z=1", Spellings: []string{originURL + "/q?z=1&a=2"}}, {URL: originURL + "/q?a=3&z=1", Spellings: []string{originURL + "/q?z=1&a=3"}},
			{URL: originURL + "/q?a=5&z=1", Spellings: []string{originURL + "/q?z=1&a=5"}},
		})},
	}}}
	p := audit.Partition{Fetched: &manifest.Result{Files: []manifest.File{{Dataset: stages.FileRequests, Key: requests}, {Dataset: stages.FileFetches, Key: fetches}}}}
	var err error
	if j.spellings, err = loadSpellings(t.Context(), j.Audit, j.round, 0, &p, j.files.canon); err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{originURL + "/q?a=2&z=1": {originURL + "/q?z=1&a=2"}, originURL + "/q?a=5&z=1": {originURL + "/q?z=1&a=5"}}
	if diff := cmp.Diff(want, j.spellings.planned); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	q := requestRow{URL: originURL + "/q?a=2&z=1", PlannedURL: originURL + "/start", Epoch: 1, Start: 9, DelayMS: 2000, Digest: warc.DigestOf([]byte(spelledRules)).Value()}
	j.nameRobots(&q)
	if _, err := j.request(t.Context(), &q); err != nil {
		t.Fatal(err)
	}
	if found := j.Report().Violations; len(found) != 1 || !strings.Contains(found[0].Problem, "denied it as "+originURL+"/q?z=1&a=2") {
		t.Errorf("found %+v", found)
	}
}

// tableOf stores a table and returns its key.
func tableOf[T any](t *testing.T, b store.Bucket, key string, rows []T) string {
	t.Helper()
	w, err := table.NewWriter[T](filepath.Join(t.TempDir(), "t.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if _, err := table.Finish(t.Context(), w, b, "t", key); err != nil {
		t.Fatal(err)
	}
	return key
}

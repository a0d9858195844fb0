package planner

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/source"
)

func TestSpellingsOfAURLAreUnited(t *testing.T) {
	state := func(due bool, spellings ...string) source.Entry {
		return source.Entry{URL: "http://a.example/q?a&b", Due: due, Spellings: spellings}
	}
	for _, tc := range []struct {
		name  string
		known []source.Entry
		lines string
		want  []string // spellings in the planned row, nil if the URL is not planned
		found []string // spellings in the refused row
	}{
		{"canonical", nil, "q?a&b q?a&b", []string{}, nil},
		{"only what changes the resource", nil, "q?a&utm_x=1&b q?a&b#top x/../q?a&b", []string{}, nil},
		{"sorted, each once", nil, "q?b&a %71?a&b q?b&a q?b&a&utm_x", []string{"%71?a&b", "q?b&a"}, nil},
		{"four", nil, "q?b&a %71?a&b %71?b&a q?%61&b", []string{"%71?a&b", "%71?b&a", "q?%61&b", "q?b&a"}, nil},
		{"four and the canonical one", nil, "q?b&a %71?a&b %71?b&a q?%61&b q?a&b", []string{"%71?a&b", "%71?b&a", "q?%61&b", "q?b&a"}, nil},
		{"five", nil, "q?b&a %71?a&b %71?b&a q?%61&b q?a&%62", nil, []string{"%71?a&b", "%71?b&a", "q?%61&b", "q?a&%62", "q?b&a"}},
		{"known and due", []source.Entry{state(true, "http://a.example/q?b&a")}, "other", []string{"q?b&a"}, nil},
		{"known, not due, and listed", []source.Entry{state(false, "http://a.example/q?b&a")}, "%71?a&b", []string{"%71?a&b", "q?b&a"}, nil},
		{"known with too many, and listed in the canonical one", []source.Entry{state(false, "http://a.example/1", "http://a.example/2", "http://a.example/3", "http://a.example/4", "http://a.example/5")},
			"q?a&b", nil, []string{"1", "2", "3", "4", "5"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var texts []string
			for _, s := range strings.Fields(tc.lines) {
				texts = append(texts, "http://a.example/"+s)
			}
			cfg := Default()
			cfg.StripParams = []string{"utm_*"}
			m, parts, refused := commitAndRead(t, bucket(t), plan(t, cfg, lines(append(texts, "http://a.example/")...), known(tc.known...)))
			got := []string(nil)
			for _, u := range parts[0] {
				if u.URL == "http://a.example/q?a&b" {
					got = append([]string{}, u.Spellings...)
				} else if len(u.Spellings) != 0 {
					t.Errorf("%s has spellings %q", u.URL, u.Spellings)
				}
			}
			if diff := cmp.Diff(under(tc.want), got); diff != "" {
				t.Errorf("planned with (-want +got):\n%s", diff)
			}
			var row []schema.Refused
			if tc.found != nil {
				row = []schema.Refused{{URL: "http://a.example/q?a&b", SURT: "example,a)/q?a&b", Domain: "a.example", Reason: schema.SkipSpellings,
					Detail: schema.Spellings(under(tc.found)).TooMany(), Source: "urls.txt", Spellings: under(tc.found)}}
				if !slices.Contains(m.Refused, manifest.Count{Name: "spellings", N: 1}) {
					t.Errorf("counted %v", m.Refused)
				}
			}
			if diff := cmp.Diff(row, refused, cmpopts.EquateEmpty(), cmpopts.IgnoreTypes(schema.Listing{})); diff != "" {
				t.Errorf("refused (-want +got):\n%s", diff)
			}
		})
	}
}

// Spellings from the frontier lose the parameters that the config now strips.
func TestKnownSpellingsLoseStrippedParameters(t *testing.T) {
	const url = "http://a.example/q?a&b"
	entry := func(url string, due bool, spellings ...string) source.Entry {
		return source.Entry{URL: "http://a.example/" + url, Due: due, Spellings: under(spellings)}
	}
	for _, tc := range []struct {
		name  string
		known []source.Entry
		want  []string // spellings in the planned row, nil if the URL has too many spellings
	}{
		{"the place of the parameter alone", []source.Entry{entry("q?a&b&utm_x=1", true, "q?utm_x=1&a&b", "q?a&utm_x=1&b")}, []string{}},
		{"with others", []source.Entry{entry("q?a&b&utm_x=1", true, "q?b&utm_x=1&a", "%71?%75tm_x=1&a&b")}, []string{"%71?a&b", "q?b&a"}},
		{"as others have it", []source.Entry{entry("q?a&b&utm_x=1", true, "q?b&utm_x=1&a"), entry("q?a&b", false, "q?b&a", "%71?a&b")}, []string{"%71?a&b", "q?b&a"}},
		{"of five URLs", []source.Entry{
			entry("q?a&b&utm_x=1", true, "q?utm_x=1&a&b"), entry("q?a&b&utm_x=2", true, "q?utm_x=2&a&b"), entry("q?a&b&utm_x=3", true, "q?utm_x=3&a&b"),
			entry("q?a&b&utm_x=4", true, "q?utm_x=4&a&b"), entry("q?a&b&utm_x=5", true, "q?utm_x=5&a&b"),
		}, []string{}},
		{"five that are two", []source.Entry{
			entry("q?a&b", true), entry("q?a&b&utm_x=1", false, "q?a&utm_x=1&b", "q?b&a&utm_x=1", "q?b&utm_x=1&a", "q?utm_x=1&%61&b", "q?utm_x=1&a&b"),
		}, []string{"q?%61&b", "q?b&a"}},
		{"five that stay five", []source.Entry{
			entry("q?a&b&utm_x=1", true, "%71?a&b&utm_x=1", "%71?b&a&utm_x=1", "q?%61&b&utm_x=1", "q?a&%62&utm_x=1", "q?b&a&utm_x=1"),
		}, nil},
		{"of a URL that has none now", []source.Entry{entry("q?a&b&utm_x=1", true, "q?b&a&other")}, []string{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := Default()
			cfg.StripParams = []string{"utm_*"}
			_, parts, refused := commitAndRead(t, bucket(t), plan(t, cfg, lines("http://a.example/"), known(tc.known...)))
			var got []string
			for _, u := range parts[0] {
				if u.URL == url {
					got = append([]string{}, u.Spellings...)
				}
			}
			if diff := cmp.Diff(under(tc.want), got); diff != "" {
				t.Errorf("planned with (-want +got):\n%s", diff)
			}
			if (len(refused) > 0) != (tc.want == nil) {
				t.Errorf("refused %+v", refused)
			}
		})
	}
}

func under(paths []string) []string {
	if paths == nil {
		return nil
	}
	out := []string{}
	for _, p := range paths {
		out = append(out, "http://a.example/"+p)
	}
	return out
}

// A URL that is refused for another reason keeps its spelling, because a later plan may include the
// URL.
func TestRefusedURLsKeepTheirSpelling(t *testing.T) {
	cfg := Default()
	cfg.Budget = 1
	cfg.Stopped = map[string]string{"stopped.example": "asked"}
	_, _, refused := commitAndRead(t, bucket(t), plan(t, cfg, lines("http://a.example/", "http://a.example/%7Ea", "http://stopped.example/%7Ea")))
	for _, r := range refused {
		want := strings.Replace(r.URL, "~", "%7E", 1)
		if len(r.Spellings) != 1 || r.Spellings[0] != want {
			t.Errorf("%s %s has spellings %q", r.Reason, r.URL, r.Spellings)
		}
	}
	if len(refused) != 2 {
		t.Errorf("refused %+v", refused)
	}
}

// A spelling may have three times the length of the longest canonical URL.
func TestLongSpellingsArePlanned(t *testing.T) {
	rest := urlkey.MaxLength - len("http://a.example/")
	var texts []string
	url := "http://a.example/" + strings.Repeat("A", rest)
	for n := range schema.MaxSpellings {
		texts = append(texts, "http://a.example/"+strings.Repeat("A", n)+strings.Repeat("%41", rest-n))
	}
	want := slices.Sorted(slices.Values(texts))
	_, parts, refused := commitAndRead(t, bucket(t), plan(t, Default(), lines(append(texts, url)...)))
	if len(parts[0]) != 1 || parts[0][0].URL != url || !slices.Equal(parts[0][0].Spellings, want) || len(refused) > 0 {
		t.Errorf("%d planned, %d refused", len(parts[0]), len(refused))
	}
}

// A reparse sends no request for a stored response, so the URL needs no spellings.
func TestStoredResponsesHaveNoSpellings(t *testing.T) {
	l := lines("http://a.example/%7Ea")
	l.entries[0].Content = source.Content{At: 1, Filename: "x.warc", Offset: 2, Length: 3}
	_, urls, _ := commitAndRead(t, bucket(t), plan(t, Default(), l))
	if got := urls[0][0]; got.URL != "http://a.example/~a" || len(got.Spellings) > 0 {
		t.Errorf("planned %+v", got)
	}
}

// A redirect may lead to a known URL that is not planned. The plan therefore holds the spellings of
// known URLs too.
func TestSpellingsOfKnownURLsThatAreNotPlanned(t *testing.T) {
	known := func(url string, due bool, spellings int) source.Entry {
		e := source.Entry{URL: url, Due: due, Priority: 1, Fetches: 3, ETag: "x", File: source.FrontierName}
		for i := range spellings {
			e.Spellings = append(e.Spellings, fmt.Sprint(url, "#", i))
		}
		return e
	}
	deep := known("http://a.example/deep", true, 1)
	deep.Depth = 100
	entries := []source.Entry{
		known("http://a.example/planned", true, 1), known("http://a.example/known", false, 2), known("http://a.example/plain", false, 0),
		known("http://www.a.example/five", false, 5), known("http://a.example/due-five", true, 5), deep, known("http://a.example/out", false, 1),
		known("http://a.example/due-out", true, 1), known("http://unplanned.example/", false, 1), known("http://b.example/", true, 0),
	}
	for i := range 8 {
		entries = append(entries, known(fmt.Sprintf("http://n%d.example/", i), true, 0), known(fmt.Sprintf("http://n%d.example/known", i), false, i%2))
	}
	want := []string{
		"a.example/deep 1", "a.example/due-five 5", "a.example/due-out 1", "a.example/known 2", "a.example/out 1",
		"n1.example/known 1", "n3.example/known 1", "n5.example/known 1", "n7.example/known 1", "www.a.example/five 5",
	}
	for _, tc := range []struct {
		name   string
		change func(*Config)
		more   []source.Entry
		want   []string
	}{
		{"one partition", func(*Config) {}, nil, nil},
		{"several partitions", func(c *Config) { c.PartitionURLs = 2 }, nil, nil},
		{"a domain's budget", func(c *Config) { c.Budget = 1 },
			[]source.Entry{known("http://a.example/b-dear", true, 1), known("http://a.example/z-dear", true, 0)}, []string{"a.example/b-dear 1"}},
		{"a round's budget", func(c *Config) { c.RoundURLs = 10 },
			[]source.Entry{{URL: "http://a.example/cheap", Due: true, Spellings: []string{"x"}, File: source.FrontierName}}, []string{"a.example/cheap 1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var first string
			for _, workers := range []int{1, 4} {
				cfg := Default()
				cfg.Workers, cfg.Exclude = workers, []string{"*/*out"}
				tc.change(&cfg)
				b := bucket(t)
				m, parts, _ := commitAndRead(t, b, plan(t, cfg, list{source.FrontierName, slices.Concat(entries, tc.more)}))
				if first == "" {
					first = m.ID
				}
				if m.ID != first {
					t.Errorf("plan %s with one worker, %s with %d", first, m.ID, workers)
				}
				var got []string
				for i, p := range m.Partitions {
					domains := map[string]bool{}
					for _, u := range parts[i] {
						domains[u.Domain] = true
					}
					if p.Spellings == nil {
						continue
					}
					rows := tabletest.Read[schema.PlannedURL](t, b, p.Spellings.Key)
					if len(rows) == 0 || !slices.IsSortedFunc(rows, func(a, b schema.PlannedURL) int { return comparePlanned(&a, &b) }) {
						t.Errorf("partition %d: %+v", i, rows)
					}
					for _, u := range rows {
						if !domains[u.Domain] || u.ETag != "" {
							t.Errorf("partition %d has %+v", i, u)
						}
						got = append(got, fmt.Sprint(strings.TrimPrefix(u.URL, "http://"), " ", len(u.Spellings)))
					}
				}
				all := slices.Concat(want, tc.want)
				slices.Sort(all)
				slices.Sort(got)
				if diff := cmp.Diff(all, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
	t.Run("none", func(t *testing.T) {
		if m, _, _ := commitAndRead(t, bucket(t), plan(t, Default(), lines("http://a.example/%7Ea"))); m.Partitions[0].Spellings != nil {
			t.Errorf("a plan without known URLs names %+v", m.Partitions[0].Spellings)
		}
	})
}

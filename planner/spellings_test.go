package planner

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
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
		want  []string // nil: it is not planned
		found []string // of the refused row
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
			m, parts, refused := stored(t, bucket(t), plan(t, cfg, lines(append(texts, "http://a.example/")...), known(tc.known...)))
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
			if diff := cmp.Diff(row, refused, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("refused (-want +got):\n%s", diff)
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

// What a plan refuses for another reason keeps the spelling: it may be planned later.
func TestRefusedURLsKeepTheirSpelling(t *testing.T) {
	cfg := Default()
	cfg.Budget = 1
	cfg.Stopped = map[string]string{"stopped.example": "asked"}
	_, _, refused := stored(t, bucket(t), plan(t, cfg, lines("http://a.example/", "http://a.example/%7Ea", "http://stopped.example/%7Ea")))
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

// A response that others stored is not asked for, whatever its URL's spellings.
func TestStoredResponsesHaveNoSpellings(t *testing.T) {
	l := lines("http://a.example/%7Ea")
	l.entries[0].Content = source.Content{At: 1, Filename: "x.warc", Offset: 2, Length: 3}
	_, urls, _ := stored(t, bucket(t), plan(t, Default(), l))
	if got := urls[0][0]; got.URL != "http://a.example/~a" || len(got.Spellings) > 0 {
		t.Errorf("planned %+v", got)
	}
}

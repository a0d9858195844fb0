package frontier

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
)

// spellings returns a spelling of http://a.example/q for each letter.
func spellings(letters string) []string {
	var out []string
	for _, c := range letters {
		out = append(out, "http://a.example/%"+string(c))
	}
	return out
}

// TestSpellingsOnlyGrow takes one URL through several rounds. The table gives the input of each
// round, and the expected rows of urls and skips. A row of urls is written as "state spellings
// due"; "" means no row.
func TestSpellingsOnlyGrow(t *testing.T) {
	const url = "http://a.example/q"
	linked := func(letters string, change func(*schema.Inlink)) world {
		return world{inlinks: []schema.Inlink{link(t, url, func(l *schema.Inlink) {
			l.Spellings = spellings(letters)
			if change != nil {
				change(l)
			}
		})}}
	}
	plannedAs := func(letters string, o schema.Outcome) world {
		return world{
			plan:    []schema.PlannedURL{{URL: url, SURT: key(t, url).SURT, Host: "a.example", Spellings: spellings(letters)}},
			fetches: []schema.Fetch{fetch(t, url, o, nil)},
		}
	}
	refused := func(letters string, reason schema.SkipReason) world {
		k := key(t, url)
		return world{refused: []schema.Refused{{URL: url, SURT: k.SURT, Domain: k.Domain, Reason: reason, Source: "urls.txt", Spellings: spellings(letters)}}}
	}
	nofollow := func(l *schema.Inlink) { l.Followed = false }
	embedded := func(l *schema.Inlink) { l.Followed, l.FollowKind = false, false }
	type round struct {
		says       world
		urls, skip string
	}
	for _, tc := range []struct {
		name   string
		rounds []round
	}{
		{"a link's are kept, and written anew where they grow", []round{
			{linked("b", nil), "found b now", ""},
			{linked("b", nil), "", ""},
			{linked("", nil), "", ""},
			{linked("a", nil), "found ab now", ""},
		}},
		{"a plan's are kept, and a fetched URL's grow", []round{
			{plannedAs("c", schema.OK), "fetched c later", ""},
			{linked("a", nil), "fetched ac later", ""},
			{linked("ac", nil), "", ""},
			{plannedAs("ac", schema.RobotsDenied), "denied ac never", ""},
		}},
		{"five in one round, then the canonical one alone", []round{
			{linked("abcde", nil), "skipped abcde never", "spellings"},
			{linked("", nil), "", "spellings"},
			{world{fetches: []schema.Fetch{fetch(t, "http://a.example/from", schema.Redirected, redirectTo(url))}}, "", "spellings"},
			{world{}, "", ""},
		}},
		{"five over rounds", []round{
			{linked("ab", nil), "found ab now", ""},
			{linked("cd", nil), "found abcd now", ""},
			{linked("e", nil), "skipped abcde never", "spellings"},
			{linked("f", nil), "", "spellings"},
		}},
		{"the fifth after it was fetched", []round{
			{plannedAs("abcd", schema.OK), "fetched abcd later", ""},
			{linked("f", nil), "fetched abcdf never", "spellings"},
			{linked("e", nil), "fetched abcde never", "spellings"},
			{linked("", func(l *schema.Inlink) { l.LastMod = at * 1000 }), "", "spellings"},
		}},
		{"the fifth in the round that deferred it", []round{
			{func() world { w := plannedAs("abcd", schema.Deferred); w.inlinks = linked("e", nil).inlinks; return w }(), "deferred abcde never", "spellings"},
			{linked("", nil), "", "spellings"},
		}},
		{"five in a list", []round{
			{refused("abcde", schema.SkipSpellings), "skipped abcde never", "spellings"},
			{linked("", nil), "", "spellings"},
		}},
		{"a list's beyond the budget", []round{
			{refused("a", schema.SkipBudget), "found a now", "budget"},
			{refused("b", schema.SkipBudget), "found ab now", "budget"},
		}},
		{"too many beyond the budget", []round{
			{refused("abcde", schema.SkipBudget), "skipped abcde never", "budget"},
			{linked("", nil), "", "spellings"},
		}},
		{"a list's of a domain that is stopped, and later is not", []round{
			{refused("a", schema.SkipStopped), "skipped a never", "stopped"},
			{linked("b", nil), "found ab now", ""},
		}},
		{"a link's that is not followed at first", []round{
			{linked("a", nofollow), "skipped a never", "nofollow"},
			{linked("a", nofollow), "", "nofollow"},
			{linked("", nil), "found a now", ""},
		}},
		{"of what is embedded at first", []round{
			{linked("a", embedded), "skipped a never", ""},
			{linked("", embedded), "", ""},
			{linked("b", embedded), "skipped ab never", ""},
			{linked("", nil), "found ab now", ""},
			{linked("c", embedded), "found abc now", ""},
		}},
		{"five of what is embedded", []round{
			{linked("abcde", embedded), "skipped abcde never", ""},
			{linked("", nil), "", "spellings"},
		}},
		{"of what is embedded without any", []round{
			{linked("", embedded), "", ""},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := bucket(t)
			var known []schema.URLRecord
			for n, r := range tc.rounds {
				cfg := Default()
				cfg.Follow = FollowAny
				earlier := seal(t, b, "2026-10", n, 1, known...)
				store := bucket(t) // a store with only this round's objects
				for _, f := range earlier.Files {
					copyTo(t, b, store, f.Key)
				}
				urls, skips, results := run(t, store, cfg, r.says, earlier)
				got, skip := "", ""
				for _, u := range urls {
					if u.URL == url {
						got = describe(&u)
						known = []schema.URLRecord{u}
					}
				}
				for _, s := range skips {
					if s.URL == url {
						skip += string(s.Reason)
					}
				}
				if got != r.urls || skip != r.skip {
					t.Errorf("round %d: urls %q, skips %q; want %q, %q", n, got, skip, r.urls, r.skip)
				}
				waits := len(known) > 0 && (known[0].State == schema.StateFound || known[0].State == schema.StateDeferred) && !schema.Spellings(known[0].Spellings).Overflow()
				if n := results[0].Count("waiting"); (n > 0) != waits {
					t.Errorf("%d wait after %q", n, got)
				}
			}
		})
	}
}

// describe returns a row as the text "state letters when".
func describe(u *schema.URLRecord) string {
	letters := ""
	for _, s := range u.Spellings {
		letters += strings.TrimPrefix(s, "http://a.example/%")
	}
	due := "later"
	switch {
	case slices.Contains([]schema.URLState{schema.StateFound, schema.StateDeferred}, u.State) && !schema.Spellings(u.Spellings).Overflow():
		due = "now"
	case u.NextDue == 0:
		due = "never"
	}
	return fmt.Sprintf("%s %s %s", u.State, letters, due)
}

func copyTo(t *testing.T, from, to store.Bucket, key string) {
	t.Helper()
	o, err := from.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if _, err := to.Create(t.Context(), key, o, o.Size()); err != nil {
		t.Fatal(err)
	}
}

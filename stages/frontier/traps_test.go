package frontier

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/schema"
)

func TestDatesOfURLs(t *testing.T) {
	for url, want := range map[string]string{
		"http://a.com/calendar/1970/1/2":            "1 bare",
		"http://a.com/1970/01/02":                   "1 bare",
		"http://a.com/1970/01/02/":                  "1 bare",
		"http://a.com/1970/01":                      "14 bare month",
		"http://a.com/1970/01/name":                 "14 month",
		"http://a.com/1970/01/02/name":              "1",
		"http://a.com/1970/01/02/17":                "1",
		"http://a.com/1970/01/02?view=week":         "1",
		"http://a.com/x/1970-01-02":                 "1 bare",
		"http://a.com/x/1970-01":                    "14 bare month",
		"http://a.com/19700102":                     "1 bare",
		"http://a.com/c?date=1970-01-02":            "1 bare",
		"http://a.com/c?date=19700102&x=1":          "1",
		"http://a.com/c?day=2&month=1&year=1970":    "1 bare",
		"http://a.com/c?month=01&year=1970":         "14 bare month",
		"http://a.com/c?day=2&m=1&x=3&year=1970":    "1",
		"http://a.com/thread/2543/1":                "209298 bare month",
		"http://a.com/1970/13/01":                   "",
		"http://a.com/1970/02/30":                   "",
		"http://a.com/1970/2/30":                    "",
		"http://a.com/0970/02/03":                   "",
		"http://a.com/1970":                         "",
		"http://a.com/1970/123":                     "",
		"http://a.com/197001":                       "",
		"http://a.com/12345678":                     "",
		"http://a.com/c?year=1970":                  "",
		"http://a.com/":                             "",
		"http://a.com/?":                            "",
		"http://a.com/1970/01/2e1":                  "14 month",
		"http://a.com/docs/v1970/1/1":               "",
		"http://a.com/" + strings.Repeat("1/", 500): "",
	} {
		got := ""
		if d, ok := dateOf(url); ok {
			got = fmt.Sprint(d.day)
			if d.bare {
				got += " bare"
			}
			if d.monthly {
				got += " month"
			}
		}
		if got != want {
			t.Errorf("%.80s: %q, want %q", url, got, want)
		}
	}
}

// seen returns the state of a page that a round before has captured.
func seen(t *testing.T, url, text string, change func(*schema.URLRecord)) schema.URLRecord {
	return state(t, url, schema.StateFetched, func(r *schema.URLRecord) {
		r.LastPlanned, r.Fetches, r.LastFetched, r.CapturedIn, r.TextDigest, r.WordCount = "2026-10.0", 1, at-day, "2026-10.0", text, 30
		r.SimHash = int64(hash(text))
		r.LinkSketch, r.ContentDigest, r.FirstSource = schema.SketchLinks(slices.Values([]string{"x"})), "D", "http://a.com/"
		if change != nil {
			change(r)
		}
	})
}

// sixtyAlike returns the states of 60 pages that are the same, after changes.
func sixtyAlike(t *testing.T, change func(n int, r *schema.URLRecord)) (rows []schema.URLRecord) {
	for n := range 60 {
		rows = append(rows, seen(t, fmt.Sprintf("http://a.com/cal/%04d", n), "T", func(r *schema.URLRecord) {
			r.SimHash = int64(n) * 0x1f3d5b79
			if change != nil {
				change(n, r)
			}
		}))
	}
	return rows
}

func TestEvidenceOfEarlierRounds(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(n int, r *schema.URLRecord)
		trap   bool
	}{
		"the same":            {nil, true},
		"distinct titles":     {func(n int, r *schema.URLRecord) { r.TitleHash = int64(n + 1) }, false},
		"equal titles":        {func(_ int, r *schema.URLRecord) { r.TitleHash = 7 }, true},
		"pages that are gone": {func(_ int, r *schema.URLRecord) { r.State = schema.StateGone }, false},
		"some are gone": {func(n int, r *schema.URLRecord) {
			if n < 11 {
				r.State = schema.StateGone
			}
		}, false},
		"soft 404":            {func(_ int, r *schema.URLRecord) { r.Change = schema.ChangeGone }, false},
		"no digests":          {func(_ int, r *schema.URLRecord) { r.TextDigest = "" }, false},
		"unknown words":       {func(_ int, r *schema.URLRecord) { r.WordCount = 0 }, false},
		"few words":           {func(_ int, r *schema.URLRecord) { r.WordCount = 9 }, false},
		"nearly the same":     {func(n int, r *schema.URLRecord) { r.TextDigest, r.SimHash = fmt.Sprint(n), int64(n%2) }, true},
		"short, not the same": {func(n int, r *schema.URLRecord) { r.TextDigest, r.SimHash, r.WordCount = fmt.Sprint(n), 0, 19 }, false},
		"of another bucket":   {func(_ int, r *schema.URLRecord) { r.Domain = "b.com" }, true}, // there is one bucket
		"half under two names": {func(n int, r *schema.URLRecord) {
			*r = seen(t, fmt.Sprintf("http://%s.com/cal/%04d", []string{"a", "www.a"}[n%2], n), "T", nil)
		}, false},
		"half by https": {func(n int, r *schema.URLRecord) {
			*r = seen(t, fmt.Sprintf("%s://a.com/cal/%04d", []string{"http", "https"}[n%2], n/2), "T", nil)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := world{inlinks: []schema.Inlink{link(t, "http://a.com/cal/9999", nil)}}
			b := bucket(t)
			cfg := Default()
			cfg.Follow = FollowAny
			_, skips, _ := run(t, b, cfg, w, seal(t, b, "2026-11", 0, 1, sixtyAlike(t, tt.change)...))
			if got := len(skips) == 1 && skips[0].Reason == schema.SkipTrap; got != tt.trap {
				t.Errorf("trap: %v, %+v", got, skips)
			}
		})
	}
}

// A URL that waits is refused while its pattern is a trap. It waits again when the pages have changed, without a
// link, and its row keeps the first source.
func TestAURLThatWaitsIsRefusedAndComesBack(t *testing.T) {
	cfg := Default()
	waiting := state(t, "http://a.com/cal/9999", schema.StateFound, func(r *schema.URLRecord) { r.FirstSource = "http://a.com/x" })
	listed := state(t, "http://a.com/cal/9998", schema.StateFound, func(r *schema.URLRecord) {
		r.FirstSource, r.ListedLastRound = "http://a.com/x", "2026-10.0"
	})
	planned := state(t, "http://a.com/cal/9997", schema.StateDeferred, func(r *schema.URLRecord) { r.FirstSource, r.LastPlanned = "http://a.com/x", "2026-10.0" })
	b := bucket(t)
	pages := sixtyAlike(t, nil)
	urls, skips, _ := run(t, b, cfg, world{}, seal(t, b, "2026-11", 0, 1, append(pages, waiting, listed, planned)...))
	check(t, "urls", []string{"a.com/cal/9999 skipped 5 a.com/x"}, states(urls))
	check(t, "skips", []string{"a.com/cal/9999 trap 5"}, reasons(skips))
	if !strings.HasPrefix(skips[0].Detail, "pages at a.com/cal/0 are the same (60 of 60)") {
		t.Errorf("detail %q", skips[0].Detail)
	}
	// Nothing has changed: no row.
	refused := urls[0]
	b = bucket(t)
	urls, skips, _ = run(t, b, cfg, world{}, seal(t, b, "2026-11", 0, 1, append(pages, refused)...))
	check(t, "urls", nil, states(urls))
	check(t, "skips", nil, reasons(skips))
	// A link leads to it again.
	b = bucket(t)
	cfg.Follow = FollowAny
	urls, skips, _ = run(t, b, cfg, world{inlinks: []schema.Inlink{link(t, refused.URL, nil)}}, seal(t, b, "2026-11", 0, 1, append(pages, refused)...))
	check(t, "urls", nil, states(urls))
	check(t, "skips", []string{"a.com/cal/9999 trap 3"}, reasons(skips))
	// The pages are gone.
	for i := range pages {
		pages[i].State = schema.StateGone
	}
	b = bucket(t)
	urls, skips, _ = run(t, b, cfg, world{}, seal(t, b, "2026-11", 0, 1, append(pages, refused)...))
	check(t, "urls", []string{"a.com/cal/9999 found 5 a.com/x"}, states(urls))
	check(t, "skips", nil, reasons(skips))
}

// This round finds that the pages of the trap have changed.
func TestPagesOfTheRoundReplaceEvidence(t *testing.T) {
	w := alikeWorld(t, 60, 15, func(n int) string { return fmt.Sprint(n) })
	b := bucket(t)
	_, skips, _ := run(t, b, Default(), w, seal(t, b, "2026-11", 0, 1, sixtyAlike(t, nil)...))
	check(t, "skips", nil, reasons(skips))
	for i := range w.pages {
		w.pages[i].TextDigest, w.pages[i].PageHint = "T", schema.HintScripts
	}
	b = bucket(t)
	_, skips, _ = run(t, b, Default(), w, seal(t, b, "2026-11", 0, 1, sixtyAlike(t, nil)...))
	check(t, "skips", nil, reasons(skips))
	for i := range w.pages { // pages of a service that blocks
		w.pages[i].PageHint = ""
		w.fetches[i].Outcome, w.fetches[i].HTTPStatus = schema.Blocked, 403
	}
	b = bucket(t)
	_, skips, _ = run(t, b, Default(), w, seal(t, b, "2026-11", 0, 1, sixtyAlike(t, nil)...))
	check(t, "skips", nil, reasons(skips))
	w.pages = nil // 404
	for i := range w.fetches {
		w.fetches[i].Outcome, w.fetches[i].HTTPStatus = schema.HTTP4xx, 404
	}
	b = bucket(t)
	_, skips, _ = run(t, b, Default(), w, seal(t, b, "2026-11", 0, 1, sixtyAlike(t, nil)...))
	check(t, "skips", nil, reasons(skips))
	for i := range w.fetches {
		w.fetches[i].Outcome, w.fetches[i].HTTPStatus = schema.NotModified, 304
	}
	b = bucket(t)
	_, skips, _ = run(t, b, Default(), w, seal(t, b, "2026-11", 0, 1, sixtyAlike(t, nil)...))
	check(t, "skips", []string{"a.com/cal/9999 trap 3"}, reasons(skips))
}

func TestExceptedURLsAreNoEvidence(t *testing.T) {
	w := alikeWorld(t, 60, 30, func(int) string { return "T" })
	for name, tt := range map[string]struct {
		except func(url string) bool
		want   []string
	}{
		"all":           {func(url string) bool { return strings.Contains(url, "/cal/") }, nil},
		"the URL":       {func(url string) bool { return strings.HasSuffix(url, "/9999") }, nil},
		"some evidence": {func(url string) bool { return strings.Contains(url, "/cal/001") || strings.Contains(url, "/cal/002") }, nil},
		"nothing":       {func(string) bool { return false }, []string{"a.com/cal/9999 trap 3"}},
	} {
		cfg := Default()
		cfg.Except = tt.except
		_, skips, _ := run(t, bucket(t), cfg, w)
		if got := reasons(skips); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// The pages of a trap lead to new URLs of a pattern whose pages are a trap too. So both are. They are none if
// one of them leads to content.
func TestPagesThatLeadToContentAreNoTrap(t *testing.T) {
	for content, want := range map[int][]string{0: {"a.com/cal/9999 trap 3", "a.com/week/9999 trap 3"}, 1: {"a.com/cal/9999 trap 3", "a.com/week/9999 trap 3"}, 2: nil} {
		rows := sixtyAlike(t, nil)
		for n := range 60 {
			rows = append(rows, seen(t, fmt.Sprintf("http://a.com/week/%04d", n), "W", func(r *schema.URLRecord) {
				r.FirstSource = fmt.Sprintf("http://a.com/cal/%04d", n)
			}))
		}
		for n := range content {
			rows = append(rows, state(t, "http://a.com/article-"+string(rune('a'+n)), schema.StateFound, func(r *schema.URLRecord) { r.FirstSource = "http://a.com/week/0003" }))
		}
		b := bucket(t)
		cfg := Default()
		cfg.Follow = FollowAny
		w := world{inlinks: []schema.Inlink{link(t, "http://a.com/cal/9999", nil), link(t, "http://a.com/week/9999", nil)}}
		_, skips, _ := run(t, b, cfg, w, seal(t, b, "2026-11", 0, 1, rows...))
		if got := reasons(skips); !slices.Equal(got, want) {
			t.Errorf("%d: %q, want %q", content, got, want)
		}
	}
}

// Neither buckets nor the order of maps decide what a trap is.
func TestTrapsDoNotDependOnBuckets(t *testing.T) {
	var before []string
	for _, buckets := range []int{1, 1, 2, 7} {
		var rows []schema.URLRecord
		w := world{buckets: buckets, partitions: buckets}
		for d := range 12 {
			host := fmt.Sprintf("http://h%d.com", d)
			for n := range 40 + 2*d {
				rows = append(rows, seen(t, fmt.Sprintf("%s/cal/%d", host, n), "T", func(r *schema.URLRecord) { r.FirstSource = host + "/" }),
					seen(t, fmt.Sprintf("%s/p-%d?ref=%d", host, n, n), fmt.Sprint(n), nil), seen(t, fmt.Sprintf("%s/p-%d", host, n), fmt.Sprint(n), nil))
			}
			rows = append(rows, state(t, host+"/new", schema.StateFound, func(r *schema.URLRecord) { r.FirstSource = "http://h0.com/cal/3" }))
			w.inlinks = append(w.inlinks, link(t, host+"/cal/999", nil), link(t, host+"/p-3?ref=x", nil), link(t, host+"/q-3?ref=x", nil))
		}
		b := bucket(t)
		cfg := Default()
		cfg.Follow = FollowAny
		_, skips, _ := run(t, b, cfg, w, seal(t, b, "2026-11", 0, buckets, rows...))
		got := reasons(skips)
		for _, s := range skips {
			got = append(got, s.URL+" "+s.Detail)
		}
		slices.Sort(got)
		if before != nil && !slices.Equal(before, got) {
			t.Errorf("%d buckets:\n%s\nwant\n%s", buckets, strings.Join(got, "\n"), strings.Join(before, "\n"))
		}
		before = got
	}
	if n := len(before); n != 2*(7+12) {
		t.Errorf("%d rows about skips: %s", n, strings.Join(before, "\n"))
	}
}

// A pattern whose URLs come after those of more patterns than fit is seen.
func TestLatePatternsAreSeen(t *testing.T) {
	cfg := Default()
	l := &learner{traps: &traps{patterns: map[string]verdict{}, calendars: map[string][2]verdict{}}, cfg: &cfg, forms: map[place]*form{}, yields: map[yield]int{}}
	add := func(url, text string) {
		k := key(t, url)
		l.add(&known{surt: k.SURT, url: url, state: schema.StateFetched, firstSource: "http://a.com/0", content: content{Digest: text, Words: 30}})
	}
	for n := range 60 {
		add(fmt.Sprintf("http://a.com/a/%d", n), "A")
	}
	for n := range maxForms + 1000 {
		add(fmt.Sprintf("http://a.com/b/%s-1", strings.ReplaceAll(words(fmt.Sprint(n), 3), " ", "")), "B")
	}
	for n := range 60 {
		add(fmt.Sprintf("http://a.com/z/%d", n), "Z")
	}
	if n := len(l.forms); n > maxForms {
		t.Errorf("%d forms", n)
	}
	l.end()
	if got := slices.Sorted(maps.Keys(l.patterns)); !slices.Equal(got, []string{"a.com/a/0", "a.com/z/0"}) {
		t.Errorf("patterns %q", got)
	}
	if len(l.forms)+len(l.yields) != 0 {
		t.Error("the state of a host stays")
	}
}

func TestParametersOfURLs(t *testing.T) {
	for url, want := range map[string]string{
		"http://a.com/":                        "",
		"http://a.com/p?a=1&b=2&a=3":           "a a.com/p?b=2 a=1&a=3; b a.com/p?a=1&a=3 b=2",
		"https://a.com/p?a":                    "a a.com/p a",
		"http://a.com/s/5f3a9c0b77/home?x=1":   "/1 a.com/s/*/home?x=1 5f3a9c0b77; x a.com/s/5f3a9c0b77/home x=1",
		"http://a.com/p?&=1":                   "",
		"http://a.com/5f3a9c0b77":              "/0 a.com/* 5f3a9c0b77",
		"http://a.com/p?/0=1":                  "",
		"http://5f3a9c0b77.com/decade/lake-99": "",
	} {
		var got []string
		for _, name := range paramNames(url) {
			base, value := without(url, func(n string) bool { return n == name })
			got = append(got, name+" "+base+" "+value)
		}
		if got := strings.Join(got, "; "); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}

// usedParams returns the states of 30 pages with and without a parameter, after changes.
func usedParams(t *testing.T, change func(n int, r *schema.URLRecord)) (rows []schema.URLRecord) {
	for n := range 30 {
		page := fmt.Sprintf("http://a.com/page-%d", n)
		rows = append(rows, seen(t, page, fmt.Sprint(n), nil), seen(t, page+fmt.Sprint("?ref=", n), fmt.Sprint(n), func(r *schema.URLRecord) { change(n, r) }))
	}
	return rows
}

func TestParametersThatChangeNothing(t *testing.T) {
	same := func(int, *schema.URLRecord) {}
	redirects := func(to func(n int, url string) string) func(n int, r *schema.URLRecord) {
		return func(n int, r *schema.URLRecord) {
			r.State, r.RedirectTo = schema.StateRedirected, to(n, strings.TrimSuffix(r.URL, fmt.Sprint("?ref=", n)))
		}
	}
	for name, tt := range map[string]struct {
		change func(n int, r *schema.URLRecord)
		trap   bool
	}{
		"the same":        {same, true},
		"another title":   {func(_ int, r *schema.URLRecord) { r.TitleHash = 9 }, false},
		"another text":    {func(_ int, r *schema.URLRecord) { r.TextDigest = "X" }, false},
		"one other text":  {func(n int, r *schema.URLRecord) { r.TextDigest = fmt.Sprint(max(n, 1)) }, false},
		"few words":       {func(_ int, r *schema.URLRecord) { r.WordCount = 9 }, false},
		"other links":     {func(_ int, r *schema.URLRecord) { r.LinkSketch = schema.SketchLinks(slices.Values([]string{"y"})) }, false},
		"unknown links":   {func(_ int, r *schema.URLRecord) { r.LinkSketch = "" }, false},
		"gone":            {func(_ int, r *schema.URLRecord) { r.State = schema.StateGone }, false},
		"redirect back":   {redirects(func(_ int, url string) string { return url }), true},
		"redirect, https": {redirects(func(_ int, url string) string { return strings.Replace(url, "http:", "https:", 1) }), true},
		"redirect on":     {redirects(func(n int, _ string) string { return fmt.Sprint("http://a.com/to-", n) }), false},
		"only its scheme": {redirects(func(_ int, url string) string { return strings.Replace(url, "http:", "https:", 1) + "?ref=1" }), false},
	} {
		t.Run(name, func(t *testing.T) {
			b := bucket(t)
			cfg := Default()
			cfg.Follow = FollowAny
			w := world{inlinks: []schema.Inlink{
				link(t, "http://a.com/page-7?ref=new", nil), link(t, "http://a.com/page-77?ref=new1", nil), link(t, "http://a.com/page-77?ref=new2", nil),
				link(t, "http://a.com/page-7?id=1", nil), link(t, "http://a.com/other-7?ref=new", nil), link(t, "http://a.com/page-8?ref=no", func(l *schema.Inlink) { l.Followed = false }),
			}}
			_, skips, _ := run(t, b, cfg, w, seal(t, b, "2026-11", 0, 1, usedParams(t, tt.change)...))
			want := []string{"a.com/page-8?ref=no nofollow 3"}
			if tt.trap { // page-77 has no other URL than one of both
				want = append([]string{"a.com/page-7?ref=new trap 3"}, want...)
			}
			check(t, "skips", want, reasons(skips))
		})
	}
}

// A parameter that is useless in five patterns is so in others, but not in one in which it changes something.
func TestAParameterThatChangesNothingOnAHost(t *testing.T) {
	var rows []schema.URLRecord
	for n := range 30 {
		page := fmt.Sprintf("http://a.com/%s", strings.ReplaceAll(words(fmt.Sprint(n), 2), " ", ""))
		rows = append(rows, seen(t, page, fmt.Sprint(n), nil), seen(t, page+fmt.Sprint("?ref=", n), fmt.Sprint(n), nil))
	}
	// One pattern of many differs.
	rows = append(rows, seen(t, "http://a.com/show", "1", nil), seen(t, "http://a.com/show?ref=a", "1", nil), seen(t, "http://a.com/show?ref=b", "2", nil))
	for n := range 30 {
		page := fmt.Sprintf("http://a.com/more/%s", strings.ReplaceAll(words(fmt.Sprint(n), 2), " ", ""))
		rows = append(rows, seen(t, page, fmt.Sprint(n), nil), seen(t, page+fmt.Sprint("?ref=", n), fmt.Sprint(n), nil))
	}
	rows = append(rows, seen(t, "http://a.com/about", "A", nil))
	b := bucket(t)
	cfg := Default()
	cfg.Follow = FollowAny
	w := world{inlinks: []schema.Inlink{link(t, "http://a.com/about?ref=x", nil), link(t, "http://a.com/unknown?ref=x", nil), link(t, "http://a.com/show?ref=3", nil)}}
	urls, skips, _ := run(t, b, cfg, w, seal(t, b, "2026-11", 0, 1, rows...))
	check(t, "skips", []string{"a.com/about?ref=x trap 3"}, reasons(skips))
	check(t, "urls", []string{"a.com/show?ref=3 found 3 a.example/", "a.com/unknown?ref=x found 3 a.example/"}, states(urls))
	if len(skips) == 1 && !strings.HasPrefix(skips[0].Detail, "parameter ref changes nothing at a.com (") {
		t.Errorf("detail %q", skips[0].Detail)
	}
}

// The lists of a site are short: their page=1 is the list itself. A list with a page=2 is not lost.
func TestAParameterWithFewValues(t *testing.T) {
	rows := []schema.URLRecord{seen(t, "http://a.com/tag/long", "L", nil), seen(t, "http://a.com/tag/long?page=1", "L", nil), seen(t, "http://a.com/tag/new", "N", nil)}
	for n := range 200 {
		list := "http://a.com/tag/" + strings.ReplaceAll(words(fmt.Sprint(n), 3), " ", "")
		rows = append(rows, seen(t, list, fmt.Sprint(n), nil), seen(t, list+"?page=1", fmt.Sprint(n), nil))
	}
	b := bucket(t)
	cfg := Default()
	cfg.Follow = FollowAny
	w := world{inlinks: []schema.Inlink{link(t, "http://a.com/tag/long?page=2", nil), link(t, "http://a.com/tag/new?page=1", nil), link(t, "http://a.com/tag/new?page=2", nil)}}
	_, skips, _ := run(t, b, cfg, w, seal(t, b, "2026-11", 0, 1, rows...))
	check(t, "skips", []string{"a.com/tag/new?page=1 trap 3"}, reasons(skips))
}

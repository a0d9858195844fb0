package merge_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/merge"
)

const (
	crawl   = "2026-11"
	buckets = 4
)

// segment holds the rows that a fetch task recorded between two checkpoints.
type segment struct {
	fetches  []schema.Fetch
	requests []schema.Request
	captures map[string][]schema.Capture // rows of captures by subset
	pages    []schema.Page
	text     []schema.Text
	links    []schema.Link
}

// world is a store with a plan of one partition and the result of this partition's fetch task.
type world struct {
	t      *testing.T
	bucket store.Bucket
	in     *stages.Input
}

func newWorld(t *testing.T, planned []string, segments ...segment) *world {
	t.Helper()
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, bucket: b}
	var rows []schema.PlannedURL
	for i, u := range planned {
		k := keyOf(t, u)
		rows = append(rows, schema.PlannedURL{URL: u, SURT: k.SURT, Host: k.Host, Domain: k.Domain, Depth: int32(i)})
	}
	plan := tabletest.Write(t, b, "plan", layout.PlanPart(crawl, 0, "p", 0), rows)
	r := &manifest.Result{Plan: "p"}
	for i, s := range segments {
		key := func(dataset string) string { return layout.Segment(crawl, 0, "p", 0, 1, i, dataset) }
		r.Files = append(r.Files,
			tabletest.Write(t, b, stages.FileFetches, key("fetches"), s.fetches), tabletest.Write(t, b, stages.FileRequests, key("requests"), s.requests),
			tabletest.Write(t, b, stages.FilePages, key("pages"), s.pages), tabletest.Write(t, b, stages.FileText, key("text"), s.text),
			tabletest.Write(t, b, stages.FileLinkSets, key("linksets"), slices.Collect(schema.LinkSets(s.links)), table.Packed()))
		for _, subset := range schema.Subsets {
			if rows := s.captures[subset]; rows != nil {
				f := tabletest.Write(t, b, stages.FileCaptures, key("captures-"+subset), rows)
				f.Subset = subset
				r.Files = append(r.Files, f)
			}
		}
	}
	w.in = &stages.Input{
		Task:    stages.Task{Stage: stages.Merge, Crawl: crawl},
		Plan:    &manifest.Plan{ID: "p", Crawl: crawl, Buckets: buckets, Partitions: []manifest.PlanPartition{{File: plan}}},
		Results: map[stages.Stage][]*manifest.Result{stages.Fetch: {r}},
	}
	return w
}

// merge runs the stage.
func (w *world) merge() (*manifest.Result, error) {
	return w.mergeFollowing(schema.DefaultFollowed)
}

func (w *world) mergeFollowing(kinds []schema.LinkKind) (*manifest.Result, error) {
	env := &stages.Env{Bucket: w.bucket, Scratch: w.t.TempDir(), Log: slog.New(slog.DiscardHandler), Progress: stages.NoProgress{}}
	return merge.Run(w.t.Context(), env, w.in, merge.Config{Followed: kinds})
}

func (w *world) mustMerge() *manifest.Result {
	w.t.Helper()
	r, err := w.merge()
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// rows reads a file of the result.
func rows[T any](w *world, r *manifest.Result, dataset, subset string, opts ...table.ReaderOption) []T {
	w.t.Helper()
	for _, f := range r.FilesOf(dataset) {
		if f.Subset == subset {
			got := tabletest.Read[T](w.t, w.bucket, f.Key, opts...)
			return got
		}
	}
	w.t.Fatalf("no file of %s %s", dataset, subset)
	return nil
}

func keyOf(t *testing.T, url string) urlkey.Key {
	t.Helper()
	k, err := urlkey.KeyOf(url)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func fetch(t *testing.T, url string, outcome schema.Outcome, depth int32) schema.Fetch {
	k := keyOf(t, url)
	return schema.Fetch{SURT: k.SURT, URL: url, Host: k.Host, Domain: k.Domain, Outcome: outcome, Depth: depth, RecordedAt: 1}
}

func page(t *testing.T, url, planned, title string, outlinks int32) schema.Page {
	return schema.Page{PageColumns: schema.PageColumns{URLColumns: schema.URLColumns{SURT: keyOf(t, url).SURT, URL: url}, PlannedURL: planned, Title: title,
		Outlinks: outlinks, Topics: []string{}}}
}

func text(t *testing.T, url, main string) schema.Text {
	return schema.Text{SURT: keyOf(t, url).SURT, URL: url, Main: main}
}

func link(t *testing.T, source, target string, kind schema.LinkKind, ordinal int32) schema.Link {
	return schema.Link{SourceSURT: keyOf(t, source).SURT, Source: source, Target: target, Kind: kind, Ordinal: ordinal}
}

func brief(links []schema.Link) string {
	var b strings.Builder
	for _, l := range links {
		fmt.Fprintf(&b, "%s %s %s %d\n", l.Source, l.Kind, l.Target, l.Ordinal)
	}
	return b.String()
}

const (
	a = "https://a.example.org/"
	b = "https://b.example.org/"
	c = "https://c.example.org/"
	x = "https://x.example.com/"
)

func TestEveryTableIsSortedAndListedOnce(t *testing.T) {
	w := newWorld(t, []string{c, a, b},
		segment{
			fetches: []schema.Fetch{fetch(t, b, schema.OK, 1)},
			requests: []schema.Request{{Purpose: schema.ForPage, URL: b, Host: "b.example.org", Start: 50},
				{Purpose: schema.ForPage, URL: a, Host: "a.example.org", Start: 70}},
			captures: map[string][]schema.Capture{"warc": {{URLColumns: schema.URLColumns{SURT: keyOf(t, b).SURT, URL: b}}}},
			pages:    []schema.Page{page(t, b, b, "b", 2)}, text: []schema.Text{text(t, b, "b says")},
			links: []schema.Link{link(t, b, c, schema.KindA, 0), link(t, b, x, schema.KindImg, 1)},
		},
		segment{
			fetches:  []schema.Fetch{fetch(t, c, schema.HTTP4xx, 2), fetch(t, a, schema.OK, 0)},
			requests: []schema.Request{{Purpose: schema.ForRobots, URL: a + "robots.txt", Host: "a.example.org", Start: 10}},
			captures: map[string][]schema.Capture{
				"warc":             {{URLColumns: schema.URLColumns{SURT: keyOf(t, a).SURT, URL: a}}},
				"crawldiagnostics": {{URLColumns: schema.URLColumns{SURT: keyOf(t, c).SURT, URL: c}}},
			},
			pages: []schema.Page{page(t, a, a, "a", 1)}, text: []schema.Text{text(t, a, "a says")},
			links: []schema.Link{link(t, a, b, schema.KindA, 0)},
		})
	r := w.mustMerge()
	var got []string
	for _, f := range rows[schema.Fetch](w, r, stages.FileFetches, "") {
		got = append(got, f.URL)
	}
	for _, q := range rows[schema.Request](w, r, stages.FileRequests, "") {
		got = append(got, fmt.Sprint(q.Host, " ", int64(q.Start)))
	}
	for _, subset := range schema.Subsets {
		for _, q := range rows[schema.Capture](w, r, stages.FileCaptures, subset) {
			got = append(got, subset+" "+q.URL)
		}
	}
	for _, p := range rows[schema.Page](w, r, stages.FilePages, "") {
		got = append(got, p.Title)
	}
	for _, p := range rows[schema.Text](w, r, stages.FileText, "") {
		got = append(got, p.Main)
	}
	want := []string{a, b, c, "a.example.org 10", "a.example.org 70", "b.example.org 50", "warc " + a, "warc " + b,
		"crawldiagnostics " + c, "a", "b", "a says", "b says"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(a+" a "+b+" 0\n"+b+" a "+c+" 0\n"+b+" img "+x+" 1\n", brief(rows[schema.Link](w, r, stages.FileLinks, ""))); d != "" {
		t.Error(d)
	}
	for name, n := range map[string]int64{"fetches": 3, "captures": 3, "pages": 2, "links": 3, "targets": 2, "redirects": 0, "hostedges": 2, "hosts": 3,
		"outcome.ok": 2, "outcome.http_4xx": 1, "pages_dropped": 0} {
		if r.Count(name) != n {
			t.Errorf("count %s is %d, want %d", name, r.Count(name), n)
		}
	}
	if n := len(r.Files); n != 14 {
		t.Errorf("%d files, want 14", n)
	}
}

func TestTermCountsStayWithTheWorkingPage(t *testing.T) {
	row := func(url, planned string, counts schema.WorkingColumns) schema.WorkingPage {
		p := page(t, url, planned, url, 0)
		return schema.Working(&p, counts)
	}
	ofA := schema.WorkingColumns{Terms: []string{"lamp", "old lamp", "灯塔"}, Counts: []int32{7, 2, 2}}
	ofB := schema.WorkingColumns{Terms: []string{"sea"}, Counts: []int32{3}}
	ok := segment{fetches: []schema.Fetch{fetch(t, a, schema.OK, 0), fetch(t, b, schema.OK, 0)}}
	w := newWorld(t, []string{a, b}, ok)
	f := &w.in.Results[stages.Fetch][0].Files
	for i := range *f {
		if (*f)[i].Dataset == stages.FilePages {
			(*f)[i] = tabletest.Write(t, w.bucket, stages.FilePages, layout.Segment(crawl, 0, "p", 0, 1, 9, "pages"), []schema.WorkingPage{
				row(b, a, schema.WorkingColumns{Terms: []string{"by a"}, Counts: []int32{1}}), row(b, b, ofB), row(a, a, ofA),
			})
		}
	}
	var got []schema.WorkingColumns
	merged := w.mustMerge()
	for _, p := range rows[schema.WorkingPage](w, merged, stages.FilePages, "") {
		got = append(got, p.WorkingColumns)
	}
	if d := cmp.Diff([]schema.WorkingColumns{ofA, ofB}, got); d != "" {
		t.Errorf("term counts of a and of b as planned under its own URL: %s", d)
	}
	if runs := merged.FilesOf(stages.FileTerms); len(runs) != 1 || runs[0].Rows != 4+buckets { // each section has the number of all pages
		t.Errorf("runs of terms: %v", runs)
	}
}

func TestSameSegmentsGiveTheSameBytes(t *testing.T) {
	merged := func() *manifest.Result {
		var s segment
		var planned []string
		for i := range 300 {
			u := fmt.Sprintf("https://h%d.example.org/%d", i%7, (i*37)%300)
			planned = append(planned, u)
			s.fetches = append(s.fetches, fetch(t, u, schema.OK, 1))
			s.pages = append(s.pages, page(t, u, u, "t", 2))
			s.links = append(s.links, link(t, u, fmt.Sprintf("https://h%d.example.net/", i%5), schema.KindA, 0), link(t, u, x, schema.KindA, 1))
			s.requests = append(s.requests, schema.Request{URL: u, Host: keyOf(t, u).Host, Start: schema.Time(i % 10)})
		}
		return newWorld(t, planned, s).mustMerge()
	}
	if d := cmp.Diff(merged(), merged()); d != "" {
		t.Error(d)
	}
}

// TestADocumentOfMegabytesOfLinksIsKeptWholeAndOnce merges two documents of one URL, each with more
// links than one set holds.
func TestADocumentOfMegabytesOfLinksIsKeptWholeAndOnce(t *testing.T) {
	const n = 20_000
	s := segment{
		fetches: []schema.Fetch{fetch(t, a, schema.OK, 0), fetch(t, b, schema.OK, 0)},
		pages:   []schema.Page{page(t, a, b, "by b", n), page(t, a, a, "by a", n), page(t, b, b, "b", 1)},
		text:    []schema.Text{text(t, a, "by b"), text(t, a, "by a"), text(t, b, "b")},
	}
	target := func(by string, i int32) string {
		return fmt.Sprintf("https://%s.example.com/%d/%s", by, i, strings.Repeat("x", 100))
	}
	for _, by := range []string{"b", "a"} {
		for i := range int32(n) {
			s.links = append(s.links, link(t, a, target(by, i), schema.KindSitemap, i))
		}
	}
	s.links = append(s.links, link(t, b, x, schema.KindA, 0))
	w := newWorld(t, []string{a, b}, s)
	r := w.mustMerge()
	got := rows[schema.Link](w, r, stages.FileLinks, "")
	if len(got) != n+1 {
		t.Fatalf("%d links, want %d", len(got), n+1)
	}
	for i, l := range got[:n] {
		if l.Source != a || l.Ordinal != int32(i) || l.Target != target("a", int32(i)) {
			t.Fatalf("link %d is %+v", i, l)
		}
	}
	if got[n].Source != b || r.Count("targets") != n+1 {
		t.Errorf("the last link is %+v; %d targets", got[n], r.Count("targets"))
	}
}

// panicking panics when a segment of text is opened.
type panicking struct {
	store.Bucket
}

func (p panicking) Open(ctx context.Context, key string) (store.Object, error) {
	if strings.Contains(key, "-text") {
		panic("a fault in the store")
	}
	return p.Bucket.Open(ctx, key)
}

func TestAPanicInAnyStepReachesTheCaller(t *testing.T) {
	w := newWorld(t, []string{a}, segment{fetches: []schema.Fetch{fetch(t, a, schema.OK, 0)}, text: []schema.Text{text(t, a, "a")}, pages: []schema.Page{page(t, a, a, "a", 0)}})
	w.bucket = panicking{w.bucket}
	defer func() {
		if fault := recover(); !strings.Contains(fmt.Sprint(fault), "a fault in the store") {
			t.Errorf("recovered %v", fault)
		}
	}()
	_, err := w.merge()
	t.Errorf("no panic, %v", err)
}

// TestTextsOfSegmentsBecomeWhole merges texts that say which lines of the whole text the main content has.
func TestTextsOfSegmentsBecomeWhole(t *testing.T) {
	one, two := text(t, a, "one\ntwo"), text(t, b, "two\nthree")
	one.Full, two.Full = "one\ntwo\nthree", "one\ntwo\nthree"
	short := schema.NewWorkingText(&two)
	for _, c := range []struct {
		lines string
		err   error
	}{{short.MainLines, nil}, {"7-9", manifest.ErrCorrupt}} {
		w := newWorld(t, []string{a, b}, segment{
			fetches: []schema.Fetch{fetch(t, a, schema.OK, 0), fetch(t, b, schema.OK, 1)},
			pages:   []schema.Page{page(t, a, a, "a", 0), page(t, b, b, "b", 0)},
		})
		short.MainLines = c.lines
		fetched := w.in.Results[stages.Fetch][0]
		fetched.Files = append(fetched.Files, tabletest.Write(t, w.bucket, stages.FileText,
			layout.Segment(crawl, 0, "p", 0, 1, 1, "text"), []schema.WorkingText{schema.NewWorkingText(&one), short}, table.Fast()))
		r, err := w.merge()
		if !errors.Is(err, c.err) || err != nil && !strings.Contains(err.Error(), b) {
			t.Errorf("lines %q: %v, want %v", c.lines, err, c.err)
		}
		if err != nil {
			continue
		}
		if d := cmp.Diff([]schema.Text{one, two}, rows[schema.Text](w, r, stages.FileText, "")); d != "" {
			t.Errorf("texts differ (-want +got):\n%s", d)
		}
	}
}

func TestPartitionThatFetchedNothingStillHasEveryFile(t *testing.T) {
	w := newWorld(t, nil)
	if r := w.mustMerge(); len(r.Files) != 14 {
		t.Errorf("%d files, want 14", len(r.Files))
	}
}

func TestEachPlannedURLHasExactlyOneOutcome(t *testing.T) {
	for _, tc := range []struct {
		name    string
		planned []string
		fetched []string
		want    string
	}{
		{"missing at the start", []string{a, b}, []string{b}, `planned URL "` + a + `" has no outcome`},
		{"missing at the end", []string{a, b}, []string{a}, `planned URL "` + b + `" has no outcome`},
		{"missing all", []string{a}, nil, `planned URL "` + a + `" has no outcome`},
		{"twice", []string{a, b}, []string{a, b, a}, `planned URL "` + a + `" has two outcomes`},
		{"not planned", []string{a, c}, []string{a, b, c}, `URL "` + b + `" has an outcome but is not in the partition's plan`},
		{"not planned at the end", []string{a}, []string{a, b}, `URL "` + b + `" has an outcome but is not in the partition's plan`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var s segment
			for _, u := range tc.fetched {
				s.fetches = append(s.fetches, fetch(t, u, schema.OK, 0))
			}
			_, err := newWorld(t, tc.planned, s).merge()
			if !errors.Is(err, stages.ErrPermanent) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func TestURLFetchedTwiceKeepsOneDocumentWithItsTextAndLinks(t *testing.T) {
	none := segment{fetches: []schema.Fetch{fetch(t, a, schema.OK, 3), fetch(t, b, schema.OK, 5)}}
	with := func(s segment, pages []schema.Page, texts []schema.Text, links []schema.Link) segment {
		s.pages, s.text, s.links = pages, texts, links
		return s
	}
	for _, tc := range []struct {
		name     string
		segments []segment
		title    string
		links    string
	}{
		{"of the least planned URL, whichever came first", []segment{
			with(none, []schema.Page{page(t, c, b, "by b", 2)}, []schema.Text{text(t, c, "by b")},
				[]schema.Link{link(t, b, c, schema.KindRedirect, 0), link(t, c, x, schema.KindA, 0), link(t, c, a, schema.KindA, 1)}),
			{pages: []schema.Page{page(t, c, a, "by a", 1)}, text: []schema.Text{text(t, c, "by a")},
				links: []schema.Link{link(t, a, c, schema.KindRedirect, 0), link(t, c, b, schema.KindA, 0)}},
		}, "by a", a + " redirect " + c + " 0\n" + b + " redirect " + c + " 0\n" + c + " a " + b + " 0\n"},
		{"in one segment, the first without links", []segment{
			with(none, []schema.Page{page(t, c, b, "by b", 0), page(t, c, a, "by a", 1)}, []schema.Text{text(t, c, "by b"), text(t, c, "by a")},
				[]schema.Link{link(t, c, b, schema.KindA, 0)}),
		}, "by a", c + " a " + b + " 0\n"},
		{"and the one that stays without links", []segment{
			with(none, []schema.Page{page(t, c, a, "by a", 0), page(t, c, b, "by b", 1)}, []schema.Text{text(t, c, "by a"), text(t, c, "by b")},
				[]schema.Link{link(t, c, b, schema.KindA, 0)}),
		}, "by a", ""},
		{"its own plan goes before", []segment{
			with(none, []schema.Page{page(t, b, a, "by a", 1), page(t, b, b, "by b", 1)}, []schema.Text{text(t, b, "by a"), text(t, b, "by b")},
				[]schema.Link{link(t, b, x, schema.KindA, 0), link(t, b, c, schema.KindA, 0)}),
		}, "by b", b + " a " + c + " 0\n"},
		{"the first of equals", []segment{
			with(none, []schema.Page{page(t, c, a, "first", 1), page(t, c, a, "second", 1)}, []schema.Text{text(t, c, "first"), text(t, c, "second")},
				[]schema.Link{link(t, c, x, schema.KindA, 0), link(t, c, b, schema.KindA, 0)}),
		}, "first", c + " a " + x + " 0\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, []string{a, b}, tc.segments...)
			r := w.mustMerge()
			pages, texts := rows[schema.Page](w, r, stages.FilePages, ""), rows[schema.Text](w, r, stages.FileText, "")
			if len(pages) != 1 || pages[0].Title != tc.title || len(texts) != 1 || texts[0].Main != tc.title {
				t.Errorf("pages %+v\ntext %+v\nwant one of each, %s", pages, texts, tc.title)
			}
			if d := cmp.Diff(tc.links, brief(rows[schema.Link](w, r, stages.FileLinks, ""))); d != "" {
				t.Error(d)
			}
			if r.Count("pages_dropped") != 1 {
				t.Errorf("pages_dropped is %d", r.Count("pages_dropped"))
			}
		})
	}
}

// A takedown removes the links of a document one by one. A document without any of its links must not
// get those of another document of its URL.
func TestADocumentWhoseLinksWereTakenDownHasNoneOfAnother(t *testing.T) {
	fetches := []schema.Fetch{fetch(t, a, schema.OK, 3), fetch(t, b, schema.OK, 5)}
	byA, byB, other := page(t, c, a, "by a", 2), page(t, c, b, "by b", 1), page(t, x, x, "x", 1)
	toC := func(from string) schema.Link { return link(t, from, c, schema.KindRedirect, 0) }
	ofC := []schema.Link{link(t, c, a, schema.KindA, 0), link(t, c, b, schema.KindA, 1)}
	ofX := link(t, x, a, schema.KindA, 0)
	redirects := a + " redirect " + c + " 0\n" + b + " redirect " + c + " 0\n"
	whole, none := redirects+c+" a "+a+" 0\n"+c+" a "+b+" 1\n", redirects
	for _, tc := range []struct {
		name  string
		pages []schema.Page
		links []schema.Link
		want  string
	}{
		{"the kept one, recorded first", []schema.Page{byA, other, byB}, slices.Concat([]schema.Link{toC(a), ofX, toC(b)}, ofC), none},
		{"the kept one, recorded last", []schema.Page{byB, other, byA}, slices.Concat([]schema.Link{toC(b)}, ofC, []schema.Link{ofX, toC(a)}), none},
		{"the other one, recorded first", []schema.Page{byB, other, byA}, slices.Concat([]schema.Link{toC(b), ofX, toC(a)}, ofC), whole},
		{"the other one, recorded last", []schema.Page{byA, other, byB}, slices.Concat([]schema.Link{toC(a)}, ofC, []schema.Link{ofX, toC(b)}), whole},
		{"the kept one, just before the other", []schema.Page{byA, byB}, slices.Concat([]schema.Link{toC(a), toC(b)}, ofC), none},
		{"the other one, just before the kept one", []schema.Page{byB, byA}, slices.Concat([]schema.Link{toC(b), toC(a)}, ofC), whole},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := segment{fetches: fetches, pages: tc.pages, links: tc.links}
			for _, p := range tc.pages {
				s.text = append(s.text, text(t, p.URL, p.Title))
			}
			w := newWorld(t, []string{a, b}, s)
			got := rows[schema.Link](w, w.mustMerge(), stages.FileLinks, "")
			got = slices.DeleteFunc(got, func(l schema.Link) bool { return l.Source == x })
			if d := cmp.Diff(tc.want, brief(got)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestTargetsHaveDepthsAndBuckets(t *testing.T) {
	const hop, hop2, doc = "https://a.example.org/hop", "https://a.example.org/hop2", "https://a.example.org/doc"
	fa, fb := fetch(t, a, schema.OK, 3), fetch(t, b, schema.Redirected, 7)
	fb.RedirectTarget, fb.RedirectSent = x, x+"?"
	p := page(t, doc, a, "doc", 4)
	p.Depth = 3
	s := segment{
		fetches: []schema.Fetch{fa, fb}, pages: []schema.Page{p}, text: []schema.Text{text(t, doc, "doc")},
		links: []schema.Link{
			link(t, b, x, schema.KindRedirect, 0),
			link(t, a, hop, schema.KindRedirect, 0), link(t, hop, hop2, schema.KindRedirect, 0), link(t, hop2, doc, schema.KindRedirect, 0),
			link(t, doc, x, schema.KindA, 0), link(t, doc, x+"2", schema.KindA, 1), link(t, doc, x, schema.KindA, 2), link(t, doc, x+"i.png", schema.KindImg, 3),
		},
	}
	w := newWorld(t, []string{a, b}, s)
	hostEdges := []schema.HostEdge{{Source: "a.example.org", Target: "x.example.com", Links: 2}, {Source: "b.example.org", Target: "x.example.com", Links: 1}}
	sums := w.mustMerge()
	want := []schema.TargetLinks{}
	for _, target := range []schema.Inlink{
		{URL: doc, Inlinks: 1, InlinkHosts: 1, SourceDepth: 3, FirstSource: hop2}, {URL: hop, Inlinks: 1, InlinkHosts: 1, SourceDepth: 3, FirstSource: a},
		{URL: hop2, Inlinks: 1, InlinkHosts: 1, SourceDepth: 3, FirstSource: hop}, {URL: x, Inlinks: 2, InlinkHosts: 2, SourceDepth: 3, FirstSource: doc},
		{URL: x + "2", Inlinks: 1, InlinkHosts: 1, SourceDepth: 3, FirstSource: doc},
	} {
		k := keyOf(t, target.URL)
		target.SURT, target.Followed, target.Anchors, target.Form = k.SURT, true, []string{}, schema.Linked("", k.Domain == "example.org")
		want = append(want, schema.TargetLinks{Bucket: int32(urlkey.Bucket(k.Domain, buckets)), Inlink: target, AnchorCounts: []int32{}})
	}
	targets := tabletest.ReadRun[schema.TargetLinks](t, w.bucket, sums.FilesOf(stages.FileTargets)[0])
	slices.SortFunc(want, tabletest.ByKey(schema.TargetKey))
	if d := cmp.Diff(want, targets); d != "" {
		t.Errorf("targets (-want +got):\n%s", d)
	}
	if d := cmp.Diff(hostEdges, rows[schema.HostEdge](w, sums, stages.FileHostEdges, "")); d != "" {
		t.Error(d)
	}
	to := keyOf(t, x)
	redirects := []schema.Redirect{{Bucket: int32(urlkey.Bucket(to.Domain, buckets)), SURT: to.SURT, URL: x, Form: schema.Linked(x+"?", false), Source: b, Depth: 7}}
	if d := cmp.Diff(redirects, tabletest.ReadRun[schema.Redirect](t, w.bucket, sums.FilesOf(stages.FileRedirects)[0])); d != "" {
		t.Errorf("redirects (-want +got):\n%s", d)
	}
}

// A redirect chain has two records if it was interrupted, or if a request in it was repeated later.
func TestAChainInTwoRecordsHasTheDepthOfItsStart(t *testing.T) {
	const hop, hop2, doc = "https://a.example.org/hop", "https://a.example.org/hop2", "https://a.example.org/doc"
	fa, fb := fetch(t, a, schema.RedirectLimit, 3), fetch(t, b, schema.Redirected, 7)
	fb.RedirectTarget = x
	w := newWorld(t, []string{a, b}, segment{
		fetches: []schema.Fetch{fa, fb},
		requests: []schema.Request{
			{Purpose: schema.ForPage, URL: a, PlannedURL: a, Host: "a.example.org"}, {Purpose: schema.ForPage, URL: hop, PlannedURL: a, Host: "a.example.org"},
			{Purpose: schema.ForPage, URL: b, PlannedURL: b, Host: "b.example.org"}, {Purpose: schema.ForPage, URL: hop2, PlannedURL: a, Host: "a.example.org"},
		},
		links: []schema.Link{
			link(t, a, hop, schema.KindRedirect, 0), link(t, b, x, schema.KindRedirect, 0), link(t, hop, hop2, schema.KindRedirect, 0), link(t, hop2, doc, schema.KindRedirect, 0),
		},
	})
	got := map[string]int32{}
	for _, target := range tabletest.ReadRun[schema.TargetLinks](t, w.bucket, w.mustMerge().FilesOf(stages.FileTargets)[0]) {
		got[target.URL] = target.SourceDepth
	}
	if d := cmp.Diff(map[string]int32{hop: 3, x: 7, hop2: 3, doc: 3}, got); d != "" {
		t.Errorf("depths of the sources by target: %s", d)
	}
}

// The date that a sitemap states for a page counts only if both have the same host. A date more than
// a day after the fetch is dropped, because it could hide a true date from another sitemap or feed.
func TestTargetsHaveTheDateOfSitemapsOfTheirHost(t *testing.T) {
	const day, fetched = 24 * 60 * 60 * 1e6, 1_000_000_000
	said := func(ordinal int32, target string, lastmod schema.Time) schema.Link {
		l := link(t, a, target, schema.KindSitemap, ordinal)
		l.LastMod = lastmod
		return l
	}
	sitemap := page(t, a, a, "", 4)
	sitemap.FetchTime = fetched
	w := newWorld(t, []string{a}, segment{
		fetches: []schema.Fetch{fetch(t, a, schema.OK, 0)}, pages: []schema.Page{sitemap}, text: []schema.Text{text(t, a, "")},
		links: []schema.Link{said(0, a+"2", 7_000), said(1, x, 8_000), said(2, a+"3", fetched+day), said(3, a+"4", fetched+day+1)},
	})
	r := w.mustMerge()
	got := map[string]schema.Time{}
	for _, target := range tabletest.ReadRun[schema.TargetLinks](t, w.bucket, r.FilesOf(stages.FileTargets)[0]) {
		got[target.URL] = target.LastMod
	}
	if d := cmp.Diff(map[string]schema.Time{a + "2": 7_000, x: 0, a + "3": fetched + day, a + "4": 0}, got); d != "" {
		t.Errorf("dates by target (-want +got):\n%s", d)
	}
	for _, l := range rows[schema.Link](w, r, stages.FileLinks, "") {
		if l.LastMod == 0 {
			t.Errorf("%+v has lost its date", l)
		}
	}
}

// A sitemap that robots.txt names has links, but no page. Rows of earlier rounds, and rows of sitemaps
// that were not requested, are left out. A sitemap that redirected has a row for each of its two URLs.
func TestLinksOfSitemapsThatAreNoPages(t *testing.T) {
	const day = 24 * 60 * 60 * 1e6
	sitemap := func(url string, outcome schema.Outcome, change func(*schema.Sitemap)) schema.Sitemap {
		k := keyOf(t, url)
		s := schema.Sitemap{SURT: k.SURT, URL: url, Host: k.Host, Domain: k.Domain, Outcome: outcome, FetchedAt: 5 * day}
		if change != nil {
			change(&s)
		}
		return s
	}
	entry := link(t, a+"map.xml", a+"2", schema.KindSitemap, 0)
	entry.LastMod = 4 * day
	w := newWorld(t, []string{a}, segment{fetches: []schema.Fetch{fetch(t, a, schema.HTTP4xx, 7)}, links: []schema.Link{entry}})
	fetched := w.in.Results[stages.Fetch][0]
	files := []schema.Sitemap{
		sitemap(a+"map.xml", "", nil), // it waited
		sitemap(a+"map.xml", schema.OK, func(s *schema.Sitemap) { s.Named = a + "moved.xml" }),
		sitemap(a+"gone.xml", schema.HTTP4xx, nil),
		sitemap(a+"denied.xml", schema.RobotsDenied, func(s *schema.Sitemap) { s.FetchedAt = 0 }),
		sitemap(a+"old.xml", schema.OK, func(s *schema.Sitemap) { s.Earlier = true }),
	}
	fetched.Files = append(fetched.Files, tabletest.Write(t, w.bucket, stages.FileSitemaps, "sitemaps.parquet", files))
	r := w.mustMerge()
	got := map[string]schema.Outcome{}
	for _, s := range rows[schema.Sitemap](w, r, stages.FileSitemaps, "") {
		got[s.URL] = s.Outcome
	}
	if d := cmp.Diff(map[string]schema.Outcome{a + "map.xml": schema.OK, a + "moved.xml": schema.Redirected, a + "gone.xml": schema.HTTP4xx}, got); d != "" {
		t.Errorf("sitemaps (-want +got):\n%s", d)
	}
	for _, target := range tabletest.ReadRun[schema.TargetLinks](t, w.bucket, r.FilesOf(stages.FileTargets)[0]) {
		if target.URL != a+"2" || target.SourceDepth != 0 || target.LastMod != 4*day || target.Inlinks != 1 {
			t.Errorf("%+v", target)
		}
	}
	if n := r.Count("targets"); n != 1 {
		t.Errorf("%d targets", n)
	}
}

func TestHostsCountOutcomesRequestsAndRobots(t *testing.T) {
	denied := fetch(t, b, schema.RobotsUnreachable, 0)
	robots := schema.Capture{URLColumns: schema.URLColumns{SURT: keyOf(t, a+"robots.txt").SURT, URL: a + "robots.txt", Path: "/robots.txt", Protocol: "https"},
		CaptureColumns: schema.CaptureColumns{FetchStatus: 200, ContentDigest: "ROBOTS"}}
	w := newWorld(t, []string{a, a + "2", b, c}, segment{
		fetches:  []schema.Fetch{fetch(t, a, schema.OK, 0), fetch(t, a+"2", schema.Timeout, 0), denied, fetch(t, c, schema.HostSuspended, 0)},
		captures: map[string][]schema.Capture{"robotstxt": {robots}},
		requests: []schema.Request{
			{Purpose: schema.ForRobots, URL: a + "robots.txt", Host: "a.example.org", Start: 10, BytesSent: 80, Status: 200, FirstByteUS: new(int64(4000)), BytesReceived: 100},
			{Purpose: schema.ForPage, URL: a, Host: "a.example.org", Start: 20, BytesSent: 80, Status: 200, FirstByteUS: new(int64(8000)), BytesReceived: 900,
				Address: "192.0.2.1:443", DelayMS: 2000, RobotsDigest: "ROBOTS"},
			{Purpose: schema.ForPage, URL: a + "2", Host: "a.example.org", Start: 30, BytesSent: 80, Error: "timeout"},
			{Purpose: schema.ForProbe, URL: a + "2", Host: "a.example.org", Start: 40, BytesSent: 80, Error: "timeout"},
			{Purpose: schema.ForProbe, URL: a + "2", Host: "a.example.org", Start: 50, BytesSent: 80, Error: "timeout", DelayMS: 4000},
			{Purpose: schema.ForRobots, URL: x + "robots.txt", Host: "x.example.com", Start: 15, BytesSent: 80, Status: 200}, // the robots.txt of b redirected to this URL
		},
	})
	want := []schema.Host{
		{Host: "a.example.org", Domain: "example.org", RobotsState: "rules", RobotsDigest: "ROBOTS", RobotsAt: 10, DelayMS: new(int64(4000)), Planned: 2, Fetched: 1,
			FailedTimeout: 1, Requests: 5, Bytes: 1000, LatencyMS: 6, BreakerEvents: 1, Address: "192.0.2.1", FirstRequest: 10, LastRequest: 50},
		{Host: "b.example.org", Domain: "example.org", RobotsState: "unreachable", Planned: 1, RobotsDenied: 1},
		{Host: "c.example.org", Domain: "example.org", Planned: 1, Other: 1, BreakerEvents: 1},
	}
	if d := cmp.Diff(want, rows[schema.Host](w, w.mustMerge(), stages.FileHosts, "")); d != "" {
		t.Error(d)
	}
}

// A robots.txt of an earlier round denies all URLs of b, so the round sends no request to b.
func TestHostsHaveTheDigestOfARobotsFileOfAnEarlierRound(t *testing.T) {
	denied := fetch(t, b, schema.RobotsDenied, 0)
	denied.RobotsRule = "Disallow: /"
	w := newWorld(t, []string{b, c}, segment{fetches: []schema.Fetch{denied, fetch(t, c, schema.Deferred, 0)}})
	files := []schema.RobotsFile{
		{Origin: "https://b.example.org", Host: "b.example.org", Rules: true, Digest: "EARLIER"},
		{Origin: "https://c.example.org", Host: "c.example.org", Rules: true, Digest: "UNUSED"},
		{Origin: "https://d.example.org", Host: "d.example.org", Rules: true, Digest: "OF NO PLANNED HOST"},
	}
	fetched := w.in.Results[stages.Fetch][0]
	fetched.Files = append(fetched.Files, tabletest.Write(t, w.bucket, stages.FileRobots, "robots.parquet", files))
	got := map[string]string{}
	for _, h := range rows[schema.Host](w, w.mustMerge(), stages.FileHosts, "") {
		got[h.Host] = h.RobotsDigest
	}
	if d := cmp.Diff(map[string]string{"b.example.org": "EARLIER", "c.example.org": ""}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// The robots.txt files of both schemes of a host differ. A round that reads only one of them again must not seem
// to find another file than a round that reads both, or the other one.
func TestHostsHaveTheDigestOfOneSchemeInEachRound(t *testing.T) {
	const plain, secure = "http://a.example.org/", a
	read := func(url, digest string) schema.Capture {
		k := keyOf(t, url+"robots.txt")
		scheme, _, _ := strings.Cut(url, ":")
		return schema.Capture{URLColumns: schema.URLColumns{SURT: k.SURT, URL: url + "robots.txt", Path: "/robots.txt", Protocol: scheme},
			CaptureColumns: schema.CaptureColumns{FetchStatus: 200, ContentDigest: digest}}
	}
	for name, c := range map[string]struct {
		captures []schema.Capture
		allowed  []schema.Request // requests that a robots.txt of this or an earlier round allowed
		known    []schema.RobotsFile
	}{
		"both are read": {captures: []schema.Capture{read(plain, "PLAIN"), read(secure, "SECURE")}},
		"http is read, https allows a page": {captures: []schema.Capture{read(plain, "PLAIN")},
			allowed: []schema.Request{{Purpose: schema.ForPage, URL: secure, Host: "a.example.org", Start: 10, BytesSent: 80, RobotsDigest: "SECURE"}}},
		"http is read, https is known": {captures: []schema.Capture{read(plain, "PLAIN")},
			known: []schema.RobotsFile{{Origin: "https://a.example.org", Host: "a.example.org", Rules: true, Digest: "SECURE"}}},
		"http allows a page, https is known": {allowed: []schema.Request{{Purpose: schema.ForPage, URL: plain, Host: "a.example.org", Start: 10, BytesSent: 80, RobotsDigest: "PLAIN"}},
			known: []schema.RobotsFile{{Origin: "https://a.example.org", Host: "a.example.org", Rules: true, Digest: "SECURE"}}},
		"https is read, an older one allows a page": {captures: []schema.Capture{read(secure, "SECURE")},
			allowed: []schema.Request{{Purpose: schema.ForPage, URL: secure, Host: "a.example.org", Start: 10, BytesSent: 80, RobotsDigest: "OLDER"}}},
	} {
		w := newWorld(t, []string{a}, segment{fetches: []schema.Fetch{fetch(t, a, schema.OK, 0)}, captures: map[string][]schema.Capture{"robotstxt": c.captures}, requests: c.allowed})
		if c.known != nil {
			fetched := w.in.Results[stages.Fetch][0]
			fetched.Files = append(fetched.Files, tabletest.Write(t, w.bucket, stages.FileRobots, "robots.parquet", c.known))
		}
		if got := rows[schema.Host](w, w.mustMerge(), stages.FileHosts, ""); len(got) != 1 || got[0].RobotsDigest != "SECURE" {
			t.Errorf("%s: %+v, want SECURE", name, got)
		}
	}
}

// An attempt without a connection sends no byte, but has a row of requests that says why. The
// dataset hosts counts only requests that were sent.
func TestAttemptsWithoutAConnectionAreNoRequestsOfHosts(t *testing.T) {
	took := func(us int64) *int64 { return &us }
	w := newWorld(t, []string{a, b}, segment{
		fetches: []schema.Fetch{fetch(t, a, schema.OK, 0), fetch(t, b, schema.ConnectError, 0)},
		requests: []schema.Request{
			{Purpose: schema.ForPage, URL: a, Host: "a.example.org", Start: 10, TotalUS: took(90), ErrorClass: "timeout", DelayMS: 7, Address: "192.0.2.9:80"},
			{Purpose: schema.ForPage, URL: a, Host: "a.example.org", Start: 20, Status: 200, FirstByteMS: took(0), FirstByteUS: took(250), TotalUS: took(400), BytesSent: 80},
			{Purpose: schema.ForPage, URL: a, Host: "a.example.org", Start: 30, Status: 200, FirstByteMS: took(0), FirstByteUS: took(750), TotalUS: took(900), BytesSent: 80},
			{Purpose: schema.ForRobots, URL: b + "robots.txt", Host: "b.example.org", Start: 15, TotalUS: took(100), ErrorClass: "connect_error", DelayMS: 2000},
		},
	})
	want := []schema.Host{
		{Host: "a.example.org", Domain: "example.org", RobotsState: "", DelayMS: took(0), Planned: 1, Fetched: 1,
			Requests: 2, LatencyMS: 0.5, Address: "192.0.2.9", FirstRequest: 20, LastRequest: 30},
		{Host: "b.example.org", Domain: "example.org", DelayMS: took(2000), Planned: 1, FailedConnect: 1},
	}
	if d := cmp.Diff(want, rows[schema.Host](w, w.mustMerge(), stages.FileHosts, "")); d != "" {
		t.Error(d)
	}
}

// No URL of these hosts waited for the last request for robots.txt: all are deferred.
func TestHostsWhoseRobotsFileNeverAnsweredAreUnreachable(t *testing.T) {
	robots := func(url, host string, start schema.Time, status int16) schema.Request {
		return schema.Request{Purpose: schema.ForRobots, URL: url + "robots.txt", Host: host, Start: start, BytesSent: 80, Status: status}
	}
	w := newWorld(t, []string{a, b, c}, segment{
		fetches: []schema.Fetch{fetch(t, a, schema.Deferred, 0), fetch(t, b, schema.Deferred, 0), fetch(t, c, schema.Deferred, 0)},
		requests: []schema.Request{
			robots(a, "a.example.org", 10, 503), robots(a, "a.example.org", 20, 429), robots(a, "a.example.org", 30, 0),
			robots(b, "b.example.org", 10, 503), robots(b, "b.example.org", 20, 404),
			robots(c, "c.example.org", 10, 404), robots(c, "c.example.org", 20, 503),
		},
	})
	got := map[string]string{}
	for _, h := range rows[schema.Host](w, w.mustMerge(), stages.FileHosts, "") {
		got[h.Host] = h.RobotsState
	}
	if d := cmp.Diff(map[string]string{"a.example.org": "unreachable", "b.example.org": "none", "c.example.org": "none"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestPartitionWithoutAFetchResultIsRefused(t *testing.T) {
	w := newWorld(t, nil)
	w.in.Results = nil
	if _, err := w.merge(); !errors.Is(err, stages.ErrPermanent) || !strings.Contains(err.Error(), "has no result") {
		t.Errorf("got %v", err)
	}
}

// A target has the best of the forms in links of followed kinds: those of its own domain come first.
func TestATargetHasTheFormInWhichItIsLinked(t *testing.T) {
	as := func(source, target, sent string, kind schema.LinkKind, ordinal int32) schema.Link {
		l := link(t, source, target, kind, ordinal)
		l.Sent = sent
		return l
	}
	s := segment{
		fetches: []schema.Fetch{fetch(t, a, schema.OK, 1), fetch(t, b, schema.Redirected, 1)},
		pages:   []schema.Page{page(t, a, a, "a", 4)}, text: []schema.Text{text(t, a, "a")},
		links: []schema.Link{
			as(b, a+"~r", a+"%7Er", schema.KindRedirect, 0), as(b, a+"~r", a+"%7Er", schema.KindRedirect, 0), as(b, a+"~r", a+"~%72", schema.KindRedirect, 0),
			as(b, x+"~r", x+"%7Er", schema.KindRedirect, 0), link(t, b, a+"plain", schema.KindRedirect, 0),
			as(a, b+"~a", b+"%7Ea", schema.KindA, 0), as(a, x+"~a", x+"%7Ea?", schema.KindA, 1), as(a, x+"~a", x+"~a?", schema.KindA, 2),
			as(a, b+"~i", b+"%7Ei", schema.KindImg, 3), as(a, b+"~a", b+"~a?", schema.KindCanonical, 4),
			as(a, x+"~i", x+"%7Ei", schema.KindImg, 5), as(a, b+"two", b+"two?", schema.KindA, 6), link(t, a, b+"two", schema.KindImg, 7),
			as(a, b+"both", b+"both?", schema.KindA, 8), link(t, a, b+"both", schema.KindA, 9),
			as(a, b+"~f", b+"%7Ef", schema.KindFeed, 10), as(a, b+"no", b+"no?", schema.KindA, 11),
		},
	}
	s.links[len(s.links)-1].Nofollow = true
	links := "https://b.example.org/both  domain\nhttps://b.example.org/no https://b.example.org/no? domain\n" +
		"https://b.example.org/two https://b.example.org/two? domain\nhttps://b.example.org/~a https://b.example.org/~a? domain\n" +
		"https://x.example.com/~a https://x.example.com/~a? stranger\n"
	const redirects = "https://a.example.org/plain  domain\nhttps://a.example.org/~r https://a.example.org/%7Er domain\n"
	for _, tc := range []struct {
		name     string
		followed []schema.LinkKind
		want     string
	}{
		{"all kinds that are followed", schema.DefaultFollowed, redirects + links + "https://x.example.com/~r https://x.example.com/%7Er stranger\n"},
		{"redirects are not", []schema.LinkKind{schema.KindA, schema.KindCanonical}, links},
		{"only images", []schema.LinkKind{schema.KindImg},
			"https://b.example.org/two  domain\nhttps://b.example.org/~i https://b.example.org/%7Ei domain\nhttps://x.example.com/~i https://x.example.com/%7Ei stranger\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, []string{a, b}, s)
			r, err := w.mergeFollowing(tc.followed)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, target := range tabletest.ReadRun[schema.TargetLinks](t, w.bucket, r.FilesOf(stages.FileTargets)[0]) {
				got = append(got, fmt.Sprintf("%s %s %s\n", target.URL, target.Sent, target.SentFrom))
			}
			slices.Sort(got)
			if d := cmp.Diff(tc.want, strings.Join(got, "")); d != "" {
				t.Errorf("targets (-want +got):\n%s", d)
			}
			if n := len(rows[schema.Link](w, r, stages.FileLinks, "")); n != len(s.links)-1 {
				t.Errorf("%d links, want each link, and the repeated redirect only one time", n)
			}
		})
	}
}

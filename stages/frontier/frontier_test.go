package frontier

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/store/storetest"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/formats/urlfilter"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
)

// world is the frontier's input for one round.
type world struct {
	buckets    int
	partitions int // number of partitions of a bucket
	fetches    []schema.Fetch
	captures   []schema.Capture
	inlinks    []schema.Inlink
	hosts      []schema.Host
	refused    []schema.Refused
	pages      []schema.WorkingPage
	plan       []schema.PlannedURL

	listed bool // whether the crawl plans only what sources list and what it finds
}

const at schema.Time = 1_000_000_000 // time of all fetches

const (
	day   schema.Time = 24 * 60 * 60 * 1e6
	dayMS             = 24 * 60 * 60 * 1000
)

func key(t testing.TB, url string) urlkey.Key {
	t.Helper()
	k, err := urlkey.KeyOf(url)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// fetch makes a row of fetches. change may adjust the row.
func fetch(t testing.TB, url string, o schema.Outcome, change func(*schema.Fetch)) schema.Fetch {
	k := key(t, url)
	f := schema.Fetch{SURT: k.SURT, URL: k.URL, Host: k.Host, Domain: k.Domain, Outcome: o, FetchedAt: at, RecordedAt: at, Depth: 2, FinalURL: url}
	if o == schema.OK {
		f.HTTPStatus, f.ContentDigest, f.ETag = 200, "D", `"e"`
	}
	if change != nil {
		change(&f)
	}
	return f
}

// link returns one row of the inlinks dataset. The row says that a page at depth 2 links to the URL.
func link(t testing.TB, url string, change func(*schema.Inlink)) schema.Inlink {
	k := key(t, url)
	l := schema.Inlink{SURT: k.SURT, URL: k.URL, Inlinks: 1, InlinkHosts: 1, Followed: true, SourceDepth: 2, FirstSource: "http://a.example/"}
	if change != nil {
		change(&l)
	}
	return l
}

func redirectTo(target string) func(*schema.Fetch) {
	return func(f *schema.Fetch) { f.RedirectTarget, f.HTTPStatus = target, 301 }
}

func answeredBy(final string) func(*schema.Fetch) {
	return func(f *schema.Fetch) { f.FinalURL, f.Redirects = final, 1 }
}

func state(t testing.TB, url string, s schema.URLState, change func(*schema.URLRecord)) schema.URLRecord {
	k := key(t, url)
	r := schema.URLRecord{SURT: k.SURT, URL: k.URL, Host: k.Host, Domain: k.Domain, State: s, FirstSeen: "2026-10.0", Depth: 5, Priority: 650}
	if change != nil {
		change(&r)
	}
	return r
}

// put sorts rows and stores them under a key.
func put[T any](t testing.TB, b store.Bucket, dataset, key string, rows []T, compare func(a, b T) int) manifest.File {
	t.Helper()
	rows = slices.Clone(rows)
	slices.SortFunc(rows, compare)
	return tabletest.Write(t, b, dataset, key, rows)
}

func bySURT[T any](get func(T) (string, string)) func(a, b T) int {
	return func(a, b T) int {
		as, au := get(a)
		bs, bu := get(b)
		return cmp.Or(strings.Compare(as, bs), strings.Compare(au, bu))
	}
}

func filter[T any](rows []T, keep func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(rows), func(r T) bool { return !keep(r) })
}

// seal stores states as the result of an earlier round, which had the given number of buckets.
func seal(t testing.TB, b store.Bucket, crawl string, round, buckets int, rows ...schema.URLRecord) *manifest.Sealed {
	t.Helper()
	s := &manifest.Sealed{Crawl: crawl, Round: round}
	for n := range buckets {
		part := filter(rows, func(r schema.URLRecord) bool { return urlkey.Bucket(r.Domain, buckets) == n })
		s.Files = append(s.Files, put(t, b, stages.FileURLs, layout.Table(stages.FileURLs, crawl, round, n), part,
			bySURT(func(r schema.URLRecord) (string, string) { return r.SURT, r.URL })))
	}
	return s
}

// run executes the tasks of all buckets of a world and reads their output.
func run(t testing.TB, b store.Bucket, cfg Config, w world, earlier ...*manifest.Sealed) (urls []schema.URLRecord, skips []schema.Skip, results []*manifest.Result) {
	t.Helper()
	w.buckets, w.partitions = max(w.buckets, 1), max(w.partitions, 1)
	in := &stages.Input{
		Task: stages.Task{Stage: stages.Frontier, Crawl: "2026-11", Round: 1}, Plan: &manifest.Plan{Buckets: w.buckets},
		Results: map[stages.Stage][]*manifest.Result{}, Earlier: earlier, Listed: w.listed, Created: at + 1,
	}
	for i := range w.refused {
		if r := &w.refused[i]; r.Domain != "" {
			r.Bucket = int32(urlkey.Bucket(r.Domain, w.buckets))
		}
	}
	refused := put(t, b, "refused", layout.PlanRefused("2026-11", 1, "p"), w.refused, func(a, b schema.Refused) int {
		return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), strings.Compare(a.Domain, b.Domain), strings.Compare(a.URL, b.URL))
	})
	in.Plan.RefusedFile = &refused
	of := func(n, parts int) func(url string) bool {
		return func(url string) bool { return urlkey.Bucket(key(t, url).Domain, parts) == n }
	}
	for n := range w.buckets * w.partitions {
		owns, merge := of(n, w.buckets*w.partitions), &manifest.Result{}
		merge.Files = append(merge.Files, put(t, b, stages.FileFetches, layout.Table(stages.FileFetches, "2026-11", 1, n),
			filter(w.fetches, func(f schema.Fetch) bool { return owns(f.URL) }),
			bySURT(func(f schema.Fetch) (string, string) { return f.SURT, f.URL })))
		var redirects []schema.Redirect
		for _, f := range w.fetches {
			if f.RedirectTarget != "" && owns(f.URL) {
				k := key(t, f.RedirectTarget)
				redirects = append(redirects, schema.Redirect{Bucket: int32(urlkey.Bucket(k.Domain, w.buckets)), SURT: k.SURT, URL: k.URL, Form: schema.Linked(f.RedirectSent, f.Domain == k.Domain), Source: f.URL, Depth: f.Depth})
			}
		}
		slices.SortFunc(redirects, tabletest.ByKey(schema.RedirectKey))
		merge.Files = append(merge.Files, tabletest.WriteRun(t, b, stages.FileRedirects, layout.Run("2026-11", 1, "merge", "redirects", n), redirects,
			func(r *schema.Redirect) int32 { return r.Bucket }))
		captures := put(t, b, stages.FileCaptures, layout.Captures("2026-11", schema.SubsetDiagnostics, 1, n),
			filter(w.captures, func(c schema.Capture) bool { return owns(c.URL) }),
			bySURT(func(c schema.Capture) (string, string) { return c.SURT, c.URL }))
		captures.Subset = schema.SubsetDiagnostics
		merge.Files = append(merge.Files, put(t, b, stages.FilePages, layout.Working("2026-11", 1, "merge", "pages", n),
			filter(w.pages, func(p schema.WorkingPage) bool { return owns(p.URL) }),
			bySURT(func(p schema.WorkingPage) (string, string) { return p.SURT, p.URL })))
		merge.Files = append(merge.Files, captures)
		in.Plan.Partitions = append(in.Plan.Partitions, manifest.PlanPartition{Partition: n, Bucket: n / w.partitions,
			File: put(t, b, "plan", layout.PlanPart("2026-11", 1, "p", n),
				filter(w.plan, func(p schema.PlannedURL) bool { return owns(p.URL) }),
				bySURT(func(p schema.PlannedURL) (string, string) { return p.Host, p.URL }))})
		in.Results[stages.Merge] = append(in.Results[stages.Merge], merge)
	}
	for n := range w.buckets {
		owns, rank := of(n, w.buckets), &manifest.Result{}
		rank.Files = append(rank.Files,
			put(t, b, stages.FileInlinks, layout.Working("2026-11", 1, "rank", "inlinks", n),
				filter(w.inlinks, func(l schema.Inlink) bool { return owns(l.URL) }),
				bySURT(func(l schema.Inlink) (string, string) { return l.SURT, l.URL })),
			put(t, b, stages.FileHosts, layout.Table(stages.FileHosts, "2026-11", 1, n),
				filter(w.hosts, func(h schema.Host) bool { return owns("http://" + h.Host + "/") }),
				bySURT(func(h schema.Host) (string, string) { return h.Host, "" })))
		in.Results[stages.Rank] = append(in.Results[stages.Rank], rank)
	}
	ctx := context.Background()
	for n := range w.buckets {
		in.Task.Partition = n
		env := &stages.Env{Bucket: b, Scratch: t.TempDir(), Clock: stages.SystemClock{}, Log: slog.New(slog.DiscardHandler), Progress: stages.NoProgress{}}
		res, err := Run(ctx, env, in, cfg)
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, res)
		u := tabletest.Read[schema.URLRecord](t, b, res.Files[0].Key)
		s := tabletest.Read[schema.Skip](t, b, res.Files[1].Key)
		urls, skips = append(urls, u...), append(skips, s...)
		if !slices.IsSortedFunc(u, bySURT(func(r schema.URLRecord) (string, string) { return r.SURT, r.URL })) {
			t.Errorf("urls of bucket %d are not sorted", n)
		}
		if !slices.IsSortedFunc(s, bySURT(func(r schema.Skip) (string, string) { return r.SURT, r.URL })) {
			t.Errorf("skips of bucket %d are not sorted", n)
		}
	}
	return urls, skips, results
}

func bucket(t testing.TB) store.Bucket {
	t.Helper()
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// states returns the text "url state depth source" for each row.
func states(rows []schema.URLRecord) []string {
	var out []string
	for _, r := range rows {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %d %s", strings.TrimPrefix(r.URL, "http://"), r.State, r.Depth, strings.TrimPrefix(r.FirstSource, "http://"))))
	}
	slices.Sort(out)
	return out
}

func reasons(rows []schema.Skip) []string {
	var out []string
	for _, r := range rows {
		out = append(out, fmt.Sprintf("%s %s %d", strings.TrimPrefix(r.URL, "http://"), r.Reason, r.Depth))
	}
	slices.Sort(out)
	return out
}

func check(t *testing.T, what string, want, got []string) {
	t.Helper()
	if d := gocmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestOutcomesBecomeStates(t *testing.T) {
	status := func(n int16) func(*schema.Fetch) { return func(f *schema.Fetch) { f.HTTPStatus = n } }
	want := map[schema.Outcome]schema.URLRecord{}
	var w world
	for n, tc := range []struct {
		outcome schema.Outcome
		change  func(*schema.Fetch)
		state   schema.URLState
		due     schema.Time
	}{
		{schema.OK, nil, schema.StateFetched, at + 30*day},
		{schema.NotModified, nil, schema.StateFetched, at + 30*day},
		{schema.Redirected, redirectTo("http://a.example/ok"), schema.StateRedirected, at + 30*day},
		{schema.RobotsDenied, nil, schema.StateDenied, 0},
		{schema.RobotsUnreachable, nil, schema.StateFailed, at + day},
		{schema.HTTP4xx, status(404), schema.StateGone, 0},
		{schema.HTTP5xx, status(500), schema.StateFailed, at + day},
		{schema.RateLimited, status(429), schema.StateFailed, at + day},
		{schema.Blocked, status(403), schema.StateFailed, at + day},
		{schema.PaymentRequired, status(402), schema.StateFailed, at + day},
		{schema.DNSError, nil, schema.StateFailed, at + day},
		{schema.ConnectError, nil, schema.StateFailed, at + day},
		{schema.TLSError, nil, schema.StateFailed, at + day},
		{schema.Timeout, nil, schema.StateFailed, at + day},
		{schema.ProtocolError, nil, schema.StateFailed, at + day},
		{schema.RedirectLimit, status(302), schema.StateFailed, at + day},
		{schema.MIMEFiltered, status(200), schema.StateFailed, at + day},
		{schema.AddressBlocked, nil, schema.StateFailed, at + day},
		{schema.HostSuspended, nil, schema.StateDeferred, 0},
		{schema.Deferred, nil, schema.StateDeferred, 0},
		{schema.Stopped, nil, schema.StateDeferred, 0},
		{schema.InternalError, nil, schema.StateFailed, at + day},
	} {
		if tc.outcome != schema.Outcomes[n] {
			t.Fatalf("outcome %d is %s, the table has %s", n, schema.Outcomes[n], tc.outcome)
		}
		w.fetches = append(w.fetches, fetch(t, "http://a.example/"+string(tc.outcome), tc.outcome, tc.change))
		want[tc.outcome] = schema.URLRecord{State: tc.state, NextDue: tc.due}
	}
	urls, _, _ := run(t, bucket(t), Default(), w)
	if len(urls) != len(schema.Outcomes) {
		t.Fatalf("%d rows for %d outcomes", len(urls), len(schema.Outcomes))
	}
	for _, u := range urls {
		if x := want[u.Outcome]; u.State != x.State || u.NextDue != x.NextDue || u.LastPlanned != "2026-11.1" || u.FirstSeen != "2026-11.1" {
			t.Errorf("%s: %+v, want %s due %d", u.Outcome, u, x.State, x.NextDue)
		}
	}
}

func TestRedirects(t *testing.T) {
	capture := func(url string, status int16, to string) schema.Capture {
		k := key(t, url)
		return schema.Capture{
			URLColumns:     schema.URLColumns{SURT: k.SURT, URL: k.URL},
			CaptureColumns: schema.CaptureColumns{FetchStatus: status, FetchRedirect: to, FetchTime: at},
		}
	}
	cfg := Default()
	cfg.Follow = FollowDomain
	w := world{
		buckets: 3,
		fetches: []schema.Fetch{
			fetch(t, "http://a.example/1", schema.OK, answeredBy("http://a.example/3")),
			fetch(t, "http://a.example/4", schema.HTTP4xx, func(f *schema.Fetch) { f.FinalURL, f.HTTPStatus = "http://a.example/5", 404 }),
			fetch(t, "http://a.example/out", schema.Redirected, redirectTo("http://b.example/in")),
			fetch(t, "http://a.example/away", schema.Redirected, redirectTo("http://c.example/")),
			fetch(t, "http://a.example/known", schema.Redirected, redirectTo("http://b.example/")),
			fetch(t, "http://b.example/", schema.OK, nil),
		},
		captures: []schema.Capture{
			capture("http://a.example/1", 301, "http://a.example/2"), capture("http://a.example/2", 302, "http://a.example/3"),
			capture("http://a.example/5", 404, ""),
		},
		inlinks: []schema.Inlink{link(t, "http://a.example/2", nil), link(t, "http://a.example/3", nil)},
	}
	urls, skips, _ := run(t, bucket(t), cfg, w)
	check(t, "urls", []string{
		"a.example/1 redirected 2", "a.example/2 redirected 2", "a.example/3 fetched 2 a.example/1", "a.example/4 gone 2", "a.example/5 gone 2 a.example/4",
		"a.example/away redirected 2", "a.example/known redirected 2", "a.example/out redirected 2",
		"b.example/ fetched 2", "b.example/in found 3 a.example/out",
	}, states(urls))
	check(t, "skips", []string{"c.example/ out_of_scope 3"}, reasons(skips))
	for _, u := range urls {
		switch u.URL {
		case "http://a.example/1":
			if u.RedirectTo != "http://a.example/3" || u.ContentDigest != "" {
				t.Errorf("%+v", u)
			}
		case "http://a.example/2":
			if u.RedirectTo != "http://a.example/3" || u.LastPlanned != "" {
				t.Errorf("%+v", u)
			}
		case "http://a.example/3":
			if u.RedirectTo != "" || u.ContentDigest != "D" || u.LastPlanned != "" || u.Fetches != 1 || u.Inlinks != 1 {
				t.Errorf("%+v", u)
			}
		}
	}
}

type scope struct{}

func (scope) Refusal(url, _ string) (schema.SkipReason, string) {
	if strings.Contains(url, "secret") {
		return schema.SkipOutOfScope, "*secret*"
	}
	return "", ""
}

func TestLinksAreFollowedOrSkipped(t *testing.T) {
	nofollow := func(l *schema.Inlink) { l.Followed = false }
	deep := func(l *schema.Inlink) { l.SourceDepth = 15 }
	w := world{
		buckets: 2,
		fetches: []schema.Fetch{fetch(t, "http://www.a.example/", schema.OK, nil), fetch(t, "http://b.example/", schema.OK, nil)},
		inlinks: []schema.Inlink{
			link(t, "http://www.a.example/", nil), link(t, "http://www.a.example/new", nil), link(t, "http://sub.a.example/", nil), link(t, "http://c.example/", nil),
			link(t, "http://b.example/nofollow", nofollow), link(t, "http://b.example/deep", deep),
			link(t, "http://b.example/secret", nil), link(t, "http://b.example/x/x/x/x", nil),
		},
	}
	always := []string{"b.example/deep depth 16", "b.example/nofollow nofollow 3", "b.example/secret out_of_scope 3", "b.example/x/x/x/x trap 3"}
	fetched := []string{"b.example/ fetched 2", "www.a.example/ fetched 2"}
	for _, tc := range []struct {
		follow Follow
		found  []string
		out    []string
	}{
		{FollowAny, []string{"c.example/", "sub.a.example/", "www.a.example/new"}, nil},
		{FollowDomain, []string{"sub.a.example/", "www.a.example/new"}, []string{"c.example/"}},
		{FollowHost, []string{"www.a.example/new"}, []string{"c.example/", "sub.a.example/"}},
		{FollowNone, nil, []string{"c.example/", "sub.a.example/", "www.a.example/new"}},
	} {
		t.Run(string(tc.follow), func(t *testing.T) {
			cfg := Default()
			cfg.Follow, cfg.Scope = tc.follow, scope{}
			urls, skips, _ := run(t, bucket(t), cfg, w)
			wantURLs, wantSkips := slices.Clone(fetched), slices.Clone(always)
			for _, u := range tc.found {
				wantURLs = append(wantURLs, u+" found 3 a.example/")
			}
			for _, u := range tc.out {
				wantSkips = append(wantSkips, u+" out_of_scope 3")
			}
			if tc.follow == FollowNone { // every found URL is out of scope, so later rules are not checked
				wantSkips = []string{"b.example/deep out_of_scope 16", "b.example/nofollow nofollow 3", "b.example/secret out_of_scope 3", "b.example/x/x/x/x out_of_scope 3",
					"c.example/ out_of_scope 3", "sub.a.example/ out_of_scope 3", "www.a.example/new out_of_scope 3"}
			}
			slices.Sort(wantURLs)
			slices.Sort(wantSkips)
			check(t, "urls", wantURLs, states(urls))
			check(t, "skips", wantSkips, reasons(skips))
		})
	}
}

func TestWhatThePlanRefusedIsSkippedWithItsLine(t *testing.T) {
	refuse := func(url string, r schema.SkipReason, line int64) schema.Refused {
		k := key(t, url)
		return schema.Refused{SURT: k.SURT, URL: k.URL, Domain: k.Domain, Reason: r, Source: "urls.txt", Line: line}
	}
	b := bucket(t)
	urls, skips, results := run(t, b, Default(), world{
		buckets: 2,
		fetches: []schema.Fetch{fetch(t, "http://a.example/", schema.OK, nil)},
		inlinks: []schema.Inlink{link(t, "http://c.example/out", nil)},
		refused: []schema.Refused{
			{URL: "# comment", Reason: schema.SkipNotURL, Source: "urls.txt", Line: 7},
			{URL: "mailto:x", Reason: schema.SkipScheme, Source: "urls.txt", Line: 8},
			refuse("http://a.example/more", schema.SkipBudget, 9), refuse("http://b.example/known", schema.SkipBudget, 0),
			refuse("http://c.example/out", schema.SkipOutOfScope, 10), refuse("http://c.example/out", schema.SkipOutOfScope, 11),
		},
	}, seal(t, b, "2026-11", 0, 1, state(t, "http://b.example/known", schema.StateFound, nil)))
	check(t, "skips", []string{
		"# comment not_url 0", "a.example/more budget 0", "b.example/known budget 0", "c.example/out out_of_scope 0", "c.example/out out_of_scope 0", "mailto:x bad_scheme 0",
	}, reasons(skips))
	check(t, "urls", []string{"a.example/ fetched 2", "a.example/more found 0"}, states(urls))
	lines := map[int64]bool{}
	waiting, counted := int64(0), int64(0)
	for _, s := range skips {
		lines[s.Line] = true
	}
	for _, r := range results {
		waiting += r.Count("waiting")
		counted += r.Count("skip.budget") + r.Count("skip.out_of_scope") + r.Count("state.fetched") + r.Count("urls") + r.Count("skips")
	}
	if len(lines) != 6 {
		t.Errorf("lines %v", lines)
	}
	if waiting != 2 || counted != 2+2+1+2+6 {
		t.Errorf("%d waiting, counts sum to %d", waiting, counted)
	}
}

func TestKnownURLs(t *testing.T) {
	b := bucket(t)
	planned := func(r *schema.URLRecord) { r.LastPlanned = "2026-11.0" }
	before := func(digest string) func(*schema.URLRecord) {
		return func(r *schema.URLRecord) {
			r.Fetches, r.ContentDigest, r.LastFetched, r.RevisitMS, r.NextDue = 3, digest, at-16*day, 16*dayMS, at
			r.LastPlanned = "2026-10.0"
		}
	}
	urls, skips, _ := run(t, b, Default(), world{
		buckets: 4, // the earlier rounds had 3 buckets and 1 bucket
		fetches: []schema.Fetch{
			fetch(t, "http://a.example/same", schema.OK, nil), fetch(t, "http://a.example/changed", schema.OK, nil),
			fetch(t, "http://a.example/failed", schema.Timeout, nil), fetch(t, "http://a.example/304", schema.NotModified, func(f *schema.Fetch) { f.HTTPStatus = 304 }),
		},
		inlinks: []schema.Inlink{
			link(t, "http://a.example/nearer", nil), link(t, "http://b.example/new", nil), link(t, "http://c.example/new", nil), link(t, "http://a.example/fetched", nil),
			link(t, "http://a.example/as-it-was", func(l *schema.Inlink) { l.SourceDepth = 9 }),
		},
	},
		seal(t, b, "2026-10", 0, 3, state(t, "http://c.example/", schema.StateFetched, func(r *schema.URLRecord) { r.LastPlanned = "2026-10.0" }),
			state(t, "http://a.example/same", schema.StateFetched, before("D")), state(t, "http://a.example/changed", schema.StateFetched, before("old")),
			state(t, "http://a.example/304", schema.StateFetched, before("D")),
			state(t, "http://a.example/failed", schema.StateFound, nil)),
		seal(t, b, "2026-11", 0, 1, state(t, "http://b.example/", schema.StateFetched, planned), state(t, "http://a.example/nearer", schema.StateFound, nil),
			state(t, "http://a.example/fetched", schema.StateFetched, nil),
			state(t, "http://a.example/as-it-was", schema.StateFound, nil), state(t, "http://a.example/failed", schema.StateFailed, func(r *schema.URLRecord) { r.Failures = 2 })),
	)
	check(t, "urls", []string{
		"a.example/304 fetched 2", "a.example/changed fetched 2", "a.example/failed failed 2", "a.example/nearer found 3", "a.example/same fetched 2", "b.example/new found 3 a.example/",
	}, states(urls))
	check(t, "skips", []string{"c.example/new out_of_scope 3"}, reasons(skips))
	for _, u := range urls {
		var want schema.URLRecord
		switch u.URL {
		case "http://a.example/same", "http://a.example/304": // the interval was 16 days, and the page has not changed, so it doubles at least
			want = schema.URLRecord{Fetches: 4, NextDue: max(u.NextDue, at+32*day), ContentDigest: "D"}
		case "http://a.example/changed":
			want = schema.URLRecord{Fetches: 4, NextDue: min(u.NextDue, urls[4].NextDue-day), ContentDigest: "D", Changes: 1} // sooner than the page that has not
		case "http://a.example/failed": // the URL has failed for the third time
			want = schema.URLRecord{Failures: 3, NextDue: at + 4*day}
		default:
			continue
		}
		if u.Fetches != want.Fetches || u.NextDue != want.NextDue || u.Changes != want.Changes || u.Failures != want.Failures || u.ContentDigest != want.ContentDigest || u.FirstSeen != "2026-10.0" {
			t.Errorf("%+v\nwant %+v", u, want)
		}
	}
}

// A page is due sooner if its host's sitemap says that the page has changed since its fetch.
// Sitemaps beyond a limit do not count.
func TestSitemapsBringPagesForward(t *testing.T) {
	b := bucket(t)
	const then = 100 // day of the earlier fetch
	was := func(s schema.URLState) func(*schema.URLRecord) {
		return func(r *schema.URLRecord) {
			r.LastFetched, r.NextDue, r.Fetches, r.LastPlanned = then*day, (then+30)*day, 2, "2026-10.0"
		}
	}
	said := func(days schema.Time) func(*schema.Inlink) { return func(l *schema.Inlink) { l.LastMod = days * day } }
	names := []string{"changed", "changed-at-once", "changed-before", "will-change", "will-change-late", "not-said", "gone"}
	var known []schema.URLRecord
	for _, n := range names {
		s := schema.StateFetched
		if n == "gone" {
			s = schema.StateGone
		}
		known = append(known, state(t, "http://a.example/"+n, s, was(s)))
	}
	urls, _, _ := run(t, b, Default(), world{
		fetches: []schema.Fetch{fetch(t, "http://a.example/now", schema.OK, nil)},
		inlinks: []schema.Inlink{
			link(t, "http://a.example/changed", said(then+7)), link(t, "http://a.example/changed-at-once", func(l *schema.Inlink) { l.LastMod = then*day + 1 }),
			link(t, "http://a.example/changed-before", said(then)), link(t, "http://a.example/will-change", said(then+29)),
			link(t, "http://a.example/will-change-late", said(then+31)), link(t, "http://a.example/not-said", nil), link(t, "http://a.example/gone", said(then+7)),
			link(t, "http://a.example/now", func(l *schema.Inlink) { l.LastMod = at + 3*day }),
		},
	}, seal(t, b, "2026-10", 0, 1, known...))
	got := map[string]schema.Time{}
	for _, u := range urls {
		got[u.URL] = u.NextDue
		if u.State != schema.StateFetched || u.LastPlanned == "" {
			t.Errorf("%+v", u)
		}
	}
	want := map[string]schema.Time{
		"http://a.example/changed":         (then + 7) * day,
		"http://a.example/changed-at-once": (then + 1) * day,
		"http://a.example/will-change":     (then + 29) * day,
		"http://a.example/now":             at + 3*day,
	}
	if d := gocmp.Diff(want, got); d != "" {
		t.Errorf("due (-want +got):\n%s", d)
	}
}

// Announcements do not change the interval learned from a page's changes. Each false announcement
// delays the fetches that later announcements of the page can cause.
func TestAnnouncementsDoNotUnlearnTheInterval(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	const start = 1000 * day // time of the first visit; the previous visit was 100 days earlier
	const url = "http://a.example/page"
	type visit struct {
		digest   string
		lastmod  func(fetched schema.Time) schema.Time // date in the sitemap after the visit; nil if the sitemap has no date
		interval float64                               // days until the page is due again; the least number without an announcement
	}
	now := func(fetched schema.Time) schema.Time { return fetched.Add(3 * time.Hour) } // a sitemap that always states the current time
	same := func(n int, interval float64, lastmod func(schema.Time) schema.Time) visit {
		return visit{fmt.Sprint("D", n), lastmod, interval}
	}
	for name, tc := range map[string]struct {
		prior  schema.URLRecord
		visits []visit
	}{
		"announced once": {
			schema.URLRecord{NextDue: start, RevisitMS: 100 * dayMS},
			[]visit{same(0, 1, now), same(0, 150, nil), same(0, 180, nil)},
		},
		"announced twice": {
			schema.URLRecord{NextDue: start - day, RevisitMS: 101 * dayMS},
			[]visit{same(0, 2, now), same(0, 101, nil), same(0, 151.5, nil)},
		},
		"announced, and fetched when it was due anyway": {
			schema.URLRecord{NextDue: start - 90*day, RevisitMS: 90 * dayMS},
			[]visit{same(0, 135, nil)},
		},
		"a sitemap that always says now": {
			schema.URLRecord{NextDue: start - 80*day, RevisitMS: 20 * dayMS},
			[]visit{
				same(0, 1, now), same(0, 2, now), same(0, 4, now), same(0, 8, now), same(0, 16, now), same(0, 32, now),
				same(0, 64, now), same(0, 128, now), same(0, 128, nil),
			},
		},
		"a change that was announced": {
			schema.URLRecord{NextDue: start - 99*day, RevisitMS: 40 * dayMS, FalseAlarms: 3},
			[]visit{same(1, 1, now), same(2, 1, now), same(2, 2, now), same(2, 10, nil)},
		},
		"more false alarms than there are days": {
			schema.URLRecord{NextDue: start - 50*day, RevisitMS: 180 * dayMS, FalseAlarms: 1 << 30},
			[]visit{same(0, 180, now)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := tc.prior
			r.State, r.Fetches, r.ContentDigest, r.LastFetched, r.LastPlanned = schema.StateFetched, 3, "D0", start-100*day, "2026-10.0"
			when := start
			for n, v := range tc.visits {
				b := bucket(t)
				prior := state(t, url, r.State, func(p *schema.URLRecord) {
					surt, host, domain := p.SURT, p.Host, p.Domain
					*p = r
					p.SURT, p.URL, p.Host, p.Domain, p.FirstSeen = surt, url, host, domain, "2026-10.0"
				})
				w := world{fetches: []schema.Fetch{fetch(t, url, schema.OK, func(f *schema.Fetch) {
					f.FetchedAt, f.RecordedAt, f.ContentDigest = when, when, v.digest
				})}}
				if v.lastmod != nil {
					w.inlinks = []schema.Inlink{link(t, url, func(l *schema.Inlink) { l.LastMod = v.lastmod(when) })}
				}
				urls, _, _ := run(t, b, Default(), w, seal(t, b, "2026-10", 0, 1, prior))
				if len(urls) != 1 {
					t.Fatalf("%d rows", len(urls))
				}
				r = urls[0]
				if got := r.NextDue.Sub(when).Hours() / 24; v.lastmod != nil && got != v.interval || got < v.interval {
					t.Fatalf("after visit %d the page is due in %g days, want %g: %+v", n, got, v.interval, r)
				}
				when = r.NextDue // the next visit comes when the page is due
			}
		})
	}
}

// Every target of many random links of a followed kind has a row of urls or skips (invariant 6). The
// number of buckets does not change the result.
func TestNoTargetIsLost(t *testing.T) {
	var w world
	url := func(n uint64) string {
		return fmt.Sprintf("http://h%d.d%d.example/%d", n%3, n/3%17, n/51%40)
	}
	seen := map[string]bool{}
	kinds := map[string]bool{}
	for n := range uint64(600) {
		r := urlkey.Hash(fmt.Sprint("link", n))
		if u := url(r); !seen[u] {
			seen[u] = true
			w.inlinks = append(w.inlinks, link(t, u, func(l *schema.Inlink) { l.Followed, l.SourceDepth = r>>60&3 != 0, int32(r>>56&15) }))
			kinds[u] = true
		}
	}
	fetched := map[string]bool{}
	for n := range uint64(100) {
		r := urlkey.Hash(fmt.Sprint("fetch", n))
		u, to := url(r), url(r>>32)
		if fetched[u] {
			continue
		}
		fetched[u] = true
		if r>>63 == 0 {
			w.fetches = append(w.fetches, fetch(t, u, schema.OK, nil))
		} else {
			w.fetches = append(w.fetches, fetch(t, u, schema.Redirected, redirectTo(to)))
			kinds[to] = true
		}
	}
	var first []string
	for _, buckets := range []int{1, 2, 7} {
		w.buckets = buckets
		urls, skips, results := run(t, bucket(t), Default(), w)
		all := append(states(urls), reasons(skips)...)
		slices.Sort(all)
		if first == nil {
			first = all
		}
		check(t, fmt.Sprintf("%d buckets", buckets), first, all)
		ends := map[string]int{}
		for _, u := range urls {
			ends[u.URL]++
		}
		for _, s := range skips {
			ends[s.URL]++
		}
		for u, followed := range kinds {
			if want := followed || fetched[u]; want && ends[u] != 1 || !want && ends[u] != 0 {
				t.Errorf("%d buckets: %s must have a row: %v, but it has %d rows of urls and skips", buckets, u, want, ends[u])
			}
		}
		_, _, again := run(t, bucket(t), Default(), w)
		if d := gocmp.Diff(results, again); d != "" {
			t.Errorf("the same inputs gave other bytes:\n%s", d)
		}
	}
}

// A bucket of many partitions gives the same rows, and few of its files are open at a time.
func TestABucketOfManyPartitionsOpensFewFiles(t *testing.T) {
	w := randomWorld(t, rand.New(rand.NewPCG(1, 2)), 1)
	for _, f := range w.fetches {
		w.captures = append(w.captures, schema.Capture{URLColumns: schema.URLColumns{SURT: f.SURT, URL: f.URL}, CaptureColumns: schema.CaptureColumns{FetchStatus: 301}})
		w.pages = append(w.pages, schema.WorkingPage{PageColumns: schema.PageColumns{URLColumns: schema.URLColumns{SURT: f.SURT, URL: f.URL}}})
	}
	urls, skips, _ := run(t, bucket(t), Default(), w)
	w.partitions = 100
	b := &storetest.OpenCounter{Bucket: bucket(t)}
	gotURLs, gotSkips, _ := run(t, b, Default(), w)
	if d := gocmp.Diff(urls, gotURLs) + gocmp.Diff(skips, gotSkips); d != "" {
		t.Errorf("100 partitions give other rows than one:\n%s", d)
	}
	if open, most := b.Counts(); most > 64 || open != 0 {
		t.Errorf("%d files were open at the same time, at most 64 expected; %d still are", most, open)
	}
}

func TestTheFilterOfABucketHoldsWhatItsPartsHold(t *testing.T) {
	w := world{
		buckets: 3,
		fetches: []schema.Fetch{fetch(t, "http://a.example/", schema.OK, nil), fetch(t, "http://b.example/", schema.HTTP5xx, nil)},
		inlinks: []schema.Inlink{link(t, "http://a.example/found", nil), link(t, "http://c.example/elsewhere", nil)},
	}
	b, again := bucket(t), bucket(t)
	urls, skips, results := run(t, b, Default(), w)
	if len(urls) != 3 || len(skips) != 1 {
		t.Fatalf("%d urls, %d skips", len(urls), len(skips))
	}
	filters := make([]*urlfilter.Filter, w.buckets)
	keys := int64(0)
	for n, r := range results {
		f := r.FilesOf(stages.FileURLFilter)
		if len(f) != 1 || f[0].Key != layout.URLFilter("2026-11", 1, n) || f[0].Rows != r.Files[0].Rows+r.Files[1].Rows {
			t.Fatalf("bucket %d: %+v", n, f)
		}
		filter, err := urlfilter.Open(t.Context(), b, f[0].Key)
		if err != nil {
			t.Fatal(err)
		}
		filters[n], keys = filter, keys+filter.Keys()
	}
	if keys != 4 {
		t.Errorf("%d keys", keys)
	}
	for _, u := range []string{urls[0].URL, urls[1].URL, urls[2].URL, skips[0].URL} {
		if n := urlkey.Bucket(key(t, u).Domain, w.buckets); !filters[n].MayHold(u) {
			t.Errorf("the filter of bucket %d lacks %s", n, u)
		}
	}
	if _, _, same := run(t, again, Default(), w); gocmp.Diff(results, same) != "" {
		t.Errorf("the second run gave another result: %s", gocmp.Diff(results, same))
	}
}

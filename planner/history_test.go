package planner

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/priority"
	"crawlbatch.io/crawlbatch/formats/recrawl"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/formats/urlfilter"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/formats/urlstate"
	"crawlbatch.io/crawlbatch/planner/source"
)

const knownURLs = 3000

func knownURL(n int) string { return fmt.Sprintf("http://h%d.d%d.example/%d", n%7, n%40, n) }

// sealHistory stores what two rounds of 2026-10 know. The first has half as many buckets as the
// second. If the argument based is true, the second round has bases. The function doubt adds URLs
// that are not in the tables to the URL filters, so that the filters give false positives.
func sealHistory(t *testing.T, b store.Bucket, based bool, doubt func(w *urlfilter.Writer) error) []*manifest.Sealed {
	t.Helper()
	rounds := [][]schema.URLRecord{nil, nil}
	newest := map[string]schema.URLRecord{}
	for n := range knownURLs {
		k, err := urlkey.KeyOf(knownURL(n))
		if err != nil {
			t.Fatal(err)
		}
		for round, every := range []int{1, 3} {
			if n%every != 0 {
				continue
			}
			r := schema.URLRecord{
				SURT: k.SURT, URL: k.URL, Host: k.Host, Domain: k.Domain, State: schema.StateFetched, FirstSeen: "2026-10.0", Fetches: int32(round + 1),
				ETag: fmt.Sprint("etag", n, ".", round), ContentDigest: fmt.Sprint("D", n), LastFetched: schema.Time(1000 * (round + 1)), NextDue: 10_000,
				WARCFilename: fmt.Sprint("warc/", round), WARCRecordOff: int32(n), WARCRecordLen: 9, ContentAt: 77, Depth: 3, Priority: 900,
			}
			if n%20 == 0 {
				r.Form = schema.Form{Sent: k.URL + "?", SentFrom: schema.SentAnswered}
			}
			rounds[round], newest[k.URL] = append(rounds[round], r), r
		}
	}
	var sealed []*manifest.Sealed
	for round, rows := range rounds {
		s := &manifest.Sealed{Crawl: "2026-10", Round: round, Buckets: 2 << round}
		for bucket := range s.Buckets {
			of := func(rows []schema.URLRecord) []schema.URLRecord {
				rows = slices.DeleteFunc(slices.Clone(rows), func(r schema.URLRecord) bool { return urlkey.Bucket(r.Domain, s.Buckets) != bucket })
				slices.SortFunc(rows, func(a, b schema.URLRecord) int { return schema.CompareURLs(a.SURT, a.URL, b.SURT, b.URL) })
				return rows
			}
			part := of(rows)
			w, err := urlfilter.NewWriter(filepath.Join(t.TempDir(), "known"))
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range part {
				err = w.Add(r.URL)
			}
			if doubt != nil && err == nil {
				err = doubt(w)
			}
			if err != nil {
				t.Fatal(err)
			}
			filter, err := w.Finish(t.Context(), b, urlstate.Filter, layout.URLFilter("2026-10", round, bucket))
			if err != nil {
				t.Fatal(err)
			}
			s.Files = append(s.Files, filter, tabletest.Write(t, b, urlstate.Delta, layout.Table(urlstate.Delta, "2026-10", round, bucket), part))
			if round == 1 && based {
				var all []schema.URLRecord
				for _, r := range newest {
					all = append(all, r)
				}
				s.Files = append(s.Files, tabletest.Write(t, b, urlstate.Base, layout.Working("2026-10", 1, "frontier", urlstate.BaseName(1), bucket), of(all)))
			}
		}
		sealed = append(sealed, s)
	}
	return sealed
}

// someListed returns every tenth known URL, and as many others.
func someListed() (urls []string) {
	for n := 0; n < knownURLs; n += 10 {
		urls = append(urls, knownURL(n), knownURL(n)+"/unknown")
	}
	rand.New(rand.NewPCG(2, 2)).Shuffle(len(urls), func(i, j int) { urls[i], urls[j] = urls[j], urls[i] })
	return urls
}

// A listed URL is planned with what earlier rounds know, whether few URLs are listed or many, and
// however often the filters are wrong.
func TestListedURLsAreJoinedWithTheirHistory(t *testing.T) {
	half := func(w *urlfilter.Writer) (err error) {
		for n := 0; n < knownURLs && err == nil; n += 2 {
			err = w.Add(knownURL(n))
		}
		return err
	}
	var first *manifest.Plan
	for _, tc := range []struct {
		name  string
		based bool
		few   int
		bytes int64
		doubt func(*urlfilter.Writer) error

		found, wrong int64 // of two files each with 600 listed URLs: answers of the filters; a base has no filter
	}{
		{"few, with their SURTs", false, 1000, 1 << 20, nil, 400, 0},
		{"few, and every other answer of the URL filters is wrong", false, 1000, 1 << 20, half, 400, 200},
		{"few, and bases", true, 1000, 1 << 20, nil, 0, 0},
		{"many, in a filter", false, 10, 1 << 20, nil, 0, 0},
		{"many, in a filter that is half full", false, 10, 640, nil, 0, 0},
		{"many, in a filter that is full", true, 10, 64, nil, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := bucket(t)
			cfg := Default()
			cfg.fewListed, cfg.listedBytes = tc.few, tc.bytes
			r := request(t, lines(someListed()...))
			answers := new(source.FilterAnswers)
			r.History = []source.Known{source.History(b, sealHistory(t, b, tc.based, tc.doubt), answers)}
			p, err := Make(t.Context(), cfg, r)
			if err != nil {
				t.Fatal(err)
			}
			asked := int64(0)
			if tc.found > 0 {
				asked = 1200
			}
			// A filter may be wrong about one URL in a thousand.
			if a := answers; a.Found != tc.found || a.NotFound < tc.wrong || a.NotFound > tc.wrong+10 || a.Absent+a.Found+a.NotFound != asked {
				t.Errorf("answers of the URL filters: %+v", *a)
			}
			m, parts, _ := commitAndRead(t, b, p)
			if first == nil {
				first = m
			}
			if m.ID != first.ID {
				t.Errorf("plan %s, want %s", m.ID, first.ID)
			}
			known := 0
			for _, u := range slices.Concat(parts...) {
				if u.Priority != source.DefaultPriority || u.Depth != 0 {
					t.Errorf("%s has priority %d and depth %d of what is known", u.URL, u.Priority, u.Depth)
				}
				if strings.HasSuffix(u.URL, "unknown") {
					if u.Fetches != 0 || u.ETag != "" {
						t.Errorf("%+v", u)
					}
					continue
				}
				known++
				n, err := strconv.Atoi(u.ContentDigest[1:])
				round := 0
				if n%3 == 0 {
					round = 1
				}
				etag, warc, off := fmt.Sprint("etag", n, ".", round), fmt.Sprint("warc/", round), int32(n)
				if n%20 == 0 { // another form gave the content
					etag, warc, off = "", "", 0
				}
				if err != nil || u.URL != knownURL(n) || u.Fetches != int32(round+1) || u.ETag != etag || u.ContentDigest != fmt.Sprint("D", n) ||
					u.WARCFilename != warc || u.WARCRecordOff != off || u.ContentAt != 77 || u.Form != (schema.Form{SentFrom: schema.SentBySource}) {
					t.Errorf("%+v", u)
				}
			}
			if known != knownURLs/10 {
				t.Errorf("%d known URLs", known)
			}
			if d := cmp.Diff([]string{"urls.txt"}, m.Sources); d != "" {
				t.Error(d)
			}
		})
	}
}

// The own frontier of a crawl that continues another has what a round of the crawl has found or
// planned, and no more.
func TestTheOwnFrontierHasWhatTheCrawlFound(t *testing.T) {
	b := bucket(t)
	row := func(path string, s schema.URLState, first, planned string, due schema.Time) schema.URLRecord {
		k, err := urlkey.KeyOf("http://a.example/" + path)
		if err != nil {
			t.Fatal(err)
		}
		return schema.URLRecord{SURT: k.SURT, URL: k.URL, Host: k.Host, Domain: k.Domain, State: s, FirstSeen: first, LastPlanned: planned, NextDue: due}
	}
	rows := []schema.URLRecord{
		row("again", schema.StateFound, "2026-10.0", "2026-10.1", 0),
		row("announced", schema.StateFetched, "2026-10.0", "2026-10.1", 500),
		row("deferred", schema.StateDeferred, "2026-10.0", "2026-11.0", 0),
		row("new", schema.StateFound, "2026-11.0", "", 0),
		row("planned", schema.StateFailed, "2026-10.0", "2026-11.0", 900),
		row("waits", schema.StateDeferred, "2026-10.0", "", 0),
	}
	f := tabletest.Write(t, b, urlstate.Delta, layout.Table(urlstate.Delta, "2026-11", 0, 0), rows)
	own := []*manifest.Sealed{{Crawl: "2026-11", Round: 0, Files: []manifest.File{f}, Buckets: 1}}
	r := request(t)
	r.History = []source.Known{source.OwnFrontier(b, "2026-11", own, time.UnixMicro(1000), priority.Weights{}, recrawl.Rule{}, t.TempDir()), source.History(b, nil, new(source.FilterAnswers))}
	p, err := Make(t.Context(), Default(), r)
	if err != nil {
		t.Fatal(err)
	}
	_, parts, _ := commitAndRead(t, b, p)
	want := []string{"http://a.example/again", "http://a.example/deferred", "http://a.example/new", "http://a.example/planned"}
	if d := cmp.Diff(want, planned(parts)); d != "" {
		t.Error(d)
	}
}

func TestWhatWasFetchedWithinATimeIsRefused(t *testing.T) {
	entry := func(path string, at schema.Time) source.Entry {
		return source.Entry{URL: "http://a.example/" + path, Due: true, Fetches: 1, FetchedAt: at, ETag: "e"}
	}
	now := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	cfg := Default()
	cfg.SkipWithin = 12 * time.Hour
	r := request(t, known(entry("before", schema.TimeOf(now.Add(-12*time.Hour-time.Millisecond))), entry("within", schema.TimeOf(now.Add(-12*time.Hour))), entry("never", 0)))
	r.Now = now
	p, err := Make(t.Context(), cfg, r)
	if err != nil {
		t.Fatal(err)
	}
	_, parts, refused := commitAndRead(t, bucket(t), p)
	if d := cmp.Diff([]string{"http://a.example/before", "http://a.example/never"}, planned(parts)); d != "" {
		t.Error(d)
	}
	if len(refused) != 1 || refused[0].URL != "http://a.example/within" || refused[0].Reason != schema.SkipRecent ||
		refused[0].Detail != "fetched at 2026-11-19T12:00:00Z, plan.skip_within is 12h0m0s" {
		t.Errorf("%+v", refused)
	}
}

// A page whose links nobody knows is requested without validators, unless nobody needs them.
func TestAPageIsRequestedConditionallyIfItsLinksAreKnown(t *testing.T) {
	entry := func(path, warc string) source.Entry {
		return source.Entry{URL: "http://a.example/" + path, Due: true, Fetches: 1, ETag: "e", LastModified: "m", ContentDigest: "D", Content: source.Content{Filename: warc, At: 1}}
	}
	for _, needed := range []bool{true, false} {
		r := request(t, known(entry("known", "stored"), entry("lost", "lost"), entry("nowhere", "")))
		if needed {
			r.HasLinks = func(warc string) bool { return warc == "stored" }
		}
		p, err := Make(t.Context(), Default(), r)
		if err != nil {
			t.Fatal(err)
		}
		_, parts, _ := commitAndRead(t, bucket(t), p)
		got := map[string]bool{}
		for _, u := range slices.Concat(parts...) {
			if u.ContentDigest != "D" || (u.ETag == "e") != (u.LastModified == "m") {
				t.Errorf("%+v", u)
			}
			got[strings.TrimPrefix(u.URL, "http://a.example/")] = u.ETag != ""
		}
		if d := cmp.Diff(map[string]bool{"known": true, "lost": !needed, "nowhere": !needed}, got); d != "" {
			t.Errorf("links are needed: %v: %s", needed, d)
		}
	}
}

// A month of many rounds has more tables of URLs than may be open at the same time.
func TestTheOwnFrontierOfManyRoundsHasTheNewestStates(t *testing.T) {
	const rounds = 70
	b := bucket(t)
	row := func(path string, priority int32) schema.URLRecord {
		k, err := urlkey.KeyOf("http://a.example/" + path)
		if err != nil {
			t.Fatal(err)
		}
		return schema.URLRecord{SURT: k.SURT, URL: k.URL, Host: k.Host, Domain: k.Domain, State: schema.StateFound, FirstSeen: "2026-11.0", Priority: priority}
	}
	var own []*manifest.Sealed
	for n := range rounds {
		f := tabletest.Write(t, b, urlstate.Delta, layout.Table(urlstate.Delta, "2026-11", n, 0), []schema.URLRecord{row("0", int32(n)), row(fmt.Sprint("page", n), 500)})
		own = append(own, &manifest.Sealed{Crawl: "2026-11", Round: n, Files: []manifest.File{f}, Buckets: 1})
	}
	open := &opens{Bucket: b}
	r := request(t)
	r.History = []source.Known{source.OwnFrontier(open, "2026-11", own, time.UnixMilli(1000), priority.Weights{}, recrawl.Rule{}, t.TempDir())}
	p, err := Make(t.Context(), Default(), r)
	if err != nil {
		t.Fatal(err)
	}
	_, parts, _ := commitAndRead(t, b, p)
	urls := slices.Concat(parts...)
	at := slices.IndexFunc(urls, func(u schema.PlannedURL) bool { return u.URL == "http://a.example/0" })
	if len(urls) != rounds+1 || at < 0 || urls[at].Priority != rounds-1 {
		t.Errorf("%d URLs: %+v", len(urls), urls)
	}
	if most := open.most.Load(); most > 64 {
		t.Errorf("%d tables are open at the same time", most)
	}
}

// opens counts the objects of a bucket that are open.
type opens struct {
	store.Bucket
	now, most atomic.Int64
}

func (o *opens) Open(ctx context.Context, key string) (store.Object, error) {
	obj, err := o.Bucket.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	if n := o.now.Add(1); n > o.most.Load() {
		o.most.Store(n)
	}
	return &opened{obj, o}, nil
}

type opened struct {
	store.Object
	of *opens
}

func (o *opened) Close() error {
	o.of.now.Add(-1)
	return o.Object.Close()
}

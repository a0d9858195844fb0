package lookup

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/formats/urlfilter"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/formats/urlstate"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/stages"
)

const crawl = "2026-11"

// openLog is a bucket that records the keys of the objects that a test opens.
type openLog struct {
	store.Bucket
	keys []string
}

func (o *openLog) Open(ctx context.Context, key string) (store.Object, error) {
	o.keys = append(o.keys, key)
	return o.Bucket.Open(ctx, key)
}

// tables returns the opened tables.
func (o *openLog) tables() []string {
	return slices.DeleteFunc(slices.Clone(o.keys), func(k string) bool { return !strings.HasSuffix(k, ".parquet") })
}

func key(t *testing.T, url string) urlkey.Key {
	t.Helper()
	k, err := urlkey.KeyOf(url)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// round is the content of one bucket's tables in a sealed round.
type round struct {
	states map[string]schema.URLState
	skips  map[string]schema.SkipReason
}

// fill stores sealed rounds with the given number of buckets, and the plan of the next round.
func fill(t *testing.T, buckets int, rounds []round, plan ...string) *openLog {
	t.Helper()
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	create := func(key string, d manifest.Document) {
		if _, err := manifest.Create(t.Context(), b, key, d); err != nil {
			t.Fatal(err)
		}
	}
	create(layout.CrawlManifest(crawl), &manifest.Crawl{Crawl: crawl})
	for number, r := range rounds {
		s := &manifest.Sealed{Crawl: crawl, Round: number, Buckets: buckets}
		for n := range buckets {
			w, err := urlfilter.NewWriter(filepath.Join(t.TempDir(), "known"))
			if err != nil {
				t.Fatal(err)
			}
			var states []schema.URLRecord
			var skips []schema.Skip
			add := func(url string) bool {
				if urlkey.Bucket(key(t, url).Domain, buckets) != n {
					return false
				}
				if err := w.Add(url); err != nil {
					t.Fatal(err)
				}
				return true
			}
			for url, state := range r.states { // map order does not matter: the rows are sorted below
				if add(url) {
					states = append(states, schema.URLRecord{SURT: key(t, url).SURT, URL: url, State: state, FirstSeen: "2026-11.0"})
				}
			}
			for url, reason := range r.skips { // map order does not matter: the rows are sorted below
				if add(url) {
					skips = append(skips, schema.Skip{SURT: key(t, url).SURT, URL: url, Reason: reason})
				}
			}
			slices.SortFunc(states, func(a, b schema.URLRecord) int { return strings.Compare(a.SURT+" "+a.URL, b.SURT+" "+b.URL) })
			slices.SortFunc(skips, func(a, b schema.Skip) int { return strings.Compare(a.SURT+" "+a.URL, b.SURT+" "+b.URL) })
			filter, err := w.Finish(t.Context(), b, stages.FileURLFilter, layout.URLFilter(crawl, number, n))
			if err != nil {
				t.Fatal(err)
			}
			s.Files = append(s.Files, filter,
				tabletest.Write(t, b, stages.FileURLs, layout.Table(stages.FileURLs, crawl, number, n), states),
				tabletest.Write(t, b, stages.FileSkips, layout.Table(stages.FileSkips, crawl, number, n), skips))
		}
		slices.SortFunc(s.Files, func(a, b manifest.File) int { return strings.Compare(a.Key, b.Key) })
		create(layout.Sealed(crawl, number), s)
	}
	if len(plan) > 0 {
		p := &manifest.Plan{ID: "abc", Crawl: crawl, Round: len(rounds), Buckets: buckets}
		for n, url := range plan { // the plan has one partition for each URL
			k := key(t, url)
			p.Partitions = append(p.Partitions, manifest.PlanPartition{
				Partition: n, Bucket: urlkey.Bucket(k.Domain, buckets),
				File: tabletest.Write(t, b, "", layout.PlanPart(crawl, len(rounds), p.ID, n),
					[]schema.PlannedURL{{URL: url, SURT: k.SURT, Host: k.Host, Domain: k.Domain}}),
			})
		}
		file := tabletest.Write(t, b, "refused", layout.PlanRefused(crawl, len(rounds), p.ID), []schema.Refused{
			{URL: "http://c.test/late", SURT: key(t, "http://c.test/late").SURT, Reason: schema.SkipBudget, Detail: "5 URLs of c.test a crawl"},
			{URL: "not a URL", Reason: schema.SkipNotURL},
		})
		p.RefusedFile = &file
		create(layout.PlanManifest(crawl, len(rounds), p.ID), p)
	}
	ledgertest.Make(t, b, crawl)
	return &openLog{Bucket: b}
}

func find(t *testing.T, b store.Bucket, url string) (Found, error) {
	t.Helper()
	c, err := Open(t.Context(), b, crawl, time.UnixMilli(1000))
	if err != nil {
		t.Fatal(err)
	}
	return c.Find(t.Context(), key(t, url))
}

// shortFound is a short form of Found.
type shortFound struct {
	State, Skip string // outcome and reason, each with the name of its round
	Partition   int    // number of the partition; -1 if the URL is not planned
}

func short(f Found) shortFound {
	s := shortFound{Partition: -1}
	if f.State != nil {
		s.State = f.State.Round + " " + string(f.State.State)
	}
	if f.Skip != nil {
		s.Skip = f.Skip.Round + " " + string(f.Skip.Reason)
	}
	if f.Planned != nil {
		s.Partition = f.Planned.Partition
	}
	return s
}

func history() []round {
	return []round{
		{map[string]schema.URLState{"http://a.test/": schema.StateFetched, "http://a.test/new": schema.StateFound, "http://b.test/": schema.StateFound},
			map[string]schema.SkipReason{"http://c.test/deep": schema.SkipDepth, "http://b.test/": schema.SkipBudget, "http://c.test/late": schema.SkipTrap}},
		{map[string]schema.URLState{"http://a.test/new": schema.StateGone, "http://c.test/late": schema.StateFound},
			map[string]schema.SkipReason{"http://a.test/": schema.SkipOutOfScope}},
	}
}

func TestTheNewestRoundThatChangedAURLAnswers(t *testing.T) {
	for _, buckets := range []int{1, 3} {
		b := fill(t, buckets, history(), "http://d.test/", "http://b.test/")
		for url, want := range map[string]shortFound{
			"http://a.test/":         {"2026-11.0 fetched", "2026-11.1 out_of_scope", -1},
			"http://a.test/new":      {"2026-11.1 gone", "", -1},
			"http://b.test/":         {"2026-11.0 found", "2026-11.0 budget", 1},
			"http://c.test/deep":     {"", "2026-11.0 depth", -1},
			"http://c.test/late":     {"2026-11.1 found", "2026-11.2 budget", -1}, // the newest plan refuses it
			"http://d.test/":         {"", "", 0},
			"http://a.test/nowhere":  {"", "", -1},
			"https://a.test/":        {"", "", -1}, // this URL has the same SURT as a known URL
			"http://unheard.test/of": {"", "", -1},
		} {
			got, err := find(t, b, url)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, short(got)); diff != "" {
				t.Errorf("%s of %d buckets (-want +got):\n%s", url, buckets, diff)
			}
		}
	}
}

// TestTheBaseOfALaterRoundAnswersForPrunedRounds looks up URLs whose newest states were in the urls dataset of a
// pruned month, between an older and a newer round.
func TestTheBaseOfALaterRoundAnswersForPrunedRounds(t *testing.T) {
	for _, buckets := range []int{1, 3} {
		b := fill(t, buckets, history())
		c, err := Open(t.Context(), b, crawl, time.UnixMilli(1000))
		if err != nil {
			t.Fatal(err)
		}
		newest := c.rounds[1]
		c.rounds = []*manifest.Sealed{c.rounds[0], {Crawl: "2026-10", Buckets: buckets, Pruned: true}, {Crawl: "2026-10", Round: 1, Buckets: buckets, Pruned: true}, newest}
		for n := range buckets {
			var rows []schema.URLRecord
			for _, r := range []schema.URLRecord{
				{URL: "http://a.test/", State: schema.StateGone, FirstSeen: "2026-11.0", LastPlanned: "2026-10.1"},
				{URL: "http://a.test/new", State: schema.StateGone, FirstSeen: "2026-11.0", LastPlanned: "2026-11.1"},
				{URL: "http://e.test/", State: schema.StateFound, FirstSeen: "2026-10.0"},
			} {
				if k := key(t, r.URL); urlkey.Bucket(k.Domain, buckets) == n {
					r.SURT = k.SURT
					rows = append(rows, r)
				}
			}
			base := layout.Working(crawl, 1, string(stages.Frontier), urlstate.BaseName(3), n)
			newest.Files = append(newest.Files, tabletest.Write(t, b, stages.FileURLsBase, base, rows))
		}
		for url, want := range map[string]shortFound{
			"http://a.test/":         {"2026-10.1 gone", "2026-11.1 out_of_scope", -1},
			"http://a.test/new":      {"2026-11.1 gone", "", -1},
			"http://e.test/":         {"2026-10.0 found", "", -1},
			"http://b.test/":         {"2026-11.0 found", "2026-11.0 budget", -1},
			"http://unheard.test/of": {"", "", -1},
		} {
			got, err := c.Find(t.Context(), key(t, url))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, short(got)); diff != "" {
				t.Errorf("%s of %d buckets (-want +got):\n%s", url, buckets, diff)
			}
		}
	}
}

func TestNoTableIsOpenedWhereTheFilterSaysNo(t *testing.T) {
	b := fill(t, 1, history())
	if got, err := find(t, b, "http://unheard.test/of"); err != nil || short(got) != (shortFound{Partition: -1}) || len(b.tables()) > 0 {
		t.Errorf("%+v, %v; opened %q", short(got), err, b.tables())
	}
	b.keys = nil
	if _, err := find(t, b, "http://b.test/"); err != nil {
		t.Fatal(err)
	}
	want := []string{
		layout.Table(stages.FileURLs, crawl, 0, 0), layout.Working(crawl, 0, string(stages.Rank), stages.FileInlinks, 0), layout.Table(stages.FileSkips, crawl, 0, 0),
	}
	if diff := cmp.Diff(want, b.tables()); diff != "" {
		t.Errorf("opened (-want +got):\n%s", diff)
	}
}

func TestWithoutAFilterTheTablesAnswer(t *testing.T) {
	b := fill(t, 1, history())
	for number := range 2 {
		if err := b.Delete(t.Context(), layout.URLFilter(crawl, number, 0)); err != nil {
			t.Fatal(err)
		}
	}
	for url, want := range map[string]shortFound{
		"http://a.test/":         {"2026-11.0 fetched", "2026-11.1 out_of_scope", -1},
		"http://unheard.test/of": {"", "", -1},
	} {
		if got, err := find(t, b, url); err != nil || short(got) != want {
			t.Errorf("%s: %+v, %v", url, short(got), err)
		}
	}
}

func TestATruncatedFilterIsRefusedByName(t *testing.T) {
	b := fill(t, 1, history())
	key := layout.URLFilter(crawl, 1, 0)
	body, _, err := b.Get(t.Context(), key, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if _, err := store.CreateBytes(t.Context(), b, key, body[:len(body)/2]); err != nil {
		t.Fatal(err)
	}
	if _, err := find(t, b, "http://a.test/"); !errors.Is(err, urlfilter.ErrCorrupt) || !strings.Contains(err.Error(), key) {
		t.Errorf("got %v", err)
	}
}

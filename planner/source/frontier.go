package source

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/priority"
	"crawlbatch.io/crawlbatch/formats/recrawl"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/formats/urlstate"
	"crawlbatch.io/crawlbatch/planner/source/listed"
)

// FrontierName is the name that a user writes to plan from the frontier.
const FrontierName = "frontier"

// Frontier returns the source of the URLs that sealed rounds know, with their newest states. rounds
// must be sorted, oldest first. Frontier yields the URLs that are due at the time now. It also
// yields URLs that the crawl planned in earlier rounds, because these URLs count in the budgets. The URLs come
// bucket by bucket and, within a bucket, in order of SURT and URL. A frontier without URLs is not an
// error. The weights add to the priorities of due URLs, and rule estimates the
// value of fetching them. The files of many rounds are merged in the directory scratch.
func Frontier(b store.Bucket, crawl string, rounds []*manifest.Sealed, now time.Time, weights priority.Weights, rule recrawl.Rule, scratch string) Known {
	return &frontier{bucket: b, crawl: crawl, rounds: rounds, now: schema.TimeOf(now), weights: weights, rule: rule, scratch: scratch}
}

// OwnFrontier is like Frontier, for a crawl that plans only listed URLs and URLs that it finds.
// rounds holds only the crawl's own rounds. A URL that earlier crawls know is due only if a
// round of the crawl has found or planned it.
func OwnFrontier(b store.Bucket, crawl string, rounds []*manifest.Sealed, now time.Time, weights priority.Weights, rule recrawl.Rule, scratch string) Known {
	f := Frontier(b, crawl, rounds, now, weights, rule, scratch).(*frontier)
	f.own = true
	return f
}

type frontier struct {
	bucket  store.Bucket
	crawl   string
	rounds  []*manifest.Sealed
	now     schema.Time // time at which URLs are due
	weights priority.Weights
	rule    recrawl.Rule
	scratch string
	own     bool // the crawl plans only listed URLs and URLs that it finds
	about   *listed.Set
	numbers map[string]int32 // numbers of rounds, as Entry.Planned
}

func (f *frontier) Name() string { return FrontierName }

func (f *frontier) Tell(about *listed.Set) { f.about = about }

func (f *frontier) Entries(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		f.numbers = map[string]int32{}
		for i, r := range f.rounds {
			f.numbers[fmt.Sprintf("%s.%d", r.Crawl, r.Round)] = int32(i + 1)
		}
		known := urlstate.After(f.rounds)
		buckets := known.Buckets()
		for bucket := range buckets {
			ok, err := f.bucketEntries(ctx, known, bucket, buckets, yield)
			if err != nil {
				yield(Entry{}, fmt.Errorf("source %q: %w", FrontierName, err))
			}
			if !ok || err != nil {
				return
			}
		}
	}
}

// bucketEntries yields the entries of one bucket. It returns false if yield returned false.
func (f *frontier) bucketEntries(ctx context.Context, known urlstate.History, bucket, buckets int, yield func(Entry, error) bool) (ok bool, err error) {
	var last schema.URLRecord
	for row, err := range table.MergeFiles(ctx, f.bucket, f.scratch, known.Chain(bucket, buckets).Keys(), recordKey) {
		if err != nil {
			return false, err
		}
		if buckets > 1 && urlkey.Bucket(row.Domain, buckets) != bucket {
			continue // the URL is in another bucket, because a round with fewer buckets wrote the file
		}
		// The rows of a URL come oldest first, so the last row has the newest state.
		if last.URL != "" && last.URL != row.URL && !f.give(&last, yield) {
			return false, nil
		}
		last = row
	}
	return last.URL == "" || f.give(&last, yield), nil
}

func recordKey(k table.Key, r *schema.URLRecord) table.Key { return k.Text(r.SURT).Text(r.URL) }

func (f *frontier) give(r *schema.URLRecord, yield func(Entry, error) bool) bool {
	e := Entry{
		URL: r.URL, File: FrontierName, Due: f.isDue(r), Spent: f.wasPlanned(r), Planned: f.numbers[r.LastPlanned], Priority: r.Priority, Depth: r.Depth,
		Fetches: r.Fetches, FetchedAt: r.LastFetched, ContentDigest: r.ContentDigest, ETag: r.ETag, LastModified: r.LastModified,
		Content: Content{At: r.ContentAt, Filename: r.WARCFilename, Offset: r.WARCRecordOff, Length: r.WARCRecordLen},
		Form:    r.Form,
	}
	if e.Due {
		e.Priority = priority.Sum(f.weights.AtPlan(r.Priority, TimingOf(r, f.now, f.weights, f.rule)))
		e.DueReason = r.DueReason
	}
	if !e.Due && !e.Spent {
		if !f.about.MayHold(r.URL) && !(f.about != nil && f.about.WithPlanned && r.LastPlanned != "") {
			return true
		}
		e.History = true
	}
	if r.ListedFirstRound != "" {
		e.Listing = new(r.Listing)
	}
	return yield(e, nil)
}

// TimingOf returns what a plan at the time now knows about a due URL. It estimates only
// what the weights need, and nothing without a rule. The rule has no prior from the page's peers (recrawl.Peers): on the
// webs of TestFreshnessUnderABudget it lowered the regret neither in the first year nor later.
func TimingOf(r *schema.URLRecord, now schema.Time, weights priority.Weights, rule recrawl.Rule) priority.Timing {
	t := priority.Timing{
		URL: r.URL, Now: now.Time(), Interval: time.Duration(r.RevisitMS) * time.Millisecond, Fetches: r.Fetches, Changes: r.Changes,
	}
	if r.NextDue > 0 {
		t.Due = r.NextDue.Time()
	}
	if rule == (recrawl.Rule{}) || r.Fetches == 0 {
		return t
	}
	since, announced := now.Sub(r.LastFetched), r.DueReason == schema.DueAnnounced
	if weights.Change != 0 && r.ChangeHistory != (schema.ChangeHistory{}) {
		t.Gain = rule.Gain(r.ChangeHistory, since, announced)
	}
	if weights.Freshness != 0 && r.LastFetched > 0 {
		h := r.ChangeHistory
		if h == (schema.ChangeHistory{}) { // never compared
			h = recrawl.Assume(r.Fetches, r.Changes, r.RevisitMS)
		}
		t.Worth = rule.Worth(h, since, announced)
	}
	return t
}

// isDue reports whether the plan should include the URL. A URL is due if its due time has come. A
// URL without a due time is due if no round has fetched the URL.
func (f *frontier) isDue(r *schema.URLRecord) bool {
	if f.own && r.State != schema.StateFound && !f.wasFound(r) && !f.wasPlanned(r) {
		return false
	}
	switch r.State {
	case schema.StateFound, schema.StateDeferred:
		return r.NextDue <= f.now
	}
	return r.NextDue != 0 && r.NextDue <= f.now
}

// wasPlanned reports whether an earlier round of this crawl planned the URL.
func (f *frontier) wasPlanned(r *schema.URLRecord) bool {
	return f.isRound(r.LastPlanned)
}

// wasFound reports whether an earlier round of this crawl was the first to find the URL.
func (f *frontier) wasFound(r *schema.URLRecord) bool { return f.isRound(r.FirstSeen) }

// isRound reports whether a name such as 2026-11.0 belongs to a round of this crawl.
func (f *frontier) isRound(name string) bool {
	crawl, _, ok := strings.Cut(name, ".")
	return ok && crawl == f.crawl
}

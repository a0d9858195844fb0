// Package lookup finds what a store knows about one URL.
//
// A lookup reads the documents of a crawl's sealed rounds and of the newest plan, and the rounds'
// URL filters. Of the datasets urls and skips and of the plan's partitions, it reads only row
// groups that may contain the URL. It returns the URL's newest state, its newest skip, and the
// partition of the newest plan that contains the URL. The state comes with the parts of the URL's
// priority.
//
// A lookup searches the rounds from newest to oldest. In each round, the lookup first asks the
// filter of the URL's bucket. If the filter excludes the URL, the lookup skips the tables of the
// round. For the rounds of a pruned month, it searches the base of a later round
// (package urlstate). The package never writes. It imports
// jobs/roundstate, stages, planner and formats packages.
package lookup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlfilter"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/formats/urlstate"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// cachedFilters is the largest number of URL filters that a Crawl keeps in memory for later
// lookups.
const cachedFilters = 32

// Found is what a store knows about a URL. If the URL is unknown, all fields are nil.
type Found struct {
	State   *State   `json:"state"`
	Skip    *Skip    `json:"skip"`
	Planned *Planned `json:"planned"`
}

// State is the URL's newest row in the urls dataset.
type State struct {
	Round     string          `json:"round"` // name of the round, such as 2026-11.0; of a pruned month, the last that planned or found the URL
	State     schema.URLState `json:"state"`
	Outcome   schema.Outcome  `json:"outcome"` // newest outcome of the URL; "" if the URL was never planned
	FirstSeen string          `json:"first_seen"`
	NextDue   string          `json:"next_due"` // time of the next fetch in UTC (RFC 3339), or "at once" or "never"
	// DueReason says what decided NextDue; "" if the URL is due at once or never.
	DueReason schema.DueReason `json:"due_reason,omitempty"`
	Priority  Priority         `json:"priority"`
	// Sent is the form in which the crawl asks for the URL, and SentFrom says who gave it. Both are "" if the URL is asked
	// for in its canonical form.
	Sent     string          `json:"sent,omitempty"`
	SentFrom schema.SentFrom `json:"sent_from,omitempty"`
	Listings
}

// Listings says which sources listed a URL first and last. It is empty if no source listed the URL.
type Listings struct {
	First *Listed `json:"listed_first,omitempty"`
	Last  *Listed `json:"listed_last,omitempty"`
}

// Listed is a place in a source.
type Listed struct {
	Source string `json:"source"`
	At     string `json:"at"`    // number of the line, row, record or entry, or the key of a row
	Round  string `json:"round"` // round whose plan took the URL from the source
}

func listings(l *schema.Listing) Listings {
	if l.ListedFirstRound == "" {
		return Listings{}
	}
	return Listings{
		&Listed{l.ListedFirstSource, l.ListedFirstAt, l.ListedFirstRound},
		&Listed{l.ListedLastSource, l.ListedLastAt, l.ListedLastRound},
	}
}

// Skip is the URL's newest row in the skips dataset. Found lacks it if a later round has a state of
// the URL.
type Skip struct {
	Round  string            `json:"round"`
	Reason schema.SkipReason `json:"reason"`
	Detail string            `json:"detail"`
}

// Planned is the partition of the newest plan that contains the URL.
type Planned struct {
	Round     string `json:"round"`
	Partition int    `json:"partition"`
	Listings
}

// roundName returns the name of a round in the tables.
func roundName(crawl string, round int) string { return fmt.Sprintf("%s.%d", crawl, round) }

// nextDue returns when a URL is due again: a time, or a word such as "never".
func nextDue(r *schema.URLRecord) string {
	switch {
	case r.NextDue != 0:
		return r.NextDue.Time().Format(time.RFC3339)
	case r.State == schema.StateFound || r.State == schema.StateDeferred:
		return "at once"
	}
	return "never"
}

// Crawl looks up URLs in one crawl. Open reads the crawl's documents, and later lookups do not read
// them again. Only one goroutine may use a Crawl.
type Crawl struct {
	bucket     store.Bucket
	crawl      string
	now        schema.Time                 // time of the plan whose priorities are computed
	settings   map[string]settings         // what priorities depend on, by crawl
	hostCounts map[string]int64            // number of hosts by round
	rounds     []*manifest.Sealed          // sealed rounds, oldest first, without the files that their manifests list
	files      map[string]*manifest.Sealed // copies of sealed rounds with the files of one bucket, by round and bucket
	plan       *manifest.Plan              // the newest plan; nil if the crawl has none
	filters    map[string]*urlfilter.Filter
}

// Open reads the documents of a crawl and of the earlier crawls that this crawl continues. now is the
// time of the plan whose priorities the lookups compute.
func Open(ctx context.Context, b store.Bucket, crawl string, now time.Time) (*Crawl, error) {
	c := &Crawl{
		bucket: b, crawl: crawl, now: schema.TimeOf(now), settings: map[string]settings{}, hostCounts: map[string]int64{},
		files: map[string]*manifest.Sealed{}, filters: map[string]*urlfilter.Filter{},
	}
	var err error
	if c.rounds, err = roundstate.History(ctx, b, crawl); err != nil {
		return nil, fmt.Errorf("look up in %s: %w", crawl, err)
	}
	next := 0 // number of the unsealed round
	for _, s := range c.rounds {
		if s.Crawl == crawl {
			next = s.Round + 1
		}
	}
	for number := next; number >= 0 && number >= next-1 && c.plan == nil; number-- {
		c.plan, _, err = roundstate.FindPlan(ctx, b, crawl, number)
		if err != nil && !errors.Is(err, roundstate.ErrNoPlan) {
			return nil, fmt.Errorf("look up in %s: %w", crawl, err)
		}
	}
	return c, nil
}

// Find looks up a canonical URL.
func (c *Crawl) Find(ctx context.Context, k urlkey.Key) (Found, error) {
	var found Found
	pruned := false // a round of the loop was
	for _, s := range slices.Backward(c.rounds) {
		search := c.inRound
		if s.Pruned && !pruned {
			pruned, search = true, c.inBase
		}
		if err := search(ctx, s, k, &found); err != nil {
			return Found{}, fmt.Errorf("look up %s in round %s.%d: %w", k.URL, s.Crawl, s.Round, err)
		}
		if found.State != nil {
			break
		}
	}
	if c.plan != nil {
		partition, err := c.planned(ctx, k)
		if err != nil {
			return Found{}, fmt.Errorf("look up %s in plan %s: %w", k.URL, c.plan.ID, err)
		}
		if found.Planned = partition; partition == nil {
			if err := c.refused(ctx, k, &found); err != nil {
				return Found{}, fmt.Errorf("look up %s in plan %s: %w", k.URL, c.plan.ID, err)
			}
		}
	}
	return found, nil
}

// cachedBuckets is the largest number of entries in Crawl.files. An entry holds a round's files of
// one bucket.
const cachedBuckets = 4096

// withFiles returns a sealed round with the files of a domain's bucket, and the bucket.
func (c *Crawl) withFiles(ctx context.Context, s *manifest.Sealed, domain string) (*manifest.Sealed, int, error) {
	bucket := urlkey.Bucket(domain, s.ReduceBuckets())
	if len(s.Manifests) == 0 {
		return s, bucket, nil
	}
	name := fmt.Sprintf("%s:%d", roundName(s.Crawl, s.Round), bucket)
	if filled := c.files[name]; filled != nil {
		return filled, bucket, nil
	}
	filled, err := roundstate.WithFiles(ctx, c.bucket, []*manifest.Sealed{s}, roundstate.Selection{Dataset: lookedUp, Bucket: bucket, Buckets: s.ReduceBuckets()})
	if err != nil {
		return nil, 0, err
	}
	if len(c.files) == cachedBuckets {
		clear(c.files)
	}
	c.files[name] = filled[0]
	return filled[0], bucket, nil
}

// lookedUp reports whether a lookup reads the files of a dataset.
func lookedUp(dataset string) bool {
	return dataset == stages.FileSkips || dataset == stages.FileHosts || dataset == stages.FileURLFilter || roundstate.HasStates(dataset)
}

// inRound looks up a URL in the parts of its bucket.
func (c *Crawl) inRound(ctx context.Context, s *manifest.Sealed, k urlkey.Key, found *Found) error {
	s, bucket, err := c.withFiles(ctx, s, k.Domain)
	if err != nil {
		return err
	}
	urls := s.FilesOf(stages.FileURLs)
	if len(urls) == 0 {
		return nil
	}
	if may, err := c.mayHold(ctx, s, bucket, k.URL); err != nil || !may {
		return err
	}
	round := roundName(s.Crawl, s.Round)
	same := table.StringRange("url_surtkey", k.SURT, k.SURT)
	state, err := firstRow(ctx, c.bucket, partOf(urls, bucket), func(r *schema.URLRecord) bool { return r.URL == k.URL }, same)
	if err != nil {
		return err
	}
	if state != nil {
		if found.State, err = c.state(ctx, s, bucket, state); err != nil {
			return err
		}
	}
	if found.Skip != nil { // a later round has a newer skip of the URL
		return nil
	}
	skip, err := firstRow(ctx, c.bucket, partOf(s.FilesOf(stages.FileSkips), bucket), func(r *schema.Skip) bool { return r.SURT != "" && r.URL == k.URL }, same)
	if err == nil && skip != nil {
		found.Skip = &Skip{round, skip.Reason, skip.Detail}
	}
	return err
}

// inBase looks up a URL in the base of its bucket, because the tables of the given round were pruned. No
// later round has changed the URL's state.
func (c *Crawl) inBase(ctx context.Context, pruned *manifest.Sealed, k urlkey.Key, found *Found) (err error) {
	rounds, bucket := make([]*manifest.Sealed, len(c.rounds)), 0
	for i, s := range c.rounds {
		if rounds[i], bucket, err = c.withFiles(ctx, s, k.Domain); err != nil {
			return err
		}
	}
	history := urlstate.After(rounds)
	if history.Buckets() == 0 {
		return nil
	}
	for _, f := range history.Chain(bucket, history.Buckets()).Base() {
		state, err := firstRow(ctx, c.bucket, f.Key, func(r *schema.URLRecord) bool { return r.URL == k.URL }, table.StringRange("url_surtkey", k.SURT, k.SURT))
		if err != nil {
			return err
		}
		if state != nil {
			found.State, err = c.state(ctx, pruned, bucket, state)
			found.State.Round = cmp.Or(state.LastPlanned, state.FirstSeen)
			return err
		}
	}
	return nil
}

// state returns the state of a URL after a round.
func (c *Crawl) state(ctx context.Context, s *manifest.Sealed, bucket int, r *schema.URLRecord) (*State, error) {
	p, err := c.priority(ctx, s, bucket, r)
	var form schema.Form
	if r.Sent != "" {
		form = r.Form
	}
	return &State{roundName(s.Crawl, s.Round), r.State, r.Outcome, r.FirstSeen, nextDue(r), r.DueReason, p, form.Sent, form.SentFrom, listings(&r.Listing)}, err
}

// mayHold reports whether the tables may contain the URL, according to the bucket's URL filter. If
// the filter is gone, mayHold returns true.
func (c *Crawl) mayHold(ctx context.Context, s *manifest.Sealed, bucket int, url string) (bool, error) {
	key := layout.URLFilter(s.Crawl, s.Round, bucket)
	listed := func(f manifest.File) bool { return f.Key == key }
	if !slices.ContainsFunc(s.FilesOf(stages.FileURLFilter), listed) {
		return true, nil
	}
	f := c.filters[key]
	if f == nil {
		var err error
		f, err = urlfilter.Open(ctx, c.bucket, key)
		if errors.Is(err, store.ErrNotFound) {
			return true, nil // somebody deleted the filter, so the tables must be searched
		}
		if err != nil {
			return false, err
		}
		if len(c.filters) == cachedFilters {
			clear(c.filters)
		}
		c.filters[key] = f
	}
	return f.MayHold(url), nil
}

// planned returns the partition of the newest plan that contains a URL, or nil if no partition
// contains the URL.
func (c *Crawl) planned(ctx context.Context, k urlkey.Key) (*Planned, error) {
	bucket := urlkey.Bucket(k.Domain, c.plan.Buckets)
	for _, p := range c.plan.Partitions {
		if p.Bucket != bucket {
			continue
		}
		row, err := firstRow(ctx, c.bucket, p.File.Key, func(r *plannedRow) bool { return r.URL == k.URL }, table.StringRange("host", k.Host, k.Host))
		if err != nil {
			return nil, err
		}
		if row != nil {
			return &Planned{roundName(c.plan.Crawl, c.plan.Round), p.Partition, listings(&row.Listing)}, nil
		}
	}
	return nil, nil
}

// refused looks up a URL among the refusals of the newest plan. A sealed round has them in the skips dataset.
func (c *Crawl) refused(ctx context.Context, k urlkey.Key, found *Found) error {
	sealed := func(s *manifest.Sealed) bool { return s.Crawl == c.plan.Crawl && s.Round == c.plan.Round }
	if c.plan.RefusedFile == nil || c.plan.RefusedFile.Rows == 0 || slices.ContainsFunc(c.rounds, sealed) {
		return nil
	}
	row, err := firstRow(ctx, c.bucket, c.plan.RefusedFile.Key, func(r *refusedRow) bool { return r.URL == k.URL }, table.StringRange("url_surtkey", k.SURT, k.SURT))
	if err == nil && row != nil {
		found.Skip = &Skip{roundName(c.plan.Crawl, c.plan.Round), row.Reason, row.Detail}
	}
	return err
}

// refusedRow holds the columns of refused.parquet that a lookup needs.
type refusedRow struct {
	URL    string            `parquet:"url"`
	Reason schema.SkipReason `parquet:"reason"`
	Detail string            `parquet:"detail,optional"`
}

// plannedRow holds the columns of a partition that a lookup needs.
type plannedRow struct {
	URL string `parquet:"url"`
	schema.Listing
}

// partOf returns the key of a bucket's part, or "" if the bucket has no part.
func partOf(files []manifest.File, bucket int) string {
	for _, f := range files {
		if strings.TrimSuffix(path.Base(f.Key), ".parquet") == layout.Part(bucket) {
			return f.Key
		}
	}
	return ""
}

// firstRow returns the first row for which accepts returns true, or nil if there is none.
func firstRow[T any](ctx context.Context, b store.Bucket, key string, accepts func(*T) bool, opts ...table.ReaderOption) (_ *T, err error) {
	if key == "" {
		return nil, nil
	}
	r, err := table.Open[T](ctx, b, key, opts...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for row, err := range r.All(ctx) {
		if err != nil {
			return nil, err
		}
		if accepts(&row) {
			return &row, nil
		}
	}
	return nil, nil
}

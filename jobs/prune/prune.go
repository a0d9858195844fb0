// Package prune deletes what is older than its retention.
//
// It takes a store, the retention and a clock. Find returns which objects of each crawl may be deleted, and which stay
// and why. Apply deletes the former. Working data are the working files of reduce stages that no later round reads, and
// the texts of segments: only `verify` and `retry --rebuild` of the same round need them. Raw captures are WARC files
// with their indexes, and segments, without which nothing can be parsed again. Metadata is everything else of a crawl,
// except its ledger. The policies widen in this order: what one deletes, the later ones delete too.
//
// These objects stay whatever their age:
//   - WARC files with a payload to which another round refers, if the raw captures of that round stay.
//     A round refers to a payload if it has a revisit of it, or planned its URL and got no new content.
//   - metadata of crawls with states of URLs that the next month reads (package urlstate)
//   - all objects of a crawl that has an unfinished round, or a lost or damaged document
//
// Find returns an error if the ledger of any crawl cannot be read, because then nobody knows which
// objects that crawl needs.
//
// Apply is safe at every instant. It claims active.json, so no round is fetched and no crawl is
// parsed again meanwhile. For each crawl, it stores the list of the WARC files that stay, appends the
// entry `pruning` to the ledger, deletes, and appends the entry `pruned`. Readers follow the ledger,
// so a deleted object is never a loss. After a crash, the next Apply continues. A repeated Apply
// changes nothing. The package imports jobs/ledger, jobs/roundstate, stages and formats.
package prune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/catalog"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// Request says what to prune.
type Request struct {
	Bucket store.Bucket
	// Working is the retention in days after the last round of a crawl was sealed, so that a finished crawl can be
	// checked and rebuilt. Raw and Metadata are the retentions in whole months after the month of a crawl. 0 means
	// that the policy deletes nothing.
	Working, Raw, Metadata int
	Clock                  stages.Clock
	Version                string
}

// Size counts objects and their bytes.
type Size struct {
	Objects int64 `json:"objects"`
	Bytes   int64 `json:"bytes"`
}

func (s *Size) add(bytes int64) { s.Objects, s.Bytes = s.Objects+1, s.Bytes+bytes }

// Add returns the sum of s and t.
func (s Size) Add(t Size) Size { return Size{s.Objects + t.Objects, s.Bytes + t.Bytes} }

// Kind is a kind of objects of a crawl.
type Kind struct {
	Name string `json:"kind"`
	Size
}

// Crawl says what of a crawl may be deleted, and what stays.
type Crawl struct {
	Name   string `json:"crawl"`
	Policy string `json:"policy,omitempty"` // manifest.PruneWorking, PruneRaw or PruneMetadata; empty: everything stays
	Why    string `json:"why"`              // why objects stay, or which config key decides that they are deleted
	Delete []Kind `json:"delete"`           // ordered by name
	Kept   Size   `json:"kept"`             // WARC files that stay although they are old, because later rounds refer to their payloads
	// Unfinished means that an earlier Apply was interrupted in this crawl.
	Unfinished bool `json:"unfinished,omitempty"`

	again  bool // it is not old enough now, so only what an earlier Apply covered is deleted
	ledger *ledger.Ledger
	list   manifest.Prune
	pruned *ledger.Pruned // the objects that list covers
}

// Total returns the sum of what may be deleted.
func (c *Crawl) Total() (sum Size) {
	for _, k := range c.Delete {
		sum = sum.Add(k.Size)
	}
	return sum
}

// pending reports whether Apply has anything to do.
func (c *Crawl) pending() bool { return c.Policy != "" && (c.Unfinished || len(c.Delete) > 0) }

// Found is the result of Find.
type Found struct {
	Crawls []*Crawl `json:"crawls"` // by name
	// Busy says which rounds are unfinished. Apply then deletes nothing.
	Busy []string `json:"busy,omitempty"`
}

// Pending reports whether Apply has anything to do.
func (f *Found) Pending() bool { return slices.ContainsFunc(f.Crawls, (*Crawl).pending) }

// Look says which rounds are unfinished, and in which crawls Apply was interrupted. It does not look for objects.
func Look(ctx context.Context, r Request) (*Found, error) { return r.judge(ctx) }

// Find looks for objects that are older than their retention. It writes nothing.
func Find(ctx context.Context, r Request) (*Found, error) {
	f, err := r.judge(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.keepHistory(ctx, f); err != nil {
		return nil, err
	}
	refers, err := r.references(ctx, f)
	if err != nil {
		return nil, err
	}
	for _, c := range f.Crawls {
		if c.Policy == "" {
			continue
		}
		if err := r.measure(ctx, c, refers); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// judge finds for each crawl the policy that its age allows.
func (r *Request) judge(ctx context.Context) (*Found, error) {
	names, err := r.names(ctx)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, &ledger.NoCrawl{Bucket: r.Bucket}
	}
	f := &Found{Crawls: []*Crawl{}}
	for _, name := range names {
		l, err := ledger.Load(ctx, r.Bucket, name)
		if err != nil {
			return nil, fmt.Errorf("nobody knows which objects of other crawls %s needs: %w", name, err)
		}
		c := &Crawl{Name: name, ledger: l, Unfinished: l.PruneUnfinished()}
		if _, err := l.ReadPruned(ctx, r.Bucket); isFault(err) {
			c.Unfinished = true // the list of the WARC files that stay is lost, and Apply makes it again
		} else if err != nil {
			return nil, err
		}
		f.Crawls = append(f.Crawls, c)
		unfinished := 0
		if !l.Gone() {
			if unfinished, err = r.unfinished(ctx, l); err != nil {
				return nil, err
			}
		}
		if !l.Gone() && unfinished < l.Rounds() {
			lacks, err := r.lacksSource(ctx, name)
			if err != nil {
				return nil, err
			}
			if lacks != "" {
				c.Why = fmt.Sprintf("round %d can never be finished: %s", unfinished, lacks)
				continue
			}
			f.Busy = append(f.Busy, fmt.Sprintf("round %d of %s is not finished: finish it with `crawlbatch run --month %s`", unfinished, name, name))
			c.Why = fmt.Sprintf("round %d is not finished", unfinished)
			continue
		}
		if err := r.decide(ctx, c); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// names lists the crawls of the store, those included that were pruned as a whole.
func (r *Request) names(ctx context.Context) ([]string, error) {
	head, _, err := ledger.LoadHead(ctx, r.Bucket, "YYYY-MM")
	if err != nil {
		return nil, err
	}
	names, err := roundstate.Crawls(ctx, r.Bucket)
	if head != nil {
		for _, c := range head.Crawls {
			names = append(names, c.Crawl)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

// unfinished returns the number of the first round that has a plan and no seal. If there is none,
// it returns the number of rounds.
func (r *Request) unfinished(ctx context.Context, l *ledger.Ledger) (int, error) {
	for round := range l.Rounds() {
		if l.Newest(manifest.EntrySealed, round) != nil {
			continue
		}
		// The process that sealed the round may have died before it appended the entry.
		sealed, err := manifest.Exists(ctx, r.Bucket, layout.Sealed(l.Crawl, round))
		if err != nil || !sealed {
			return round, err
		}
	}
	return l.Rounds(), nil
}

// lacksSource returns a text that says that the raw captures of a reparse's source were pruned, so
// that the reparse can never go on. In all other cases it returns "".
func (r *Request) lacksSource(ctx context.Context, crawl string) (string, error) {
	if !layout.IsReparse(crawl) {
		return "", nil
	}
	of, err := roundstate.ReparseOf(ctx, r.Bucket, crawl)
	if isFault(err) || err == nil && (of == nil || of.Of == "") {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	source, err := ledger.Load(ctx, r.Bucket, of.Of)
	if err != nil {
		return "", err
	}
	if err := source.CheckRaw(); err != nil {
		return err.Error(), nil
	}
	return "", nil
}

// policy is a policy with its retention.
type policy struct {
	about manifest.Pruning // its name and retention
	due   bool             // the crawl is older than the retention
}

// policies returns the policies for a crawl, the widest first.
func (r *Request) policies(c *Crawl) ([]policy, error) {
	months, err := r.age(c.Name)
	if err != nil {
		return nil, err
	}
	due, err := r.workingDue(c.ledger)
	return []policy{
		{manifest.Pruning{Policy: manifest.PruneMetadata, Months: r.Metadata}, r.Metadata > 0 && months > r.Metadata},
		{manifest.Pruning{Policy: manifest.PruneRaw, Months: r.Raw}, r.Raw > 0 && months > r.Raw},
		{manifest.Pruning{Policy: manifest.PruneWorking, Days: r.Working}, !due.IsZero() && !r.Clock.Now().Before(due)},
	}, err
}

// workingDue returns when the working data of a crawl may go, or the zero time if it may not go before the raw
// captures. A takedown records the seal again, so the oldest entry counts.
func (r *Request) workingDue(l *ledger.Ledger) (time.Time, error) {
	if r.Working == 0 {
		return time.Time{}, nil
	}
	for _, e := range l.Entries() {
		if e.What == manifest.EntrySealed && e.InRound(l.Rounds()-1) {
			at, err := time.Parse(time.RFC3339Nano, e.At)
			return at.AddDate(0, 0, r.Working), err
		}
	}
	return time.Time{}, nil
}

// decide fills the policy of a crawl whose rounds are all finished: the widest of the policies that its age allows, or
// that an earlier Apply began.
func (r *Request) decide(ctx context.Context, c *Crawl) error {
	all, err := r.policies(c)
	if err != nil {
		return err
	}
	if c.ledger.Rounds() == 0 {
		c.Why = "it has no finished round"
		return nil
	}
	if err = r.choose(ctx, c, all); err != nil || c.Policy != "" || c.Why != "" {
		return err
	}
	age, err := r.age(c.Name)
	c.Why = fmt.Sprintf("it is %s old", ledger.Count(max(age, 0), "month"))
	if due, _ := r.workingDue(c.ledger); !due.IsZero() {
		c.Why += "; its working data goes after " + due.UTC().Format(time.DateOnly)
	}
	return err
}

// choose takes the first policy that a crawl's age allows, or that an earlier Apply began.
func (r *Request) choose(ctx context.Context, c *Crawl, all []policy) error {
	old := c.ledger.Pruning()
	c.Policy = ""
	for _, p := range all {
		began := old != nil && old.Prune.Policy == p.about.Policy
		if !p.due && !began {
			continue
		}
		if began {
			p.about.Days, p.about.Months = old.Prune.Days, old.Prune.Months
		}
		c.Policy, c.Why, c.again = p.about.Policy, ledger.Retention(&p.about), !p.due
		err := r.describe(ctx, c, p.about)
		if isFault(err) {
			c.Policy, c.Why = "", "it cannot be read: "+err.Error()
			err = nil
		}
		return err
	}
	return nil
}

// age returns the age of a crawl in months.
func (r *Request) age(crawl string) (int, error) {
	month, _ := layout.MonthOf(crawl)
	t, err := layout.ParseMonth(month)
	if err != nil {
		return 0, err
	}
	now := r.Clock.Now().UTC()
	return 12*(now.Year()-t.Year()) + int(now.Month()) - int(t.Month()), nil
}

// describe fills c.list, except the WARC files that stay, which measure adds.
func (r *Request) describe(ctx context.Context, c *Crawl, about manifest.Pruning) error {
	if c.ledger.Gone() {
		about = *c.ledger.Pruning().Prune
	} else {
		sealed, err := roundstate.Sealed(ctx, r.Bucket, c.Name)
		if err != nil {
			return err
		}
		m, err := c.ledger.ReadCrawl(ctx, r.Bucket)
		if err != nil {
			return err
		}
		about.Rounds = len(sealed)
		if c.again {
			about.Rounds = c.ledger.Pruning().Prune.Rounds
		}
		if c.Policy == manifest.PruneMetadata {
			about.Continues = m.Continues
			for _, s := range sealed {
				about.Buckets = append(about.Buckets, max(1, s.ReduceBuckets()))
			}
		}
	}
	c.list = manifest.Prune{Crawl: c.Name, Prune: about, Kept: []string{}}
	return nil
}

// isFault reports whether an error means that a document is lost or damaged.
func isFault(err error) bool {
	return errors.Is(err, ledger.ErrLost) || errors.Is(err, manifest.ErrCorrupt) || errors.Is(err, roundstate.ErrNoCrawl)
}

// datasets lists the names of the published datasets.
func datasets() (names []string) {
	for _, d := range catalog.Datasets() {
		names = append(names, d.Name)
	}
	return names
}

// losesRaw reports whether the crawl loses its raw captures.
func (c *Crawl) losesRaw() bool { return c.Policy != "" && c.Policy != manifest.PruneWorking }

// folders lists the folders with the objects that a policy may delete.
func (c *Crawl) folders() []string {
	switch c.Policy {
	case manifest.PruneMetadata:
		return layout.Folders(c.Name, datasets())
	case manifest.PruneRaw:
		return []string{layout.CrawlDir(c.Name), layout.WARCDir(c.Name)}
	}
	return []string{layout.CrawlDir(c.Name)}
}

// measure adds the WARC files that stay to c.list, and measures the objects that may be deleted.
// refers holds the WARC files to which later rounds refer.
func (r *Request) measure(ctx context.Context, c *Crawl, refers map[string]bool) error {
	if c.losesRaw() {
		for o, err := range r.Bucket.List(ctx, layout.WARCDir(c.Name)) {
			if err != nil {
				return fmt.Errorf("list the WARC files of %s: %w", c.Name, err)
			}
			if refers[o.Key] {
				c.list.Kept = append(c.list.Kept, o.Key)
				c.Kept.add(o.Size)
			}
		}
	}
	c.pruned = ledger.NewPruned(c.Name, &manifest.Entry{Prune: &c.list.Prune}, c.list.Kept)
	sizes := map[string]*Size{}
	err := r.each(ctx, c, func(o store.Info) error {
		kind := kindOf(o.Key)
		if sizes[kind] == nil {
			sizes[kind] = &Size{}
		}
		sizes[kind].add(o.Size)
		return nil
	})
	c.Delete = []Kind{}
	for name, size := range sizes {
		c.Delete = append(c.Delete, Kind{name, *size})
	}
	slices.SortFunc(c.Delete, func(a, b Kind) int { return cmp.Compare(a.Name, b.Name) })
	return err
}

// each calls do with each object of a crawl that c.list covers.
func (r *Request) each(ctx context.Context, c *Crawl, do func(store.Info) error) error {
	for _, folder := range c.folders() {
		for o, err := range r.Bucket.List(ctx, folder) {
			if err == nil && c.pruned.Has(o.Key) {
				err = do(o)
			}
			if err != nil {
				return fmt.Errorf("prune %s: %w", folder, err)
			}
		}
	}
	return nil
}

// kindOf names the kind of an object.
func kindOf(key string) string {
	folders := strings.Split(path.Dir(key), "/")
	switch {
	case strings.HasSuffix(key, ".warc.gz"):
		return "WARC files"
	case strings.HasSuffix(key, ".cdxj"):
		return "WARC indexes"
	case strings.HasPrefix(key, "tables/"):
		return "tables"
	case strings.HasPrefix(key, "compacted/"):
		return "compacted copies"
	case strings.HasPrefix(key, "webgraph/"):
		return "web graphs"
	case slices.Contains(folders, "segments"):
		return "segments"
	case slices.Contains(folders, "work"):
		return "working files"
	case strings.Contains(key, "/plan-"):
		return "plans"
	}
	return "documents"
}

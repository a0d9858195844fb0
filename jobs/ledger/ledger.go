// Package ledger keeps each crawl's ledger and the store's head, which record all beginnings,
// decisions and seals, so that a loss is noticed.
//
// In: a bucket and the name of a crawl. Out: the ledger's entries, appended by swaps of one object
// and chained by digest, and a Lost error for each object that an entry names and that is gone or
// has other contents. A ledger grows with rounds, never with partitions.
//
//	l, err := ledger.Load(ctx, b, crawl)          // of a crawl of an older format: what is there now
//	for e := range slices.Values(l.Entries()) …   // in order
//	for lost, err := range l.Losses(ctx, b) …     // what an entry names and what is not there
//	for lost, err := range ledger.HeadLosses(ctx, b) … // the head, active.json, crawls
//
// A process writes an object first, and then appends the entry that names the object. A process
// that finds an object without its entry appends the entry. One swap decides between several
// writers. The loser reads the ledger again and decides again. The package imports stages and
// formats.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages"
)

// Since is the first format whose crawls have a ledger.
const Since = 3

var (
	// ErrNoCrawl means that the store has no crawl with this name, and never had one.
	ErrNoCrawl = errors.New("no such crawl")
	// ErrNotAdopted means that the crawl is of an older format and has no ledger to append to.
	ErrNotAdopted = errors.New("the crawl has no ledger yet")
)

// Ledger is a crawl's ledger at the time of reading. A Ledger does not change.
type Ledger struct {
	Crawl string
	// Stored is false if the ledger was made in memory for a crawl of an older format.
	Stored bool

	doc     manifest.Ledger
	version store.Version
}

// Load reads the ledger of a crawl. For a crawl of an older format, Load makes the ledger that
// adoption would write. The error wraps ErrNoCrawl, ErrLost or manifest.ErrCorrupt.
func Load(ctx context.Context, b store.Bucket, crawl string) (*Ledger, error) {
	l := &Ledger{Crawl: crawl, Stored: true}
	key := layout.Ledger(crawl)
	version, _, err := manifest.Load(ctx, b, key, &l.doc)
	if errors.Is(err, store.ErrNotFound) {
		return absent(ctx, b, crawl)
	}
	if err != nil {
		return nil, err
	}
	if l.doc.Crawl != crawl {
		return nil, fmt.Errorf("%q belongs to crawl %s, not to crawl %s: restore the right document: %w", key, l.doc.Crawl, crawl, manifest.ErrCorrupt)
	}
	if err := l.doc.Check(); err != nil {
		return nil, fmt.Errorf("%q: %w", key, err)
	}
	l.version = version
	return l, nil
}

// absent decides why a crawl has no ledger.json. Either the crawl does not exist or has an older
// format, or its creation or adoption was interrupted, or the ledger is lost.
func absent(ctx context.Context, b store.Bucket, crawl string) (*Ledger, error) {
	m, _, err := LoadCrawl(ctx, b, crawl)
	if err != nil {
		return nil, err
	}
	if m.Format < Since {
		return assemble(ctx, b, m)
	}
	head, _, err := LoadHead(ctx, b)
	if err != nil {
		return nil, err
	}
	switch {
	case head != nil && head.Names(crawl):
		return nil, lostLedger(crawl)
	case m.AdoptedFrom > 0:
		return assemble(ctx, b, m)
	}
	begun, err := anyKey(ctx, b, layout.CrawlDir(crawl)+"round=")
	if err == nil && begun {
		err = lostLedger(crawl)
	}
	return &Ledger{Crawl: crawl}, err
}

// LoadCrawl reads crawl.json and returns the digest of its contents. If crawl.json is gone, the
// error says whether the store ever had the crawl.
func LoadCrawl(ctx context.Context, b store.Bucket, crawl string) (*manifest.Crawl, string, error) {
	var m manifest.Crawl
	key := layout.CrawlManifest(crawl)
	_, digest, err := manifest.LoadContents(ctx, b, key, &m)
	if errors.Is(err, store.ErrNotFound) {
		return nil, "", noCrawl(ctx, b, crawl)
	}
	if err == nil && m.Crawl != crawl {
		err = fmt.Errorf("%q belongs to crawl %s, not to crawl %s: restore the right document; a copy made by mistake can be removed: %w", key, m.Crawl, crawl, manifest.ErrCorrupt)
	}
	return &m, digest, err
}

// noCrawl is the error for a crawl without crawl.json.
func noCrawl(ctx context.Context, b store.Bucket, crawl string) error {
	known, err := manifest.Exists(ctx, b, layout.Ledger(crawl))
	if err != nil {
		return err
	}
	if !known {
		head, _, err := LoadHead(ctx, b)
		if err != nil {
			return err
		}
		known = head != nil && head.Names(crawl)
	}
	if known {
		return &Lost{Object: layout.CrawlManifest(crawl), Was: "what crawl " + crawl + " froze", Remedy: restore}
	}
	return fmt.Errorf("%s holds no crawl %s: make one with `%s`: %w", b, crawl, CreatingCommand(crawl, ""), ErrNoCrawl)
}

// CreatingCommand returns the command that creates a crawl. flags are the flags, with a leading
// space, that the command needs for the same store.
func CreatingCommand(crawl, flags string) string {
	if layout.IsReparse(crawl) {
		month, _ := layout.MonthOf(crawl)
		return fmt.Sprintf("crawlbatch reparse --month %s --as %s%s", month, crawl, flags)
	}
	return fmt.Sprintf("crawlbatch plan --month %s --source FILE%s", crawl, flags)
}

// anyKey reports whether some key starts with prefix.
func anyKey(ctx context.Context, b store.Bucket, prefix string) (bool, error) {
	for _, err := range b.List(ctx, prefix) {
		if err != nil {
			return false, fmt.Errorf("list %s: %w", prefix, err)
		}
		return true, nil
	}
	return false, nil
}

// Entries returns the entries, oldest first.
func (l *Ledger) Entries() []manifest.Entry { return slices.Clone(l.doc.Entries) }

// last returns the newest entry that matches, or nil.
func (l *Ledger) last(match func(e *manifest.Entry) bool) *manifest.Entry {
	for i := len(l.doc.Entries) - 1; i >= 0; i-- {
		if match(&l.doc.Entries[i]) {
			e := l.doc.Entries[i]
			return &e
		}
	}
	return nil
}

// Newest returns the newest entry of a kind about a round, or nil.
func (l *Ledger) Newest(what string, round int) *manifest.Entry {
	return l.last(func(e *manifest.Entry) bool { return e.What == what && e.In(round) })
}

// Of returns the newest entry of a kind about the crawl as a whole, or nil.
func (l *Ledger) Of(what string) *manifest.Entry {
	return l.last(func(e *manifest.Entry) bool { return e.What == what && e.Round == nil })
}

// Frozen returns the entry of a stage's inputs, or nil.
func (l *Ledger) Frozen(round int, stage stages.Stage) *manifest.Entry {
	return l.last(func(e *manifest.Entry) bool {
		return e.What == manifest.EntryFrozen && e.In(round) && e.Stage == string(stage)
	})
}

// Plan returns the entry of the plan that a round follows, and whether the round has started. Plan
// returns nil if no plan is chosen.
func (l *Ledger) Plan(round int) (choice *manifest.Entry, started bool) {
	begun := l.Newest(manifest.EntryStarted, round)
	choice = l.last(func(e *manifest.Entry) bool {
		return e.What == manifest.EntryPlan && e.In(round) && (begun == nil || e.Plan == begun.Plan)
	})
	return choice, begun != nil
}

// Started returns the entry with which a round began, or nil.
func (l *Ledger) Started(round int) *manifest.Entry { return l.Newest(manifest.EntryStarted, round) }

// Now returns the time that was frozen for planning a round. ok is false if no time was frozen.
func (l *Ledger) Now(round int) (now time.Time, ok bool) {
	e := l.Newest(manifest.EntryPlanning, round)
	if e == nil {
		return time.Time{}, false
	}
	now, err := time.Parse(time.RFC3339Nano, e.Now)
	return now, err == nil
}

// Rounds returns the number of rounds up to the newest round that an entry names.
func (l *Ledger) Rounds() int {
	n := 0
	for _, e := range l.doc.Entries {
		if e.Round != nil && e.What != manifest.EntryPlanning {
			n = max(n, *e.Round+1)
		}
	}
	return n
}

// fresh reports whether the ledger has only the entries of the crawl's creation.
func (l *Ledger) fresh() bool {
	return !slices.ContainsFunc(l.doc.Entries, func(e manifest.Entry) bool { return e.What != manifest.EntryCrawl && !e.Adopted })
}

// Writer appends to ledgers.
type Writer struct {
	Version string // version of this program, for written_by
	Clock   stages.Clock
}

// Append appends the entries that decide returns for the present ledger, if any. If another writer
// was first, Append calls decide again with the new ledger. Append returns the resulting ledger.
func (w Writer) Append(ctx context.Context, b store.Bucket, crawl string, decide func(l *Ledger) ([]manifest.Entry, error)) (*Ledger, error) {
	for {
		l, err := Load(ctx, b, crawl)
		if err != nil {
			return nil, err
		}
		entries, err := decide(l)
		if err != nil || len(entries) == 0 {
			return l, err
		}
		if !l.Stored {
			return nil, fmt.Errorf("crawl %s of %s: %w: %w", crawl, b, ErrNotAdopted, stages.ErrPermanent)
		}
		next, err := w.swap(ctx, b, l, entries)
		if !errors.Is(err, store.ErrConflict) {
			return next, err
		}
	}
}

func (w Writer) swap(ctx context.Context, b store.Bucket, l *Ledger, entries []manifest.Entry) (*Ledger, error) {
	next := &Ledger{Crawl: l.Crawl, Stored: true, doc: manifest.Ledger{
		Header: manifest.Header{Version: w.Version}, Crawl: l.Crawl, Entries: slices.Clone(l.doc.Entries),
	}}
	for i := range entries {
		entries[i].At = w.now()
	}
	if err := next.doc.Append(entries...); err != nil {
		return nil, err
	}
	var err error
	next.version, err = manifest.Swap(ctx, b, layout.Ledger(l.Crawl), &next.doc, l.version)
	return next, err
}

func (w Writer) now() string { return w.Clock.Now().UTC().Format(time.RFC3339Nano) }

// Named returns an entry that names a document of a round.
func Named(what string, round int, key, digest string, format int) manifest.Entry {
	return manifest.Entry{What: what, Round: &round, Object: key, SHA256: digest, Format: format}
}

// Package ledger keeps the ledger of each crawl and the head of the store. They record all
// beginnings, decisions and seals, so that a lost object is noticed.
//
// Load takes a bucket and the name of a crawl, and returns the crawl's ledger. Losses yields a Lost
// error for each object that an entry names but that is gone or has other contents. A ledger is one
// object, and a process appends entries by swapping it. Each entry holds a digest of the entries
// before it. A ledger grows with the number of rounds, never with the number of partitions.
//
//	l, err := ledger.Load(ctx, b, crawl)
//	for e := range slices.Values(l.Entries()) …   // in order
//	for lost, err := range l.Losses(ctx, b) …     // each object that an entry names and that is gone
//	for lost, err := range ledger.HeadLosses(ctx, b, crawl) … // the head, active.json, crawls
//
// A process writes an object first, and then appends the entry that names the object. A process
// that finds an object without an entry appends the missing entry. If several processes append at
// the same time, one swap succeeds. The other processes then read the ledger again and make a new
// decision. The package imports stages and formats.
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

var (
	// ErrNoCrawl means that the store has no crawl with this name and never had one.
	ErrNoCrawl = errors.New("no such crawl")
	// errUnfounded means that the creation of a crawl was interrupted before it had a ledger.
	errUnfounded = errors.New("the crawl has no ledger yet, because its creation was interrupted: give the command that creates it again")
	// ErrReplacing means that a `plan --replace` of the crawl was interrupted or is running.
	ErrReplacing = errors.New("its plan is being replaced")
)

// Ledger is a crawl's ledger at the time of reading. A Ledger does not change.
type Ledger struct {
	Crawl string
	// Stored is false if the crawl has no ledger yet, because its creation was interrupted.
	Stored bool

	doc     manifest.Ledger
	version store.Version
	index   map[subject]int // index of the newest entry about each subject
	rounds  int
	begun   bool // whether an entry was appended after the crawl's creation, or after the ledger was rebuilt
}

// subject says what an entry is about: its kind, and its round, stage or plan. An empty field stands
// for any value.
type subject struct {
	what        string
	round       int // -1: the crawl as a whole
	stage, plan string
}

// indexed returns a ledger with an index of its entries.
func indexed(l *Ledger) *Ledger {
	l.index = make(map[subject]int, 2*len(l.doc.Entries))
	for i, e := range l.doc.Entries {
		at := subject{what: e.What, round: -1}
		if e.Round != nil {
			at.round = *e.Round
			if e.What != manifest.EntryPlanning {
				l.rounds = max(l.rounds, at.round+1)
			}
		}
		l.index[at] = i
		l.index[subject{at.what, at.round, e.Stage, e.Plan}] = i
		l.begun = l.begun || e.What != manifest.EntryCrawl && !e.Rebuilt
	}
	return l
}

// Load reads the ledger of a crawl. For a crawl whose creation was interrupted, it returns a ledger without entries that
// is not Stored. The error wraps ErrNoCrawl, ErrLost or manifest.ErrCorrupt.
func Load(ctx context.Context, b store.Bucket, crawl string) (*Ledger, error) {
	return load(ctx, b, crawl, b)
}

// Newer reads the ledger again. If the stored ledger has not changed, Newer returns l itself, and the
// store transfers nothing. A ledger that is not Stored stays the same until one is.
func (l *Ledger) Newer(ctx context.Context, b store.Bucket) (*Ledger, error) {
	newer, err := load(ctx, b, l.Crawl, renewed{b, l.version})
	if errors.Is(err, store.ErrUnchanged) || err == nil && !l.Stored && !newer.Stored {
		return l, nil
	}
	return newer, err
}

// renewed is a store whose Get returns store.ErrUnchanged for an object of the version have.
type renewed struct {
	store.Bucket
	have store.Version
}

// Get implements store.Bucket.
func (r renewed) Get(ctx context.Context, key string, limit int64) ([]byte, store.Version, error) {
	return store.GetNew(ctx, r.Bucket, key, limit, r.have)
}

// load reads ledger.json from the parameter from, and everything else from b.
func load(ctx context.Context, b store.Bucket, crawl string, from store.Bucket) (*Ledger, error) {
	l := &Ledger{Crawl: crawl, Stored: true}
	key := layout.Ledger(crawl)
	version, _, err := manifest.Load(ctx, from, key, &l.doc)
	if errors.Is(err, store.ErrNotFound) {
		absent, err := loadAbsent(ctx, b, crawl)
		if errors.Is(err, ErrLost) {
			if there, failed := manifest.Exists(ctx, b, key); failed == nil && there { // another process has made it since
				return load(ctx, b, crawl, b)
			}
		}
		return absent, err
	}
	was := "the ledger of crawl " + crawl
	if err == nil && l.doc.Crawl != crawl {
		err, was = manifest.ErrCorrupt, was+" and belongs to crawl "+l.doc.Crawl
	}
	if err == nil {
		err = l.doc.Check()
	}
	if errors.Is(err, manifest.ErrCorrupt) {
		return nil, &Lost{Object: key, Was: was, Damage: err, Remedy: remake(crawl)}
	}
	if err != nil {
		return nil, err
	}
	l.version = version
	return indexed(l), nil
}

// loadAbsent finds out why a crawl has no ledger.json. There are three reasons: the crawl does not
// exist, its creation was interrupted, or the ledger is lost.
func loadAbsent(ctx context.Context, b store.Bucket, crawl string) (*Ledger, error) {
	if _, _, err := LoadCrawl(ctx, b, crawl); err != nil {
		return nil, err
	}
	head, _, err := LoadHead(ctx, b, crawl)
	if err != nil {
		return nil, err
	}
	lost := head != nil && head.Names(crawl)
	if !lost {
		if lost, err = begunIn(ctx, b, crawl); err != nil {
			return nil, err
		}
	}
	if lost {
		return nil, lostLedger(crawl)
	}
	return indexed(&Ledger{Crawl: crawl}), nil
}

// begunIn reports whether a round of a crawl has an object.
func begunIn(ctx context.Context, b store.Bucket, crawl string) (bool, error) {
	prefix := layout.CrawlDir(crawl) + "round="
	for _, err := range b.List(ctx, prefix) {
		if err != nil {
			return false, fmt.Errorf("list %s: %w", prefix, err)
		}
		return true, nil
	}
	return false, nil
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

// noCrawl returns the error for a crawl without crawl.json.
func noCrawl(ctx context.Context, b store.Bucket, crawl string) error {
	known, err := manifest.Exists(ctx, b, layout.Ledger(crawl))
	if err != nil {
		return err
	}
	if known {
		l, err := Load(ctx, b, crawl)
		if err == nil {
			err = l.CheckGone()
		}
		if err != nil {
			return err
		}
	}
	if !known {
		head, _, err := LoadHead(ctx, b, crawl)
		if err != nil {
			return err
		}
		known = head != nil && head.Names(crawl)
	}
	if known {
		return &Lost{Object: layout.CrawlManifest(crawl), Was: "what crawl " + crawl + " froze", Remedy: restore}
	}
	return &NoCrawl{Bucket: b, Crawl: crawl}
}

// ReadCrawl reads crawl.json of the ledger's crawl. If crawl.json is not the document that the
// ledger names, the error is ErrReplacing or a Lost error.
func (l *Ledger) ReadCrawl(ctx context.Context, b store.Bucket) (*manifest.Crawl, error) {
	if err := l.CheckGone(); err != nil {
		return nil, err
	}
	for again := false; ; again = true {
		m, digest, err := LoadCrawl(ctx, b, l.Crawl)
		if err == nil {
			err = l.checkCrawl(digest)
		}
		if err == nil || again || !l.Stored || l.Started(0) != nil {
			return m, err
		}
		newer, failed := Load(ctx, b, l.Crawl) // `plan --replace` may have named another document meanwhile
		if failed != nil {
			return nil, failed
		}
		l = newer
	}
}

// checkCrawl returns an error if the digest of crawl.json is not the digest in the ledger. The
// error is ErrReplacing if `plan --replace` has named a new crawl.json but has not stored it yet.
// Otherwise, the error is a Lost error.
func (l *Ledger) checkCrawl(digest string) error {
	named := l.Of(manifest.EntryCrawl)
	if !l.Stored || named == nil || named.SHA256 == "" || named.SHA256 == digest {
		return nil
	}
	before := func(e manifest.Entry) bool { return e.What == manifest.EntryCrawl && e.SHA256 == digest }
	if l.Started(0) == nil && slices.ContainsFunc(l.doc.Entries, before) {
		return fmt.Errorf("%q does not belong to the chosen plan yet: if no `crawlbatch plan --month %s --replace` is running, run it again; nothing was fetched: %w", named.Object, l.Crawl, ErrReplacing)
	}
	return l.Miss(named, true)
}

// CreatingCommand returns the command that creates a crawl. flags holds the flags
// that commands for the same store need, with a leading space.
func CreatingCommand(crawl, flags string) string {
	if layout.IsReparse(crawl) {
		month, _ := layout.MonthOf(crawl)
		return fmt.Sprintf("crawlbatch reparse --month %s --as %s%s", month, crawl, flags)
	}
	return fmt.Sprintf("crawlbatch plan --month %s --source FILE%s", crawl, flags)
}

// anyKey reports whether the store has a key that starts with prefix.
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

// newestAt returns the newest entry about a subject, or nil.
func (l *Ledger) newestAt(p subject) *manifest.Entry {
	i, ok := l.index[p]
	if !ok {
		return nil
	}
	e := l.doc.Entries[i]
	return &e
}

// Newest returns the newest entry of a kind about a round, or nil.
func (l *Ledger) Newest(what string, round int) *manifest.Entry {
	return l.newestAt(subject{what: what, round: round})
}

// Of returns the newest entry of a kind that concerns the whole crawl, not a single round. If the
// ledger has no such entry, Of returns nil.
func (l *Ledger) Of(what string) *manifest.Entry { return l.Newest(what, -1) }

// Frozen returns the entry that names the inputs.json of a stage, or nil.
func (l *Ledger) Frozen(round int, stage stages.Stage) *manifest.Entry {
	return l.newestAt(subject{what: manifest.EntryFrozen, round: round, stage: string(stage)})
}

// Plan returns the entry of the plan that a round follows, or nil if no plan is chosen, and whether
// the round has started.
func (l *Ledger) Plan(round int) (choice *manifest.Entry, started bool) {
	begun := l.Started(round)
	if begun == nil {
		return l.Newest(manifest.EntryPlan, round), false
	}
	return l.newestAt(subject{what: manifest.EntryPlan, round: round, plan: begun.Plan}), true
}

// Started returns the entry with which a round began, or nil.
func (l *Ledger) Started(round int) *manifest.Entry { return l.Newest(manifest.EntryStarted, round) }

// Now returns the frozen time for planning a round. ok is false if no time was frozen.
func (l *Ledger) Now(round int) (now time.Time, ok bool) {
	e := l.Newest(manifest.EntryPlanning, round)
	if e == nil {
		return time.Time{}, false
	}
	now, err := time.Parse(time.RFC3339Nano, e.Now)
	return now, err == nil
}

// Rounds returns the number of rounds up to the newest round that an entry names.
func (l *Ledger) Rounds() int { return l.rounds }

// fresh reports whether the ledger has only the entries of the crawl's creation, or of its own rebuilding.
func (l *Ledger) fresh() bool { return !l.begun }

// Writer appends to ledgers.
type Writer struct {
	Version string // version of this program, for written_by
	Clock   stages.Clock
}

// Append loads the ledger, calls decide with it, and appends the entries that
// decide returns. If another process changes the ledger in the meantime, Append reads the new
// ledger and calls decide again. Append returns the resulting ledger.
func (w Writer) Append(ctx context.Context, b store.Bucket, crawl string, decide func(l *Ledger) ([]manifest.Entry, error)) (*Ledger, error) {
	l, err := Load(ctx, b, crawl)
	if err != nil {
		return nil, err
	}
	return w.AppendTo(ctx, b, l, decide)
}

// AppendTo does the same as Append, with a ledger that the caller has read. If the stored ledger is
// newer, the swap fails. AppendTo then reads the ledger and calls decide again.
func (w Writer) AppendTo(ctx context.Context, b store.Bucket, l *Ledger, decide func(l *Ledger) ([]manifest.Entry, error)) (*Ledger, error) {
	for {
		entries, err := decide(l)
		if errors.Is(err, ErrLost) { // another process may have changed the ledger and the store since l was read
			newer, failed := Load(ctx, b, l.Crawl)
			if failed == nil && newer.version != l.version {
				l = newer
				continue
			}
		}
		if err != nil || len(entries) == 0 {
			return l, err
		}
		if !l.Stored {
			return nil, fmt.Errorf("crawl %s of %s: %w: %w", l.Crawl, b, errUnfounded, stages.ErrPermanent)
		}
		next, err := w.swap(ctx, b, l, entries)
		if !errors.Is(err, store.ErrConflict) {
			return next, err
		}
		if l, err = Load(ctx, b, l.Crawl); err != nil {
			return nil, err
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
	return indexed(next), err
}

func (w Writer) now() string { return w.Clock.Now().UTC().Format(time.RFC3339Nano) }

// Named returns an entry for a document of a round.
func Named(what string, round int, key, digest string) manifest.Entry {
	return manifest.Entry{What: what, Round: &round, Object: key, SHA256: digest}
}

// Planning returns the entry that freezes the time for planning a round.
func Planning(round int, now time.Time) manifest.Entry {
	return manifest.Entry{What: manifest.EntryPlanning, Round: &round, Now: now.UTC().Format(time.RFC3339Nano)}
}

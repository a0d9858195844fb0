package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages"
)

// ErrPruned means that objects of a crawl were deleted by age. This is no loss, because the ledger
// says so.
var ErrPruned = errors.New("deleted on purpose, which is no loss")

// Pruning returns the newest entry `pruning`, or nil if nothing of the crawl was pruned. Such an
// entry covers what the older ones cover.
func (l *Ledger) Pruning() *manifest.Entry { return l.Of(manifest.EntryPruning) }

// PruneUnfinished reports whether `prune` was interrupted, or is running, in the ledger's crawl.
func (l *Ledger) PruneUnfinished() bool {
	began, ended := l.Pruning(), l.Of(manifest.EntryPruned)
	return began != nil && (ended == nil || ended.N < began.N)
}

// Gone reports whether the crawl was pruned as a whole, except its ledger.
func (l *Ledger) Gone() bool {
	e := l.Pruning()
	return e != nil && e.Prune != nil && e.Prune.Policy == manifest.PruneMetadata
}

// CheckGone returns an error that wraps ErrPruned if the crawl was pruned as a whole.
func (l *Ledger) CheckGone() error {
	if !l.Gone() {
		return nil
	}
	return fmt.Errorf("crawl %s %s; only its ledger is left: %w", l.Crawl, pruned(l.Pruning()), ErrPruned)
}

// CheckRaw returns an error that wraps ErrPruned if the crawl's raw captures were pruned.
func (l *Ledger) CheckRaw() error {
	if e := l.Pruning(); e == nil || e.Prune.Policy == manifest.PruneWorking {
		return nil
	}
	return l.CheckWorking()
}

// CheckWorking returns an error that wraps ErrPruned if the crawl's working data was pruned.
func (l *Ledger) CheckWorking() error {
	if err := l.CheckGone(); err != nil || l.Pruning() == nil {
		return err
	}
	return fmt.Errorf("crawl %s: %s: %w", l.Crawl, pruned(l.Pruning()), ErrPruned)
}

// pruned describes an entry `pruning` for messages.
func pruned(e *manifest.Entry) string {
	day, _, _ := strings.Cut(e.At, "T")
	what := map[string]string{manifest.PruneWorking: "the working data was", manifest.PruneRaw: "the raw captures were", manifest.PruneMetadata: "was"}
	return fmt.Sprintf("%s pruned on %s (%s)", what[e.Prune.Policy], day, Retention(e.Prune))
}

// Retention names the config key that decided that objects are deleted, with its value.
func Retention(p *manifest.Pruning) string {
	if p.Policy == manifest.PruneWorking {
		return "retention.working_data_days: " + Count(p.Days, "day")
	}
	return "retention." + p.Policy + ": " + Count(p.Months, "month")
}

// Count writes a number of days or months.
func Count(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

// Placeholders returns seals without files that stand for the sealed rounds of a crawl that was
// pruned as a whole, up to the given number of rounds.
func (l *Ledger) Placeholders(rounds int) (all []*manifest.Sealed) {
	p := l.Pruning().Prune
	for round := range min(rounds, len(p.Buckets)) {
		all = append(all, &manifest.Sealed{Crawl: l.Crawl, Round: round, Buckets: p.Buckets[round], Pruned: true})
	}
	return all
}

// Pruned says which objects of a crawl were pruned.
type Pruned struct {
	Entry *manifest.Entry
	// Unfinished means that some of these objects may still exist.
	Unfinished bool

	crawl string
	kept  map[string]bool // WARC files that stay
}

// Has reports whether an object was pruned. A crawl that was not pruned as a whole may get another
// round later. Objects of such a round were not pruned.
func (p *Pruned) Has(key string) bool {
	if layout.CrawlOf(key) != p.crawl {
		return false
	}
	if index, ok := strings.CutSuffix(key, ".cdxj"); ok {
		key = index + ".warc.gz"
	}
	policy := p.Entry.Prune.Policy
	switch {
	case policy != manifest.PruneMetadata && roundOf(key) >= p.Entry.Prune.Rounds:
		return false
	case policy == manifest.PruneWorking:
		return isWorking(key)
	case strings.HasPrefix(key, "warc/"):
		return !p.kept[key]
	case policy == manifest.PruneMetadata:
		return key != layout.Ledger(p.crawl) && !strings.HasPrefix(key, layout.PruneDir(p.crawl))
	}
	return isWorking(key) || isSegment(key)
}

// String says why and when the objects were pruned.
func (p *Pruned) String() string { return pruned(p.Entry) }

// roundOf returns the round in the key of a WARC file, an index, or an object of a crawl's folder, or -1.
func roundOf(key string) int {
	parts := strings.Split(strings.TrimPrefix(key, "warc/"), "/") // crawl=…/round=…/…
	if len(parts) < 3 {
		return -1
	}
	digits, ok := strings.CutPrefix(parts[1], "round=")
	round, err := strconv.Atoi(digits)
	if !ok || err != nil {
		return -1
	}
	return round
}

// ofStage returns the elements of the key of an object in the folder of a stage that may be pruned, or nil:
// crawl=…/round=…/fetch/part-…/segments/… or crawl=…/round=…/STAGE/work/NAME/….
func ofStage(key string) []string {
	parts := strings.Split(key, "/")
	if len(parts) < 6 || !strings.HasPrefix(parts[0], "crawl=") || !strings.HasPrefix(parts[1], "round=") {
		return nil
	}
	return parts
}

// isSegment reports whether an object is a segment.
func isSegment(key string) bool {
	parts := ofStage(key)
	return parts != nil && parts[2] == string(stages.Fetch) && parts[4] == "segments"
}

// isWorking reports whether an object is working data: a working file of a reduce stage that no later round reads, or
// the texts of a segment, which the table text repeats. A reparse reads the other files of segments.
func isWorking(key string) bool {
	if isSegment(key) {
		return strings.HasSuffix(key, "-"+stages.FileText+".parquet")
	}
	parts := ofStage(key)
	later := []string{stages.FileRepresentatives, stages.FileURLFilter, stages.FileURLsBase}
	return parts != nil && parts[2] != string(stages.Fetch) && parts[3] == "work" && !slices.ContainsFunc(later, func(name string) bool {
		return parts[4] == name || strings.HasPrefix(parts[4], name+"-")
	})
}

// NewPruned returns what an entry `pruning` covers. kept lists the WARC files that stay.
func NewPruned(crawl string, e *manifest.Entry, kept []string) *Pruned {
	p := &Pruned{Entry: e, crawl: crawl, kept: make(map[string]bool, len(kept))}
	for _, key := range kept {
		p.kept[key] = true
	}
	return p
}

// ReadPruned returns what was pruned of the ledger's crawl, or nil if nothing was. If the list of
// the WARC files that stay is lost, the error is a Lost error.
func (l *Ledger) ReadPruned(ctx context.Context, b store.Bucket) (*Pruned, error) {
	e := l.Pruning()
	if e == nil {
		return nil, nil
	}
	var list manifest.Prune
	if err := l.Check(ctx, b, e, &list); err != nil {
		return nil, err
	}
	p := NewPruned(l.Crawl, e, list.Kept)
	p.Unfinished = l.PruneUnfinished()
	return p, nil
}

// AssumePruned is like ReadPruned. But if the list of the WARC files that stay is lost, all of the crawl's WARC files
// count as pruned, and Unfinished is true.
func (l *Ledger) AssumePruned(ctx context.Context, b store.Bucket) (*Pruned, error) {
	p, err := l.ReadPruned(ctx, b)
	if err != nil && unlessFault(err) == nil {
		p, err = NewPruned(l.Crawl, l.Pruning(), nil), nil
		p.Unfinished = true
	}
	return p, err
}

// AllPruned holds what was pruned of each crawl of a store, by crawl.
type AllPruned map[string]*Pruned

// Has reports whether an object was pruned.
func (a AllPruned) Has(key string) bool {
	if len(a) == 0 {
		return false
	}
	p := a[layout.CrawlOf(key)]
	return p != nil && p.Has(key)
}

// ReadAllPruned returns what AssumePruned returns of all crawls that the head names. ReadAllPruned leaves
// out crawls whose ledger is lost: other calls report these losses.
func ReadAllPruned(ctx context.Context, b store.Bucket, crawl string) (AllPruned, error) {
	all := AllPruned{}
	head, _, err := LoadHead(ctx, b, crawl)
	if err != nil || head == nil {
		return all, unlessFault(err)
	}
	for _, c := range head.Crawls {
		l, err := Load(ctx, b, c.Crawl)
		if err != nil {
			if err := unlessFault(err); err != nil {
				return nil, err
			}
			continue
		}
		p, err := l.AssumePruned(ctx, b)
		if err != nil {
			return nil, err
		}
		if p != nil {
			all[c.Crawl] = p
		}
	}
	return all, nil
}

// unlessFault returns nil if err says that a document is lost or damaged, otherwise err.
func unlessFault(err error) error {
	for _, fault := range []error{ErrLost, manifest.ErrCorrupt, manifest.ErrFormat, ErrNoCrawl} {
		if errors.Is(err, fault) {
			return nil
		}
	}
	return err
}

// prunings returns the ledger entries for a crawl's lists of WARC files that stay, oldest first.
func prunings(ctx context.Context, b store.Bucket, crawl string) (all []manifest.Entry, err error) {
	at := map[string]string{} // time of the decision, by key
	for o, err := range b.List(ctx, layout.PruneDir(crawl)) {
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", layout.PruneDir(crawl), err)
		}
		var list manifest.Prune
		digest, _, err := readOptional(ctx, b, o.Key, &list)
		if err != nil {
			return nil, err
		}
		if digest == "" || list.Crawl != crawl {
			continue
		}
		at[o.Key] = list.At
		all = append(all, pruningEntry(o.Key, digest, &list))
	}
	slices.SortFunc(all, func(a, b manifest.Entry) int { return strings.Compare(at[a.Object]+a.Object, at[b.Object]+b.Object) })
	return all, nil
}

// pruningEntry returns the entry for a list of WARC files that stay.
func pruningEntry(key, digest string, list *manifest.Prune) manifest.Entry {
	about := list.Prune
	return manifest.Entry{What: manifest.EntryPruning, Object: key, SHA256: digest, Prune: &about}
}

// BeginPruning stores the list of the WARC files that stay, and then appends the entry `pruning`.
// After that, objects for which Pruned.Has returns true may be absent. BeginPruning does nothing if
// the newest entry says the same.
func (w Writer) BeginPruning(ctx context.Context, b store.Bucket, list *manifest.Prune) (*Ledger, error) {
	list.Version = w.Version
	return w.Append(ctx, b, list.Crawl, func(l *Ledger) ([]manifest.Entry, error) {
		old, err := l.ReadPruned(ctx, b)
		if unlessFault(err) != nil {
			return nil, err
		}
		if old != nil && old.same(list) {
			return nil, nil
		}
		list.At = w.now()
		body, err := manifest.Encode(list)
		if err != nil {
			return nil, err
		}
		digest := manifest.ContentDigest(body)
		key := layout.Prune(list.Crawl, digest)
		if _, err := store.CreateBytes(ctx, b, key, body); err != nil {
			return nil, err
		}
		return []manifest.Entry{pruningEntry(key, digest, list)}, nil
	})
}

// same reports whether the newest pruning deletes the same objects as a new list would.
func (p *Pruned) same(list *manifest.Prune) bool {
	if p.Entry.Prune.Policy != list.Prune.Policy || p.Entry.Prune.Rounds != list.Prune.Rounds || len(p.kept) != len(list.Kept) {
		return false
	}
	return !slices.ContainsFunc(list.Kept, func(key string) bool { return !p.kept[key] })
}

// EndPruning appends the entry `pruned`, unless the ledger has it.
func (w Writer) EndPruning(ctx context.Context, b store.Bucket, crawl string) error {
	_, err := w.Append(ctx, b, crawl, func(l *Ledger) ([]manifest.Entry, error) {
		if !l.PruneUnfinished() {
			return nil, nil
		}
		return []manifest.Entry{{What: manifest.EntryPruned}}, nil
	})
	return err
}

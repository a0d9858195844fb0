package compact

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// ErrChanged means that something of the crawl changed while it was copied. A new run can succeed.
var ErrChanged = errors.New("run the command again")

// DefaultTarget is the size at which a part ends, in bytes.
const DefaultTarget = 256 << 20

// copiers is the number of datasets that are copied at the same time. A copy holds a batch of rows of
// 64 parts and a row group: about 150 MB for a round of many partitions.
const copiers = 2

// abandoned is the age at which parts that no ledger names are taken for the leftovers of a process
// that died. late is the age at which a run gives way to one that has ended since it began, because
// that one may have taken its parts for leftovers. The difference allows for clocks that differ.
const (
	abandoned = 24 * time.Hour
	late      = abandoned / 2
)

// Request says what to copy.
type Request struct {
	Bucket  store.Bucket
	Crawl   string
	Version string // version of crawlbatch, for written_by
	Clock   stages.Clock
	Scratch string // directory for temporary files
	Target  int64  // size at which a part ends, in bytes; 0: DefaultTarget
	Tell    func(Dataset)
}

// Dataset is a dataset of a month, and its parts before and after the copy. Find leaves the figures of
// the copy 0.
type Dataset struct {
	Name        string `json:"dataset"`
	Rounds      int    `json:"rounds"`
	Rows        int64  `json:"rows"`
	Parts       int    `json:"parts"`
	Bytes       int64  `json:"bytes"`
	CopiedParts int    `json:"copied_parts"`
	CopiedBytes int64  `json:"copied_bytes"`

	of    dataset
	parts []part // by round, then key
}

// Found is the result of Find, Run and Drop.
type Found struct {
	Crawl    string    `json:"crawl"`
	Rounds   int       `json:"rounds"` // number of finished rounds
	Datasets []Dataset `json:"datasets"`
	Current  string    `json:"current,omitempty"` // revision of the copy that views read
	Covered  int       `json:"covered"`           // number of finished rounds of which views read the copy
	Deleted  int       `json:"deleted,omitempty"` // number of deleted objects of other copies
	Fault    string    `json:"fault,omitempty"`   // why the list of the current copy cannot be read

	copied []manifest.CompactedRound // rounds and the datasets of each to copy
}

// Find returns what Run would copy, and which rounds views read from a copy now. It writes nothing.
func Find(ctx context.Context, r Request) (*Found, error) {
	l, err := ledger.Load(ctx, r.Bucket, r.Crawl)
	if err != nil {
		return nil, err
	}
	return r.find(ctx, l)
}

func (r *Request) find(ctx context.Context, l *ledger.Ledger) (*Found, error) {
	if err := l.CheckGone(); err != nil {
		return nil, err
	}
	f := &Found{Crawl: r.Crawl, Datasets: []Dataset{}}
	sealed, err := roundstate.Sealed(ctx, r.Bucket, r.Crawl)
	if err != nil {
		return nil, err
	}
	if len(sealed) == 0 {
		return nil, fmt.Errorf("crawl %s cannot be compacted yet: %w", r.Crawl, jobs.ErrNotSealed)
	}
	names := datasets()
	copied := func(name string) bool {
		return slices.ContainsFunc(names, func(d dataset) bool { return d.name == name })
	}
	if sealed, err = roundstate.WithFiles(ctx, r.Bucket, sealed, roundstate.Selection{Dataset: copied}); err != nil {
		return nil, err
	}
	list, err := roundstate.Compaction(ctx, r.Bucket, l)
	switch {
	case errors.Is(err, ledger.ErrLost):
		f.Fault = err.Error()
	case err != nil:
		return nil, err
	case list != nil:
		f.Current = list.Revision
		if roundstate.Covers(list, l) {
			f.Covered = len(list.Rounds)
		}
	}
	for _, d := range names {
		f.Datasets = append(f.Datasets, Dataset{Name: d.name, of: d})
	}
	for _, s := range sealed {
		seal := l.Newest(manifest.EntrySealed, s.Round)
		if seal == nil {
			return nil, fmt.Errorf("compact %s: the ledger does not name the seal of round %d yet: %w", r.Crawl, s.Round, ErrChanged)
		}
		f.Rounds++
		f.copied = append(f.copied, f.addRound(s, seal.SHA256))
	}
	f.Datasets = slices.DeleteFunc(f.Datasets, func(d Dataset) bool { return d.Rounds == 0 })
	return f, nil
}

// addRound adds the parts of a round to the datasets. seal is the digest of the round's seal.
func (f *Found) addRound(s *manifest.Sealed, seal string) manifest.CompactedRound {
	round := manifest.CompactedRound{Round: s.Round, Seal: seal, Datasets: []string{}}
	for i := range f.Datasets {
		d := &f.Datasets[i]
		files := published(s, d.Name)
		if len(files) == 0 {
			continue
		}
		round.Datasets = append(round.Datasets, d.Name)
		d.Rounds++
		d.Parts += len(files)
		for _, file := range files {
			d.Rows, d.Bytes = d.Rows+file.Rows, d.Bytes+file.Bytes
			d.parts = append(d.parts, part{file, s.Round})
		}
	}
	return round
}

// published returns the published parts of a dataset.
func published(s *manifest.Sealed, name string) []manifest.File {
	return slices.DeleteFunc(slices.Clone(s.FilesOf(name)), func(f manifest.File) bool { return !strings.HasPrefix(f.Key, "tables/") })
}

// Run makes a new copy of all finished rounds, makes it the one that views read, and deletes the copies
// before it. After an error, views read the same copy as before, unless the error is a Leftover.
func Run(ctx context.Context, r Request) (*Found, error) {
	if r.Target == 0 {
		r.Target = DefaultTarget
	}
	if err := roundstate.CheckNoPruning(ctx, r.Bucket, r.Crawl); errors.Is(err, roundstate.ErrBusy) {
		return nil, err // a copy would have the rows that a takedown removes
	}
	l, err := ledger.Load(ctx, r.Bucket, r.Crawl)
	if err != nil {
		return nil, err
	}
	f, err := r.find(ctx, l)
	if err != nil {
		return nil, err
	}
	for _, round := range f.copied {
		if round.Seal == "" {
			return nil, fmt.Errorf("compact %s: the ledger does not have the digest of the seal of round %d: %w", r.Crawl, round.Round, stages.ErrPermanent)
		}
	}
	if f.Current, err = r.replace(ctx, f, l); err != nil {
		return nil, fmt.Errorf("compact %s: %w", r.Crawl, err)
	}
	f.Covered, f.Fault = f.Rounds, ""
	return f, r.removeOthers(ctx, f)
}

// Drop makes views read the published parts again, and then deletes all copies. It also appends its
// entry if there are only leftovers to delete, so that a run that is late does not name them any more.
func Drop(ctx context.Context, r Request) (*Found, error) {
	_, err := r.writer().Append(ctx, r.Bucket, r.Crawl, func(l *ledger.Ledger) ([]manifest.Entry, error) {
		if e := l.Of(manifest.EntryCompacted); e == nil || e.Object == "" {
			if some, err := r.anyCopy(ctx); err != nil || !some {
				return nil, err
			}
		}
		return []manifest.Entry{{What: manifest.EntryCompacted}}, nil
	})
	if err != nil {
		return nil, fmt.Errorf("compact %s: %w", r.Crawl, err)
	}
	f := &Found{Crawl: r.Crawl, Datasets: []Dataset{}}
	return f, r.removeOthers(ctx, f)
}

// anyCopy reports whether the store has an object of a copy.
func (r *Request) anyCopy(ctx context.Context) (bool, error) {
	for _, prefix := range []string{layout.CompactedDir(r.Crawl), layout.CompactionDir(r.Crawl)} {
		for _, err := range r.Bucket.List(ctx, prefix) {
			return err == nil, err
		}
	}
	return false, nil
}

func (r *Request) writer() ledger.Writer { return ledger.Writer{Version: r.Version, Clock: r.Clock} }

// replace writes a copy and appends the entry that makes views read it. It returns the revision of the
// copy. If the entry was not appended, it deletes what it has written. If it cannot know whether the
// entry was appended, because its context ended while the store wrote, it deletes nothing: the write may
// take effect later.
func (r *Request) replace(ctx context.Context, f *Found, l *ledger.Ledger) (revision string, err error) {
	var nonce [4]byte
	_, _ = rand.Read(nonce[:]) // never fails
	begun, before := r.Clock.Now(), entries(l)
	list := &manifest.Compaction{Header: manifest.Header{Version: r.Version}, Crawl: r.Crawl, Revision: layout.Revision(begun, binary.BigEndian.Uint32(nonce[:]))}
	key, swapping := "", false
	defer func() {
		if err != nil && swapping && errors.Is(err, store.ErrUnavailable) {
			err = fmt.Errorf("%w; whether views read the new copy is not known, so it stays: `crawlbatch compact --dry-run` says which copy they read", err)
			return
		}
		if err != nil {
			if failed := r.undo(context.WithoutCancel(ctx), list.Revision, key); failed != nil {
				err = fmt.Errorf("%w; parts are left over (%w), which a later `crawlbatch compact` deletes", err, failed)
			}
		}
	}()
	list.Rounds = f.copied
	if list.Files, err = r.copyAll(ctx, f, list.Revision); err != nil {
		return "", err
	}
	list.At = r.Clock.Now().UTC().Format(time.RFC3339Nano)
	body, err := manifest.Encode(list)
	if err != nil {
		return "", err
	}
	digest := manifest.ContentDigest(body)
	key = layout.Compaction(r.Crawl, digest)
	if _, err := store.CreateBytes(ctx, r.Bucket, key, body); err != nil {
		return "", err
	}
	_, err = r.writer().Append(ctx, r.Bucket, r.Crawl, func(l *ledger.Ledger) ([]manifest.Entry, error) {
		swapping = false
		if slices.ContainsFunc(l.Entries(), func(e manifest.Entry) bool { return e.What == manifest.EntryCompacted && e.Object == key }) {
			return nil, nil // an earlier swap succeeded although its answer was lost
		}
		if age := r.Clock.Now().Sub(begun); age > late && entries(l) > before {
			return nil, fmt.Errorf("another `crawlbatch compact` has ended since this one began %s ago, and may have deleted its parts: %w", age.Round(time.Minute), ErrChanged)
		}
		if err := errors.Join(l.CheckGone(), roundstate.CheckNoPruning(ctx, r.Bucket, r.Crawl), r.checkParts(ctx, list)); err != nil {
			return nil, err // a takedown that has begun meanwhile removes rows that the copy has
		}
		if !roundstate.Covers(list, l) {
			return nil, fmt.Errorf("the seal of a round was replaced meanwhile: %w", ErrChanged)
		}
		swapping = true
		return []manifest.Entry{{What: manifest.EntryCompacted, Object: key, SHA256: digest}}, nil
	})
	return list.Revision, err
}

// entries returns the number of entries that made views read another copy, or none.
func entries(l *ledger.Ledger) (n int) {
	for _, e := range l.Entries() {
		if e.What == manifest.EntryCompacted {
			n++
		}
	}
	return n
}

// undo deletes a copy whose entry was not appended. The store may have appended the entry although the
// call failed, so undo looks, and keeps the copy if it cannot know.
func (r *Request) undo(ctx context.Context, revision, list string) error {
	l, err := ledger.Load(ctx, r.Bucket, r.Crawl)
	if err != nil {
		return err
	}
	if list != "" {
		if slices.ContainsFunc(l.Entries(), func(e manifest.Entry) bool { return e.What == manifest.EntryCompacted && e.Object == list }) {
			return errors.New("the ledger has the entry, so the copy stays")
		}
		if err := r.Bucket.Delete(ctx, list); err != nil {
			return err
		}
	}
	_, err = r.remove(ctx, func(other string) bool { return other == revision })
	return err
}

// copyAll copies all datasets and returns the parts of the copy.
func (r *Request) copyAll(ctx context.Context, f *Found, revision string) ([]manifest.File, error) {
	copied := make([][]manifest.File, len(f.Datasets))
	var telling sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(copiers)
	for i := range f.Datasets {
		d := &f.Datasets[i]
		group.Go(func() (err error) {
			if copied[i], err = r.copyDataset(ctx, d, revision); err != nil {
				return err
			}
			d.CopiedParts = len(copied[i])
			for _, file := range copied[i] {
				d.CopiedBytes += file.Bytes
			}
			if r.Tell != nil {
				telling.Lock()
				defer telling.Unlock()
				r.Tell(*d)
			}
			return nil
		})
	}
	err := group.Wait()
	return slices.Concat(copied...), err
}

// copyDataset copies the parts of a dataset, subset by subset.
func (r *Request) copyDataset(ctx context.Context, d *Dataset, revision string) (files []manifest.File, err error) {
	dir := filepath.Join(r.Scratch, d.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create scratch directory: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the caller removes the directory above it too
	for _, parts := range bySubset(d.parts) {
		some, err := r.copyRows(ctx, d.of, parts, revision, dir, len(files))
		if err != nil {
			return nil, err
		}
		files = append(files, some...)
	}
	return files, nil
}

// checkParts returns an error if a part of a list is gone or has another size.
func (r *Request) checkParts(ctx context.Context, list *manifest.Compaction) error {
	for _, f := range list.Files {
		o, err := r.Bucket.Open(ctx, f.Key)
		gone := errors.Is(err, store.ErrNotFound)
		if err == nil {
			gone = o.Size() != f.Bytes
			err = o.Close()
		}
		if gone {
			return fmt.Errorf("%q, which this run wrote, was deleted or replaced: %w", f.Key, ErrChanged)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Leftover means that views read what the command wanted, but that other copies could not be deleted.
type Leftover struct{ Err error }

func (l *Leftover) Error() string {
	return fmt.Sprintf("older copies are left over, which nothing reads: %v; a later `crawlbatch compact` deletes them", l.Err)
}

func (l *Leftover) Unwrap() error { return l.Err }

// removeOthers deletes the copies that nothing reads and nobody writes. These are the copies that older
// entries of the ledger name, and copies that no entry names and that were begun long before the newest
// entry. The ledger never names a revision twice, so a copy that one ledger replaced is never read again.
// A run that is still writing a copy begun so long before the newest entry sees this entry, and does not
// name its copy (see replace).
func (r *Request) removeOthers(ctx context.Context, f *Found) error {
	l, err := ledger.Load(ctx, r.Bucket, r.Crawl)
	if err != nil {
		return &Leftover{err}
	}
	current, replaced := "", map[string]bool{}
	var newest time.Time // of the newest entry; without one, or if it has no readable time, no copy is abandoned
	for _, e := range l.Entries() {
		if e.What == manifest.EntryCompacted {
			replaced[current], current = true, e.Object
			newest, _ = time.Parse(time.RFC3339Nano, e.At)
		}
	}
	abandoned := func(revision string) bool {
		begun, err := layout.RevisionBegun(revision)
		return err == nil && newest.Sub(begun) > abandoned
	}
	var lists []string
	kept, superseded := "", map[string]bool{}
	for o, err := range r.Bucket.List(ctx, layout.CompactionDir(r.Crawl)) {
		if err != nil {
			return &Leftover{err}
		}
		var list manifest.Compaction
		_, _, err := manifest.Load(ctx, r.Bucket, o.Key, &list)
		switch {
		case o.Key == current && err != nil:
			return &Leftover{err} // without the list, nobody knows which copy is read
		case o.Key == current:
			kept = list.Revision
		case replaced[o.Key] || err == nil && abandoned(list.Revision):
			superseded[list.Revision] = true
			lists = append(lists, o.Key)
		}
	}
	if current != "" && kept == "" {
		return &Leftover{fmt.Errorf("%q is lost", current)}
	}
	f.Deleted, err = r.remove(ctx, func(revision string) bool {
		return revision != kept && (superseded[revision] || abandoned(revision))
	})
	for _, key := range lists {
		if err == nil {
			err = r.Bucket.Delete(ctx, key)
			f.Deleted++
		}
	}
	if err != nil {
		return &Leftover{err}
	}
	return nil
}

// remove deletes the objects of the revisions that which selects. It returns the number of deleted
// objects.
func (r *Request) remove(ctx context.Context, which func(revision string) bool) (n int, err error) {
	for o, err := range r.Bucket.List(ctx, layout.CompactedDir(r.Crawl)) {
		if err != nil {
			return n, err
		}
		if revision := layout.RevisionOf(o.Key, r.Crawl); revision != "" && which(revision) {
			if err := r.Bucket.Delete(ctx, o.Key); err != nil {
				return n, err
			}
			n++
		}
	}
	return n, nil
}

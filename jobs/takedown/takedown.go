// Package takedown removes URLs and domains from a store, and registers them so that no crawl plans or
// fetches them again.
//
// It takes a store, names, and the secret key of the store's list of takedowns. Find returns what names
// them. Apply removes it. Objects keep their keys, and get new contents. Rows about a target go, and cells
// that only refer to it become null (package rewrite). Then all documents that list a changed object get
// its new digest, up to the seal. The texts of others stay, even if they mention a target.
//
// Apply is safe at every instant. It claims active.json, so no round is planned or fetched, and no crawl
// is parsed again meanwhile. It stores all new contents in the folder takedown/, then lists of the objects
// with their old and new digests, and then takedown.json, which names the lists. From then on, Resume can
// finish the takedown without knowing the names: each object has its old content, and is replaced on the
// condition that it still has, or it has the new content. At the end, the ledger of each crawl gets
// entries for the changed documents, which supersede the older entries, and the entry `taken_down`.
//
// Memory: a row group or a WARC record and the host names of a partition, for as many objects at a time as there are cores,
// about 100 bytes for each object of the store, and a description of each changed object. New contents pass through scratch files. The package imports jobs/compact, jobs/prune,
// jobs/ledger, jobs/roundstate, stages and formats.
package takedown

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	names "crawlbatch.io/crawlbatch/formats/takedown"
	"crawlbatch.io/crawlbatch/jobs/compact"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/prune"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// Request says what to remove.
type Request struct {
	Bucket        store.Bucket
	URLs, Domains []string
	Reason        string // stored in the list of takedowns; must not name a target
	Secret        string // secret key of the list of takedowns
	Clock         stages.Clock
	Version       string
	Scratch       string // folder for temporary files
}

// Kind counts what a takedown changes in objects of one kind.
type Kind struct {
	Name       string `json:"kind"`
	Objects    int64  `json:"objects"`
	Bytes      int64  `json:"bytes"`                // of these objects before
	Dropped    int64  `json:"rows"`                 // rows or lines about a target
	Cleared    int64  `json:"cleared,omitempty"`    // other rows of which a cell referred to a target
	Adjusted   int64  `json:"adjusted,omitempty"`   // other rows that get other numbers, such as their place in the plan, or another representative
	Tombstones int64  `json:"tombstones,omitempty"` // WARC records that become tombstones
}

// Found says what a takedown removes.
type Found struct {
	Kinds []Kind `json:"kinds"` // by name
	// Mentions is the number of cells with the content of others that mention a target. They stay.
	Mentions int64 `json:"mentions"`
	// Deleted lists objects that are deleted as a whole: nothing reads them, or they cannot be rewritten.
	Deleted []string `json:"deleted,omitempty"`
	// Named lists documents that go on naming a target.
	Named []string `json:"named,omitempty"`
	// Missing lists WARC files and indexes that are lost. The takedown goes on without them. If they come back,
	// they still name the targets until the takedown is repeated.
	Missing []string `json:"missing,omitempty"`
	// Compacted lists crawls whose compacted copies are deleted.
	Compacted []string `json:"compacted,omitempty"`
	// Busy says why Apply would change nothing now.
	Busy []string `json:"busy,omitempty"`
	// Unfinished means that an earlier takedown was interrupted, which Apply finishes first.
	Unfinished bool `json:"unfinished,omitempty"`
}

// Objects returns the number of objects that change or are deleted.
func (f *Found) Objects() (n int64) {
	for _, k := range f.Kinds {
		n += k.Objects
	}
	return n + int64(len(f.Deleted))
}

// counts returns the sums for the list of takedowns.
func (f *Found) counts() []manifest.Count {
	sums := map[string]int64{"objects": f.Objects()}
	for _, k := range f.Kinds {
		sums["rows"] += k.Dropped
		sums["cleared"] += k.Cleared
		sums["tombstones"] += k.Tombstones
	}
	return manifest.SortedCounts(sums)
}

// Find looks for everything that names the targets. It writes nothing to the store.
func Find(ctx context.Context, r Request) (*Found, error) {
	err := ledger.CheckTakedown(ctx, r.Bucket)
	if errors.Is(err, ledger.ErrTakedown) {
		return &Found{Kinds: []Kind{}, Unfinished: true}, nil
	}
	if err != nil {
		return nil, err
	}
	busy, err := r.busy(ctx)
	if err != nil {
		return nil, err
	}
	if len(busy) > 0 {
		return &Found{Kinds: []Kind{}, Busy: busy}, nil
	}
	w, err := r.prepare(ctx, "")
	if err != nil {
		return nil, err
	}
	return w.found, nil
}

// busy says which rounds are unfinished, and which crawls are being pruned.
func (r *Request) busy(ctx context.Context) (why []string, err error) {
	f, err := prune.Look(ctx, prune.Request{Bucket: r.Bucket, Clock: r.Clock, Version: r.Version})
	if err != nil {
		return nil, err
	}
	why = f.Busy
	for _, c := range f.Crawls {
		if c.Unfinished {
			why = append(why, fmt.Sprintf("pruning of %s is not finished: finish it with `crawlbatch prune --apply`", c.Name))
		}
	}
	return why, nil
}

// matcher returns the Matcher of the targets, with the rules of all crawls for URLs.
func (r *Request) matcher(ctx context.Context) (*names.Matcher, error) {
	crawls, err := roundstate.Crawls(ctx, r.Bucket)
	if err != nil {
		return nil, err
	}
	rules, err := roundstate.Canonicalizers(ctx, r.Bucket, crawls)
	if err != nil {
		return nil, err
	}
	return names.New(r.URLs, r.Domains, rules...)
}

// prepare computes what becomes of every object. With an id, it stores the new contents.
func (r *Request) prepare(ctx context.Context, id string) (*work, error) {
	m, err := r.matcher(ctx)
	if err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp(r.Scratch, "takedown-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch) // nolint:errcheck // temporary files
	w, err := newWork(r, m, id, scratch)
	if err != nil {
		return nil, err
	}
	if err := w.everything(ctx); err != nil {
		return nil, err
	}
	if w.found.Objects() == 0 {
		w.found.Compacted = nil // copies have the rows of the published parts
	}
	return w, nil
}

// Apply removes what Find finds, and returns it. Before that, it finishes an interrupted takedown. The
// error is roundstate.ErrBusy if a round is unfinished.
func Apply(ctx context.Context, r Request) (*Found, error) {
	key, err := names.NewKey(r.Secret)
	if err != nil {
		return nil, err
	}
	if _, err := Resume(ctx, r); err != nil {
		return nil, err
	}
	m, err := r.matcher(ctx)
	if err != nil {
		return nil, err
	}
	entry := manifest.Takedown{At: r.now(), Reason: r.Reason}
	busy, err := r.busy(ctx)
	if err == nil && len(busy) > 0 {
		err = fmt.Errorf("%s: nothing is taken down now: %s: %w", r.Bucket, strings.Join(busy, "; "), roundstate.ErrBusy)
		if lost, failed := r.listLost(ctx); failed != nil {
			err = failed
		} else if lost { // no round can be finished without the list
			if failed := r.list(ctx, key, m, entry); failed != nil {
				return nil, failed
			}
			err = fmt.Errorf("the list of takedowns was lost and has these names again: finish what follows, then give this command again: %w", err)
		}
	}
	if err != nil {
		return nil, err
	}
	if err := r.list(ctx, key, m, entry); err != nil {
		return nil, err
	}
	h, err := r.hold(ctx)
	if err != nil {
		return nil, err
	}
	id := strings.NewReplacer(":", "", "-", "", ".", "").Replace(r.now())
	f, err := r.apply(ctx, h, id)
	if err != nil {
		return f, r.abandon(context.WithoutCancel(ctx), h, id, err)
	}
	entry.Counts = f.counts()
	if f.Objects() > 0 { // a repeated command that finds nothing keeps what the first one counted
		err = names.Append(ctx, r.Bucket, key, m, entry)
	}
	return f, errors.Join(err, h.Release(ctx))
}

// list adds an entry to the store's list, and then makes a ledger say that the store has a list, so that its loss is
// noticed. In the other order, an interruption would look like a loss.
func (r *Request) list(ctx context.Context, key names.Key, m *names.Matcher, entry manifest.Takedown) error {
	if err := names.Append(ctx, r.Bucket, key, m, entry); err != nil {
		return err
	}
	return r.writer().NoteTakedowns(ctx, r.Bucket)
}

// listLost reports whether the store has no list of takedowns, although a ledger or the plan of an unfinished round
// says that there was one.
func (r *Request) listLost(ctx context.Context) (bool, error) {
	list, err := names.List(ctx, r.Bucket)
	if err != nil || list != nil {
		return false, err
	}
	if err := ledger.CheckTakedownList(ctx, r.Bucket); err != nil {
		if errors.Is(err, ledger.ErrLost) {
			return true, nil
		}
		return false, err
	}
	crawls, err := roundstate.Crawls(ctx, r.Bucket)
	for _, crawl := range crawls {
		l, err := ledger.Load(ctx, r.Bucket, crawl)
		if err != nil {
			return false, err
		}
		if l.Gone() || l.Rounds() == 0 {
			continue
		}
		p, _, err := roundstate.PlanIn(ctx, r.Bucket, l, l.Rounds()-1)
		if err != nil {
			return false, err
		}
		if p.TakenDown > 0 {
			return true, nil
		}
	}
	return false, err
}

// abandon ends a takedown after an error. If it has changed nothing yet, abandon deletes its new contents and
// releases the claim, so that other commands can run.
func (r *Request) abandon(ctx context.Context, h *roundstate.Hold, id string, err error) error {
	var pending manifest.Removing
	_, _, failed := manifest.Load(ctx, r.Bucket, layout.Takedown(), &pending)
	began, unknown := "", error(nil)
	if errors.Is(failed, store.ErrNotFound) { // or it was lost, and the new contents are the only ones
		began, unknown = r.began(ctx)
	}
	switch staged := layout.TakedownDir + id + "/"; {
	case errors.Is(failed, store.ErrNotFound) && began == "" && unknown == nil:
		failed = errors.Join(r.removeStaged(ctx, staged), h.Release(ctx))
	case failed == nil && pending.ID != id: // another takedown has taken over
		failed = r.removeStaged(ctx, staged)
	default:
		return fmt.Errorf("%w; some objects may be changed and others not, until `crawlbatch takedown --resume` succeeds", err)
	}
	if failed != nil {
		err = fmt.Errorf("%w; new contents are left over (%w), which the next takedown deletes", err, failed)
	}
	return fmt.Errorf("%w; this command changed only the list of takedowns: its names are not planned or fetched any more, "+
		"but the store holds what they name until the command succeeds: give it again", err)
}

func (r *Request) apply(ctx context.Context, h *roundstate.Hold, id string) (*Found, error) {
	if _, err := r.finish(ctx, h); err != nil {
		return nil, err
	}
	w, err := r.prepare(ctx, id)
	if err != nil {
		return nil, err
	}
	w.found.Compacted = nil
	if w.found.Objects() > 0 {
		if w.found.Compacted, err = r.dropCompacted(ctx, h); err != nil {
			return w.found, err
		}
	}
	if err := w.publish(ctx, h); err != nil {
		return w.found, err
	}
	did, err := r.finish(ctx, h)
	if err == nil && !did && w.found.Objects() > 0 {
		err = fmt.Errorf("%s: the new contents were deleted before an object was changed: %w", r.Bucket, roundstate.ErrBusy)
	}
	return w.found, err
}

// Resume finishes an interrupted takedown, whose names it need not know. It reports whether there was
// one that had begun to change objects.
func Resume(ctx context.Context, r Request) (bool, error) {
	a, _, err := ledger.LoadActive(ctx, r.Bucket, "YYYY-MM")
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, err
	}
	if err != nil || !a.Takedown || a.Done {
		if err := ledger.CheckTakedown(ctx, r.Bucket); err == nil {
			return false, r.anyCrawl(ctx)
		} else if !errors.Is(err, ledger.ErrTakedown) {
			return false, err
		}
	}
	h, err := r.hold(ctx)
	if err != nil {
		return false, err
	}
	did, err := r.finish(ctx, h)
	if err != nil {
		return did, fmt.Errorf("%w; some objects are changed and others not, until `crawlbatch takedown --resume` succeeds", err)
	}
	return did, h.Release(ctx)
}

// anyCrawl returns an error if the store never had a crawl, as a mistyped one.
func (r *Request) anyCrawl(ctx context.Context) error {
	head, _, err := ledger.LoadHead(ctx, r.Bucket, "YYYY-MM")
	if err != nil || head != nil {
		return err
	}
	crawls, err := roundstate.Crawls(ctx, r.Bucket)
	if err == nil && len(crawls) == 0 {
		err = &ledger.NoCrawl{Bucket: r.Bucket}
	}
	return err
}

// dropCompacted deletes the compacted copies of all crawls, because they have the rows of targets too.
func (r *Request) dropCompacted(ctx context.Context, h *roundstate.Hold) (dropped []string, err error) {
	crawls, err := roundstate.Crawls(ctx, r.Bucket)
	if err != nil {
		return nil, err
	}
	for _, crawl := range crawls {
		if err := h.Check(ctx); err != nil {
			return nil, err
		}
		f, err := compact.Drop(ctx, compact.Request{Bucket: r.Bucket, Crawl: crawl, Version: r.Version, Clock: r.Clock, Scratch: r.Scratch})
		if err != nil {
			return nil, err
		}
		if f.Deleted > 0 {
			dropped = append(dropped, crawl)
		}
	}
	// What is left are parts of a copy that was interrupted. No copy can begin meanwhile, and one that has begun
	// before does not become the one that views read.
	keys, err := r.keysIn(ctx, "compacted/")
	if err == nil {
		err = h.Check(ctx)
	}
	if err != nil {
		return nil, err
	}
	return dropped, r.remove(ctx, keys)
}

func (r *Request) now() string { return r.Clock.Now().UTC().Format(time.RFC3339Nano) }

func (r *Request) writer() ledger.Writer { return ledger.Writer{Version: r.Version, Clock: r.Clock} }

// hold claims active.json. It also takes over the claim of an earlier takedown that died. If that one is
// alive, it stops.
func (r *Request) hold(ctx context.Context) (*roundstate.Hold, error) {
	crawls, err := roundstate.Crawls(ctx, r.Bucket)
	if err != nil || len(crawls) == 0 {
		return &roundstate.Hold{}, err // a store without crawls has nothing to protect
	}
	held := &manifest.Active{Header: manifest.Header{Version: r.Version}, Crawl: crawls[0], Prune: true, Takedown: true, Nonce: "takedown-" + r.now()}
	c, err := roundstate.TakeHold(ctx, r.Bucket, held)
	if err != nil {
		return nil, err
	}
	if err := ledger.CheckTakedown(ctx, r.Bucket); errors.Is(err, ledger.ErrTakedown) {
		return c, nil // all rounds were sealed when it began, and seals may have changed already
	}
	// A reparse may have begun, or a round may have been planned, before active.json was claimed.
	var busy []string
	if err = r.writer().Fence(ctx, r.Bucket); err == nil {
		busy, err = r.busy(ctx)
	}
	if err == nil && len(busy) > 0 {
		err = fmt.Errorf("%s: nothing is taken down now: %s: %w", r.Bucket, strings.Join(busy, "; "), roundstate.ErrBusy)
	}
	if err != nil {
		return nil, errors.Join(err, c.Release(ctx))
	}
	return c, nil
}

// kindOf names the kind of an object.
func kindOf(key string) string {
	parts := strings.Split(key, "/")
	switch {
	case parts[0] == "tables":
		return "table " + parts[1]
	case parts[0] == "webgraph":
		return "web graphs"
	case strings.HasSuffix(key, ".warc.gz"):
		return "WARC files"
	case strings.HasSuffix(key, ".cdxj"):
		return "WARC indexes"
	case slices.Contains(parts, "segments"):
		return "segments"
	case slices.Contains(parts, "work"):
		return "working files"
	case strings.HasSuffix(key, ".parquet") && strings.Contains(key, "/plan-"):
		return "plans"
	}
	return "documents"
}

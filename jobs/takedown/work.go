package takedown

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/overlay"
	names "crawlbatch.io/crawlbatch/formats/takedown"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/takedown/rewrite"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/publish"
)

// The steps in which objects change.
const (
	stepData = iota
	stepCheckpoint
	stepResult
	stepInputs
	stepManifest
	stepSeal
	stepDelete
)

// work computes what becomes of every object of a store.
type work struct {
	r      *Request
	m      *names.Matcher
	id     string // names the folder with the new contents; "": they are not stored
	staged int    // number of new contents so far
	rw     *rewrite.Rewriter
	over   *overlay.Bucket // the store with the new documents
	crawls []*crawl

	changed map[string]manifest.File // new descriptions of changed files, by key
	recount map[string]recounted     // of changed files with rows that documents count by a column
	digests map[string]string        // new digests of changed results, by the old ones
	seen    map[string]struct{}      // keys that documents list, and keys of documents
	kinds   map[string]*Kind
	deleted map[string]struct{}
	found   *Found
}

// crawl is a crawl of the store.
type crawl struct {
	name    string
	ledger  *ledger.Ledger
	pruned  *ledger.Pruned
	rounds  []*round
	objects []manifest.ChangedObject
	entries []manifest.Entry
}

// round is a sealed round.
type round struct {
	crawl   *crawl
	n       int
	choice  *manifest.Entry // names the plan
	plan    *manifest.Plan
	seal    *manifest.Sealed
	dropped map[int][]int32 // rows of plan files that go, by partition
}

func newWork(r *Request, m *names.Matcher, id, scratch string) (*work, error) {
	layer, files := filepath.Join(scratch, "documents"), filepath.Join(scratch, "files")
	for _, dir := range []string{layer, files} {
		if err := os.Mkdir(dir, 0o777); err != nil {
			return nil, err
		}
	}
	w := &work{
		r: r, m: m, id: id, over: overlay.New(r.Bucket, layer),
		changed: map[string]manifest.File{}, recount: map[string]recounted{}, digests: map[string]string{},
		seen: map[string]struct{}{}, kinds: map[string]*Kind{}, deleted: map[string]struct{}{}, found: &Found{Kinds: []Kind{}},
	}
	w.rw = &rewrite.Rewriter{Bucket: r.Bucket, Matcher: m, Scratch: files, Removed: map[rewrite.Record]struct{}{}, DroppedRows: w.droppedRows}
	return w, nil
}

func (w *work) droppedRows(crawl string, n, partition int) []int32 {
	for _, c := range w.crawls {
		if c.name == crawl && n < len(c.rounds) {
			return c.rounds[n].dropped[partition]
		}
	}
	return nil
}

// everything computes the new content of every object. The order matters: rows that refer to a removed
// record or planned row are found after it.
func (w *work) everything(ctx context.Context) error {
	if err := w.load(ctx); err != nil {
		return err
	}
	isWARC := func(f *manifest.File) bool { return f.Dataset == stages.FileWARC }
	passes := []func(*round) error{
		func(r *round) error { return w.planFiles(ctx, r) },
		func(r *round) error { return w.files(ctx, r, isWARC) },
		func(r *round) error { return w.files(ctx, r, func(f *manifest.File) bool { return !isWARC(f) }) },
	}
	for _, pass := range passes {
		for _, c := range w.crawls {
			if err := w.clusters(ctx, c); err != nil {
				return err
			}
			for _, r := range c.rounds {
				if err := pass(r); err != nil {
					return err
				}
			}
		}
	}
	for _, c := range w.crawls {
		if err := w.documents(ctx, c); err != nil {
			return err
		}
	}
	if err := w.others(ctx); err != nil {
		return err
	}
	for _, c := range w.crawls {
		slices.SortStableFunc(c.objects, func(a, b manifest.ChangedObject) int { return cmp.Compare(a.Step, b.Step) })
	}
	for _, k := range w.kinds {
		w.found.Kinds = append(w.found.Kinds, *k)
	}
	slices.SortFunc(w.found.Kinds, func(a, b Kind) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// load reads the ledgers, plans and seals of all crawls, months before their reparses.
func (w *work) load(ctx context.Context) error {
	head, _, err := ledger.LoadHead(ctx, w.r.Bucket, "YYYY-MM")
	if err != nil {
		return err
	}
	all, err := roundstate.Crawls(ctx, w.r.Bucket)
	if err != nil {
		return err
	}
	if head != nil {
		for _, n := range head.Crawls {
			all = append(all, n.Crawl) // those that were pruned as a whole too
		}
	}
	slices.Sort(all)
	for _, name := range slices.Compact(all) {
		l, err := ledger.Load(ctx, w.r.Bucket, name)
		if err != nil {
			return err
		}
		c := &crawl{name: name, ledger: l}
		if c.pruned, err = l.ReadPruned(ctx, w.r.Bucket); err != nil {
			return err
		}
		w.crawls = append(w.crawls, c)
		if l.Gone() {
			continue
		}
		sealed, err := roundstate.Sealed(ctx, w.r.Bucket, name)
		if err != nil {
			return err
		}
		for n, s := range sealed {
			p, _, err := roundstate.PlanIn(ctx, w.r.Bucket, l, n)
			if err != nil {
				return err
			}
			choice, _ := l.Plan(n)
			c.rounds = append(c.rounds, &round{crawl: c, n: n, choice: choice, plan: p, seal: s, dropped: map[int][]int32{}})
		}
	}
	return nil
}

// clusters sets the clusters of a crawl: of all months, or of a reparse.
func (w *work) clusters(ctx context.Context, c *crawl) error {
	if len(c.rounds) == 0 || !layout.IsReparse(c.name) && w.rw.Clusters != nil && !layout.IsReparse(w.crawlBefore(c)) {
		return nil
	}
	var sealed []*manifest.Sealed
	for _, o := range w.crawls {
		if o == c || !layout.IsReparse(c.name) && !layout.IsReparse(o.name) {
			for _, r := range o.rounds {
				sealed = append(sealed, r.seal)
			}
		}
	}
	sealed, err := roundstate.WithFiles(ctx, w.r.Bucket, sealed, roundstate.Selection{Dataset: func(d string) bool { return d == stages.FileDuplicates || d == stages.FilePages }})
	if err != nil {
		return err
	}
	var rounds []rewrite.Round
	for _, s := range sealed {
		rounds = append(rounds, rewrite.Round{Crawl: s.Crawl, Round: s.Round, Files: s.Files})
	}
	w.rw.Clusters, err = rewrite.FindClusters(ctx, w.r.Bucket, w.m, rounds)
	return err
}

// crawlBefore returns the name of the crawl before c, or "".
func (w *work) crawlBefore(c *crawl) string {
	if i := slices.Index(w.crawls, c); i > 0 {
		return w.crawls[i-1].name
	}
	return ""
}

func (w *work) planFiles(ctx context.Context, r *round) error {
	for i := range r.plan.Partitions {
		part := &r.plan.Partitions[i]
		n, err := w.file(ctx, r.crawl, part.File, r.plan.Format)
		if err != nil {
			return err
		}
		if n != nil {
			r.dropped[part.Partition] = n.DroppedRows
		}
		if part.Spellings != nil {
			if _, err := w.file(ctx, r.crawl, *part.Spellings, r.plan.Format); err != nil {
				return err
			}
		}
	}
	for _, f := range r.plan.Lists() {
		if _, err := w.file(ctx, r.crawl, f, r.plan.Format); err != nil {
			return err
		}
	}
	return nil
}

// files rewrites those files of a round's results for which want returns true.
func (w *work) files(ctx context.Context, r *round, want func(*manifest.File) bool) error {
	for _, stage := range stages.Of(r.plan) {
		version := r.plan.Format
		if e := r.crawl.ledger.Frozen(r.n, stage); e != nil && e.Format > 0 {
			version = e.Format
		}
		for _, t := range roundstate.Tasks(r.plan, stage) {
			res, _, err := roundstate.LoadResultOf(ctx, w.r.Bucket, r.plan, t)
			if err == nil && res == nil {
				err = fmt.Errorf("%s has no result, though its round is sealed: restore it: %w", t, stages.ErrPermanent)
			}
			if err != nil {
				return err
			}
			for _, f := range res.Files {
				if !want(&f) {
					continue
				}
				if _, err := w.file(ctx, r.crawl, f, version); err != nil {
					return err
				}
			}
		}
	}
	for _, dataset := range publish.Accounts {
		if want(&manifest.File{Dataset: dataset}) {
			if err := w.account(ctx, r, dataset); err != nil {
				return err
			}
		}
	}
	return nil
}

// account rewrites the part of a dataset that says what a round took, because its error messages may name
// a target. No result lists it, so its new content is also where the seal is made again.
func (w *work) account(ctx context.Context, r *round, dataset string) error {
	f, err := describe(ctx, w.r.Bucket, store.Info{Key: publish.AccountKey(r.plan, dataset)})
	if errors.Is(err, store.ErrNotFound) {
		return nil // the round is older than the dataset, or was pruned
	}
	if err != nil {
		return err
	}
	f.Dataset = dataset
	n, err := w.file(ctx, r.crawl, f, r.plan.Format)
	if err != nil || n == nil {
		return err
	}
	body, err := os.Open(n.Path)
	if err != nil {
		return err
	}
	defer body.Close() // nolint:errcheck // it was only read
	_, err = w.over.Create(ctx, f.Key, body, n.File.Bytes)
	return err
}

// file rewrites a file that a document lists. The result is nil if the file does not change.
func (w *work) file(ctx context.Context, c *crawl, f manifest.File, version int) (*rewrite.Rewritten, error) {
	if _, done := w.seen[f.Key]; done {
		return nil, nil
	}
	w.seen[f.Key] = struct{}{}
	if c.pruned != nil && c.pruned.Has(f.Key) {
		return nil, nil
	}
	checked := manifest.NewChecked(w.r.Bucket)
	checked.Add("restore it from a copy: `crawlbatch verify` says more", f)
	w.rw.Bucket = checked
	n, err := w.rw.File(ctx, &f, version)
	if err != nil || n == nil {
		return nil, err
	}
	w.found.Mentions += n.Mentions
	if n.File.SHA256 == f.SHA256 {
		return nil, nil
	}
	k := w.kind(f.Key)
	k.Dropped += n.Dropped
	k.Cleared += n.Cleared
	k.Tombstones += n.Tombstones
	w.changed[f.Key] = n.File
	if err := w.countRows(ctx, f, n); err != nil {
		return nil, err
	}
	body, err := os.Open(n.Path)
	if err != nil {
		return nil, err
	}
	defer body.Close() // nolint:errcheck // it was only read
	return n, w.put(ctx, c, stepData, f.Key, f.SHA256, f.Bytes, n.File.SHA256, body, n.File.Bytes)
}

func (w *work) kind(key string) *Kind {
	name := kindOf(key)
	if w.kinds[name] == nil {
		w.kinds[name] = &Kind{Name: name}
	}
	return w.kinds[name]
}

// put notes that an object changes, and stores its new content. Without a digest, it is deleted.
func (w *work) put(ctx context.Context, c *crawl, step int, key, old string, size int64, digest string, body io.ReaderAt, bytes int64) error {
	o := manifest.ChangedObject{Key: key, Old: old, New: digest, Step: step}
	if old != "" && digest != "" {
		k := w.kind(key)
		k.Objects++
		k.Bytes += size
	}
	if w.id != "" && digest != "" {
		w.staged++
		o.Staged = w.staged
		if _, err := w.r.Bucket.Create(ctx, layout.Staged(w.id, o.Staged), body, bytes); err != nil {
			return err
		}
	}
	c.objects = append(c.objects, o)
	return nil
}

// others looks through the objects that no document lists.
func (w *work) others(ctx context.Context) error {
	for o, err := range w.r.Bucket.List(ctx, "") {
		if err != nil {
			return err
		}
		if _, seen := w.seen[o.Key]; seen || strings.HasPrefix(o.Key, layout.TakedownDir) {
			continue
		}
		if err := w.other(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// other judges an object that no document lists: the rest of an interrupted attempt, something that was
// quarantined, or a file of a person. It stays unless it names a target. Of what cannot be read, nobody can
// tell, so it goes if other objects name a target.
func (w *work) other(ctx context.Context, o store.Info) error {
	c := w.crawlOf(o.Key)
	switch {
	case strings.HasPrefix(o.Key, "compacted/"):
		if name := layout.CrawlOf(o.Key); !slices.Contains(w.found.Compacted, name) {
			w.found.Compacted = append(w.found.Compacted, name)
		}
		return nil
	case len(w.crawls) == 0:
		return nil
	case strings.HasSuffix(o.Key, ".json"):
		return w.otherDocument(ctx, c, o)
	case c != nil && c.pruned != nil && strings.HasPrefix(o.Key, "warc/"):
		return w.keptWARC(ctx, c, o)
	case c == nil && layout.CrawlOf(o.Key) == "" && !strings.HasPrefix(o.Key, "quarantine/"):
		return nil // not an object of crawlbatch
	}
	named, readable, err := rewrite.Mentions(ctx, w.r.Bucket, o.Key, w.m)
	if err != nil || !named && (readable || len(w.kinds) == 0) {
		return err
	}
	if c == nil {
		c = w.crawls[0]
	}
	return w.remove(ctx, c, o.Key)
}

func (w *work) crawlOf(key string) *crawl {
	name := layout.CrawlOf(key)
	for _, c := range w.crawls {
		if c.name == name {
			return c
		}
	}
	return nil
}

// keptWARC rewrites a WARC file that stayed when its crawl was pruned as a whole. Its index follows from
// the same key, and comes before it in listings.
func (w *work) keptWARC(ctx context.Context, c *crawl, o store.Info) error {
	f, err := describe(ctx, w.r.Bucket, o)
	if err != nil {
		return err
	}
	if f.Dataset = stages.FileWARC; strings.HasSuffix(o.Key, ".cdxj") {
		f.Dataset = stages.FileCDXJ
	}
	_, err = w.file(ctx, c, f, 0)
	return err
}

// describe returns the digests of an object that no document lists.
func describe(ctx context.Context, b store.Bucket, o store.Info) (f manifest.File, err error) {
	obj, err := b.Open(ctx, o.Key)
	if err != nil {
		return f, err
	}
	sum := manifest.NewSum()
	_, err = io.Copy(sum, io.NewSectionReader(obj, 0, obj.Size()))
	f = sum.File()
	f.Key = o.Key
	return f, errors.Join(err, obj.Close())
}

// remove notes that an object is deleted.
func (w *work) remove(ctx context.Context, c *crawl, key string) error {
	if _, done := w.deleted[key]; done {
		return nil
	}
	f, err := describe(ctx, w.r.Bucket, store.Info{Key: key})
	if err != nil {
		return err
	}
	w.deleted[key] = struct{}{}
	w.found.Deleted = append(w.found.Deleted, key)
	return w.put(ctx, c, stepDelete, key, f.SHA256, 0, "", nil, 0)
}

// otherDocument judges a document that no other document lists.
func (w *work) otherDocument(ctx context.Context, c *crawl, o store.Info) error {
	body, _, err := w.r.Bucket.Get(ctx, o.Key, math.MaxInt64)
	if err != nil {
		return err
	}
	if !w.m.Mentions(body) {
		return nil
	}
	parts := strings.Split(o.Key, "/")
	inRound := c != nil && len(parts) > 2 && strings.HasPrefix(parts[1], "round=")
	switch {
	case parts[0] == "quarantine":
		return w.remove(ctx, w.crawls[0], o.Key)
	case inRound && strings.Contains(o.Key, "/attempts/"):
		return w.attempt(ctx, c, o.Key, body)
	case inRound: // of an audit, a replaced plan, or the rest of something
		return w.remove(ctx, c, o.Key)
	}
	w.found.Named = append(w.found.Named, o.Key)
	return nil
}

// attempt removes the error message of an attempt, which names a target.
func (w *work) attempt(ctx context.Context, c *crawl, key string, old []byte) error {
	var a manifest.Attempt
	if err := manifest.Decode(key, old, &a); err != nil {
		return w.remove(ctx, c, key) // damaged, or of another kind
	}
	if w.m.Mentions([]byte(a.Error)) {
		a.Error = "(the message named something that was taken down)"
	}
	body, err := manifest.EncodeAgain(&a)
	if err != nil {
		return err
	}
	if w.m.Mentions(body) {
		return w.remove(ctx, c, key)
	}
	return w.put(ctx, c, stepCheckpoint, key, manifest.Digest(old), int64(len(old)), manifest.Digest(body), bytes.NewReader(body), int64(len(body)))
}

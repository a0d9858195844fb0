package takedown

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store/overlay"
	names "crawlbatch.io/crawlbatch/formats/takedown"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/takedown/rewrite"
	"crawlbatch.io/crawlbatch/stages"
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
	id     string            // names the folder with the new contents; "": they are not stored
	rw     *rewrite.Rewriter // its copies rewrite the files
	over   *overlay.Bucket   // the store with the new documents
	crawls []*crawl

	// mu guards what follows, the objects of crawls and what rounds have dropped.
	mu      sync.Mutex
	staged  int                         // number of new contents so far
	changed map[string]manifest.File    // new descriptions of changed files, by key
	recount map[string]map[string]int64 // of changed files: by how much the counts that countRows names fall
	digests map[string]string           // new digests of changed results, by the old ones
	seen    map[string]struct{}         // keys that documents list, and keys of documents
	kinds   map[string]*Kind
	deleted map[string]struct{}
	found   *Found
}

// crawl is a crawl of the store.
type crawl struct {
	name   string
	ledger *ledger.Ledger
	pruned *ledger.Pruned
	rounds []*round
	// clusters has the new representatives in the crawl's rounds: of clusters of all months, or of a reparse.
	clusters *rewrite.Clusters
	objects  []manifest.ChangedObject
	entries  []manifest.Entry
}

// round is a sealed round.
type round struct {
	crawl   *crawl
	n       int
	choice  *manifest.Entry // names the plan
	plan    *manifest.Plan
	seal    *manifest.Sealed
	dropped map[int][]int32   // rows of plan files that go, by partition
	names   map[int]lostNames // names that these files lose
	edges   map[string]int64  // rows that the buckets' parts of link targets lose, by the name of edgesOf
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
		changed: map[string]manifest.File{}, recount: map[string]map[string]int64{}, digests: map[string]string{},
		seen: map[string]struct{}{}, kinds: map[string]*Kind{}, deleted: map[string]struct{}{}, found: &Found{Kinds: []Kind{}},
	}
	w.rw = &rewrite.Rewriter{Bucket: r.Bucket, Matcher: m, Scratch: files, Removed: map[string]map[int64]struct{}{}, DroppedRows: w.droppedRows}
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

// everything computes the new content of every object.
func (w *work) everything(ctx context.Context) error {
	if err := w.load(ctx); err != nil {
		return err
	}
	if err := w.findClusters(ctx); err != nil {
		return err
	}
	if err := w.everyFile(ctx); err != nil {
		return err
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
		slices.SortFunc(c.objects, func(a, b manifest.ChangedObject) int {
			return cmp.Or(cmp.Compare(a.Step, b.Step), strings.Compare(a.Key, b.Key))
		})
	}
	for _, k := range w.kinds {
		w.found.Kinds = append(w.found.Kinds, *k)
	}
	slices.Sort(w.found.Missing)
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
			c.rounds = append(c.rounds, &round{crawl: c, n: n, choice: choice, plan: p, seal: s, dropped: map[int][]int32{}, names: map[int]lostNames{}, edges: map[string]int64{}})
		}
	}
	return nil
}

// findClusters finds the clusters of the months together, and those of each reparse.
func (w *work) findClusters(ctx context.Context) error {
	var months []*crawl
	for _, c := range w.crawls {
		if !layout.IsReparse(c.name) {
			months = append(months, c)
		} else if err := w.clustersOf(ctx, c); err != nil {
			return err
		}
	}
	return w.clustersOf(ctx, months...)
}

// clustersOf finds clusters that may have members in any of the crawls.
func (w *work) clustersOf(ctx context.Context, crawls ...*crawl) error {
	var sealed []*manifest.Sealed
	for _, c := range crawls {
		for _, r := range c.rounds {
			sealed = append(sealed, r.seal)
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
	found, err := rewrite.FindClusters(ctx, w.r.Bucket, w.m, rounds)
	for _, c := range crawls {
		c.clusters = found
	}
	return err
}

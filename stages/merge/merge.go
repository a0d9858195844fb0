package merge

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/focus"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

// These are the bounds of the memory, in bytes, that a sorter and the sums of targets use before they write
// to disk. At most four sorters work at the same time, and one of them uses only a quarter. With the upper bound of
// sorters, merge takes a fifth less CPU for 5,000 documents of 20 kB. With that of targets, the sums of as many
// documents are never written to disk.
const (
	leastSortMemory, mostSortMemory     = 24 << 20, 128 << 20
	leastTargetMemory, mostTargetMemory = 48 << 20, 256 << 20
)

// memoryShare returns an eighth of the task's memory, within bounds. An audit recomputes many tasks at the
// same time, so it gets twice the least. The result of merge does not depend on it.
func memoryShare(env *stages.Env, least, most int64) int64 {
	switch {
	case env.Compare:
		return 2 * least
	case env.Memory == 0:
		return most
	}
	return min(max(env.Memory/8, least), most)
}

// Config holds the settings of merge. The results of merge depend only on its Config and inputs.
type Config struct {
	Followed []schema.LinkKind // kinds of links whose targets may be planned; only such links count as inlinks
	Focus    *focus.Model      // scores pages; nil if the crawl has no frontier.focus
}

// Run merges one partition's segments.
func Run(ctx context.Context, env *stages.Env, in *stages.Input, cfg Config) (*manifest.Result, error) {
	t := in.Task
	if t.Partition < 0 || t.Partition >= len(in.Plan.Partitions) {
		return nil, fmt.Errorf("the plan has no partition %d: %w", t.Partition, stages.ErrPermanent)
	}
	var fetched *manifest.Result
	if results := in.Results[stages.Fetch]; t.Partition < len(results) {
		fetched = results[t.Partition]
	}
	if fetched == nil {
		return nil, fmt.Errorf("the fetch task of partition %d has no result: %w", t.Partition, stages.ErrPermanent)
	}
	m := &merger{
		env: env, sortMemory: memoryShare(env, leastSortMemory, mostSortMemory), task: t, plan: in.Plan, fetched: fetched, followed: map[schema.LinkKind]bool{},
		focus: cfg.Focus, earlier: in.Earlier,
		counts: map[string]int64{}, hosts: newHosts(), ported: map[string]bool{}, twice: map[string]int{}, hops: map[string]string{}, depths: map[string]int32{},
	}
	for _, k := range cfg.Followed {
		m.followed[k] = true
	}
	// Links are read first, because they show the redirect chains. mergeFetches then finds the depths of
	// the planned URLs at the start of these chains. Links are written last, because the pages decide which
	// links are kept.
	links, err := m.readLinks(ctx)
	if err != nil {
		return nil, fmt.Errorf("links: %w", err)
	}
	defer links.Close()
	if err := runAll(ctx, step{"fetches", m.mergeFetches}, step{"pages", m.mergePages}, step{"documents", m.correctLinked}, step{"sitemaps", m.mergeSitemaps}); err != nil {
		return nil, err
	}
	// Only the steps of the second chain change the rows of hosts, one step at a time. No step changes
	// anything else that both chains use, except the files and counts of the result, which have a mutex.
	if err := runBeside(ctx,
		[]step{{"links", func(ctx context.Context) error { return m.mergeLinks(ctx, links) }}},
		[]step{{"text", m.mergeText}, {"captures", m.mergeCaptures}, {"requests", m.mergeRequests}, {"robots", m.readRobots}, {"hosts", m.writeHosts}},
	); err != nil {
		return nil, err
	}
	return m.result(), nil
}

// step is a part of the task. The errors of run begin with name.
type step struct {
	name string
	run  func(context.Context) error
}

// runBeside runs several chains of steps concurrently. If a step panics, runBeside panics in the
// caller's goroutine, where the worker recovers.
func runBeside(ctx context.Context, chains ...[]step) error {
	group, ctx := errgroup.WithContext(ctx)
	faults := make([]any, len(chains))
	for i, steps := range chains {
		group.Go(func() (err error) {
			defer func() {
				if fault := recover(); fault != nil {
					faults[i] = fmt.Sprintf("%v: %s", fault, debug.Stack())
					err = errPanicked // cancels the other chains
				}
			}()
			return runAll(ctx, steps...)
		})
	}
	err := group.Wait()
	for _, fault := range faults {
		if fault != nil {
			panic(fault)
		}
	}
	return err
}

var errPanicked = errors.New("a step panicked")

// runAll runs steps one after another.
func runAll(ctx context.Context, steps ...step) error {
	for _, s := range steps {
		if err := s.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// merger holds the state of one task.
type merger struct {
	env        *stages.Env
	sortMemory int64 // memory of a sorter, in bytes
	task       stages.Task
	plan       *manifest.Plan
	fetched    *manifest.Result
	followed   map[schema.LinkKind]bool
	focus      *focus.Model       // nil without frontier.focus
	earlier    []*manifest.Sealed // sealed rounds whose parts of links are read

	mu     sync.Mutex // guards files and counts
	files  []manifest.File
	counts map[string]int64

	hosts  *hostRows
	twice  map[string]int    // for each URL with several documents, the index of the kept one among them
	linked map[string]int    // the same, but the index among the documents with links; -1 if the kept one has none
	unsure map[string]int    // the part of linked with several documents with outlinks, before correctLinked
	ported map[string]bool   // hosts whose pages may have several SURT keys (see notePort)
	hops   map[string]string // planned URL at the start of a redirect chain, for each later URL of the chain
	depths map[string]int32  // depth of each planned URL in hops

	documents   []linkedDocument // documents with rows of links, in the order of recording
	linkedPages int              // number of pages with outlinks
}

// keys lists the segments of a dataset in the order in which they were recorded.
func (m *merger) keys(dataset, subset string) []string {
	return stages.SubsetKeys([]*manifest.Result{m.fetched}, dataset, subset)
}

// publishedKey returns the key of the partition's part of a dataset.
func (m *merger) publishedKey(dataset string) string {
	return layout.Table(dataset, m.task.Crawl, m.task.Round, m.task.Partition)
}

// workingKey returns the key of the partition's working file of a dataset.
func (m *merger) workingKey(dataset string) string {
	return layout.Working(m.task.Crawl, m.task.Round, string(stages.Merge), dataset, m.task.Partition)
}

// publish writes the partition's published part of a dataset. fill appends the rows.
func publish[T any](ctx context.Context, m *merger, dataset string, sortedBy []string, fill func(*table.Writer[T]) error) error {
	f, err := stages.Write(ctx, m.env, dataset, m.publishedKey(dataset), sortedBy, fill)
	return m.note(f, err)
}

// keep writes the partition's working file of a dataset. fill appends the rows.
func keep[T any](ctx context.Context, m *merger, dataset string, sortedBy []string, fill func(*table.Writer[T]) error) error {
	f, err := stages.Write(ctx, m.env, dataset, m.workingKey(dataset), sortedBy, fill, table.Fast())
	return m.note(f, err)
}

// keepRun writes the partition's run of a dataset. The rows come in the order of buckets.
func keepRun[T any](ctx context.Context, m *merger, dataset string, sortedBy []string, rows iter.Seq2[T, error], bucketOf func(*T) int32) error {
	key := layout.Run(m.task.Crawl, m.task.Round, string(stages.Merge), dataset, m.task.Partition)
	f, err := stages.WriteRun(ctx, m.env, dataset, key, sortedBy, rows, bucketOf)
	return m.note(f, err)
}

// note adds the file f to the result. If err is not nil, note returns err.
func (m *merger) note(f manifest.File, err error) error {
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files = append(m.files, f)
	m.counts[f.Dataset] += f.Rows
	m.env.Progress.Add(stages.CountRows, f.Rows)
	return nil
}

// count adds n to a count of the result.
func (m *merger) count(name string, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts[name] += n
}

// result returns the task's result, with files sorted by key and counts by name.
func (m *merger) result() *manifest.Result {
	slices.SortFunc(m.files, func(a, b manifest.File) int { return strings.Compare(a.Key, b.Key) })
	return &manifest.Result{Files: m.files, Counts: manifest.SortedCounts(m.counts)}
}

// sorted reads segments into a sorter. The caller closes the sorter.
func sorted[T any](ctx context.Context, m *merger, keys []string, key func(table.Key, *T) table.Key) (*table.Sorter[T], error) {
	s, err := table.NewSorter(m.env.Scratch, key, m.sortMemory)
	if err != nil {
		return nil, err
	}
	for row, err := range table.Concat[T](ctx, m.env.Bucket, keys) {
		if err == nil {
			err = s.Add(&row)
		}
		if err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

// appendSorted appends the rows of segments in order. each reports whether to append a row.
func appendSorted[T any](ctx context.Context, m *merger, w *table.Writer[T], keys []string, key func(table.Key, *T) table.Key, each func(*T) bool) error {
	rows, err := sorted(ctx, m, keys, key)
	if err != nil {
		return err
	}
	defer rows.Close()
	var row T // declared outside the loop, so that there is one allocation and not one per row
	for row, err = range rows.Sorted(ctx) {
		if err != nil {
			return err
		}
		if !each(&row) {
			continue
		}
		if err := w.Append(&row); err != nil {
			return err
		}
	}
	return nil
}

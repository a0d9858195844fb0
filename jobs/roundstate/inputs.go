package roundstate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/publish/domains"
)

// feeds maps each stage to the stages whose results the stage reads.
var feeds = map[stages.Stage][]stages.Stage{
	stages.Merge:    {stages.Fetch},
	stages.Digest:   {stages.Merge},
	stages.Similar:  {stages.Digest},
	stages.Cluster:  {stages.Merge, stages.Digest, stages.Similar},
	stages.Dedup:    {stages.Merge, stages.Cluster},
	stages.Rank:     {stages.Merge},
	stages.Frontier: {stages.Merge, stages.Rank},
	stages.Publish:  {stages.Merge, stages.Dedup, stages.Rank, stages.Frontier}, // the states of URLs say how pages have changed
}

// Feeds lists the stages whose results a stage reads, in the order of its inputs.json.
func Feeds(stage stages.Stage) []stages.Stage { return slices.Clone(feeds[stage]) }

// readsResult reports whether the task t reads the result of partition n of the stage from. A merge
// task reads the results of its own partition. A publish task reads the merge result of its own
// partition, the result of frontier of its own bucket, and all rank results: the task of bucket 0 writes the
// hosts of all buckets, and its pages have terms of all buckets. The publish task that writes the domains of its bucket
// reads all merge results of the bucket. If dedup has one task for each bucket, a dedup task reads
// the merge results of its own bucket, and a publish task reads the dedup result of its own bucket.
// All other tasks read every result of the stage. For example, frontier counts the hosts of all
// buckets of rank.
func readsResult(t stages.Task, p *manifest.Plan, from stages.Stage, n int) bool {
	switch {
	case t.Stage == stages.Merge:
		return n == t.Partition
	case t.Stage == stages.Publish && from == stages.Merge:
		return n == t.Partition || p.Partitions[n].Bucket == p.Partitions[t.Partition].Bucket && domains.WrittenBy(p, t.Partition)
	case t.Stage == stages.Publish && from == stages.Frontier:
		return n == p.Partitions[t.Partition].Bucket
	case t.Stage == stages.Publish && from == stages.Rank:
		return true
	case stages.Dedup.Tasks(p) == 1:
		return true
	case t.Stage == stages.Dedup && from == stages.Merge:
		return p.Partitions[n].Bucket == t.Partition
	case t.Stage == stages.Publish && from == stages.Dedup:
		return n == p.Partitions[t.Partition].Bucket
	}
	return true
}

// Freeze creates the inputs.json of a reduce stage, unless it exists, and returns the document. If a
// task of an earlier stage has no result yet, Freeze returns ErrNotReady.
func Freeze(ctx context.Context, b store.Bucket, p *manifest.Plan, stage stages.Stage, w ledger.Writer) (*manifest.Inputs, error) {
	return freeze(ctx, b, p, stage, w, func() ([]manifest.InputTask, error) {
		return digestsFeeding(ctx, b, p, stage)
	})
}

// digestsFeeding returns the entries for the inputs.json of a reduce stage.
func digestsFeeding(ctx context.Context, b store.Bucket, p *manifest.Plan, stage stages.Stage) ([]manifest.InputTask, error) {
	var all []manifest.InputTask
	for _, from := range Feeds(stage) {
		tasks := Tasks(p, from)
		digests, missing, err := digestsOf(ctx, b, p, tasks)
		if err == nil && missing >= 0 {
			err = fmt.Errorf("%s of %s.%d cannot start: %s has no result: %w", stage, p.Crawl, p.Round, tasks[missing], ErrNotReady)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, digests...)
	}
	return all, nil
}

// FreezeSource creates the inputs.json of a reparse's fetch stage, unless it exists. This inputs.json
// lists the results of the same round and partitions in the source crawl. A reparse of external WARC
// files freezes nothing, because its plan names the records.
func FreezeSource(ctx context.Context, b store.Bucket, of *manifest.Reparse, p *manifest.Plan, w ledger.Writer) (*manifest.Inputs, error) {
	if of.Of == "" {
		return &manifest.Inputs{Header: manifest.Header{Version: w.Version}, Stage: string(stages.Fetch), Plan: p.ID}, nil
	}
	in, err := freeze(ctx, b, p, stages.Fetch, w, func() ([]manifest.InputTask, error) {
		return digestsOfSource(ctx, b, of, p)
	})
	if err == nil && len(in.Tasks) != len(p.Partitions) {
		err = fmt.Errorf("%q lists %d tasks, the plan has %d partitions: %w",
			layout.Inputs(p.Crawl, p.Round, string(stages.Fetch)), len(in.Tasks), len(p.Partitions), manifest.ErrCorrupt)
	}
	return in, err
}

// digestsOfSource returns the entries for the inputs.json of a reparse's fetch stage.
func digestsOfSource(ctx context.Context, b store.Bucket, of *manifest.Reparse, p *manifest.Plan) ([]manifest.InputTask, error) {
	source, started, err := FindPlan(ctx, b, of.Of, p.Round)
	if err != nil {
		return nil, err
	}
	if !started || len(source.Partitions) != len(p.Partitions) {
		return nil, fmt.Errorf("round %d of %s has changed since %s was made from it: %w", p.Round, of.Of, p.Crawl, stages.ErrPermanent)
	}
	tasks := Tasks(source, stages.Fetch)
	digests, missing, err := digestsOf(ctx, b, source, tasks)
	if err == nil && missing >= 0 {
		err = fmt.Errorf("%s has no result, though its round is sealed: restore it: %w", tasks[missing], stages.ErrPermanent)
	}
	return digests, err
}

// freeze returns inputs.json of a stage. If neither the document nor its entry in the ledger
// exists, freeze creates the document with the tasks from collect(). If only the entry is missing,
// freeze appends it to the ledger.
func freeze(ctx context.Context, b store.Bucket, p *manifest.Plan, stage stages.Stage, w ledger.Writer, collect func() ([]manifest.InputTask, error)) (*manifest.Inputs, error) {
	key := layout.Inputs(p.Crawl, p.Round, string(stage))
	l, err := ledger.Load(ctx, b, p.Crawl)
	if err != nil {
		return nil, err
	}
	var in manifest.Inputs
	if e := l.Frozen(p.Round, stage); e != nil {
		err = l.Check(ctx, b, e, &in)
		return &in, frozenFor(&in, p, stage, err)
	}
	there, err := manifest.Exists(ctx, b, key)
	if err != nil {
		return nil, err
	}
	if !there {
		tasks, err := collect()
		if err != nil {
			return nil, err
		}
		own := &manifest.Inputs{Header: manifest.Header{Version: w.Version}, Stage: string(stage), Plan: p.ID, Tasks: tasks}
		if err := createOnce(ctx, b, key, own); err != nil {
			return nil, err
		}
	}
	// Another process may have created the document first.
	_, digest, err := manifest.LoadContents(ctx, b, key, &in)
	if err := frozenFor(&in, p, stage, err); err != nil {
		return nil, err
	}
	_, err = w.Append(ctx, b, p.Crawl, func(l *ledger.Ledger) ([]manifest.Entry, error) {
		if l.Frozen(p.Round, stage) != nil {
			return nil, nil
		}
		e := ledger.Named(manifest.EntryFrozen, p.Round, key, digest)
		e.Stage = string(stage)
		return []manifest.Entry{e}, nil
	})
	return &in, err
}

// frozenFor checks an inputs.json that was read with the error err. It returns err, or an error if
// the document belongs to another stage or plan.
func frozenFor(in *manifest.Inputs, p *manifest.Plan, stage stages.Stage, err error) error {
	if ledger.Read(err) && (in.Stage != string(stage) || in.Plan != p.ID) {
		key := layout.Inputs(p.Crawl, p.Round, string(stage))
		err = misplaced(key, fmt.Sprintf("%s of plan %s", in.Stage, in.Plan), fmt.Sprintf("%s of plan %s", stage, p.ID))
	}
	return err
}

// digestsOf returns the entries of inputs.json for all tasks of a stage, and the index of the first
// task without a result, or -1 if there is none.
func digestsOf(ctx context.Context, b store.Bucket, p *manifest.Plan, tasks []stages.Task) (all []manifest.InputTask, missing int, err error) {
	results, digests, err := loadResults(ctx, b, p, tasks)
	for n, t := range tasks {
		all = append(all, manifest.InputTask{Stage: string(t.Stage), Partition: n, SHA256: digests[n]})
	}
	return all, slices.Index(results, nil), err
}

// Gather loads the results that a reduce task reads, and compares their digests with the frozen
// ones. Results that the task does not read stay nil. The earlier rounds in the returned Input list
// only the files that the task reads.
func Gather(ctx context.Context, b store.Bucket, p *manifest.Plan, t stages.Task, frozen *manifest.Inputs) (*stages.Input, error) {
	in := &stages.Input{Task: t, Plan: p, Results: map[stages.Stage][]*manifest.Result{}}
	var sources []stages.Task
	var want []string
	for _, f := range frozen.Tasks {
		from := stages.Stage(f.Stage)
		if in.Results[from] == nil {
			in.Results[from] = make([]*manifest.Result, from.Tasks(p))
		}
		if f.Partition < 0 || f.Partition >= len(in.Results[from]) {
			return nil, fmt.Errorf("%s: inputs.json names %s:%d, which the plan does not have: %w", t, from, f.Partition, manifest.ErrCorrupt)
		}
		if readsResult(t, p, from, f.Partition) {
			sources = append(sources, stages.Task{Stage: from, Crawl: t.Crawl, Round: t.Round, Partition: f.Partition})
			want = append(want, f.SHA256)
		}
	}
	results, digests, err := loadResults(ctx, b, p, sources)
	if err != nil {
		return nil, err
	}
	for i, source := range sources {
		if results[i] == nil || digests[i] != want[i] {
			return nil, changedResult(t.String(), source)
		}
		in.Results[source.Stage][source.Partition] = results[i]
	}
	earlier, m, err := sealedHistory(ctx, b, t.Crawl, t.Round)
	if err != nil {
		return nil, err
	}
	in.Listed = m.Listed
	if in.Listed || t.Stage == stages.Frontier && m.CreatedAt != "" {
		if in.Created, err = created(ctx, b, m); err != nil {
			return nil, err
		}
	}
	in.Earlier, err = WithFiles(ctx, b, earlier, earlierFiles(t, p))
	return in, err
}

// created returns an upper bound of the time at which a crawl was created:
// created_at plus one second, because created_at lacks fractions. For a reparse, it is the time of
// the crawl that fetched.
func created(ctx context.Context, b store.Bucket, m *manifest.Crawl) (schema.Time, error) {
	if m.Reparse != nil && m.Reparse.Of != "" {
		m = &manifest.Crawl{Crawl: m.Reparse.Of}
		if _, _, err := manifest.Load(ctx, b, layout.CrawlManifest(m.Crawl), m); err != nil {
			return 0, err
		}
	}
	at, err := time.Parse(time.RFC3339, m.CreatedAt)
	if err != nil {
		return 0, fmt.Errorf("%q: created_at: %w: %w", layout.CrawlManifest(m.Crawl), err, manifest.ErrCorrupt)
	}
	return schema.TimeOf(at).Add(time.Second), nil
}

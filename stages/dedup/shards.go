package dedup

import (
	"context"
	"fmt"
	"iter"
	"math/bits"
	"slices"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/simhash"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

// shard is one of the equal ranges into which the tasks of digest divide all digests. The zero value is
// the range of all digests.
type shard struct{ index, of int }

func (s shard) has(d digest) bool {
	if s.of <= 1 {
		return true
	}
	in, _ := bits.Mul64(d.A, uint64(s.of))
	return in == uint64(s.index)
}

// runDigest runs a task of the stage digest. It writes the working files classes, with the long pages of
// the shard by fingerprint, and exact, with the short pages whose text another page has too.
func runDigest(ctx context.Context, env *stages.Env, in *stages.Input, cfg Config) (*manifest.Result, error) {
	t := in.Task
	g, err := newGrouping(env.Scratch)
	if err != nil {
		return nil, err
	}
	defer g.close()
	if err := g.load(ctx, env.Bucket, sourcesOf(in, cfg.Months), cfg.MinWords, shard{t.Partition, t.Stage.Tasks(in.Plan)}); err != nil {
		return nil, err
	}
	env.Progress.Add(stages.CountRows, g.pages)
	key := func(dataset string) string {
		return layout.Working(t.Crawl, t.Round, string(t.Stage), dataset, t.Partition)
	}
	exact, err := stages.Write(ctx, env, stages.FileExact, key(stages.FileExact), []string{"class", "page"}, func(w *table.Writer[schema.ClassMember]) error {
		return g.split(ctx, func(class uint64, t *text) error {
			return w.Append(&schema.ClassMember{Class: int64(class), Fingerprint: int64(t.Fingerprint), Page: int64(t.Page)})
		})
	})
	if err != nil {
		return nil, err
	}
	classes, err := stages.Write(ctx, env, stages.FileClasses, key(stages.FileClasses), nil, func(w *table.Writer[schema.ClassMember]) error {
		for l, err := range g.long.Sorted(ctx) {
			if err != nil {
				return err
			}
			if err := w.Append(&schema.ClassMember{Fingerprint: int64(l.Fingerprint), Page: int64(l.Page)}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &manifest.Result{
		Counts: []manifest.Count{{Name: countPages, N: g.pages}, {Name: countSealed, N: g.sealed}},
		Files:  []manifest.File{classes, exact},
	}, nil
}

// runSimilar runs a task of the stage similar. It writes a spanning forest of the near pairs that its
// part of the search finds.
func runSimilar(ctx context.Context, env *stages.Env, in *stages.Input, cfg Config) (*manifest.Result, error) {
	t := in.Task
	search, err := simhash.NewSearch(env.Scratch, cfg.MaxDistance, simhash.Part{Index: t.Partition, Of: t.Stage.Tasks(in.Plan)})
	if err != nil {
		return nil, err
	}
	defer search.Close() //nolint:errcheck // the scratch directory is removed later
	f, err := newForest(env.Scratch)
	if err != nil {
		return nil, err
	}
	defer f.close()
	if err := f.search(ctx, search, longTexts(ctx, env, in)); err != nil {
		return nil, err
	}
	key := layout.Working(t.Crawl, t.Round, string(t.Stage), stages.FilePairs, t.Partition)
	pairs, err := stages.Write(ctx, env, stages.FilePairs, key, []string{"low", "high"}, func(w *table.Writer[schema.ClassPair]) error {
		return f.join(ctx, func(classes, _ pair) error {
			return w.Append(&schema.ClassPair{Low: int64(classes.A), High: int64(classes.B)})
		})
	})
	if err != nil {
		return nil, err
	}
	env.Progress.Add(stages.CountRows, pairs.Rows)
	return &manifest.Result{Counts: []manifest.Count{{Name: "pairs", N: pairs.Rows}}, Files: []manifest.File{pairs}}, nil
}

// runCluster runs the task of the stage cluster. It joins the classes, decides about each page in a
// cluster, and writes the verdicts by bucket.
func runCluster(ctx context.Context, env *stages.Env, in *stages.Input, cfg Config) (*manifest.Result, error) {
	ch, counts, err := decide(ctx, env, in, cfg)
	if err != nil {
		return nil, err
	}
	defer ch.close()
	key := layout.Run(in.Task.Crawl, in.Task.Round, string(stages.Cluster), stages.FileVerdicts, 0)
	verdicts, err := stages.WriteRun(ctx, env, stages.FileVerdicts, key, []string{"bucket", "url_surtkey", "url"}, ch.verdicts.Sorted(ctx),
		func(v *verdict) int32 { return v.Bucket })
	if err != nil {
		return nil, err
	}
	return &manifest.Result{Counts: counts, Files: []manifest.File{verdicts}}, nil
}

// runBucket runs a task of the stage dedup that writes the parts of its bucket.
func runBucket(ctx context.Context, env *stages.Env, in *stages.Input) (*manifest.Result, error) {
	bucket := in.Task.Partition
	sections, err := stages.Sections(in.Results[stages.Cluster], stages.FileVerdicts, bucket)
	if err != nil {
		return nil, err
	}
	verdicts := table.Pull(table.MergeSections(ctx, env.Bucket, env.Scratch, sections, verdictKey))
	defer verdicts.Close()
	w := &writer{env: env, task: in.Task, sources: sourcesOf(in, 0)}
	if err := w.write(ctx, bucket, verdicts); err != nil {
		return nil, err
	}
	for _, f := range w.files {
		env.Progress.Add(stages.CountRows, f.Rows)
	}
	var counts []manifest.Count
	if bucket == 0 {
		counts = slices.Clone(in.Results[stages.Cluster][0].Counts)
	}
	return w.result(verdicts, counts)
}

// longTexts yields the long pages of all results of digest, sorted by fingerprint.
func longTexts(ctx context.Context, env *stages.Env, in *stages.Input) iter.Seq2[longText, error] {
	rows := table.MergeFiles(ctx, env.Bucket, env.Scratch, stages.Keys(in.Results[stages.Digest], stages.FileClasses), classMemberKey)
	return func(yield func(longText, error) bool) {
		for m, err := range rows {
			if err != nil {
				yield(longText{}, fmt.Errorf("read classes: %w", err))
				return
			}
			if !yield(longText{uint64(m.Fingerprint), uint64(m.Page)}, nil) {
				return
			}
		}
	}
}

// classMemberKey appends the key of a row of the file classes, as longKey does.
func classMemberKey(k table.Key, m *schema.ClassMember) table.Key {
	return longKey(k, &longText{uint64(m.Fingerprint), uint64(m.Page)})
}

func classPairKey(k table.Key, p *schema.ClassPair) table.Key { return k.Int(p.Low).Int(p.High) }

package worker

import (
	"context"
	"errors"
	"fmt"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch"
	"crawlbatch.io/crawlbatch/stages/parse"
)

// ParserVersion is that of the parser which NewParser makes.
const ParserVersion = parse.Version

// ReparseOf says what a crawl parses again; nil for one that fetches.
func ReparseOf(ctx context.Context, b store.Bucket, crawl string) (*manifest.Reparse, error) {
	if !layout.IsReparse(crawl) {
		return nil, nil
	}
	var m manifest.Crawl
	key := layout.CrawlManifest(crawl)
	if _, _, err := manifest.Load(ctx, b, key, &m); err != nil {
		return nil, err
	}
	if m.Crawl != crawl || m.Reparse == nil {
		return nil, fmt.Errorf("%q does not say what the crawl parses again: %w", key, manifest.ErrCorrupt)
	}
	return m.Reparse, nil
}

// FreezeSource creates inputs.json of the fetch stage of a reparse, once: the results
// of the fetch tasks of the same round and partitions of the crawl that it is of. One
// of WARC files of others has none: its plan names the records.
func FreezeSource(ctx context.Context, b store.Bucket, of *manifest.Reparse, p *manifest.Plan, version string) (*manifest.Inputs, error) {
	in := &manifest.Inputs{Header: manifest.Header{Version: version}, Stage: string(stages.Fetch), Plan: p.ID}
	if of.Of == "" {
		return in, nil
	}
	key := layout.Inputs(p.Crawl, p.Round, string(stages.Fetch))
	_, _, err := manifest.Load(ctx, b, key, in)
	if err == nil && (in.Stage != string(stages.Fetch) || in.Plan != p.ID) {
		err = foreign(key, fmt.Sprintf("%s of plan %s", in.Stage, in.Plan), fmt.Sprintf("%s of plan %s", stages.Fetch, p.ID))
	}
	if err == nil && len(in.Tasks) != len(p.Partitions) {
		err = fmt.Errorf("%q lists %d tasks, the plan has %d partitions: %w", key, len(in.Tasks), len(p.Partitions), manifest.ErrCorrupt)
	}
	if err == nil || !errors.Is(err, store.ErrNotFound) {
		return in, err
	}
	tasks := tasksOf(p, stages.Fetch)
	for i := range tasks {
		tasks[i].Crawl = of.Of
	}
	source, started, err := FindPlan(ctx, b, of.Of, p.Round)
	if err != nil {
		return nil, err
	}
	if !started || len(source.Partitions) != len(p.Partitions) {
		return nil, fmt.Errorf("round %d of %s is not the one that %s was made of: %w", p.Round, of.Of, p.Crawl, stages.ErrPermanent)
	}
	all, err := loadResults(ctx, b, source, tasks)
	if err != nil {
		return nil, err
	}
	for n, l := range all {
		if l.result == nil {
			return nil, fmt.Errorf("%s has no result, though its round is sealed: restore it: %w", tasks[n], stages.ErrPermanent)
		}
		in.Tasks = append(in.Tasks, manifest.InputTask{Stage: string(stages.Fetch), Partition: n, SHA256: l.digest})
	}
	if _, err := manifest.Create(ctx, b, key, in); err != nil && !errors.Is(err, store.ErrExists) {
		return nil, err
	}
	*in = manifest.Inputs{}
	_, _, err = manifest.Load(ctx, b, key, in)
	return in, err
}

// reparse runs a fetch task of a reparse, which reads what is stored.
func (r Runner) reparse(ctx context.Context, env *stages.Env, of *manifest.Reparse, p *manifest.Plan, t stages.Task) (*manifest.Result, error) {
	parser, err := r.parserOf(of)
	if err != nil {
		return nil, err
	}
	in := &fetch.ReparseInput{Task: t, Plan: p, Archive: r.Bucket}
	if of.Of != "" {
		frozen, err := FreezeSource(ctx, r.Bucket, of, p, r.Version)
		if err != nil {
			return nil, err
		}
		source := t
		source.Crawl = of.Of
		result, digest, err := LoadResult(ctx, r.Bucket, source)
		if err != nil {
			return nil, err
		}
		if result == nil || digest != frozen.Tasks[t.Partition].SHA256 {
			return nil, fmt.Errorf("the result of %s is not the one that inputs.json froze: restore it: %w", source, stages.ErrPermanent)
		}
		in.From, env.Format = result, frozen.Format
		env.Bucket = expect(env.Bucket, &stages.Input{Plan: p, Results: map[stages.Stage][]*manifest.Result{stages.Fetch: {result}}})
	} else {
		if in.Archive, err = r.archive(ctx, of); err != nil {
			return nil, err
		}
		if env.Format, err = formatOfRound(ctx, r.Bucket, t.Crawl, t.Round); err != nil {
			return nil, err
		}
		env.Bucket = expect(env.Bucket, &stages.Input{Plan: p})
	}
	return fetch.Reparse(ctx, env, in, FetchConfig(r.Config, r.Version), parser)
}

// parserOf is the parser that makes the rows of a reparse: the one that it was begun with.
func (r Runner) parserOf(of *manifest.Reparse) (fetch.Parser, error) {
	if of.Parser != ParserVersion {
		return nil, fmt.Errorf("the reparse was begun with version %d of the parser, this crawlbatch has %d, and one crawl has the rows of one: "+
			"go on with the crawlbatch that began it, or reparse under another name: %w", of.Parser, ParserVersion, stages.ErrPermanent)
	}
	return NewParser(r.Config)
}

// archive opens the store with WARC files of others.
func (r Runner) archive(ctx context.Context, of *manifest.Reparse) (store.Bucket, error) {
	if r.Archive == nil {
		return nil, fmt.Errorf("nothing here can open %q, where the WARC files are: %w", of.Archive, stages.ErrPermanent)
	}
	return r.Archive(ctx, of.Archive)
}

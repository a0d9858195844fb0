package worker

import (
	"context"
	"fmt"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/reparse"
	"crawlbatch.io/crawlbatch/stages/parse"
)

// ParserVersion is the version of the parser that NewParser returns.
const ParserVersion = parse.Version

// reparse runs a fetch task of a reparse, which reads stored responses.
func (r Runner) reparse(ctx context.Context, env *stages.Env, l *ledger.Ledger, of *manifest.Reparse, p *manifest.Plan, t stages.Task) (*manifest.Result, error) {
	parser, err := r.parserOf(of)
	if err != nil {
		return nil, err
	}
	in := &reparse.Input{Task: t, Plan: p, Archive: r.Bucket, Withhold: r.Config.Parse.Withholds()}
	if in.Gone, err = TakenDown(ctx, r.Bucket, r.Config, p); err != nil {
		return nil, err
	}
	if of.Of != "" {
		frozen, err := roundstate.FreezeSource(ctx, r.Bucket, of, p, r.ledgers())
		if err != nil {
			return nil, err
		}
		source := t
		source.Crawl = of.Of
		result, digest, err := roundstate.LoadResult(ctx, r.Bucket, source)
		if err != nil {
			return nil, err
		}
		if result == nil || digest != frozen.Tasks[t.Partition].SHA256 {
			return nil, fmt.Errorf("the result of %s has changed since inputs.json froze its digest: restore it from a copy: %w", source, stages.ErrPermanent)
		}
		in.From = result
		results := map[stages.Stage][]*manifest.Result{stages.Fetch: {result}}
		if in.Texts, err = r.prunedTexts(ctx, source, results); err != nil {
			return nil, err
		}
		env.Bucket = stages.Checked(env.Bucket, &stages.Input{Task: t, Plan: p, Results: results})
	} else {
		if in.Archive, err = r.archive(ctx, of); err != nil {
			return nil, err
		}
		env.Bucket = stages.Checked(env.Bucket, &stages.Input{Plan: p})
	}
	cfg := FetchConfig(r.Config, r.Version)
	return reparse.Run(ctx, env, in, cfg.Limits, cfg.StripParams, parser)
}

// prunedTexts returns the published part with the texts of a fetch task whose own texts were pruned, and adds the result
// that lists it to results. Otherwise it returns "".
func (r Runner) prunedTexts(ctx context.Context, source stages.Task, results map[stages.Stage][]*manifest.Result) (string, error) {
	l, err := ledger.Load(ctx, r.Bucket, source.Crawl)
	if err != nil || l.Pruning() == nil {
		return "", err
	}
	source.Stage = stages.Merge
	merged, _, err := roundstate.LoadResult(ctx, r.Bucket, source)
	if err != nil || merged == nil {
		return "", err
	}
	results[stages.Merge] = []*manifest.Result{merged}
	for _, f := range merged.FilesOf(stages.FileText) {
		return f.Key, nil
	}
	return "", nil
}

// parserOf returns the parser of this program, or an error if the reparse began with another version.
func (r Runner) parserOf(of *manifest.Reparse) (document.Parser, error) {
	if of.Parser != ParserVersion {
		return nil, fmt.Errorf("the reparse began with version %d of the parser, but this crawlbatch has version %d, and all rows of a crawl must come from one version: "+
			"continue with the crawlbatch that began it, or reparse under another name: %w", of.Parser, ParserVersion, stages.ErrPermanent)
	}
	return NewParser(r.Config)
}

// archive opens the store that has the external WARC files.
func (r Runner) archive(ctx context.Context, of *manifest.Reparse) (store.Bucket, error) {
	if r.Archive == nil {
		return nil, fmt.Errorf("the store %q with the WARC files cannot be opened here: %w", of.Archive, stages.ErrPermanent)
	}
	return r.Archive(ctx, of.Archive)
}

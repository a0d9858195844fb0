package verify

import (
	"context"
	"fmt"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/stages"
)

// Of a reparse every invariant holds as of a crawl that fetches, but that its fetch
// tasks have results which follow from stored responses: they are computed again
// like any other, in the place of being compared with a checkpoint. Its requests and
// the records of its captures are those of the crawl that fetched. What that kept of
// pages that say noarchive was decided then, by the parser of then, so it is not
// compared with what they say now.

// loadReparse notes what the crawl parses again.
func (a *audit) loadReparse(ctx context.Context, crawl *manifest.Crawl, ok bool) error {
	if !ok || !layout.IsReparse(a.Crawl) {
		return nil
	}
	a.reparse = crawl.Reparse
	switch {
	case a.reparse == nil:
		a.misplaced(-1, layout.CrawlManifest(a.Crawl), "it does not say what the crawl parses again: restore it")
		a.reparse = &manifest.Reparse{}
	case a.reparse.Of != "":
	case a.Archive == nil:
		return fmt.Errorf("the WARC files of %s are in %q, which cannot be opened here: %w", a.Crawl, a.reparse.Archive, stages.ErrPermanent)
	default:
		var err error
		a.foreign, err = a.Archive(ctx, a.reparse.Archive)
		return err
	}
	return nil
}

// fetchedIn is the crawl whose requests are in the tables.
func (a *audit) fetchedIn() string {
	if a.reparse != nil && a.reparse.Of != "" {
		return a.reparse.Of
	}
	return a.Crawl
}

// checkSource compares the results of the fetch tasks that a reparse read with those
// that stand there.
func (a *audit) checkSource(ctx context.Context, r *round) error {
	if a.reparse.Of == "" {
		return nil
	}
	begun := false
	for _, result := range r.results[stages.Fetch] {
		begun = begun || result != nil
	}
	key := layout.Inputs(r.crawl, r.number, string(stages.Fetch))
	var in manifest.Inputs
	_, ok, err := a.document(ctx, r.number, key, &in, begun)
	if err != nil || !ok {
		return err
	}
	if in.Stage != string(stages.Fetch) || in.Plan != r.plan.ID || len(in.Tasks) != len(r.plan.Partitions) {
		a.misplaced(r.number, key, "it holds %d inputs of %s for plan %q, not %d of %s for plan %q: restore it",
			len(in.Tasks), in.Stage, in.Plan, len(r.plan.Partitions), stages.Fetch, r.plan.ID)
		return nil
	}
	for n, task := range in.Tasks {
		source := layout.Result(a.reparse.Of, r.number, string(stages.Fetch), n)
		var result manifest.Result
		digest, ok, err := a.document(ctx, r.number, source, &result, true)
		if err != nil {
			return err
		}
		if ok && digest != task.SHA256 {
			a.misplaced(r.number, source, "its SHA-256 is %s, %s was made from one with %s: restore that", digest, r.crawl, task.SHA256)
		}
	}
	return nil
}

// computes reports whether what the tasks of a stage make follows from what is
// stored, and can be computed by this program.
func (a *audit) computes(stage stages.Stage) bool {
	return stage != stages.Fetch || a.reparse != nil && a.reparse.Parser == worker.ParserVersion
}

// ownFile reports whether a file that the result of a fetch task lists is one that
// the round's own tasks have written.
func ownFile(r *round, f manifest.File) bool {
	return strings.HasPrefix(f.Key, layout.StageDir(r.crawl, r.number, string(stages.Fetch)))
}

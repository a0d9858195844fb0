package audit

import (
	"context"
	"fmt"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/stages"
)

// A reparse keeps every invariant of a crawl that fetches, with one difference. The results of its
// fetch tasks follow from stored responses, so they are recomputed like the results of any other
// task, and there is no checkpoint to compare. Its requests and records are those of the crawl that
// fetched. That crawl's parser decided which noarchive pages to keep, so this decision is not
// compared with what today's parser finds in the pages.

// loadReparse records what the crawl parses again.
func (a *Audit) loadReparse(ctx context.Context, crawl *manifest.Crawl) error {
	a.Reparse = crawl.Reparse
	switch {
	case a.Reparse == nil:
		a.misplaced(-1, layout.CrawlManifest(a.Crawl), "it does not say what the crawl parses again: restore it from a copy")
		a.Reparse = &manifest.Reparse{}
	case a.Reparse.Of != "":
	case a.Archive == nil:
		return fmt.Errorf("the WARC files of %s are in %q, which cannot be opened here: %w", a.Crawl, a.Reparse.Archive, stages.ErrPermanent)
	default:
		var err error
		a.External, err = a.Archive(ctx, a.Reparse.Archive)
		return err
	}
	return nil
}

// FetchedIn returns the crawl whose requests are in the tables.
func (a *Audit) FetchedIn() string {
	if a.Reparse != nil && a.Reparse.Of != "" {
		return a.Reparse.Of
	}
	return a.Crawl
}

// OwnFile reports whether the round's own tasks wrote a file. The result of a fetch task lists the
// file.
func (r *Round) OwnFile(f manifest.File) bool {
	return strings.HasPrefix(f.Key, layout.StageDir(r.Crawl, r.Number, string(stages.Fetch)))
}

package audit

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/stages"
)

// A reparse keeps every invariant of a crawl that fetches. The results of its fetch tasks follow from
// stored responses, so the audit recomputes them instead of comparing them with a checkpoint. The
// requests and records of a reparse are those of the crawl that fetched. The audit does not check with
// today's parser which pages say noarchive, because an older parser may have decided this.

// loadReparse records the source that the crawl parses again.
func (a *Audit) loadReparse(ctx context.Context, crawl *manifest.Crawl) error {
	a.Reparse = crawl.Reparse
	switch {
	case a.Reparse == nil:
		a.misplaced(-1, layout.CrawlManifest(a.Crawl), "it does not say which responses the crawl parses again: restore it from a copy")
		a.Reparse = &manifest.Reparse{}
	case a.Reparse.Of != "":
		var err error
		if a.source, err = ledger.Load(ctx, a.Bucket, a.Reparse.Of); err != nil && !IsFault(err) && !errors.Is(err, ledger.ErrNoCrawl) {
			return err
		}
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

// OwnFile reports whether a task of this round wrote a file. The result of a reparse's fetch task
// also lists files of the crawl that fetched.
func (r *Round) OwnFile(f manifest.File) bool {
	return strings.HasPrefix(f.Key, layout.StageDir(r.Crawl, r.Number, string(stages.Fetch)))
}

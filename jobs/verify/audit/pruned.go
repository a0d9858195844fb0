package audit

import (
	"context"
	"fmt"
	"slices"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/ledger"
)

// loadPruned reads which files `prune` deleted in all crawls, because files of this crawl may refer
// to files of other crawls. All checks skip the deleted files as if they were unreadable.
func (a *Audit) loadPruned(ctx context.Context) error {
	all, err := ledger.ReadAllPruned(ctx, a.Bucket, a.Crawl)
	if err != nil {
		return err
	}
	a.pruned = all
	for _, crawl := range []string{a.Crawl, a.FetchedIn()} {
		if p := all[crawl]; p != nil && p.Unfinished {
			a.Note("%s: the deletions are not finished: run `crawlbatch prune --apply`", crawl)
			break
		}
	}
	return nil
}

// AnyPruned reports whether one of the sealed rounds belongs to a crawl that was pruned as a whole. If
// so, it adds a note that a check was left out.
func (a *Audit) AnyPruned(rounds []*manifest.Sealed, round int, c Check) bool {
	i := slices.IndexFunc(rounds, func(s *manifest.Sealed) bool { return s.Pruned })
	if i >= 0 {
		a.NotePruned(round, c)
	}
	return i >= 0
}

// NotePruned adds a note that a check was left out because earlier months were pruned.
func (a *Audit) NotePruned(round int, c Check) {
	a.CountNote(fmt.Sprintf("round %d, %s: left out for {n} buckets or tasks, because earlier months with the data that it needs were pruned", round, c.Name), "")
}

// SourcePruned reports whether anything was pruned of the crawl that this reparse parses again.
func (a *Audit) SourcePruned() bool { return a.Reparse != nil && a.pruned[a.FetchedIn()] != nil }

// NoteOwnPruned adds a note that a check was left out because working data or raw captures of this crawl, or of the
// crawl that it parses again, were pruned, if they were.
func (a *Audit) NoteOwnPruned(round int, c Check) {
	for _, crawl := range []string{a.Crawl, a.FetchedIn()} {
		if p := a.pruned[crawl]; p != nil && round < p.Entry.Prune.Rounds {
			a.CountNote(fmt.Sprintf("round %d, %s: left out for {n} tasks, because files of %s that they read are gone: %s", round, c.Name, crawl, p), "")
			return
		}
	}
}

// notePruned notes a file that was deleted by age.
func (a *Audit) notePruned(key string) {
	crawl := layout.CrawlOf(key)
	a.CountNote(fmt.Sprintf("%s: %s: {n} files, such as {example}, are not looked for, and checks that need them are left out", crawl, a.pruned[crawl]), key)
}

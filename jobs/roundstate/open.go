package roundstate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/catalog"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
)

// ToOpen returns the sealed rounds that views open, with the parts of all datasets. If
// all is true, ToOpen returns the rounds of all crawls, otherwise the rounds of the given
// crawl. If no crawl is given (""), ToOpen returns the rounds of the newest crawl that has a sealed
// round. note names the crawl and the rounds that are not finished, or says why no round is returned.
func ToOpen(ctx context.Context, b store.Bucket, crawl string, all bool, lookup func(string) (string, bool)) (sealed []*manifest.Sealed, note string, err error) {
	sealed, note, err = toOpen(ctx, b, crawl, all, lookup)
	if err == nil {
		sealed, err = WithFiles(ctx, b, sealed, Selection{Dataset: func(name string) bool { _, err := catalog.Find(name); return err == nil }})
	}
	return sealed, note, err
}

// toOpen does the same as ToOpen, but returns the rounds without their files.
func toOpen(ctx context.Context, b store.Bucket, crawl string, all bool, lookup func(string) (string, bool)) (sealed []*manifest.Sealed, note string, err error) {
	if crawl != "" {
		if _, _, err := OpenCrawl(ctx, b, crawl, lookup); err != nil {
			return nil, "", err
		}
		sealed, err = Sealed(ctx, b, crawl)
		return sealed, unfinished(ctx, b, crawl, sealed), err
	}
	crawls, err := Crawls(ctx, b)
	if err != nil {
		return nil, "", err
	}
	if len(crawls) == 0 {
		return nil, "", &ledger.NoCrawl{Bucket: b}
	}
	if all {
		sealed, err = AllSealed(ctx, b)
		return sealed, unfinishedOf(ctx, b, crawls, sealed), err
	}
	crawl, sealed, err = NewestSealed(ctx, b, crawls)
	running := unfinished(ctx, b, crawl, sealed)
	if len(sealed) == 0 || err != nil {
		return sealed, running, err
	}
	note = fmt.Sprintf("opened %s, the newest crawl with a finished round", crawl)
	if len(crawls) > 1 {
		note += fmt.Sprintf(", one of %d crawls in this store. --month opens another, --all-months all of them", len(crawls))
	}
	if running != "" {
		note += "; " + running
	}
	return sealed, note, nil
}

// unfinished names the round of a crawl that began and is not sealed. It returns "" if there is none, or if
// the ledger cannot be read: other commands report that.
func unfinished(ctx context.Context, b store.Bucket, crawl string, sealed []*manifest.Sealed) string {
	if len(sealed) == 0 {
		return fmt.Sprintf("no round of %s is finished yet, so the views are empty: create them again after the first round", crawl)
	}
	l, err := ledger.Load(ctx, b, crawl)
	if next := sealed[len(sealed)-1].Round + 1; err == nil && l.Started(next) != nil {
		return fmt.Sprintf("round %d of %s is not finished, so the views lack its rows", next, crawl)
	}
	return ""
}

// mostUnfinished is how many unfinished rounds a note names.
const mostUnfinished = 5

// unfinishedOf is unfinished for several crawls.
func unfinishedOf(ctx context.Context, b store.Bucket, crawls []string, sealed []*manifest.Sealed) string {
	byCrawl := map[string][]*manifest.Sealed{}
	for _, s := range sealed {
		byCrawl[s.Crawl] = append(byCrawl[s.Crawl], s)
	}
	var notes []string
	for _, crawl := range slices.SortedFunc(slices.Values(crawls), newerFirst) {
		if len(notes) == mostUnfinished {
			break
		}
		if len(byCrawl[crawl]) == 0 && len(sealed) > 0 {
			if l, err := ledger.Load(ctx, b, crawl); err == nil && l.Started(0) != nil { // the crawl was not pruned
				notes = append(notes, "no round of "+crawl+" is finished, so the views lack its rows")
			}
		} else if text := unfinished(ctx, b, crawl, byCrawl[crawl]); text != "" {
			notes = append(notes, text)
		}
	}
	return strings.Join(notes, "; ")
}

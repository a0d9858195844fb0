package prune

import (
	"context"
	"strconv"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlstate"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// keepHistory keeps the metadata of crawls from which the next month reads the states of URLs. The
// next month continues the newest month.
func (r *Request) keepHistory(ctx context.Context, f *Found) error {
	byName := map[string]*Crawl{}
	newest := ""
	for _, c := range f.Crawls {
		byName[c.Name] = c
		if !layout.IsReparse(c.Name) && !c.ledger.Gone() && c.ledger.Newest(manifest.EntrySealed, 0) != nil {
			newest = c.Name
		}
	}
	if newest == "" {
		return nil
	}
	rounds, err := roundstate.History(ctx, r.Bucket, newest)
	if err == nil {
		rounds, err = roundstate.WithFiles(ctx, r.Bucket, rounds, roundstate.Selection{Dataset: roundstate.HasStates})
	}
	if err != nil {
		return err
	}
	history := urlstate.After(rounds)
	for bucket := range history.Buckets() {
		for _, key := range history.Chain(bucket, history.Buckets()).Keys() {
			c := byName[layout.CrawlOf(key)]
			if c != nil && c.Policy == manifest.PruneMetadata && !c.ledger.Gone() {
				if err := r.keepMetadata(ctx, c, newest); err != nil {
					return err
				}
			}
		}
	}
	// The newest month stays even if it has no URLs.
	if c := byName[newest]; c.Policy == manifest.PruneMetadata {
		return r.keepMetadata(ctx, c, newest)
	}
	return nil
}

// keepMetadata keeps the metadata of a crawl, and deletes only what the narrower policies allow.
func (r *Request) keepMetadata(ctx context.Context, c *Crawl, newest string) error {
	all, err := r.policies(c)
	if err == nil {
		err = r.choose(ctx, c, all[1:])
	}
	c.Why = "the month after " + newest + " reads its states of URLs, so its metadata stays"
	return err
}

// referringCapture holds the column of the captures dataset that names the WARC file with a
// revisit's payload.
type referringCapture struct {
	File string `parquet:"payload_warc_filename,optional"`
}

// referringURL holds the columns of the urls dataset that name a URL's last round and the WARC file
// with its last content.
type referringURL struct {
	LastPlanned string `parquet:"last_planned,optional"`
	File        string `parquet:"warc_filename,optional"`
}

// references returns WARC files that must stay. They belong to rounds that lose their raw captures,
// and a round that keeps its raw captures refers to them. If a table of a round that keeps its raw
// captures cannot be read, nobody knows to what it refers, and references returns an error.
func (r *Request) references(ctx context.Context, f *Found) (map[string]bool, error) {
	lost, refers := map[string]int{}, map[string]bool{} // lost: number of rounds that lose their raw captures
	for _, c := range f.Crawls {
		if c.losesRaw() {
			lost[c.Name] = c.list.Prune.Rounds
		}
	}
	if len(lost) == 0 {
		return refers, nil // nothing is deleted
	}
	add := func(file string) {
		if file != "" && !refers[file] && lost[layout.CrawlOf(file)] > 0 {
			refers[strings.Clone(file)] = true
		}
	}
	for _, c := range f.Crawls {
		if c.ledger.Gone() || lost[c.Name] >= c.ledger.Rounds() {
			continue
		}
		sealed, err := roundstate.Sealed(ctx, r.Bucket, c.Name)
		if err == nil {
			sealed, err = roundstate.WithFiles(ctx, r.Bucket, sealed[min(lost[c.Name], len(sealed)):], roundstate.Selection{Dataset: func(d string) bool { return d == stages.FileCaptures || d == stages.FileURLs }})
		}
		if err != nil {
			return nil, err
		}
		for _, s := range sealed {
			for row, err := range table.Concat[referringCapture](ctx, r.Bucket, keys(s, stages.FileCaptures)) {
				if err != nil {
					return nil, err
				}
				add(row.File)
			}
			for row, err := range table.Concat[referringURL](ctx, r.Bucket, keys(s, stages.FileURLs)) {
				if err != nil {
					return nil, err
				}
				planned, number, _ := strings.Cut(row.LastPlanned, ".")
				if round, err := strconv.Atoi(number); err != nil || round >= lost[planned] {
					add(row.File)
				}
			}
		}
	}
	return refers, nil
}

func keys(s *manifest.Sealed, dataset string) (keys []string) {
	for _, f := range s.FilesOf(dataset) {
		keys = append(keys, f.Key)
	}
	return keys
}

package report

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

// rounds holds the sealed rounds of a crawl with their files.
type rounds struct {
	bucket store.Bucket
	crawl  string
	sealed []*manifest.Sealed
}

// files returns the parts of a dataset in a round.
func files(s *manifest.Sealed, dataset string) (keys []string) {
	for _, f := range s.FilesOf(dataset) {
		keys = append(keys, f.Key)
	}
	return keys
}

// scan passes each row of a dataset to use, round by round.
func scan[T any](ctx context.Context, r *rounds, dataset string, groups []*group, use func(round int, row *T)) error {
	for _, s := range r.sealed {
		for row, err := range table.Concat[T](ctx, r.bucket, files(s, dataset)) {
			if err != nil {
				return lost(err)
			}
			use(s.Round, &row)
		}
		for _, g := range groups {
			g.top.NextRound()
		}
	}
	return nil
}

// lost adds advice to an error about a file that is gone.
func lost(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: a seal of the crawl lists this file, so the report would be incomplete: `crawlbatch verify` says what else is gone, and `crawlbatch retry --rebuild` recreates parts of finished rounds: %w", err, stages.ErrPermanent)
	}
	return err
}

// collected holds what the passes over the datasets found.
type collected struct {
	fetches    *fetches
	requests   *requests
	hosts      *hosts
	pages      *pages
	duplicates *duplicates
	links      *group
	urls       *urls
	skips      *group
	traps      *group
	captures   *group
	accounts   *accounts
}

// collect reads each dataset once, several at a time.
func collect(ctx context.Context, r *rounds) (*collected, error) {
	c := &collected{
		fetches: newFetches(), requests: newRequests(), hosts: newHosts(), pages: newPages(), duplicates: newDuplicates(),
		links: newLinks(), urls: newURLs(), skips: newSkips(), traps: newTraps(), captures: newCaptures(), accounts: newAccounts(),
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(passes)
	for _, pass := range []func(context.Context, *rounds) error{
		c.fetches.read, c.requests.read, c.hosts.read, c.pages.read, c.duplicates.read, c.urls.read, c.accounts.read,
		func(ctx context.Context, r *rounds) error { return readLinks(ctx, r, c.links) },
		func(ctx context.Context, r *rounds) error { return readSkips(ctx, r, c.skips, c.traps) },
		func(ctx context.Context, r *rounds) error { return readCaptures(ctx, r, c.captures) },
	} {
		group.Go(func() error { return pass(ctx, r) })
	}
	return c, group.Wait()
}

// passes is the number of datasets that are read at the same time. A pass holds a row group and the
// keys of its tables.
const passes = 3

// clock formats a time in milliseconds since 1970. For 0 it returns nil.
func clock(ms int64) any {
	if ms == 0 {
		return nil
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}

// orNull returns the SQL of a column whose nulls become the text missing.
func orNull(column, missing string) string { return "coalesce(" + column + ", '" + missing + "')" }

// one returns 1 if a condition holds, otherwise 0.
func one(condition bool) int64 {
	if condition {
		return 1
	}
	return 0
}

// countIf counts the rows that meet a condition.
func countIf(name, condition string) value {
	return value{name: name, unit: unitCount, sql: "count(*) FILTER (WHERE " + condition + ")"}
}

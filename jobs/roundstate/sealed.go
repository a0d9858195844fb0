package roundstate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/publish"
)

// Seal creates sealed.json of a round. All stages of the round must have all their results.
func Seal(ctx context.Context, b store.Bucket, p *manifest.Plan, version string) error {
	results := map[stages.Stage][]*manifest.Result{}
	for _, stage := range stages.Order {
		var err error
		if results[stage], _, err = loadResults(ctx, b, p, Tasks(p, stage)); err != nil {
			return err
		}
	}
	s, err := publish.Seal(p, results)
	if err != nil {
		return err
	}
	s.Version = version
	return createOnce(ctx, b, layout.Sealed(p.Crawl, p.Round), s) // the version in another process's document may differ
}

// Earlier returns the sealed rounds before a round, oldest first. They include those of the crawls
// that this crawl continues.
func Earlier(ctx context.Context, b store.Bucket, crawl string, round int) ([]*manifest.Sealed, error) {
	all, err := History(ctx, b, crawl)
	if err != nil {
		return nil, err
	}
	for i, s := range all {
		if s.Crawl == crawl && s.Round >= round {
			return all[:i], nil
		}
	}
	return all, nil
}

// History returns all sealed rounds of a crawl and of the crawls that it continues, oldest first.
func History(ctx context.Context, b store.Bucket, crawl string) ([]*manifest.Sealed, error) {
	var chain []*manifest.Sealed
	seen := map[string]bool{}
	for crawl != "" && !seen[crawl] {
		seen[crawl] = true
		own, err := Sealed(ctx, b, crawl)
		if err != nil {
			return nil, err
		}
		chain = append(own, chain...)
		var m manifest.Crawl
		if _, _, err := manifest.Load(ctx, b, layout.CrawlManifest(crawl), &m); err != nil {
			return nil, err
		}
		crawl = m.Continues
	}
	return chain, nil
}

// Sealed returns the sealed rounds of a crawl, from round 0 on.
func Sealed(ctx context.Context, b store.Bucket, crawl string) ([]*manifest.Sealed, error) {
	var all []*manifest.Sealed
	for {
		s, err := SealedRound(ctx, b, crawl, len(all))
		if err != nil {
			return nil, err
		}
		if s == nil {
			return all, nil
		}
		all = append(all, s)
	}
}

// SealedRound returns the seal of a round, or nil if it has none.
func SealedRound(ctx context.Context, b store.Bucket, crawl string, round int) (*manifest.Sealed, error) {
	var s manifest.Sealed
	key := layout.Sealed(crawl, round)
	_, _, err := manifest.Load(ctx, b, key, &s)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err == nil && (s.Crawl != crawl || s.Round != round) {
		err = misplaced(key, fmt.Sprintf("round %s.%d", s.Crawl, s.Round), fmt.Sprintf("round %s.%d", crawl, round))
	}
	if err != nil {
		return nil, err
	}
	return &s, nil
}

// AllSealed returns the sealed rounds of every crawl of a store, ordered by crawl and round.
func AllSealed(ctx context.Context, b store.Bucket) ([]*manifest.Sealed, error) {
	crawls, err := Crawls(ctx, b)
	if err != nil {
		return nil, err
	}
	var all []*manifest.Sealed
	for _, crawl := range crawls {
		s, err := Sealed(ctx, b, crawl)
		if err != nil {
			return nil, err
		}
		all = append(all, s...)
	}
	return all, nil
}

// NewestSealed returns the newest of crawls that has a sealed round, and its sealed rounds. A later
// month is newer. Within a month, the month itself is newer than its reparses, and a reparse with a
// higher number is newer. If no crawl has a sealed round, NewestSealed returns the newest crawl and
// no rounds.
func NewestSealed(ctx context.Context, b store.Bucket, crawls []string) (string, []*manifest.Sealed, error) {
	byAge := slices.SortedFunc(slices.Values(crawls), newerFirst)
	for _, crawl := range byAge {
		sealed, err := Sealed(ctx, b, crawl)
		if err != nil || len(sealed) > 0 {
			return crawl, sealed, err
		}
	}
	if len(byAge) == 0 {
		return "", nil, nil
	}
	return byAge[0], nil, nil
}

func newerFirst(a, b string) int {
	monthA, _ := layout.MonthOf(a)
	monthB, _ := layout.MonthOf(b)
	if monthA != monthB {
		return cmp.Compare(monthB, monthA)
	}
	againA, againB := strings.TrimPrefix(a, monthA), strings.TrimPrefix(b, monthB)
	if againA == "" || againB == "" {
		return cmp.Compare(len(againA), len(againB))
	}
	return cmp.Or(cmp.Compare(len(againB), len(againA)), cmp.Compare(againB, againA)) // r10 before r9
}

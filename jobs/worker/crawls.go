package worker

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
)

// AllSealed returns the sealed rounds of every crawl of a store, by crawl and round.
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

// NewestSealed returns the newest of crawls that has a sealed round, with those rounds.
// A later month is newer; of a month's crawls the month itself is newer than its reparses,
// and of those the one with the higher number. Where none has a sealed round, it returns the
// newest and no rounds.
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

// FrozenFormats returns the format by which each stage of a round was frozen, which is the
// format of the parts that it wrote. Where inputs.json is lost it is 1: a newer crawlbatch
// may have sealed what an older one wrote.
func FrozenFormats(ctx context.Context, b store.Bucket, s *manifest.Sealed) (map[stages.Stage]int, error) {
	out := map[stages.Stage]int{}
	for _, stage := range []stages.Stage{stages.Merge, stages.Dedup, stages.Rank, stages.Frontier, stages.Publish} {
		var in manifest.Inputs
		_, _, err := manifest.Load(ctx, b, layout.Inputs(s.Crawl, s.Round, string(stage)), &in)
		if errors.Is(err, store.ErrNotFound) {
			in.Format, err = 1, nil
		}
		if err != nil {
			return nil, err
		}
		out[stage] = in.Format
	}
	return out, nil
}

// Crawls lists the crawls of a store, months and reparses of them, in order. Listing all keys
// would read millions of names, so it asks decade, year and month whether there is
// anything.
func Crawls(ctx context.Context, b store.Bucket) ([]string, error) {
	var crawls []string
	for decade := 199; decade < 210; decade++ {
		if some, err := anyKey(ctx, b, fmt.Sprintf("crawl=%d", decade)); err != nil || !some {
			if err != nil {
				return nil, err
			}
			continue
		}
		for year := decade * 10; year < decade*10+10; year++ {
			some, err := anyKey(ctx, b, fmt.Sprintf("crawl=%d-", year))
			if err != nil {
				return nil, err
			}
			for month := 1; some && month <= 12; month++ {
				crawl := fmt.Sprintf("%d-%02d", year, month)
				ok, err := manifest.Exists(ctx, b, layout.CrawlManifest(crawl))
				if err != nil {
					return nil, err
				}
				if ok {
					crawls = append(crawls, crawl)
				}
				more, err := reparses(ctx, b, crawl+"r")
				if err != nil {
					return nil, err
				}
				crawls = append(crawls, more...)
			}
		}
	}
	return crawls, nil
}

// reparses lists the crawls whose names begin with prefix and go on with digits, in
// the order of their names as texts.
func reparses(ctx context.Context, b store.Bucket, prefix string) ([]string, error) {
	some, err := anyKey(ctx, b, "crawl="+prefix)
	if err != nil || !some {
		return nil, err
	}
	var crawls []string
	if layout.IsReparse(prefix) {
		ok, err := manifest.Exists(ctx, b, layout.CrawlManifest(prefix))
		if err != nil {
			return nil, err
		}
		if ok {
			crawls = append(crawls, prefix)
		}
	}
	for digit := range 10 {
		more, err := reparses(ctx, b, fmt.Sprintf("%s%d", prefix, digit))
		if err != nil {
			return nil, err
		}
		crawls = append(crawls, more...)
	}
	return crawls, nil
}

// anyKey reports whether some key starts with prefix.
func anyKey(ctx context.Context, b store.Bucket, prefix string) (bool, error) {
	for _, err := range b.List(ctx, prefix) {
		if err != nil {
			return false, fmt.Errorf("list %s: %w", prefix, err)
		}
		return true, nil
	}
	return false, nil
}

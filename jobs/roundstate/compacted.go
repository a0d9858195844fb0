package roundstate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
)

// Compaction returns the list of the compacted copy that the ledger names, or nil if it names none. If
// the list is gone, damaged or was changed, the error is a ledger.Lost error.
func Compaction(ctx context.Context, b store.Bucket, l *ledger.Ledger) (*manifest.Compaction, error) {
	e := l.Of(manifest.EntryCompacted)
	if e == nil || e.Object == "" || l.Gone() {
		return nil, nil
	}
	var list manifest.Compaction
	if err := l.Check(ctx, b, e, &list); err != nil {
		return nil, err
	}
	if list.Crawl != l.Crawl {
		return nil, l.Miss(e, true)
	}
	return &list, nil
}

// Covers reports whether views may read a copy: whether its rounds still have the seals that were copied.
func Covers(list *manifest.Compaction, l *ledger.Ledger) bool {
	if list == nil {
		return false
	}
	for _, r := range list.Rounds {
		if e := l.Newest(manifest.EntrySealed, r.Round); e == nil || r.Seal == "" || r.Seal != e.SHA256 {
			return false
		}
	}
	return len(list.Rounds) > 0
}

// WithCompacted returns copies of sealed rounds whose Files name the parts of compacted copies in place of
// the published parts of the same datasets. A part of a copy has rows of several rounds; the Files of the
// first round of its crawl name it. Rounds without a copy stay as they are. If a crawl's list is lost or
// damaged, its rounds stay as they are too, and notes says so.
func WithCompacted(ctx context.Context, b store.Bucket, sealed []*manifest.Sealed) (out []*manifest.Sealed, notes []string, err error) {
	out = slices.Clone(sealed)
	at := map[string]map[int]int{} // indexes of the rounds of each crawl
	for i, s := range sealed {
		if at[s.Crawl] == nil {
			at[s.Crawl] = map[int]int{}
		}
		at[s.Crawl][s.Round] = i
	}
	for _, crawl := range slices.Sorted(maps.Keys(at)) {
		l, err := ledger.Load(ctx, b, crawl)
		if err != nil {
			return nil, nil, err
		}
		list, err := Compaction(ctx, b, l)
		switch {
		case errors.Is(err, ledger.ErrLost):
			notes = append(notes, fmt.Sprintf("opened the published parts of %s, because its compacted copy has no list: %v", crawl, err))
		case err != nil:
			return nil, nil, err
		}
		missing := func(r manifest.CompactedRound) bool { _, ok := at[crawl][r.Round]; return !ok }
		if !Covers(list, l) || slices.ContainsFunc(list.Rounds, missing) {
			continue
		}
		for n, r := range list.Rounds {
			i := at[crawl][r.Round]
			replaced := *sealed[i]
			replaced.Files = slices.DeleteFunc(slices.Clone(replaced.Files), func(f manifest.File) bool { return slices.Contains(r.Datasets, f.Dataset) })
			if n == 0 {
				replaced.Files = append(replaced.Files, list.Files...)
				slices.SortFunc(replaced.Files, func(a, b manifest.File) int { return strings.Compare(a.Key, b.Key) })
			}
			out[i] = &replaced
		}
	}
	return out, notes, nil
}

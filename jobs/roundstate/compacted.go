package roundstate

import (
	"context"
	"errors"
	"fmt"
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

// CompactedOf returns the part of a list that copies a sealed round, or nil. A copy of a seal that was
// replaced does not count.
func CompactedOf(list *manifest.Compaction, l *ledger.Ledger, round int) *manifest.CompactedRound {
	if list == nil {
		return nil
	}
	sealed := l.Newest(manifest.EntrySealed, round)
	for i, r := range list.Rounds {
		if r.Round == round && sealed != nil && sealed.SHA256 != "" && r.Seal == sealed.SHA256 {
			return &list.Rounds[i]
		}
	}
	return nil
}

// WithCompacted returns copies of sealed rounds whose Files name the parts of the compacted copy in
// place of the published parts of the same datasets. Rounds without a copy stay as they are. If a
// crawl's list is lost or damaged, its rounds stay as they are too, and notes says so.
func WithCompacted(ctx context.Context, b store.Bucket, sealed []*manifest.Sealed) (out []*manifest.Sealed, notes []string, err error) {
	type copied struct {
		ledger *ledger.Ledger
		list   *manifest.Compaction
	}
	of := map[string]copied{}
	for _, s := range sealed {
		c, ok := of[s.Crawl]
		if !ok {
			if c.ledger, err = ledger.Load(ctx, b, s.Crawl); err != nil {
				return nil, nil, err
			}
			c.list, err = Compaction(ctx, b, c.ledger)
			switch {
			case errors.Is(err, ledger.ErrLost):
				notes = append(notes, fmt.Sprintf("opened the published parts of %s, because its compacted copy has no list: %v", s.Crawl, err))
			case err != nil:
				return nil, nil, err
			}
			of[s.Crawl] = c
		}
		if r := CompactedOf(c.list, c.ledger, s.Round); r != nil {
			s = replaceFiles(s, r)
		}
		out = append(out, s)
	}
	return out, notes, nil
}

// replaceFiles returns a copy of a seal with the files of a compacted copy.
func replaceFiles(s *manifest.Sealed, r *manifest.CompactedRound) *manifest.Sealed {
	replaced := *s
	replaced.Files = slices.Clone(r.Files)
	for _, f := range s.Files {
		if !slices.Contains(r.Datasets, f.Dataset) {
			replaced.Files = append(replaced.Files, f)
		}
	}
	slices.SortFunc(replaced.Files, func(a, b manifest.File) int { return strings.Compare(a.Key, b.Key) })
	return &replaced
}

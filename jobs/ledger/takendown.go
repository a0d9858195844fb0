package ledger

import (
	"context"
	"errors"
	"fmt"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages"
)

// ErrTakedown means that a takedown of the store is unfinished: some objects are changed, and others
// are not.
var ErrTakedown = errors.New("a takedown is not finished: continue it with `crawlbatch takedown --resume`")

// CheckTakedown returns an error that wraps ErrTakedown if a takedown of the store is unfinished.
func CheckTakedown(ctx context.Context, b store.Bucket) error {
	there, err := manifest.Exists(ctx, b, layout.Takedown())
	if err == nil && there {
		err = fmt.Errorf("%s: %w", b, ErrTakedown)
	}
	return err
}

// Takedown returns the newest entry `takedown`, or nil if no takedown changed objects of the crawl.
func (l *Ledger) Takedown() *manifest.Entry { return l.Of(manifest.EntryTakedown) }

// Takedowns returns the number of takedowns that changed objects of the crawl.
func (l *Ledger) Takedowns() (n int) {
	for _, e := range l.doc.Entries {
		if e.What == manifest.EntryTakedown {
			n++
		}
	}
	return n
}

// TakedownUnfinished reports whether a takedown was interrupted, or is running, in the ledger's crawl.
func (l *Ledger) TakedownUnfinished() bool {
	began, ended := l.Takedown(), l.Of(manifest.EntryTakenDown)
	return began != nil && (ended == nil || ended.N < began.N)
}

// TakenDown returns an error for commands that cannot compute anything again because a takedown changed
// what the round was computed from.
func (l *Ledger) TakenDown() error {
	e := l.Takedown()
	if e == nil {
		return nil
	}
	return fmt.Errorf("crawl %s: a takedown changed its objects on %.10s, so nothing computes the lost ones as they were: restore them from a copy that was made later: %w", l.Crawl, e.At, stages.ErrPermanent)
}

// BeginTakedown appends the entry `takedown` for a stored Removal, unless the ledger has it.
func (w Writer) BeginTakedown(ctx context.Context, b store.Bucket, crawl, key, digest string, format int) error {
	_, err := w.Append(ctx, b, crawl, func(l *Ledger) ([]manifest.Entry, error) {
		if e := l.Takedown(); e != nil && e.Object == key {
			return nil, nil
		}
		return []manifest.Entry{{What: manifest.EntryTakedown, Object: key, SHA256: digest, Format: format}}, nil
	})
	return err
}

// EndTakedown appends the entries of a Removal and the entry `taken_down`, unless the ledger has it.
// From then on, readers find the digests of the changed documents in the newest entries about them.
func (w Writer) EndTakedown(ctx context.Context, b store.Bucket, r *manifest.Removal) error {
	_, err := w.Append(ctx, b, r.Crawl, func(l *Ledger) ([]manifest.Entry, error) {
		if !l.TakedownUnfinished() {
			return nil, nil
		}
		return append(append([]manifest.Entry{}, r.Entries...), manifest.Entry{What: manifest.EntryTakenDown}), nil
	})
	return err
}

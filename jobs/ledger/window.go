package ledger

import (
	"context"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
)

// Window is a crawl window: the time in which the drivers of a crawl begin rounds. The interval is
// half-open: [Begin, End).
type Window struct {
	Begin, End time.Time
}

// Window returns the newest crawl window. ok is false if no driver has begun one since the crawl was created
// or its ledger was rebuilt.
func (l *Ledger) Window() (w Window, ok bool) {
	e := l.Of(manifest.EntryRunning)
	if e == nil {
		return w, false
	}
	begin, err := time.Parse(time.RFC3339Nano, e.Now)
	if err != nil {
		return w, false
	}
	end, err := time.Parse(time.RFC3339Nano, e.Until)
	return Window{begin, end}, err == nil
}

// Unfinished reports whether a driver began to crawl, and no `run` has ended without an error since then while no
// round was open. A crawl that is paused, or whose driver was stopped, has failed or is dead, is unfinished.
func (l *Ledger) Unfinished() bool {
	began, ended := l.Of(manifest.EntryRunning), l.Of(manifest.EntryFinished)
	return began != nil && (ended == nil || ended.N < began.N)
}

// InRound reports whether the newest round is open: it has started and is not sealed.
func (l *Ledger) InRound() bool {
	newest := l.rounds - 1
	return l.Started(newest) != nil && l.Newest(manifest.EntrySealed, newest) == nil
}

// NoteRunning records that a driver crawls in a crawl window. It appends nothing if the ledger says so already.
func (w Writer) NoteRunning(ctx context.Context, b store.Bucket, crawl string, in Window) error {
	_, err := w.Append(ctx, b, crawl, func(l *Ledger) ([]manifest.Entry, error) {
		if was, ok := l.Window(); ok && l.Unfinished() && was.Begin.Equal(in.Begin) && was.End.Equal(in.End) {
			return nil, nil
		}
		return []manifest.Entry{{What: manifest.EntryRunning, Now: in.Begin.UTC().Format(time.RFC3339Nano), Until: in.End.UTC().Format(time.RFC3339Nano)}}, nil
	})
	return err
}

// NoteFinished records that a `run` ended without an error while no round was open. It appends nothing if a round is
// open, which another driver may be crawling, or if the crawl is not Unfinished.
func (w Writer) NoteFinished(ctx context.Context, b store.Bucket, crawl string) error {
	_, err := w.Append(ctx, b, crawl, func(l *Ledger) ([]manifest.Entry, error) {
		if !l.Unfinished() || l.InRound() {
			return nil, nil
		}
		return []manifest.Entry{{What: manifest.EntryFinished}}, nil
	})
	return err
}

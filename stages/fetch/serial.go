package fetch

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages/fetch/lease"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
)

// A URL can kill the process that works on it: by a fault of the program, by the
// memory that it takes. Attempt after attempt would end there. So when several
// have recorded nothing, the next works on one thing at a time, and says in the
// checkpoint on what before it begins, and when it is done. What several of them
// die at is the killer; one death may have been the machine's.

const (
	// maxStalled is how many attempts in a row may end without having recorded anything.
	maxStalled = 3
	// maxSerial is how many grants the serial mode lasts without a suspect: then the
	// first URLs are taken to be harmless.
	maxSerial = 1000
)

// killers are the suspects that are to be tried no more.
func killers(d *manifest.Checkpoint) (found []manifest.Trying) {
	for _, s := range d.Suspects {
		if lease.Quarantined(s) {
			found = append(found, s.Trying)
		}
	}
	return found
}

// suspicious reports whether something that an attempt died at was neither
// convicted nor survived.
func (f *fetcher) suspicious(suspects []manifest.Suspect, recorded *roaring.Bitmap) bool {
	return slices.ContainsFunc(suspects, func(s manifest.Suspect) bool {
		if s.Origin != "" {
			return !lease.Quarantined(s) && f.robots.Undecided(s.Origin)
		}
		return !lease.Quarantined(s) && (s.Row < 0 || !recorded.Contains(uint32(s.Row)))
	})
}

// serialMode is one grant at a time. The checkpoint names what the grant sends a request
// for, so that an attempt that dies at it leaves a suspect.
type serialMode struct {
	on        atomic.Bool
	suspected bool // it ends once no suspect is left, else after maxSerial grants
	grants    int
}

// enterSerial begins the serial mode. Call it before the fetcher runs.
func (a *attempt) enterSerial(suspected bool) {
	doc := a.lease.Checkpoint()
	a.env.Log.Warn("earlier attempts died: one URL at a time, to find out which it is", "without_progress", doc.Stalled-1, "suspects", len(doc.Suspects))
	a.one.suspected = suspected
	a.one.on.Store(true)
}

// serial implements gate.
func (a *attempt) serial() bool { return a.one.on.Load() }

// begin implements gate: in serial mode the checkpoint names what is tried.
func (a *attempt) begin(ctx context.Context, what manifest.Trying) error {
	if !a.serial() {
		return nil
	}
	return a.checkpoint(ctx, func(d *manifest.Checkpoint) error { d.Trying = &what; return nil })
}

// done implements gate. It ends the serial mode once the suspects have survived.
func (a *attempt) done(ctx context.Context) error {
	if !a.serial() {
		return nil
	}
	if err := a.checkpoint(ctx, func(d *manifest.Checkpoint) error { d.Trying = nil; return nil }); err != nil {
		return err
	}
	a.one.grants++
	if a.one.suspected {
		doc := a.lease.Checkpoint()
		recorded, err := doc.RecordedRows()
		if err != nil || a.fetcher.suspicious(doc.Suspects, recorded) {
			return err
		}
	} else if a.one.grants < maxSerial {
		return nil
	}
	a.env.Log.Info("what came first ends no attempt: all slots again", "steps", a.one.grants)
	a.one.on.Store(false)
	return nil
}

// convict ends what attempts died at.
func (a *attempt) convict(ctx context.Context, recorded *roaring.Bitmap) error {
	f, doc := a.fetcher, a.lease.Checkpoint()
	const why = "the attempts that worked on it alone died"
	found := killers(&doc)
	for _, killer := range found {
		if killer.Origin != "" {
			row := &schema.RobotsFile{Origin: killer.Origin, Outcome: schema.InternalError, Failure: why}
			if _, err := f.robots.Restore(row); err != nil {
				return fmt.Errorf("%q: %w", a.lease.Key(), err)
			}
			a.env.Log.Error("a robots.txt ends attempts", "origin", killer.Origin)
			f.record(&segments.Record{Robots: row})
			continue
		}
		if killer.Row < 0 || killer.Row >= int64(f.index.Len()) {
			return fmt.Errorf("%q: attempts died at row %d of %d: %w", a.lease.Key(), killer.Row, f.index.Len(), manifest.ErrCorrupt)
		}
		if recorded.Contains(uint32(killer.Row)) {
			continue
		}
		u, err := f.urlTask(killer.Row)
		if err != nil {
			return err
		}
		a.env.Log.Error("a URL ends attempts", "url", u.planned.URL)
		f.finish(u, schema.InternalError, response.Failure{Phrase: why})
	}
	if fatal := f.fatal.Load(); fatal != nil {
		return *fatal
	}
	if len(found) == 0 {
		return nil
	}
	return a.checkpoint(ctx, func(d *manifest.Checkpoint) error {
		d.Suspects = slices.DeleteFunc(slices.Clone(d.Suspects), func(s manifest.Suspect) bool { return slices.Contains(found, s.Trying) })
		return nil
	})
}

package fetch

import (
	"cmp"
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

// A URL may kill every process that works on it, because of a bug or because it needs too much
// memory. If several attempts have recorded nothing, the next one therefore uses serial mode: the
// checkpoint names each URL before the attempt tries it. A URL at which three attempts died is
// quarantined: it gets the outcome internal_error and is not tried again. One death is not enough,
// because the machine may have caused it.

const (
	// After maxStalled attempts in a row that recorded nothing, the next attempt uses serial mode.
	maxStalled = 3
	// If there is no suspect, or only suspects that wait (see suspicious), serial mode ends after
	// maxSerial grants. The URLs of these grants then count as harmless.
	maxSerial = 1000
)

// suspicious reports whether any suspect has no outcome and is not quarantined. A sitemap or robots.txt that
// the round does not request any more, because its host failed or was stopped, is harmless. If patient is false, so are
// two whose wait may last until the task ends: the robots.txt of a host without URLs, to which a redirect may lead,
// and a suspect that this attempt has requested, that killed nothing, and waits for the end of a pause (lease.Waiting).
func (a *attempt) suspicious(doc *manifest.Checkpoint, recorded *roaring.Bitmap, patient bool) bool {
	waiting := lease.Waiting(doc, a.fetcher.hostOf)
	return slices.ContainsFunc(doc.Suspects, func(s manifest.Suspect) bool {
		switch {
		case lease.IsQuarantined(s), !patient && a.one.requested[s.Trying] && waiting[s.Trying]:
			return false
		case s.Sitemap != "":
			return a.fetcher.sitemaps.Expected(s.Sitemap)
		case s.Origin != "":
			return a.fetcher.robots.Expected(s.Origin, patient)
		}
		return s.Row < 0 || !recorded.Contains(uint32(s.Row))
	})
}

// serialMode permits one grant at a time. Before each request, the checkpoint names the URL or
// robots.txt of the grant. If the attempt dies, this URL or robots.txt becomes a suspect.
type serialMode struct {
	on        atomic.Bool
	suspected bool // if false, serial mode ends after maxSerial grants; otherwise when no suspect is left (see done)
	grants    int
	requested map[manifest.Trying]bool // what this attempt has requested
}

// enterSerial begins serial mode. It must be called before the fetcher runs.
func (a *attempt) enterSerial() {
	doc := a.lease.Checkpoint()
	a.env.Log.Warn("earlier attempts died: this attempt fetches one URL at a time to find the cause", "without_progress", doc.Stalled-1, "suspects", len(doc.Suspects))
	a.one.on.Store(true)
}

// serial implements gate.
func (a *attempt) serial() bool { return a.one.on.Load() }

// begin implements gate. In serial mode, it first swaps in a checkpoint that names the URL or
// robots.txt.
func (a *attempt) begin(ctx context.Context, what manifest.Trying) error {
	if !a.serial() {
		return nil
	}
	a.one.requested[what] = true
	return a.checkpoint(ctx, func(d *manifest.Checkpoint) error { d.Trying = &what; return nil })
}

// done implements gate. It ends serial mode when no suspect is left. After maxSerial grants, it has no patience with
// suspects that only wait (see suspicious), or serial mode might last until the task ends.
func (a *attempt) done(ctx context.Context) error {
	if !a.serial() {
		return nil
	}
	if err := a.checkpoint(ctx, func(d *manifest.Checkpoint) error { d.Trying = nil; return nil }); err != nil {
		return err
	}
	a.one.grants++
	more := a.one.grants < cmp.Or(a.fetcher.maxSerial, maxSerial)
	if a.one.suspected {
		doc := a.lease.Checkpoint()
		recorded, err := doc.RecordedRows()
		if err != nil || a.suspicious(&doc, recorded, more) {
			return err
		}
	} else if more {
		return nil
	}
	a.env.Log.Info("no URL killed this attempt: it uses all slots again", "grants", a.one.grants)
	a.one.on.Store(false)
	return nil
}

// quarantine ends the quarantined URLs, robots.txt files and sitemaps as internal_error.
func (a *attempt) quarantine(ctx context.Context, recorded *roaring.Bitmap) error {
	f, doc := a.fetcher, a.lease.Checkpoint()
	const why = "several attempts died while they worked only on it"
	found := lease.Quarantined(&doc)
	for _, t := range found {
		if t.Origin != "" {
			row := &schema.RobotsFile{Origin: t.Origin, Outcome: schema.InternalError, Failure: why}
			if _, err := f.robots.Restore(row); err != nil {
				return fmt.Errorf("%q: %w", a.lease.Key(), err)
			}
			a.env.Log.Error("a robots.txt is given up, because several attempts died at it", "origin", t.Origin)
			f.record(&segments.Record{Robots: row})
			continue
		}
		if t.Sitemap != "" {
			row, err := f.sitemaps.EndSuspect(t.Sitemap)
			if err != nil {
				return fmt.Errorf("%q: %w", a.lease.Key(), err)
			}
			f.record(&segments.Record{Sitemaps: []schema.Sitemap{row}})
			a.env.Log.Error("a sitemap is given up, because several attempts died at it", "url", t.Sitemap)
			continue
		}
		if t.Row < 0 || t.Row >= int64(f.index.Len()) {
			return fmt.Errorf("%q: attempts died at row %d of %d: %w", a.lease.Key(), t.Row, f.index.Len(), manifest.ErrCorrupt)
		}
		if recorded.Contains(uint32(t.Row)) {
			continue
		}
		u, err := f.urlTask(t.Row)
		if err != nil {
			return err
		}
		a.env.Log.Error("a URL is given up, because several attempts died at it", "url", u.planned.URL)
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

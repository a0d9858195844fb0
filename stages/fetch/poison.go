package fetch

import (
	"context"
	"fmt"
	"slices"

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
	// maxAlone is after how many steps an attempt that goes alone takes it that what
	// ended the others was none of the URLs that come first.
	maxAlone = 1000
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
func (c *crawl) suspicious(suspects []manifest.Suspect, recorded *roaring.Bitmap) bool {
	return slices.ContainsFunc(suspects, func(s manifest.Suspect) bool {
		if s.Origin != "" {
			return !lease.Quarantined(s) && c.robots.Undecided(s.Origin)
		}
		return !lease.Quarantined(s) && (s.Row < 0 || !recorded.Contains(uint32(s.Row)))
	})
}

// goAlone has the crawl do one thing at a time.
func (a *attempt) goAlone(ctx context.Context, suspected bool) {
	c, doc := a.crawl, a.lease.Checkpoint()
	a.env.Log.Warn("earlier attempts died: one URL at a time, to find out which it is", "without_progress", doc.Stalled-1, "suspects", len(doc.Suspects))
	held := cap(c.slots) - 1
	for range held {
		c.slots <- struct{}{}
	}
	steps := 0
	c.alone = func(what *manifest.Trying) error {
		if err := a.checkpoint(ctx, func(d *manifest.Checkpoint) error { d.Trying = what; return nil }); err != nil || what != nil {
			return err
		}
		steps++
		if suspected {
			doc := a.lease.Checkpoint()
			recorded, err := doc.RecordedRows()
			if err != nil {
				return err
			}
			if c.suspicious(doc.Suspects, recorded) {
				return nil
			}
		} else if steps < maxAlone {
			return nil
		}
		a.env.Log.Info("what came first ends no attempt: all slots again", "steps", steps)
		c.alone = nil // the one turn that is out is this one
		for range held {
			<-c.slots
		}
		return nil
	}
}

// convict ends what attempts died at.
func (a *attempt) convict(ctx context.Context, recorded *roaring.Bitmap) error {
	c, doc := a.crawl, a.lease.Checkpoint()
	const why = "the attempts that worked on it alone died"
	found := killers(&doc)
	for _, killer := range found {
		if killer.Origin != "" {
			row := &schema.RobotsFile{Origin: killer.Origin, Outcome: schema.InternalError, Failure: why}
			if _, err := c.robots.Restore(row); err != nil {
				return fmt.Errorf("%q: %w", a.lease.Key(), err)
			}
			a.env.Log.Error("a robots.txt ends attempts", "origin", killer.Origin)
			c.record(&segments.Record{Robots: row})
			continue
		}
		if killer.Row < 0 || killer.Row >= int64(c.planned.Len()) {
			return fmt.Errorf("%q: attempts died at row %d of %d: %w", a.lease.Key(), killer.Row, c.planned.Len(), manifest.ErrCorrupt)
		}
		if recorded.Contains(uint32(killer.Row)) {
			continue
		}
		v, err := c.visit(killer.Row)
		if err != nil {
			return err
		}
		a.env.Log.Error("a URL ends attempts", "url", v.planned.URL)
		c.finish(v, schema.InternalError, response.Failure{Phrase: why})
	}
	if f := c.fatal.Load(); f != nil {
		return *f
	}
	if len(found) == 0 {
		return nil
	}
	return a.checkpoint(ctx, func(d *manifest.Checkpoint) error {
		d.Suspects = slices.DeleteFunc(slices.Clone(d.Suspects), func(s manifest.Suspect) bool { return slices.Contains(found, s.Trying) })
		return nil
	})
}

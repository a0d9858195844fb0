package fetch

import (
	"context"
	"fmt"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
)

// A URL can kill the process that works on it: by a fault of the program, by the
// memory that it takes. Attempt after attempt would end there. So when several
// have recorded nothing, the next works on one thing at a time, and says in the
// checkpoint on what before it begins. If it dies, that was the killer.

const (
	// maxStalled is how many attempts in a row may end without having recorded anything.
	maxStalled = 3
	// maxAlone is after how many steps an attempt that goes alone takes it that what
	// ended the others was none of the URLs that come first.
	maxAlone = 1000
)

// goAlone has the crawl do one thing at a time.
func (a *attempt) goAlone(ctx context.Context) {
	a.env.Log.Warn("earlier attempts ended without recording anything: one URL at a time, to find out which it is", "attempts", a.holder.doc.Stalled-1)
	c := a.crawl
	held := cap(c.slots) - 1
	for range held {
		c.slots <- struct{}{}
	}
	steps := 0
	c.alone = func(what manifest.Trying) error {
		if steps++; steps > maxAlone {
			a.env.Log.Info("none of the URLs that come first ends attempts: all slots again", "steps", maxAlone)
			c.alone = nil // the one turn that is out is this one
			for range held {
				<-c.slots
			}
			return a.checkpoint(ctx, func(d *manifest.Checkpoint) error { d.Trying = nil; return nil })
		}
		return a.checkpoint(ctx, func(d *manifest.Checkpoint) error { d.Trying = &what; return nil })
	}
}

// convict ends what the attempt before died of.
func (a *attempt) convict(ctx context.Context, before predecessor) error {
	killer := a.holder.doc.Trying
	if killer == nil {
		return nil
	}
	c := a.crawl
	const why = "the attempt that worked on it alone died, as those before did"
	if killer.Origin != "" {
		if err := c.restoreOrigin(&schema.RobotsFile{Origin: killer.Origin, Outcome: schema.InternalError, Failure: why}); err != nil {
			return fmt.Errorf("%q: %w", a.holder.key, err)
		}
		a.env.Log.Error("a robots.txt ends attempts", "origin", killer.Origin)
		c.record(&bundle{robots: &schema.RobotsFile{Origin: killer.Origin, Outcome: schema.InternalError, Failure: why}})
	} else {
		if killer.Row < 0 || killer.Row >= int64(c.planned.Len()) {
			return fmt.Errorf("%q: it tried row %d of %d: %w", a.holder.key, killer.Row, c.planned.Len(), manifest.ErrCorrupt)
		}
		if before.recorded.Contains(uint32(killer.Row)) {
			return nil
		}
		v, err := c.visit(killer.Row)
		if err != nil {
			return err
		}
		a.env.Log.Error("a URL ends attempts", "url", v.planned.URL)
		c.finish(v, schema.InternalError, why)
	}
	if f := c.fatal.Load(); f != nil {
		return *f
	}
	return a.checkpoint(ctx, func(d *manifest.Checkpoint) error { d.Trying = nil; return nil })
}

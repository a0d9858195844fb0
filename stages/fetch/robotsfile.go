package fetch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
)

// What is known of robots.txt files lies in a working file of each segment: the next
// attempt takes it over, and the next round as long as it holds.

// takeRobots takes over what the round before knows of the robots.txt files of the
// partition's hosts, as long as it holds. It is recorded anew, so that this round's
// evidence is whole and whoever comes next need not look further back. Rows pass one
// by one, so that only those of planned hosts take memory.
func (a *attempt) takeRobots(ctx context.Context, planned map[string]bool) error {
	c := a.crawl
	now := c.clock.Now()
	taken := 0
	for _, r := range a.in.Before {
		if time.UnixMilli(r.CompletedAt).Add(c.robotsTTL()).Before(now) {
			continue // all of it is older
		}
		err := eachRobotsFile(ctx, a.env.Bucket, r.Files, func() error { return a.lease.RenewIfDue(ctx) }, func(row *schema.RobotsFile) error {
			if !planned[row.Host] || row.Outcome != "" {
				return nil // another round is another try
			}
			known, err := c.restoreOrigin(row)
			if err != nil || !known {
				return err
			}
			taken++
			return a.log.Emit(&segments.Record{Robots: row})
		}, table.IntRange("until", now.UnixMilli(), math.MaxInt64))
		if err != nil {
			return fmt.Errorf("take over robots.txt files of the round before: %w", err)
		}
	}
	if taken > 0 {
		a.env.Log.Debug("robots.txt files of the round before still hold", "files", taken)
	}
	return nil
}

// row is what is known of the origin, for the next attempt, but for the text.
func (o *origin) row() *schema.RobotsFile {
	r := &schema.RobotsFile{Origin: o.name(), Host: o.host, Until: o.until.UnixMilli()}
	if o.state == robotsFailed {
		r.Outcome, r.Failure, r.Detail = o.outcome, response.Bounded(o.failure.Phrase), response.Bounded(o.failure.Detail)
		return r
	}
	k := o.known
	r.Rules, r.Digest = k.digest != "", k.digest
	r.FetchedAt, r.WARCFile, r.WARCOffset, r.WARCLength = k.answer.at.UnixMilli(), k.answer.file, k.answer.offset, k.answer.length
	return r
}

// restoreRobots reads what earlier attempts learned of robots.txt files. Those
// that have become too old are asked for again. What was written last counts. Before
// each file it calls before.
func (c *crawl) restoreRobots(ctx context.Context, b store.Bucket, files []manifest.File, before func() error) error {
	return eachRobotsFile(ctx, b, files, before, func(row *schema.RobotsFile) error {
		_, err := c.restoreOrigin(row)
		return err
	})
}

// eachRobotsFile gives the rows of the working files robots among files, in the order
// in which they were written: keys sort otherwise, as epochs are not padded.
func eachRobotsFile(ctx context.Context, b store.Bucket, files []manifest.File, before func() error, yield func(*schema.RobotsFile) error, opts ...table.ReaderOption) error {
	var written []manifest.File
	for _, f := range files {
		if f.Dataset == stages.FileRobots {
			written = append(written, f)
		}
	}
	slices.SortFunc(written, func(a, b manifest.File) int { return segments.InOrderWritten(a.Key, b.Key) })
	for _, f := range written {
		if err := before(); err != nil {
			return err
		}
		r, err := table.Open[schema.RobotsFile](ctx, b, f.Key, opts...)
		if err != nil {
			return err
		}
		for row, err := range r.All(ctx) {
			if err == nil {
				err = yield(&row)
			}
			if err != nil {
				return errors.Join(fmt.Errorf("%q: %w", f.Key, err), r.Close())
			}
		}
		if err := r.Close(); err != nil {
			return err
		}
	}
	return nil
}

// restoreOrigin takes a row over; true: it says what is in force.
func (c *crawl) restoreOrigin(row *schema.RobotsFile) (bool, error) {
	key, err := c.canon.Canonical(row.Origin+"/", "")
	if err != nil {
		return false, fmt.Errorf("origin %q: %v: %w", row.Origin, err, table.ErrCorrupt)
	}
	o := c.originOf(key)
	now := c.clock.Now()
	// No longer than if it had come now, whatever the clock of the machine before.
	until := earliest(time.UnixMilli(row.Until), now.Add(c.robotsTTL()))
	known := &inForce{answer: record{row.WARCFile, row.WARCOffset, row.WARCLength, time.UnixMilli(row.FetchedAt)}}
	if row.FetchedAt > 0 {
		until = earliest(until, known.answer.at.Add(c.robotsTTL()))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rules.drop(o)
	switch {
	case row.Outcome != "":
		o.state, o.known, o.outcome, o.failure = robotsFailed, nil, row.Outcome, response.Failure{Phrase: row.Failure, Detail: row.Detail}
	case !until.After(now):
		o.state, o.known = robotsUnknown, nil
	case row.Rules:
		known.rules, known.digest = robots.Parse(row.Body).For(c.token), row.Digest
		o.know(known, until)
	default:
		known.rules = robots.AllowAll()
		o.know(known, until)
	}
	if o.state != robotsKnown {
		return false, nil
	}
	c.keepRules(o)
	return true, nil
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

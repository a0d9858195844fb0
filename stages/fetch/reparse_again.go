package fetch

import (
	"context"
	"fmt"
	"iter"
	"time"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/records"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/http1"
)

// stored is a document that a fetch task recorded, on its way through the parser.
type stored struct {
	page  schema.Page // as it was recorded
	terms schema.TermCounts
	fetch fetchedAs
	// parsed is what it holds now; nil: it keeps its rows, as why says.
	parsed *document.Parsed
	mime   string // content_mime_detected now
	why    error
}

// fetchedAs is what is read of a row of fetches.
type fetchedAs struct {
	URL     string         `parquet:"url"`
	Outcome schema.Outcome `parquet:"outcome"`
	File    string         `parquet:"warc_filename,optional"`
	Offset  int32          `parquet:"warc_record_offset,optional"`
	Length  int32          `parquet:"warc_record_length,optional"`
	Revisit schema.Revisit `parquet:"revisit,optional"`
}

// withheld reports whether there is nothing to read: the document asked that no copy
// be kept.
func (d *stored) withheld() bool { return d.page.Truncated == schema.TruncatedUnspecified }

// places are those of the record with the payload, to which the page points, and, of
// a revisit, of its own, which has the head.
func (d *stored) places() []records.Place {
	if d.withheld() {
		return nil
	}
	p := []records.Place{{File: d.page.WARCFilename, Offset: int64(d.page.WARCRecordOffset), Length: int64(d.page.WARCRecordLength)}}
	if d.fetch.Revisit != "" {
		p = append(p, records.Place{File: d.fetch.File, Offset: int64(d.fetch.Offset), Length: int64(d.fetch.Length)})
	}
	return p
}

// again parses what a fetch task stored. What it recorded of requests, outcomes and
// of answers that are no documents stays as it is.
func (r *reparse) again(ctx context.Context) error {
	old := r.former(ctx)
	defer old.close()
	err := records.Each(ctx, r.archive, r.documents(ctx), records.Steps[stored]{
		Places: (*stored).places,
		Work:   r.parseAgain,
		Emit:   func(d *stored) error { return r.keep(old, d) },
	})
	if err == nil {
		err = old.finish(r.out)
	}
	if err == nil {
		r.count(max(0, r.in.Plan.Partitions[r.in.Task.Partition].URLs-old.pages))
	}
	return err
}

// keysOf lists the source's files of a dataset, in the order in which they were recorded.
func (r *reparse) keysOf(dataset, subset string) []string {
	var keys []string
	for _, f := range r.in.From.FilesOf(dataset) {
		if f.Subset == subset {
			keys = append(keys, f.Key)
		}
	}
	return keys
}

// documents joins the rows of pages with those of the fetches that they are of: each
// fetch that is ok was recorded with its page.
func (r *reparse) documents(ctx context.Context) iter.Seq2[*stored, error] {
	return func(yield func(*stored, error) bool) {
		next, stop := iter.Pull2(table.Concat[fetchedAs](ctx, r.env.Bucket, r.keysOf(stages.FileFetches, "")))
		defer stop()
		for page, err := range table.Concat[schema.WorkingPage](ctx, r.env.Bucket, r.keysOf(stages.FilePages, "")) {
			if err != nil {
				yield(nil, err)
				return
			}
			d := &stored{page: page.Page(), terms: page.TermCounts}
			for d.fetch.Outcome != schema.OK {
				var more bool
				if d.fetch, err, more = next(); err != nil || !more {
					break
				}
			}
			if err == nil && d.fetch.URL != page.PlannedURL {
				err = fmt.Errorf("the page %q was recorded for %q, the fetch beside it is of %q: %w", page.URL, page.PlannedURL, d.fetch.URL, manifest.ErrCorrupt)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(d, nil) {
				return
			}
		}
	}
}

// parseAgain reads a document's records and parses it. What cannot be read keeps its
// rows; nothing here ends the task.
func (r *reparse) parseAgain(dec *records.Decoder, d *stored, raws []records.Raw) error {
	if d.withheld() {
		return nil
	}
	x, err := r.read(dec, d, raws)
	if x != nil {
		defer x.Release()
	}
	if err == nil {
		d.parsed, err = document.Parse(r.parser, response.Document(d.page.URL, x, d.page.Depth, time.UnixMilli(d.page.FetchTime)))
		d.mime = response.Sniff(r.parser, x)
	}
	d.why = err
	return nil
}

// read gives the response of a document: its own head, and the payload wherever it
// lies. What the crawl had whole is whole, or an error.
func (r *reparse) read(dec *records.Decoder, d *stored, raws []records.Raw) (*wire.Exchange, error) {
	x, err := r.replay(dec, d, raws)
	cutThen := d.page.Truncated == schema.TruncatedLength
	switch {
	case err != nil:
	case response.DigestValue(x.PayloadDigest) != d.page.ContentDigest:
		err = fmt.Errorf("%w: the payload at %d of %q has digest %s, it was recorded with %s",
			records.ErrDamaged, d.page.WARCRecordOffset, d.page.WARCFilename, response.DigestValue(x.PayloadDigest), d.page.ContentDigest)
	case x.BodyTruncated == http1.TruncLength && !cutThen:
		err = fmt.Errorf("the document is longer than the %d bytes that are read of it, and it was recorded whole, with %d: "+
			"fetch.max_body or fetch.max_sitemap is less than it was", len(x.Body), d.page.ContentBytes)
	case cutThen && int64(len(x.Body)) > d.page.ContentBytes:
		x.Body = x.Body[:d.page.ContentBytes] // which is what it had
	}
	return x, err
}

func (r *reparse) replay(dec *records.Decoder, d *stored, raws []records.Raw) (*wire.Exchange, error) {
	limits, https := r.limits, isHTTPS(d.page.URL)
	limits.Allow = func(x *wire.Exchange, prefix []byte) int64 {
		if d.page.ContentBytes > limits.MaxBody {
			return r.longest // it was allowed: so much is there
		}
		return r.limits.Allow(x, prefix)
	}
	var x *wire.Exchange
	for i := range raws {
		rec, err := dec.Record(&raws[i], records.BlockLimit(r.longest))
		if err == nil && rec.Cut {
			err = fmt.Errorf("the record at %d of %q is longer than any that the crawl wrote: %w", raws[i].Offset, raws[i].File, records.ErrDamaged)
		}
		if err != nil {
			return x, err
		}
		if i == 0 {
			if x, err = wire.Replay(rec.Block, https, limits); err != nil {
				return x, err
			}
			continue
		}
		defer x.Release()
		return wire.ReplayPayload(rec.Block, x.Payload, https, limits)
	}
	return x, nil
}

// keep records a document's rows: the new ones, or those that it had.
func (r *reparse) keep(old *former, d *stored) error {
	b := &segments.Record{Page: &d.page, Terms: d.terms}
	cp, err := old.capture(r.out, &d.fetch)
	if err != nil {
		return err
	}
	links, err := old.links(r.out, &d.page)
	if err != nil {
		return err
	}
	switch {
	case d.parsed != nil:
		p, was := d.parsed, &d.page
		cp.MimeDetected, cp.Charset, cp.Languages = d.mime, p.Page.Charset, p.Page.Languages
		from := document.Origin{
			URLColumns: was.URLColumns, CaptureColumns: was.CaptureColumns, PlannedURL: was.PlannedURL,
			ETag: was.ETag, LastModified: was.LastModified, Changed: was.Changed,
		}
		from.MimeDetected = d.mime
		from.Signals.Add(was.ContentSignal) // which has those of the robots.txt in force when it was fetched
		p.Complete(&from)
		b.Page, b.Terms, b.Text, b.Links = &p.Page, p.Terms, &p.Text, p.Links
		r.out.Counts()[countReparsed]++
	default:
		if b.Text, err = old.text(&d.page); err != nil {
			return err
		}
		b.Links = links
		if d.withheld() {
			r.out.Counts()[countWithheld]++
			break
		}
		r.out.Counts()[CountDamaged]++
		r.env.Log.Warn("a page keeps the rows that it had: it cannot be parsed again; `crawlbatch verify` of the crawl that fetched it says what is damaged",
			"url", d.page.URL, "error", d.why)
	}
	b.Captures = []segments.Capture{{Subset: schema.SubsetWARC, Capture: *cp}}
	old.pages++
	r.count(1)
	r.env.Progress.Add(stages.CountPages, 1)
	return r.out.Add(b)
}

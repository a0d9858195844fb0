package reparse

import (
	"context"
	"fmt"
	"iter"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/forget"
	"crawlbatch.io/crawlbatch/stages/fetch/records"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// recordedDoc is a document that a fetch task recorded.
type recordedDoc struct {
	page  schema.Page // row of pages as the fetch task recorded it
	terms schema.WorkingColumns
	fetch fetchedAs
	// parsed is the result of the current parser. If it is nil, why holds the reason, and the
	// document keeps its rows.
	parsed *document.Parsed
	mime   string // content_mime_detected according to the current parser
	why    error
}

// fetchedAs holds the columns that a reparse reads from a row of fetches.
type fetchedAs struct {
	URL     string         `parquet:"url"`
	Outcome schema.Outcome `parquet:"outcome"`
	File    string         `parquet:"warc_filename,optional"`
	Offset  int32          `parquet:"warc_record_offset,optional"`
	Length  int32          `parquet:"warc_record_length,optional"`
	Revisit schema.Revisit `parquet:"revisit,optional"`
}

// withheld reports whether the document asked for noarchive, so that its WARC record has no
// payload.
func (d *recordedDoc) withheld() bool { return d.page.Truncated == schema.TruncatedUnspecified }

// places returns the place of the record with the payload, as the document's row of pages gives it.
// For a revisit, it also returns the place of the document's own record, which has the head.
func (d *recordedDoc) places() []records.Place {
	if d.withheld() {
		return nil
	}
	p := []records.Place{{File: d.page.WARCFilename, Offset: int64(d.page.WARCRecordOffset), Length: int64(d.page.WARCRecordLength)}}
	if d.fetch.Revisit != "" {
		p = append(p, records.Place{File: d.fetch.File, Offset: int64(d.fetch.Offset), Length: int64(d.fetch.Length)})
	}
	return p
}

// runStored parses the documents that a fetch task stored. It changes no rows of requests, outcomes,
// or responses without a page.
func (r *run) runStored(ctx context.Context) error {
	old, err := r.previous(ctx)
	if err != nil {
		return err
	}
	defer old.close()
	err = records.Each(ctx, r.archive, r.documents(ctx), records.Steps[recordedDoc]{
		Places: (*recordedDoc).places,
		Work:   r.parseStored,
		Emit:   func(d *recordedDoc) error { return r.keep(old, d) },
	})
	if err == nil {
		err = old.finish(r.out)
	}
	if err == nil {
		r.count(max(0, r.in.Plan.Partitions[r.in.Task.Partition].URLs-old.pages))
	}
	return err
}

// keysOf lists the source's files of a dataset in the order of their segments.
func (r *run) keysOf(dataset, subset string) []string {
	return stages.SubsetKeys([]*manifest.Result{r.in.From}, dataset, subset)
}

// documents joins each row of pages with its row of fetches. Both datasets have the same order, and
// every fetch with the outcome ok has one page. After a takedown, a page may lack the fetch of a URL that redirected to
// it, and a fetch the page to which it was redirected.
func (r *run) documents(ctx context.Context) iter.Seq2[*recordedDoc, error] {
	return func(yield func(*recordedDoc, error) bool) {
		next, stop := iter.Pull2(table.Concat[fetchedAs](ctx, r.env.Bucket, r.keysOf(stages.FileFetches, "")))
		defer stop()
		for page, err := range table.Concat[schema.WorkingPage](ctx, r.env.Bucket, r.keysOf(stages.FilePages, "")) {
			if err != nil {
				yield(nil, err)
				return
			}
			d := &recordedDoc{page: page.Page(), terms: page.WorkingColumns}
			lost := r.in.Gone != nil && page.PlannedURL == ""
			for !lost && (d.fetch.Outcome != schema.OK || r.in.Gone != nil && d.fetch.URL != page.PlannedURL) {
				var more bool
				if d.fetch, err, more = next(); err != nil || !more {
					break
				}
			}
			if err == nil && d.fetch.URL != page.PlannedURL {
				err = fmt.Errorf("the page %q belongs to the URL %q, but the fetch at the same position is of %q: %w", page.URL, page.PlannedURL, d.fetch.URL, manifest.ErrCorrupt)
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

// parseStored reads a document's records and parses it. If that fails, the document keeps its rows,
// and the task continues.
func (r *run) parseStored(dec *records.Decoder, d *recordedDoc, raws []records.Raw) error {
	if d.withheld() {
		return nil
	}
	x, err := r.read(dec, d, raws)
	if x != nil {
		defer x.Release()
	}
	if err == nil {
		d.parsed, err = document.Parse(r.parser, response.Document(d.page.URL, d.page.Sent, x, d.page.Depth, d.page.FetchTime.Time()))
		d.mime = response.Sniff(r.parser, x)
	}
	d.why = err
	return nil
}

// read replays a document's response from its head and its payload, which may be in different
// records. If the limits given to Run would shorten a payload that the crawl stored whole, read
// returns an error.
func (r *run) read(dec *records.Decoder, d *recordedDoc, raws []records.Raw) (*wire.Exchange, error) {
	x, err := r.replay(dec, d, raws)
	cutThen := d.page.Truncated == schema.TruncatedLength
	switch {
	case err != nil:
	case response.DigestValue(x.PayloadDigest) != d.page.ContentDigest:
		err = fmt.Errorf("%w: the payload at offset %d of %q has digest %s, but the recorded digest is %s",
			records.ErrDamaged, d.page.WARCRecordOffset, d.page.WARCFilename, response.DigestValue(x.PayloadDigest), d.page.ContentDigest)
	case x.BodyTruncated == http1.TruncLength && !cutThen:
		err = fmt.Errorf("only %d bytes of the document may be read, but the crawl stored all its %d bytes: "+
			"fetch.max_body or fetch.max_sitemap is less than it was", len(x.Body), d.page.ContentBytes)
	case cutThen && int64(len(x.Body)) > d.page.ContentBytes:
		x.Body = x.Body[:d.page.ContentBytes] // restores the length that the crawl stored
	}
	return x, err
}

func (r *run) replay(dec *records.Decoder, d *recordedDoc, raws []records.Raw) (*wire.Exchange, error) {
	limits, https := r.limits, isHTTPS(d.page.URL)
	limits.Allow = func(x *wire.Exchange, prefix []byte) int64 {
		if d.page.ContentBytes > limits.MaxBody {
			return r.longest // the limits of the crawl allowed this length
		}
		return r.limits.Allow(x, prefix)
	}
	var x *wire.Exchange
	for i := range raws {
		rec, err := dec.Record(&raws[i], records.BlockLimit(r.longest))
		if err == nil && rec.Cut {
			err = fmt.Errorf("the record at offset %d of %q is longer than any record that the crawl wrote: %w", raws[i].Offset, raws[i].File, records.ErrDamaged)
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

// keep records the document's new rows. If there are none, it records the old rows.
func (r *run) keep(old *previous, d *recordedDoc) error {
	b := &segments.Record{Page: &d.page, Terms: d.terms}
	cp, err := old.capture(r.out, d)
	if err != nil {
		return err
	}
	links, err := old.linksOf(r.out, &d.page)
	if err != nil {
		return err
	}
	switch {
	case d.parsed != nil:
		p, was := d.parsed, &d.page
		cp.MimeDetected, cp.Charset, cp.Languages = d.mime, p.Page.Charset, p.Page.Languages
		from := document.Capture{
			URLColumns: was.URLColumns, CaptureColumns: was.CaptureColumns, PlannedURL: was.PlannedURL, Certificate: was.Certificate,
			ETag: was.ETag, LastModified: was.LastModified, Changed: was.Changed,
		}
		from.MimeDetected = d.mime
		from.Signals.Add(was.ContentSignal) // adds the signals of the robots.txt that applied when the page was fetched
		p.Complete(&from)
		b.Page, b.Terms, b.Text, b.Links = &p.Page, p.Terms, &p.Text, p.Links
		r.out.Counts()[CountReparsed]++
	default:
		if b.Text, err = old.text(&d.page); err != nil {
			return err
		}
		b.Links = links
		if r.in.Withhold && b.Text.NoArchive {
			document.Withhold(&d.page, &b.Terms, b.Text, links)
		}
		if d.withheld() {
			r.out.Counts()[CountWithheld]++
			break
		}
		r.out.Counts()[CountDamaged]++
		r.env.Log.Warn("a page could not be parsed again and keeps its old rows; `crawlbatch verify` of the crawl that fetched the page shows the damage",
			"url", d.page.URL, "error", d.why)
	}
	b.Captures = []segments.Capture{{Subset: schema.SubsetWARC, Capture: *cp}}
	old.pages++
	r.count(1)
	r.env.Progress.Add(stages.CountPages, 1)
	forget.Clean(b, r.in.Gone)
	return r.out.Add(b)
}

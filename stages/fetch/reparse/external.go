package reparse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/mediatype"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/challenge"
	"crawlbatch.io/crawlbatch/stages/fetch/forget"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/records"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// plannedRecord is a planned URL whose response is in an external archive.
type plannedRecord struct {
	schema.PlannedRow
	Row int32 // number of the URL's row in the plan file
}

// recordKey orders planned records by file and offset.
func recordKey(k table.Key, r *plannedRecord) table.Key {
	return k.Text(r.WARCFilename).Int(int64(r.WARCRecordOff)).Int(int64(r.Row))
}

// captured is a planned record with the rows made from it.
type captured struct {
	plannedRecord
	rows    segments.Record
	differs bool // the digests of the record are not those of its bytes
}

// errNotResponse means that the record is not of type response.
var errNotResponse = errors.New("it is not a response")

// runExternal gives each planned URL the outcome of its response in the archive, as if it had just
// been fetched. It records no requests and no robots.txt verdicts.
func (r *run) runExternal(ctx context.Context) error {
	rows, err := table.NewSorter(r.env.Scratch, recordKey, sortMemory)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // scratch
	row := int32(0)
	for p, err := range table.Concat[schema.PlannedRow](ctx, r.env.Bucket, []string{r.in.Plan.Partitions[r.in.Task.Partition].File.Key}) {
		if err == nil {
			err = rows.Add(&plannedRecord{p, row})
		}
		if err != nil {
			return err
		}
		row++
	}
	return records.Each(ctx, r.archive, toCaptured(rows.Sorted(ctx)), records.Steps[captured]{
		Check: true,
		Places: func(d *captured) []records.Place {
			return []records.Place{{File: d.WARCFilename, Offset: int64(d.WARCRecordOff), Length: int64(d.WARCRecordLen)}}
		},
		Work: r.parseExternal,
		Emit: func(d *captured) error {
			r.count(1)
			if d.rows.Page != nil {
				r.out.Counts()[CountReparsed]++
				r.env.Progress.Add(stages.CountPages, 1)
			}
			if d.differs {
				r.out.Counts()[CountDiffers]++
			}
			if d.differs && r.out.Counts()[CountDiffers] <= mostTold {
				r.env.Log.Warn("the digest of a record is not that of its bytes, so the record may be damaged; `crawlbatch verify` lists such records",
					"url", d.URL, "file", d.WARCFilename, "offset", d.WARCRecordOff)
			}
			forget.Clean(&d.rows, r.in.Gone)
			return r.out.Add(&d.rows)
		},
	})
}

// mostTold is the number of records whose digest differs that a task logs. Some archives have no right digest.
const mostTold = 20

// sortMemory is the memory that the sorter may use before it writes to scratch files, in bytes.
const sortMemory = 32 << 20

func toCaptured(rows iter.Seq2[plannedRecord, error]) iter.Seq2[*captured, error] {
	return func(yield func(*captured, error) bool) {
		for p, err := range rows {
			if !yield(&captured{plannedRecord: p}, err) || err != nil {
				return
			}
		}
	}
}

// parseExternal makes the rows of a response. If the record cannot be read, the URL's outcome is
// protocol_error.
func (r *run) parseExternal(dec *records.Decoder, d *captured, raws []records.Raw) error {
	f := &schema.Fetch{
		SURT: d.SURT, URL: d.URL, Host: d.Host, Domain: d.Domain, Priority: d.Priority, Depth: d.Depth, PlannedRow: d.Row,
		FetchedAt: d.ContentAt, RecordedAt: d.ContentAt, Listing: d.Listing,
	}
	d.rows.Row, d.rows.Fetch = int64(d.Row), f
	rec, err := dec.Record(&raws[0], records.BlockLimit(r.longest))
	if err == nil && rec.Type != warc.Response {
		err = errNotResponse
	}
	var x *wire.Exchange
	if err == nil {
		d.differs = response.DigestDiffers(&rec.Digests, rec.Header)
		x, err = response.ReplayForeign(rec.Block, &rec.Digests, isHTTPS(d.URL), r.limits)
		defer x.Release()
	}
	if err != nil {
		f.Outcome = schema.ProtocolError
		f.Error = "the record cannot be read"
		f.ErrorDetail = response.Bounded(fmt.Sprintf("at %d of %q: %v", d.WARCRecordOff, d.WARCFilename, err))
		return nil
	}
	return r.classify(d, rec, x)
}

// classify gives a URL the outcome of its response.
func (r *run) classify(d *captured, rec *records.Record, x *wire.Exchange) error {
	f := d.rows.Fetch
	columns, err := document.URLColumns(urlkey.Key{URL: d.URL, SURT: d.SURT, Host: d.Host, Domain: d.Domain})
	if err != nil {
		return err
	}
	cp := schema.Capture{URLColumns: columns, CaptureColumns: schema.CaptureColumns{
		FetchTime: d.ContentAt, FetchStatus: int16(x.Status), ContentDigest: response.DigestValue(x.PayloadDigest),
		MimeType: mediatype.Essence(x.Header.Get("Content-Type")), MimeDetected: response.Sniff(r.parser, x), Truncated: externalTruncation(rec, x),
		WARCFilename: d.WARCFilename, WARCRecordOffset: d.WARCRecordOff, WARCRecordLength: d.WARCRecordLen,
		WARCSegment: layout.Part(r.in.Task.Partition),
	}}
	f.HTTPStatus, f.FinalURL, f.MimeType = cp.FetchStatus, d.URL, cp.MimeType
	f.ETag, f.LastModified = response.Validators(x, d.ContentAt.Time())
	f.ContentDigest, f.Truncated = cp.ContentDigest, cp.Truncated
	f.WARCFilename, f.WARCRecordOff, f.WARCRecordLen = cp.WARCFilename, cp.WARCRecordOffset, cp.WARCRecordLength
	f.WireBytes = int64(len(rec.Block))
	subset := schema.SubsetDiagnostics
	service := challenge.Service(x.Status, x.Header, x.Body)
	switch {
	case service != "":
		refuse(f, service)
	case response.IsRedirect(x):
		r.setRedirect(d, x, &cp)
	case response.HasDocument(x):
		v, why := response.OfDocument(x)
		if v.Outcome != schema.OK {
			f.Outcome, f.Error, f.ErrorDetail = v.Outcome, why.Phrase, response.Bounded(why.Detail)
			break
		}
		subset = schema.SubsetWARC
		if r.page(d, x, &cp); f.Outcome == schema.Blocked {
			subset = schema.SubsetDiagnostics
		}
	default:
		v, _ := x.Header.Lookup("Retry-After")
		wait, _ := polite.ParseRetryAfter(v, d.ContentAt.Time())
		f.Outcome = response.OfStatus(x.Status, wait > 0).Outcome
		if f.Outcome == schema.ProtocolError {
			why := response.NoDocument(x.Status)
			f.Error, f.ErrorDetail = why.Phrase, why.Detail
		}
	}
	d.rows.Captures = []segments.Capture{{Subset: subset, Capture: cp}}
	return nil
}

// setRedirect sets the outcome of a URL whose response is a redirect. Nobody follows the redirect
// here; the frontier decides about its target.
func (r *run) setRedirect(d *captured, x *wire.Exchange, cp *schema.Capture) {
	f := d.rows.Fetch
	target, sent, err := response.Location(r.canon, x, d.Of(d.URL))
	if err != nil {
		why := response.NoTarget(err)
		f.Outcome, f.Error, f.ErrorDetail = schema.ProtocolError, why.Phrase, response.Bounded(why.Detail)
		return
	}
	target, sent = response.CloneKey(target), strings.Clone(sent)
	cp.FetchRedirect, f.RedirectTarget, f.RedirectSent, f.Outcome = target.URL, target.URL, sent, schema.Redirected
	d.rows.Links = []schema.Link{{SourceSURT: d.SURT, Source: d.URL, Target: target.URL, Kind: schema.KindRedirect, Sent: sent}}
}

// page parses a document whose media type the parser wants.
func (r *run) page(d *captured, x *wire.Exchange, cp *schema.Capture) {
	f := d.rows.Fetch
	f.MimeDetected = cmp.Or(cp.MimeDetected, cp.MimeType)
	prefix := response.Prefix(x.Body)
	if len(prefix) == 0 {
		prefix = nil // without a prefix, the parser decides by the Content-Type alone
	}
	if f.MimeDetected != "" && !r.parser.Wants(f.MimeDetected, prefix) {
		f.Outcome = schema.MIMEFiltered
		return
	}
	parsed, err := document.Parse(r.parser, response.Document(d.URL, d.Sent, x, d.Depth, d.ContentAt.Time()))
	if err != nil {
		r.env.Log.Error("a document could not be parsed", "url", d.URL, "error", err)
		f.Outcome, f.Error = schema.InternalError, response.Bounded(err.Error())
		return
	}
	if parsed.Refused {
		refuse(f, challenge.Other)
		return
	}
	f.Outcome, f.ContentBytes = schema.OK, int64(len(x.Body))
	cp.Charset, cp.Languages = parsed.Page.Charset, parsed.Page.Languages
	parsed.Complete(&document.Capture{
		URLColumns: cp.URLColumns, CaptureColumns: cp.CaptureColumns, PlannedURL: d.URL, ETag: f.ETag, LastModified: f.LastModified,
	})
	d.rows.Page, d.rows.Terms, d.rows.Text, d.rows.Links = &parsed.Page, parsed.Terms, &parsed.Text, parsed.Links
}

// refuse sets the outcome of a URL that a service refused.
func refuse(f *schema.Fetch, service string) {
	why := response.RefusedBy(service)
	f.Outcome, f.BlockedBy, f.Error, f.ErrorDetail = schema.Blocked, service, why.Phrase, why.Detail
}

// externalTruncation returns why a stored body is incomplete. It turns unknown WARC reasons, and
// the reason "unspecified", into "disconnect", because crawlbatch's columns use "unspecified" for a
// withheld payload.
func externalTruncation(rec *records.Record, x *wire.Exchange) string {
	switch said := warc.Truncation(rec.Header.Get(warc.FieldTruncated)); {
	case said == warc.TruncatedLength || said == warc.TruncatedTime || said == warc.TruncatedDisconnect:
		return string(said)
	case said != "":
		return schema.TruncatedDisconnect
	case rec.Cut:
		return schema.TruncatedLength
	}
	return response.Truncation(x)
}

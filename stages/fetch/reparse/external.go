package reparse

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/http"
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

// places returns the place of the record. For a revisit, that of the record with its payload comes first.
func (d *captured) places() (p []records.Place) {
	if d.PayloadFilename != "" {
		p = append(p, records.Place{File: d.PayloadFilename, Offset: int64(d.PayloadRecordOff), Length: int64(d.PayloadRecordLen)})
	}
	return append(p, records.Place{File: d.WARCFilename, Offset: int64(d.WARCRecordOff), Length: int64(d.WARCRecordLen)})
}

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
		Check:  true,
		Places: (*captured).places,
		Work:   r.parseExternal,
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
		FetchedAt: d.ContentAt, RecordedAt: d.ContentAt, Form: d.Form, Listing: d.Listing,
	}
	d.rows.Row, d.rows.Fetch = int64(d.Row), f
	read := r.readResponse
	if len(raws) > 1 {
		read = r.readRevisit
	}
	a, err := read(dec, d, raws)
	defer a.x.Release()
	if err != nil {
		f.Outcome = schema.ProtocolError
		f.Error = "the record cannot be read"
		f.ErrorDetail = response.Bounded(fmt.Sprintf("at %d of %q: %v", d.WARCRecordOff, d.WARCFilename, err))
		return nil
	}
	return r.classify(d, &a)
}

// answer is a response as its record, or a revisit and the record with its payload, tell it.
type answer struct {
	x         *wire.Exchange // never nil
	status    int            // of the record; that of x may be the one of the payload's record
	truncated string
	revisit   schema.Revisit
	bytes     int         // length of the blocks
	digest    warc.Digest // payload digest in the header of the record with the payload
}

// readResponse reads a response, whose record is the first of raws.
func (r *run) readResponse(dec *records.Decoder, d *captured, raws []records.Raw) (answer, error) {
	a := answer{x: &wire.Exchange{}}
	rec, err := dec.Record(&raws[0], records.BlockLimit(r.longest))
	if err == nil && rec.Type != warc.Response {
		err = fmt.Errorf("it is a %s, not a response", rec.Type)
	}
	if err != nil {
		return a, err
	}
	d.differs = response.DigestDiffers(&rec.Digests, rec.Header)
	a.x, err = response.ReplayForeign(rec.Block, &rec.Digests, isHTTPS(d.URL), r.limits)
	a.status, a.bytes, a.truncated = a.x.Status, len(rec.Block), externalTruncation(rec, a.x)
	a.digest = warc.Digest(rec.Header.Get(warc.FieldPayloadDigest))
	return a, err
}

// readRevisit reads a revisit, whose records are the one with the payload and its own. The answer has the head of the
// revisit and the payload of the other record. A revisit without a head has that of the other record.
func (r *run) readRevisit(dec *records.Decoder, d *captured, raws []records.Raw) (answer, error) {
	a, err := r.readResponse(dec, d, raws)
	if err != nil {
		return a, fmt.Errorf("its payload at %d of %q: %w", d.PayloadRecordOff, d.PayloadFilename, err)
	}
	rec, err := dec.Record(&raws[1], records.BlockLimit(r.longest))
	if err == nil && rec.Type != warc.Revisit {
		err = fmt.Errorf("it is a %s, not a revisit", rec.Type)
	}
	if err != nil {
		return a, err
	}
	if a.revisit = schema.RevisitIdentical; rec.Header.NotModified() {
		a.revisit = schema.RevisitNotModified
	}
	d.differs = d.differs || response.DigestDiffers(&rec.Digests, rec.Header)
	payload := a.x
	if a.truncated == "" && response.RevisitDiffers(rec.Header, a.digest, payload) {
		return a, fmt.Errorf("the payload at %d of %q has another digest than the revisit says", d.PayloadRecordOff, d.PayloadFilename)
	}
	x, ok := response.ReplayRevisit(rec.Block, payload, isHTTPS(d.URL), r.limits)
	if !ok {
		return a, nil
	}
	a.status, a.bytes = x.Status, a.bytes+len(rec.Block)
	if x.Status == http.StatusNotModified {
		response.Freshen(payload, x)
		x.Release()
		return a, nil
	}
	a.x = x
	if a.truncated == "" {
		a.truncated = response.Truncation(x)
	}
	payload.Release()
	return a, nil
}

// classify gives a URL the outcome of its response.
func (r *run) classify(d *captured, a *answer) error {
	f, x := d.rows.Fetch, a.x
	columns, err := document.URLColumns(urlkey.Key{URL: d.URL, SURT: d.SURT, Host: d.Host, Domain: d.Domain})
	if err != nil {
		return err
	}
	cp := schema.Capture{URLColumns: columns, CaptureColumns: schema.CaptureColumns{
		FetchTime: d.ContentAt, FetchStatus: int16(a.status), ContentDigest: response.DigestValue(x.PayloadDigest),
		MimeType: mediatype.Essence(x.Header.Get("Content-Type")), MimeDetected: response.Sniff(r.parser, x), Truncated: a.truncated,
		WARCFilename: d.WARCFilename, WARCRecordOffset: d.WARCRecordOff, WARCRecordLength: d.WARCRecordLen,
		Sent: d.Sent, WARCSegment: layout.Part(r.in.Task.Partition),
	}, Revisit: a.revisit}
	if a.revisit != "" {
		cp.PayloadFilename, cp.PayloadRecordOff, cp.PayloadRecordLen = d.PayloadFilename, d.PayloadRecordOff, d.PayloadRecordLen
	}
	f.HTTPStatus, f.FinalURL, f.MimeType = cp.FetchStatus, d.URL, cp.MimeType
	f.ETag, f.LastModified = response.Validators(x, d.ContentAt.Time())
	f.ContentDigest, f.Truncated, f.Revisit = cp.ContentDigest, cp.Truncated, cp.Revisit
	f.WARCFilename, f.WARCRecordOff, f.WARCRecordLen = cp.WARCFilename, cp.WARCRecordOffset, cp.WARCRecordLength
	f.WireBytes = int64(a.bytes)
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
	from := document.Capture{
		URLColumns: cp.URLColumns, CaptureColumns: cp.CaptureColumns, PlannedURL: d.URL, ETag: f.ETag, LastModified: f.LastModified,
	}
	from.FetchStatus = int16(x.Status) // of a 304, the status of the document
	if cp.Revisit != "" {              // the row of pages names the record that has the payload
		from.WARCFilename, from.WARCRecordOffset, from.WARCRecordLength = cp.PayloadFilename, cp.PayloadRecordOff, cp.PayloadRecordLen
	}
	parsed.Complete(&from)
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

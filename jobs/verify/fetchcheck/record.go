package fetchcheck

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/jobs/worker"
	stored "crawlbatch.io/crawlbatch/stages/fetch/records"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// wholeRecord is a record that was completely read.
type wholeRecord struct {
	*warc.Entry
	warc.Summary
}

// checkRecord reads the record to which m refers. problem describes a fault of the record itself.
// If the record has no fault, problem is what check returns.
func (c *archive) checkRecord(m *recordRef, check func(wholeRecord, *recordRef) string) (problem string, err error) {
	if problem := c.beyondEnd(m); problem != "" {
		return problem, nil
	}
	offset, length := int64(m.Offset), int64(m.Length)
	c.reader.Reset(io.NewSectionReader(&c.window, offset, length), offset)
	e, err := c.reader.Next()
	if err == io.EOF {
		return "no record begins there", nil
	}
	var s warc.Summary
	if err == nil {
		s, err = e.Finish()
	}
	switch {
	case c.window.err != nil:
		return "", c.window.err
	case err != nil:
		return err.Error(), nil
	case s.Extent.Length != length:
		return fmt.Sprintf("the record is %d bytes long, the row says %d", s.Extent.Length, length), nil
	case s.Block != warc.Matches:
		return fmt.Sprintf("its block %s from its digest %s", s.Block, e.Header.Get(warc.FieldBlockDigest)), nil
	}
	return check(wholeRecord{e, s}, m), nil
}

// beyondEnd returns a problem if m refers to bytes beyond the file's end, otherwise "".
func (c *archive) beyondEnd(m *recordRef) string {
	if m.Offset < 0 || m.Length <= 0 || int64(m.Offset)+int64(m.Length) > c.window.size {
		return fmt.Sprintf("%d bytes at %d are not within the file of %d bytes", m.Length, m.Offset, c.window.size)
	}
	return ""
}

// profiles maps the kinds of revisit to their WARC profiles.
var profiles = map[schema.Revisit]string{
	schema.RevisitIdentical:   warc.ProfileIdenticalPayload,
	schema.RevisitNotModified: warc.ProfileNotModified,
}

// compareRecord compares a record with the description in a capture's row. It returns the
// difference as a text, or "" if the record agrees with the row.
func compareRecord(r wholeRecord, m *recordRef) string {
	if asked := cmp.Or(m.Sent, m.URL); r.TargetURI() != asked {
		return fmt.Sprintf("the record has the URL %s, the row %s", r.TargetURI(), asked)
	}
	switch {
	case m.Revisit == "" && m.withheld():
		return checkWithheld(r)
	case m.Revisit == "":
		return checkPayload(r, m.Digest)
	case r.Type != warc.Revisit:
		return fmt.Sprintf("the record is a %s, not a revisit", r.Type)
	case r.Header.Get(warc.FieldProfile) != profiles[m.Revisit]:
		return fmt.Sprintf("the profile of the revisit is %q, the row says %s", r.Header.Get(warc.FieldProfile), m.Revisit)
	case r.Header.PayloadRemoved():
	case r.Header.Get(warc.FieldRefersToURI) == "" || r.Header.Get(warc.FieldRefersToDate) == "":
		return "the revisit does not name the capture that it refers to"
	}
	return digestOf(r, m.Digest)
}

// checkPayload checks that a record contains the payload with this digest. It returns a description
// of the problem, or "" if the record contains the payload.
func checkPayload(r wholeRecord, digest string) string {
	switch {
	case r.Type != warc.Response:
		return fmt.Sprintf("the record is a %s, not a response", r.Type)
	case r.Payload != warc.Matches:
		return fmt.Sprintf("its payload %s from its digest %s", r.Payload, r.Header.Get(warc.FieldPayloadDigest))
	}
	return digestOf(r, digest)
}

// checkWithheld checks that a record says that its content is withheld (noarchive). It returns a
// description of the problem, or "" if the record says so.
func checkWithheld(r wholeRecord) string {
	switch {
	case r.Type != warc.Response:
		return fmt.Sprintf("the record is a %s, not a response", r.Type)
	case r.Payload != warc.Withheld:
		return "the row says that the content is not stored, but the record does not say so or holds some of it"
	}
	return ""
}

func digestOf(r wholeRecord, digest string) string {
	if got := r.Header.Get(warc.FieldPayloadDigest); warc.Digest(got).Value() != digest {
		return fmt.Sprintf("its payload digest is %s, the row says %s", got, digest)
	}
	return ""
}

// window reads an object in ranges of at least w.ahead bytes. The checks read records in file order, so
// the next record is often in the same range. Only one goroutine may use a window.
type window struct {
	r     io.ReaderAt
	size  int64
	ahead int64

	at  int64
	buf []byte
	err error // the first error of the store
}

// ReadAt implements io.ReaderAt.
func (w *window) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= w.size {
		return 0, io.EOF
	}
	want := min(int64(len(p)), w.size-off)
	if off < w.at || off+want > w.at+int64(len(w.buf)) {
		n := max(want, min(w.ahead, w.size-off))
		w.at, w.buf = off, slices.Grow(w.buf[:0], int(n))[:n]
		if m, err := w.r.ReadAt(w.buf, off); int64(m) < n {
			w.buf = w.buf[:0]
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			w.err = err
			return 0, err
		}
	}
	if n := copy(p, w.buf[off-w.at:]); n < len(p) {
		return n, io.EOF
	}
	return len(p), nil
}

// describesExternal compares an external record with the response in a capture's row. It returns
// the difference as a text, or "" if the record agrees with the row. External records may lack
// digests, so describesExternal computes the payload's digest as the reparse did. A digest of the record that
// is not that of its bytes is a difference too. The payload of a revisit is a recordRef of its own.
func (c *archive) describesExternal(m *recordRef) (problem string, err error) {
	return c.external(m, func(e *external) (string, error) {
		revisit := e.Type == warc.Revisit
		switch {
		case !revisit && e.Type != warc.Response, revisit != (m.Revisit != ""):
			return fmt.Sprintf("the record is a %s, the row says %q of a revisit", e.Type, m.Revisit), nil
		case revisit && e.Header.NotModified() != (m.Revisit == schema.RevisitNotModified):
			return fmt.Sprintf("the profile of the revisit is %q, the row says %s", e.Header.Get(warc.FieldProfile), m.Revisit), nil
		}
		canon, err := urlkey.New(c.Config.Plan.StripParams)
		if err != nil {
			return "", err
		}
		if k, err := canon.Canonical(e.TargetURI(), ""); err != nil || k.URL != m.URL {
			return fmt.Sprintf("the record has the URL %s, the row %s", e.TargetURI(), m.URL), nil
		}
		if revisit {
			return e.damage(), nil
		}
		return e.comparePayload(m), nil
	})
}

// describesPayload compares an external record with the digest of the payload that a revisit has from there.
func (c *archive) describesPayload(m *recordRef) (problem string, err error) {
	return c.external(m, func(e *external) (string, error) {
		if e.Type != warc.Response {
			return fmt.Sprintf("the record is a %s, not a response", e.Type), nil
		}
		return e.comparePayload(m), nil
	})
}

// external is a record of another crawler, read as the reparse reads it.
type external struct {
	*warc.Entry
	warc.Summary
	block  []byte
	limits wire.Limits
}

// external reads a record and passes it on. Without a config, it does nothing, because the limit of bodies is unknown.
func (c *archive) external(m *recordRef, check func(*external) (string, error)) (problem string, err error) {
	if c.Config == nil {
		return "", nil
	}
	if problem := c.beyondEnd(m); problem != "" {
		return problem, nil
	}
	cfg := worker.FetchConfig(c.Config, "")
	parser, err := worker.NewParser(c.Config)
	if err != nil {
		return "", err
	}
	r := external{limits: cfg.Replay(parser)}
	r.Entry, err = warc.ReadAt(&c.window, warc.Extent{Offset: int64(m.Offset), Length: int64(m.Length)}, warc.ReaderOptions{Check: true})
	if err == nil {
		r.block, err = io.ReadAll(io.LimitReader(r.Entry, stored.BlockLimit(cfg.Longest())))
	}
	if err == nil && int64(len(r.block)) == r.Entry.Length { // the reparse does not check the digests of longer records
		r.Summary, err = r.Finish()
	}
	switch {
	case c.window.err != nil:
		return "", c.window.err
	case err != nil:
		return err.Error(), nil
	}
	return check(&r)
}

// comparePayload compares the payload of a response with the digest in a row.
func (e *external) comparePayload(m *recordRef) string {
	x, err := response.ReplayForeign(e.block, &e.Summary, strings.HasPrefix(m.URL, "https:"), e.limits)
	defer x.Release()
	if err != nil {
		return err.Error()
	}
	if got := warc.Digest(x.PayloadDigest).Value(); got != m.Digest {
		return fmt.Sprintf("its payload has the digest %s, the row says %s", got, m.Digest)
	}
	return e.damage()
}

// damage tells that a digest of the record is not that of its bytes.
func (e *external) damage() string {
	if !response.DigestDiffers(&e.Summary, e.Header) {
		return ""
	}
	return fmt.Sprintf("the record says that its digest is %s, but its bytes have another: it may be damaged; get the file again, then reparse it under another name",
		cmp.Or(e.Header.Get(warc.FieldPayloadDigest), e.Header.Get(warc.FieldBlockDigest)))
}

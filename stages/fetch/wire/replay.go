package wire

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/formats/http1/buffers"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/coding"
)

// Limits holds the limits for a replayed response. They should be the same as when the response was
// fetched.
type Limits struct {
	MaxBody int64         // limit of the payload and of the decoded body, in bytes; 0 means 5 MiB
	Allow   Allowance     // may raise the limit; may be nil
	Framing http1.Framing // for responses that another program stored: what ends the body
}

// Replay reads the response to a GET from stored bytes, such as a WARC record. These are the bytes
// that RawParts returned when the response was fetched. It accepts the malformed responses that Do
// accepts. With the same limits, it returns the same Status, Header, Payload, PayloadDigest and
// Body. Truncated may differ, because the bytes do not show how the connection ended. The Exchange
// is never nil, and the caller releases it. The error says why the bytes are not a response.
//
// With another Framing than http1.ByHead, Content-Length may be that of the encoded body although the
// stored body is decoded. A decoded body that is shorter than this length does not count as truncated.
func Replay(raw []byte, https bool, l Limits) (*Exchange, error) {
	p := newReplay(bytes.NewReader(raw), https, l)
	err := p.ReadHead()
	if err == nil {
		_ = p.ReadBody() // an error means that the body is incomplete, as it was when it was fetched
	}
	return p.finish(err)
}

// ReplayPayload replays a response whose head and payload were stored apart: the head in a revisit
// record, and the payload in the record to which the revisit refers. ReplayPayload copies the
// payload.
func ReplayPayload(head, payload []byte, https bool, l Limits) (*Exchange, error) {
	// If the head has no empty line at its end, the first tag of the document shows where it ends.
	p := newReplay(io.MultiReader(bytes.NewReader(head), bytes.NewReader(payload)), https, l)
	err := p.ReadHead()
	if err == nil {
		p.x.Payload = append(buffers.Get(len(payload)), payload...)
		p.TestPrefix()
	}
	return p.finish(err)
}

// replay holds the state of one call of Replay or ReplayPayload.
type replay struct {
	*http1.Reader
	x *Exchange
}

func newReplay(from io.Reader, https bool, l Limits) *replay {
	setDefault(&l.MaxBody, defaultMaxBody)
	x := &Exchange{}
	r := http1.NewReader(from, &x.Response)
	r.HTTPS, r.Replayed, r.MaxHeader, r.MaxBody, r.Framing = https, true, maxHeader, l.MaxBody, l.Framing
	if l.Allow != nil {
		r.OnPrefix = func() bool {
			b, pooled := coding.Prefix(&x.Response)
			r.MaxBody = max(r.MaxBody, l.Allow(x, b[:min(len(b), http1.PrefixLen)]))
			if pooled {
				buffers.Put(b)
			}
			return true
		}
	}
	return &replay{r, x}
}

// isFalseCoding reports whether a warning says that a body does not have a coding that its head names.
func isFalseCoding(warning string) bool { return strings.HasPrefix(warning, coding.WarnFalse) }

// finish decodes the body. err is the error of reading the head, or nil.
func (p *replay) finish(err error) (*Exchange, error) {
	p.Release()
	if err != nil {
		return p.x, fmt.Errorf("no HTTP response: %w", err)
	}
	p.x.PayloadDigest = digest(p.x.Payload)
	x := p.x
	x.Decode(&x.Response, p.MaxBody)
	if p.Framing != http1.ByHead && x.Truncated == http1.TruncDisconnect && len(x.Codings) == 0 && slices.ContainsFunc(x.Warnings, isFalseCoding) {
		x.Truncated, x.BodyTruncated = http1.Complete, http1.Complete
	}
	return x, nil
}

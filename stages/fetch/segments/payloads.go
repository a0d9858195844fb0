package segments

import (
	"sync"
	"time"

	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

const (
	// minPayload is the length of the smallest payload that a task stores only once for several
	// URLs, in bytes. A revisit record itself takes a few hundred bytes.
	minPayload = 1 << 10
	// maxPayloads is the number of payloads that a task remembers by digest. They take a few MiB.
	maxPayloads = 1 << 14
	// maxPayloadURL is the longest URL of a remembered payload, in bytes.
	maxPayloadURL = 512
	// MaxPayloadAge is the greatest age of a payload to which a revisit may refer. An older payload
	// is stored again, because archives may be deleted after a year.
	MaxPayloadAge = 180 * 24 * time.Hour
)

// Payload identifies a stored payload and the WARC record that holds it.
type Payload struct {
	digest string      // digest of the payload, in the form of cc-index
	url    string      // canonical, because an index finds the record by it, whatever was sent
	at     schema.Time // WARC-Date of the payload's record
	id     string      // WARC-Record-ID of the payload's record; "" if unknown

	file           string
	offset, length int32
}

// KnownPayload returns the payload that the planned URL had before, if a revisit may refer to it.
// Otherwise it returns nil: the request is unconditional, and the response is stored whole.
func KnownPayload(p *schema.PlannedURL, now time.Time) *Payload {
	if p.ContentDigest == "" || p.WARCFilename == "" || now.Sub(p.ContentAt.Time()) > MaxPayloadAge {
		return nil
	}
	return &Payload{
		digest: p.ContentDigest, url: p.URL, at: p.ContentAt,
		file: p.WARCFilename, offset: p.WARCRecordOff, length: p.WARCRecordLen,
	}
}

// revisitOf returns the kind of revisit that a response becomes, and the payload to which it refers.
// If the response must be stored whole, the payload is nil.
func (a *Archiver) revisitOf(r *Response, cp *Capture) (schema.Revisit, *Payload) {
	x := r.Exchange
	switch {
	case r.NotModified:
		return schema.RevisitNotModified, r.Known
	case !referable(x, cp):
		return "", nil
	}
	digest := response.DigestValue(x.PayloadDigest)
	if r.Known != nil && r.Known.digest == digest {
		return schema.RevisitIdentical, r.Known
	}
	if p, ok := a.payloads.find(digest); ok && len(x.Payload) >= minPayload {
		return schema.RevisitIdentical, &p
	}
	return "", nil
}

// referable reports whether a response may be a revisit or the target of a revisit. It must have a
// head and a complete payload, and noarchive must not forbid to store them. A robots.txt is not
// referable, because each is stored whole: it proves which requests were allowed.
func referable(x *wire.Exchange, cp *Capture) bool {
	return cp.Subset != schema.SubsetRobots && cp.Truncated != schema.TruncatedUnspecified && len(x.Payload) > 0 && len(x.RawHead) > 0 && x.Truncated == http1.Complete
}

// makeRevisit turns a response's record into a revisit of p (WARC 1.1, section 6.7). The record then
// has only the head and a reference to the payload's record.
func makeRevisit(rec *warc.Record, kind schema.Revisit, p *Payload, x *wire.Exchange) {
	rec.Type = warc.Revisit
	rec.Block = [][]byte{x.RawHead}
	rec.PayloadDigest = warc.Digest("sha1:" + p.digest)
	rec.RefersTo, rec.RefersToURI, rec.RefersToDate = p.id, p.url, p.at.Time()
	if kind == schema.RevisitNotModified {
		rec.Profile = warc.ProfileNotModified
		return
	}
	rec.Profile, rec.Truncated = warc.ProfileIdenticalPayload, warc.TruncatedLength
}

// payloads remembers the records of a task's newest maxPayloads payloads. It is safe for
// concurrent use.
type payloads struct {
	mu       sync.Mutex
	byDigest map[string]Payload
	ring     []string // digests in the order in which they were added, as a ring
	next     int      // index of the oldest digest once the ring is full
}

// find returns the payload with the given digest.
func (m *payloads) find(digest string) (Payload, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.byDigest[digest]
	return p, ok
}

// add remembers a payload unless its digest is known already.
func (m *payloads) add(p Payload) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.byDigest[p.digest]; ok {
		return
	}
	if m.byDigest == nil {
		m.byDigest = map[string]Payload{}
	}
	if len(m.ring) < maxPayloads {
		m.ring = append(m.ring, p.digest)
	} else {
		delete(m.byDigest, m.ring[m.next])
		m.ring[m.next] = p.digest
		m.next = (m.next + 1) % maxPayloads
	}
	m.byDigest[p.digest] = p
}

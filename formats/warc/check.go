package warc

import (
	"bytes"
	"hash"
	"io"
	"math"

	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/formats/mediatype"
)

// maxHTTPHead is the size of the longest accepted head of an HTTP message, in bytes. If a head is
// longer, the payload is not checked.
const maxHTTPHead = 1 << 20

// checker computes the digests of a block and its payload. Package http1 finds the payload, as it did
// when the response was fetched.
//
// In WARC 1.1 the payload of an HTTP message is its entity body, without chunk framing. But some
// writers compute the payload digest of the body with its framing, of the bytes that the HTTP
// Content-Length counts, or of the whole block. These digests count as matches too.
type checker struct {
	wantBlock, wantPayload Digest
	kind                   Type
	http                   bool
	partial                bool   // the record says WARC-Truncated: unspecified
	taken                  []byte // bytes of the block that the caller has read

	start   string // first line of the message
	read    bool   // the message was read: its head is complete, or broke off
	large   bool   // the head is larger than maxHTTPHead
	some    bool   // the message has a body of at least one byte
	chunked bool   // the message says that its body is chunked
	longer  bool   // the body is longer than the HTTP Content-Length

	// Hashes of the block, and to compare with wantPayload: of the whole block, of the body, of the body
	// without chunk framing, and of the first bytes of the body. A hash is nil if it is not needed.
	block, whole, body, entity, first hash.Hash
	firstLeft                         int64  // number of bytes that first still takes, of those that the HTTP Content-Length counts
	held                              []byte // bytes of the block, as long as the head is being read
	inBody                            bool
}

func newChecker(e *Entry) *checker {
	c := &checker{
		wantBlock:   Digest(e.Header.Get(FieldBlockDigest)),
		wantPayload: Digest(e.Header.Get(FieldPayloadDigest)),
		kind:        e.Type,
	}
	c.block = c.wantBlock.hasher()
	mediaType := mediatype.Essence(e.Header.Get(FieldContentType))
	c.http = mediaType == "application/http" ||
		mediaType == "" && (e.Type == Response || e.Type == Request || e.Type == Revisit)
	c.partial = e.Type == Response && e.Header.Get(FieldTruncated) == string(TruncatedUnspecified)
	if e.Type != Revisit { // the payload of a revisit is in another record
		c.whole = c.wantPayload.hasher()
		if c.http {
			c.body, c.entity = c.wantPayload.hasher(), c.wantPayload.hasher()
		}
	}
	return c
}

// readAll reads the block from in to its end.
func (c *checker) readAll(in io.Reader) error {
	tee := io.TeeReader(in, c)
	if c.http {
		c.readMessage(tee)
	}
	c.held = nil
	_, err := io.Copy(io.Discard, tee) // readMessage stops at the end of the message, or at an error, which comes again
	return err
}

// readMessage reads the HTTP message in the block as far as it goes.
func (c *checker) readMessage(in io.Reader) {
	var r http1.Response
	m := http1.NewReader(in, &r)
	m.Request, m.Framing, m.MaxHeader, m.MaxBody = c.kind == Request, http1.ByEnd, maxHTTPHead, math.MaxInt64
	m.Sink = func(piece []byte) {
		if c.entity != nil {
			c.entity.Write(piece)
		}
	}
	defer func() {
		m.Release()
		r.Release()
	}()
	err := m.ReadHead()
	c.large = err != nil && len(c.held) >= maxHTTPHead
	c.start = startLine(r.RawHead)
	if c.start == "" {
		c.start = startLine(c.held)
	}
	if err != nil {
		return
	}
	c.read = true
	c.chunked = m.Chunked()
	if most, _, _ := m.ContentLength(); most >= 0 {
		c.first, c.firstLeft = c.wantPayload.hasher(), most
	}
	c.inBody = true
	c.addBody(c.held[min(m.Consumed(), int64(len(c.held))):])
	c.held = nil
	_ = m.ReadBody() // an error means that the body is incomplete; readAll meets a failure of in again
}

func startLine(head []byte) string {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	return string(bytes.TrimRight(line[:min(len(line), 1<<10)], "\r"))
}

// Write adds the next bytes of the block to the hashes.
func (c *checker) Write(p []byte) (int, error) {
	if c.block != nil {
		c.block.Write(p)
	}
	if c.whole != nil {
		c.whole.Write(p)
	}
	switch {
	case c.inBody:
		c.addBody(p)
	case c.http && len(c.held) <= maxHTTPHead:
		c.held = append(c.held, p...)
	}
	return len(p), nil
}

// addBody adds the next bytes after the head to the hashes.
func (c *checker) addBody(p []byte) {
	c.some = c.some || len(p) > 0
	if c.body != nil {
		c.body.Write(p)
	}
	if c.first != nil {
		n := min(c.firstLeft, int64(len(p)))
		c.first.Write(p[:n])
		c.firstLeft -= n
		c.longer = c.longer || n < int64(len(p))
	}
}

// finish sets StartLine and the verdicts in the summary s, and adds problems. The whole block must
// have been read.
func (c *checker) finish(s *Summary) {
	s.StartLine = c.start
	s.Block = c.verdict(c.wantBlock, c.block)
	switch {
	case c.wantPayload == "" && c.partial && c.read && !c.some:
		s.Payload = Withheld
	case c.whole == nil:
	case !c.http:
		s.Payload = c.verdict(c.wantPayload, c.whole)
	default:
		var problem string
		if s.Payload, s.Reading, problem = c.messagePayload(); problem != "" {
			s.Problems = append(s.Problems, problem)
		}
	}
}

// messagePayload returns the verdict on the payload digest of an HTTP message, and the reading that fits. If
// the digest covers other bytes than those of the entity body, which WARC 1.1 forbids, messagePayload also
// describes this problem.
func (c *checker) messagePayload() (v Verdict, fits Reading, problem string) {
	matches := func(h hash.Hash) bool { return h != nil && c.wantPayload.matches(h.Sum(nil)) }
	switch {
	case c.read && matches(c.entity), c.read && !c.chunked && matches(c.body):
		return Matches, "", ""
	case c.longer && matches(c.first):
		return Matches, ReadLength, "the payload digest is of as many bytes as the HTTP Content-Length says, and the body is longer"
	case c.read && matches(c.body):
		return Matches, ReadFramed, "the payload digest is of the body with its chunk framing"
	case c.read && matches(c.whole):
		return Matches, "", "the payload digest is of the whole block"
	case matches(c.whole), !c.read && !c.large && matches(c.body):
		return Matches, "", ""
	case c.large:
		return Unchecked, "", ""
	case c.partial && !c.some:
		return Withheld, "", ""
	}
	return Differs, "", ""
}

func (c *checker) verdict(want Digest, h hash.Hash) Verdict {
	switch {
	case h == nil:
		return Unchecked
	case want.matches(h.Sum(nil)):
		return Matches
	}
	return Differs
}

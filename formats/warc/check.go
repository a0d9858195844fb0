package warc

import (
	"bytes"
	"hash"
	"strings"

	"crawlbatch.io/crawlbatch/formats/mediatype"
)

// maxHTTPHead is the size of the longest accepted head of an HTTP message, in bytes. If a head is
// longer, the payload is not checked.
const maxHTTPHead = 1 << 20

// checker computes the digests of a block and its payload while a caller reads the block.
//
// In WARC 1.1 the payload of an HTTP message is its entity body, without chunk framing. But some
// writers compute the payload digest of the body with its framing, or of the whole block. These
// digests count as matches too.
type checker struct {
	wantBlock, wantPayload Digest
	block                  hash.Hash
	http                   bool

	head     []byte // head of the HTTP message so far, nil once the head is complete
	headDone bool
	lineLen  int
	large    bool   // the head is larger than maxHTTPHead
	some     bool   // the message has a body of at least one byte
	partial  bool   // the record says WARC-Truncated: unspecified
	start    string // first line of the message

	// Hashes of the whole block, of the body, and of the body without chunk framing, to compare with
	// wantPayload. A hash is nil if it is not needed.
	whole, body, entity hash.Hash
	chunks              dechunker
}

func newChecker(e *Entry) *checker {
	c := &checker{
		wantBlock:   Digest(e.Header.Get(FieldBlockDigest)),
		wantPayload: Digest(e.Header.Get(FieldPayloadDigest)),
	}
	c.block = c.wantBlock.hasher()
	mediaType := mediatype.Essence(e.Header.Get(FieldContentType))
	c.http = mediaType == "application/http" ||
		mediaType == "" && (e.Type == Response || e.Type == Request || e.Type == Revisit)
	c.partial = e.Type == Response && e.Header.Get(FieldTruncated) == string(TruncatedUnspecified)
	if e.Type != Revisit { // the payload of a revisit is in another record
		c.whole = c.wantPayload.hasher()
		if c.http {
			c.body = c.wantPayload.hasher()
		}
	}
	return c
}

// add adds the next bytes of the block to the hashes.
func (c *checker) add(p []byte) {
	if c.block != nil {
		c.block.Write(p)
	}
	if c.whole != nil {
		c.whole.Write(p)
	}
	if c.http && !c.headDone && !c.large {
		p = c.takeHead(p)
	}
	if c.headDone {
		c.takeBody(p)
	}
}

// takeHead reads the bytes of the HTTP head from p, the next part of the block. It returns the bytes
// of p that follow the head.
func (c *checker) takeHead(p []byte) []byte {
	begin := 0
	for i, b := range p {
		switch {
		case b == '\r':
		case b != '\n':
			c.lineLen++
		case c.lineLen > 0:
			c.lineLen = 0
		default:
			c.head = append(c.head, p[begin:i+1]...)
			if !interim(c.head) {
				c.endHead(c.head)
				c.head = nil
				return p[i+1:]
			}
			c.head, begin = c.head[:0], i+1 // the final response follows an interim one (RFC 9110, section 15.2)
		}
	}
	c.head = append(c.head, p[begin:]...)
	if len(c.head) > maxHTTPHead {
		c.noteStart(c.head)
		c.head, c.large = nil, true
	}
	return nil
}

// interim reports whether a head is that of an interim response: a 1xx response other than 101.
func interim(head []byte) bool {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	fields := bytes.Fields(line)
	return len(fields) >= 2 && bytes.HasPrefix(fields[0], []byte("HTTP/")) &&
		len(fields[1]) == 3 && fields[1][0] == '1' && string(fields[1]) != "101"
}

// endHead reads Transfer-Encoding from a complete head. No other field affects the payload.
func (c *checker) endHead(head []byte) {
	c.headDone = true
	c.noteStart(head)
	for line := range bytes.Lines(head) {
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || !bytes.EqualFold(bytes.TrimSpace(name), []byte("Transfer-Encoding")) {
			continue
		}
		codings := strings.Split(string(value), ",")
		if strings.EqualFold(strings.TrimSpace(codings[len(codings)-1]), "chunked") && c.body != nil {
			c.entity = c.wantPayload.hasher()
		}
	}
}

func (c *checker) noteStart(head []byte) {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	c.start = string(bytes.TrimRight(line[:min(len(line), 1<<10)], "\r"))
}

func (c *checker) takeBody(p []byte) {
	c.some = c.some || len(p) > 0
	if c.body != nil {
		c.body.Write(p)
	}
	if c.entity != nil {
		c.chunks.decode(c.entity, p)
	}
}

// finish sets StartLine and the verdicts in the summary s, and adds problems. The whole block must
// have been added.
func (c *checker) finish(s *Summary) {
	if c.http && !c.headDone && !c.large {
		c.noteStart(c.head)
	}
	s.StartLine = c.start
	s.Block = c.verdict(c.wantBlock, c.block)
	switch {
	case c.wantPayload == "" && c.partial && c.headDone && !c.some:
		s.Payload = Withheld
	case c.whole == nil:
	case !c.http:
		s.Payload = c.verdict(c.wantPayload, c.whole)
	default:
		var problem string
		if s.Payload, problem = c.messagePayload(); problem != "" {
			s.Problems = append(s.Problems, problem)
		}
	}
}

// messagePayload returns the verdict on the payload digest of an HTTP message. If the digest covers
// more than the entity body, which WARC 1.1 forbids, messagePayload also describes this problem.
func (c *checker) messagePayload() (v Verdict, problem string) {
	matches := func(h hash.Hash) bool { return h != nil && c.wantPayload.matches(h.Sum(nil)) }
	onlyHead := !c.headDone && !c.large // the block ends within the head, so the body is empty
	switch {
	case matches(c.entity), c.headDone && c.entity == nil && matches(c.body):
		return Matches, ""
	case c.headDone && matches(c.body):
		return Matches, "the payload digest is of the body with its chunk framing"
	case c.headDone && matches(c.whole):
		return Matches, "the payload digest is of the whole block"
	case matches(c.whole), onlyHead && matches(c.body):
		return Matches, ""
	case c.large:
		return Unchecked, ""
	case c.partial && !c.some:
		return Withheld, ""
	}
	return Differs, ""
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

// dechunker removes chunk framing from a body (RFC 9112, section 7.1). Like HTTP clients, it accepts
// bare line feeds and ignores chunk extensions. It ignores all bytes from a malformed chunk on.
type dechunker struct {
	state  chunkState
	size   int64 // in state chunkSize the size as far as it was read, later the number of remaining bytes of the chunk
	digits int   // number of digits of the size that were read
}

type chunkState int

const (
	chunkSize chunkState = iota
	chunkExtension
	chunkData
	chunkDataEnd
	chunkStop
)

// decode writes the data of the chunks in p, the next part of the body, to out.
func (d *dechunker) decode(out hash.Hash, p []byte) {
	for len(p) > 0 && d.state != chunkStop {
		if d.state == chunkData {
			n := min(int64(len(p)), d.size)
			out.Write(p[:n])
			p = p[n:]
			if d.size -= n; d.size == 0 {
				d.state = chunkDataEnd
			}
			continue
		}
		d.frame(p[0])
		p = p[1:]
	}
}

// frame reads a byte of chunk framing.
func (d *dechunker) frame(b byte) {
	switch d.state {
	case chunkSize:
		digit, isHex := unhex(b)
		switch {
		case isHex && d.digits < 15:
			d.size, d.digits = d.size<<4|int64(digit), d.digits+1
		case b == '\n' && d.digits > 0:
			d.sizeEnds()
		case (b == ';' || b == ' ' || b == '\t' || b == '\r') && d.digits > 0:
			d.state = chunkExtension
		default:
			d.state = chunkStop
		}
	case chunkExtension:
		if b == '\n' {
			d.sizeEnds()
		}
	case chunkDataEnd:
		switch b {
		case '\r':
		case '\n':
			d.state, d.size, d.digits = chunkSize, 0, 0
		default:
			d.state = chunkStop
		}
	}
}

func (d *dechunker) sizeEnds() {
	d.state = chunkData
	if d.size == 0 { // this was the last chunk; only trailers follow
		d.state = chunkStop
	}
}

func unhex(b byte) (digit int, ok bool) {
	digit = strings.IndexByte("0123456789abcdefABCDEF", b)
	if digit >= 16 {
		digit -= 6
	}
	return digit, digit >= 0
}

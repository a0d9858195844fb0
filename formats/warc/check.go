package warc

import (
	"bytes"
	"hash"
	"strings"

	"crawlbatch.io/crawlbatch/formats/mediatype"
)

// maxHTTPHead bounds the head of an HTTP message that is kept to find its
// payload, in bytes. A longer one leaves the payload unchecked.
const maxHTTPHead = 1 << 20

// checker digests a block as it is read, and the payload in it.
//
// WARC 1.1 has the payload of an HTTP message be its entity body, which is
// without chunk framing; some writers digest the framing too, and a message
// that has no head is payload from its start. All three are known as matches.
type checker struct {
	wantBlock, wantPayload Digest
	block                  hash.Hash
	http                   bool

	head     []byte // of the HTTP message; nil once it is whole
	headDone bool
	lineLen  int
	large    bool // the head is larger than maxHTTPHead
	some     bool // the message has a body, be it one byte
	left     bool // the record says that something was left out, and not why
	start    string

	whole, body, entity hash.Hash // of the payload in its three senses
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
	c.left = e.Type == Response && e.Header.Get(FieldTruncated) == string(TruncatedUnspecified)
	if e.Type != Revisit { // its payload is in the record that it refers to
		c.whole = c.wantPayload.hasher()
		if c.http {
			c.body = c.wantPayload.hasher()
		}
	}
	return c
}

// Write takes the next bytes of the block. It is no io.Writer: it cannot fail.
func (c *checker) Write(p []byte) {
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

// takeHead adds to the head what belongs to it and gives back the rest of p.
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
			c.head, begin = c.head[:0], i+1 // the message proper follows (RFC 9110, section 15.2)
		}
	}
	c.head = append(c.head, p[begin:]...)
	if len(c.head) > maxHTTPHead {
		c.noteStart(c.head)
		c.head, c.large = nil, true
	}
	return nil
}

// interim tells whether a head is that of a 1xx response, 101 aside.
func interim(head []byte) bool {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	fields := bytes.Fields(line)
	return len(fields) >= 2 && bytes.HasPrefix(fields[0], []byte("HTTP/")) &&
		len(fields[1]) == 3 && fields[1][0] == '1' && string(fields[1]) != "101"
}

// endHead looks for the one field of a head that changes what the payload is.
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

// finish sets s's verdicts.
func (c *checker) finish(s *Summary) {
	if c.http && !c.headDone && !c.large {
		c.noteStart(c.head)
	}
	s.StartLine = c.start
	s.Block = c.verdict(c.wantBlock, c.block)
	switch {
	case c.wantPayload == "" && c.left && c.headDone && !c.some:
		s.Payload = Withheld
	case c.whole == nil:
	case !c.http:
		s.Payload = c.verdict(c.wantPayload, c.whole)
	case c.entity != nil && c.wantPayload.is(c.entity.Sum(nil)):
		s.Payload = Matches
	case c.headDone && c.wantPayload.is(c.body.Sum(nil)):
		s.Payload = Matches
		if c.entity != nil {
			s.Problems = append(s.Problems, "the payload digest is of the body with its chunk framing")
		}
	case c.wantPayload.is(c.whole.Sum(nil)):
		s.Payload = Matches
		if c.headDone {
			s.Problems = append(s.Problems, "the payload digest is of the whole block")
		}
	case !c.headDone && !c.large && c.wantPayload.is(c.body.Sum(nil)): // a head alone, nothing behind it
		s.Payload = Matches
	case c.large:
	case c.left && !c.some && c.wantPayload != "":
		s.Payload = Withheld
	default:
		s.Payload = Differs
	}
}

func (c *checker) verdict(want Digest, h hash.Hash) Verdict {
	switch {
	case h == nil:
		return Unchecked
	case want.is(h.Sum(nil)):
		return Matches
	}
	return Differs
}

// dechunker takes chunk framing off a body (RFC 9112, section 7.1). Like the
// clients that made the captures it takes bare line feeds and ignores chunk
// extensions; at what is no chunk it stops.
type dechunker struct {
	state  chunkState
	size   int64 // that is read, then what is left of the chunk
	digits int
}

type chunkState int

const (
	chunkSize chunkState = iota
	chunkExtension
	chunkData
	chunkDataEnd
	chunkStop
)

// decode writes the data in p, the next bytes of the body, to out.
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

// frame takes a byte that is not data.
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
	if d.size == 0 { // the last chunk; trailers follow
		d.state = chunkStop
	}
}

func unhex(b byte) (byte, bool) {
	switch {
	case b >= '0' && b <= '9':
		return b - '0', true
	case b >= 'a' && b <= 'f':
		return b - 'a' + 10, true
	case b >= 'A' && b <= 'F':
		return b - 'A' + 10, true
	}
	return 0, false
}

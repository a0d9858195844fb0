package response

import (
	"bytes"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// ReplayForeign replays the response in the block of a record that another program wrote. The end of the
// record ends the body: many archives store decoded bodies under the Content-Length of the encoded ones.
// s is the summary of the record. If the record's payload digest fits only another reading of the block
// (warc.Reading), ReplayForeign reads it so. The caller releases the Exchange, as that of wire.Replay.
func ReplayForeign(block []byte, s *warc.Summary, https bool, l wire.Limits) (*wire.Exchange, error) {
	l.Framing = http1.ByEnd
	if s.Reading == warc.ReadLength {
		l.Framing = http1.ByHead
	}
	x, err := wire.Replay(block, https, l)
	if s.Reading == warc.ReadFramed && err == nil && slices.ContainsFunc(x.Warnings, isBrokenChunk) {
		x.Release() // the digest is of the body as stored, and the body only begins as if it had chunks
		l.Framing = http1.Unchunked
		return wire.Replay(block, https, l)
	}
	return x, err
}

// isBrokenChunk reports whether a warning says that the framing of a chunked body is malformed.
func isBrokenChunk(warning string) bool { return strings.HasPrefix(warning, http1.WarnChunkInvalid) }

// ReplayRevisit replays a revisit that another program wrote: the head in its block, and the payload of an exchange
// that ReplayForeign returned. Content-Length in the head is that of the payload, not of the block, so it does not
// matter. ReplayRevisit returns false if the block has no head. The caller releases the Exchange.
func ReplayRevisit(block []byte, payload *wire.Exchange, https bool, l wire.Limits) (*wire.Exchange, bool) {
	if !bytes.HasPrefix(bytes.TrimLeft(block, "\r\n"), []byte("HTTP/")) {
		return nil, false
	}
	l.Framing = http1.ByEnd
	x, err := wire.ReplayPayload(block, payload.Payload, https, l)
	if err != nil {
		x.Release()
		return nil, false
	}
	return x, true
}

// RevisitDiffers reports whether the payload in an exchange is not that of a revisit. other is the payload digest in
// the header of the record with the payload. The plan has compared the two digests if their algorithms are the same;
// otherwise the bytes decide. A digest of an unknown algorithm does not differ, nor does the digest of an empty payload
// in a 304, whose own body is empty.
func RevisitDiffers(h warc.Header, other warc.Digest, x *wire.Exchange) bool {
	d := h.Reference().Digest
	algorithm, _, ok := d.Sum()
	compared, _, _ := other.Sum()
	return ok && algorithm != compared && !d.Of(x.Payload) && !(h.NotModified() && d.Of(nil))
}

// ofContent lists the fields of a 304 that do not replace those of the stored response, because they describe the
// content, or the message that carries it (RFC 9111, section 3.2).
var ofContent = []string{"Content-Length", "Content-Encoding", "Content-Type", "Content-Range", "Transfer-Encoding", "Connection", "Trailer"}

// Freshen replaces the fields of a stored response by those of a 304.
func Freshen(stored, answer *wire.Exchange) {
	keep := func(name string) bool {
		return slices.ContainsFunc(ofContent, func(s string) bool { return strings.EqualFold(s, name) })
	}
	stored.Header = slices.DeleteFunc(stored.Header, func(f http1.Field) bool {
		_, new := answer.Header.Lookup(f.Name)
		return new && !keep(f.Name)
	})
	for _, f := range answer.Header {
		if !keep(f.Name) {
			stored.Header = append(stored.Header, http1.Field{Name: strings.Clone(f.Name), Value: strings.Clone(f.Value)})
		}
	}
}

// DigestDiffers reports whether the bytes of a record are not those of which its digests are. The payload
// digest decides, and without one the block digest. The payload digest of a record that says that it is
// truncated may be of the whole payload. The block digest that wget writes in a revisit is of an empty block,
// although the block has the head.
func DigestDiffers(s *warc.Summary, h warc.Header) bool {
	if s.Payload == warc.Unchecked || s.Payload == "" {
		wget := h.Get(warc.FieldType) == string(warc.Revisit) && warc.Digest(h.Get(warc.FieldBlockDigest)).Of(nil)
		return s.Block == warc.Differs && !wget
	}
	return s.Payload == warc.Differs && h.Get(warc.FieldTruncated) == ""
}

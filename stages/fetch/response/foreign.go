package response

import (
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

// DigestDiffers reports whether the bytes of a record are not those of which its digests are. The payload
// digest decides, and without one the block digest. The payload digest of a record that says that it is
// truncated may be of the whole payload.
func DigestDiffers(s *warc.Summary, h warc.Header) bool {
	if s.Payload == warc.Unchecked || s.Payload == "" {
		return s.Block == warc.Differs
	}
	return s.Payload == warc.Differs && h.Get(warc.FieldTruncated) == ""
}

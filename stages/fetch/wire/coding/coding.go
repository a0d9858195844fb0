// Package coding undoes the content codings of a response within limits.
//
// Decode takes a Response that package http1 has read, and makes a Decoded: the body without gzip,
// deflate, br and zstd. It adds warnings to the Response. It undoes one coding after the other and
// limits the output of each, so a nested decompression bomb gains nothing. Bytes from the web never
// cause a panic.
//
// Package coding imports the decoders of github.com/klauspost/compress and
// github.com/andybalholm/brotli, and packages http1 and buffers.
package coding

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/formats/http1/buffers"
)

// Decoding adds these codes to Response.Warnings. A coding or a detail follows the code.
const (
	WarnUnknown   = "coding-unknown"     // the body was left encoded
	WarnFalse     = "coding-false"       // the body does not have this coding and was left unchanged
	WarnTruncated = "coding-truncated"   // the part that could be decoded was kept
	WarnCorrupt   = "coding-corrupt"     // the encoding has an error; the part before it was kept
	WarnChecksum  = "coding-checksum"    // the body is complete, but has another checksum or length than the encoding states
	WarnTrailing  = "coding-trailing"    // bytes after the encoded body were skipped
	WarnBomb      = "decompression-bomb" // the body was shortened to 256 times its encoded size
	WarnTooMany   = "coding-too-many"    // the body has more than five codings and was left encoded
)

const (
	// maxCodings is the largest number of codings that are undone. A body with more stays encoded.
	maxCodings = 5
	// maxRatio limits the ratio of decoded to encoded bytes. It applies only to bodies that decode to more
	// than freeRatio bytes, such as sitemaps: a page may consist of one row of a table ten thousand times.
	maxRatio  = 256
	freeRatio = 5 << 20
	// prefixInput is how much of an encoded body Prefix decodes at most, in bytes.
	prefixInput = 1 << 20
	// minBody is the smallest size, in bytes, that Likely estimates for an encoded body.
	minBody = 64 << 10
)

// Decoded is a body with its codings undone.
type Decoded struct {
	// Body is the decoded body, valid until Release. If there were no codings, it shares memory
	// with the payload.
	Body []byte
	// Codings lists the codings that were undone, the outermost first: "gzip", "br", …
	Codings []string
	// BodyTruncated tells why bytes of Body are missing. If the payload is truncated, the reason is
	// the same as for the payload. If the encoding is incomplete or corrupt, the reason is
	// "disconnect". If the body decodes to more than the limits allow, the reason is "length".
	BodyTruncated http1.Truncation
}

// Release returns the buffer to its pool. A second call does nothing.
func (d *Decoded) Release() {
	if len(d.Codings) > 0 {
		buffers.Put(d.Body)
	}
	d.Body = nil
}

// unknownCoding marks a coding that cannot be undone. A body with such a coding is left as it is, as
// browsers do.
const unknownCoding = ""

// codingsOf returns the codings of a body in the order in which the server applied them. It leaves out
// chunked and identity. The result odd is the first unknown coding, as the server wrote it.
func codingsOf(h http1.Header) (codings []string, odd string) {
	for _, field := range []string{"Content-Encoding", "Transfer-Encoding"} {
		for t := range h.Tokens(field) {
			switch c := strings.ToLower(t); c {
			case "identity", "none", "chunked":
			case "gzip", "x-gzip":
				codings = append(codings, "gzip")
			case "deflate", "br", "zstd":
				codings = append(codings, c)
			default:
				if odd == "" {
					odd = t
				}
				codings = append(codings, unknownCoding)
			}
		}
	}
	return codings, odd
}

// Decode undoes the codings of r's payload into d, up to maxBody bytes. It first releases the
// previous content of d. It reports whether it cut off the end of the body; the caller may then
// call Decode again with a larger limit.
func (d *Decoded) Decode(r *http1.Response, maxBody int64) (cut bool) {
	d.Release()
	*d = Decoded{Body: r.Payload, BodyTruncated: r.Truncated}
	codings, odd := codingsOf(r.Header)
	switch {
	case len(codings) == 0 || len(r.Payload) == 0:
		return false
	case slices.Contains(codings, unknownCoding):
		r.Warnf(WarnUnknown, "%.40q", odd)
		return false
	case len(codings) > maxCodings:
		r.Warnf(WarnTooMany, "%d", len(codings))
		return false
	}
	limit := min(maxBody, max(freeRatio, maxRatio*int64(len(r.Payload))))
	for _, coding := range slices.Backward(codings) {
		out, v := decodeLayer(coding, d.Body, limit)
		if v.state == stateFalse {
			// The server named a coding that it did not apply, or named a coding twice that it
			// applied once.
			r.Warn(WarnFalse + ": " + coding)
			continue
		}
		d.Release() // releases the previous layer's output; d never owns the payload
		d.Body, d.Codings = out, append(d.Codings, coding)
		if v.trailing {
			r.Warn(WarnTrailing + ": " + coding)
		}
		if v.checksum {
			r.Warn(WarnChecksum + ": " + coding)
		}
		if v.state == stateCut {
			if cut = true; limit < maxBody {
				r.Warnf(WarnBomb, "%d bytes decode to more than %d", len(r.Payload), limit)
			}
			d.BodyTruncated = http1.TruncLength
		}
		if code := v.state.warning(); code != "" && r.Truncated == http1.Complete {
			if d.BodyTruncated == http1.Complete {
				d.BodyTruncated = http1.TruncDisconnect
			}
			r.Warn(code + ": " + coding)
		}
	}
	return cut
}

// Likely estimates the decoded size of r's body in bytes, at most maxBody. Without codings it
// returns 0.
func Likely(r *http1.Response, maxBody int64) int64 {
	codings, _ := codingsOf(r.Header)
	if len(codings) == 0 || len(r.Payload) == 0 {
		return 0
	}
	n := 5 * int64(len(r.Payload))
	if len(codings) == 1 && codings[0] == "gzip" {
		n = gzipLength(r.Payload)
	}
	return min(max(n, minBody), maxBody)
}

// Prefix returns the beginning of r's body, decoded as far as possible. It has at least
// http1.PrefixLen bytes if the payload has at least that many. If pooled is true, the caller must
// return the slice to package buffers. Otherwise the slice is part of the payload.
func Prefix(r *http1.Response) (b []byte, pooled bool) {
	codings, _ := codingsOf(r.Header)
	b = r.Payload
	if len(codings) == 0 || len(codings) > maxCodings || slices.Contains(codings, unknownCoding) {
		return b, false
	}
	b = b[:min(len(b), prefixInput)]
	for _, coding := range slices.Backward(codings) {
		out, v := decodeLayer(coding, b, 8*http1.PrefixLen)
		if v.state == stateFalse {
			continue
		}
		if pooled {
			buffers.Put(b)
		}
		b, pooled = out, true
	}
	return b, pooled
}

// ErrEncoded means that a body is encoded in a way that cannot be undone.
var ErrEncoded = errors.New("its coding cannot be undone")

// Text returns the text of a response that should be plain text, such as a robots.txt, up to limit bytes. d is the
// decoded response. Unlike Decode, Text also undoes gzip and zstd that no field names, by their magic numbers. It
// returns ErrEncoded if such a coding is broken, or if the body does not look like text and has a coding that Decode
// did not undo. Other bytes are returned as they are.
func Text(r *http1.Response, d *Decoded, limit int64) ([]byte, error) {
	body := d.Body
	undone := len(d.Codings)
	for range maxCodings {
		coding := magicCoding(body)
		if coding == "" {
			break
		}
		out, v := decodeLayer(coding, body, limit)
		if v.state != stateDone && v.state != stateCut {
			buffers.Put(out)
			return nil, ErrEncoded
		}
		body, undone = out, undone+1
	}
	if named, _ := codingsOf(r.Header); undone < len(named) && len(body) > 0 && !looksPlain(body) && !hasBOM16(body) {
		return nil, ErrEncoded
	}
	return body[:min(int64(len(body)), limit)], nil
}

// magicCoding returns the coding whose magic number is at the beginning of b, or "".
func magicCoding(b []byte) string {
	switch {
	case bytes.HasPrefix(b, gzipMagic) && len(b) > 2 && b[2] == 8: // the method deflate, the only one
		return "gzip"
	case bytes.HasPrefix(b, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return "zstd"
	}
	return ""
}

// hasBOM16 reports whether b begins with a byte order mark of UTF-16.
func hasBOM16(b []byte) bool {
	return bytes.HasPrefix(b, []byte{0xff, 0xfe}) || bytes.HasPrefix(b, []byte{0xfe, 0xff})
}

// state is the result of decoding one layer.
type state int

const (
	stateDone    state = iota
	stateFalse         // the input does not have this coding, so there is no output
	stateCut           // the limit was reached
	stateShort         // the input ended early; the output holds the part before the end
	stateCorrupt       // the input has an error; the output holds the part before the error
)

// warning returns the warning code for damage to a layer, or "".
func (s state) warning() string {
	switch s {
	case stateShort:
		return WarnTruncated
	case stateCorrupt:
		return WarnCorrupt
	}
	return ""
}

type layerVerdict struct {
	state    state
	trailing bool // whether bytes after the encoded data were skipped
	checksum bool // whether a checksum or length at the end of the encoded data is wrong
}

// decodeLayer undoes one coding. It returns at most limit bytes in a new pooled buffer, or nil with
// stateFalse.
func decodeLayer(coding string, in []byte, limit int64) (b []byte, v layerVerdict) {
	out := output{limit: limit}
	defer func() {
		// If bytes from the web make a decoder panic, the task goes on. That decoder does not
		// return to its pool.
		if recover() != nil {
			b, v = out.b, layerVerdict{state: stateCorrupt}
		}
	}()
	switch coding {
	case "gzip":
		v = out.decodeGzip(in)
	case "deflate":
		v = out.deflate(in)
	case "br":
		v = out.decodeBrotli(in)
	case "zstd":
		v = out.decodeZstd(in)
	}
	if v.state == stateFalse {
		buffers.Put(out.b)
		return nil, v
	}
	return out.b, v
}

// output collects decoded bytes up to a limit.
type output struct {
	b     []byte
	limit int64
	more  [1]byte // scratch
}

// errLimit means that the output exceeds the limit.
var errLimit = errors.New("limit reached")

// expect reserves memory for an output of about n bytes.
func (o *output) expect(n int64) { o.b = buffers.Grow(o.b, int(min(max(n, 1), o.limit))) }

// readFrom reads r to its end. It returns errLimit if r has more bytes than the limit.
func (o *output) readFrom(r io.Reader) error {
	for idle := 0; idle < 1000; idle++ {
		full := int64(len(o.b)) == o.limit
		if !full && len(o.b) == cap(o.b) {
			o.b = buffers.Grow(o.b, int(min(o.limit, 2*int64(cap(o.b))+1)))
		}
		free := o.b[len(o.b):min(int64(cap(o.b)), o.limit)]
		if full { // one more byte shows that the output exceeds the limit
			free = o.more[:]
		}
		n, err := r.Read(free)
		switch {
		case full && n > 0:
			return errLimit
		case n > 0:
			o.b, idle = o.b[:len(o.b)+n], 0
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// verdict classifies the error that ended a layer. An input that looks like text was never encoded.
// If marked is true, a magic number has identified the coding, and verdict does not test for text.
func (o *output) verdict(err error, in []byte, marked bool) layerVerdict {
	switch {
	case err == nil:
		return layerVerdict{}
	case err == errLimit:
		return layerVerdict{state: stateCut}
	case !marked && looksPlain(in):
		return layerVerdict{state: stateFalse}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return layerVerdict{state: stateShort}
	default:
		return layerVerdict{state: stateCorrupt}
	}
}

// looksPlain reports whether b begins like text rather than compressed data. It is the only
// possible test for codings without a magic number.
func looksPlain(b []byte) bool { return http1.IsText(b[:min(len(b), 256)]) }

// gzipLength returns the decoded length that the end of a gzip stream states, in bytes. If this
// length is not plausible, gzipLength returns an estimate.
func gzipLength(in []byte) int64 {
	guess := 4 * int64(len(in))
	if len(in) < 18 {
		return guess
	}
	if n := int64(binary.LittleEndian.Uint32(in[len(in)-4:])); n >= int64(len(in))/2 && n <= 4*guess {
		return n + 1 // one more byte lets the reader see the end without growing the buffer
	}
	return guess
}

package wire

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
)

const (
	// maxCodings bounds how many codings of one body are undone.
	maxCodings = 5
	// freeRatio is how many bytes a body may decode to whatever its ratio.
	freeRatio = 1 << 20
)

// unknown codings make a body opaque: nothing is undone (as browsers do).
const codingUnknown = ""

// codings lists the content codings and transfer codings of a body in the order
// in which they were applied; chunked and identity are left out.
func codings(h Header) (list []string, unknown string) {
	for _, field := range []string{"Content-Encoding", "Transfer-Encoding"} {
		for t := range h.tokens(field) {
			switch c := strings.ToLower(t); c {
			case "identity", "none", "chunked":
			case "gzip", "x-gzip":
				list = append(list, "gzip")
			case "deflate", "br", "zstd":
				list = append(list, c)
			default:
				if unknown == "" {
					unknown = t
				}
				list = append(list, codingUnknown)
			}
		}
	}
	return list, unknown
}

// decoder undoes content codings within limits.
type decoder struct {
	maxBody, maxRatio int64
}

// body sets x.Body, x.Codings and x.BodyTruncated from the payload. The codings
// are undone one after the other, each output bounded, so that nested bombs gain
// nothing. It reports whether maxBody was in the way; then it may be called
// again with a larger one.
func (d decoder) body(x *Exchange) (cut bool) {
	if len(x.Codings) > 0 {
		last := len(x.buffers) - 1
		putBuffer(x.buffers[last])
		x.buffers, x.Codings = x.buffers[:last], nil
	}
	x.Body, x.BodyTruncated = x.Payload, x.Truncated
	list, unknown := codings(x.Header)
	switch {
	case len(list) == 0 || len(x.Payload) == 0:
		return false
	case slices.Contains(list, codingUnknown):
		x.warnf(WarnCodingUnknown, "%.40q", unknown)
		return false
	case len(list) > maxCodings:
		x.warnf(WarnCodingTooMany, "%d", len(list))
		return false
	}
	limit := min(d.maxBody, max(freeRatio, d.maxRatio*int64(len(x.Payload))))
	for _, coding := range slices.Backward(list) {
		out, v := decodeLayer(coding, x.Body, limit)
		if v.state == codingFalse {
			// It was named and not applied, or applied once and named twice.
			x.warn(WarnCodingFalse + ": " + coding)
			continue
		}
		if len(x.Codings) > 0 {
			putBuffer(x.Body) // an inner layer's; the payload stays
		}
		x.Body, x.Codings = out, append(x.Codings, coding)
		if v.trailing {
			x.warn(WarnCodingTrailing + ": " + coding)
		}
		switch v.state {
		case codingCut:
			if cut = true; limit < d.maxBody {
				x.warnf(WarnDecompressionBomb, "%d bytes decode to more than %d", len(x.Payload), limit)
			}
			x.BodyTruncated = TruncLength
		case codingShort, codingCorrupt:
			if x.Truncated != Complete {
				break // no wonder
			}
			if x.BodyTruncated == Complete {
				x.BodyTruncated = TruncDisconnect
			}
			if v.state == codingShort {
				x.warn(WarnCodingTruncated + ": " + coding)
			} else {
				x.warn(WarnCodingCorrupt + ": " + coding)
			}
		}
	}
	if len(x.Codings) > 0 {
		x.buffers = append(x.buffers, x.Body)
	}
	return cut
}

// likely is the size that the body will probably have when its codings are undone,
// at most maxBody; 0 if there are none.
func (d decoder) likely(x *Exchange) int64 {
	list, _ := codings(x.Header)
	if len(list) == 0 || len(x.Payload) == 0 {
		return 0
	}
	n := 5 * int64(len(x.Payload))
	if list[len(list)-1] == "gzip" && len(list) == 1 {
		n = gzipLength(x.Payload)
	}
	return min(max(n, firstBody), d.maxBody)
}

// prefix returns prefixLen or more bytes of the body's beginning, decoded as far
// as they can be; in a pooled buffer if owned, else they are the payload.
func (d decoder) prefix(x *Exchange) (b []byte, owned bool) {
	list, _ := codings(x.Header)
	b = x.Payload
	if len(list) == 0 || len(list) > maxCodings || slices.Contains(list, codingUnknown) {
		return b, false
	}
	b = b[:min(len(b), freeRatio)]
	for _, coding := range slices.Backward(list) {
		out, v := decodeLayer(coding, b, 8*prefixLen)
		if v.state == codingFalse {
			continue
		}
		if owned {
			putBuffer(b)
		}
		b, owned = out, true
	}
	return b, owned
}

// codingState is how decoding one layer went.
type codingState int

const (
	codingDone    codingState = iota
	codingFalse               // the input is not encoded so; there is no output
	codingCut                 // the limit was reached
	codingShort               // the input ended early; output holds what came before
	codingCorrupt             // likewise, by an error in it
)

type layerVerdict struct {
	state    codingState
	trailing bool // bytes after the encoded data were skipped
}

// decodeLayer undoes one coding, with at most limit bytes of output in a pooled
// buffer of its own, which is nil with codingFalse.
func decodeLayer(coding string, in []byte, limit int64) (b []byte, v layerVerdict) {
	out := output{limit: limit}
	defer func() {
		// A body that makes a decoder panic must not end the task. The decoder
		// has not gone back to its pool.
		if recover() != nil {
			b, v = out.b, layerVerdict{state: codingCorrupt}
		}
	}()
	switch coding {
	case "gzip":
		v = out.gzip(in)
	case "deflate":
		v = out.deflate(in)
	case "br":
		v = out.brotli(in)
	case "zstd":
		v = out.zstd(in)
	}
	if v.state == codingFalse {
		putBuffer(out.b)
		return nil, v
	}
	return out.b, v
}

// output collects decoded bytes up to a limit.
type output struct {
	b     []byte
	limit int64
}

// errLimit: there is more output than the limit allows.
var errLimit = errors.New("limit reached")

// expect sets room aside for about n bytes.
func (o *output) expect(n int64) { o.b = growBuffer(o.b, int(min(max(n, 1), o.limit))) }

// readFrom reads r to its end; errLimit if that is beyond the limit.
func (o *output) readFrom(r io.Reader) error {
	idle := 0
	for {
		if int64(len(o.b)) == o.limit {
			var one [1]byte
			n, err := r.Read(one[:])
			if n > 0 {
				return errLimit
			}
			if err != nil {
				return ended(err)
			}
		} else {
			if len(o.b) == cap(o.b) {
				o.b = growBuffer(o.b, int(min(o.limit, 2*int64(cap(o.b))+1)))
			}
			free := o.b[len(o.b):min(int64(cap(o.b)), o.limit)]
			n, err := r.Read(free)
			o.b = o.b[:len(o.b)+n]
			if err != nil {
				return ended(err)
			}
			if n > 0 {
				idle = 0
				continue
			}
		}
		if idle++; idle > 1000 {
			return io.ErrNoProgress
		}
	}
}

func ended(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// verdict sorts out how reading a layer ended. With no output at all an input
// that looks like text was never encoded.
func (o *output) verdict(err error, in []byte, marked bool) layerVerdict {
	switch {
	case err == nil:
		return layerVerdict{}
	case err == errLimit:
		return layerVerdict{state: codingCut}
	case !marked && looksPlain(in):
		return layerVerdict{state: codingFalse}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return layerVerdict{state: codingShort}
	default:
		return layerVerdict{state: codingCorrupt}
	}
}

// looksPlain reports whether b begins like a text rather than like compressed
// data: codings without a mark of their own cannot be told otherwise.
func looksPlain(b []byte) bool { return isText(b[:min(len(b), 256)]) }

// gzipLength is the length that a gzip stream's last four bytes claim, if it is
// a likely one, else a guess.
func gzipLength(in []byte) int64 {
	guess := 4 * int64(len(in))
	if len(in) < 18 {
		return guess
	}
	if n := int64(binary.LittleEndian.Uint32(in[len(in)-4:])); n >= int64(len(in))/2 && n <= 4*guess {
		return n + 1 // room to see the end without growing
	}
	return guess
}

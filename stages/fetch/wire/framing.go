package wire

import "io"

// framing is the chunk framing of a raw body, kept apart from its payload so
// that both are held once: raw is, span after span, the framing up to
// span.framing and then the payload up to span.payload; then the rest of the
// framing and the rest of the payload.
type framing struct {
	bytes []byte
	spans []span
}

// span is where a stretch of framing, and the chunk data after it, end. 32 bits
// do: both are bounded far below.
type span struct{ framing, payload uint32 }

// maxFraming bounds chunk-size lines, extensions and trailers of a body, in
// bytes. Single-byte chunks carry five bytes of framing each.
const maxFraming = 1 << 20

// mark ends a span at the present lengths.
func (f *framing) mark(payload int) {
	f.spans = append(f.spans, span{uint32(len(f.bytes)), uint32(payload)})
}

// parts calls yield with the raw body's consecutive parts, none of them empty.
func (f *framing) parts(payload []byte, yield func([]byte) bool) {
	var last span
	for _, s := range append(f.spans, span{uint32(len(f.bytes)), uint32(len(payload))}) {
		if b := f.bytes[last.framing:s.framing]; len(b) > 0 && !yield(b) {
			return
		}
		if b := payload[last.payload:s.payload]; len(b) > 0 && !yield(b) {
			return
		}
		last = s
	}
}

func (f *framing) writeRaw(w io.Writer, payload []byte) (n int64, err error) {
	f.parts(payload, func(b []byte) bool {
		var m int
		m, err = w.Write(b)
		n += int64(m)
		return err == nil
	})
	return n, err
}

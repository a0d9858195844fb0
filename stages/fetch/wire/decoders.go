package wire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Decoders are kept between bodies: their windows are most of what a small
// body's decoding costs.
var (
	gzipReaders   sync.Pool // *gzip.Reader
	flateReaders  sync.Pool // io.ReadCloser that is a flate.Resetter
	brotliReaders sync.Pool // *brotli.Reader
	zstdReaders   sync.Pool // *zstd.Decoder
)

// maxWindow bounds a zstd frame's window (RFC 9659: 8 MiB for content codings).
const maxWindow = 8 << 20

var gzipMark = []byte{0x1f, 0x8b}

// gzip undoes RFC 1952. Members one after the other count as one body; what
// follows them is skipped, as browsers do.
func (o *output) gzip(in []byte) layerVerdict {
	if !bytes.HasPrefix(in, gzipMark) {
		return layerVerdict{state: codingFalse}
	}
	o.expect(gzipLength(in))
	src := bytes.NewReader(in)
	z, ok := gzipReaders.Get().(*gzip.Reader)
	if !ok {
		z = new(gzip.Reader)
	}
	v := o.gunzip(z, src, in)
	gzipReaders.Put(z)
	return v
}

// gunzip decodes member after member of in, which src reads.
func (o *output) gunzip(z *gzip.Reader, src *bytes.Reader, in []byte) layerVerdict {
	for {
		err := z.Reset(src)
		if err == nil {
			z.Multistream(false)
			err = o.readFrom(z)
		}
		if err == io.EOF { // the header is cut
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return o.verdict(err, in, true)
		}
		rest := in[len(in)-src.Len():]
		if len(rest) == 0 {
			return layerVerdict{}
		}
		if !bytes.HasPrefix(rest, gzipMark) {
			return layerVerdict{trailing: true}
		}
	}
}

// deflate undoes what servers call deflate: RFC 1950 as they should, the bare
// RFC 1951 that many send, or gzip. Checksums are not looked at.
func (o *output) deflate(in []byte) layerVerdict {
	if bytes.HasPrefix(in, gzipMark) && len(in) > 2 && in[2] == 8 {
		return o.gzip(in)
	}
	zlib := len(in) >= 2 && in[0]&0x0f == 8 && in[0]>>4 <= 7 && in[1]&0x20 == 0 && (int(in[0])<<8|int(in[1]))%31 == 0
	if zlib {
		rest, err := o.inflate(in[2:])
		if err == nil {
			return layerVerdict{trailing: rest > 4} // Adler-32
		}
		if err == errLimit || len(o.b) > 0 {
			return o.verdict(err, in, true)
		}
		// Bare deflate may look like a zlib header by chance.
	}
	rest, err := o.inflate(in)
	if err == nil {
		return layerVerdict{trailing: rest > 0}
	}
	v := o.verdict(err, in, false)
	if v.state == codingFalse {
		o.b = o.b[:0]
	}
	return v
}

// inflate undoes RFC 1951 and says how many bytes of input were left.
func (o *output) inflate(in []byte) (rest int, err error) {
	o.expect(4 * int64(len(in)))
	src := bytes.NewReader(in)
	f, ok := flateReaders.Get().(io.ReadCloser)
	if !ok {
		f = flate.NewReader(src)
	} else if err := f.(flate.Resetter).Reset(src, nil); err != nil {
		return len(in), err
	}
	err = o.readFrom(f)
	flateReaders.Put(f)
	return src.Len(), err
}

// brotli undoes RFC 7932, which has no mark to know it by.
func (o *output) brotli(in []byte) layerVerdict {
	o.expect(5 * int64(len(in)))
	src := bytes.NewReader(in)
	b, ok := brotliReaders.Get().(*brotli.Reader)
	if !ok {
		b = brotli.NewReader(src)
	} else if err := b.Reset(src); err != nil {
		return layerVerdict{state: codingCorrupt}
	}
	err := o.readFrom(b)
	brotliReaders.Put(b)
	if err != nil && strings.HasSuffix(err.Error(), "excessive input") {
		// The package does not export this error: the stream was whole.
		if looksPlain(in) {
			return layerVerdict{state: codingFalse}
		}
		return layerVerdict{trailing: true}
	}
	return o.verdict(err, in, false)
}

// zstd undoes RFC 8878, frame after frame.
func (o *output) zstd(in []byte) layerVerdict {
	if len(in) < 4 || !bytes.Equal(in[1:4], []byte{0xb5, 0x2f, 0xfd}) && !bytes.Equal(in[1:4], []byte{0x2a, 0x4d, 0x18}) {
		return layerVerdict{state: codingFalse}
	}
	o.expect(4 * int64(len(in)))
	z, ok := zstdReaders.Get().(*zstd.Decoder)
	if !ok {
		var err error
		// One goroutine, the caller's: nothing to close when the pool drops it.
		if z, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true)); err != nil {
			return layerVerdict{state: codingCorrupt}
		}
	}
	err := z.Reset(bytes.NewReader(in))
	if err == nil {
		err = o.readFrom(z)
	}
	zstdReaders.Put(z)
	if errors.Is(err, zstd.ErrMagicMismatch) && len(o.b) > 0 {
		return layerVerdict{trailing: true}
	}
	return o.verdict(err, in, true)
}

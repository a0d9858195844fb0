package coding

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

// Decoders are reused. Otherwise, allocating their windows would be most of the cost of a small
// body.
var (
	gzipReaders   sync.Pool // *gzip.Reader
	flateReaders  sync.Pool // io.ReadCloser that is a flate.Resetter
	brotliReaders sync.Pool // *brotli.Reader
	zstdReaders   sync.Pool // *zstd.Decoder
)

// maxWindow limits the window of a zstd frame, in bytes. RFC 9659 allows 8 MiB for content codings.
const maxWindow = 8 << 20

var gzipMagic = []byte{0x1f, 0x8b}

// decodeGzip decodes gzip (RFC 1952). All members form one body, and bytes after the last member
// are skipped, as in browsers.
func (o *output) decodeGzip(in []byte) layerVerdict {
	if !bytes.HasPrefix(in, gzipMagic) {
		return layerVerdict{state: stateFalse}
	}
	o.expect(gzipLength(in))
	src := bytes.NewReader(in)
	z, ok := gzipReaders.Get().(*gzip.Reader)
	if !ok {
		z = new(gzip.Reader)
	}
	defer gzipReaders.Put(z)
	var v layerVerdict
	for {
		err := z.Reset(src)
		if err == nil {
			z.Multistream(false)
			err = o.readFrom(z)
		}
		if errors.Is(err, gzip.ErrChecksum) { // all data was read; browsers ignore its checksum and length
			v.checksum, err = true, nil
		}
		if err == io.EOF { // the header is incomplete
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return o.verdict(err, in, true)
		}
		rest := in[len(in)-src.Len():]
		if len(rest) == 0 {
			return v
		}
		if !bytes.HasPrefix(rest, gzipMagic) {
			v.trailing = true
			return v
		}
	}
}

// deflate decodes the three formats that servers call "deflate": RFC 1950, as the standard demands;
// bare RFC 1951, as many servers send; and gzip. It does not verify checksums.
func (o *output) deflate(in []byte) layerVerdict {
	if bytes.HasPrefix(in, gzipMagic) && len(in) > 2 && in[2] == 8 {
		return o.decodeGzip(in)
	}
	zlib := len(in) >= 2 && in[0]&0x0f == 8 && in[0]>>4 <= 7 && in[1]&0x20 == 0 && (int(in[0])<<8|int(in[1]))%31 == 0
	if zlib {
		rest, err := o.inflate(in[2:])
		if err == nil {
			return layerVerdict{trailing: rest > 4} // the four bytes of the Adler-32 checksum may be left
		}
		if err == errLimit || len(o.b) > 0 {
			return o.verdict(err, in, true)
		}
		// Bare deflate may by chance begin like a zlib header.
	}
	rest, err := o.inflate(in)
	if err == nil {
		return layerVerdict{trailing: rest > 0}
	}
	v := o.verdict(err, in, false)
	if v.state == stateFalse {
		o.b = o.b[:0]
	}
	return v
}

// inflate decodes bare deflate (RFC 1951). It returns the number of input bytes after the end of
// the compressed data.
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

// decodeBrotli decodes brotli (RFC 7932), which has no magic number.
func (o *output) decodeBrotli(in []byte) layerVerdict {
	o.expect(5 * int64(len(in)))
	src := bytes.NewReader(in)
	b, ok := brotliReaders.Get().(*brotli.Reader)
	if !ok {
		b = brotli.NewReader(src)
	} else if err := b.Reset(src); err != nil {
		return layerVerdict{state: stateCorrupt}
	}
	err := o.readFrom(b)
	brotliReaders.Put(b)
	if err != nil && strings.HasSuffix(err.Error(), "excessive input") {
		// The stream is complete, but bytes follow it. Package brotli does not export this error.
		if looksPlain(in) {
			return layerVerdict{state: stateFalse}
		}
		return layerVerdict{trailing: true}
	}
	return o.verdict(err, in, false)
}

// decodeZstd decodes all frames of zstd (RFC 8878). It does not verify checksums.
func (o *output) decodeZstd(in []byte) layerVerdict {
	if len(in) < 4 || !bytes.Equal(in[1:4], []byte{0xb5, 0x2f, 0xfd}) && !bytes.Equal(in[1:4], []byte{0x2a, 0x4d, 0x18}) {
		return layerVerdict{state: stateFalse}
	}
	o.expect(4 * int64(len(in)))
	z, ok := zstdReaders.Get().(*zstd.Decoder)
	if !ok {
		var err error
		// The decoder starts no goroutine, so the pool may drop it without a Close.
		if z, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true), zstd.IgnoreChecksum(true)); err != nil {
			return layerVerdict{state: stateCorrupt}
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

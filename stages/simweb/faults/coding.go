package faults

import (
	"bytes"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// codingFaults are responses with an encoded body, whether the client accepts the coding or not.
var codingFaults = []Fault{
	coded("gzip", "gzip", "gzip that nobody asked for", Gzipped),
	coded("x-gzip", "x-gzip", "gzip by its old name", Gzipped),
	coded("gzip-twice", "gzip, gzip", "gzip twice", func(b []byte) []byte { return Gzipped(Gzipped(b)) }),
	coded("gzip-members", "gzip", "gzip in two members", func(b []byte) []byte {
		return append(Gzipped(b[:len(b)/2]), Gzipped(b[len(b)/2:])...)
	}),
	coded("deflate", "deflate", "deflate in a zlib wrapper, as it should be", func(b []byte) []byte {
		return compressed(b, func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) })
	}),
	coded("deflate-raw", "deflate", "deflate without the wrapper", func(b []byte) []byte {
		return compressed(b, func(w io.Writer) io.WriteCloser { return orPanic(flate.NewWriter(w, flate.BestSpeed)) })
	}),
	coded("brotli", "br", "brotli", func(b []byte) []byte {
		return compressed(b, func(w io.Writer) io.WriteCloser { return brotli.NewWriterLevel(w, brotli.BestSpeed) })
	}),
	coded("zstd", "zstd", "zstd", func(b []byte) []byte {
		return compressed(b, func(w io.Writer) io.WriteCloser { return orPanic(zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))) })
	}),
	warned(coded("gzip-trailing", "gzip", "bytes after the gzip", func(b []byte) []byte { return append(Gzipped(b), "\x00\x00<!-- -->"...) })),
	warned(coded("gzip-false", "gzip", "plain text that claims to be gzip", func(b []byte) []byte { return b })),
	{Name: "gzip-bomb", About: "a page, then 64 MiB of white space, in 64 kB of gzip", Class: Quick, Outcome: schema.OK, Status: 200,
		Page: WholePage, Truncated: schema.TruncatedLength, Header: []string{"Content-Encoding", "gzip"},
		Bomb: bombSize, alter: func(r *Response) { r.Body = bomb(r.Body) }},
	{Name: "gzip-truncated", About: "gzip that ends after the main part", Class: Quick, Outcome: schema.OK, Status: 200,
		Page: MainPage, Warning: true, Truncated: schema.TruncatedDisconnect, Header: []string{"Content-Encoding", "gzip"},
		alter: func(r *Response) { r.Body = gzippedTo(r.Body, r.MainEnd) }},
}

func coded(name, coding, about string, encode func([]byte) []byte) Fault {
	f := page(name, about, func(r *Response) { r.Body = encode(r.Body) })
	f.Header = []string{"Content-Encoding", coding}
	return f
}

// orPanic returns v, or panics if err is not nil. That never happens, because only bad options
// cause errors, and all options are constants.
func orPanic[T any](v T, err error) T {
	if err != nil {
		panic("faults: " + err.Error())
	}
	return v
}

func compressed(b []byte, open func(io.Writer) io.WriteCloser) []byte {
	var buf bytes.Buffer
	w := open(&buf)
	_, _ = w.Write(b) // a Buffer never fails
	_ = w.Close()
	return buf.Bytes()
}

func gzipWriter(w io.Writer) *gzip.Writer { return orPanic(gzip.NewWriterLevel(w, gzip.BestSpeed)) }

var gzipWriters = sync.Pool{New: func() any { return gzipWriter(io.Discard) }}

// Gzipped returns b in gzip.
func Gzipped(b []byte) []byte {
	w := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(w)
	return compressed(b, func(to io.Writer) io.WriteCloser {
		w.Reset(to)
		return w
	})
}

// gzippedTo returns the gzip stream of the first n bytes of b, without its end.
func gzippedTo(b []byte, n int) []byte {
	var buf bytes.Buffer
	w := gzipWriter(&buf)
	_, _ = w.Write(b[:n])
	_ = w.Flush()
	return buf.Bytes()
}

// bombSize is the number of spaces after the page in a decompression bomb.
const bombSize = 64 << 20

// bomb returns page in gzip, followed by 64 MiB of spaces in a second member.
func bomb(page []byte) []byte { return append(Gzipped(page), spaces()...) }

var spaces = sync.OnceValue(func() []byte {
	var buf bytes.Buffer
	w := gzipWriter(&buf)
	mebibyte := bytes.Repeat([]byte{' '}, 1<<20)
	for range bombSize >> 20 {
		_, _ = w.Write(mebibyte)
	}
	_ = w.Close()
	return buf.Bytes()
})

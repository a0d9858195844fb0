// Package wiretest makes bodies for tests: pages, noise, and their codings and framings. Only tests
// import it.
package wiretest

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// Page is a short HTML document of 37 bytes.
const Page = "<html><title>a</title><p>hello</html>"

// LongPage is an HTML document of about 23 KB.
var LongPage = "<html>" + strings.Repeat("<p>all work and no play makes jack a dull boy ", 500) + "</html>"

// Noise returns n bytes of text that hardly compresses, the same on each call.
func Noise(n int) string {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(' ' + r.IntN(95))
	}
	return string(b)
}

// Encode returns s in a content coding. "raw deflate" means RFC 1951. Encode panics for an unknown
// coding.
func Encode(coding, s string) string {
	var b bytes.Buffer
	w := map[string]func() io.WriteCloser{
		"gzip":        func() io.WriteCloser { return gzip.NewWriter(&b) },
		"deflate":     func() io.WriteCloser { return zlib.NewWriter(&b) },
		"raw deflate": func() io.WriteCloser { w, _ := flate.NewWriter(&b, -1); return w },
		"br":          func() io.WriteCloser { return brotli.NewWriter(&b) },
		"zstd":        func() io.WriteCloser { w, _ := zstd.NewWriter(&b); return w },
	}[coding]()
	io.WriteString(w, s)
	w.Close()
	return b.String()
}

// Chunks returns s in chunks of n bytes.
func Chunks(s string, n int) string {
	var b strings.Builder
	for len(s) > 0 {
		part := s[:min(n, len(s))]
		s = s[len(part):]
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(part), part)
	}
	return b.String() + "0\r\n\r\n"
}

// Codes returns warnings without their details.
func Codes(warnings []string) []string {
	var out []string
	for _, w := range warnings {
		code, _, _ := strings.Cut(w, ": ")
		out = append(out, code)
	}
	return out
}

package wire

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/http1/wiretest"
)

// BenchmarkDo fetches a page of the mean length of real pages over loopback, plain and
// gzip-encoded, with this package and with net/http. The times include the server's.
func BenchmarkDo(b *testing.B) {
	text := strings.Repeat(wiretest.LongPage, 9)[:186_000]
	for _, enc := range []string{"identity", "gzip"} {
		payload := text
		if enc == "gzip" {
			payload = wiretest.Encode("gzip", text)
		}
		for _, framing := range []string{"length", "chunks"} {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", enc)
				if framing == "chunks" {
					w.(http.Flusher).Flush()
				}
				io.WriteString(w, payload)
			}))
			addr := netip.MustParseAddrPort(srv.Listener.Addr().String())
			b.Run(enc+"/"+framing+"/wire", func(b *testing.B) {
				c := clientTo(b, addr, nil)
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					x, err := c.Do(context.Background(), &Request{URL: "http://host.test/"})
					if err != nil || len(x.Body) != len(text) {
						b.Fatal(err, len(x.Body))
					}
					x.Release()
				}
			})
			b.Run(enc+"/"+framing+"/net-http", func(b *testing.B) {
				c := srv.Client()
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					// net/http does less: it keeps no payload and computes no digest.
					resp, err := c.Get(srv.URL)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := io.ReadAll(resp.Body); err != nil {
						b.Fatal(err)
					}
					resp.Body.Close()
				}
			})
			srv.Close()
		}
	}
}

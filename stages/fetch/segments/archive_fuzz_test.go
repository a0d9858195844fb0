package segments

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// receive reads a response to a GET from an in-memory connection, as the client does.
func receive(t *testing.T, sent []byte, https bool, maxBody int64) (*wire.Exchange, error) {
	server, client := net.Pipe()
	go func() {
		_, _ = server.Write(sent)
		_ = server.Close()
	}()
	defer client.Close() //nolint:errcheck // in memory
	x := &wire.Exchange{RawRequest: []byte("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")}
	m := http1.NewReader(client, &x.Response)
	m.HTTPS, m.MaxHeader, m.MaxBody = https, 8<<10, maxBody
	defer m.Release()
	if err := m.ReadHead(); err != nil {
		return x, err
	}
	_ = m.ReadBody() // an error means that the body is incomplete
	x.Decode(&x.Response, maxBody)
	x.PayloadDigest = string(warc.DigestOf(x.Payload))
	return x, nil
}

// FuzzStoredResponse checks that the audit and the reparse read each stored response as it was fetched: the
// record's payload has the digest of the fetched payload, and a replay gives the same status, fields and body.
func FuzzStoredResponse(f *testing.F) {
	const head, chunked = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n", "Transfer-Encoding: chunked\r\n\r\n"
	for _, s := range []string{
		head + "\r\nhello", head + "Content-Length: 5\r\n\r\nhello, world", head + "Content-Length: 50\r\n\r\nhello",
		head + "Content-Length: 3\r\nContent-Length: 5\r\n\r\nhello", head + "Content-Length: 3, 9\r\n\r\nhello",
		head + chunked + "5\r\nhello\r\n0\r\n\r\n", head + chunked + "0000000000000005\r\nhello\r\n0\r\n\r\n", head + chunked + " 5 \r\nhello\r\n0\r\n\r\n",
		head + chunked + "5\r\nhello1\r\n!0\r\n\r\n", head + chunked + "5\r\nhello\r\nzz", head + chunked + "ff\r\nhello", head + chunked + "hello", head + chunked + "hello\r\n5\r\nabcde",
		head + "Content-Length: 3\r\n" + chunked + "hello", head + "Content-Length: 7\r\n" + chunked + "5\r\nhello\r\n0\r\n\r\n",
		head + "Transfer-Encoding: gzip,\r\n chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", head + "Transfer-Encoding: identity\r\n\r\nhello",
		head + "<!DOCTYPE html>\n\nhello", head + "Content-Length: 3\r\n<!DOCTYPE html>\n\nhello", head + "<html>" + chunked + "5\r\nhello\r\n0\r\n\r\n",
		"HTTP/1.1 102 Processing\r\n\r\n" + head + "\r\nhello", "\r\n\nHTTP/1.1 200\n\nhello", "Status: 404\r\nContent-Type: a/b\r\n\r\nhello", "<html>hello\n\nyou",
		"HTTP/1.1 204 None\r\n\r\nhello", "HTTP/1.1 304 Same\r\nContent-Length: 9\r\n\r\n", head, "HTTP/1.1 200 OK\rA: b\r\rhello", "ICY 200 OK\r\n\r\nhello", "HTTP/1.1 999 x\r\n\r\nhello",
	} {
		f.Add([]byte(s), false, 1000)
		f.Add([]byte(s), true, 4)
	}
	f.Fuzz(func(t *testing.T, sent []byte, https bool, max int) {
		maxBody := int64(16 + max&0xfff) // the first tag of a document fits, as with any fetch.max_body
		x, err := receive(t, sent, https, maxBody)
		defer x.Release()
		if err != nil {
			return
		}
		url := "http://a.test/"
		if https {
			url = "https://a.test/"
		}
		var file bytes.Buffer
		cp := &Capture{Capture: schema.Capture{URLColumns: schema.URLColumns{URL: url}}}
		if _, _, err := compress(&file, &Response{Exchange: x, At: schema.Time(1e15).Time()}, cp, nil); err != nil {
			t.Fatal(err)
		}
		r := warc.NewReader(&file, warc.ReaderOptions{Check: true})
		for _, want := range []warc.Type{warc.Request, warc.Response} {
			e, err := r.Next()
			if err != nil || e.Type != want {
				t.Fatalf("a record of type %v, %v", e, err)
			}
			block := []byte(nil)
			if len(sent)%2 == 0 { // the check gives the same if the caller has read the block
				if block, err = io.ReadAll(e); err != nil {
					t.Fatal(err)
				}
			}
			s, err := e.Finish()
			if err != nil || s.Block != warc.Matches || s.Payload != warc.Matches && s.Payload != warc.Unchecked || s.Payload == warc.Unchecked && want == warc.Response || s.Reading != "" || len(s.Problems) > 0 {
				t.Fatalf("%v: %v, %+v", want, err, s)
			}
			if truncated := e.Header.Get(warc.FieldTruncated); want == warc.Response && truncated != string(x.Truncated) {
				t.Errorf("truncated %q, fetched %q", truncated, x.Truncated)
			}
			if want == warc.Request || block == nil {
				continue
			}
			y, err := wire.Replay(block, https, wire.Limits{MaxBody: maxBody})
			if err != nil || y.Status != x.Status || y.PayloadDigest != x.PayloadDigest || !bytes.Equal(y.Body, x.Body) || strings.Join(y.Codings, " ") != strings.Join(x.Codings, " ") {
				t.Errorf("%v: fetched %d %q, replayed %d %q", err, x.Status, x.Body, y.Status, y.Body)
			}
			y.Release()
		}
	})
}

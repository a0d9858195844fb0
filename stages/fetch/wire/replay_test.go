package wire

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/formats/http1/wiretest"
)

// TestWhatWasKeptReadsAsItDidOnTheWire replays the raw bytes of every readable response in
// badResponses. The replay must give the same result as the fetch.
func TestWhatWasKeptReadsAsItDidOnTheWire(t *testing.T) {
	type told struct {
		Status                      int
		Header                      http1.Header
		Payload, Body, Digest, Kept string
	}
	tell := func(x *Exchange) told {
		return told{x.Status, x.Header, string(x.Payload), string(x.Body), x.PayloadDigest, raw(t, x)}
	}
	replayed := 0
	for _, tt := range badResponses {
		if tt.kind != nil {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			x, err := get(t, clientTo(t, rawServer(t, answer(tt.raw)), nil), "http://host.test/")
			if err != nil {
				t.Fatal(err)
			}
			again, err := Replay([]byte(raw(t, x)), false, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			defer again.Release()
			if d := cmp.Diff(tell(x), tell(again)); d != "" {
				t.Errorf("(-wire +replay)\n%s", d)
			}
			replayed++
		})
	}
	if replayed < 20 {
		t.Errorf("only %d responses were replayed", replayed)
	}
	for _, bad := range []string{"", "SSH-2.0-OpenSSH_9.9\r\n", "HTTP/1.1 20"} {
		x, err := Replay([]byte(bad), false, Limits{})
		if err == nil {
			t.Errorf("%q was read as a response of status %d", bad, x.Status)
		}
		x.Release()
	}
}

func TestReplayIsBounded(t *testing.T) {
	x, err := Replay([]byte("HTTP/1.1 200 OK\r\n\r\n"+string(make([]byte, 5000))), true, Limits{MaxBody: 1000})
	if err != nil || len(x.Payload) != 1000 || x.Truncated != http1.TruncLength {
		t.Errorf("%d bytes, truncated %q, %v", len(x.Payload), x.Truncated, err)
	}
	x.Release()
}

func TestASitemapIsReplayedAsLongAsItMayBe(t *testing.T) {
	body := strings.Repeat("<loc>http://a.test/</loc>", 400)
	zipped := wiretest.Encode("gzip", body)
	head := "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"
	for _, allowed := range []int64{0, 5000, 1 << 20} {
		l := Limits{MaxBody: 2000, Allow: func(x *Exchange, prefix []byte) int64 {
			if x.Status != 200 || !strings.HasPrefix(body, string(prefix)) || len(prefix) == 0 {
				t.Errorf("Allow was called for status %d and prefix %q", x.Status, prefix)
			}
			return allowed
		}}
		want := min(len(body), max(2000, int(allowed)))
		plain, err1 := Replay([]byte("HTTP/1.1 200 OK\r\n\r\n"+body), true, l)
		coded, err2 := Replay([]byte(head+zipped), true, l)
		apart, err3 := ReplayPayload([]byte(head), []byte(zipped), true, l)
		for _, x := range []*Exchange{plain, coded, apart} {
			if len(x.Body) != want || (x.BodyTruncated == http1.TruncLength) != (want < len(body)) {
				t.Errorf("%d allowed: a body of %d bytes, want %d, truncated %q", allowed, len(x.Body), want, x.BodyTruncated)
			}
			x.Release()
		}
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Error(err)
		}
	}
}

// A document may begin inside the head. A replay must find its beginning in the same place, even if
// only a part of the response was stored.
func TestAHeadThatADocumentEndsReadsAgainAsItWas(t *testing.T) {
	for _, in := range []string{
		"Content-Length:1,0\n<html", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n<html>x", "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n<!doctype html>",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n<html>x", "HTTP/1.1 204 OK\r\nA: b\r\n<html>x",
	} {
		for _, https := range []bool{false, true} {
			x, err := Replay([]byte(in), https, Limits{})
			if err != nil {
				t.Fatalf("%q: %v", in, err)
			}
			y, err := Replay([]byte(raw(t, x)), https, Limits{})
			if err != nil || x.Status != y.Status || string(x.Payload) != string(y.Payload) || !slices.Equal(x.Header, y.Header) {
				t.Errorf("%q, https %v: %d %q, and again %d %q, %v", in, https, x.Status, x.Payload, y.Status, y.Payload, err)
			}
			x.Release()
			y.Release()
		}
	}
}

// An archive may store a decoded body under the header fields of the encoded one.
func TestTheEndOfARecordEndsABody(t *testing.T) {
	body := "<!doctype html><p>" + strings.Repeat("a decoded body ", 40)
	zipped := wiretest.Encode("gzip", body)
	head := func(fields ...string) string {
		return "HTTP/1.1 200 OK\r\n" + strings.Join(fields, "\r\n") + "\r\n\r\n"
	}
	for _, tt := range []struct {
		name, head, stored string
		framing            http1.Framing
		body               string
		truncated          http1.Truncation
	}{
		{"by the head", head("Content-Length: 10"), body, http1.ByHead, body[:10], ""},
		{"length too small", head("Content-Length: 10"), body, http1.ByEnd, body, ""},
		{"length of the encoded body", head("Content-Encoding: gzip", "Content-Length: 10"), body, http1.ByEnd, body, ""},
		{"longer length of the encoded body", head("Content-Encoding: br", "Content-Length: 10000"), body, http1.ByEnd, body, ""},
		{"length of zero", head("Content-Length: 0"), body, http1.ByEnd, body, ""},
		{"two lengths", head("Content-Length: 10, 20"), body, http1.ByEnd, body, ""},
		{"invalid length", head("Content-Length: ten"), body, http1.ByEnd, body, ""},
		{"no length", head("Content-Encoding: gzip"), body, http1.ByEnd, body, ""},
		{"encoded, right length", head("Content-Encoding: gzip", "Content-Length: "+strconv.Itoa(len(zipped))), zipped, http1.ByEnd, body, ""},
		{"missing bytes", head("Content-Length: 10000"), body, http1.ByEnd, body, http1.TruncDisconnect},
		{"chunks undone", head("Transfer-Encoding: chunked", "Content-Length: 10"), body, http1.ByEnd, body, ""},
		{"chunks", head("Transfer-Encoding: chunked", "Content-Length: 2"), "5\r\nhello\r\n0\r\n\r\n", http1.ByEnd, "hello", ""},
		{"chunks as stored", head("Transfer-Encoding: chunked"), "5\r\nhello\r\n0\r\n\r\n", http1.Unchunked, "5\r\nhello\r\n0\r\n\r\n", ""},
		{"no body", "HTTP/1.1 204 No Content\r\n\r\n", "", http1.ByEnd, "", ""},
	} {
		x, err := Replay([]byte(tt.head+tt.stored), true, Limits{Framing: tt.framing})
		if err != nil || string(x.Body) != tt.body || x.BodyTruncated != tt.truncated || x.Truncated != tt.truncated {
			t.Errorf("%s: %d bytes, want %d, truncated %q, warnings %q, %v", tt.name, len(x.Body), len(tt.body), x.BodyTruncated, x.Warnings, err)
		}
		x.Release()
	}
}

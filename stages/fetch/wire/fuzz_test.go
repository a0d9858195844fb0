package wire

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"crawlbatch.io/crawlbatch/formats/http1"
)

// fuzzLimits are low enough for the fuzzer to reach them.
const (
	fuzzMaxBody   = 4 << 10
	fuzzMaxHeader = 2 << 10
)

// receive reads one response from r, like Do.
func receive(r io.Reader, method string) (*Exchange, *http1.Reader, error) {
	x := &Exchange{}
	m := http1.NewReader(r, &x.Response)
	m.Method, m.MaxHeader, m.MaxBody = method, fuzzMaxHeader, fuzzMaxBody
	if err := m.ReadHead(); err != nil {
		return x, m, err
	}
	m.ReadBody()
	x.Decode(&x.Response, fuzzMaxBody)
	return x, m, nil
}

// FuzzResponse checks that no input causes a panic or exceeds a limit, and that the result does not
// depend on how the bytes are split into reads. The raw response must be a part of the input.
func FuzzResponse(f *testing.F) {
	for _, r := range badResponses {
		if len(r.raw) < 8<<10 {
			f.Add([]byte(r.raw), false)
		}
	}
	f.Add([]byte("HTTP/1.1 200 OK\r\n\r\n"), true)
	f.Fuzz(func(t *testing.T, in []byte, head bool) {
		method := http.MethodGet
		if head {
			method = http.MethodHead
		}
		x, m, err := receive(bytes.NewReader(in), method)
		y, n, err2 := receive(iotest.OneByteReader(bytes.NewReader(in)), method)
		if (err == nil) != (err2 == nil) {
			t.Fatalf("at once %v, byte by byte %v", err, err2)
		}
		if err != nil {
			return
		}
		if x.Status < 100 || x.Status > 999 || x.Protocol == "" {
			t.Errorf("status %d of %q", x.Status, x.Protocol)
		}
		framing := len(raw(t, x)) - len(x.RawHead) - len(x.Payload)
		if len(x.Payload) > fuzzMaxBody || len(x.Body) > 1<<20 || len(x.RawHead) > fuzzMaxHeader || framing > 1<<20 || len(x.Warnings) > 32 || len(x.Header) > 1024 {
			t.Errorf("beyond a bound: payload %d, body %d, head %d, framing %d, warnings %d, fields %d", len(x.Payload), len(x.Body), len(x.RawHead), framing, len(x.Warnings), len(x.Header))
		}
		for _, h := range x.Header {
			if h.Name == "" || strings.ContainsAny(h.Name+h.Value, "\r\n\x00") {
				t.Errorf("field %q: %q", h.Name, h.Value)
			}
		}
		a, b := raw(t, x), raw(t, y)
		if !bytes.Contains(in, []byte(a)) {
			t.Errorf("raw response %q is not in the input", a)
		}
		if a != b || x.Status != y.Status || !bytes.Equal(x.Payload, y.Payload) || !bytes.Equal(x.Body, y.Body) || x.Truncated != y.Truncated || m.Definite() != n.Definite() {
			t.Errorf("byte by byte the result is another:\n%q\n%q", a, b)
		}
		x.Release()
		y.Release()
	})
}

// FuzzReplay checks that a replayed response equals the stored one, because a reparse reads
// responses from the archive.
func FuzzReplay(f *testing.F) {
	for _, r := range badResponses {
		if r.kind == nil && len(r.raw) < 4<<10 {
			f.Add([]byte(r.raw))
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, https := range []bool{false, true} {
			x, err := Replay(in, https, Limits{MaxBody: fuzzMaxBody})
			defer x.Release()
			if err != nil {
				continue
			}
			y, err := Replay([]byte(raw(t, x)), https, Limits{MaxBody: fuzzMaxBody})
			defer y.Release()
			if err != nil || x.Status != y.Status || !slices.Equal(x.Header, y.Header) || x.PayloadDigest != y.PayloadDigest || !bytes.Equal(x.Body, y.Body) {
				t.Errorf("%v: status %d and %d, payload %q and %q", err, x.Status, y.Status, x.Payload, y.Payload)
			}
			if len(x.Payload) == 0 {
				continue
			}
			z, err := ReplayPayload(x.RawHead, x.Payload, https, Limits{MaxBody: fuzzMaxBody})
			defer z.Release()
			if err != nil || x.Status != z.Status || !slices.Equal(x.Header, z.Header) || x.PayloadDigest != z.PayloadDigest || !bytes.Equal(x.Body, z.Body) {
				t.Errorf("%v: head %q apart from its payload: status %d and %d, body %q and %q", err, x.RawHead, x.Status, z.Status, x.Body, z.Body)
			}
		}
	})
}

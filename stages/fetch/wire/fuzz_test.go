package wire

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// fuzzLimits are small so that the fuzzer meets them.
const (
	fuzzMaxBody   = 4 << 10
	fuzzMaxHeader = 2 << 10
)

// receive reads one response from r as Do would.
func receive(r io.Reader, method string) (*Exchange, *message, error) {
	x := &Exchange{}
	m := &message{source: newSource(r), x: x, method: method, maxHeader: fuzzMaxHeader, maxBody: fuzzMaxBody}
	if err := m.readHead(); err != nil {
		return x, m, err
	}
	m.readBody()
	decoder{maxBody: fuzzMaxBody, maxRatio: 100}.body(x)
	return x, m, nil
}

// FuzzResponse holds for any bytes: no panic, every bound, the raw response a
// part of the input to the byte, and the same result however the bytes arrive.
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
		if len(x.Payload) > fuzzMaxBody || len(x.Body) > freeRatio || len(x.RawHead) > fuzzMaxHeader || len(x.framing.bytes) > maxFraming || len(x.Warnings) > maxWarnings || len(x.Header) > maxFields {
			t.Errorf("beyond a bound: payload %d, body %d, head %d, framing %d, warnings %d, fields %d", len(x.Payload), len(x.Body), len(x.RawHead), len(x.framing.bytes), len(x.Warnings), len(x.Header))
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
		if a != b || x.Status != y.Status || !bytes.Equal(x.Payload, y.Payload) || !bytes.Equal(x.Body, y.Body) || x.Truncated != y.Truncated || m.definite != n.definite {
			t.Errorf("byte by byte the result is another:\n%q\n%q", a, b)
		}
		x.Release()
		y.Release()
	})
}

// FuzzChunks holds that what is framed properly is read back, in any pieces,
// and that anything else is bounded.
func FuzzChunks(f *testing.F) {
	f.Add([]byte("5\r\nhello\r\n0\r\n\r\n"), 3)
	f.Add([]byte("5;x=y\nhello0\n"), 1)
	f.Add([]byte("ffffffffffffffff\r\n"), 100)
	f.Fuzz(func(t *testing.T, in []byte, size int) {
		read := func(s string) (*Exchange, bodyEnd) {
			m := &message{source: newSource(strings.NewReader(s)), x: &Exchange{}, method: http.MethodGet, maxBody: fuzzMaxBody}
			end, _ := m.readChunks(-1)
			return m.x, end
		}
		x, _ := read(string(in))
		if got := raw(t, x); !strings.HasPrefix(string(in), got) || len(x.Payload) > fuzzMaxBody {
			t.Errorf("raw %q, payload of %d bytes", got, len(x.Payload))
		}
		x.Release()
		if len(in) > fuzzMaxBody {
			return
		}
		framed := chunks(string(in), 1+(size&0xfff))
		x, end := read(framed)
		if string(x.Payload) != string(in) || end != endFramed || raw(t, x) != framed {
			t.Errorf("%q became %q", framed, x.Payload)
		}
		x.Release()
	})
}

// FuzzDecode holds that any payload under any codings stays within the limits.
func FuzzDecode(f *testing.F) {
	for _, c := range []string{"gzip", "deflate", "raw deflate", "br", "zstd"} {
		e := encode(f, c, page)
		f.Add([]byte(e), strings.TrimPrefix(c, "raw "))
		f.Add([]byte(e[:len(e)/2]), strings.TrimPrefix(c, "raw "))
	}
	f.Add([]byte(encode(f, "gzip", encode(f, "br", page))), "br, gzip")
	f.Fuzz(func(t *testing.T, payload []byte, field string) {
		if len(payload) > 64<<10 {
			return
		}
		before := string(payload)
		x := decode(before, field, decoder{maxBody: 64 << 10, maxRatio: 100})
		if len(x.Body) > 64<<10 && len(x.Codings) > 0 || string(x.Payload) != before {
			t.Errorf("%d bytes decoded to %d", len(payload), len(x.Body))
		}
		if len(x.Codings) == 0 && string(x.Body) != before {
			t.Error("nothing was undone and the body is another")
		}
		x.Release()
	})
}

// FuzzTarget holds that whatever is accepted makes one request line and one
// Host field.
func FuzzTarget(f *testing.F) {
	for _, s := range []string{"http://example.org/a?b#c", "https://u:p@[::1]:8443/ü", "http://0x7f.1/", "http://a.b\r\nc/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		g, err := parseTarget(s)
		if err != nil {
			return
		}
		r := Request{URL: s}
		lines := strings.Split(string(r.appendTo(nil, g, "", false)), "\r\n")
		if len(lines) != 6 || strings.Count(lines[0], " ") != 2 || !strings.HasPrefix(lines[1], "Host: ") || strings.ContainsAny(strings.Join(lines, ""), "\r\n\x00") {
			t.Errorf("%q makes %q", s, lines)
		}
		again, err := parseTarget(g.scheme() + "://" + g.authority() + g.path)
		if err != nil || again != g {
			t.Errorf("%q is %+v, and again %+v, %v", s, g, again, err)
		}
	})
}

// FuzzHeaders holds that header lines become fields that no line break, NUL or
// colon can turn into others, and that what is written from them is read back the same.
func FuzzHeaders(f *testing.F) {
	for _, s := range []string{
		"Content-Type: text/html\r\nSet-Cookie: a=b\r\n\r\n", "A: b\r\n c\r\n\td\r\n\r\n", "no colon\r\n: no name\r\nA : b\r\n\r\n",
		"X: a\x00b\rc\r\n\r\n", "A: b\nC: d\n\n", "Location: //\xe9%\r\nLocation: \\x\r\n\r\n", "A: b\r\nB",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, head string) {
		parse := func(head string) *Exchange {
			x := &Exchange{Status: 302}
			m := &message{x: x}
			m.parseFields(head)
			x.checkLocation()
			return x
		}
		x := parse(head)
		if len(x.Header) > maxFields || len(x.Warnings) > maxWarnings {
			t.Fatalf("%d fields, %d warnings", len(x.Header), len(x.Warnings))
		}
		var again strings.Builder
		for _, h := range x.Header {
			if h.Name == "" || strings.ContainsAny(h.Name, ":\r\n\x00") || strings.ContainsAny(h.Value, "\r\n\x00") || h.Name != strings.Trim(h.Name, " \t") {
				t.Fatalf("field %q: %q", h.Name, h.Value)
			}
			again.WriteString(h.Name + ": " + h.Value + "\r\n")
		}
		again.WriteString("\r\n")
		y := parse(again.String())
		if !slices.Equal(x.Header, y.Header) {
			t.Fatalf("%q\nbecame %q\nand then %q", head, x.Header, y.Header)
		}
		for _, w := range y.Warnings {
			if !strings.HasPrefix(w, WarnLocation) {
				t.Errorf("what was made clean has the warning %q", w)
			}
		}
	})
}

// FuzzReplay holds a response that was kept to being read again as it was: that is
// how documents are parsed from their archive.
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

package http1

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/http1/wiretest"
)

// These limits are low enough for the fuzzer to reach them.
const (
	fuzzMaxBody    = 4 << 10
	fuzzMaxFraming = 64
)

// raw is the response as received.
func raw(r *Response) string {
	var b strings.Builder
	for part := range r.RawParts {
		b.Write(part)
	}
	return b.String()
}

// FuzzChunks checks that well-framed chunks are read back, in pieces of any length, and that any
// other input stays within the limits.
func FuzzChunks(f *testing.F) {
	f.Add([]byte("5\r\nhello\r\n0\r\n\r\n"), 3)
	f.Add([]byte("5;x=y\nhello0\n"), 1)
	f.Add([]byte("ffffffffffffffff\r\n"), 100)
	f.Fuzz(func(t *testing.T, in []byte, size int) {
		read := func(s string, framing int) (*Response, bodyEnd) {
			m := NewReader(strings.NewReader(s), &Response{})
			m.MaxBody, m.maxFraming = fuzzMaxBody, framing
			end, _ := m.readChunks(-1)
			return m.r, end
		}
		x, _ := read(string(in), fuzzMaxFraming)
		if got, n := raw(x), len(x.framing.bytes); !strings.HasPrefix(string(in), got) || n > fuzzMaxFraming+2 || len(x.Payload) > fuzzMaxBody {
			t.Errorf("raw %q, framing of %d bytes, payload of %d bytes", got, n, len(x.Payload))
		}
		x.Release()
		x, _ = read(string(in), maxFraming)
		if got := raw(x); !strings.HasPrefix(string(in), got) || len(x.Payload) > fuzzMaxBody {
			t.Errorf("raw %q, payload of %d bytes", got, len(x.Payload))
		}
		x.Release()
		if len(in) > fuzzMaxBody {
			return
		}
		framed := wiretest.Chunks(string(in), 1+(size&0xfff))
		x, end := read(framed, maxFraming)
		if string(x.Payload) != string(in) || end != endFramed || raw(x) != framed {
			t.Errorf("%q became %q", framed, x.Payload)
		}
		x.Release()
	})
}

// FuzzTarget checks that every accepted URL gives exactly one request line and one Host field.
func FuzzTarget(f *testing.F) {
	for _, s := range []string{"http://example.org/a?b#c", "https://u:p@[::1]:8443/ü", "http://0x7f.1/", "http://a.b\r\nc/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		g, err := ParseTarget(s)
		if err != nil {
			return
		}
		r := Request{Method: http.MethodGet, Target: g}
		lines := strings.Split(string(r.AppendTo(nil)), "\r\n")
		if len(lines) != 6 || strings.Count(lines[0], " ") != 2 || !strings.HasPrefix(lines[1], "Host: ") || strings.ContainsAny(strings.Join(lines, ""), "\r\n\x00") {
			t.Errorf("%q makes %q", s, lines)
		}
		again, err := ParseTarget(g.scheme() + "://" + g.authority() + g.path)
		if err != nil || again != g {
			t.Errorf("%q is %+v, and again %+v, %v", s, g, again, err)
		}
	})
}

// FuzzHeaders checks that a line break, NUL or colon in a header line creates no other fields, and
// that written fields are read back unchanged.
func FuzzHeaders(f *testing.F) {
	for _, s := range []string{
		"Content-Type: text/html\r\nSet-Cookie: a=b\r\n\r\n", "A: b\r\n c\r\n\td\r\n\r\n", "no colon\r\n: no name\r\nA : b\r\n\r\n",
		"X: a\x00b\rc\r\n\r\n", "A: b\nC: d\n\n", "Location: //\xe9%\r\nLocation: \\x\r\n\r\n", "A: b\r\nB",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, head string) {
		parse := func(head string) *Response {
			x := &Response{Status: 302}
			m := &Reader{r: x}
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

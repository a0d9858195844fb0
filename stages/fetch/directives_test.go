package fetch

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/directives"
	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/stages"
)

// obedient is a parser that reads robots directives in the same way as the real parser.
type obedient struct{ plainParser }

func (p obedient) Parse(d *document.Document) (*document.Parsed, error) {
	out, err := p.plainParser.Parse(d)
	if err != nil {
		return nil, err
	}
	var r directives.Robots
	for _, v := range d.Header("X-Robots-Tag") {
		r.Field(v, "labbot")
	}
	if bytes.Contains(d.Body, []byte("noarchive")) {
		r.Meta("noarchive")
	}
	var s directives.Signals
	for _, v := range d.Header("Content-Signal") {
		s.Add(v)
	}
	out.Text.NoArchive, out.Page.Robots, out.Page.ContentSignal = r.NoArchive, r.String(), s.String()
	return out, nil
}

// record reads a capture's WARC record. It returns the entry, the record's block, and a summary
// with verified digests.
func (l *lab) record(c *schema.CaptureColumns) (*warc.Entry, string, warc.Summary) {
	l.t.Helper()
	obj, err := l.bucket.Open(l.t.Context(), c.WARCFilename)
	if err != nil {
		l.t.Fatal(err)
	}
	defer obj.Close() //nolint:errcheck // read only
	r := warc.NewReader(io.NewSectionReader(obj, int64(c.WARCRecordOffset), int64(c.WARCRecordLength)), warc.ReaderOptions{Check: true})
	e, err := r.Next()
	if err != nil {
		l.t.Fatal(err)
	}
	block, err := io.ReadAll(e)
	if err != nil {
		l.t.Fatal(err)
	}
	s, err := e.Finish()
	if err != nil {
		l.t.Fatal(err)
	}
	return e, string(block), s
}

func TestOfWhatSaysNoarchiveNoByteIsKept(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			switch r.URL.Path {
			case "/robots.txt":
				w.Header().Set("X-Robots-Tag", "noarchive") // ignored for a robots.txt, which must be kept to prove what was allowed
				fmt.Fprint(w, "User-agent: *\nDisallow: /no\n")
				return
			case "/field":
				w.Header().Add("X-Robots-Tag", "noindex")
				w.Header().Add("x-robots-tag", "otherbot: nofollow, LabBot: NoArchive")
			case "/others":
				w.Header().Set("X-Robots-Tag", "otherbot: noarchive")
			case "/element":
				fmt.Fprint(w, "<p>noarchive ")
			case "/missing":
				w.Header().Set("X-Robots-Tag", "noarchive")
				w.WriteHeader(404)
			case "/chunked":
				w.Header().Set("X-Robots-Tag", "noarchive")
				fmt.Fprint(w, "<p>")
				w.(http.Flusher).Flush()
			case "/empty":
				w.Header().Set("X-Robots-Tag", "noarchive")
				return
			}
			fmt.Fprint(w, "the secret")
		}, "http://a.com/field", "http://a.com/others", "http://a.com/element", "http://a.com/missing", "http://a.com/chunked", "http://a.com/empty")
		l.parser = obedient{}
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		withheld := map[string]bool{"/field": true, "/element": true, "/missing": true, "/chunked": true}
		captures := rowsOf[schema.Capture](l, r, stages.FileCaptures)
		if len(captures) != 7 {
			t.Fatalf("%d captures", len(captures))
		}
		for _, c := range captures {
			e, block, s := l.record(&c.CaptureColumns)
			payload := warc.Digest(e.Header.Get(warc.FieldPayloadDigest)).Value()
			if withheld[c.Path] && (payload != "" || c.ContentDigest == "") || !withheld[c.Path] && payload != c.ContentDigest || s.Block != warc.Matches {
				t.Errorf("%s: digest %s, its row says %s; block %s", c.URL, payload, c.ContentDigest, s.Block)
			}
			kept := strings.Contains(block, "secret") || strings.Contains(block, "Disallow") || c.Path == "/empty"
			if !withheld[c.Path] {
				if !kept || c.Truncated != "" || e.Header.Get(warc.FieldTruncated) != "" || s.Payload != warc.Matches {
					t.Errorf("%s: kept %t, content_truncated %q, payload %s", c.URL, kept, c.Truncated, s.Payload)
				}
				continue
			}
			if kept || !strings.HasSuffix(block, "\r\n\r\n") || !strings.HasPrefix(block, "HTTP/1.1 ") {
				t.Errorf("%s: more or less than the head is kept: %q", c.URL, block)
			}
			if c.Truncated != schema.TruncatedUnspecified || e.Header.Get(warc.FieldTruncated) != "unspecified" || s.Payload != warc.Withheld {
				t.Errorf("%s: content_truncated %q, WARC-Truncated %q, payload %s", c.URL, c.Truncated, e.Header.Get(warc.FieldTruncated), s.Payload)
			}
		}
		for u, f := range l.outcomes(r) {
			want := ""
			if withheld[strings.TrimPrefix(u, "http://a.com")] {
				want = schema.TruncatedUnspecified
			}
			if f.Truncated != want || f.ContentDigest == "" {
				t.Errorf("%s: content_truncated %q, want %q; digest %q", u, f.Truncated, want, f.ContentDigest)
			}
		}
	})
}

func TestKeepNoArchiveStoresWholeResponses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Robots-Tag", "noarchive")
			fmt.Fprint(w, "the secret")
		}, "http://a.com/")
		l.parser, l.cfg.KeepNoArchive = obedient{}, true
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range rowsOf[schema.Capture](l, r, stages.FileCaptures) {
			if _, block, s := l.record(&c.CaptureColumns); !strings.Contains(block, "secret") || c.Truncated != "" || s.Payload != warc.Matches {
				t.Errorf("%s: content_truncated %q, payload %s, %q", c.URL, c.Truncated, s.Payload, block)
			}
		}
	})
}

func TestContentSignalsOfRobotsAndHeaderAreRecorded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				fmt.Fprint(w, "User-agent: *\nContent-Signal: search=yes, ai-train=yes\nContent-Signal: /b ai-train=no\nDisallow: /no\n")
				return
			}
			if r.URL.Path == "/c" {
				w.Header().Set("Content-Signal", "search=no, ai-input=yes")
			}
			page(w, r)
		}, "http://a.com/a", "http://a.com/b", "http://a.com/c")
		l.parser = obedient{}
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{
			"http://a.com/a": "ai-train=yes,search=yes", "http://a.com/b": "ai-train=no,search=yes",
			"http://a.com/c": "ai-input=yes,ai-train=yes,search=no",
		}
		for _, p := range rowsOf[schema.Page](l, r, stages.FilePages) {
			if p.ContentSignal != want[p.URL] {
				t.Errorf("%s: %q, want %q", p.URL, p.ContentSignal, want[p.URL])
			}
		}
	})
}

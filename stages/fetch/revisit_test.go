package fetch

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
)

// recordAt reads a record from the store and returns its header and its block.
func (l *lab) recordAt(file string, offset, length int32) (h *warc.Entry, block string) {
	l.t.Helper()
	obj, err := l.bucket.Open(l.t.Context(), file)
	if err != nil {
		l.t.Fatal(err)
	}
	defer obj.Close()
	e, err := warc.ReadAt(obj, warc.Extent{Offset: int64(offset), Length: int64(length)}, warc.ReaderOptions{Check: true})
	if err != nil {
		l.t.Fatal(err)
	}
	b, err := io.ReadAll(e)
	if err != nil {
		l.t.Fatal(err)
	}
	return e, string(b)
}

// A plan says where the content of the previous month is stored. If the server answers 304 or the
// digest is equal, the content has not changed. The response then becomes a revisit of that record.
func TestUnchangedContentIsARevisitOfItsRecord(t *testing.T) {
	long := strings.Repeat("<p>always the same", 100)
	var conditions []string
	changed := false
	handler := noRobots(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		switch {
		case r.URL.Path == "/tagged":
			conditions = append(conditions, r.Header.Get("If-None-Match"))
			w.Header().Set("ETag", `"v1"`)
			if r.Header.Get("If-None-Match") == `"v1"` {
				w.WriteHeader(http.StatusNotModified)
				return
			}
		case r.URL.Path == "/changed" && changed:
			fmt.Fprint(w, "<p>news")
			return
		case r.URL.Path == "/unasked" && changed:
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprint(w, "<p>", r.URL.Path, long)
	})
	list := []string{"http://a.com/tagged", "http://a.com/plain", "http://a.com/changed", "http://a.com/unasked", "http://a.com/aged"}
	bubble(t, func(t *testing.T) {
		l := newLab(t, handler, list...)
		first, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		before := l.outcomes(first)
		time.Sleep(30 * 24 * time.Hour)
		changed = true
		rows := planRows(t, list)
		for i := range rows {
			f := before[rows[i].URL]
			r := &rows[i]
			r.Fetches, r.ContentDigest, r.ETag = 1, f.ContentDigest, f.ETag
			r.ContentAt, r.WARCFilename, r.WARCRecordOff, r.WARCRecordLen = f.FetchedAt, f.WARCFilename, f.WARCRecordOff, f.WARCRecordLen
			if r.URL == "http://a.com/aged" {
				r.ContentAt = r.ContentAt.Add(-segments.MaxPayloadAge)
			}
		}
		l.task.Round = 1
		l.setPlanAt(rows, "p2")
		second, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		after := l.outcomes(second)
		l.checkCaptures(second)
		wants := map[string]struct {
			outcome schema.Outcome
			revisit schema.Revisit
			profile string
			page    bool
		}{
			"http://a.com/tagged":  {schema.NotModified, schema.RevisitNotModified, warc.ProfileNotModified, false},
			"http://a.com/plain":   {schema.OK, schema.RevisitIdentical, warc.ProfileIdenticalPayload, true},
			"http://a.com/changed": {schema.OK, "", "", true},
			"http://a.com/unasked": {schema.ProtocolError, "", "", false},
			"http://a.com/aged":    {schema.OK, "", "", true},
		}
		captures := map[string]schema.Capture{}
		for _, c := range rowsOf[schema.Capture](l, second, stages.FileCaptures) {
			captures[c.URL] = c
		}
		pages := map[string]schema.Page{}
		for _, p := range rowsOf[schema.Page](l, second, stages.FilePages) {
			pages[p.URL] = p
		}
		for u, want := range wants {
			f, c, old := after[u], captures[u], before[u]
			if f.Outcome != want.outcome || f.Revisit != want.revisit || c.Revisit != want.revisit {
				t.Errorf("%s: outcome %s, revisit %q and %q (error %q); want %s, %q", u, f.Outcome, f.Revisit, c.Revisit, f.Error, want.outcome, want.revisit)
			}
			p, ok := pages[u]
			if ok != want.page {
				t.Errorf("%s: has a page: %t, want %t", u, ok, want.page)
			}
			if ok { // the page's offset points to the payload, as DuckDB users expect
				if e, block := l.recordAt(p.WARCFilename, p.WARCRecordOffset, p.WARCRecordLength); e.Type != warc.Response || !strings.Contains(block, "<p>") {
					t.Errorf("%s: the page points to a %s: %.40q", u, e.Type, block)
				}
			}
			if want.revisit == "" {
				continue
			}
			if c.ContentDigest != old.ContentDigest || f.ContentDigest != old.ContentDigest {
				t.Errorf("%s: digest %s in captures and %s in fetches, want %s", u, c.ContentDigest, f.ContentDigest, old.ContentDigest)
			}
			if c.PayloadFilename != old.WARCFilename || c.PayloadRecordOff != old.WARCRecordOff || c.PayloadRecordLen != old.WARCRecordLen {
				t.Errorf("%s: the row names the payload at %d of %s, but it is at %d of %s", u, c.PayloadRecordOff, c.PayloadFilename, old.WARCRecordOff, old.WARCFilename)
			}
			e, block := l.recordAt(c.WARCFilename, c.WARCRecordOffset, c.WARCRecordLength)
			origin, _ := l.recordAt(old.WARCFilename, old.WARCRecordOff, old.WARCRecordLen)
			if head, body, ok := strings.Cut(block, "\r\n\r\n"); !ok || body != "" || !strings.HasPrefix(head, fmt.Sprint("HTTP/1.1 ", c.FetchStatus)) {
				t.Errorf("%s: the block of the revisit is %q", u, block)
			}
			for name, want := range map[string]string{
				warc.FieldProfile: want.profile, warc.FieldRefersToURI: u, warc.FieldRefersToDate: origin.Header.Get(warc.FieldDate),
				warc.FieldPayloadDigest: origin.Header.Get(warc.FieldPayloadDigest),
			} {
				if got := e.Header.Get(name); got != want || want == "" {
					t.Errorf("%s: %s: %s, want %s", u, name, got, want)
				}
			}
		}
		if len(conditions) != 2 || conditions[0] != "" || conditions[1] != `"v1"` {
			t.Errorf("conditions %q", conditions)
		}
	})
}

// A task stores each payload once, even if several URLs answer with it.
func TestAPayloadOfManyURLsIsStoredOnce(t *testing.T) {
	long := strings.Repeat("<p>the same everywhere", 100)
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			if r.URL.Path == "/p03" {
				w.WriteHeader(http.StatusNotFound) // the status does not matter
			}
			if strings.HasPrefix(r.URL.Path, "/p0") {
				fmt.Fprint(w, long)
				return
			}
			fmt.Fprint(w, "<p>short") // too short: a revisit would be longer
		}), urls("a.com", 13)...)
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		l.checkCaptures(r)
		var origin schema.Capture
		revisits := 0
		for _, c := range rowsOf[schema.Capture](l, r, stages.FileCaptures) {
			switch {
			case c.Revisit != "":
				revisits++
				e, block := l.recordAt(c.PayloadFilename, c.PayloadRecordOff, c.PayloadRecordLen)
				if e.Type != warc.Response || !strings.HasSuffix(block, long+"\r\n0\r\n\r\n") && !strings.HasSuffix(block, long) {
					t.Errorf("%s: the record named for the payload is a %s: %.60q", c.URL, e.Type, block)
				}
				own, _ := l.recordAt(c.WARCFilename, c.WARCRecordOffset, c.WARCRecordLength)
				if got := own.Header.Get(warc.FieldRefersTo); got != "<"+e.ID()+">" && got != e.ID() || own.Header.Get(warc.FieldRefersToURI) != e.TargetURI() {
					t.Errorf("%s refers to %s of %s, want %s", c.URL, got, own.Header.Get(warc.FieldRefersToURI), e.ID())
				}
				if own.Header.Get(warc.FieldTruncated) != "length" || c.Truncated != "" {
					t.Errorf("%s: WARC-Truncated %q, content_truncated %q", c.URL, own.Header.Get(warc.FieldTruncated), c.Truncated)
				}
			case strings.Contains(c.URL, "/p0"):
				if origin.URL != "" {
					t.Errorf("both %s and %s hold the payload", origin.URL, c.URL)
				}
				origin = c
			}
		}
		if revisits != 9 || origin.URL == "" {
			t.Errorf("%d revisits of %q, want 9", revisits, origin.URL)
		}
		for _, p := range rowsOf[schema.Page](l, r, stages.FilePages) {
			if strings.Contains(p.URL, "/p0") && (p.WARCRecordOffset != origin.WARCRecordOffset || p.WARCFilename != origin.WARCFilename) {
				t.Errorf("%s points to %d, the payload is at %d", p.URL, p.WARCRecordOffset, origin.WARCRecordOffset)
			}
		}
	})
}

// A noarchive page is not stored, so no revisit may refer to it, in this crawl or the next.
func TestNothingRefersToWhatIsNotKept(t *testing.T) {
	long := strings.Repeat("<p>the same everywhere", 100)
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			if r.URL.Path == "/p00" || r.URL.Path == "/p02" {
				w.Header().Set("X-Robots-Tag", "noarchive")
			}
			fmt.Fprint(w, long)
		}), urls("a.com", 4)...)
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		fetches := l.outcomes(r)
		for path, want := range map[string]struct {
			revisit   schema.Revisit
			truncated string
		}{
			"/p00": {"", schema.TruncatedUnspecified}, "/p01": {"", ""},
			"/p02": {"", schema.TruncatedUnspecified}, "/p03": {schema.RevisitIdentical, ""},
		} {
			if f := fetches["http://a.com"+path]; f.Revisit != want.revisit || f.Truncated != want.truncated || f.Outcome != schema.OK {
				t.Errorf("%s: %s, revisit %q, truncated %q; want %+v", path, f.Outcome, f.Revisit, f.Truncated, want)
			}
		}
		for _, c := range rowsOf[schema.Capture](l, r, stages.FileCaptures) {
			if c.PayloadFilename == "" {
				continue
			}
			if e, block := l.recordAt(c.PayloadFilename, c.PayloadRecordOff, c.PayloadRecordLen); e.TargetURI() != "http://a.com/p01" || !strings.Contains(block, long) {
				t.Errorf("%s refers to %s", c.URL, e.TargetURI())
			}
		}
	})
}

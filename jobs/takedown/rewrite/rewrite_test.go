package rewrite

import (
	"bytes"
	"context"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/klauspost/compress/gzip"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/takedown"
	"crawlbatch.io/crawlbatch/formats/urlfilter"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/stages"
)

// lab is a store with files, and a Rewriter that takes down gone.test and one URL of kept.test.
type lab struct {
	*testing.T
	ctx context.Context
	b   store.Bucket
	r   *Rewriter
}

func newLab(t *testing.T) *lab {
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := takedown.New([]string{"http://kept.test/gone"}, []string{"gone.test"})
	if err != nil {
		t.Fatal(err)
	}
	return &lab{t, t.Context(), b, &Rewriter{Bucket: b, Matcher: m, Scratch: t.TempDir(), Removed: map[string]map[int64]struct{}{}}}
}

// put stores rows as a file.
func put[T any](l *lab, dataset, key string, rows ...T) manifest.File {
	l.Helper()
	seq := iter.Seq2[T, error](func(yield func(T, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	})
	local, err := table.WriteFile(filepath.Join(l.TempDir(), "f.parquet"), seq, table.SortedBy("url"))
	if err != nil {
		l.Fatal(err)
	}
	f, err := table.Commit(l.ctx, l.b, local, dataset, key)
	if err != nil {
		l.Fatal(err)
	}
	return f
}

func (l *lab) rewrite(f manifest.File) *Rewritten {
	l.Helper()
	w, err := l.r.File(l.ctx, &f)
	if err != nil {
		l.Fatal(err)
	}
	return w
}

// rows returns the rows of new content, which is put in the place of the old content.
func rows[T any](l *lab, w *Rewritten) (rows []T) {
	l.Helper()
	if w == nil {
		l.Fatal("the file did not change")
	}
	l.swap(w)
	for r, err := range table.Concat[T](l.ctx, l.b, []string{w.File.Key}) {
		if err != nil {
			l.Fatal(err)
		}
		rows = append(rows, r)
	}
	if int64(len(rows)) != w.File.Rows {
		l.Errorf("%d rows, but File says %d", len(rows), w.File.Rows)
	}
	return rows
}

func (l *lab) swap(w *Rewritten) {
	l.Helper()
	body, err := os.ReadFile(w.Path)
	if err != nil {
		l.Fatal(err)
	}
	if got := manifest.Digest(body); got != w.File.SHA256 || int64(len(body)) != w.File.Bytes {
		l.Errorf("the new content of %s has digest %s and %d bytes, but File says %s and %d", w.File.Key, got, len(body), w.File.SHA256, w.File.Bytes)
	}
	_, old, err := l.b.Get(l.ctx, w.File.Key, 1<<30)
	if err == nil {
		_, err = store.SwapBytes(l.ctx, l.b, w.File.Key, body, old)
	}
	if err != nil {
		l.Fatal(err)
	}
}

func TestRowsOfATargetGoAndReferencesBecomeNull(t *testing.T) {
	l := newLab(t)
	key := layout.Table(stages.FileFetches, "2026-11", 0, 3)
	l.r.DroppedRows = func(crawl string, round, partition int) []int32 {
		if crawl != "2026-11" || round != 0 || partition != 3 {
			t.Errorf("asked for the plan of %s, round %d, partition %d", crawl, round, partition)
		}
		return []int32{0, 2}
	}
	w := l.rewrite(put(l, stages.FileFetches, key,
		schema.Fetch{URL: "http://www.gone.test/", SURT: "test,gone)/", Host: "www.gone.test", Domain: "gone.test", PlannedRow: 0},
		schema.Fetch{URL: "http://kept.test/", SURT: "test,kept)/", Host: "kept.test", Domain: "kept.test", PlannedRow: 1, RedirectTarget: "http://gone.test/a", RobotsRule: "Disallow: /gone.test"},
		schema.Fetch{URL: "http://kept.test/gone", SURT: "test,kept)/gone", Host: "kept.test", Domain: "kept.test", PlannedRow: 2},
		schema.Fetch{URL: "http://notgone.test/", SURT: "test,notgone)/", Host: "notgone.test", Domain: "notgone.test", PlannedRow: 3, FinalURL: "http://gone.test.kept.test/"},
	))
	want := []schema.Fetch{
		{URL: "http://kept.test/", SURT: "test,kept)/", Host: "kept.test", Domain: "kept.test", PlannedRow: 0, RobotsRule: "Disallow: /gone.test"},
		{URL: "http://notgone.test/", SURT: "test,notgone)/", Host: "notgone.test", Domain: "notgone.test", PlannedRow: 1, FinalURL: "http://gone.test.kept.test/"},
	}
	if diff := cmp.Diff(want, rows[schema.Fetch](l, w)); diff != "" {
		t.Error(diff)
	}
	if w.Dropped != 2 || w.Cleared != 1 || w.Adjusted != 1 || w.Mentions != 1 {
		t.Errorf("%d rows dropped, %d cleared, %d adjusted, %d mentions; want 2, 1, 1, 1", w.Dropped, w.Cleared, w.Adjusted, w.Mentions)
	}
}

// A row is about its canonical URL, in whatever form it was asked for. A name may be given in any form.
func TestAURLGoesInWhateverFormItWasSent(t *testing.T) {
	l := newLab(t)
	crawl, err := urlkey.New([]string{"utm_*"})
	if err != nil {
		t.Fatal(err)
	}
	if l.r.Matcher, err = takedown.New([]string{"HTTP://Kept.test:80/x/../%67one?b=2&a=1&utm_source=mail#f"}, []string{"gone.test"}, crawl); err != nil {
		t.Fatal(err)
	}
	const url = "http://kept.test/gone?a=1&b=2"
	for _, sent := range []string{"", "http://kept.test/gone?b=2&a=1", "http://kept.test/%67one?a=1&b=2", "http://kept.test/gone?a=1&&b=2", "http://kept.test/gone?utm_source=x&a=1&b=2"} {
		var request schema.Request
		var record schema.URLRecord
		var planned schema.PlannedRow
		var fetch schema.Fetch
		request.URL, request.Host, request.Sent = url, "kept.test", sent
		record.URL, record.Host, record.Form = url, "kept.test", schema.Form{Sent: sent, SentFrom: schema.SentByDomain}
		planned.URL, planned.Host, planned.Form = url, "kept.test", record.Form
		fetch.URL, fetch.Host, fetch.Form = url, "kept.test", record.Form
		capture := schema.Capture{URLColumns: schema.URLColumns{URL: url}, CaptureColumns: schema.CaptureColumns{Sent: sent}}
		link := schema.Link{Source: "http://kept.test/", Target: url, Sent: sent}
		for _, w := range []*Rewritten{
			l.rewrite(put(l, stages.FileRequests, layout.Table(stages.FileRequests, "2026-11", 0, 0), request)),
			l.rewrite(put(l, stages.FileURLs, layout.Table(stages.FileURLs, "2026-11", 0, 0), record)),
			l.rewrite(put(l, stages.FileFetches, layout.Table(stages.FileFetches, "2026-11", 0, 0), fetch)),
			l.rewrite(put(l, stages.FileLinks, layout.Table(stages.FileLinks, "2026-11", 0, 0), link)),
			l.rewrite(put(l, stages.FileCaptures, layout.Table(stages.FileCaptures, "2026-11", 0, 0), capture)),
			l.rewrite(put(l, planPart, layout.PlanPart("2026-11", 0, "id", 0), planned)),
		} {
			if w == nil || w.Dropped != 1 || w.File.Rows != 0 {
				t.Errorf("sent as %q: %+v, want no row", sent, w)
			}
		}
		l.b = newLab(t).b
		l.r.Bucket = l.b
	}
	// The rows of others keep their forms, except the form of what they refer to.
	var kept schema.Fetch
	kept.URL, kept.Host, kept.Domain, kept.Form = "http://kept.test/gone?a=1&b=3", "kept.test", "kept.test", schema.Form{Sent: "http://kept.test/gone?b=3&a=1", SentFrom: schema.SentByStranger}
	away := kept
	away.RedirectTarget, away.RedirectSent = url, "http://kept.test/gone?b=2&a=1"
	if diff := cmp.Diff([]schema.Fetch{kept}, rows[schema.Fetch](l, l.rewrite(put(l, stages.FileFetches, layout.Table(stages.FileFetches, "2026-11", 0, 1), away)))); diff != "" {
		t.Error(diff)
	}
}

// The SURT keys of different URLs may be the same: they have no "www.", no capital letters and no double slashes.
func TestOtherURLsWithTheSameSURTStay(t *testing.T) {
	l := newLab(t)
	var err error
	if l.r.Matcher, err = takedown.New([]string{"http://kept.test/Page", "http://kept.test/"}, []string{"www.gone.test"}); err != nil {
		t.Fatal(err)
	}
	fetch := func(url, surt, host, domain string) schema.Fetch {
		return schema.Fetch{URL: url, SURT: surt, Host: host, Domain: domain}
	}
	bare, lower, www := fetch("http://gone.test/", "test,gone)/", "gone.test", "gone.test"),
		fetch("http://kept.test/page", "test,kept)/page", "kept.test", "kept.test"), fetch("http://www.kept.test/", "test,kept)/", "www.kept.test", "kept.test")
	w := l.rewrite(put(l, stages.FileFetches, layout.Table(stages.FileFetches, "2026-11", 0, 3), bare,
		fetch("http://www.gone.test/", "test,gone)/", "www.gone.test", "gone.test"), fetch("http://kept.test/", "test,kept)/", "kept.test", "kept.test"), www,
		fetch("http://kept.test/Page", "test,kept)/page", "kept.test", "kept.test"), lower))
	if diff := cmp.Diff([]schema.Fetch{bare, www, lower}, rows[schema.Fetch](l, w)); diff != "" {
		t.Error(diff)
	}
	link := func(from, surt, to string) schema.Link {
		return schema.Link{Source: from, SourceSURT: surt, Target: to}
	}
	stays := link(lower.URL, lower.SURT, "http://gone.test/")
	w = l.rewrite(put(l, stages.FileLinks, layout.Table(stages.FileLinks, "2026-11", 0, 3),
		link("http://kept.test/Page", lower.SURT, "http://gone.test/"), stays, link(lower.URL, lower.SURT, "http://www.gone.test/")))
	if diff := cmp.Diff([]schema.Link{stays}, rows[schema.Link](l, w)); diff != "" {
		t.Error(diff)
	}
}

// The robots.txt of a host is not its home page.
func TestRobotsOfAHostStayWithoutItsHomePage(t *testing.T) {
	l := newLab(t)
	var err error
	if l.r.Matcher, err = takedown.New([]string{"http://kept.test/"}, []string{"gone.test"}); err != nil {
		t.Fatal(err)
	}
	w := l.rewrite(put(l, stages.FileRobots, "crawl=2026-11/round=0/fetch/part-00000/segments/a-e1-robots.parquet",
		schema.RobotsFile{Origin: "http://kept.test"}, schema.RobotsFile{Origin: "https://www.gone.test:444"}))
	if got := rows[schema.RobotsFile](l, w); len(got) != 1 || got[0].Origin != "http://kept.test" {
		t.Errorf("robots.txt of %v stays", got)
	}
}

// The robots.txt of another origin redirects to a record that became a tombstone. Its text goes with the record, and
// the row expires, so that no round takes it for a robots.txt that allows everything.
func TestRobotsWhoseRecordIsGoneExpire(t *testing.T) {
	l := newLab(t)
	const file = "warc/crawl=2026-11/round=0/f.warc.gz"
	l.r.Removed[file] = map[int64]struct{}{70: {}}
	const until = 1_800_000_000_000
	row := func(origin string, offset int32) schema.RobotsFile {
		return schema.RobotsFile{Origin: origin, Rules: true, Body: []byte("User-agent: *"), Digest: "D", Until: until, FetchedAt: 5, WARCFile: file, WARCOffset: offset, WARCLength: 9}
	}
	w := l.rewrite(put(l, stages.FileRobots, "crawl=2026-11/round=0/fetch/part-00000/segments/a-e1-robots.parquet", row("http://a.test", 70), row("http://b.test", 7)))
	want := []schema.RobotsFile{{Origin: "http://a.test", Rules: true, Digest: "D", FetchedAt: 5}, row("http://b.test", 7)}
	if diff := cmp.Diff(want, rows[schema.RobotsFile](l, w), cmpopts.EquateEmpty()); diff != "" || w.Adjusted != 1 {
		t.Errorf("%d adjusted; robots.txt files (-want +got):\n%s", w.Adjusted, diff)
	}
	w = l.rewrite(put(l, stages.FileRequests, layout.Table(stages.FileRequests, "2026-11", 0, 0),
		schema.Request{URL: "http://a.test/x", RobotsDigest: "D", RobotsFile: file, RobotsOffset: 70, RobotsLength: 9},
		schema.Request{URL: "http://b.test/x", RobotsDigest: "D", RobotsFile: file, RobotsOffset: 7, RobotsLength: 9}))
	got := rows[schema.Request](l, w)
	if a, b := got[0], got[1]; a.RobotsFile != "" || a.RobotsOffset != 0 || a.RobotsLength != 0 || a.RobotsDigest != "D" || b.RobotsFile != file || b.RobotsOffset != 7 {
		t.Errorf("requests %+v", got)
	}
}

func TestAFileWithoutNamesStays(t *testing.T) {
	l := newLab(t)
	f := put(l, stages.FileText, layout.Table(stages.FileText, "2026-11", 0, 0),
		schema.Text{URL: "http://kept.test/", SURT: "test,kept)/", Main: "gone.test was here"})
	if w := l.rewrite(f); w == nil || w.Path != "" || w.File != f || w.Mentions != 1 {
		t.Errorf("%+v, want no new content and one mention", w)
	}
}

func TestAPlanSaysWhichRowsWent(t *testing.T) {
	l := newLab(t)
	row := func(url, host string) schema.PlannedRow {
		return schema.PlannedRow{PlannedURL: schema.PlannedURL{URL: url, Host: host, Domain: host}}
	}
	w := l.rewrite(put(l, planPart, layout.PlanPart("2026-11", 0, "id", 0), row("http://gone.test/1", "gone.test"),
		row("http://kept.test/", "kept.test"), row("http://gone.test/2", "gone.test")))
	if got := rows[schema.PlannedRow](l, w); len(got) != 1 || !slices.Equal(w.DroppedRows, []int32{0, 2}) {
		t.Errorf("%d rows stay, and rows %v went; want 1, and 0 and 2", len(got), w.DroppedRows)
	}
}

func TestAClusterGetsANewRepresentative(t *testing.T) {
	l := newLab(t)
	page := func(url, of string, hash int64) schema.Page {
		p := schema.Page{}
		p.URL, p.SURT, p.DuplicateOf, p.SimHash, p.TextDigest = url, url, of, hash, "T"+url
		if of != "" {
			p.DuplicateKind = string(schema.DupNear)
		}
		return p
	}
	const gone, first, second, later = "http://gone.test/", "http://kept.test/longer", "http://kept.test/b", "http://kept.test/"
	dup := func(url string, kind schema.DuplicateKind) schema.Duplicate {
		return schema.Duplicate{URL: url, SURT: url, Representative: gone, Kind: kind, Distance: 1, Via: gone, RepresentativeCrawl: "2026-11", ClusterSize: 3}
	}
	d0 := put(l, stages.FileDuplicates, layout.Table(stages.FileDuplicates, "2026-11", 0, 0), dup(gone, schema.DupRepresentative), dup(second, schema.DupNear), dup(first, schema.DupNear))
	p0 := put(l, stages.FilePages, layout.Table(stages.FilePages, "2026-11", 0, 0), page(gone, "", 0), page(second, gone, 1), page(first, gone, 3))
	r0 := put(l, stages.FileRepresentatives, layout.Working("2026-11", 0, "dedup", "representatives", 0),
		schema.Representative{URL: gone, SURT: gone, TextDigest: "T"}, schema.Representative{URL: "http://zz.test/", SURT: "http://zz.test/", TextDigest: "Z"})
	d1 := put(l, stages.FileDuplicates, layout.Table(stages.FileDuplicates, "2026-11", 1, 0), dup(later, schema.DupNear))
	p1 := put(l, stages.FilePages, layout.Table(stages.FilePages, "2026-11", 1, 0), page(later, gone, 1))
	var err error
	l.r.Clusters, err = FindClusters(l.ctx, l.b, l.r.Matcher, []Round{{"2026-11", 0, []manifest.File{d0, p0}}, {"2026-11", 1, []manifest.File{d1, p1}}})
	if err != nil {
		t.Fatal(err)
	}
	heir := second // of the oldest round, and shorter than the other; the page of the later round is shorter still
	for _, d := range slices.Concat(rows[schema.Duplicate](l, l.rewrite(d0)), rows[schema.Duplicate](l, l.rewrite(d1))) {
		want := schema.Duplicate{URL: d.URL, SURT: d.URL, Representative: heir, Kind: schema.DupNear, RepresentativeCrawl: "2026-11", ClusterSize: 3}
		switch d.URL {
		case heir:
			want.Kind = schema.DupRepresentative
		case first:
			want.Distance = 1
		}
		if diff := cmp.Diff(want, d); diff != "" {
			t.Error(diff)
		}
	}
	for _, p := range slices.Concat(rows[schema.Page](l, l.rewrite(p0)), rows[schema.Page](l, l.rewrite(p1))) {
		if want := map[bool]string{true: "", false: heir}[p.URL == heir]; p.DuplicateOf != want {
			t.Errorf("%s is a duplicate of %q, want %q", p.URL, p.DuplicateOf, want)
		}
	}
	var known []string
	for _, r := range rows[schema.Representative](l, l.rewrite(r0)) {
		known = append(known, r.URL)
	}
	if want := []string{heir, "http://zz.test/"}; !slices.Equal(known, want) {
		t.Errorf("representatives %q, want %q", known, want)
	}
}

// putText stores text as a file, gzipped if its key says so.
func (l *lab) putText(dataset, key, text string) manifest.File {
	l.Helper()
	body := []byte(text)
	if strings.HasSuffix(key, ".txt.gz") {
		var buf bytes.Buffer
		z := gzip.NewWriter(&buf)
		if _, err := z.Write(body); err != nil {
			l.Fatal(err)
		}
		if err := z.Close(); err != nil {
			l.Fatal(err)
		}
		body = buf.Bytes()
	}
	if _, err := l.b.Create(l.ctx, key, bytes.NewReader(body), int64(len(body))); err != nil {
		l.Fatal(err)
	}
	return manifest.File{Dataset: dataset, Key: key, Bytes: int64(len(body)), Rows: int64(strings.Count(text, "\n")), SHA256: manifest.Digest(body)}
}

// text returns the new content of a file of putText.
func (l *lab) text(w *Rewritten) string {
	l.Helper()
	if w == nil {
		l.Fatal("the file did not change")
	}
	l.swap(w)
	body, _, err := l.b.Get(l.ctx, w.File.Key, 1<<20)
	if err != nil {
		l.Fatal(err)
	}
	if strings.HasSuffix(w.File.Key, ".txt.gz") {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err == nil {
			body, err = io.ReadAll(z)
		}
		if err != nil {
			l.Fatal(err)
		}
	}
	return string(body)
}

func TestRecordsOfATargetBecomeTombstones(t *testing.T) {
	l := newLab(t)
	var file bytes.Buffer
	w := warc.NewWriter(&file)
	write := func(r warc.Record) warc.Extent {
		t.Helper()
		r.Date = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
		at, err := w.Write(&r)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	head := []byte("HTTP/1.1 200 OK\r\n\r\n")
	response := func(url string) warc.Record {
		return warc.Record{Type: warc.Response, TargetURI: url, Block: [][]byte{head, []byte("the text of " + url)}}
	}
	write(warc.Record{Type: warc.Warcinfo, Filename: "f.warc.gz", Block: [][]byte{[]byte("software: x\r\n")}})
	gone := write(response("http://www.gone.test/"))
	kept := write(response("http://kept.test/"))
	revisit := write(warc.Record{Type: warc.Revisit, TargetURI: "http://kept.test/again", Block: [][]byte{head},
		Profile: warc.ProfileIdenticalPayload, RefersToURI: "http://gone.test/", RefersToDate: time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC), PayloadDigest: warc.DigestOf(nil)})
	last := write(response("http://kept.test/gone"))
	before := bytes.Clone(file.Bytes())
	f := l.putText(stages.FileWARC, "warc/crawl=2026-11/round=0/f.warc.gz", file.String())
	f.Rows = 5

	got := l.rewrite(f)
	after := []byte(l.text(got))
	if got.Tombstones != 2 || got.Cleared != 1 || got.File.Rows != 5 {
		t.Errorf("%d tombstones, %d revisits without payload, %d records; want 2, 1, 5", got.Tombstones, got.Cleared, got.File.Rows)
	}
	if end := kept.Offset + kept.Length; !bytes.Equal(before[kept.Offset:end], after[kept.Offset:end]) {
		t.Error("the record of another URL changed")
	}
	for at, want := range map[warc.Extent]func(*warc.Entry) bool{
		gone: (*warc.Entry).Tombstone, last: (*warc.Entry).Tombstone,
		revisit: func(e *warc.Entry) bool { return e.Type == warc.Revisit && e.Header.PayloadRemoved() },
	} {
		e, err := warc.ReadAt(bytes.NewReader(after), at, warc.ReaderOptions{Check: true})
		if err != nil {
			t.Fatal(err)
		}
		if s, err := e.Finish(); err != nil || s.Extent != at || len(s.Problems) > 0 {
			t.Errorf("record at %v: %+v, %v", at, s, err)
		}
		if !want(e) {
			t.Errorf("record at %v: %v", at, e.Header)
		}
	}
	if want := map[int64]struct{}{gone.Offset: {}, last.Offset: {}}; !cmp.Equal(want, got.Removed) {
		t.Errorf("removed records %v, want %v", got.Removed, want)
	}
	l.r.Removed[f.Key] = got.Removed
	if again := l.rewrite(got.File); again != nil {
		t.Errorf("a second takedown changed the file: %+v", again)
	}
	capture := schema.Capture{PayloadFilename: f.Key, PayloadRecordOff: int32(gone.Offset), PayloadRecordLen: int32(gone.Length)}
	capture.URL, capture.SURT = "http://kept.test/again", "test,kept)/again"
	c := rows[schema.Capture](l, l.rewrite(put(l, stages.FileCaptures, layout.Captures("2026-11", "warc", 0, 0), capture)))
	if c[0].PayloadFilename != "" || c[0].PayloadRecordOff != 0 || c[0].PayloadRecordLen != 0 {
		t.Errorf("the capture still names the removed payload: %+v", c[0])
	}
}

func TestAnIndexLosesLinesAndRedirects(t *testing.T) {
	l := newLab(t)
	w := l.rewrite(l.putText(stages.FileCDXJ, "warc/crawl=2026-11/round=0/f.cdxj", `test,gone)/ 20261101000000 {"url":"http://gone.test/","offset":"0"}
test,kept)/ 20261101000000 {"url":"http://kept.test/","status":"302","offset":"9","redirect":"http://gone.test/?a=\"b\"","truncated":"length"}
test,kept)/x 20261101000000 {"url":"http://kept.test/x","status":"302","offset":"19","redirect":"http://kept.test/"}
`))
	want := `test,kept)/ 20261101000000 {"url":"http://kept.test/","status":"302","offset":"9","truncated":"length"}
test,kept)/x 20261101000000 {"url":"http://kept.test/x","status":"302","offset":"19","redirect":"http://kept.test/"}
`
	if diff := cmp.Diff(want, l.text(w)); diff != "" {
		t.Error(diff)
	}
	if w.File.Rows != 2 {
		t.Errorf("%d rows, want 2", w.File.Rows)
	}
}

func TestAGraphKeepsItsNumbers(t *testing.T) {
	l := newLab(t)
	at := func(name string) string { return layout.WebGraph("2026-11", 0, name) }
	vertices := l.putText(stages.FileWebGraph, at("host-vertices"), "0\ttest.gone.www\n1\ttest.kept\n2\ttest.notgone\n")
	edges := l.putText(stages.FileWebGraph, at("host-edges"), "0\t1\n1\t0\n1\t2\n")
	ranks := l.putText(stages.FileWebGraph, at("domain-ranks"), "#harmonicc_pos\t#host_rev\n1\ttest.gone\n2\ttest.kept\n")
	if got, want := l.text(l.rewrite(vertices)), "0\t"+RemovedVertex+"\n1\ttest.kept\n2\ttest.notgone\n"; got != want {
		t.Errorf("vertices %q, want %q", got, want)
	}
	if got, want := l.text(l.rewrite(edges)), "1\t2\n"; got != want { // although the vertices have no names any more
		t.Errorf("edges %q, want %q", got, want)
	}
	if got, want := l.text(l.rewrite(ranks)), "#harmonicc_pos\t#host_rev\n2\ttest.kept\n"; got != want {
		t.Errorf("ranks %q, want %q", got, want)
	}
}

func TestAURLFilterForgets(t *testing.T) {
	l := newLab(t)
	key := layout.URLFilter("2026-11", 0, 0)
	put(l, stages.FileURLs, layout.Table(stages.FileURLs, "2026-11", 0, 0), schema.URLRecord{URL: "http://gone.test/"}, schema.URLRecord{URL: "http://kept.test/"})
	put(l, stages.FileSkips, layout.Table(stages.FileSkips, "2026-11", 0, 0), schema.Skip{URL: "http://kept.test/gone"}, schema.Skip{URL: "no URL"})
	old, err := urlfilter.NewWriter(filepath.Join(t.TempDir(), "filter"))
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range []string{"http://gone.test/", "http://kept.test/", "http://kept.test/gone", "no URL"} {
		if err := old.Add(u); err != nil {
			t.Fatal(err)
		}
	}
	f, err := old.Finish(l.ctx, l.b, stages.FileURLFilter, key)
	if err != nil {
		t.Fatal(err)
	}
	w := l.rewrite(f)
	l.swap(w)
	filter, err := urlfilter.Open(l.ctx, l.b, key)
	if err != nil {
		t.Fatal(err)
	}
	if filter.Keys() != 2 || w.File.Rows != 2 || !filter.MayHold("http://kept.test/") || !filter.MayHold("no URL") || filter.MayHold("http://gone.test/") {
		t.Errorf("the filter has %d keys, and may hold the URL that is gone: %t", filter.Keys(), filter.MayHold("http://gone.test/"))
	}
}

func TestARunKeepsItsSections(t *testing.T) {
	l := newLab(t)
	row := func(bucket int32, url, first string) schema.TargetLinks {
		return schema.TargetLinks{Bucket: bucket, Inlink: schema.Inlink{URL: url, SURT: url, FirstSource: first}}
	}
	all := []schema.TargetLinks{row(0, "http://gone.test/", "http://kept.test/"), row(2, "http://kept.test/", "http://gone.test/"), row(5, "http://other.test/", "http://kept.test/")}
	seq := func(yield func(schema.TargetLinks, error) bool) {
		for _, r := range all {
			if !yield(r, nil) {
				return
			}
		}
	}
	local, err := table.WriteRun(filepath.Join(t.TempDir(), "run"), seq, func(r *schema.TargetLinks) int32 { return r.Bucket })
	if err != nil {
		t.Fatal(err)
	}
	f, err := table.Commit(l.ctx, l.b, local, stages.FileTargets, layout.Run("2026-11", 0, "merge", stages.FileTargets, 0))
	if err != nil {
		t.Fatal(err)
	}
	w := l.rewrite(f)
	l.swap(w)
	sections, err := w.File.Sections()
	if err != nil {
		t.Fatal(err)
	}
	var got []schema.TargetLinks
	for _, s := range sections {
		in, err := table.OpenSection[schema.TargetLinks](l.ctx, l.b, s)
		if err != nil {
			t.Fatal(err)
		}
		for r, err := range in.All(l.ctx) {
			if err != nil {
				t.Fatal(err)
			}
			if int(r.Bucket) != s.Bucket {
				t.Errorf("a row of bucket %d is in section %d", r.Bucket, s.Bucket)
			}
			got = append(got, r)
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]schema.TargetLinks{row(2, "http://kept.test/", ""), row(5, "http://other.test/", "http://kept.test/")}, got, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
)

// recordOf returns a record of the n-th day of a month. Without a body, it is a revisit.
func recordOf(url string, day int, head, body string) *warc.Record {
	r := &warc.Record{Type: warc.Response, Date: time.Date(2026, 10, day, 1, 2, 3, 0, time.UTC), TargetURI: url, ID: "urn:" + url, Block: [][]byte{[]byte(head), []byte(body)}}
	if body == "" {
		r.Type, r.Profile = warc.Revisit, warc.ProfileIdenticalPayload
	} else {
		r.PayloadDigest = warc.DigestOf([]byte(body))
	}
	return r
}

func writeRecords(t *testing.T, path string, records ...*warc.Record) {
	t.Helper()
	var out bytes.Buffer
	w := warc.NewWriter(&out)
	for _, r := range records {
		if _, err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	crawltest.Write(t, path, out.String())
}

// reparsed is what a reparse made of a URL.
type reparsed struct {
	Outcome schema.Outcome
	Status  int16 // of the response
	Revisit schema.Revisit
	Page    int16 // status of the page
	Day     int
	Payload string // file of the payload
	Bytes   int64
	Type    string
	ETag    string
	Cut     string
}

// reparsedURLs joins the rows of a crawl by URL.
func reparsedURLs(t *testing.T, dir, crawl string) map[string]reparsed {
	t.Helper()
	b := crawltest.OpenDir(t, dir)
	sealed, err := crawltest.SealedFiles(t.Context(), b, crawl)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]reparsed{}
	for _, f := range crawltest.RowsOf[schema.Fetch](t, b, sealed, "fetches") {
		got[f.URL] = reparsed{Outcome: f.Outcome, Status: f.HTTPStatus, Revisit: f.Revisit, Day: f.FetchedAt.Time().Day(), Bytes: f.ContentBytes, Type: f.MimeType, ETag: f.ETag, Cut: f.Truncated}
	}
	for _, c := range crawltest.RowsOf[schema.Capture](t, b, sealed, "captures") {
		u := got[c.URL]
		u.Payload = c.PayloadFilename
		if c.Revisit != u.Revisit || c.FetchStatus != u.Status {
			t.Errorf("%s: the capture is %q with status %d, the fetch %q with %d", c.URL, c.Revisit, c.FetchStatus, u.Revisit, u.Status)
		}
		got[c.URL] = u
	}
	for _, p := range crawltest.RowsOf[schema.Page](t, b, sealed, "pages") {
		u := got[p.URL]
		u.Page = p.FetchStatus
		if u.Payload != "" && u.Payload != p.WARCFilename || p.FetchTime.Time().Day() != u.Day || p.Title != "The page" {
			t.Errorf("%s: page %q of %s at %s", p.URL, p.Title, p.WARCFilename, p.FetchTime.Time())
		}
		got[p.URL] = u
	}
	return got
}

const foundBody = "<title>The page</title><p>moved <a href=/page>here</a>"

// Revisits get the payload of their originals, with their own heads, URLs and dates. Those without an original are
// listed with the reason.
func TestRevisitsOfOtherArchives(t *testing.T) {
	files, dir := t.TempDir(), filepath.Join(t.TempDir(), "store")
	page := "<title>The page</title><p>" + strings.Repeat("words ", 50)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte("<title>The page</title><p>packed " + strings.Repeat("words ", 90)))
	_ = z.Close()
	const html = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", packed.Len(), packed.String())
	originals := []*warc.Record{
		recordOf("http://a.example/page", 1, html+"ETag: \"1\"\r\nContent-Length: "+fmt.Sprint(len(page))+"\r\n\r\n", page),
		recordOf("http://a.example/packed", 1, html+"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n", chunked),
		recordOf("http://a.example/cut", 1, html+"Content-Length: 9999\r\n\r\n", page[:60]),
		recordOf("http://a.example/undigested", 1, html+"\r\n", page+"more"),
		recordOf("http://a.example/found", 1, "HTTP/1.1 302 Found\r\nContent-Type: text/html\r\nLocation: /page\r\n\r\n", foundBody),
	}
	originals[1].PayloadDigest = warc.DigestOf(packed.Bytes())
	originals[2].Truncated = warc.TruncatedLength
	originals[3].PayloadDigest = ""
	revisit := func(path string, day int, head string, of *warc.Record, change func(*warc.Record)) *warc.Record {
		r := recordOf("http://b.example/"+path, day, head, "")
		if of != nil {
			r.PayloadDigest = of.PayloadDigest
		}
		if change != nil {
			change(r)
		}
		return r
	}
	sum := sha256.Sum256([]byte(page + "more"))
	unchanged := recordOf("http://a.example/page", 9, "HTTP/1.1 304 Not Modified\r\nETag: \"2\"\r\nContent-Length: 0\r\nContent-Type: text/plain\r\n\r\n", "")
	unchanged.Profile = warc.ProfileNotModified
	revisits := []*warc.Record{
		revisit("own", 5, "HTTP/1.1 200 OK\r\nContent-Type: application/xhtml+xml\r\nETag: \"own\"\r\nContent-Length: "+fmt.Sprint(len(page))+"\r\n\r\n", originals[0], func(r *warc.Record) { r.Truncated = warc.TruncatedLength }),
		revisit("headless", 5, "", originals[0], nil),
		revisit("packed", 5, html+"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n", originals[1], nil),
		revisit("cut", 5, html+"\r\n", originals[2], nil),
		revisit("id", 5, html+"\r\n", nil, func(r *warc.Record) {
			r.RefersTo, r.PayloadDigest = originals[3].ID, warc.Digest("sha256:"+hex.EncodeToString(sum[:]))
		}),
		revisit("date", 5, html+"\r\n", nil, func(r *warc.Record) {
			r.RefersToURI, r.RefersToDate = originals[0].TargetURI, originals[0].Date
		}),
		revisit("wrong", 5, html+"\r\n", nil, func(r *warc.Record) {
			r.RefersTo, r.PayloadDigest = originals[3].ID, warc.DigestOf([]byte("other bytes"))
		}),
		revisit("moved", 5, "HTTP/1.1 301 Moved Permanently\r\nLocation: http://a.example/page\r\n\r\n", originals[4], nil),
		revisit("chain", 6, "", nil, func(r *warc.Record) { r.RefersTo = "urn:http://b.example/own" }),
		revisit("lost", 5, html+"\r\n", nil, func(r *warc.Record) { r.PayloadDigest = warc.DigestOf([]byte("lost")) }),
		unchanged,
	}
	writeRecords(t, filepath.Join(files, "a.warc.gz"), revisits...) // before the originals
	writeRecords(t, filepath.Join(files, "b.warc.gz"), originals...)
	mustRun(t, "reparse", "--warc-store", files, "--as", "2026-11r1", "--store", dir)
	mustRun(t, "verify", "--month", "2026-11r1", "--store", dir)

	whole := int64(len(page))
	const same, other = schema.RevisitIdentical, schema.RevisitNotModified
	want := map[string]reparsed{
		"http://a.example/page":       {schema.OK, 304, other, 200, 9, "b.warc.gz", whole, "text/html", `"2"`, ""},
		"http://a.example/packed":     {schema.OK, 200, "", 200, 1, "", 573, "text/html", "", ""},
		"http://a.example/cut":        {schema.OK, 200, "", 200, 1, "", 60, "text/html", "", "length"},
		"http://a.example/undigested": {schema.OK, 200, "", 200, 1, "", whole + 4, "text/html", "", ""},
		"http://a.example/found":      {schema.Redirected, 302, "", 0, 1, "", 0, "text/html", "", ""},
		"http://b.example/own":        {schema.OK, 200, same, 200, 5, "b.warc.gz", whole, "application/xhtml+xml", `"own"`, ""},
		"http://b.example/headless":   {schema.OK, 200, same, 200, 5, "b.warc.gz", whole, "text/html", `"1"`, ""},
		"http://b.example/packed":     {schema.OK, 200, same, 200, 5, "b.warc.gz", 573, "text/html", "", ""},
		"http://b.example/cut":        {schema.OK, 200, same, 200, 5, "b.warc.gz", 60, "text/html", "", "length"},
		"http://b.example/id":         {schema.OK, 200, same, 200, 5, "b.warc.gz", whole + 4, "text/html", "", ""},
		"http://b.example/date":       {schema.OK, 200, same, 200, 5, "b.warc.gz", whole, "text/html", "", ""},
		"http://b.example/wrong":      {Outcome: schema.ProtocolError, Day: 5},
		"http://b.example/moved":      {schema.Redirected, 301, same, 0, 5, "b.warc.gz", 0, "", "", ""},
		"http://b.example/chain":      {schema.OK, 200, same, 200, 6, "b.warc.gz", whole, "text/html", `"1"`, ""},
	}
	if diff := gocmp.Diff(want, reparsedURLs(t, dir, "2026-11r1")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	b := crawltest.OpenDir(t, dir)
	p, _, err := roundstate.FindPlan(t.Context(), b, "2026-11r1", 0)
	if err != nil {
		t.Fatal(err)
	}
	refused := tabletest.Read[schema.Refused](t, b, p.RefusedFile.Key)
	counted := slices.ContainsFunc(p.Refused, func(c manifest.Count) bool { return c.Name == string(schema.SkipBadRecord) && c.N == 1 })
	if !counted || len(refused) != 1 || refused[0].URL != "http://b.example/lost" || refused[0].Line != 10 || !strings.Contains(refused[0].Detail, "no file has the record with its payload") {
		t.Errorf("%+v", refused)
	}
}

// A revisit of a record whose payload is not that of its digest is read and counted as this record is, and verify names both.
func TestRevisitsOfDamagedRecords(t *testing.T) {
	files, dir := t.TempDir(), filepath.Join(t.TempDir(), "store")
	head, body := "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", "<title>The page</title>"
	original, revisit := recordOf("http://a.example/", 1, head, body), recordOf("http://b.example/", 2, head, "")
	original.PayloadDigest = warc.DigestOf([]byte("other bytes"))
	revisit.PayloadDigest = original.PayloadDigest
	writeRecords(t, filepath.Join(files, "a.warc.gz"), original, revisit)
	said := mustRun(t, "reparse", "--warc-store", files, "--as", "2026-11r1", "--store", dir)
	if !strings.Contains(said, "  2 records: the digest is not that of the bytes") {
		t.Errorf("reparse says\n%s", said)
	}
	if got := reparsedURLs(t, dir, "2026-11r1"); len(got) != 2 || got["http://b.example/"].Page != 200 {
		t.Errorf("%+v", got)
	}
	var report, errs bytes.Buffer
	code := execute(t.Context(), []string{"verify", "--month", "2026-11r1", "--store", dir}, nil, &report, &errs)
	if said := report.String(); code != exitViolation || !strings.Contains(said, "it may be damaged") {
		t.Errorf("verify: exit %d\n%s", code, said)
	}
}

// Verify reads the record with the payload of a revisit, also if it is no other row's record.
func TestVerifyReadsThePayloadsOfRevisits(t *testing.T) {
	files, dir := t.TempDir(), filepath.Join(t.TempDir(), "store")
	head, body := "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", "<title>The page</title>"
	original, revisit := recordOf("http://a.example/", 1, head, body), recordOf("http://a.example/", 2, head, "")
	revisit.PayloadDigest = original.PayloadDigest
	writeRecords(t, filepath.Join(files, "a.warc.gz"), original, revisit)
	mustRun(t, "reparse", "--warc-store", files, "--as", "2026-11r1", "--store", dir)
	mustRun(t, "verify", "--month", "2026-11r1", "--store", dir)
	original.Block[1] = []byte("<title>The cake</title>")
	original.PayloadDigest = warc.DigestOf(original.Block[1])
	writeRecords(t, filepath.Join(files, "a.warc.gz"), original, revisit)
	var report, errs bytes.Buffer
	code := execute(t.Context(), []string{"verify", "--month", "2026-11r1", "--store", dir}, nil, &report, &errs)
	if said := report.String(); code != exitViolation || !strings.Contains(said, "the payload of a revisit should be here: its payload has the digest") {
		t.Errorf("verify: exit %d\n%s%s", code, said, errs.String())
	}
}

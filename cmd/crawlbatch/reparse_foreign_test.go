package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/formats/catalog"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// asCommonCrawl rewrites the WARC files of a store in the style of Common Crawl. It undoes transfer
// and content codings and renames their header fields. It puts a warcinfo, a request and a metadata
// record around each response. It returns the names of the rewritten files, one on each line.
func asCommonCrawl(t *testing.T, from, to string) (paths string) {
	t.Helper()
	for n, key := range crawltest.KeysBelow(t, from) {
		if !strings.HasSuffix(key, ".warc.gz") {
			continue
		}
		f, err := os.Open(filepath.Join(from, key))
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("crawl-data/CC-MAIN-2026-40/segments/1/warc/CC-MAIN-%05d.warc.gz", n)
		paths += name + "\n"
		var out bytes.Buffer
		w := warc.NewWriter(&out)
		for r := warc.NewReader(f, warc.ReaderOptions{}); ; {
			e, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			block, err := io.ReadAll(e)
			if err != nil {
				t.Fatal(err)
			}
			at, err := e.Date()
			if err != nil {
				t.Fatal(err)
			}
			rec := &warc.Record{Type: e.Type, Date: at, TargetURI: e.TargetURI(), Block: [][]byte{block}, Profile: e.Header.Get(warc.FieldProfile)}
			if e.Type == warc.Response {
				rec.Block = decoded(t, block)
				rec.PayloadDigest = warc.DigestOf(rec.Block[1])
			}
			if _, err := w.Write(rec); err != nil {
				t.Fatal(err)
			}
			if e.Type == warc.Response {
				if _, err := w.Write(&warc.Record{Type: warc.Metadata, Date: at, TargetURI: e.TargetURI(), Block: [][]byte{[]byte("fetchTimeMs: 3\r\n")}}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		crawltest.Write(t, filepath.Join(to, name), out.String())
		_ = f.Close()
	}
	return paths
}

// decoded returns the head and the body of a response, and undoes all codings of the body.
func decoded(t *testing.T, block []byte) [][]byte {
	t.Helper()
	x, err := wire.Replay(block, false, wire.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Release()
	head := fmt.Sprintf("%s %d %s\r\n", x.Protocol, x.Status, x.StatusText)
	for _, f := range x.Header {
		name := f.Name
		switch strings.ToLower(name) {
		case "content-encoding", "transfer-encoding", "content-length":
			name = "X-Crawl-" + name
		}
		head += name + ": " + f.Value + "\r\n"
	}
	head += fmt.Sprintf("Content-Length: %d\r\n\r\n", len(x.Body))
	return [][]byte{[]byte(head), bytes.Clone(x.Body)}
}

// byFetch lists the stable columns of pages that describe how a page was found and stored. The
// remaining columns describe the content of a page.
var byFetch = []string{"content_digest", "planned_url", "depth", "changed", "inlinks", "rank", "cluster_size", "duplicate_of", "duplicate_kind", "content_signal"}

// contentRows returns the rows of pages by URL, without the columns of byFetch.
func contentRows(t *testing.T, b store.Bucket, crawl string) map[string]map[string]any {
	t.Helper()
	d, err := catalog.Find("pages")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]map[string]any{}
	for _, text := range crawltest.StableRows(t, b, d, crawl) {
		var row map[string]any
		if err := json.Unmarshal([]byte(text), &row); err != nil {
			t.Fatal(err)
		}
		for _, name := range byFetch {
			delete(row, name)
		}
		for _, name := range []string{"change", "change_distance", "title_changed", "links_added", "links_removed"} { // depend on the crawls before
			delete(row, name)
		}
		rows[row["url"].(string)] = row
	}
	return rows
}

func TestWARCFilesOfOthersGiveTheSamePages(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	dir := crawltest.CrawlTwice(t, mustRun)
	b := crawltest.OpenDir(t, dir)
	archive := filepath.Join(t.TempDir(), "commoncrawl")
	paths := filepath.Join(t.TempDir(), "warc.paths")
	crawltest.Write(t, paths, asCommonCrawl(t, dir, archive))
	conf := filepath.Join(t.TempDir(), "c.yaml")
	crawltest.Write(t, conf, "fetch: {max_body: 20KiB, max_sitemap: 100KiB}\n")
	mustRun(t, "reparse", "--warc-store", archive, "--warc-paths", paths, "--as", "2026-11r1", "--config", conf, "--store", dir)
	mustRun(t, "verify", "--month", "2026-11r1", "--store", dir)

	month := "2026-11" // if a URL has content in both months, the reparse takes that of this month
	was, is := contentRows(t, b, "2026-10"), contentRows(t, b, "2026-11r1")
	for url, row := range contentRows(t, b, month) {
		was[url] = row
	}
	compared := 0
	for url, want := range was {
		got, ok := is[url]
		if withheld := want["content_truncated"] == schema.TruncatedUnspecified; withheld {
			if ok {
				if n := got["word_count"]; n != 0.0 {
					t.Errorf("%s was withheld, and has %v words", url, n)
				}
			}
			continue
		}
		if strings.HasSuffix(url, "/changes") || strings.HasSuffix(url, "/twin2") || strings.HasSuffix(url, "/twin") {
			continue // /changes has another text at each request, and the text of a twin may be stored only under the URL of the other
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", url, diff)
		}
		compared++
	}
	if compared < 8 {
		t.Errorf("only %d pages are compared", compared)
	}
	sealed, err := crawltest.SealedFiles(t.Context(), b, "2026-11r1")
	if err != nil {
		t.Fatal(err)
	}
	outcomes := map[schema.Outcome]int{}
	for _, f := range crawltest.RowsOf[schema.Fetch](t, b, sealed, "fetches") {
		outcomes[f.Outcome]++
		if f.RobotsAllowed != nil || f.Attempts != 0 {
			t.Errorf("%s has a verdict of robots.txt or a request, but a reparse makes neither", f.URL)
		}
	}
	for _, o := range []schema.Outcome{schema.OK, schema.Redirected, schema.HTTP4xx, schema.HTTP5xx} {
		if outcomes[o] == 0 {
			t.Errorf("no URL ended as %s: %v", o, outcomes)
		}
	}
	if n := len(crawltest.RowsOf[schema.Request](t, b, sealed, "requests")); n > 0 {
		t.Errorf("%d requests", n)
	}
	t.Run("another list under the same name is refused", func(t *testing.T) {
		code, out := exitOf(t, "reparse", "--warc-store", dir, "--as", "2026-11r1", "--store", dir)
		if code != exitUsage || !strings.Contains(out, "choose another name") {
			t.Errorf("exit %d: %s", code, out)
		}
	})
	t.Run("a damaged record is found", func(t *testing.T) { damageForeign(t, b, dir, archive) })
}

// damageForeign changes a record of the archive after the reparse of the archive is complete.
func damageForeign(t *testing.T, b store.Bucket, dir, archive string) {
	sealed, err := crawltest.SealedFiles(t.Context(), b, "2026-11r1")
	if err != nil {
		t.Fatal(err)
	}
	at := crawltest.RowsOf[schema.Page](t, b, sealed, "pages")[0]
	file := filepath.Join(archive, at.WARCFilename)
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	body[int(at.WARCRecordOffset)+int(at.WARCRecordLength)/2] ^= 0x10
	crawltest.Write(t, file, string(body))
	var out, errs bytes.Buffer
	code := execute(t.Context(), []string{"verify", "--month", "2026-11r1", "--store", dir}, nil, &out, &errs)
	if code != exitViolation || !strings.Contains(out.String(), "WARC records in round 0, "+at.WARCFilename) {
		t.Errorf("exit %d\n%s", code, out.String())
	}
}

// reparseForeign reparses WARC files of other programs into a new store. It returns the pages by
// URL, and the refused records.
func reparseForeign(t *testing.T, files string) (pages map[string]map[string]any, refused []schema.Refused) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	mustRun(t, "reparse", "--warc-store", files, "--as", "2026-11r1", "--store", dir)
	mustRun(t, "verify", "--month", "2026-11r1", "--store", dir)
	b := crawltest.OpenDir(t, dir)
	p, _, err := roundstate.FindPlan(t.Context(), b, "2026-11r1", 0)
	if err != nil {
		t.Fatal(err)
	}
	refused = tabletest.Read[schema.Refused](t, b, p.RefusedFile.Key)
	for _, r := range refused {
		t.Logf("%s, record %d: %s: %s", r.Source, r.Line, r.URL, r.Detail)
		if r.Detail == "" || r.Line == 0 {
			t.Errorf("%+v does not say why", r)
		}
	}
	return contentRows(t, b, "2026-11r1"), refused
}

// TestFilesOfOtherWritersAreReparsed reads the files of formats/warc/testdata/writers. Each page
// must have its title, and each record without a page must be listed.
func TestFilesOfOtherWritersAreReparsed(t *testing.T) {
	pages, refused := reparseForeign(t, "../../formats/warc/testdata/writers")
	got := map[string]any{}
	for url, p := range pages {
		got[strings.TrimPrefix(url, "http://lighthouse.example/")] = p["title"]
	}
	want := map[string]any{
		"": "The Cape Lighthouse", "keepers": "The keepers", "chunked": "Sent in chunks", "tide.txt": nil, // pages that wget stored
		"browser": "A page that a browser recorded", "chunks": "A page that a browser recorded", // pages that warcio stored
		"again":   "A page that a browser recorded", // a revisit
		"archive": "Seen by an archive", "https://lighthouse.example/ships": "Seen by a public crawl", "https://lighthouse.example/museum": "Seen with scripts run",
		"framed": "Framed", "decoded": "Decoded", "dechunked": "Framed", "tide%20table.html": "Tide table", "bracketed": "In brackets",
		"long": "Cut by its writer", "length": "Too short", "feeds": "Too short", "a": "First", "b": "Second", "c": "Third",
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("titles (-want +got):\n%s", diff)
	}
	if cut := pages["http://lighthouse.example/long"]["content_truncated"]; cut != schema.TruncatedLength {
		t.Errorf("a body that its writer cut was read as %v", cut)
	}
	listed := map[string][]int64{}
	for _, r := range refused {
		listed[r.Source] = append(listed[r.Source], r.Line)
	}
	for _, lines := range listed {
		slices.Sort(lines)
	}
	if diff := gocmp.Diff(map[string][]int64{
		"cut.warc": {3}, "cut.warc.gz": {3}, "field-forms.warc": {3}, "garbage-between.warc.gz": {2}, "member-damaged.warc.gz": {2}, "no-record.warc": {1},
		"old.arc": {1}, "one-member.warc.gz": {1, 2, 3},
	}, listed); diff != "" {
		t.Errorf("records listed, by file (-want +got):\n%s", diff)
	}
}

// A response that says of itself that its digest is another one is read and counted, and verify names it.
func TestRecordsWithAnotherDigestAreToldAndVerified(t *testing.T) {
	files, dir := t.TempDir(), filepath.Join(t.TempDir(), "store")
	var out bytes.Buffer
	w := warc.NewWriter(&out)
	whole := "<title>whole</title><p>" + strings.Repeat("words ", 50)
	for _, r := range []struct{ name, head, body, digestOf string }{
		{"sound", "Content-Length: %d", whole, whole},
		{"other", "Content-Length: %d", whole, "other bytes"},
		{"decoded", "Content-Encoding: gzip\r\nContent-Length: 171", whole, whole},
		{"framed", "Content-Length: 23", whole, whole[:23]},
		{"none", "Content-Length: 0", whole, ""},
	} {
		head := "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n" + strings.ReplaceAll(r.head, "%d", fmt.Sprint(len(r.body))) + "\r\n\r\n"
		rec := &warc.Record{Type: warc.Response, Date: time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC), TargetURI: "http://" + r.name + ".example/", Block: [][]byte{[]byte(head), []byte(r.body)}}
		if r.digestOf != "" {
			rec.PayloadDigest = warc.DigestOf([]byte(r.digestOf))
		}
		if _, err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
	}
	crawltest.Write(t, filepath.Join(files, "A.WARC.GZ"), out.String())
	said := mustRun(t, "reparse", "--warc-store", files, "--as", "2026-11r1", "--store", dir)
	if !strings.Contains(said, "  1 record: the digest is not that of the bytes; `crawlbatch verify --month 2026-11r1` lists them") {
		t.Errorf("reparse says\n%s", said)
	}
	pages := contentRows(t, crawltest.OpenDir(t, dir), "2026-11r1")
	for url, bytes := range map[string]float64{"http://sound.example/": 323, "http://other.example/": 323, "http://decoded.example/": 323, "http://framed.example/": 23, "http://none.example/": 323} {
		if p := pages[url]; p == nil || p["content_bytes"] != bytes || p["content_truncated"] != nil {
			t.Errorf("%s has %v bytes, want %v, truncated %v", url, p["content_bytes"], bytes, p["content_truncated"])
		}
	}
	var report, errs bytes.Buffer
	code := execute(t.Context(), []string{"verify", "--month", "2026-11r1", "--store", dir}, nil, &report, &errs)
	if said = report.String(); code != exitViolation || !strings.Contains(said, "http://other.example/") || !strings.Contains(said, "it may be damaged") || strings.Contains(said, "http://framed.example/") {
		t.Errorf("verify: exit %d\n%s", code, said)
	}
}

// TestFieldFilesAreReadOrNamed reads the shared archives that crawlers read wrong in the field.
func TestFieldFilesAreReadOrNamed(t *testing.T) {
	const field = "../../../shared/data/field"
	if _, err := os.Stat(field); errors.Is(err, os.ErrNotExist) {
		t.Log("../shared/data/field does not exist: TestRecordsWithAnotherDigestAreToldAndVerified has similar records")
		return
	}
	pages, refused := reparseForeign(t, field)
	for url, p := range pages {
		if n := p["content_bytes"].(float64); n < 10_000 && url != "http://wget.test/" {
			t.Errorf("%s has %v bytes", url, n)
		}
	}
	if len(pages) != 10 {
		t.Errorf("%d pages", len(pages))
	}
	named := map[string]bool{}
	for _, r := range refused {
		named[r.Source] = true
	}
	for _, name := range []string{"one-member.warc.gz", "segmented.warc.gz", "zstd.warc.zst", "old.arc.gz"} {
		if !named[name] {
			t.Errorf("%s is passed over in silence", name)
		}
	}
}

// Rules for URLs do not apply to stored documents: a document keeps the URL under which it was stored.
func TestStoredDocumentsKeepTheirURLs(t *testing.T) {
	files, dir := t.TempDir(), filepath.Join(t.TempDir(), "store")
	urls := []string{"http://www.e.example/a", "http://www.e.example/a/", "http://www.e.example/calendar/"}
	var out bytes.Buffer
	w := warc.NewWriter(&out)
	for _, url := range urls {
		body := []byte("<title>" + url + "</title><p>the page " + url)
		head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n", len(body))
		if _, err := w.Write(&warc.Record{Type: warc.Response, Date: time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC), TargetURI: url, Block: [][]byte{[]byte(head), body}, PayloadDigest: warc.DigestOf(body)}); err != nil {
			t.Fatal(err)
		}
	}
	crawltest.Write(t, filepath.Join(files, "documents.warc.gz"), out.String())
	conf := filepath.Join(t.TempDir(), "c.yaml")
	crawltest.Write(t, conf, "plan: {canonical: {www: true, trailing_slash: true}, rewrite: [{match: /a$, replace: /b}], filter: [{match: /calendar}]}\n")
	mustRun(t, "reparse", "--warc-store", files, "--as", "2026-11r1", "--config", conf, "--store", dir)
	mustRun(t, "verify", "--month", "2026-11r1", "--store", dir)
	got := slices.Sorted(maps.Keys(contentRows(t, crawltest.OpenDir(t, dir), "2026-11r1")))
	if diff := gocmp.Diff(urls, got); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
}

// TestForeignWARCFilesAreReadOrListed reads the shared WARC files beside the repository, if the
// files are present.
func TestForeignWARCFilesAreReadOrListed(t *testing.T) {
	const foreign = "../../../shared/data/warc"
	if _, err := os.Stat(foreign); errors.Is(err, os.ErrNotExist) {
		t.Log("../shared/data/warc does not exist: TestFilesOfOtherWritersAreReparsed has similar files")
		return
	}
	pages, refused := reparseForeign(t, foreign)
	if p := pages["http://example.com/"]; p == nil || p["title"] != "Example Domain" {
		t.Errorf("the page of example.com is %v", p)
	}
	broken := map[string]bool{}
	for _, r := range refused {
		broken[r.Source] = true
	}
	for _, name := range []string{"example-bad-non-chunked.warc.gz", "example-wrong-chunks.warc.gz"} {
		if !broken[name] {
			t.Errorf("%s is broken, but none of its records is listed", name)
		}
	}
}

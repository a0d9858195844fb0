//go:build lab

package lab

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/formats/warc/warciotest"
)

// TestWarcioReadsAWholeCrawl reads every WARC file of a crawl with another program, and finds the
// record of each row of captures at the place that the row gives.
func TestWarcioReadsAWholeCrawl(t *testing.T) {
	warciotest.Need(t)
	d := crawlDemo(t)
	captures := map[string][]schema.Capture{} // rows of captures by file, in the order of offsets
	for _, c := range crawltest.RowsOf[schema.Capture](t, d.bucket, d.sealed, "captures") {
		captures[c.WARCFilename] = append(captures[c.WARCFilename], c)
	}
	var files []warciotest.File
	for _, key := range warcFiles(t, d.dir) {
		rows := captures[key]
		slices.SortFunc(rows, func(a, b schema.Capture) int { return cmp.Compare(a.WARCRecordOffset, b.WARCRecordOffset) })
		f := warciotest.File{File: filepath.Join(d.dir, filepath.FromSlash(key))}
		for _, c := range rows {
			f.Extents = append(f.Extents, warc.Extent{Offset: int64(c.WARCRecordOffset), Length: int64(c.WARCRecordLength)})
		}
		if len(rows) == 0 {
			t.Errorf("%s: no row of captures points to this file", key)
		}
		files = append(files, f)
	}
	if len(files) < 4 || len(files) != len(captures) {
		t.Fatalf("%d WARC files, and captures points to %d files: want the same number, at least 4", len(files), len(captures))
	}
	whole, alone := warciotest.Read(t, files...)
	checked := 0
	for _, f := range files {
		key, err := filepath.Rel(d.dir, f.File)
		if err != nil {
			t.Fatal(err)
		}
		rows := captures[filepath.ToSlash(key)]
		responses := map[int64]bool{}
		for _, r := range whole[f.File] {
			if r.Type == "response" || r.Type == "revisit" {
				responses[r.Offset] = true
			}
		}
		if len(responses) != len(rows) || len(alone[f.File]) != len(rows) {
			t.Errorf("%s: warcio saw %d responses, %d alone, captures has %d rows", key, len(responses), len(alone[f.File]), len(rows))
			continue
		}
		for i, c := range rows {
			got := alone[f.File][i]
			want := warciotest.Record{
				File: f.File, Offset: int64(c.WARCRecordOffset), Length: int64(c.WARCRecordLength), URI: c.Asked(), Type: got.Type,
				ID: got.ID, Status: got.Status, Block: "ok", Payload: "ok", Digest: "sha1:" + c.ContentDigest,
			}
			switch {
			case got.Type == "revisit":
				want.Payload = "" // a revisit has its payload in another record
			case c.Truncated == "disconnect":
				// If the chunks of a body break off or are damaged, warcio's digest also covers the bytes
				// after the last complete chunk. The stored digest does not.
				want.Payload = got.Payload
			default:
				checked++
			}
			if diff := gocmp.Diff(want, got); diff != "" || !responses[got.Offset] {
				t.Errorf("%s: %s (- captures, + warcio; warcio found the record when it read the whole file: %t):\n%s", key, c.URL, responses[got.Offset], diff)
			}
			if n, err := strconv.Atoi(got.Status); err == nil && int16(n) != c.FetchStatus {
				t.Errorf("%s: status %d in captures, warcio read %s", c.URL, c.FetchStatus, got.Status)
			}
		}
		if told := mustRun(t, "inspect", "warc", f.File); strings.Contains(told, "DAMAGED") || strings.Count(told, "\n") != len(whole[f.File]) {
			t.Errorf("inspect warc %s: warcio saw %d records:\n%s", key, len(whole[f.File]), told)
		}
		if diff := gocmp.Diff(indexOf(rows), readCDXJ(t, filepath.Join(d.dir, filepath.FromSlash(layout.CDXJ(filepath.ToSlash(key)))))); diff != "" {
			t.Errorf("CDXJ of %s (- captures, + CDXJ):\n%s", key, diff)
		}
	}
	if checked < 1000 {
		t.Errorf("only %d payloads were compared with their digests", checked)
	}
}

// warcFiles lists the keys of all WARC files in a store's directory.
func warcFiles(t *testing.T, dir string) (keys []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), "warc", func(name string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(name, ".warc.gz") {
			keys = append(keys, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// indexed holds the facts that a line of CDXJ shares with a row of captures.
type indexed struct {
	SURT, URL, Status, Digest, Filename, Offset, Length, Redirect, Truncated string
}

func indexOf(rows []schema.Capture) (index []indexed) {
	for _, c := range rows {
		index = append(index, indexed{
			SURT: c.SURT, URL: c.Asked(), Status: strconv.Itoa(int(c.FetchStatus)), Digest: c.ContentDigest, Filename: c.WARCFilename,
			Offset: strconv.Itoa(int(c.WARCRecordOffset)), Length: strconv.Itoa(int(c.WARCRecordLength)),
			Redirect: c.FetchRedirect, Truncated: c.Truncated,
		})
	}
	return index
}

// readCDXJ reads an index and checks that the index is sorted. It returns the entries in the order
// of offsets.
func readCDXJ(t *testing.T, name string) (index []indexed) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	last, lines := "", bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if lines.Text() < last {
			t.Errorf("%s: %q comes after %q", name, lines.Text(), last)
		}
		last = lines.Text()
		parts := strings.SplitN(last, " ", 3)
		var fields indexed
		if len(parts) != 3 || len(parts[1]) != len("20060102150405") {
			t.Fatalf("%s: %q is not a line of CDXJ", name, last)
		}
		if err := json.Unmarshal([]byte(parts[2]), &fields); err != nil {
			t.Fatalf("%s: %q: %v", name, last, err)
		}
		fields.SURT = parts[0]
		index = append(index, fields)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	offset := func(i indexed) int { n, _ := strconv.Atoi(i.Offset); return n }
	slices.SortFunc(index, func(a, b indexed) int { return cmp.Compare(offset(a), offset(b)) })
	return index
}

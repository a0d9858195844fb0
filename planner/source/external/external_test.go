package external

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/planner/source"
)

// archive returns a store with WARC files of the given records, and the keys of the files.
func archive(t *testing.T, files ...[]*warc.Record) (store.Bucket, []string) {
	t.Helper()
	b, err := dirstore.Open(filepath.Join(t.TempDir(), "archive"), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for n, records := range files {
		var out bytes.Buffer
		w := warc.NewWriter(&out)
		for _, r := range records {
			if _, err := w.Write(r); err != nil {
				t.Fatal(err)
			}
		}
		keys = append(keys, fmt.Sprintf("f%02d.warc.gz", n))
		if _, err := store.CreateBytes(t.Context(), b, keys[n], out.Bytes()); err != nil {
			t.Fatal(err)
		}
	}
	return b, keys
}

func response(url string, at int64) *warc.Record {
	return &warc.Record{Type: warc.Response, Date: time.UnixMilli(at), TargetURI: url, Block: [][]byte{[]byte("HTTP/1.1 200 OK\r\n\r\n" + url)}}
}

func TestResponsesOfWARCFilesAreEntries(t *testing.T) {
	var files [][]*warc.Record
	var want []string
	for f := range 9 {
		var records []*warc.Record
		for i := range 300 {
			url := fmt.Sprintf("http://a.test/%d/%d", f, i)
			records = append(records, response(url, int64(1000+i)))
			want = append(want, url)
		}
		files = append(files, records)
	}
	b, keys := archive(t, files...)
	got, err := collect(t.Context(), WARC(b, "archive", keys, Options{Scratch: t.TempDir()}))
	var came []string
	for _, e := range got {
		came = append(came, e.URL)
	}
	if err != nil || !slices.Equal(came, want) {
		t.Fatalf("%d entries, want %d in the order of files and records: %v", len(got), len(want), err)
	}
	e := got[301]
	obj, err := b.Open(t.Context(), e.Content.Filename)
	if err != nil {
		t.Fatal(err)
	}
	defer obj.Close()
	r, err := warc.ReadAt(obj, warc.Extent{Offset: int64(e.Content.Offset), Length: int64(e.Content.Length)}, warc.ReaderOptions{})
	if err != nil || r.TargetURI() != e.URL || e.Content.At != 1_001_000 || !e.Due || !e.Listed || e.Line != 2 {
		t.Errorf("entry %+v points to %v, %v", e, r, err)
	}
}

func TestOfOtherRecordsOnlyWhatIsBrokenIsTold(t *testing.T) {
	revisit := response("http://a.test/again", 5)
	revisit.Type, revisit.Profile, revisit.RefersToURI = warc.Revisit, warc.ProfileIdenticalPayload, "http://a.test/one"
	dns := response("dns:a.test", 5)
	resource := response("http://a.test/resource", 5)
	resource.Type = warc.Resource
	request := response("http://a.test/one", 5)
	request.Type = warc.Request
	b, keys := archive(t, []*warc.Record{
		{Type: warc.Warcinfo, Date: time.UnixMilli(1), Block: [][]byte{[]byte("software: x\r\n")}},
		response("http://a.test/one", 5), request, dns, resource, revisit, response("http://a.test/robots.txt", 5), response("http://a.test/robots.txt?page", 6),
	}, []*warc.Record{response("http://a.test/broken", 5), response("http://a.test/whole", 5)})
	body, _, err := b.Get(t.Context(), keys[1], 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	body[60] ^= 0xff
	if err := b.Delete(t.Context(), keys[1]); err != nil {
		t.Fatal(err)
	}
	if _, err := store.CreateBytes(t.Context(), b, keys[1], body); err != nil {
		t.Fatal(err)
	}
	entries, err := collect(t.Context(), WARC(b, "archive", keys, Options{Scratch: t.TempDir()}))
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, e := range entries {
		what := e.URL
		if e.Broken != "" {
			what = "broken: " + what
		}
		told = append(told, what)
	}
	want := []string{"http://a.test/one", "http://a.test/robots.txt?page", "broken:", "http://a.test/whole", "broken: http://a.test/again"}
	if len(told) != len(want) {
		t.Fatalf("entries %q", told)
	}
	for i := range want {
		if !strings.HasPrefix(told[i], want[i]) {
			t.Errorf("entry %d is %q, want %q", i, told[i], want[i])
		}
	}
}

func TestWARCFilesWithoutResponsesAreAnError(t *testing.T) {
	b, keys := archive(t, []*warc.Record{{Type: warc.Warcinfo, Date: time.UnixMilli(1), Block: [][]byte{[]byte("a: b\r\n")}}})
	if _, err := collect(t.Context(), WARC(b, "archive", keys, Options{Scratch: t.TempDir()})); !errors.Is(err, source.ErrEmpty) {
		t.Errorf("no response: %v", err)
	}
	if _, err := collect(t.Context(), WARC(b, "archive", append(keys, "none.warc.gz"), Options{Scratch: t.TempDir()})); !errors.Is(err, source.ErrNoWARC) || !strings.Contains(err.Error(), "none.warc.gz") {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestASourceOfWARCFilesCanBeReadAgain(t *testing.T) {
	b, keys := archive(t, []*warc.Record{response("http://a.example/1", 1)}, []*warc.Record{response("http://a.example/2", 1)})
	s := WARC(b, "archive", keys, Options{Scratch: t.TempDir()})
	first, err := collect(t.Context(), s)
	if err != nil || len(first) != 2 || s.Name() != "archive" || first[0].File == "" {
		t.Errorf("%+v, %v", first, err)
	}
	again, err := collect(t.Context(), s)
	if err != nil || !reflect.DeepEqual(again, first) {
		t.Errorf("read again: %+v, %v", again, err)
	}
	for range s.Entries(t.Context()) {
		break // a caller may stop the sequence early
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := collect(ended, s); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}

// put stores an archive's file.
func put(t *testing.T, b store.Bucket, key string, content []byte) {
	t.Helper()
	if _, err := store.CreateBytes(t.Context(), b, key, content); err != nil {
		t.Fatal(err)
	}
}

func gzipped(t *testing.T, content string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = io.WriteString(z, content)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// wacz returns a zip archive. Files whose names begin with ! are compressed.
func wacz(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		h := &zip.FileHeader{Name: strings.TrimPrefix(name, "!"), Method: zip.Store}
		if strings.HasPrefix(name, "!") {
			h.Method = zip.Deflate
		}
		w, err := z.CreateHeader(h)
		if err == nil {
			_, err = w.Write(files[name])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Archives beside WARC files are read, or named with the reason.
func TestNoArchiveIsPassedOver(t *testing.T) {
	b, keys := archive(t, []*warc.Record{response("http://a.test/one", 5)}, []*warc.Record{response("http://a.test/two", 5), response("http://a.test/three", 5)})
	one, _, err := b.Get(t.Context(), keys[0], 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	two, _, err := b.Get(t.Context(), keys[1], 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	const arc = "filedesc://x.arc 0.0.0.0 20240505010203 text/plain 76\n1 0 InternetArchive\n"
	const read = "read"
	for _, c := range []struct {
		key     string
		content []byte
		says    string // "read", or a part of the reason; "" for a file that is no archive
	}{
		{"UPPER.WARC.GZ", one, read},
		{"Upper.Warc", []byte("WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.test/one\r\nWARC-Date: 2024-05-05T01:02:03Z\r\nContent-Length: 0\r\n\r\n\r\n\r\n"), read},
		{"a.arc", []byte(arc), "ARC file"},
		{"a.ARC.GZ", gzipped(t, arc), "ARC file"},
		{"arc-inside.warc.gz", gzipped(t, arc), "ARC file"},
		{"a.warc.zst", []byte("\x28\xb5\x2f\xfd"), "zstd -d"},
		{"dictionary.warc.gz", []byte("\x5d\x2a\x4d\x18\x00\x00\x00\x00"), "zstd -d"},
		{"a.warc.bz2", []byte("BZh9"), "bzip2"},
		{"xz-inside.warc.gz", []byte("\xfd7zXZ\x00"), "bzip2 or xz"},
		{"a.warc.gz.open", one, "still writing"},
		{"index.cdxj", []byte("com,example)/ 2024"), ""},
		{"packed.wacz", wacz(t, map[string][]byte{"archive/data.warc.gz": one, "indexes/index.cdx": {1}, "pages/pages.jsonl": {2}}), read},
		{"packed.zip.WACZ", wacz(t, map[string][]byte{"a.WARC.gz": one}), read},
		{"deflated.wacz", wacz(t, map[string][]byte{"!archive/data.warc.gz": one}), "compressed again"},
		{"nested.wacz", wacz(t, map[string][]byte{"data.wacz": {1}}), "of its own"},
		{"none.wacz", wacz(t, map[string][]byte{"a.txt": {1}}), "without a WARC file"},
		{"arc.wacz", wacz(t, map[string][]byte{"archive/a.arc.gz": gzipped(t, arc)}), "ARC file"},
		{"cut.wacz", wacz(t, map[string][]byte{"archive/data.warc.gz": one})[:300], "cannot be read"},
	} {
		put(t, b, c.key, c.content)
		listed, err := Names(t.Context(), b)
		if err != nil || slices.Contains(listed, c.key) != (c.says != "") {
			t.Errorf("%s: listed %v, %v", c.key, listed, err)
		}
		entries, err := collect(t.Context(), WARC(b, "archive", []string{c.key}, Options{Scratch: t.TempDir()}))
		switch {
		case c.says == "":
		case err != nil || len(entries) != 1 || entries[0].File != c.key || entries[0].Line == 0:
			t.Errorf("%s: %+v, %v", c.key, entries, err)
		case c.says == read && (entries[0].Broken != "" || entries[0].URL != "http://a.test/one"):
			t.Errorf("%s: %+v", c.key, entries[0])
		case c.says != read && !strings.Contains(entries[0].Broken, c.says):
			t.Errorf("%s: refused with %q", c.key, entries[0].Broken)
		}
	}
	t.Run("records of a WACZ file are read in place", func(t *testing.T) {
		put(t, b, "two.wacz", wacz(t, map[string][]byte{"archive/1.warc.gz": one, "archive/2.warc.gz": two}))
		entries, err := collect(t.Context(), WARC(b, "archive", []string{"two.wacz"}, Options{Scratch: t.TempDir()}))
		if err != nil || len(entries) != 3 {
			t.Fatalf("%+v, %v", entries, err)
		}
		obj, err := b.Open(t.Context(), "two.wacz")
		if err != nil {
			t.Fatal(err)
		}
		defer obj.Close()
		for i, e := range entries {
			r, err := warc.ReadAt(obj, warc.Extent{Offset: int64(e.Content.Offset), Length: int64(e.Content.Length)}, warc.ReaderOptions{})
			if err != nil || r.TargetURI() != e.URL || e.Line != int64(i+1) {
				t.Errorf("entry %+v points to %v, %v", e, r, err)
			}
		}
	})
}

// A record without the whole response is refused with the reason: an older whole one may count instead.
func TestPartsOfResponsesAreRefused(t *testing.T) {
	const head = "WARC/1.0\r\nWARC-Type: %s\r\nWARC-Target-URI: http://a.test/\r\nWARC-Date: 2024-05-05T01:02:03Z\r\nContent-Type: application/http\r\n%sContent-Length: %d\r\n\r\n%s\r\n\r\n"
	for _, c := range []struct{ kind, fields, block, says string }{
		{"response", "", "HTTP/1.1 200 OK\r\n\r\nwhole", ""},
		{"response", "WARC-Segment-Number: 1\r\n", "HTTP/1.1 200 OK\r\n\r\npart", "segment"},
		{"continuation", "WARC-Segment-Number: 2\r\n", "part", "segment"},
		{"continuation", "", "part", "segment"},
		{"response", "", "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 5-9/10\r\n\r\n12345", "206"},
		{"response", "", "HTTP/1.1 206 Partial Content\ncontent-range: bytes 0-4/10\n\n12345", "206"},
		{"response", "", "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-4/*\r\n\r\n12345", "206"},
		{"response", "", "HTTP/1.1 206\r\nContent-Type: multipart/byteranges\r\n\r\nContent-Range: bytes 0-4/5", "206"},
		{"response", "", "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-4/5\r\n\r\n12345", ""},
		{"response", "", "HTTP/1.1 200 OK\r\nContent-Range: bytes 5-9/10\r\n\r\n206", ""},
	} {
		b, _ := archive(t)
		put(t, b, "a.warc.gz", gzipped(t, fmt.Sprintf(head, c.kind, c.fields, len(c.block), c.block)))
		entries, err := collect(t.Context(), WARC(b, "archive", []string{"a.warc.gz"}, Options{Scratch: t.TempDir()}))
		if err != nil || len(entries) != 1 || (entries[0].Broken == "") != (c.says == "") || !strings.Contains(entries[0].Broken, c.says) {
			t.Errorf("%s %q: %+v, %v", c.kind, c.block, entries, err)
		}
	}
	b, _ := archive(t)
	member := gzipped(t, fmt.Sprintf(head, "response", "", 0, "")+fmt.Sprintf(head, "response", "", 1, "x"))
	put(t, b, "a.warc.gz", member)
	entries, err := collect(t.Context(), WARC(b, "archive", []string{"a.warc.gz"}, Options{Scratch: t.TempDir()}))
	if err != nil || len(entries) != 2 || !strings.Contains(entries[0].Broken, "shares its gzip member") || !strings.Contains(entries[1].Broken, "warcio recompress") {
		t.Errorf("two records in a member: %+v, %v", entries, err)
	}
}

// FuzzFiles reads files of any content under the names of archives.
func FuzzFiles(f *testing.F) {
	f.Add([]byte("PK\x03\x04"))
	f.Add([]byte("WARC/1.0\r\nWARC-Type: response\r\nWARC-Segment-Number: 1\r\nContent-Length: 3\r\n\r\nabc"))
	f.Add([]byte("filedesc://"))
	var zipped bytes.Buffer
	z := zip.NewWriter(&zipped)
	if w, err := z.CreateHeader(&zip.FileHeader{Name: "a.warc"}); err == nil {
		_, _ = io.WriteString(w, "WARC/1.0\r\nWARC-Type: response\r\nContent-Length: 0\r\n\r\n")
	}
	_ = z.Close()
	f.Add(zipped.Bytes())
	f.Fuzz(func(t *testing.T, content []byte) {
		parts, broken, err := partsOf(bytes.NewReader(content), "a.warc.gz", int64(len(content)))
		if err != nil || len(parts)+len(broken) == 0 {
			t.Fatalf("%v, %v, %v", parts, broken, err)
		}
		end := int64(0)
		for _, p := range parts {
			if p.offset < end || p.size < 0 || p.offset+p.size > int64(len(content)) {
				t.Fatalf("%+v of %d bytes", parts, len(content))
			}
			end = p.offset + p.size
		}
	})
}

func collect(ctx context.Context, s source.Source) ([]source.Entry, error) {
	var out []source.Entry
	for e, err := range s.Entries(ctx) {
		if err != nil {
			return out, err
		}
		out = append(out, e)
	}
	return out, nil
}

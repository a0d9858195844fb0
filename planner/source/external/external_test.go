package external

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

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
	got, err := collect(t.Context(), WARC(b, "archive", keys))
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
	entries, err := collect(t.Context(), WARC(b, "archive", keys))
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
	want := []string{"http://a.test/one", "broken: http://a.test/again", "http://a.test/robots.txt?page", "broken:", "http://a.test/whole"}
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
	if _, err := collect(t.Context(), WARC(b, "archive", keys)); !errors.Is(err, source.ErrEmpty) {
		t.Errorf("no response: %v", err)
	}
	if _, err := collect(t.Context(), WARC(b, "archive", append(keys, "none.warc.gz"))); !errors.Is(err, source.ErrNoWARC) || !strings.Contains(err.Error(), "none.warc.gz") {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestASourceOfWARCFilesCanBeReadAgain(t *testing.T) {
	b, keys := archive(t, []*warc.Record{response("http://a.example/1", 1)}, []*warc.Record{response("http://a.example/2", 1)})
	s := WARC(b, "archive", keys)
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

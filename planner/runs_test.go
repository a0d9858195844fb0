package planner

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"reflect"
	"sync"
	"testing"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/source"
)

// TestRunsSortWhateverTheySpill adds records from several goroutines: all in memory,
// in a few runs, and in so many that they are merged on the way.
func TestRunsSortWhateverTheySpill(t *testing.T) {
	const goroutines, each = 3, 4000
	for _, limit := range []int64{1 << 20, 64 << 10, 1 << 10} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			dir := t.TempDir()
			r := &runs{dir: dir}
			var wg sync.WaitGroup
			for g := range goroutines {
				wg.Go(func() {
					b := r.builder(limit)
					for n := range each {
						i := uint64(g*each + n)
						key := binary.BigEndian.AppendUint64(nil, urlkey.Hash(fmt.Sprint(i))%64) // many share their first octets
						key = fmt.Appendf(key, "/%d", i)
						if err := b.add(key, fmt.Appendf(nil, "value %d", i)); err != nil {
							t.Error(err)
						}
					}
					b.done()
				})
			}
			wg.Wait()
			if spilled := limit < 1<<20; spilled != (len(r.files) > 0) || len(r.files) > maxRuns {
				t.Errorf("%d runs", len(r.files))
			}
			for range 2 { // it can be read again
				var last []byte
				n := 0
				for rec, err := range r.sorted(context.Background()) {
					if err != nil {
						t.Fatal(err)
					}
					if bytes.Compare(last, rec[0]) >= 0 {
						t.Fatalf("%q comes after %q", rec[0], last)
					}
					if want := "value " + string(rec[0][9:]); string(rec[1]) != want {
						t.Fatalf("key %q has %q", rec[0], rec[1])
					}
					last = append(last[:0], rec[0]...)
					n++
				}
				if n != goroutines*each {
					t.Errorf("%d records of %d", n, goroutines*each)
				}
			}
			if err := r.close(); err != nil {
				t.Error(err)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("scratch space holds %v, %v", left, err)
			}
		})
	}
}

// FuzzRecord holds a record to being what was written of it.
func FuzzRecord(f *testing.F) {
	f.Add("http://www.example.com:8080/a?b=c", "etag", int32(500), uint64(7))
	f.Add("https://com.com.com/", "", int32(-1), uint64(1)<<63)
	f.Add("http://[::1]:81/", "x", int32(2000), uint64(0))
	f.Fuzz(func(t *testing.T, raw, etag string, n int32, place uint64) {
		c, err := urlkey.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		k, err := c.Canonical(raw, "")
		if err != nil {
			t.Skip()
		}
		var content source.Content
		if etag != "" {
			content = source.Content{At: int64(place >> 1), Filename: etag, Offset: n & (1<<31 - 1), Length: 7}
		}
		want := newRecord(k, &source.Entry{Due: true, Priority: n, Depth: n, Fetches: n, ETag: etag, Content: content}, schema.Spellings(nil).Add(etag).Add(raw), seq(place))
		hash, url, s, err := splitKey(want.appendKey(nil))
		if err != nil {
			t.Fatal(err)
		}
		var got record
		if err := got.parse(string(url), string(want.appendValue(nil))); err != nil {
			t.Fatal(err)
		}
		got.hash, got.seq = hash, s
		if !reflect.DeepEqual(got, want) {
			t.Errorf("wrote %+v\nread  %+v", want, got)
		}
	})
}

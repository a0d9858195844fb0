package urlfilter_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/urlfilter"
)

const object = "crawl=2026-11/round=0/frontier/work/known/part-00000.bloom"

func bucket(t testing.TB) store.Bucket {
	t.Helper()
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// file writes a filter of URLs to b and returns its bytes and description.
func file(t testing.TB, b store.Bucket, urls ...string) ([]byte, manifest.File) {
	t.Helper()
	w, err := urlfilter.NewWriter(filepath.Join(t.TempDir(), "known"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for _, u := range urls {
		if err := w.Add(u); err != nil {
			t.Fatal(err)
		}
	}
	f, err := w.Finish(context.Background(), b, "known", object)
	if err != nil {
		t.Fatal(err)
	}
	body, _, err := b.Get(context.Background(), object, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	if f.Rows != int64(len(urls)) || f.Bytes != int64(len(body)) || f.SHA256 != manifest.Digest(body) || f.Key != object {
		t.Errorf("%+v describes %d URLs in %d bytes with SHA-256 %s", f, len(urls), len(body), manifest.Digest(body))
	}
	return body, f
}

func numbered(n int) []string {
	urls := make([]string, n)
	for i := range urls {
		urls[i] = fmt.Sprintf("http://h%d.test/page/%d", i%97, i)
	}
	return urls
}

func TestAtMostOneAbsentURLInAThousandIsLookedUp(t *testing.T) {
	for _, n := range []int{1, 10, 1000, 50_000} {
		b, urls := bucket(t), numbered(n)
		file(t, b, urls...)
		f, err := urlfilter.Open(t.Context(), b, object)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range urls {
			if !f.MayHold(u) {
				t.Fatalf("of %d URLs, %s is lost", n, u)
			}
		}
		const absent = 100_000
		random, passed := rand.New(rand.NewPCG(1, 2)), 0
		for range absent {
			if f.MayHold(fmt.Sprintf("http://h%d.test/other/%x", random.IntN(97), random.Uint64())) {
				passed++
			}
		}
		if passed > absent/1000 {
			t.Errorf("a filter of %d URLs passes %d of %d absent URLs: more than 0.1 %%", n, passed, absent)
		}
		if f.Keys() != int64(n) {
			t.Errorf("%d keys, want %d", f.Keys(), n)
		}
	}
}

func TestTheSameURLsInAnyOrderGiveTheSameBytes(t *testing.T) {
	urls := numbered(1000)
	one, _ := file(t, bucket(t), urls...)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(urls), func(i, j int) { urls[i], urls[j] = urls[j], urls[i] })
	if two, _ := file(t, bucket(t), urls...); !bytes.Equal(one, two) {
		t.Error("the files differ")
	}
	if other, _ := file(t, bucket(t), urls[1:]...); bytes.Equal(one, other) {
		t.Error("the file without one of the URLs has the same bytes")
	}
}

func TestAFilterOfNothingHoldsNothing(t *testing.T) {
	b := bucket(t)
	file(t, b)
	f, err := urlfilter.Open(t.Context(), b, object)
	if err != nil || f.Keys() != 0 || f.MayHold("http://a.test/") {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestADamagedFileIsRefusedByName(t *testing.T) {
	whole, _ := file(t, bucket(t), numbered(100)...)
	change := func(at int, b ...byte) []byte {
		out := bytes.Clone(whole)
		copy(out[at:], b)
		return out
	}
	for name, c := range map[string]struct {
		body []byte
		want error
	}{
		"empty":                {nil, urlfilter.ErrCorrupt},
		"cut in its header":    {whole[:20], urlfilter.ErrCorrupt},
		"cut by a byte":        {whole[:len(whole)-1], urlfilter.ErrCorrupt},
		"cut by a word":        {whole[:len(whole)-8], urlfilter.ErrCorrupt},
		"a byte too much":      {append(bytes.Clone(whole), 0), urlfilter.ErrCorrupt},
		"foreign":              {change(0, []byte("PAR1")...), urlfilter.ErrCorrupt},
		"newer":                {change(8, 0, 0, 0, 2), manifest.ErrFormat},
		"of version 0":         {change(8, 0, 0, 0, 0), urlfilter.ErrCorrupt},
		"more bits than bytes": {change(20, 0, 0, 0, 1), urlfilter.ErrCorrupt},
		"no bits":              {change(20, make([]byte, 8)...), urlfilter.ErrCorrupt},
		"no hash functions":    {change(28, make([]byte, 8)...), urlfilter.ErrCorrupt},
		"another key count":    {change(12, 0, 0, 0, 0, 0, 0, 0, 7), urlfilter.ErrCorrupt},
		"a flipped bit":        {change(60, whole[60]^4), urlfilter.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			b := bucket(t)
			if _, err := store.CreateBytes(t.Context(), b, object, c.body); err != nil {
				t.Fatal(err)
			}
			f, err := urlfilter.Open(t.Context(), b, object)
			if f != nil || !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), object) {
				t.Errorf("got %v, %v; want %v that names the object", f, err, c.want)
			}
		})
	}
}

func TestAFilterThatIsNotThereIsNotFound(t *testing.T) {
	if _, err := urlfilter.Open(t.Context(), bucket(t), object); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func FuzzRead(f *testing.F) {
	whole, _ := file(f, bucket(f), "http://a.test/", "http://b.test/")
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add(binary.BigEndian.AppendUint64(bytes.Clone(whole[:20]), 1<<40))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := urlfilter.Read(bytes.NewReader(body), int64(len(body)))
		if (got == nil) != (err != nil) {
			t.Fatalf("%v and %v", got, err)
		}
		if err == nil {
			got.MayHold("http://a.test/")
		} else if !errors.Is(err, urlfilter.ErrCorrupt) && !errors.Is(err, manifest.ErrFormat) {
			t.Fatalf("an error that wraps neither ErrCorrupt nor ErrFormat: %v", err)
		}
	})
}

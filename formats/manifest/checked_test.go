package manifest_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
)

const block = manifest.BlockBytes

// recorded returns a bucket that holds stored under the key k, and a File that describes body.
func recorded(t *testing.T, stored, body []byte) (store.Bucket, manifest.File) {
	t.Helper()
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.CreateBytes(t.Context(), b, "k", stored); err != nil {
		t.Fatal(err)
	}
	sum := manifest.NewSum()
	for rest := body; len(rest) > 0; { // the size of the writes must not change the digests
		n := min(len(rest), 300_001)
		sum.Write(rest[:n])
		rest = rest[n:]
	}
	f := sum.File()
	f.Key = "k"
	return b, f
}

// open opens the object k with the recorded size and digests of f, and counts the reads.
func open(t *testing.T, b store.Bucket, f manifest.File) (store.Object, *store.Counter, error) {
	t.Helper()
	counter := store.Count(b)
	c := manifest.NewChecked(counter)
	c.Add("put it back", f)
	o, err := c.Open(t.Context(), "k")
	if err == nil {
		t.Cleanup(func() { o.Close() })
	}
	return o, counter, err
}

func noise(n int) []byte {
	body := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(body)
	return body
}

func TestEveryByteThatIsReadIsTheRecordedOne(t *testing.T) {
	for _, size := range []int{1, 1000, 2 * block, 2*block + 1, 5*block - 7} {
		body := noise(size)
		for _, at := range []int{-1, 0, size / 2, size - 1} {
			stored := bytes.Clone(body)
			if at >= 0 {
				stored[at] ^= 4
			}
			b, f := recorded(t, stored, body)
			for _, old := range []bool{false, true} {
				if old {
					f.Blocks = "" // as in seals
				}
				for _, r := range [][2]int{{0, size}, {0, size + 9}, {0, 1}, {size - 1, size + 4}, {size / 3, 2 * size / 3}, {size / 2, size/2 + 1}} {
					o, _, err := open(t, b, f)
					if err != nil {
						t.Fatal(err)
					}
					p := make([]byte, r[1]-r[0])
					n, err := o.ReadAt(p, int64(r[0]))
					meets := at >= r[0] && at < r[1]
					switch {
					case err != nil && err != io.EOF:
						if at < 0 || !errors.Is(err, manifest.ErrChanged) || !strings.Contains(err.Error(), `"k": its `) || !strings.Contains(err.Error(), "put it back") {
							t.Errorf("%d bytes, %d changed, %v read: %v", size, at, r, err)
						}
					case meets:
						t.Errorf("%d bytes, %d changed, old=%t: %v was read", size, at, old, r)
					case n != min(size, r[1])-r[0] || !bytes.Equal(p[:n], body[r[0]:r[0]+n]) || (err == io.EOF) != (n < len(p)):
						t.Errorf("%d bytes: %v gives %d bytes, %v", size, r, n, err)
					}
				}
			}
		}
	}
}

func TestACheckCostsNoFurtherRead(t *testing.T) {
	for size, ranges := range map[int][][2]int{
		1000:         {{0, 1000}},
		10*block + 5: {{9*block + 7, 10*block + 5}, {4, 4 * block}, {5 * block, 6 * block}},
	} {
		body := noise(size)
		b, f := recorded(t, body, body)
		o, counter, err := open(t, b, f)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range ranges {
			if _, err := o.ReadAt(make([]byte, r[1]-r[0]), int64(r[0])); err != nil {
				t.Fatal(err)
			}
		}
		if c := counter.Counts(); c.Gets != int64(1+len(ranges)) || c.BytesIn > int64(size) {
			t.Errorf("%d bytes in %d ranges: %+v", size, len(ranges), c)
		}
	}
}

// The columns of a wide table are small ranges beside each other, so many ranges are in one block.
func TestSmallRangesReadEachBlockOnce(t *testing.T) {
	const size, step = 10*block + 5, 60_001
	body := noise(size)
	b, f := recorded(t, body, body)
	o, counter, err := open(t, b, f)
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, step)
	for at := 0; at < size; at += step {
		if n, err := o.ReadAt(p, int64(at)); n != min(step, size-at) || err != nil && err != io.EOF || !bytes.Equal(p[:n], body[at:at+n]) {
			t.Fatalf("%d bytes at %d, %v", n, at, err)
		}
	}
	if c := counter.Counts(); c.Gets > 1+11 || c.BytesIn != size {
		t.Errorf("%d bytes in ranges of %d: %+v", size, step, c)
	}
}

// The first reader of a large file without digests of blocks checks the
// whole file. Later readers read only their ranges, so a task that opens the file once for each
// bucket reads it only once.
func TestALargerFileWithoutBlocksIsReadWholeOnce(t *testing.T) {
	const size, opens = 5*block - 7, 4
	body := noise(size)
	b, f := recorded(t, body, body)
	f.Blocks = ""
	counter := store.Count(b)
	c := manifest.NewChecked(counter)
	c.Add("put it back", f)
	for range opens {
		o, err := c.Open(t.Context(), "k")
		if err == nil {
			_, err = o.ReadAt(make([]byte, 100), size-100)
			err = errors.Join(err, o.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := counter.Counts().BytesIn; got != size+opens*100 {
		t.Errorf("%d bytes were read of a file of %d that was opened %d times", got, size, opens)
	}
}

func TestALostFileAndOneOfAnotherSizeAreNotOpened(t *testing.T) {
	b, f := recorded(t, []byte("another"), []byte("this"))
	if _, _, err := open(t, b, f); !errors.Is(err, manifest.ErrChanged) || !strings.Contains(err.Error(), `"k": it has 7 bytes, but 4 bytes were recorded: put it back`) {
		t.Errorf("another size: %v", err)
	}
	if err := b.Delete(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := open(t, b, f); !errors.Is(err, store.ErrNotFound) || !strings.Contains(err.Error(), "but the crawl recorded it: put it back") {
		t.Errorf("lost: %v", err)
	}
	if _, err := manifest.NewChecked(b).Open(t.Context(), "k"); !errors.Is(err, store.ErrNotFound) || strings.Contains(err.Error(), "recorded") {
		t.Errorf("lost and never recorded: %v", err)
	}
}

package manifest_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"testing"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
)

// runOf stores a run with sections of the given sizes. Section i belongs to bucket 3i+1.
func runOf(t *testing.T, sizes ...int) (store.Bucket, manifest.File, []byte) {
	t.Helper()
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sum, all := manifest.NewSum(), []byte{}
	for i, size := range sizes {
		body := noise(size)
		sum.Write(body) //nolint:errcheck // never fails
		sum.EndSection(3*i+1, int64(10*i))
		all = append(all, body...)
	}
	if _, err := store.CreateBytes(t.Context(), b, "k", all); err != nil {
		t.Fatal(err)
	}
	f := sum.File()
	f.Key = "k"
	return b, f, all
}

func TestSectionsAreReadAsObjectsOfTheirOwn(t *testing.T) {
	sizes := []int{1, 700, block, block + 1, 3*block - 5, 2 * block, 9}
	b, f, all := runOf(t, sizes...)
	if f.Bytes != int64(len(all)) || f.Blocks != "" {
		t.Errorf("%+v", f)
	}
	checked := manifest.NewChecked(b)
	checked.Add("put it back", f)
	sections, err := f.Sections()
	if err != nil || len(sections) != len(sizes) {
		t.Fatalf("%d sections, %v", len(sections), err)
	}
	offset := 0
	for i, s := range sections {
		if s.Key != "k" || s.Bucket != 3*i+1 || s.Rows != int64(10*i) || s.Offset != int64(offset) || s.Bytes != int64(sizes[i]) {
			t.Errorf("section %d: %+v", i, s)
		}
		want := all[offset : offset+sizes[i]]
		offset += sizes[i]
		for _, from := range []store.Bucket{b, checked} {
			o, err := manifest.OpenSection(t.Context(), from, s)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range [][2]int{{0, len(want)}, {0, len(want) + 5}, {len(want) / 3, len(want)}, {len(want) - 1, len(want) + 1}} {
				p := make([]byte, r[1]-r[0])
				n, err := o.ReadAt(p, int64(r[0]))
				if n != min(len(want), r[1])-r[0] || !bytes.Equal(p[:n], want[r[0]:r[0]+n]) || (err != nil) != (n < len(p)) {
					t.Errorf("section %d: %v gives %d bytes, %v", i, r, n, err)
				}
			}
			if o.Size() != s.Bytes {
				t.Errorf("section %d has %d bytes, not %d", i, o.Size(), s.Bytes)
			}
			if err := o.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// For a damaged index, Sections must not panic. It returns an error, or sections whose digests do
// not match the bytes of the run.
func TestADamagedIndexOfSectionsIsAnError(t *testing.T) {
	_, f, _ := runOf(t, 300, block+9, 70)
	index, err := base64.RawStdEncoding.DecodeString(f.SectionIndex)
	if err != nil {
		t.Fatal(err)
	}
	for n := range index {
		f.SectionIndex = base64.RawStdEncoding.EncodeToString(index[:n])
		if sections, err := f.Sections(); n > 0 && !errors.Is(err, manifest.ErrCorrupt) {
			t.Errorf("%d of %d bytes: %+v, %v", n, len(index), sections, err)
		}
		for bit := range 8 {
			bad := bytes.Clone(index)
			bad[n] ^= 1 << bit
			f.SectionIndex = base64.RawStdEncoding.EncodeToString(bad)
			sections, err := f.Sections()
			if err != nil {
				continue
			}
			var bytes int64
			for _, s := range sections {
				bytes += s.Bytes
			}
			if bytes != f.Bytes {
				t.Errorf("bit %d of byte %d: sections of %d bytes in a run of %d", bit, n, bytes, f.Bytes)
			}
		}
	}
	f.SectionIndex = "?"
	if _, err := f.Sections(); !errors.Is(err, manifest.ErrCorrupt) {
		t.Errorf("an index that is not base 64: %v", err)
	}
}

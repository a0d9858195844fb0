package audit

import (
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"crawlbatch.io/crawlbatch/formats/manifest"
)

func TestCheckpointsOnDiskAreThoseThatWereRead(t *testing.T) {
	var none *checkpoints
	if c, err := none.of(0); c != nil || err != nil || none.count() != 0 {
		t.Errorf("a nil *checkpoints holds %v: %v", c, err)
	}
	kept, err := startCheckpoints(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer kept.file.Close()
	read := map[int]*manifest.Checkpoint{}
	for _, n := range []int{7, 0, 3} {
		recorded, err := roaring.BitmapOf(uint32(n), 100, 5000).ToBytes()
		if err != nil {
			t.Fatal(err)
		}
		read[n] = &manifest.Checkpoint{
			Partition: n, Recorded: recorded, Counts: []manifest.Count{{Name: "ok", N: int64(n)}},
			Files: []manifest.File{{Dataset: "fetches", Key: "key", Bytes: int64(n), SHA256: "00"}},
		}
		if err := kept.add(n, read[n]); err != nil {
			t.Fatal(err)
		}
	}
	for n, want := range read {
		got, err := kept.of(n)
		if err != nil || got == nil {
			t.Fatalf("partition %d: %v: %v", n, got, err)
		}
		if !slices.Equal(got.Files, want.Files) || !slices.Equal(got.Counts, want.Counts) || !slices.Equal(got.Recorded, want.Recorded) {
			t.Errorf("partition %d: %+v, want %+v", n, got, want)
		}
	}
	if c, err := kept.of(1); c != nil || err != nil || kept.count() != 3 {
		t.Errorf("partition 1 has %v of %d checkpoints: %v", c, kept.count(), err)
	}
}

package dedup

import (
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/bits"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/stages"
)

// TestAClusterOfManyTextsTakesLittleMemory runs dedup on one cluster whose members have texts and
// fingerprints of their own. The URLs of its members do not fit into the memory that the test
// allows.
func TestAClusterOfManyTextsTakesLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	const members, urlBytes, mostMemory = 1 << 16, 4000, 230 << 20
	defer func(memory int64) { sortMemory = memory }(sortMemory)
	sortMemory = 8 << 20
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	env := &stages.Env{Bucket: b, Scratch: t.TempDir(), Clock: stages.SystemClock{}, Log: slog.New(slog.DiscardHandler), Progress: stages.NoProgress{}}
	long := strings.Repeat("x", urlBytes)
	f, err := stages.Write(t.Context(), env, stages.FilePages, layout.Working("2026-11", 0, "merge", stages.FilePages, 0), stages.ByURL, func(w *table.Writer[schema.Representative]) error {
		for i := range members {
			// Each bit of a Gray code becomes three bits. So two neighbours differ in three bits, and
			// the distance to the representative is up to 48 bits.
			fingerprint := uint64(0)
			for code := uint64(i ^ i>>1); code != 0; code &= code - 1 {
				fingerprint |= 7 << (3 * bits.TrailingZeros64(code))
			}
			digest := [20]byte{}
			binary.BigEndian.PutUint64(digest[:], uint64(i))
			if err := w.Append(&schema.Representative{
				SURT: fmt.Sprintf("test,a)/%08d", i), URL: fmt.Sprintf("http://a.test/%s/%08d", long, i),
				WordCount: 100, TextDigest: base32.StdEncoding.EncodeToString(digest[:]), SimHash: int64(fingerprint),
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	in := &stages.Input{
		Task: stages.Task{Stage: stages.Dedup, Crawl: "2026-11"}, Plan: &manifest.Plan{Buckets: 1, Partitions: make([]manifest.PlanPartition, 1)},
		Results: map[stages.Stage][]*manifest.Result{stages.Merge: {{Files: []manifest.File{f}}}},
	}
	var result *manifest.Result
	most := mostLive(func() { result, err = Run(t.Context(), env, in, defaults) })
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("at most %d MB were live", most>>20)
	if most > mostMemory {
		t.Errorf("dedup held %d MB, want at most %d", most>>20, mostMemory>>20)
	}
	rows, chained := 0, 0
	for _, d := range tabletest.Read[schema.Duplicate](t, b, result.FilesOf(stages.FileDuplicates)[0].Key) {
		if rows++; d.Via != "" && d.Via != d.Representative {
			chained++
		}
	}
	if rows != members || chained < members/2 || result.Count("clusters") != 1 {
		t.Errorf("%d rows in %d clusters, %d of them with a via of their own; want one cluster of %d", rows, result.Count("clusters"), chained, members)
	}
}

// mostLive calls a function and returns the largest size of the live heap that a garbage collection
// saw, in bytes.
func mostLive(call func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	stop := make(chan struct{})
	most := uint64(0)
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		for {
			metrics.Read(sample)
			most = max(most, sample[0].Value.Uint64())
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	})
	call()
	close(stop)
	watching.Wait()
	return most
}

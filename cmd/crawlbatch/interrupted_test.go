package main

import (
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
)

// TestACheckpointOfAnEarlierVersionResumes continues a crawl of simweb that an earlier version began. The
// crawl has one task, at which two attempts were killed. They recorded 82 of 102 URLs, and three URLs wait
// for another try.
func TestACheckpointOfAnEarlierVersionResumes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	dir := unpacked(t, "../../testdata/format2/interrupted.tar.gz")
	b, err := dirstore.Open(dir, dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var checkpoint manifest.Checkpoint
	if _, _, err := manifest.Load(t.Context(), b, layout.Checkpoint("2026-11", 0, 0), &checkpoint); err != nil {
		t.Fatal(err)
	}
	recorded := map[string]schema.Fetch{}
	for _, f := range checkpoint.Files {
		if f.Dataset == "fetches" {
			for _, row := range tabletest.Read[schema.Fetch](t, b, f.Key) {
				recorded[row.URL] = row
			}
		}
	}
	if len(recorded) != 82 {
		t.Fatalf("the store has %d URLs recorded", len(recorded))
	}

	addr, stop := serve(t, "--hosts", "12", "--pages", "20", "--seed", "7", "--faults", "0.4", "--fault-classes", "quick,retried")
	told := mustRun(t, "run", "--month", "2026-11", "--rounds", "1", "--store", dir, "--connect-to", "::"+addr)
	if !strings.Contains(told, "102 URLs") {
		t.Errorf("run:\n%s", told)
	}
	asked := 0
	for _, e := range stop() {
		if _, done := recorded["http://"+e.Host+e.Path]; done {
			t.Errorf("a URL that the old version recorded was asked for again: %+v", e)
		}
		asked++
	}
	if asked == 0 {
		t.Error("nothing was asked for")
	}
	_, sealed := sealedRounds(t, dir)
	fetches := crawltest.RowsOf[schema.Fetch](t, b, sealed, "fetches")
	if len(fetches) != 102 {
		t.Errorf("%d URLs have an outcome, want 102", len(fetches))
	}
	for _, row := range fetches {
		if old, done := recorded[row.URL]; done && (row.Outcome != old.Outcome || row.WARCFilename != old.WARCFilename || row.WARCRecordOff != old.WARCRecordOff) {
			t.Errorf("recorded as %+v, published as %+v", old, row)
		}
	}
	mustRun(t, "verify", "--month", "2026-11", "--store", dir)
}

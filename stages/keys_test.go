package stages

import (
	"fmt"
	"testing"

	"crawlbatch.io/crawlbatch/formats/manifest"
)

func TestOverlappingKeysAreOfBucketsThatShareHashes(t *testing.T) {
	for _, tc := range []struct {
		a, n, b, m int
		want       bool
	}{{0, 1, 6, 7, true}, {0, 2, 1, 2, false}, {0, 2, 0, 3, true}, {0, 2, 1, 3, true}, {0, 2, 2, 3, false}, {1, 2, 0, 3, false}, {3, 4, 2, 3, true}} {
		files := make([]manifest.File, tc.m)
		for i := range files {
			files[i].Dataset, files[i].Key = FileURLs, fmt.Sprintf("tables/urls/part-%05d.parquet", i)
		}
		got := false
		sealed := &manifest.Sealed{Buckets: tc.m, Files: files}
		for _, key := range OverlappingKeys(sealed, FileURLs, tc.a, tc.n) {
			got = got || key == files[tc.b].Key
		}
		if got != tc.want {
			t.Errorf("bucket %d of %d and %d of %d overlap: %v", tc.a, tc.n, tc.b, tc.m, got)
		}
	}
}

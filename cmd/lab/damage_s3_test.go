//go:build lab

package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"sync/atomic"
	"testing"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/s3store"
	"crawlbatch.io/crawlbatch/formats/store/storetest/versitygw"
)

// s3Cells matches the cells that are also judged on a real S3 server.
var s3Cells = regexp.MustCompile(`^(fetching/(fetch: (checkpoint|taken)/(deleted|older version|another partition's)|(ledger|crawls|active).json/deleted|WARC file/(deleted|stray copy)|politeness.json/older version|folder: (the newest round|one partition's fetch, and its WARC files)/deleted)|killed/fetch: checkpoint/(deleted|emptied)|reducing/(merge: result|merge: inputs.json|table: fetches)/deleted|sealed/(sealed.json|table: urls|WARC file)/(deleted|one byte changed|stray copy))$`)

// TestDamageS3 judges a selection of the cells on a real S3 server. The commands must print the
// same messages as for a directory.
func TestDamageS3(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: `make test-damage` without SHORT runs this")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // the test makes much garbage and keeps little
	server := versitygw.Start(t)
	bucket := server.NewBucket(t)
	crawltest.Setenv(t, server.Env(server.Endpoint))
	l := newDamageLab(t)
	var stores atomic.Int64
	l.place = func(ctx context.Context, dir string) (string, store.Bucket, error) {
		address := fmt.Sprintf("s3://%s/store-%d", bucket, stores.Add(1))
		b, err := s3store.Open(ctx, address, s3store.Options{})
		if err != nil {
			return "", nil, err
		}
		for _, key := range storedKeys(dir) {
			body, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(key)))
			if err != nil {
				return "", nil, err
			}
			if _, err := store.CreateBytes(ctx, b, key, body); err != nil {
				return "", nil, err
			}
		}
		return address, b, nil
	}
	only := regexp.MustCompile(os.Getenv(damageOnly))
	cells := l.cells(func(c *damageCell) bool { return s3Cells.MatchString(c.name()) && only.MatchString(c.name()) })
	if len(cells) < 20 && os.Getenv(damageOnly) == "" {
		t.Errorf("only %d cells", len(cells))
	}
	l.judgeAll(t.Context(), cells)
	compareDamage(t, cells, readDamage(t), false)
}

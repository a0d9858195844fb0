package listed

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"crawlbatch.io/crawlbatch/formats/urlkey"
)

func TestTheListedURLsOfEachBucketAreFound(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	l := New(1000, 0)
	var keys []urlkey.Key
	for range 500 {
		k, err := urlkey.KeyOf(fmt.Sprintf("http://h%d.d%d.example/%d", random.IntN(3), random.IntN(90), random.IntN(9)))
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k)
		l.Add(k)
	}
	for _, buckets := range []int{1, 2, 7, 1024} {
		for bucket := range buckets {
			var want, got []string
			for _, k := range keys {
				if urlkey.Bucket(k.Domain, buckets) == bucket {
					want = append(want, k.SURT)
				}
			}
			slices.Sort(want)
			urls, ok := l.InBucket(bucket, buckets)
			for _, u := range urls {
				got = append(got, u.SURT)
			}
			if want = slices.Compact(want); !ok || !slices.Equal(got, want) {
				t.Fatalf("bucket %d of %d: %v, want %v", bucket, buckets, got, want)
			}
		}
	}
}

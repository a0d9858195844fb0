package urlstate

import (
	"fmt"
	"slices"
	"testing"

	"crawlbatch.io/crawlbatch/formats/manifest"
)

// round returns a sealed round. In each bucket, its part of the urls dataset has the given number
// of rows. The buckets in based also have a base of 1,000 rows.
func round(number, buckets int, rows int64, based ...int) *manifest.Sealed {
	s := &manifest.Sealed{Round: number, Buckets: buckets}
	for n := range buckets {
		s.Files = append(s.Files, manifest.File{Dataset: Delta, Key: fmt.Sprintf("r%d/urls/part-%05d.parquet", number, n), Rows: rows})
	}
	for _, n := range based {
		s.Files = append(s.Files, manifest.File{Dataset: Base, Key: fmt.Sprintf("r%d/%s/part-%05d.parquet", number, BaseName(number), n), Rows: 1000})
	}
	return s
}

func TestOverlappingFilesAreOfBucketsThatShareHashes(t *testing.T) {
	for _, tc := range []struct {
		a, n, b, m int
		want       bool
	}{{0, 1, 6, 7, true}, {0, 2, 1, 2, false}, {0, 2, 0, 3, true}, {0, 2, 1, 3, true}, {0, 2, 2, 3, false}, {1, 2, 0, 3, false}, {3, 4, 2, 3, true}, {2, 3, 1, 2, true}, {1, 3, 1, 2, true}} {
		got := false
		for _, f := range Overlapping(round(0, tc.m, 1), tc.a, tc.n) {
			got = got || f.Key == fmt.Sprintf("r0/urls/part-%05d.parquet", tc.b)
		}
		if got != tc.want {
			t.Errorf("bucket %d of %d and %d of %d overlap: %v", tc.a, tc.n, tc.b, tc.m, got)
		}
	}
}

func TestAChainBeginsWithTheNewestCompleteBase(t *testing.T) {
	for _, tc := range []struct {
		name            string
		rounds          []*manifest.Sealed
		bucket, buckets int
		want            []string
		long            bool
	}{
		{"no round", nil, 0, 1, nil, false},
		{"one round", []*manifest.Sealed{round(0, 1, 10)}, 0, 1, []string{"r0/urls/part-00000.parquet"}, false},
		{"a short second round", []*manifest.Sealed{round(0, 1, 10), round(1, 1, 5)}, 0, 1,
			[]string{"r0/urls/part-00000.parquet", "r1/urls/part-00000.parquet"}, false},
		{"a second round of more than half", []*manifest.Sealed{round(0, 1, 10), round(1, 1, 6)}, 0, 1,
			[]string{"r0/urls/part-00000.parquet", "r1/urls/part-00000.parquet"}, true},
		{"a base", []*manifest.Sealed{round(0, 2, 10), round(1, 2, 9, 1), round(2, 2, 9)}, 1, 2,
			[]string{"r1/urls-base-1/part-00001.parquet", "r2/urls/part-00001.parquet"}, false},
		{"a base of the other bucket", []*manifest.Sealed{round(0, 2, 20), round(1, 2, 9, 0)}, 1, 2,
			[]string{"r0/urls/part-00001.parquet", "r1/urls/part-00001.parquet"}, false},
		{"the base of a bucket that was divided", []*manifest.Sealed{round(0, 2, 20), round(1, 2, 9, 1)}, 3, 4,
			[]string{"r1/urls-base-1/part-00001.parquet"}, true},
		{"bases that cover a bucket in part", []*manifest.Sealed{round(0, 3, 20), round(1, 3, 9, 1)}, 0, 2,
			[]string{"r0/urls/part-00000.parquet", "r0/urls/part-00001.parquet", "r1/urls/part-00000.parquet", "r1/urls/part-00001.parquet"}, false},
		{"bases that cover a bucket", []*manifest.Sealed{round(0, 3, 20), round(1, 3, 9, 0, 1)}, 0, 2,
			[]string{"r1/urls-base-1/part-00000.parquet", "r1/urls-base-1/part-00001.parquet"}, false},
	} {
		c := After(tc.rounds).Chain(tc.bucket, tc.buckets)
		if got := c.Keys(); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
		if c.Long() != tc.long {
			t.Errorf("%s: long is %v", tc.name, c.Long())
		}
	}
}

func TestAChainOfManyRoundsIsLong(t *testing.T) {
	rounds := []*manifest.Sealed{round(0, 1, 0, 0)}
	for n := 1; n < 1+maxFollowing; n++ {
		if After(rounds).Chain(0, 1).Long() {
			t.Fatalf("the chain of %d rounds is long", n)
		}
		rounds = append(rounds, round(n, 1, 0))
	}
	if !After(rounds).Chain(0, 1).Long() {
		t.Error("the chain has no limit")
	}
}

func TestKnownURLsAreAtLeastThoseOfTheLargestRound(t *testing.T) {
	for want, rounds := range map[int64][]*manifest.Sealed{
		100:  {round(0, 1, 100), round(1, 1, 60), round(2, 1, 90)},
		1000: {round(0, 1, 100), round(1, 1, 10, 0), round(2, 1, 3)},
		0:    nil,
	} {
		if n := After(rounds).Known(); n != want {
			t.Errorf("%d URLs, want %d", n, want)
		}
	}
}

// Round 7 is of an earlier month than the base of round 2, but it was sealed after the base was
// written. The base therefore lacks the states of round 7.
func TestABaseThatLacksRoundsBeforeItDoesNotCount(t *testing.T) {
	base := round(2, 1, 9, 0)
	rounds := []*manifest.Sealed{round(0, 1, 20), round(1, 1, 20), round(7, 1, 5), base}
	want := []string{"r0/urls/part-00000.parquet", "r1/urls/part-00000.parquet", "r7/urls/part-00000.parquet", "r2/urls/part-00000.parquet"}
	if got := After(rounds).Chain(0, 1).Keys(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Package urlstate lists the files that hold the newest state of every known URL after some sealed
// rounds.
//
// Each round has the dataset urls, with a row for each URL whose state the round changed. Reading
// the state of all URLs from these parts alone would take longer with every round. Therefore, a
// round may also have bases. The base of a bucket holds one row for each URL that is known after
// the round. The state of a bucket's URLs is its newest base and the parts of urls of later rounds
// (the chain of the bucket). The frontier stage writes a base when the chain is Long, so a base is
// written anew only after the known URLs have grown or changed by a certain share.
//
// Buckets are equal ranges of the same hashes of domains, so rounds can be compared even if they
// have different numbers of buckets. Package urlstate imports formats packages only.
package urlstate

import (
	"path"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
)

// The datasets with the states of URLs, as in manifest.File. Both have rows of schema.URLRecord,
// sorted by SURT and URL.
const (
	Delta = "urls"      // a published dataset: the URLs whose state a round changed
	Base  = "urls-base" // a working file of some buckets: all URLs that are known after the round
)

// maxFollowing is the largest number of rounds in a chain after the first. It limits the files that
// a reader has open.
const maxFollowing = 15

// Overlapping lists those files of a round's dataset that may hold domains of a bucket. The
// parameter buckets is the number of buckets that the caller has. The dataset has at most one file
// for each bucket of the round.
func Overlapping(s *manifest.Sealed, dataset string, bucket, buckets int) []manifest.File {
	first, last := overlap(s, bucket, buckets)
	return slices.DeleteFunc(s.FilesOf(dataset), func(f manifest.File) bool {
		n, err := layout.ParsePart(strings.TrimSuffix(path.Base(f.Key), ".parquet"))
		return err == nil && (n < first || n > last)
	})
}

// overlap returns the first and the last bucket of a round that share hashes with a bucket of the
// caller.
func overlap(s *manifest.Sealed, bucket, buckets int) (first, last int) {
	own := s.ReduceBuckets()
	return bucket * own / buckets, ((bucket+1)*own - 1) / buckets
}

// Chain holds the files with the states of a bucket's URLs.
type Chain struct {
	rounds [][]manifest.File // files of each round, oldest round first; the first round may have bases
	mixed  bool              // a file may hold URLs of other buckets too
}

// Of returns the chain of a bucket after the given rounds, oldest first. The parameter buckets is
// the number of buckets that the caller has.
func Of(rounds []*manifest.Sealed, bucket, buckets int) Chain {
	var c Chain
	for _, s := range slices.Backward(rounds) {
		first, last := overlap(s, bucket, buckets)
		files := Overlapping(s, Base, bucket, buckets)
		complete := len(files) > 0 && len(files) == last-first+1
		if !complete {
			files = Overlapping(s, Delta, bucket, buckets)
		}
		if len(files) > 0 {
			c.rounds = append(c.rounds, files)
			c.mixed = c.mixed || s.ReduceBuckets() != buckets
		}
		if complete {
			break
		}
	}
	slices.Reverse(c.rounds)
	return c
}

// Keys lists the keys of the files, those of the oldest round first. If a URL has rows in several
// files, the row of the last file counts. Rows of other buckets' URLs may be among them.
func (c Chain) Keys() (keys []string) {
	for _, f := range slices.Concat(c.rounds...) {
		keys = append(keys, f.Key)
	}
	return keys
}

// Long reports whether the current round should write a base. A base costs as much as the chain
// holds. It pays once the later files have more than half the rows of the first file, once there
// are many files, and once the number of buckets has changed.
func (c Chain) Long() bool {
	if len(c.rounds) == 0 {
		return false
	}
	rows := func(rounds ...[]manifest.File) (n int64) {
		for _, f := range slices.Concat(rounds...) {
			n += f.Rows
		}
		return n
	}
	following := c.rounds[1:]
	return c.mixed || len(following) >= maxFollowing || 2*rows(following...) > rows(c.rounds[0])
}

// Buckets returns the number of buckets of the newest round, or 0 if there is no round. A new round
// has at least as many.
func Buckets(rounds []*manifest.Sealed) int {
	if len(rounds) == 0 {
		return 0
	}
	return rounds[len(rounds)-1].ReduceBuckets()
}

// Known returns about the number of URLs that are known after the given rounds. The number is too
// high by the rows that a later file of a chain repeats.
func Known(rounds []*manifest.Sealed) (n int64) {
	counted := map[string]bool{}
	buckets := Buckets(rounds)
	for bucket := range buckets {
		for _, f := range slices.Concat(Of(rounds, bucket, buckets).rounds...) {
			if !counted[f.Key] {
				counted[f.Key] = true
				n += f.Rows
			}
		}
	}
	return n
}

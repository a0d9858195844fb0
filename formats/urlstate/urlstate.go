// Package urlstate lists the files that hold the newest state of every known URL after some sealed
// rounds.
//
// Each round has the dataset urls, with a row for each URL whose state the round changed. If these
// parts were the only source, reading the state of all URLs would take longer with every round.
// Therefore, a round may also have bases. The base of a bucket holds one row for each URL that is
// known after the round. The newest base and the parts of urls of later rounds hold the state of a
// bucket's URLs. These files are the chain of the bucket. The frontier stage writes a new base when
// the chain is long (see Chain.Long). This is the case after the known URLs have grown or changed
// by a certain share.
//
// Buckets are equal ranges of the hashes of domains. Rounds can therefore be compared even if they
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
	Delta = "urls"      // published dataset with the URLs whose state a round changed
	Base  = "urls-base" // working files of some buckets, with all URLs that are known after the round
)

// maxFollowing is the largest number of rounds after the first round of a chain. It limits the
// files that a reader has open.
const maxFollowing = 15

// Overlapping lists the files of a round's dataset that may hold domains of a bucket. The parameter
// buckets is the caller's number of buckets. The dataset has at most one file for each bucket of
// the round.
func Overlapping(s *manifest.Sealed, dataset string, bucket, buckets int) []manifest.File {
	first, last := overlap(s, bucket, buckets)
	return slices.DeleteFunc(s.FilesOf(dataset), func(f manifest.File) bool {
		n, err := layout.ParsePart(strings.TrimSuffix(path.Base(f.Key), ".parquet"))
		return err == nil && (n < first || n > last)
	})
}

// overlap returns the first and the last of a round's buckets that share hashes with a bucket of
// the caller.
func overlap(s *manifest.Sealed, bucket, buckets int) (first, last int) {
	own := s.ReduceBuckets()
	return bucket * own / buckets, ((bucket+1)*own - 1) / buckets
}

// Chain holds the files with the states of a bucket's URLs.
type Chain struct {
	rounds [][]manifest.File // files of each round, oldest round first; the first round may have bases
	mixed  bool              // true: a file may also hold URLs of other buckets
}

// Of returns the chain of a bucket after the given rounds, which begin with the oldest. The
// parameter buckets is the caller's number of buckets.
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

// Keys lists the keys of the chain's files. Files of older rounds come first. If a URL has rows in
// several files, the row of the last file counts. The files may also have rows of other buckets'
// URLs.
func (c Chain) Keys() (keys []string) {
	for _, f := range slices.Concat(c.rounds...) {
		keys = append(keys, f.Key)
	}
	return keys
}

// Long reports whether the current round should write a base. The cost of a base is proportional to
// the size of the chain. A base pays if the later files have more than half as many rows as the
// first file, if there are many files, or if the number of buckets has changed.
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
// has at least this number of buckets.
func Buckets(rounds []*manifest.Sealed) int {
	if len(rounds) == 0 {
		return 0
	}
	return rounds[len(rounds)-1].ReduceBuckets()
}

// Known returns the approximate number of URLs that are known after the given rounds. It counts a
// URL again if a later file of a chain repeats the URL's row.
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

// Package urlstate lists the files that hold the newest state of every known URL after some sealed
// rounds.
//
// Each round has the urls dataset, with a row for each URL whose state the round changed. If there
// were only these parts, it would take longer with every round to read the states of all URLs. A
// round may therefore also have bases. The base of a bucket has one row for each URL of the bucket
// that is known after the round. The states of a bucket's URLs are in its newest base, and in the
// parts of the urls dataset of later rounds. These files are the chain of the bucket. When the chain
// has become long (see Chain.Long), the frontier stage writes a new base.
//
// Buckets are equal ranges of the hashes of domains. The files of a bucket can therefore be found even
// in rounds with another number of buckets. Package urlstate imports formats packages only.
package urlstate

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// The datasets with the states of URLs, as in manifest.File. Both have rows of schema.URLRecord,
// sorted by SURT and URL.
const (
	Delta = "urls"      // published dataset with the URLs whose state a round changed
	Base  = "urls-base" // working files: the bases of some buckets
)

// Filter is the Dataset of URL filters in manifest.File. The filter of a bucket covers the bucket's
// part of Delta (package urlfilter).
const Filter = "known"

// maxFollowing is the largest number of rounds of a chain after its first round. It limits the number
// of files that a reader has open.
const maxFollowing = 15

// BaseName returns the name of the folder of a round's bases. The name contains the number of sealed
// rounds that the bases cover, besides this round. After a later month has continued a month, the
// earlier month may still get rounds. The bases of the later month lack the states of these rounds.
// After notices this, because the number in their name is too small, and ignores them.
func BaseName(earlier int) string { return fmt.Sprintf("%s-%d", Base, earlier) }

// History holds the files with the states of URLs after some sealed rounds.
type History struct {
	rounds []states // oldest first
}

// states holds the files of one round.
type states struct {
	pruned                bool // the files were deleted by the command prune
	buckets               int
	delta, bases, filters []part
}

// part is the file of one bucket.
type part struct {
	bucket int
	file   manifest.File
}

// After returns the history after the given rounds: all sealed rounds up to some round, oldest first.
func After(rounds []*manifest.Sealed) History {
	var h History
	for n, s := range rounds {
		of := states{pruned: s.Pruned, buckets: s.ReduceBuckets(), delta: partsOf(s, Delta), filters: partsOf(s, Filter)}
		of.bases = slices.DeleteFunc(partsOf(s, Base), func(p part) bool {
			covers, err := strconv.Atoi(strings.TrimPrefix(path.Base(path.Dir(p.file.Key)), Base+"-"))
			return err != nil || covers != n
		})
		h.rounds = append(h.rounds, of)
	}
	return h
}

func partsOf(s *manifest.Sealed, dataset string) (parts []part) {
	for _, f := range s.FilesOf(dataset) {
		if n, err := layout.PartOf(f.Key); err == nil {
			parts = append(parts, part{n, f})
		}
	}
	slices.SortFunc(parts, func(a, b part) int { return a.bucket - b.bucket })
	return parts
}

// overlapping returns the parts that may hold domains of one of the caller's buckets. buckets is the
// number of the caller's buckets. complete is true if there are such parts and none is missing.
func (s *states) overlapping(parts []part, bucket, buckets int) (found []part, complete bool) {
	first, last := urlkey.Overlapping(bucket, buckets, s.buckets)
	from, _ := slices.BinarySearchFunc(parts, first, comparePart)
	to, _ := slices.BinarySearchFunc(parts, last+1, comparePart)
	found = parts[from:to]
	return found, len(found) > 0 && len(found) == last-first+1
}

func comparePart(p part, bucket int) int { return p.bucket - bucket }

// inChain returns the files of the round in the chain of a bucket. begins is true if they are bases,
// so that the chain begins with them.
func (s *states) inChain(bucket, buckets int) (parts []part, begins bool) {
	if parts, begins = s.overlapping(s.bases, bucket, buckets); !begins {
		parts, _ = s.overlapping(s.delta, bucket, buckets)
	}
	return parts, begins
}

func filesOf(parts []part) (files []manifest.File) {
	for _, p := range parts {
		files = append(files, p.file)
	}
	return files
}

// Overlapping lists the parts of a round's dataset urls that may hold domains of one of the caller's
// buckets. buckets is the number of the caller's buckets.
func Overlapping(s *manifest.Sealed, bucket, buckets int) []manifest.File {
	of := After([]*manifest.Sealed{s}).rounds[0]
	parts, _ := of.overlapping(of.delta, bucket, buckets)
	return filesOf(parts)
}

// Chain holds the files with the states of a bucket's URLs (see the package comment).
type Chain struct {
	rounds [][]manifest.File // files of each round, oldest round first; the first round may have bases
	cut    bool              // the oldest files of the chain were deleted by the command prune
	based  bool              // the chain begins with a base
	mixed  bool              // a file also holds URLs of other buckets, because its round has fewer buckets
}

// Chain returns the chain of one of the caller's buckets. buckets is the number of the caller's
// buckets.
func (h History) Chain(bucket, buckets int) Chain {
	var c Chain
	for _, s := range slices.Backward(h.rounds) {
		if c.cut = s.pruned; c.cut {
			break
		}
		parts, begins := s.inChain(bucket, buckets)
		if len(parts) > 0 {
			c.rounds = append(c.rounds, filesOf(parts))
			c.mixed = c.mixed || s.buckets < buckets
		}
		if c.based = begins; begins {
			break
		}
	}
	slices.Reverse(c.rounds)
	return c
}

// Base lists the files of the base with which the chain begins. It is empty if the chain begins with a part
// of the urls dataset.
func (c Chain) Base() []manifest.File {
	if !c.based {
		return nil
	}
	return c.rounds[0]
}

// Cut reports whether the chain lacks its oldest files, because the command prune deleted them. The
// other files then do not hold the states of all known URLs.
func (c Chain) Cut() bool { return c.cut }

// Cut reports whether the chain of any bucket lacks its oldest files.
func (h History) Cut() bool {
	for bucket := range h.Buckets() {
		if h.Chain(bucket, h.Buckets()).Cut() {
			return true
		}
	}
	return false
}

// Keys lists the keys of the files, those of the oldest round first. If a URL has rows in several
// files, the row in the last of them is the current one. The files may also hold rows of other
// buckets' URLs.
func (c Chain) Keys() (keys []string) {
	for _, f := range slices.Concat(c.rounds...) {
		keys = append(keys, f.Key)
	}
	return keys
}

// Long reports whether the next round should write a base. A base costs as much as to read the chain.
// It pays in three cases: the later rounds of the chain have more than half as many rows as the
// first round, the chain has more than maxFollowing rounds, or the number of buckets has grown.
func (c Chain) Long() bool {
	if len(c.rounds) == 0 {
		return false
	}
	following := int64(0)
	for _, files := range c.rounds[1:] {
		following += rows(files)
	}
	return c.mixed || len(c.rounds) > maxFollowing || 2*following > rows(c.rounds[0])
}

func rows(files []manifest.File) (n int64) {
	for _, f := range files {
		n += f.Rows
	}
	return n
}

// Part is a file with states of URLs: a part of the urls dataset, or a base.
type Part struct {
	manifest.File
	Filter          *manifest.File // the URL filter of the part; nil if there is none
	Bucket, Buckets int            // the part's bucket, and the number of buckets of its round
}

// Parts lists the files of the chains of all buckets, those of the newest round first. If a URL has
// rows in several files, the row in the first of them is the current one.
func (h History) Parts() (out []Part) {
	buckets := h.Buckets()
	begun := make([]bool, buckets) // for each bucket: all files of its chain are listed
	for _, s := range slices.Backward(h.rounds) {
		listed := map[string]bool{}
		for bucket := range buckets {
			if begun[bucket] {
				continue
			}
			var parts []part
			parts, begun[bucket] = s.inChain(bucket, buckets)
			for _, p := range parts {
				if !listed[p.file.Key] {
					listed[p.file.Key] = true
					out = append(out, Part{p.file, s.filterOf(p), p.bucket, s.buckets})
				}
			}
		}
	}
	return out
}

// filterOf returns the URL filter of a part, or nil. A base has no filter.
func (s *states) filterOf(p part) *manifest.File {
	if i, ok := slices.BinarySearchFunc(s.filters, p.bucket, comparePart); ok && p.file.Dataset == Delta {
		return &s.filters[i].file
	}
	return nil
}

// Buckets returns the number of buckets of the newest round, or 0 if there is no round. Later rounds
// have at least as many.
func (h History) Buckets() int {
	if len(h.rounds) == 0 {
		return 0
	}
	return h.rounds[len(h.rounds)-1].buckets
}

// Known returns a lower bound of the number of known URLs. After a round with bases of all buckets, it
// is the number itself. New URLs of later rounds count only when a round writes new bases.
func (h History) Known() (n int64) {
	for bucket := range h.Buckets() {
		most := int64(0)
		for _, files := range h.Chain(bucket, h.Buckets()).rounds {
			most = max(most, rows(files))
		}
		n += most
	}
	return n
}

package dedup

import (
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"

	"crawlbatch.io/crawlbatch/formats/simhash"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

// sortMemory is the memory of each sorter, in bytes. Tests lower it. At most four sorters hold rows
// at a time.
var sortMemory int64 = 48 << 20

// digest is the SHA-1 of a normalised text.
type digest struct{ A, B, C uint64 }

// digestText is the length of a digest in base 32, in characters.
const digestText = 32

// digestOf decodes the digest of a page.
func digestOf(r *row) (d digest, err error) {
	var sum [sha1.Size + 4]byte
	n, err := base32.StdEncoding.Decode(sum[:], []byte(r.TextDigest[:min(len(r.TextDigest), digestText)]))
	if err != nil || n != sha1.Size || len(r.TextDigest) != digestText {
		return d, fmt.Errorf("page %q: text digest %q is not a SHA-1 in base 32: %w", r.URL, r.TextDigest, stages.ErrPermanent)
	}
	return digest{binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:]), binary.BigEndian.Uint64(sum[16:])}, nil
}

func compareDigests(a, b digest) int {
	return cmp.Or(cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B), cmp.Compare(a.C, b.C))
}

// text is the record of a page in the first sort.
type text struct {
	digest
	Fingerprint uint64
	Page        uint64
	Long        bool // the text has enough words to be compared by fingerprint
}

// Pages with equal digests have equal texts, so also equal words and fingerprints. The comparison
// includes fingerprints nevertheless, because a damaged file could put pages with different texts
// into one class.
func compareTexts(a, b *text) int {
	return cmp.Or(compareDigests(a.digest, b.digest), cmp.Compare(a.Fingerprint, b.Fingerprint), cmp.Compare(a.Page, b.Page))
}

// longText is a page with a long text.
type longText struct {
	Fingerprint uint64
	Page        uint64
}

// compareLong sorts pages by fingerprint. Of the pages with equal fingerprints, the last page comes
// first, so a page of this round comes before sealed representatives.
func compareLong(a, b *longText) int {
	return cmp.Or(cmp.Compare(a.Fingerprint, b.Fingerprint), cmp.Compare(b.Page, a.Page))
}

// member is a page whose class has several pages or is near another class.
type member struct {
	Page        uint64
	Cluster     uint64
	Class       uint64 // number of the class in the trees; 0 if the cluster has only one class
	Fingerprint uint64 // fingerprint of the class, or of the digest for short pages
	Long        bool
}

func byPage(a, b *member) int { return cmp.Compare(a.Page, b.Page) }

// classes sorts pages into classes and finds the clusters.
type classes struct {
	texts   *table.Sorter[text]
	long    *table.Sorter[longText]
	search  *simhash.Search
	members *table.Sorter[member]
	forest  *forest

	pages  uint64 // number of pages with text, sealed representatives included
	sealed uint64 // pages below this number are sealed representatives
}

// newClasses prepares the sorters and the search. It need not clean up after an error, because it
// does not open scratch files yet.
func newClasses(scratch string, cfg Config) (c *classes, err error) {
	c = &classes{}
	if c.texts, err = table.NewSorter(scratch, compareTexts, sortMemory); err != nil {
		return nil, err
	}
	if c.long, err = table.NewSorter(scratch, compareLong, sortMemory); err != nil {
		return nil, err
	}
	if c.members, err = table.NewSorter(scratch, byPage, sortMemory); err != nil {
		return nil, err
	}
	if c.search, err = simhash.NewSearch(scratch, cfg.MaxDistance); err != nil {
		return nil, err
	}
	c.forest, err = newForest(scratch)
	return c, err
}

// close removes the scratch files. Later calls do nothing.
func (c *classes) close() {
	closeSorter(&c.texts)
	closeSorter(&c.long)
	closeSorter(&c.members)
	_ = c.search.Close()
	c.forest.close()
}

// closeSorter closes a sorter, if there is one, and frees its memory. Errors do not matter: the
// scratch directory is removed later.
func closeSorter[T any](s **table.Sorter[T]) {
	if *s != nil {
		_ = (*s).Close()
		*s = nil
	}
}

// load reads the pages of all sources. Pages of sealed rounds come first.
func (c *classes) load(ctx context.Context, b store.Bucket, sources []source, cfg Config) error {
	for i := range sources {
		s := &sources[i]
		s.first = c.pages
		for r, err := range s.rows(ctx, b) {
			if err != nil {
				return err
			}
			t := text{Fingerprint: uint64(r.SimHash), Page: c.pages, Long: int(r.WordCount) >= cfg.MinWords}
			if t.digest, err = digestOf(&r); err != nil {
				return err
			}
			if err := c.texts.Add(&t); err != nil {
				return err
			}
			c.pages++
		}
		s.end = c.pages
		if s.sealed {
			c.sealed = c.pages
		}
	}
	return nil
}

// findMembers finds the members of all clusters. It returns the trees of the clusters that have
// several classes.
func (c *classes) findMembers(ctx context.Context) (trees, error) {
	if err := c.splitByLength(ctx); err != nil {
		return nil, err
	}
	closeSorter(&c.texts)
	count, err := c.addFingerprints(ctx)
	if err != nil {
		return nil, err
	}
	c.forest.begin(count)
	if err := c.search.Forest(ctx, c.forest.add); err != nil {
		return nil, err
	}
	if err := errors.Join(c.search.Close(), c.forest.join(ctx)); err != nil {
		return nil, err
	}
	if err := c.addLongMembers(ctx); err != nil {
		return nil, err
	}
	closeSorter(&c.long)
	return c.forest.plant(ctx)
}

// splitByLength divides the pages by the length of their texts. All pages with the same digest get
// the fingerprint and the length of the first such page. Short pages with the same digest form a
// class.
func (c *classes) splitByLength(ctx context.Context) error {
	var first text
	class, size := uint64(0), 0 // number of the current class, and number of its pages so far
	for t, err := range c.texts.Sorted(ctx) {
		if err != nil {
			return err
		}
		if size == 0 || t.digest != first.digest {
			first, size = t, 0
			class++
		}
		size++
		switch {
		case first.Long:
			err = c.long.Add(&longText{first.Fingerprint, t.Page})
		case size > 1:
			if size == 2 {
				err = c.addShort(class, &first, first.Page)
			}
			err = errors.Join(err, c.addShort(class, &first, t.Page))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *classes) addShort(class uint64, first *text, page uint64) error {
	return c.members.Add(&member{Page: page, Cluster: class<<2 | shortClass, Fingerprint: first.Fingerprint})
}

// addFingerprints gives the fingerprints of the long pages to the search, and returns their number.
// A fingerprint that only sealed representatives have is old: the search reports no pair of two old
// fingerprints.
func (c *classes) addFingerprints(ctx context.Context) (count uint64, err error) {
	var last uint64
	for t, err := range c.long.Sorted(ctx) {
		if err != nil {
			return 0, err
		}
		if count > 0 && t.Fingerprint == last {
			continue
		}
		if err := c.search.Add(t.Fingerprint, count, t.Page < c.sealed); err != nil {
			return 0, err
		}
		last = t.Fingerprint
		count++
	}
	return count, nil
}

// addLongMembers adds the members of the classes of long pages. addLongMembers skips a page that is
// alone in its class if no other class is near.
func (c *classes) addLongMembers(ctx context.Context) error {
	var first longText
	class, size := uint64(0), 0
	for t, err := range c.long.Sorted(ctx) {
		if err != nil {
			return err
		}
		if size > 0 && t.Fingerprint != first.Fingerprint {
			class, size = class+1, 0
		}
		if size == 0 {
			first = t
		}
		size++
		alike := c.forest.alike(class)
		if !alike && size == 1 {
			continue
		}
		m := member{Fingerprint: t.Fingerprint, Long: true}
		m.Cluster, m.Class = c.forest.place(class)
		if !alike && size == 2 {
			m.Page = first.Page
			if err := c.members.Add(&m); err != nil {
				return err
			}
		}
		m.Page = t.Page
		if err := c.members.Add(&m); err != nil {
			return err
		}
	}
	return nil
}

package verify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

const (
	clustersCheck = "clusters are the components"
	standingCheck = "sealed representatives stand"
)

// pageRow is what is read of a page. The last three columns are those that publish
// fills.
type pageRow struct {
	SURT          string `parquet:"url_surtkey"`
	URL           string `parquet:"url"`
	CanonicalURL  string `parquet:"canonical_url,optional"`
	WordCount     int32  `parquet:"word_count"`
	TextDigest    string `parquet:"text_digest,optional"`
	SimHash       int64  `parquet:"simhash"`
	DuplicateOf   string `parquet:"duplicate_of,optional"`
	DuplicateKind string `parquet:"duplicate_kind,optional"`
	ClusterSize   int32  `parquet:"cluster_size"`
}

// pageFact is what one table says of one page of the round: one of its pointers is set.
type pageFact struct {
	surt, url string
	key       string // of the object, of pages
	page      *pageRow
	duplicate *schema.Duplicate
	standing  *schema.Representative
}

func comparePageFacts(a, b *pageFact) int {
	return cmp.Or(strings.Compare(a.surt, b.surt), strings.Compare(a.url, b.url))
}

// checkDedup groups the pages anew, by the definition of package dedup and nothing
// of its code, and compares every row of duplicates, what pages say of it, and the
// representatives that later rounds will read.
//
// Pages are read twice, in the same order: first their fingerprints and digests,
// which stay in memory (about 80 bytes a page and sealed representative) and give
// the components; then the members of clusters with their rows, which are sorted
// by component so that each is judged as a whole.
func (a *audit) checkDedup(ctx context.Context, r *round) error {
	a.note(5, clustersCheck, "pages", 0)
	a.note(5, standingCheck, "objects", 0)
	if err := a.checkStanding(ctx, r); err != nil {
		return err
	}
	if a.Config == nil || !r.complete(stages.Merge) || !r.complete(stages.Dedup) {
		return nil
	}
	d := &dedupCheck{a: a, r: r, published: r.complete(stages.Publish), maxDistance: a.Config.Dedup.MaxDistance, minWords: a.Config.Dedup.MinWords}
	return a.skip(d.run(ctx), 5, clustersCheck, r)
}

// checkStanding compares the files of representatives of this round and of those
// before with what their seals recorded. Rounds that are audited themselves are
// left to that.
func (a *audit) checkStanding(ctx context.Context, r *round) error {
	first := !slices.ContainsFunc(r.earlier, func(s *manifest.Sealed) bool { return s.Crawl == r.crawl })
	var sealed []*manifest.Sealed
	if first || a.Round >= 0 {
		sealed = slices.Clone(r.earlier)
	}
	if r.sealed != nil {
		sealed = append(sealed, r.sealed)
	}
	for _, s := range sealed {
		for _, f := range s.FilesOf(stages.FileRepresentatives) {
			a.note(5, standingCheck, "objects", 1)
			size, digest, err := a.digest(ctx, f.Key)
			if err != nil {
				if err := a.fault(err, 5, standingCheck, r.number, f.Key); err != nil {
					return err
				}
				continue
			}
			if size != f.Bytes || digest != f.SHA256 {
				a.report(Violation{Invariant: 5, Check: standingCheck, Round: r.number, Object: f.Key, Problem: fmt.Sprintf(
					"representatives changed after round %s.%d was sealed: %d bytes with SHA-256 %s, sealed were %d with %s", s.Crawl, s.Round, size, digest, f.Bytes, f.SHA256)})
			}
		}
	}
	return nil
}

// digest reads an object whole for its SHA-256.
func (a *audit) digest(ctx context.Context, key string) (size int64, digest string, err error) {
	o, err := a.Bucket.Open(ctx, key)
	if err != nil {
		return 0, "", err
	}
	defer o.Close()
	h := sha256.New()
	if _, err := io.CopyBuffer(h, io.NewSectionReader(o, 0, o.Size()), make([]byte, 1<<20)); err != nil {
		return 0, "", err
	}
	return o.Size(), hex.EncodeToString(h.Sum(nil)), nil
}

// dedupCheck is one run of checkDedup.
type dedupCheck struct {
	a           *audit
	r           *round
	published   bool // pages are those of publish, with what it says of clusters
	maxDistance int
	minWords    int

	likeness
	members *table.Sorter[member]
}

func (d *dedupCheck) run(ctx context.Context) error {
	if err := d.read(ctx); err != nil {
		return err
	}
	if err := d.connect(d.maxDistance); err != nil {
		return err
	}
	var err error
	if d.members, err = table.NewSorter(d.a.Scratch, compareMembers, sortMemory); err != nil {
		return err
	}
	defer d.members.Close()
	if err := d.collect(ctx); err != nil {
		return err
	}
	return d.judge(ctx)
}

// read numbers the pages that have a text: sealed representatives, the oldest
// first, then those of the round by bucket.
func (d *dedupCheck) read(ctx context.Context) error {
	for _, s := range d.r.earlier {
		for p, err := range concat[schema.Representative](ctx, d.a, keysOf(s.FilesOf(stages.FileRepresentatives))) {
			if err != nil {
				return err
			}
			if digest, ok := textDigest(p.TextDigest); ok {
				d.add(digest, p.SimHash, int(p.WordCount) >= d.minWords)
			}
		}
		d.ages = append(d.ages, d.count())
	}
	for bucket := range d.r.plan.Buckets {
		for m, err := range d.factsOf(ctx, bucket) {
			if err != nil {
				return err
			}
			if m.page == nil {
				continue
			}
			digest, ok := textDigest(m.page.TextDigest)
			if ok {
				d.add(digest, m.page.SimHash, int(m.page.WordCount) >= d.minWords)
			} else if m.page.TextDigest != "" {
				d.report(m.key, m.url, "its text_digest %q is no SHA-1 in base 32", m.page.TextDigest)
			}
		}
	}
	d.a.note(5, clustersCheck, "pages", int64(d.count()-d.sealed()))
	return nil
}

// factsOf yields what the tables say of the pages of a bucket, by SURT and URL.
func (d *dedupCheck) factsOf(ctx context.Context, bucket int) iter.Seq2[pageFact, error] {
	stage := stages.Merge
	if d.published {
		stage = stages.Publish
	}
	var in []iter.Seq2[pageFact, error]
	for _, key := range d.r.partitionKeys(stage, stages.FilePages, bucket) {
		in = append(in, convert(ctx, d.a, []string{key}, func(p *pageRow) pageFact {
			return pageFact{surt: p.SURT, url: p.URL, key: key, page: p}
		}))
	}
	in = append(in,
		convert(ctx, d.a, d.r.bucketKeys(stages.Dedup, stages.FileDuplicates, bucket), func(p *schema.Duplicate) pageFact {
			return pageFact{surt: p.SURT, url: p.URL, duplicate: p}
		}),
		convert(ctx, d.a, d.r.bucketKeys(stages.Dedup, stages.FileRepresentatives, bucket), func(p *schema.Representative) pageFact {
			return pageFact{surt: p.SURT, url: p.URL, standing: p}
		}))
	return merged(ctx, comparePageFacts, in...)
}

func (d *dedupCheck) duplicatesKey(bucket int) string {
	return layout.Table(stages.FileDuplicates, d.r.crawl, d.r.number, bucket)
}

func (d *dedupCheck) standingKey(bucket int) string {
	return layout.Working(d.r.crawl, d.r.number, string(stages.Dedup), stages.FileRepresentatives, bucket)
}

func (d *dedupCheck) report(key, url, format string, args ...any) {
	d.a.report(Violation{
		Invariant: 5, Check: clustersCheck, Round: d.r.number, Object: key,
		Row: url, Where: urlIs(url), Problem: fmt.Sprintf(format, args...),
	})
}

// sealedOf names the round of a representative's age.
func (d *dedupCheck) sealedOf(age int) (crawl string, round int) {
	if age < len(d.r.earlier) {
		return d.r.earlier[age].Crawl, d.r.earlier[age].Round
	}
	return d.r.crawl, d.r.number
}

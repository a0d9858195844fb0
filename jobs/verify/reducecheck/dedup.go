package reducecheck

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
	"crawlbatch.io/crawlbatch/stages"
)

// pageRow holds the columns of the pages dataset that invariant 5 needs. Only rows of the publish
// stage have the last three columns.
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

// pageFact is one table's row about one page of the round. Exactly one pointer of a pageFact is
// set.
type pageFact struct {
	surt, url string
	key       string // key of the file with the row of pages
	page      *pageRow
	duplicate *schema.Duplicate
	standing  *schema.Representative
}

func pageFactKey(k table.Key, f *pageFact) table.Key { return k.Text(f.surt).Text(f.url) }

// ClustersAreTheComponents groups the pages by the definition of a cluster in package dedup, but
// without the code of that package. The check compares the groups with every row of the dataset
// duplicates, with the columns that publish fills, and with the representatives that later rounds
// will read.
//
// The check reads all pages twice in the same order. The first pass reads fingerprints and digests,
// and computes the components (see likeness for the memory). The second pass reads the members of
// clusters with their rows, sorts the members by component, and judges each cluster as a whole.
func ClustersAreTheComponents(ctx context.Context, a *audit.Audit, r *audit.Round) error {
	a.Count(clustersMatch, 0)
	a.Count(sealedUnchanged, 0)
	if err := checkSealed(ctx, a, r); err != nil {
		return err
	}
	if a.Config == nil || !r.Complete(stages.Merge) || !r.Complete(stages.Dedup) {
		return nil
	}
	d := &dedupCheck{a: a, r: r, published: r.Complete(stages.Publish), maxDistance: a.Config.Dedup.MaxDistance, minWords: a.Config.Dedup.MinWords,
		earlier: stages.Since(r.Earlier, r.Crawl, a.Config.Dedup.Months)}
	if a.AnyPruned(d.earlier, r.Number, clustersMatch) {
		return nil
	}
	return a.Skip(d.run(ctx), clustersMatch, r)
}

// checkSealed compares the digests of the files of representatives with the seals of this round and of
// earlier rounds. It skips rounds for which the audit runs this check anyway.
func checkSealed(ctx context.Context, a *audit.Audit, r *audit.Round) error {
	first := !slices.ContainsFunc(r.Earlier, func(s *manifest.Sealed) bool { return s.Crawl == r.Crawl })
	var sealed []*manifest.Sealed
	if first || a.Round >= 0 {
		sealed = slices.Clone(r.Earlier)
	}
	if r.Sealed != nil {
		sealed = append(sealed, r.Sealed)
	}
	for _, s := range sealed {
		for _, f := range s.FilesOf(stages.FileRepresentatives) {
			a.Count(sealedUnchanged, 1)
			got, err := a.Digest(ctx, f.Key, false)
			if err != nil {
				if err := a.Fault(err, sealedUnchanged, r.Number, f.Key); err != nil {
					return err
				}
				continue
			}
			if got.Bytes != f.Bytes || got.SHA256 != f.SHA256 {
				a.Wrong(sealedUnchanged, r.Number, audit.At{Object: f.Key}, "representatives changed after round %s.%d was sealed: they have %d bytes with SHA-256 %s, the seal says %d with %s",
					s.Crawl, s.Round, got.Bytes, got.SHA256, f.Bytes, f.SHA256)
			}
		}
	}
	return nil
}

// dedupCheck is one run of ClustersAreTheComponents.
type dedupCheck struct {
	a           *audit.Audit
	r           *audit.Round
	published   bool // true: the pages come from publish and have the columns about clusters
	maxDistance int
	minWords    int
	earlier     []*manifest.Sealed // rounds whose representatives are compared with the pages, oldest first

	*likeness
	members *table.Sorter[member]
}

func (d *dedupCheck) run(ctx context.Context) (err error) {
	if d.likeness, err = newLikeness(d.a.Scratch); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	if err := d.numberPages(ctx); err != nil {
		return err
	}
	if err := d.connect(ctx, d.maxDistance); err != nil {
		return err
	}
	if d.members, err = table.NewSorter(d.a.Scratch, memberKey, audit.SortMemory); err != nil {
		return err
	}
	defer d.members.Close()
	if err := d.collect(ctx); err != nil {
		return err
	}
	return d.judge(ctx)
}

// numberPages numbers the pages that have a text. Representatives of earlier rounds come first,
// from oldest to newest. The round's pages follow, ordered by bucket.
func (d *dedupCheck) numberPages(ctx context.Context) error {
	for p, err := range d.sealedTexts(ctx) {
		if err != nil {
			return err
		}
		if err := d.add(p.features); err != nil {
			return err
		}
	}
	d.sealed = d.count
	for bucket := range d.r.Plan.Buckets {
		for m, err := range d.factsOf(ctx, bucket) {
			if err != nil {
				return err
			}
			if m.page == nil {
				continue
			}
			page, ok := d.featuresOf(m.page)
			if ok {
				err = d.add(page)
			} else if m.page.TextDigest != "" {
				d.wrong(m.key, m.url, "its text_digest %q is not a SHA-1 in base 32", m.page.TextDigest)
			}
			if err != nil {
				return err
			}
		}
	}
	d.a.Count(clustersMatch, d.count-d.sealed)
	return nil
}

// featuresOf returns the features of a page of the round. It returns false if the page has no text.
func (d *dedupCheck) featuresOf(p *pageRow) (features, bool) {
	return featuresOf(p.TextDigest, p.SimHash, int(p.WordCount), d.minWords)
}

// sealedText is a representative of an earlier round. The representative has a text.
type sealedText struct {
	schema.Representative
	features
	age int // number of the representative's round, counted from the oldest
}

// sealedTexts yields the representatives of earlier rounds that have a text, oldest first.
func (d *dedupCheck) sealedTexts(ctx context.Context) iter.Seq2[sealedText, error] {
	return func(yield func(sealedText, error) bool) {
		for age, s := range d.earlier {
			for p, err := range audit.Concat[schema.Representative](ctx, d.a, audit.Keys(s.FilesOf(stages.FileRepresentatives))) {
				l, ok := featuresOf(p.TextDigest, p.SimHash, int(p.WordCount), d.minWords)
				if (ok || err != nil) && !yield(sealedText{p, l, age}, err) {
					return
				}
			}
		}
	}
}

// factsOf yields the rows of all tables about a bucket's pages, ordered by SURT and URL.
func (d *dedupCheck) factsOf(ctx context.Context, bucket int) iter.Seq2[pageFact, error] {
	stage := stages.Merge
	if d.published {
		stage = stages.Publish
	}
	pages, err := partitionKeys(ctx, d.r, stage, stages.FilePages, bucket)
	duplicates, err2 := bucketKeys(ctx, d.r, stages.Dedup, stages.FileDuplicates, bucket)
	standing, err3 := bucketKeys(ctx, d.r, stages.Dedup, stages.FileRepresentatives, bucket)
	if err := cmp.Or(err, err2, err3); err != nil {
		return func(yield func(pageFact, error) bool) { yield(pageFact{}, err) }
	}
	in := slices.Concat(
		convertObjects(ctx, d.a, pages, func(key string, p *pageRow) pageFact {
			return pageFact{surt: p.SURT, url: p.URL, key: key, page: p}
		}),
		convertObjects(ctx, d.a, duplicates, func(_ string, p *schema.Duplicate) pageFact {
			return pageFact{surt: p.SURT, url: p.URL, duplicate: p}
		}),
		convertObjects(ctx, d.a, standing, func(_ string, p *schema.Representative) pageFact {
			return pageFact{surt: p.SURT, url: p.URL, standing: p}
		}))
	return merged(ctx, pageFactKey, in...)
}

func (d *dedupCheck) duplicatesKey(bucket int) string {
	return layout.Table(stages.FileDuplicates, d.r.Crawl, d.r.Number, bucket)
}

func (d *dedupCheck) standingKey(bucket int) string {
	return layout.Working(d.r.Crawl, d.r.Number, string(stages.Dedup), stages.FileRepresentatives, bucket)
}

func (d *dedupCheck) wrong(key, url, format string, args ...any) {
	d.a.Wrong(clustersMatch, d.r.Number, audit.URL(key, url), format, args...)
}

// sealedOf returns the crawl and the round of a representative of the given age.
func (d *dedupCheck) sealedOf(age int) (crawl string, round int) {
	if age < len(d.earlier) {
		return d.earlier[age].Crawl, d.earlier[age].Round
	}
	return d.r.Crawl, d.r.Number
}

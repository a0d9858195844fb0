package reducecheck

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"crawlbatch.io/crawlbatch/formats/logarithm"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
	"crawlbatch.io/crawlbatch/stages"
)

// The largest numbers of terms that are counted again, and of pages whose topics are chosen again, in a
// partition. Hashes choose them.
const (
	mostRecounted = 200_000
	mostRescored  = 500
)

// TopicsFollow counts the pages with each term again, and compares the counts with merge's runs and with
// terms. From terms, it chooses the topics of some pages again. It does not use the code of the stages.
// The terms of a bucket come as a stream. Memory holds the terms that are counted again in a partition, and
// those of the pages whose topics are chosen again.
func TopicsFollow(ctx context.Context, a *audit.Audit, r *audit.Round) error {
	a.Count(termsAddUp, 0)
	a.Count(topicsFollow, 0)
	if !r.Complete(stages.Merge) || !r.Complete(stages.Rank) || !r.Complete(stages.Publish) {
		return nil // the tables are not complete yet
	}
	c := &topicsCheck{a: a, r: r}
	for r.Plan.URLs > mostSampledPages && r.Plan.URLs>>c.top > mostSampledPages/2 {
		c.top++
	}
	for n := range r.Plan.Partitions {
		if a.Share.Has(n) {
			if err := a.Skip(c.partition(ctx, n), topicsFollow, r); err != nil {
				return err
			}
		}
	}
	for bucket := range r.Plan.Buckets {
		if a.Share.Has(bucket) {
			if err := a.Skip(c.bucket(ctx, bucket), termsAddUp, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// mostSampledPages is the largest number of sampled pages in a language.
const mostSampledPages = 10_000_000

// leastPages returns the least number of pages with a term that has a row, among n sampled pages of its
// language.
func leastPages(n int64) int64 {
	return max(min(5, 1+n/1000), n/100_000)
}

// topicsCheck checks the terms and topics of a round. The level of a page is at most top.
type topicsCheck struct {
	a   *audit.Audit
	r   *audit.Round
	top int
}

// weighedPage holds the columns of merge's pages and of pages that decide about topics.
type weighedPage struct {
	URL      string   `parquet:"url"`
	Language string   `parquet:"language,optional"`
	Terms    []string `parquet:"terms,list"`
	Counts   []int32  `parquet:"term_counts,list"`
}

type topicsPage struct {
	URL    string   `parquet:"url"`
	Topics []string `parquet:"topics,list"`
}

// termAt names a term of a language, at a level of pages.
type termAt struct {
	language, term string
	level          int
}

func (t termAt) String() string {
	return fmt.Sprintf("%q in %s at level %d", t.term, t.language, t.level)
}

// partition counts terms of a partition's pages again, and chooses topics of pages again.
func (c *topicsCheck) partition(ctx context.Context, n int) error {
	merged, err := c.r.Result(ctx, stages.Merge, n)
	if err != nil {
		return err
	}
	published, err := c.r.Result(ctx, stages.Publish, n)
	if err != nil {
		return err
	}
	runs, working := merged.FilesOf(stages.FileTerms), merged.FilesOf(stages.FilePages)
	if len(runs) != 1 || len(working) != 1 || c.a.Broken(runs[0].Key, working[0].Key) {
		c.a.NoteOwnPruned(c.r.Number, termsAddUp)
		c.a.NoteOwnPruned(c.r.Number, topicsFollow)
		return nil // other checks report what is lost
	}
	counted, rescored := share(mostRecounted, runs[0].Rows), share(mostRescored, working[0].Rows)
	counts, pages := map[termAt]int64{}, []weighedPage{}
	err = audit.Each(ctx, c.a, []string{working[0].Key}, func(_ string, p *weighedPage) error {
		p.Language = cmp.Or(p.Language, schema.UnknownLanguage)
		if in(rescored, p.URL) {
			pages = append(pages, *p)
		}
		level := min(bits.LeadingZeros64(xxh3.HashString(p.URL)), c.top)
		if level < c.top-4 {
			return nil
		}
		for _, term := range append([]string{""}, p.Terms...) {
			if in(counted, term) {
				counts[termAt{p.Language, term, level}]++
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := c.compareRun(ctx, runs[0], counted, counts); err != nil {
		return err
	}
	return c.compareTopics(ctx, pages, audit.Keys(published.FilesOf(stages.FilePages)))
}

// share returns the limit of hashes below which about most of n items are.
func share(most, n int64) uint64 {
	if n <= most {
		return math.MaxUint64
	}
	return uint64(float64(most) / float64(n) * math.MaxUint64)
}

func in(limit uint64, name string) bool { return name == "" || xxh3.HashStringSeed(name, 1) <= limit }

// compareRun compares the counts of a partition with its run. Each section has the numbers of all pages.
func (c *topicsCheck) compareRun(ctx context.Context, run manifest.File, counted uint64, counts map[termAt]int64) error {
	sections, err := run.Sections()
	if err != nil {
		return err
	}
	wrong := func(t termAt, got, want int64) {
		c.a.Wrong(termsAddUp, c.r.Number, audit.At{Object: run.Key, Row: t.String(), Where: "term = " + audit.SQL(t.term)},
			"the run says that %d pages have the term %s; %d have it", got, t, want)
	}
	seen := map[termAt]bool{}
	for _, s := range sections {
		for row, err := range table.MergeSections(ctx, c.a.Bucket, c.a.Scratch, []manifest.Section{s}, schema.TermPagesKey) {
			if err != nil {
				return c.a.Fault(err, termsAddUp, c.r.Number, run.Key)
			}
			if !in(counted, row.Term) {
				continue
			}
			c.a.Count(termsAddUp, 1)
			t := termAt{row.Language, row.Term, int(row.Level)}
			if counts[t] != row.Pages || seen[t] && row.Term != "" {
				wrong(t, row.Pages, counts[t])
			}
			seen[t] = true
		}
	}
	for t, n := range counts {
		if !seen[t] && run.Rows > 0 {
			wrong(t, 0, n)
		}
	}
	return nil
}

// bucket compares a bucket's part of terms with the sums of the runs.
func (c *topicsCheck) bucket(ctx context.Context, bucket int) error {
	sections, ok, err := c.sections(ctx, bucket)
	if err != nil || !ok {
		return err
	}
	keys, err := bucketKeys(ctx, c.r, stages.Rank, stages.FileTerms, bucket)
	if err != nil || c.a.Broken(keys...) {
		return err
	}
	got := table.Pull(audit.Concat[schema.Term](ctx, c.a, keys))
	defer got.Close()
	wrong := func(t *schema.Term, format string, args ...any) {
		c.a.Wrong(termsAddUp, c.r.Number, audit.At{Object: strings.Join(keys, ", "), Row: t.Language + " " + t.Term, Where: "language = " + audit.SQL(t.Language) + " AND term = " + audit.SQL(t.Term)}, format, args...)
	}
	err = c.wanted(ctx, sections, func(want *schema.Term) error {
		c.a.Count(termsAddUp, 1)
		for {
			row, err := got.Peek()
			if err != nil {
				return err
			}
			order := 1
			if row != nil {
				order = cmp.Or(strings.Compare(row.Language, want.Language), strings.Compare(row.Term, want.Term))
			}
			switch {
			case order > 0:
				wrong(want, "it has no row, but %d of %d sampled pages have it", want.Pages, want.Sampled)
				return nil
			case order < 0:
				wrong(row, "it has a row, but too few pages")
			case *row != *want:
				wrong(row, "its row says %d of %d sampled pages; the runs add up to %d of %d", row.Pages, row.Sampled, want.Pages, want.Sampled)
			}
			_, _ = got.Next() // skips the row that Peek returned
			if order == 0 {
				return nil
			}
		}
	})
	for row := (*schema.Term)(nil); err == nil; {
		if row, err = got.Next(); row == nil {
			break
		}
		wrong(row, "it has a row, but too few pages")
	}
	return err
}

// sections lists the sections of a bucket in all runs. ok is false if a run is damaged, which other checks
// report.
func (c *topicsCheck) sections(ctx context.Context, bucket int) (sections []manifest.Section, ok bool, err error) {
	for n := range c.r.Plan.Partitions {
		merged, err := c.r.Result(ctx, stages.Merge, n)
		if err != nil {
			return nil, false, err
		}
		for _, f := range merged.FilesOf(stages.FileTerms) {
			all, err := f.Sections()
			if err != nil || c.a.Broken(f.Key) {
				return nil, false, nil
			}
			for _, s := range all {
				if s.Bucket == bucket {
					sections = append(sections, s)
				}
			}
		}
	}
	return sections, true, nil
}

// wanted calls do with each row that terms should have.
func (c *topicsCheck) wanted(ctx context.Context, sections []manifest.Section, do func(*schema.Term) error) error {
	var term schema.Term
	var pages, all [65]int64 // by level: of the term, and of its language
	end := func() error {
		sampled, lowest := int64(0), c.top
		for level := c.top; level >= 0 && (level == c.top || sampled+all[level] <= mostSampledPages); level-- {
			sampled += all[level]
			lowest = level
		}
		term.Sampled, term.Pages = sampled, 0
		for level := lowest; level <= c.top; level++ {
			term.Pages += pages[level]
		}
		if term.Term == "" || term.Pages < leastPages(sampled) {
			return nil
		}
		return do(&term)
	}
	for row, err := range table.MergeSections(ctx, c.a.Bucket, c.a.Scratch, sections, schema.TermPagesKey) {
		if err != nil {
			return c.a.Fault(err, termsAddUp, c.r.Number, sections[0].Key)
		}
		if row.Language != term.Language || row.Term != term.Term {
			if err := end(); err != nil {
				return err
			}
			if row.Language != term.Language {
				all = [65]int64{}
			}
			term, pages = schema.Term{Language: row.Language, Term: row.Term}, [65]int64{}
		}
		sums := &pages
		if row.Term == "" {
			sums = &all
		}
		sums[min(max(int(row.Level), 0), c.top)] += row.Pages
	}
	return end()
}

// compareTopics chooses the topics of pages again, and compares them with published pages.
func (c *topicsCheck) compareTopics(ctx context.Context, pages []weighedPage, published []string) error {
	idf := map[termAt]float64{}
	for _, p := range pages {
		for _, term := range p.Terms {
			idf[termAt{p.Language, term, 0}] = 0
		}
	}
	for bucket := range c.r.Plan.Buckets {
		keys, err := bucketKeys(ctx, c.r, stages.Rank, stages.FileTerms, bucket)
		if err != nil || c.a.Broken(keys...) {
			return err
		}
		err = audit.Each(ctx, c.a, keys, func(_ string, t *schema.Term) error {
			at := termAt{t.Language, t.Term, 0}
			if _, ok := idf[at]; ok {
				idf[at] = math.Round(1e6 * (logarithm.Of(float64(t.Sampled+1)/float64(t.Pages+1)) + 1))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	want := map[string][]string{}
	for _, p := range pages {
		var ranked []int
		score := func(i int) float64 { return idf[termAt{p.Language, p.Terms[i], 0}] * float64(p.Counts[i]) }
		for i := range p.Terms {
			if score(i) > 0 {
				ranked = append(ranked, i)
			}
		}
		slices.SortStableFunc(ranked, func(i, j int) int { return cmp.Compare(score(j), score(i)) })
		topics := []string{}
		for _, i := range ranked[:min(len(ranked), 15)] {
			topics = append(topics, p.Terms[i])
		}
		want[p.URL] = topics
	}
	return audit.Each(ctx, c.a, published, func(key string, p *topicsPage) error {
		topics, ok := want[p.URL]
		if !ok {
			return nil
		}
		c.a.Count(topicsFollow, 1)
		if !slices.Equal(topics, p.Topics) {
			c.a.Wrong(topicsFollow, c.r.Number, audit.URL(key, p.URL), "its topics are %q; its terms and their frequencies give %q", p.Topics, topics)
		}
		return nil
	})
}

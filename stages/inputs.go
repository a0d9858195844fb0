package stages

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
)

// Checked wraps the bucket b for a task that reads the files of in. The result compares what it reads
// with the digests in the plan, the results and the seals, so a task never reads changed bytes.
func Checked(b store.Bucket, in *Input) *manifest.Checked {
	c := manifest.NewChecked(b)
	if in.Plan != nil {
		const remedy = "it cannot be recreated: restore it from a copy"
		for _, p := range in.Plan.Partitions {
			c.Add(remedy, p.File)
		}
		c.Add(remedy, in.Plan.Lists()...)
	}
	for stage, results := range in.Results {
		for _, r := range results {
			if r != nil {
				for _, f := range r.Files {
					c.Add(RemedyFor(stage, in.Task.Crawl, f), f)
				}
			}
		}
	}
	for _, s := range in.Earlier {
		for _, f := range s.Files {
			if ReadLater(f) {
				c.Add(RemedyFor(Publish, s.Crawl, f), f)
			}
		}
	}
	return c
}

// Since returns the earlier rounds whose crawls are at most the given number of months older than
// the given crawl. If months is 0, Since returns all rounds.
func Since(earlier []*manifest.Sealed, crawl string, months int) []*manifest.Sealed {
	if months == 0 {
		return earlier
	}
	oldest := monthOf(crawl) - months
	return slices.DeleteFunc(slices.Clone(earlier), func(s *manifest.Sealed) bool { return monthOf(s.Crawl) < oldest })
}

// monthOf returns the month of a crawl as a number. Consecutive months have consecutive numbers.
func monthOf(crawl string) int {
	month, _ := layout.MonthOf(crawl)
	t, err := layout.ParseMonth(month)
	if err != nil {
		return math.MaxInt32 // a round of an unknown month counts as new
	}
	return 12*t.Year() + int(t.Month())
}

// ReadLater reports whether tasks of later rounds read the file f of a sealed round. A seal omits the
// block digests of all other files, and Checked does not check those files.
func ReadLater(f manifest.File) bool {
	return f.Dataset == FileURLs || f.Dataset == FileURLsBase || f.Dataset == FileRepresentatives || f.Dataset == FileLinks || f.Dataset == FileDomains
}

// RemedyFor says how to recover a lost or changed file that the results of stage s list. In a reparse,
// the results of fetch also list files of the crawl that fetched the pages. These cannot be rebuilt.
func RemedyFor(s Stage, crawl string, f manifest.File) string {
	if s == Fetch && !(layout.IsReparse(crawl) && strings.HasPrefix(f.Key, layout.CrawlDir(crawl))) {
		return "fetched data cannot be recreated: restore it from a copy"
	}
	return fmt.Sprintf("restore it from a copy, or rebuild it with `crawlbatch retry --month %s --rebuild`", crawl)
}

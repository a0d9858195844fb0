package publish

import (
	"fmt"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/stages"
)

// Seal lists all files that a round has published. The parameter results must hold the results of
// all tasks of all stages. Only the files that tasks of later rounds read keep the digests of their
// blocks, because every task loads the seals of all earlier rounds. The seal's counts are sums over
// the tasks, with names of the form STAGE.NAME.
func Seal(p *manifest.Plan, results map[stages.Stage][]*manifest.Result) (*manifest.Sealed, error) {
	s := &manifest.Sealed{Crawl: p.Crawl, Round: p.Round, Plan: p.ID}
	if p.Format >= 4 {
		s.Buckets = p.Buckets
	}
	totals := map[string]int64{"plan.urls": p.URLs, "plan.domains": p.Domains, "plan.hosts": p.Hosts, "plan.partitions": int64(len(p.Partitions))}
	for _, from := range stages.Order {
		if len(results[from]) != from.Tasks(p) {
			return nil, fmt.Errorf("seal %s.%d: %s has %d of %d results", p.Crawl, p.Round, from, len(results[from]), from.Tasks(p))
		}
		for n, r := range results[from] {
			if r == nil {
				return nil, fmt.Errorf("seal %s.%d: %s:%d has no result", p.Crawl, p.Round, from, n)
			}
			for _, c := range r.Counts {
				totals[string(from)+"."+c.Name] += c.N
			}
			for _, f := range r.Files {
				if !lasts(from, f) {
					continue
				}
				if !stages.ReadLater(f) {
					f.Blocks = ""
				}
				s.Files = append(s.Files, f)
			}
		}
	}
	s.Counts = manifest.SortedCounts(totals)
	slices.SortFunc(s.Files, func(a, b manifest.File) int { return strings.Compare(a.Key, b.Key) })
	return s, nil
}

// lasts reports whether later rounds or readers need a file. Later rounds and readers need parts of
// datasets, WARC files, web graphs, and the working files of dedup and frontier.
func lasts(stage stages.Stage, f manifest.File) bool {
	return strings.HasPrefix(f.Key, "tables/") || strings.HasPrefix(f.Key, "warc/") || f.Dataset == stages.FileWebGraph || stage == stages.Dedup || stage == stages.Frontier
}

package stages

import (
	"context"
	"fmt"
	"path"
	"slices"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/table"
)

// Keys lists the keys of a dataset's objects in the results of a stage's tasks, in the tasks'
// order. The results of tasks that the caller does not read may be nil.
func Keys(results []*manifest.Result, dataset string) []string {
	return keys(results, dataset, func(*manifest.File) bool { return true })
}

// SubsetKeys works like Keys, but lists only keys of one subset of captures. subset is "" for
// datasets without subsets.
func SubsetKeys(results []*manifest.Result, dataset, subset string) []string {
	return keys(results, dataset, func(f *manifest.File) bool { return f.Subset == subset })
}

// PartKeys works like Keys, but lists only keys of the parts with the given number, whichever tasks
// wrote them.
func PartKeys(results []*manifest.Result, dataset string, part int) []string {
	name := layout.Part(part) + ".parquet"
	return keys(results, dataset, func(f *manifest.File) bool { return path.Base(f.Key) == name })
}

func keys(results []*manifest.Result, dataset string, match func(*manifest.File) bool) (keys []string) {
	for _, r := range results {
		if r == nil {
			continue
		}
		for _, f := range r.FilesOf(dataset) {
			if match(&f) {
				keys = append(keys, f.Key)
			}
		}
	}
	return keys
}

// Sections lists the sections of a bucket in the runs of a dataset, in the tasks' order. Each result
// must list a run.
func Sections(results []*manifest.Result, dataset string, bucket int) (sections []manifest.Section, err error) {
	runs := 0
	for _, r := range results {
		if r == nil {
			continue
		}
		for _, f := range r.FilesOf(dataset) {
			all, err := f.Sections()
			if err != nil {
				return nil, err
			}
			if len(all) == 0 {
				return nil, fmt.Errorf("the run %q has no sections: %w", f.Key, ErrPermanent)
			}
			runs++
			if i := slices.IndexFunc(all, func(s manifest.Section) bool { return s.Bucket == bucket }); i >= 0 {
				sections = append(sections, all[i])
			}
		}
	}
	if runs != len(results) {
		return nil, fmt.Errorf("%d of %d results list a run of %s: %w", runs, len(results), dataset, ErrPermanent)
	}
	return sections, nil
}

// OfBucket selects the results for the partitions of a reduce bucket. results has one result for each
// partition, in order.
func OfBucket(p *manifest.Plan, results []*manifest.Result, bucket int) []*manifest.Result {
	var out []*manifest.Result
	for _, part := range p.Partitions {
		if part.Bucket == bucket {
			out = append(out, results[part.Partition])
		}
	}
	return out
}

// HostRanks reads the ranks of a bucket's hosts from the results of rank. It also returns the number of
// hosts in all those results of rank that the task reads.
func HostRanks(ctx context.Context, env *Env, in *Input, bucket int) (ranks map[string]float64, hosts int64, err error) {
	type row struct {
		Host string  `parquet:"host"`
		Rank float64 `parquet:"rank"`
	}
	for _, r := range in.Results[Rank] {
		if r == nil {
			continue // publish reads only the results of its own bucket and of bucket 0
		}
		for _, f := range r.FilesOf(FileHosts) {
			hosts += f.Rows
		}
	}
	ranks = map[string]float64{}
	for h, err := range table.Concat[row](ctx, env.Bucket, PartKeys(in.Results[Rank], FileHosts, bucket)) {
		if err != nil {
			return nil, 0, fmt.Errorf("read hosts: %w", err)
		}
		ranks[h.Host] = h.Rank
	}
	return ranks, hosts, nil
}

package takedown

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/localfile"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs/takedown/rewrite"
	"crawlbatch.io/crawlbatch/stages"
)

type (
	fetchRow struct {
		Outcome string `parquet:"outcome,dict"`
	}
	requestRow struct {
		Bytes int64 `parquet:"bytes_received"`
	}
	urlRow struct {
		State string `parquet:"state,dict"`
	}
	skipRow struct {
		Reason string `parquet:"reason,dict"`
	}
	setRow struct {
		Links int32 `parquet:"link_count"`
	}
	pageRow struct {
		Indexable   bool   `parquet:"indexable"`
		DuplicateOf string `parquet:"duplicate_of,optional"`
	}
	duplicateRow struct {
		Kind string `parquet:"kind,dict"`
	}
	plannedRow struct {
		Host   string `parquet:"host,dict"`
		Domain string `parquet:"domain,dict"`
	}
)

// countRows returns by how much the counts fall that documents take from the columns of a file. The new
// content may have rows that the old one lacks, so a count may rise.
func countRows(ctx context.Context, b store.Bucket, f manifest.File, n *rewrite.Rewritten) (map[string]int64, error) {
	lost := map[string]int64{}
	switch {
	case f.Dataset == stages.FileLinkSets: // documents count the links of all sets together
		return lost, each(ctx, b, f.Key, n.Path, func(r *setRow, sign int64) { lost["links"] += sign * int64(r.Links) })
	case f.Dataset == stages.FilePages && strings.HasPrefix(f.Key, "tables/"):
		return lost, each(ctx, b, f.Key, n.Path, func(r *pageRow, sign int64) {
			if r.Indexable {
				lost["indexable"] += sign
			}
			if r.DuplicateOf != "" {
				lost["duplicates"] += sign
			}
		})
	case f.Dataset == stages.FileDuplicates: // rows may get another kind
		return lost, each(ctx, b, f.Key, n.Path, func(r *duplicateRow, sign int64) { lost[strings.Clone(r.Kind)] += sign })
	case n.File.Rows == f.Rows:
	case f.Dataset == stages.FileFetches:
		return lost, each(ctx, b, f.Key, n.Path, func(r *fetchRow, sign int64) { lost["outcome."+r.Outcome] += sign })
	case f.Dataset == stages.FileRequests:
		return lost, each(ctx, b, f.Key, n.Path, func(r *requestRow, sign int64) { lost["bytes"] += sign * r.Bytes })
	case f.Dataset == stages.FileURLs:
		return lost, each(ctx, b, f.Key, n.Path, func(r *urlRow, sign int64) { lost["state."+r.State] += sign })
	case f.Dataset == stages.FileSkips:
		return lost, each(ctx, b, f.Key, n.Path, func(r *skipRow, sign int64) { lost["skip."+r.Reason] += sign })
	case f.Dataset == refusedRows:
		return lost, each(ctx, b, f.Key, n.Path, func(r *skipRow, sign int64) { lost[strings.Clone(r.Reason)] += sign })
	case f.Dataset == stages.FileTargets:
		old, err := f.Sections()
		if err != nil {
			return nil, err
		}
		renewed, err := n.File.Sections()
		for _, s := range old {
			lost[edgesOf(s.Bucket)] += s.Rows
		}
		for _, s := range renewed {
			lost[edgesOf(s.Bucket)] -= s.Rows
		}
		return lost, err
	}
	return lost, nil
}

// refusedRows is the dataset of the rows that a plan refused.
const refusedRows = "refused"

// edgesOf names the rows about links to a bucket. The result of rank for this bucket counts them as edges.
func edgesOf(bucket int) string { return "edges:" + strconv.Itoa(bucket) }

// each calls do with each row of a file (sign 1), and then with each row of its new content (sign -1).
func each[T any](ctx context.Context, b store.Bucket, key, path string, do func(r *T, sign int64)) error {
	for row, err := range table.Concat[T](ctx, b, []string{key}) {
		if err != nil {
			return err
		}
		do(&row, 1)
	}
	for row, err := range table.Concat[T](ctx, localFile{b, path}, []string{key}) {
		if err != nil {
			return err
		}
		do(&row, -1)
	}
	return nil
}

// localFile is a bucket whose only object is a local file.
type localFile struct {
	store.Bucket
	path string
}

// Open implements store.Bucket.
func (b localFile) Open(ctx context.Context, _ string) (store.Object, error) {
	f, err := os.Open(b.path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return localfile.NewObject(ctx, f, info.Size(), func(err error) error { return err }), nil
}

// lostNames says how many hosts and domains a plan file loses. A domain is in one partition.
type lostNames struct{ hosts, domains int64 }

// countNames compares a plan file with its new content. It holds the names of all hosts of the file.
func (w *work) countNames(ctx context.Context, key string, n *rewrite.Rewritten) (lostNames, error) {
	hosts, domains := map[string]bool{}, map[string]bool{}
	last := ""
	err := each(ctx, w.r.Bucket, key, n.Path, func(r *plannedRow, sign int64) {
		switch {
		case sign < 0:
			delete(hosts, r.Host)
			delete(domains, r.Domain)
		case r.Host != last:
			last = strings.Clone(r.Host)
			hosts[last], domains[strings.Clone(r.Domain)] = true, true
		}
	})
	return lostNames{int64(len(hosts)), int64(len(domains))}, err
}

// fromOthers adds what the counts of a result lose because of files that the results of other tasks list.
func (r *round) fromOthers(t stages.Task, recounts map[string]int64) {
	switch t.Stage {
	case stages.Merge:
		for name, n := range recounts {
			if strings.HasPrefix(name, "edges:") {
				r.edges[name] += n
			}
		}
	case stages.Rank:
		recounts["edges"] = r.edges[edgesOf(t.Partition)]
	}
}

// lower lowers the counts of a document by the rows that its files lost.
func lower(counts []manifest.Count, stage stages.Stage, lost, recounts map[string]int64) []manifest.Count {
	for i := range counts {
		c := &counts[i]
		rows := c.Name
		if stage == stages.Fetch && c.Name == "urls" {
			rows = stages.FileFetches
		}
		c.N -= lost[rows] + recounts[c.Name]
	}
	return slices.DeleteFunc(counts, func(c manifest.Count) bool { return c.N == 0 && strings.Contains(c.Name, ".") })
}

//go:build lab

package lab

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"sync"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/formats/catalog"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
)

// rowReaders maps datasets to readers of their rows. It has only datasets whose stable columns do not depend
// on interruptions of the crawl.
var rowReaders = map[string]func(context.Context, store.Bucket, []string) iter.Seq2[any, error]{
	"fetches": rowsOfAny[schema.Fetch], "pages": rowsOfAny[schema.Page], "text": rowsOfAny[schema.Text], "links": rowsOfAny[schema.Link],
	"duplicates": rowsOfAny[schema.Duplicate], "hosts": rowsOfAny[schema.Host], "urls": rowsOfAny[schema.URLRecord], "skips": rowsOfAny[schema.Skip],
	"domains": rowsOfAny[schema.Domain], "terms": rowsOfAny[schema.Term],
}

func rowsOfAny[T any](ctx context.Context, b store.Bucket, keys []string) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		for row, err := range table.Concat[T](ctx, b, keys) {
			if !yield(row, err) {
				return
			}
		}
	}
}

// stableRowReader reads the rows of one dataset.
type stableRowReader struct {
	dataset string
	read    func(context.Context, store.Bucket, []string) iter.Seq2[any, error]
	stable  map[string]bool
}

var stableReaders = sync.OnceValue(func() (all []stableRowReader) {
	for _, d := range catalog.Datasets() {
		if rowReaders[d.Name] == nil {
			continue
		}
		r := stableRowReader{d.Name, rowReaders[d.Name], map[string]bool{}}
		for _, c := range d.Columns {
			r.stable[c.Name] = c.Stable
		}
		all = append(all, r)
	}
	return all
})

// storedRows returns the stable columns of a crawl's published rows, by dataset.
func storedRows(ctx context.Context, b store.Bucket, crawl string) (map[string][]string, error) {
	all := map[string][]string{}
	sealed, err := crawltest.SealedFiles(ctx, b, crawl)
	if err != nil {
		return nil, err
	}
	for _, r := range stableReaders() {
		var keys, rows []string
		for _, s := range sealed {
			for _, f := range s.FilesOf(r.dataset) {
				keys = append(keys, f.Key)
			}
		}
		for row, err := range r.read(ctx, b, keys) {
			if err != nil {
				return nil, err
			}
			text, err := stableText(r.stable, row)
			if err != nil {
				return nil, err
			}
			rows = append(rows, text)
		}
		slices.Sort(rows)
		all[r.dataset] = rows
	}
	return all, nil
}

func stableText(stable map[string]bool, row any) (string, error) {
	text, err := catalog.AppendJSON(nil, row)
	if err != nil {
		return "", err
	}
	var columns map[string]json.RawMessage
	if err := json.Unmarshal(text, &columns); err != nil {
		return "", err
	}
	maps.DeleteFunc(columns, func(name string, _ json.RawMessage) bool { return !stable[name] })
	text, err = json.Marshal(columns)
	return string(text), err
}

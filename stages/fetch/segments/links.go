package segments

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

// errStopped ends the decoding of a set when the caller wants no more links.
var errStopped = errors.New("stopped")

// Links yields the links of the segments that a result lists, in the order of recording.
func Links(ctx context.Context, b store.Bucket, r *manifest.Result) iter.Seq2[schema.Link, error] {
	return func(yield func(schema.Link, error) bool) {
		for set, err := range table.Concat[schema.LinkSet](ctx, b, stages.Keys([]*manifest.Result{r}, stages.FileLinkSets)) {
			if err == nil {
				err = schema.EachLink(set.SourceSURT, set.Source, string(set.Links), func(l *schema.Link) error {
					if !yield(*l, nil) {
						return errStopped
					}
					return nil
				})
			}
			switch err {
			case nil:
				continue
			case errStopped:
			case schema.ErrLinkSet:
				yield(schema.Link{}, fmt.Errorf("links of %q: %w: %w", set.Source, err, manifest.ErrCorrupt))
			default:
				yield(schema.Link{}, err)
			}
			return
		}
	}
}

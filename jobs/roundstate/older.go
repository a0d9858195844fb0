package roundstate

import (
	"context"

	"crawlbatch.io/crawlbatch/formats/catalog"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages"
)

// WrittenBy maps the name of each dataset to the stage that writes the dataset's parts. It lacks the
// datasets stages and runs, because the driver writes them, and domains, which has no parts of
// format 1.
var WrittenBy = map[string]stages.Stage{
	"captures": stages.Merge, "fetches": stages.Merge, "requests": stages.Merge, "text": stages.Merge, "links": stages.Merge,
	"duplicates": stages.Dedup, "hosts": stages.Rank, "urls": stages.Frontier, "skips": stages.Frontier, "pages": stages.Publish,
}

// OlderParts lists the rounds that have parts of format 1, each with the datasets of these parts.
func OlderParts(ctx context.Context, b store.Bucket, sealed []*manifest.Sealed) ([]catalog.Older, error) {
	var older []catalog.Older
	for _, s := range sealed {
		formats, err := FrozenFormats(ctx, b, s)
		if err != nil {
			return nil, err
		}
		o := catalog.Older{Crawl: s.Crawl, Round: s.Round}
		for _, d := range catalog.Datasets() {
			if stage, ok := WrittenBy[d.Name]; ok && formats[stage] < 2 {
				o.Datasets = append(o.Datasets, d.Name)
			}
		}
		if len(o.Datasets) > 0 {
			older = append(older, o)
		}
	}
	return older, nil
}

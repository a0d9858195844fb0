package merge

import (
	"context"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

func compareSitemaps(a, b *schema.Sitemap) int {
	return schema.CompareURLs(a.SURT, a.URL, b.SURT, b.URL)
}

// mergeSitemaps writes the working file of the sitemaps that the round fetched because robots.txt
// names them. They have links, but are neither pages nor planned URLs.
func (m *merger) mergeSitemaps(ctx context.Context) error {
	if !m.env.Has(6) {
		return nil // rounds of older formats fetch no such sitemaps
	}
	return keep(ctx, m, stages.FileSitemaps, stages.ByURL, func(w *table.Writer[schema.Sitemap]) error {
		last := ""
		return appendSorted(ctx, m, w, m.keys(stages.FileSitemaps, ""), compareSitemaps, func(s *schema.Sitemap) bool {
			if s.Outcome != schema.OK || s.Earlier || s.URL == last {
				return false
			}
			last = s.URL
			return true
		})
	})
}

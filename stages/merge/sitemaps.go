package merge

import (
	"context"
	"fmt"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
)

// sitemapKey orders sitemaps by URL. A document comes before a failure.
func sitemapKey(k table.Key, s *schema.Sitemap) table.Key {
	return k.Text(s.SURT).Text(s.URL).Bool(s.Outcome != schema.OK)
}

// mergeSitemaps writes the working file of the sitemaps that the round requested because robots.txt or a
// sitemap index names them. They may have links, but are neither pages nor planned URLs. If the named
// URL redirected, it has a row of its own.
func (m *merger) mergeSitemaps(ctx context.Context) error {
	rows, err := table.NewSorter(m.env.Scratch, sitemapKey, m.sortMemory/4)
	if err != nil {
		return err
	}
	defer rows.Close()
	for s, err := range table.Concat[schema.Sitemap](ctx, m.env.Bucket, m.keys(stages.FileSitemaps, "")) {
		if err != nil {
			return err
		}
		if s.Outcome == "" || s.Earlier || s.FetchedAt == 0 {
			continue
		}
		if s.Named != "" {
			k, err := urlkey.KeyOf(s.Named)
			if err != nil {
				return fmt.Errorf("sitemap %q: %w", s.Named, err)
			}
			first := schema.Sitemap{SURT: k.SURT, URL: k.URL, Host: k.Host, Domain: k.Domain, Outcome: schema.Redirected, FetchedAt: s.FetchedAt}
			if err := rows.Add(&first); err != nil {
				return err
			}
		}
		if err := rows.Add(&s); err != nil {
			return err
		}
	}
	return keep(ctx, m, stages.FileSitemaps, stages.ByURL, func(w *table.Writer[schema.Sitemap]) error {
		last := ""
		for s, err := range rows.Sorted(ctx) {
			if err != nil {
				return err
			}
			if s.URL == last {
				continue
			}
			last = s.URL
			if err := w.Append(&s); err != nil {
				return err
			}
		}
		return nil
	})
}

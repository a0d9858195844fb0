package fetchcheck

import (
	"context"
	"fmt"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
	"crawlbatch.io/crawlbatch/stages"
)

// sitemapRow holds those columns of the working file sitemaps that are compared with requests.
type sitemapRow struct {
	URL     string      `parquet:"url"`
	Named   string      `parquet:"named,optional"`
	Outcome string      `parquet:"outcome,optional"`
	Earlier bool        `parquet:"earlier"`
	Status  int16       `parquet:"http_status,optional"`
	At      schema.Time `parquet:"fetched_at,optional,timestamp(microsecond)"`
}

// ended reports whether the row says how a request of this round ended.
func (s *sitemapRow) ended() bool { return s.Outcome != "" && !s.Earlier && s.At != 0 }

// sitemapFact is a request for a sitemap, or a row of the working file about it. In the sort order, a
// request comes before the row with the same URL and time.
type sitemapFact struct {
	URL    string
	At     schema.Time // time of the request; 0 if the row only names the URL
	Row    bool        // whether it is a row of the working file
	Status int16
	Table  string // key of the file
}

func factKey(k table.Key, f *sitemapFact) table.Key {
	return k.Text(f.URL).Int(int64(f.At)).Bool(f.Row)
}

// segmentsOf lists the keys of a partition's segments of a dataset, as the fetch task wrote them.
func segmentsOf(p *audit.Partition, dataset string) (keys []string) {
	for _, f := range p.Fetched.FilesOf(dataset) {
		keys = append(keys, f.Key)
	}
	return keys
}

// sitemapsHaveTheirRequests compares a partition's rows of sitemaps with its requests. For each row with an
// outcome, there is a request with the same URL, time and HTTP status. For each request for a sitemap,
// there is a row that names its URL.
func sitemapsHaveTheirRequests(ctx context.Context, a *audit.Audit, r *audit.Round, n int) error {
	p, err := r.Partition(ctx, n)
	if err != nil || p.Fetched == nil || a.Reparse != nil {
		return err
	}
	files := segmentsOf(&p, stages.FileSitemaps)
	requests, _ := p.Files(stages.FileRequests, "")
	if a.Broken(files...) || a.Broken(requests...) {
		return nil
	}
	facts, err := table.NewSorter(a.Scratch, factKey, audit.SortMemory)
	if err != nil {
		return err
	}
	defer facts.Close() //nolint:errcheck // the sorter holds only temporary data
	rows := int64(0)
	err = audit.Each(ctx, a, files, func(key string, s *sitemapRow) error {
		if s.Earlier {
			return nil
		}
		f := sitemapFact{URL: s.URL, Row: true, Table: key}
		if s.Named != "" {
			if err := facts.Add(&sitemapFact{URL: s.Named, Row: true, Table: key}); err != nil {
				return err
			}
		}
		if err := facts.Add(&f); err != nil || !s.ended() {
			return err
		}
		rows++
		f.At, f.Status = s.At, s.Status
		return facts.Add(&f)
	})
	if err != nil {
		return err
	}
	err = audit.Each(ctx, a, requests, func(key string, q *requestRow) error {
		if q.PlannedURL != "" || q.Purpose == string(schema.ForRobots) {
			return nil
		}
		return facts.Add(&sitemapFact{URL: q.URL, At: q.Start, Status: q.Status, Table: key})
	})
	if err != nil {
		return err
	}
	a.Count(sitemapsMatch, rows)
	url, named := "", false
	var last sitemapFact // last request
	for f, err := range facts.Sorted(ctx) {
		if err != nil {
			return err
		}
		if f.URL != url {
			url, named, last = strings.Clone(f.URL), false, sitemapFact{}
		}
		wrong := func(format string, args ...any) {
			a.Wrong(sitemapsMatch, r.Number, audit.URL(f.Table, f.URL), format, args...)
		}
		switch {
		case !f.Row:
			if !named {
				unnamedSitemap(a, r, &f)
			}
			last = f
		case f.At == 0:
			named = true
		case last.At != f.At:
			wrong("its row of sitemaps names a request that no row of requests describes")
		case last.Status != f.Status:
			wrong("its row of sitemaps has status %d, that of the request %d", f.Status, last.Status)
		}
	}
	return nil
}

// unnamedSitemap reports a request without a plan that no row of sitemaps names. After a takedown, the URL that
// redirected to it may be gone, so that nobody can tell.
func unnamedSitemap(a *audit.Audit, r *audit.Round, f *sitemapFact) {
	if r.Forgot {
		a.CountNote(fmt.Sprintf("round %d, %s: not checked, because a takedown may have removed the URL that redirected to it: {n}, such as {example}", r.Number, sitemapsMatch.Name), strings.Clone(f.URL))
		return
	}
	a.Wrong(sitemapsMatch, r.Number, audit.URL(f.Table, f.URL), "it was requested without a plan, but no row of sitemaps names it")
}

package merge

import (
	"cmp"
	"context"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

func compareCaptures(a, b *schema.Capture) int {
	return cmp.Or(strings.Compare(a.SURT, b.SURT), strings.Compare(a.URL, b.URL), cmp.Compare(a.FetchTime, b.FetchTime),
		strings.Compare(a.WARCFilename, b.WARCFilename), cmp.Compare(a.WARCRecordOffset, b.WARCRecordOffset))
}

// mergeCaptures publishes the stored responses, a part a subset.
func (m *merger) mergeCaptures(ctx context.Context) error {
	for _, subset := range schema.Subsets {
		if err := m.mergeSubset(ctx, subset); err != nil {
			return err
		}
	}
	return nil
}

func (m *merger) mergeSubset(ctx context.Context, subset string) error {
	rows, err := sorted(ctx, m, m.keys(stages.FileCaptures, subset), compareCaptures)
	if err != nil {
		return err
	}
	defer rows.Close()
	w, err := table.NewWriter[schema.Capture](m.scratch("captures"), table.Format(m.env.Format), table.SortedBy("url_surtkey", "url"))
	if err != nil {
		return err
	}
	defer w.Abort()
	for c, err := range rows.Sorted(ctx) {
		if err != nil {
			return err
		}
		if subset == schema.SubsetRobots {
			m.hosts.robots(&c)
		}
		if err := w.Append(&c); err != nil {
			return err
		}
	}
	return finish(ctx, m, w, stages.FileCaptures, subset, layout.Captures(m.task.Crawl, subset, m.task.Round, m.task.Partition))
}

func compareRequests(a, b *schema.Request) int {
	return cmp.Or(strings.Compare(a.Host, b.Host), cmp.Compare(a.Start, b.Start), strings.Compare(a.URL, b.URL),
		cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Attempt, b.Attempt))
}

// mergeRequests publishes the requests in the order in which each host got them.
func (m *merger) mergeRequests(ctx context.Context) error {
	rows, err := sorted(ctx, m, m.keys(stages.FileRequests, ""), compareRequests)
	if err != nil {
		return err
	}
	defer rows.Close()
	w, err := table.NewWriter[schema.Request](m.scratch("requests"), table.Format(m.env.Format), table.SortedBy("host", "start"))
	if err != nil {
		return err
	}
	defer w.Abort()
	for r, err := range rows.Sorted(ctx) {
		if err != nil {
			return err
		}
		m.hosts.requested(&r)
		if err := w.Append(&r); err != nil {
			return err
		}
	}
	return finish(ctx, m, w, stages.FileRequests, "", m.published(stages.FileRequests))
}

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
	return cmp.Or(schema.CompareURLs(a.SURT, a.URL, b.SURT, b.URL), cmp.Compare(a.FetchTime, b.FetchTime),
		strings.Compare(a.WARCFilename, b.WARCFilename), cmp.Compare(a.WARCRecordOffset, b.WARCRecordOffset))
}

// mergeCaptures publishes the stored responses, one part per subset.
func (m *merger) mergeCaptures(ctx context.Context) error {
	for _, subset := range schema.Subsets {
		key := layout.Captures(m.task.Crawl, subset, m.task.Round, m.task.Partition)
		f, err := stages.Write(ctx, m.env, stages.FileCaptures, key, stages.ByURL, func(w *table.Writer[schema.Capture]) error {
			return appendSorted(ctx, m, w, m.keys(stages.FileCaptures, subset), compareCaptures, func(c *schema.Capture) bool {
				if subset == schema.SubsetRobots {
					m.hosts.robots(c)
				}
				return true
			})
		})
		f.Subset = subset
		if err := m.note(f, err); err != nil {
			return err
		}
	}
	return nil
}

func compareRequests(a, b *schema.Request) int {
	return cmp.Or(strings.Compare(a.Host, b.Host), cmp.Compare(a.Start, b.Start), strings.Compare(a.URL, b.URL),
		cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Attempt, b.Attempt))
}

// mergeRequests publishes the requests in the order in which each host received them.
func (m *merger) mergeRequests(ctx context.Context) error {
	return publish(ctx, m, stages.FileRequests, []string{"host", "start"}, func(w *table.Writer[schema.Request]) error {
		return appendSorted(ctx, m, w, m.keys(stages.FileRequests, ""), compareRequests, func(r *schema.Request) bool {
			m.hosts.requested(r)
			return true
		})
	})
}

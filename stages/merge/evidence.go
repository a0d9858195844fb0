package merge

import (
	"context"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

func captureKey(k table.Key, c *schema.Capture) table.Key {
	return k.Text(c.SURT).Text(c.URL).Int(int64(c.FetchTime)).Text(c.WARCFilename).Int(int64(c.WARCRecordOffset))
}

// mergeCaptures publishes the stored responses, one part per subset.
func (m *merger) mergeCaptures(ctx context.Context) error {
	for _, subset := range schema.Subsets {
		key := layout.Captures(m.task.Crawl, subset, m.task.Round, m.task.Partition)
		f, err := stages.Write(ctx, m.env, stages.FileCaptures, key, stages.ByURL, func(w *table.Writer[schema.Capture]) error {
			return appendSorted(ctx, m, w, m.keys(stages.FileCaptures, subset), captureKey, func(c *schema.Capture) bool {
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

func requestKey(k table.Key, r *schema.Request) table.Key {
	return k.Text(r.Host).Int(int64(r.Start)).Text(r.URL).Int(int64(r.Epoch)).Int(int64(r.Attempt))
}

// mergeRequests publishes the requests in the order in which each host received them.
func (m *merger) mergeRequests(ctx context.Context) error {
	return publish(ctx, m, stages.FileRequests, []string{"host", "start"}, func(w *table.Writer[schema.Request]) error {
		return appendSorted(ctx, m, w, m.keys(stages.FileRequests, ""), requestKey, func(r *schema.Request) bool {
			m.hosts.requested(r)
			return true
		})
	})
}

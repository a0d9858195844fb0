package domains

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
)

// mostEarlier is the number of sealed rounds whose domains are read. It bounds the time of a task and
// its open files.
const mostEarlier = 16

// Earlier selects those of the earlier rounds, oldest first, whose domains a round reads.
func Earlier(rounds []*manifest.Sealed) []*manifest.Sealed {
	return rounds[max(0, len(rounds)-mostEarlier):]
}

// earlierRow holds the columns of earlier domains that count.
type earlierRow struct {
	Domain       string `parquet:"domain"`
	RobotsHost   string `parquet:"robots_host,optional"`
	RobotsState  string `parquet:"robots_state,optional"`
	RobotsDigest string `parquet:"robots_digest,optional"`
}

// earlier has the rows of domains of earlier rounds, the newest round first.
type earlier struct {
	names []string
	rows  []*table.Cursor[earlierRow]
}

// openEarlier opens the parts of earlier rounds that may hold domains of a bucket.
func openEarlier(ctx context.Context, env *stages.Env, in *stages.Input, bucket int) *earlier {
	e := &earlier{}
	for _, s := range slices.Backward(Earlier(in.Earlier)) {
		var keys []string
		first, last := urlkey.Overlapping(bucket, in.Plan.Buckets, s.ReduceBuckets())
		for _, f := range s.FilesOf(stages.FileDomains) {
			if n, err := layout.PartOf(f.Key); err == nil && first <= n && n <= last {
				keys = append(keys, f.Key)
			}
		}
		if len(keys) > 0 {
			e.names = append(e.names, fmt.Sprintf("%s.%d", s.Crawl, s.Round))
			e.rows = append(e.rows, table.Pull(table.MergeFiles(ctx, env.Bucket, env.Scratch, keys, earlierKey)))
		}
	}
	return e
}

func earlierKey(k table.Key, r *earlierRow) table.Key { return k.Text(r.Domain) }

// compare fills the columns of a row that depend on earlier rounds. Rows must come in order.
func (e *earlier) compare(r *schema.Domain) error {
	known := readable(r.RobotsState)
	for i, rows := range e.rows {
		old, err := rows.Find(func(old *earlierRow) int { return strings.Compare(old.Domain, r.Domain) })
		if err != nil {
			return err
		}
		if old == nil {
			continue
		}
		if r.PreviousRound == "" {
			r.PreviousRound = e.names[i]
		}
		if known && r.RobotsChanged == nil && old.RobotsHost == r.RobotsHost && readable(old.RobotsState) {
			changed := old.RobotsState != r.RobotsState || old.RobotsDigest != r.RobotsDigest
			r.RobotsChanged, r.RobotsBefore = &changed, e.names[i]
		}
	}
	return nil
}

// readable reports whether a host answered whether it has a robots.txt.
func readable(state string) bool { return state == "rules" || state == "none" }

func (e *earlier) close() {
	for _, rows := range e.rows {
		_ = rows.Close() // always nil
	}
}

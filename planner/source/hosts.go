package source

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
)

// Host holds what a round observed of a host.
type Host struct {
	Host      string   `parquet:"host"`
	Domain    string   `parquet:"domain"`
	Address   string   `parquet:"address,optional"`    // IP address
	DelayMS   *int64   `parquet:"delay_ms,optional"`   // delay in force at the end, in milliseconds
	Planned   int64    `parquet:"planned"`             // number of planned URLs
	Requests  int64    `parquet:"requests"`            // number of requests, with robots.txt, retries and redirects
	LatencyMS *float64 `parquet:"latency_ms,optional"` // mean time to the first byte of a response, in milliseconds

	FailedRate    int64 `parquet:"failed_rate_limited"` // number of URLs that the host refused for too many requests
	BreakerEvents int32 `parquet:"breaker_events"`      // number of times that the host's breaker opened
}

// Hosts yields the hosts to which sealed rounds sent requests, in the order of rounds. It skips
// files that are missing from the store, because a plan needs the hosts only for better
// predictions.
func Hosts(ctx context.Context, b store.Bucket, rounds []*manifest.Sealed) iter.Seq2[Host, error] {
	return func(yield func(Host, error) bool) {
		for _, round := range rounds {
			for _, f := range round.FilesOf("hosts") {
				for h, err := range table.Concat[Host](ctx, b, []string{f.Key}) {
					if errors.Is(err, store.ErrNotFound) {
						break
					}
					if err != nil {
						err = fmt.Errorf("read hosts: %w", err)
					}
					if (err != nil || h.Address != "" || h.DelayMS != nil) && !yield(h, err) {
						return
					}
				}
			}
		}
	}
}

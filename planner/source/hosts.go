package source

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
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

	FailedRate    int64   `parquet:"failed_rate_limited"` // number of URLs that the host refused for too many requests
	BreakerEvents int32   `parquet:"breaker_events"`      // number of times that the host's breaker opened
	Rank          float64 `parquet:"rank"`                // PageRank, as a multiple of the mean rank of the round's hosts

	RobotsState   string      `parquet:"robots_state,optional,dict"`
	FailedHTTP5xx int64       `parquet:"failed_http_5xx"`
	FailedDNS     int64       `parquet:"failed_dns_error"`
	FailedTimeout int64       `parquet:"failed_timeout"`
	FirstRequest  schema.Time `parquet:"first_request,optional,timestamp(microsecond)"`
	LastRequest   schema.Time `parquet:"last_request,optional,timestamp(microsecond)"`
}

// Requested reports whether the round tried to reach the host. Otherwise it only knows the host's rank.
func (h *Host) Requested() bool { return h.Address != "" || h.DelayMS != nil }

// Hosts yields the hosts that sealed rounds requested or ranked, in the order of rounds. It skips files
// that are missing from the store: predictions are less exact without them, and hosts count as new.
func Hosts(ctx context.Context, b store.Bucket, rounds []*manifest.Sealed) iter.Seq2[Host, error] {
	return func(yield func(Host, error) bool) {
		for _, round := range rounds {
			files, hosts := round.FilesOf("hosts"), int64(0)
			for _, f := range files {
				hosts += f.Rows
			}
			for _, f := range files {
				for h, err := range table.Concat[Host](ctx, b, []string{f.Key}) {
					if errors.Is(err, store.ErrNotFound) {
						break
					}
					if err != nil {
						err = fmt.Errorf("read hosts: %w", err)
					}
					h.Rank *= float64(hosts) // the ranks of a round sum to 1
					if !yield(h, err) {
						return
					}
				}
			}
		}
	}
}

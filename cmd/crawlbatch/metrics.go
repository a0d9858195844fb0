package main

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/jobs/metrics"
	"crawlbatch.io/crawlbatch/stages"
)

// metricsFlag is the flag of commands that serve metrics.
const metricsFlag = "metrics-listen"

// metricsOptions say how a command serves metrics.
type metricsOptions struct {
	listen string
	legacy bool
	top    int // number of hosts that have series of their own
}

func addMetricsFlags(cmd *cobra.Command, o *metricsOptions) {
	cmd.Flags().BoolVar(&o.legacy, "metrics-legacy-names", false, "serve metrics under their old names too, such as crawler_urls_queued_total")
	cmd.Flags().IntVar(&o.top, "metrics-top-hosts", 0, "0 to 20: serve series with the names of so many hosts, those that take the longest; 0: none")
	cmd.Flags().StringVar(&o.listen, metricsFlag, "", "ADDR:PORT on which to serve Prometheus metrics, under /metrics; :PORT: on all addresses; empty: none")
}

// serveMetrics serves metrics until the caller calls stop. Without an address,
// serveMetrics returns nil metrics, which measure nothing.
func serveMetrics(o metricsOptions, log *slog.Logger) (m *metrics.Metrics, stop func(), err error) {
	if o.top < 0 || o.top > metrics.MaxTopHosts {
		return nil, nil, usage.Errorf("--metrics-top-hosts %d: it must be 0 (none) to %d", o.top, metrics.MaxTopHosts)
	}
	if o.listen == "" {
		return nil, func() {}, nil
	}
	m = metrics.New(version, stages.SystemClock{})
	if o.legacy {
		m.Legacy()
	}
	m.TopHosts(o.top)
	server, err := m.Listen(o.listen, log)
	if err != nil {
		return nil, nil, usage.Error(fmt.Errorf("--%s %w", metricsFlag, err))
	}
	log.Info("metrics are served", "url", "http://"+server.Addr().String()+"/metrics")
	return m, server.Close, nil
}

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
}

func addMetricsFlags(cmd *cobra.Command, o *metricsOptions) {
	cmd.Flags().BoolVar(&o.legacy, "metrics-legacy-names", false, "serve metrics under their old names too, such as crawler_urls_queued_total")
	cmd.Flags().StringVar(&o.listen, metricsFlag, "", "ADDR:PORT on which to serve Prometheus metrics, under /metrics; :PORT: on all addresses; empty: none")
}

// serveMetrics serves metrics until the caller calls stop. Without an address,
// serveMetrics returns nil metrics, which measure nothing.
func serveMetrics(o metricsOptions, log *slog.Logger) (m *metrics.Metrics, stop func(), err error) {
	if o.listen == "" {
		return nil, func() {}, nil
	}
	m = metrics.New(version, stages.SystemClock{})
	if o.legacy {
		m.Legacy()
	}
	server, err := m.Listen(o.listen, log)
	if err != nil {
		return nil, nil, usage.Error(fmt.Errorf("--%s %w", metricsFlag, err))
	}
	log.Info("metrics are served", "url", "http://"+server.Addr().String()+"/metrics")
	return m, server.Close, nil
}

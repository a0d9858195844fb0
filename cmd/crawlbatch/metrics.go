package main

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/jobs/metrics"
	"crawlbatch.io/crawlbatch/stages"
)

// metricsFlag is the flag of commands that serve metrics while they run.
const metricsFlag = "metrics-listen"

func addMetricsFlag(cmd *cobra.Command, listen *string) {
	cmd.Flags().StringVar(listen, metricsFlag, "", "ADDR:PORT to serve Prometheus metrics on, under /metrics, while this runs; :PORT means all addresses; empty: none")
}

// serveMetrics serves metrics if an address is given, until stop is called; else
// they are nil, which measures nothing.
func serveMetrics(listen string, log *slog.Logger) (m *metrics.Metrics, stop func(), err error) {
	if listen == "" {
		return nil, func() {}, nil
	}
	m = metrics.New(version, stages.SystemClock{})
	server, err := m.Listen(listen, log)
	if err != nil {
		return nil, nil, usageError{fmt.Errorf("--%s %w", metricsFlag, err)}
	}
	log.Info("metrics are served", "url", "http://"+server.Addr().String()+"/metrics")
	return m, server.Close, nil
}

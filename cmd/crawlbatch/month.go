package main

import (
	"strings"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/k8s"
)

// A value of --month that starts with jobPrefix names a Kubernetes Job. The month is a part of the
// Job's name.
const jobPrefix = "job:"

// resolveMonth replaces the value job:NAME of --month by the month that the Job's name tells.
func resolveMonth(cmd *cobra.Command) error {
	f := cmd.Flags().Lookup("month")
	if f == nil {
		return nil
	}
	name, ok := strings.CutPrefix(f.Value.String(), jobPrefix)
	if !ok {
		return nil
	}
	m := k8s.MonthOfJob(name)
	if m == "" {
		return usage.Errorf("--month %s: the Job's name does not end with a month, such as crawl-2026-11", f.Value)
	}
	return cmd.Flags().Set("month", m)
}

package main

import (
	"strings"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/k8s"
)

// jobPrefix is the start of a value of --month that names a Kubernetes Job. The Job's name ends with the
// month.
const jobPrefix = "job:"

// resolveMonth replaces the value job:NAME of --month by the month in the Job's name. Without a value,
// a command that only reads gets the newest crawl.
func (c *common) resolveMonth(cmd *cobra.Command) error {
	f := cmd.Flags().Lookup("month")
	if f == nil {
		return nil
	}
	name, ok := strings.CutPrefix(f.Value.String(), jobPrefix)
	if !ok {
		return usage.FillMonth(cmd, c.err, c.openToRead)
	}
	m := k8s.MonthOfJob(name)
	if m == "" {
		return usage.Errorf("--month %s: the Job's name does not end with a month, such as crawl-2026-11", f.Value)
	}
	return cmd.Flags().Set("month", m)
}

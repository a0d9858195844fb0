package main

import (
	"strings"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/k8s"
)

// The function month checks the --month of a command that makes a crawl.
func month(s string) error {
	if layout.IsReparse(s) {
		of, _ := layout.MonthOf(s)
		return usage.Errorf("--month %s is the name of a reparse: name the month %s; a reparse is made by `crawlbatch reparse --month %[2]s --as %[1]s`", s, of)
	}
	return crawlName(s)
}

// crawlName checks the --month of a command that reads a crawl. The value is a month, or the name
// of a reparse of a month.
func crawlName(s string) error {
	if s == "" {
		return usage.Errorf("--month is missing: name the crawl as YYYY-MM, such as --month 2026-11")
	}
	if layout.IsReparse(s) {
		return nil
	}
	if _, err := layout.ParseMonth(s); err != nil {
		return usage.Errorf("--%v", err)
	}
	return nil
}

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
		return usage.Errorf("--month %s: the Job's name tells no month: end it with one, as in crawl-2026-11", f.Value)
	}
	return cmd.Flags().Set("month", m)
}

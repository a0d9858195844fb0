package usage

import (
	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/formats/layout"
)

// MonthFlag defines --month. help says what the crawl is for.
func MonthFlag(cmd *cobra.Command, month *string, help string) {
	cmd.Flags().StringVar(month, "month", "", help+", such as 2026-11")
}

// CheckMonth checks the --month of a command that makes a crawl.
func CheckMonth(s string) error {
	if layout.IsReparse(s) {
		of, _ := layout.MonthOf(s)
		return Errorf("--month %s is the name of a reparse: give the month %s; to make a reparse, run `crawlbatch reparse --month %[2]s --as %[1]s`", s, of)
	}
	return CheckCrawl(s)
}

// CheckCrawl checks the --month of a command that reads a crawl. The value is a month, or the name
// of a reparse of a month.
func CheckCrawl(s string) error {
	if s == "" {
		return Errorf("--month is missing: name the crawl as YYYY-MM, such as --month 2026-11")
	}
	if layout.IsReparse(s) {
		return nil
	}
	if _, err := layout.ParseMonth(s); err != nil {
		return Errorf("--%v", err)
	}
	return nil
}

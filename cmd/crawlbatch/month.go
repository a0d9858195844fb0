package main

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/formats/layout"
)

// month checks the --month flag of a command that makes a crawl.
func month(s string) error {
	if layout.IsReparse(s) {
		of, _ := layout.MonthOf(s)
		return usagef("--month %s is the name of a reparse: name the month %s; a reparse is made by `crawlbatch reparse --month %[2]s --as %[1]s`", s, of)
	}
	return crawlName(s)
}

// crawlName checks the --month flag of a command that takes a crawl as it is: a month,
// or a reparse of one.
func crawlName(s string) error {
	if s == "" {
		return usagef("--month is missing: name the crawl as YYYY-MM, such as --month 2026-11")
	}
	if layout.IsReparse(s) {
		return nil
	}
	if _, err := layout.ParseMonth(s); err != nil {
		return usagef("--%v", err)
	}
	return nil
}

// jobPrefix begins a --month that the name of a Kubernetes Job tells.
const jobPrefix = "job:"

// resolveMonth puts the month itself in the place of job:NAME, for whatever command
// has a --month.
func resolveMonth(cmd *cobra.Command) error {
	f := cmd.Flags().Lookup("month")
	if f == nil {
		return nil
	}
	name, ok := strings.CutPrefix(f.Value.String(), jobPrefix)
	if !ok {
		return nil
	}
	m, err := monthOfJob(name)
	if err != nil {
		return err
	}
	return cmd.Flags().Set("month", m)
}

var (
	namedMonth = regexp.MustCompile(`(?:^|-)(\d{4}-\d{2}(?:r[1-9]\d*)?)$`)
	dueMinute  = regexp.MustCompile(`-(\d{8})$`)
)

// monthOfJob is the month that a Job's name ends with, as in crawl-2026-11. A CronJob
// names its Jobs by the minute they were due, counted from 1970: for those it is the
// month of that minute, UTC. So a Job that is late, and a pod that is started again
// when the month is over, crawl the month that was meant, which no clock could tell.
func monthOfJob(name string) (string, error) {
	if m := namedMonth.FindStringSubmatch(name); m != nil {
		return m[1], crawlName(m[1])
	}
	if m := dueMinute.FindStringSubmatch(name); m != nil {
		minutes, err := strconv.ParseInt(m[1], 10, 64)
		due := time.Unix(minutes*60, 0).UTC()
		if err == nil && due.Year() >= 2020 {
			return due.Format("2006-01"), nil
		}
	}
	return "", usagef("--month %s%s: the Job's name tells no month: end it with one, as in crawl-2026-11", jobPrefix, name)
}

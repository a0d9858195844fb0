package k8s

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/lease"
)

// The functions in this file are for a process in a Job or pod.

var (
	monthAtEnd  = regexp.MustCompile(`(?:^|-)(\d{4}-\d{2}(?:r[1-9]\d*)?)$`)
	minuteAtEnd = regexp.MustCompile(`-(\d{8})$`)
)

// MonthOfJob returns the month at the end of a Job's name, such as crawl-2026-11. The name of a CronJob's Job
// ends in the scheduled time, in minutes since 1970. For such a name, MonthOfJob returns the month of this
// minute in UTC, so that a late Job, or a pod that restarts in the next month, still crawls the scheduled
// month. For other names, it returns "".
func MonthOfJob(name string) string {
	if m := monthAtEnd.FindStringSubmatch(name); m != nil && layout.ValidCrawl(m[1]) {
		return m[1]
	}
	if m := minuteAtEnd.FindStringSubmatch(name); m != nil {
		minutes, err := strconv.ParseInt(m[1], 10, 64)
		due := time.Unix(minutes*60, 0).UTC()
		if err == nil && due.Year() >= 2020 {
			return due.Format("2006-01")
		}
	}
	return ""
}

// ErrIndex means that the task list has no entry for the pod's completion index.
var ErrIndex = errors.New("is not an index of the task list")

// PartitionAt returns the partition at a pod's completion index in the task list under key. The error is
// ErrIndex if the list has no such index.
func PartitionAt(ctx context.Context, b store.Bucket, key, index string, t stages.Task) (int, error) {
	list, err := LoadTasks(ctx, b, key, t.Stage, t.Crawl, t.Round)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(index)
	if err != nil || n < 0 || n >= len(list.Partitions) {
		return 0, fmt.Errorf("JOB_COMPLETION_INDEX %q %w %s: it must be 0 to %d", index, ErrIndex, key, len(list.Partitions)-1)
	}
	return list.Partitions[n], nil
}

// passing are errors that a user at a terminal has to act on, but that end without a change of the command.
var passing = []error{roundstate.ErrBusy, roundstate.ErrReplacing, lease.ErrHeld, store.ErrUnavailable}

// UsageExit returns the exit status of a process in a pod after a usage error. Trying again does not help
// after most of them. But while another command uses the store, or the store does not answer, the Job has to
// repeat this one: Kubernetes then pauses between the pods of a Job, at first for 10 seconds, later for up to
// 10 minutes.
func UsageExit(err error) int {
	if slices.ContainsFunc(passing, func(p error) bool { return errors.Is(err, p) }) {
		return exitInterrupted
	}
	return exitPermanent
}

// maxTermination bounds the length of a termination message, in bytes, because Kubernetes keeps only 4 KiB.
const maxTermination = 4000

// WriteTermination writes err as one line to the file that Kubernetes shows as a pod's termination
// message. WriteTermination does nothing if file is "" or err is nil.
func WriteTermination(file string, err error) error {
	if file == "" || err == nil {
		return nil
	}
	line := strings.Join(strings.Fields(err.Error()), " ")
	if len(line) > maxTermination {
		line = strings.ToValidUTF8(line[:maxTermination], "")
	}
	return os.WriteFile(file, []byte(line+"\n"), 0o644)
}

// WriteCrashesTo makes the Go runtime write a crash to the file of the termination message.
func WriteCrashesTo(file string) error {
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer f.Close() // SetCrashOutput has its own copy of the file descriptor
	return debug.SetCrashOutput(f, debug.CrashOptions{})
}

// StoreEnv returns the environment variables that tell pods where S3 is. The variables hold no
// secrets. The config key kubernetes.env overrides them.
func StoreEnv() map[string]string {
	env := map[string]string{}
	for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION"} {
		if v := os.Getenv(name); v != "" {
			env[name] = v
		}
	}
	return env
}

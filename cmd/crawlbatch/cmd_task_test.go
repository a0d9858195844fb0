package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/k8s"
	"crawlbatch.io/crawlbatch/stages"
)

// emptyStore is a store in a directory of the test's.
func emptyStore(t *testing.T) store.Bucket {
	t.Helper()
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestACompletionIndexChoosesAPartitionOfTheTaskList(t *testing.T) {
	b := emptyStore(t)
	key := layout.TaskList("2026-11", 0, "fetch", "0a1b")
	list := &manifest.Tasks{Crawl: "2026-11", Stage: "fetch", Plan: "p1", Partitions: []int{3, 17, 40}}
	if _, err := manifest.Create(t.Context(), b, key, list); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, key, index string
		stage            stages.Stage
		round            int
		want             int
		err              error
	}{
		{"first", key, "0", stages.Fetch, 0, 3, nil},
		{"last", key, "2", stages.Fetch, 0, 40, nil},
		{"beyond the list", key, "3", stages.Fetch, 0, 0, errUsage},
		{"negative", key, "-1", stages.Fetch, 0, 0, errUsage},
		{"not set", key, "", stages.Fetch, 0, 0, errUsage},
		{"no number", key, "1x", stages.Fetch, 0, 0, errUsage},
		{"another stage's list", key, "0", stages.Merge, 0, 0, stages.ErrPermanent},
		{"another round's list", key, "0", stages.Fetch, 1, 0, stages.ErrPermanent},
		{"no list", key + "x", "0", stages.Fetch, 0, 0, store.ErrNotFound},
		{"no --tasks", "", "7", stages.Fetch, 0, 5, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := taskOptions{tasks: c.key, index: c.index, task: stages.Task{Stage: c.stage, Crawl: "2026-11", Round: c.round, Partition: 5}}
			err := o.choose(t.Context(), b)
			if !errors.Is(err, c.err) || err == nil && o.task.Partition != c.want {
				t.Errorf("partition %d, %v", o.task.Partition, err)
			}
		})
	}
}

func TestTheLastWordsOfATaskAreOneLineOfBoundedLength(t *testing.T) {
	file := filepath.Join(t.TempDir(), "termination-log")
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("fetch@2026-11.0:3: %w", stages.ErrInterrupted), "fetch@2026-11.0:3: interrupted\n"},
		{errors.New("fault: boom\n\tgoroutine 1"), "fault: boom goroutine 1\n"},
		{errors.New(strings.Repeat("é", maxLastWords)), strings.Repeat("é", maxLastWords/2) + "\n"},
	} {
		if err := lastWords(file, c.err); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != c.want {
			t.Errorf("%q, %v; want %q", got, err, c.want)
		}
	}
}

func TestInAPodWhatSomebodyHasToMendIsPermanentAndAnOutageIsNot(t *testing.T) {
	away := fmt.Errorf("%w: %w", k8s.ErrCluster, stages.ErrInterrupted)
	for _, c := range []struct {
		err              error
		terminal, within int
	}{
		{usagef("--stage"), exitUsage, exitPermanent},
		{config.ErrInvalid, exitUsage, exitPermanent},
		{k8s.ErrCluster, exitUsage, exitPermanent},
		{away, exitInterrupted, exitInterrupted},
		{store.ErrUnavailable, exitInterrupted, exitInterrupted},
		{fmt.Errorf("1 of 2 tasks failed, the first with: %w: %w", roundstate.ErrNotReady, jobs.ErrTasksFailed), exitTasksFailed, exitTasksFailed},
		{fmt.Errorf("1 of 2 tasks failed, the first with: %w: %w", context.DeadlineExceeded, jobs.ErrTasksFailed), exitTasksFailed, exitTasksFailed},
		{errors.New("x"), exitInternal, exitInternal},
	} {
		if got := (&common{}).exitCode(c.err); got != c.terminal {
			t.Errorf("%v: exit %d at a terminal, want %d", c.err, got, c.terminal)
		}
		t.Run("in a pod", func(t *testing.T) {
			t.Setenv(k8s.PodName, "crawl-1")
			if got := (&common{}).exitCode(c.err); got != c.within {
				t.Errorf("%v: exit %d in a pod, want %d", c.err, got, c.within)
			}
		})
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/k8s"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/lease"
)

func TestInAPodWhatSomebodyHasToMendIsPermanentAndAnOutageIsNot(t *testing.T) {
	away := fmt.Errorf("%w: %w", k8s.ErrCluster, stages.ErrInterrupted)
	for _, c := range []struct {
		err              error
		terminal, within int
	}{
		{usage.Errorf("--stage"), exitUsage, exitPermanent},
		{config.ErrInvalid, exitUsage, exitPermanent},
		{k8s.ErrCluster, exitUsage, exitPermanent},
		{fmt.Errorf("prune deletes objects: run this command again: %w", jobs.ErrBusy), exitUsage, exitInterrupted},
		{roundstate.ErrReplacing, exitUsage, exitInterrupted},
		{lease.ErrHeld, exitUsage, exitInterrupted},
		{jobs.ErrPlanned, exitUsage, exitPermanent},
		{storeError(store.ErrUnavailable), exitUsage, exitInterrupted},
		{storeError(store.ErrDenied), exitUsage, exitPermanent},
		{away, exitInterrupted, exitInterrupted},
		{store.ErrUnavailable, exitInterrupted, exitInterrupted},
		{fmt.Errorf("1 of 2 tasks failed; the first error: %w: %w", roundstate.ErrNotReady, jobs.ErrTasksFailed), exitTasksFailed, exitTasksFailed},
		{fmt.Errorf("1 of 2 tasks failed; the first error: %w: %w", context.DeadlineExceeded, jobs.ErrTasksFailed), exitTasksFailed, exitTasksFailed},
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

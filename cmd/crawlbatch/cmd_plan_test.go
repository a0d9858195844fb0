package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
)

// The user of `plan --tasks` waits for it. A full disk or a damaged source ends the plan at once, as without tasks.
func TestTheFirstErrorEndsAPlanInTasksOfThisProcess(t *testing.T) {
	all := make([]stages.Task, 100)
	for want, code := range map[error]int{store.ErrFull: exitInterrupted, store.ErrUnavailable: exitInterrupted, source.ErrUnreadable: exitUsage} {
		var tries, ended atomic.Int64
		run := func(ctx context.Context, _ stages.Task) error {
			n := tries.Add(1)
			if n == 5 {
				return fmt.Errorf("task: %w", want)
			}
			if n > 5 {
				<-ctx.Done() // a long task
			}
			return ctx.Err()
		}
		err := inThisProcess(run)(t.Context(), nil, all, func(stages.Task, error) { ended.Add(1) })
		if !errors.Is(err, want) || exitCode(err) != code || tries.Load() > 5+planTasks || ended.Load() != 100 {
			t.Errorf("%v: %v, exit %d, %d tries, %d tasks ended", want, err, exitCode(err), tries.Load(), ended.Load())
		}
	}
}

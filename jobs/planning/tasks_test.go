package planning

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages"
)

// The user of `plan --tasks` waits for it. A full disk or a damaged source ends the plan at once, as without tasks.
func TestTheFirstErrorEndsAPlanInTasksOfThisProcess(t *testing.T) {
	var tries, ended atomic.Int64
	run := func(ctx context.Context, _ stages.Task) error {
		n := tries.Add(1)
		if n == 5 {
			return fmt.Errorf("task: %w", store.ErrFull)
		}
		if n > 5 {
			<-ctx.Done() // a long task
		}
		return ctx.Err()
	}
	err := InThisProcess(run, 3)(t.Context(), nil, make([]stages.Task, 100), func(stages.Task, error) { ended.Add(1) })
	if !errors.Is(err, store.ErrFull) || tries.Load() > 8 || ended.Load() != 100 {
		t.Errorf("%v, %d tries, %d tasks ended", err, tries.Load(), ended.Load())
	}
}

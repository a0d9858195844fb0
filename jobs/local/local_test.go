package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/witness"
)

var errFlaky = errors.New("flaky")

// run runs tasks and returns the number of tries and the error of each task.
func run(t *testing.T, ctx context.Context, tasks int, try func(n int, attempt int) error) (tries map[int]int, ended map[int]error, err error) {
	t.Helper()
	var mu sync.Mutex
	tries, ended = map[int]int{}, map[int]error{}
	e := &Executor{
		FetchTasks: 2, Tasks: 2, Attempts: 3, Pause: time.Second, Clock: stages.SystemClock{}, Log: slog.New(slog.DiscardHandler),
		Try: func(_ context.Context, task stages.Task) error {
			mu.Lock()
			tries[task.Partition]++
			attempt := tries[task.Partition]
			mu.Unlock()
			return try(task.Partition, attempt)
		},
	}
	var list []stages.Task
	for n := range tasks {
		list = append(list, stages.Task{Stage: stages.Merge, Crawl: "2026-11", Partition: n})
	}
	err = e.Run(ctx, list, func(task stages.Task, err error) {
		mu.Lock()
		defer mu.Unlock()
		if _, twice := ended[task.Partition]; twice {
			t.Errorf("%s ended twice", task)
		}
		ended[task.Partition] = err
	})
	return tries, ended, err
}

func TestAFailedTaskIsTriedAgainAfterAPauseThatGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		tries, ended, err := run(t, t.Context(), 1, func(_, attempt int) error {
			if attempt < 3 {
				return errFlaky
			}
			return nil
		})
		if err != nil || ended[0] != nil || tries[0] != 3 {
			t.Errorf("%v, %v after %d tries", err, ended[0], tries[0])
		}
		if waited := time.Since(began); waited != 3*time.Second {
			t.Errorf("waited %s, want 1 s and 2 s", waited)
		}
	})
}

func TestATaskThatKeepsFailingEndsWithItsLastErrorAndTheOthersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries, ended, err := run(t, t.Context(), 5, func(n, attempt int) error {
			switch n {
			case 1:
				return fmt.Errorf("attempt %d: %w", attempt, errFlaky)
			case 2:
				return fmt.Errorf("no use: %w", stages.ErrPermanent)
			}
			return nil
		})
		if err != nil || len(ended) != 5 {
			t.Fatalf("%v, %d tasks ended", err, len(ended))
		}
		if ended[1] == nil || ended[1].Error() != "attempt 3: flaky" || tries[1] != 3 {
			t.Errorf("task 1: %v after %d tries", ended[1], tries[1])
		}
		if !errors.Is(ended[2], stages.ErrPermanent) || tries[2] != 1 {
			t.Errorf("task 2: %v after %d tries; a permanent error must not be retried", ended[2], tries[2])
		}
	})
}

func TestAnInterruptionStartsNothingMoreAndFailsNoTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		tries, ended, err := run(t, ctx, 50, func(n, _ int) error {
			if n == 3 {
				stop()
				return fmt.Errorf("store: %w", context.Canceled)
			}
			time.Sleep(time.Minute) // so that this task still runs when task 3 causes the interruption
			return nil
		})
		if !errors.Is(err, stages.ErrInterrupted) {
			t.Errorf("%v is not an interruption", err)
		}
		if len(tries) > 8 {
			t.Errorf("%d tasks were started after the interruption", len(tries))
		}
		for n, err := range ended {
			if err != nil {
				t.Errorf("task %d was reported as failed: %v", n, err)
			}
		}
	})
}

func TestTasksWaitForAStoreThatIsAwayAndGoOnWhenItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		tries, ended, err := run(t, t.Context(), 1, func(_, attempt int) error {
			switch away := time.Since(began); {
			case away < 5*time.Minute:
				return fmt.Errorf("write: no room: %w", store.ErrFull)
			case away < 10*time.Minute: // an outage may be reported with ErrInterrupted too
				return fmt.Errorf("read: %w: %w", store.ErrUnavailable, stages.ErrInterrupted)
			}
			if attempt%2 == 0 { // the store answers now, so failures count as attempts
				return errFlaky
			}
			return nil
		})
		if err != nil || ended[0] != nil || tries[0] < 40 {
			t.Errorf("%v, %v after %d tries", err, ended[0], tries[0])
		}
	})
}

func TestAStoreThatStaysAwayInterruptsItsTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, ended, err := run(t, t.Context(), 1, func(int, int) error { return fmt.Errorf("read: %w", store.ErrUnavailable) })
		waited := time.Since(began)
		if !errors.Is(err, stages.ErrInterrupted) || !errors.Is(err, store.ErrUnavailable) || len(ended) > 0 || waited < 30*time.Minute || waited > 31*time.Minute {
			t.Errorf("%v, %v after %v", err, ended, waited)
		}
	})
}

// After the store has been away for too long, no further task begins, whether it is back or not.
func TestNoTaskBeginsAfterAStoreStayedAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		tries, ended, err := run(t, t.Context(), 20, func(int, int) error {
			if time.Since(began) < 31*time.Minute {
				return fmt.Errorf("read: %w", store.ErrUnavailable)
			}
			return nil
		})
		if !errors.Is(err, stages.ErrInterrupted) || len(tries) > 3 || len(ended) > 1 || time.Since(began) > 32*time.Minute {
			t.Errorf("%v: %d tasks began, %d ended after %v", err, len(tries), len(ended), time.Since(began))
		}
	})
}

// A fetch task has waited for the network as long as it may. The others would wait in vain as well.
func TestNoTaskBeginsAfterTheNetworkStayedAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries, ended, err := run(t, t.Context(), 20, func(int, int) error {
			time.Sleep(witness.Patience)
			return fmt.Errorf("fetch: %w", witness.ErrAway)
		})
		if !errors.Is(err, stages.ErrInterrupted) || len(tries) > 3 || len(ended) > 0 {
			t.Errorf("%v: %d tasks began, %d ended", err, len(tries), len(ended))
		}
	})
}

func TestATaskThatAnotherProcessTookIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries, ended, err := run(t, t.Context(), 1, func(_, attempt int) error {
			if attempt <= 10 {
				return fmt.Errorf("fetch: %w", stages.ErrTaken)
			}
			return nil
		})
		if err != nil || ended[0] != nil || tries[0] != 11 {
			t.Errorf("%v, %v after %d tries", err, ended[0], tries[0])
		}
	})
}

// onlooker records why tasks wait.
type onlooker struct {
	mu    sync.Mutex
	waits []string
	open  int
}

func (o *onlooker) Watch(_ stages.Task, look func() stages.Activity) func() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open++
	w := look().Waits[0]
	o.waits = append(o.waits, fmt.Sprintf("%s in %s", w.Why, time.Until(w.Until)))
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.open--
	}
}

func TestWhatATaskWaitsForBetweenAttemptsIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shown onlooker
		tries := 0
		e := &Executor{
			FetchTasks: 1, Tasks: 1, Attempts: 3, Pause: time.Second, Clock: stages.SystemClock{}, Log: slog.New(slog.DiscardHandler), Watcher: &shown,
			Try: func(context.Context, stages.Task) error {
				switch tries++; tries {
				case 1:
					return errFlaky
				case 2:
					return fmt.Errorf("put:\nno room: %w", store.ErrFull)
				}
				return nil
			},
		}
		if err := e.Run(t.Context(), []stages.Task{{Stage: stages.Merge, Crawl: "2026-11"}}, func(stages.Task, error) {}); err != nil {
			t.Fatal(err)
		}
		if len(shown.waits) != 2 || shown.open != 0 || shown.waits[0] != "failed (flaky), tried again in 1s" ||
			!strings.HasPrefix(shown.waits[1], "the store is full (put: no room: "+store.ErrFull.Error()+"), tried again in ") {
			t.Errorf("it showed %q, %d still", shown.waits, shown.open)
		}
	})
}

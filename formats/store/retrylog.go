package store

import (
	"log/slog"
	"sync"
	"time"
)

// retryLogEvery is the shortest time between two warnings. A failing store causes hundreds of
// retries per second.
const retryLogEvery = 10 * time.Second

// RetryLog logs the retries of calls to a store. It writes at most one warning every ten seconds,
// with the number of retries since the last warning. The other lines have the level debug.
type RetryLog struct {
	Log *slog.Logger
	Now func() time.Time

	mu      sync.Mutex
	last    time.Time
	omitted int // number of retries since the last warning
}

// Read logs the retry of a read. It is a function for Retry.OnRetry.
func (r *RetryLog) Read(tried int, wait time.Duration, err error) {
	r.line("the store does not answer, reading again", "tried", tried, "wait", wait.Round(time.Millisecond), "error", err)
}

// Write logs the retry of a conditional write.
func (r *RetryLog) Write(key string, sent int, err error) {
	r.line("the store does not answer, sending a write again", "key", key, "sent", sent, "error", err)
}

func (r *RetryLog) line(text string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Now()
	if !r.last.IsZero() && now.Sub(r.last) < retryLogEvery {
		r.omitted++
		r.Log.Debug(text, args...)
		return
	}
	if r.omitted > 0 {
		args = append(args, "more", r.omitted)
	}
	r.last, r.omitted = now, 0
	r.Log.Warn(text, args...)
}

package fetch

import (
	"context"
	"sync"
)

// flights is the context of the requests in flight. All of them may be aborted,
// and others begun afterwards.
type flights struct {
	base context.Context // ends with end
	stop context.CancelFunc

	mu    sync.Mutex
	now   context.Context
	abort context.CancelFunc
}

func newFlights(ctx context.Context) *flights {
	f := &flights{}
	f.base, f.stop = context.WithCancel(ctx)
	f.now, f.abort = context.WithCancel(f.base)
	return f
}

// current is the context of a request that begins.
func (f *flights) current() context.Context {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// land aborts the requests in flight.
func (f *flights) land() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.abort()
	f.now, f.abort = context.WithCancel(f.base)
}

// end aborts the requests in flight and all that would follow.
func (f *flights) end() { f.stop() }

package lease

import (
	"context"
	"sync"
)

// Flights holds the context of the requests in flight. It is safe for concurrent use.
type Flights struct {
	base context.Context // context of all requests; End cancels it
	stop context.CancelFunc

	mu    sync.Mutex
	now   context.Context
	abort context.CancelFunc
}

// NewFlights makes Flights whose requests end when ctx ends. The caller calls End.
func NewFlights(ctx context.Context) *Flights {
	f := &Flights{}
	f.base, f.stop = context.WithCancel(ctx)
	f.now, f.abort = context.WithCancel(f.base)
	return f
}

// Context returns the context for a request that begins now.
func (f *Flights) Context() context.Context {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// AbortAll aborts the requests in flight. Requests that begin later are not affected.
func (f *Flights) AbortAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.abort()
	f.now, f.abort = context.WithCancel(f.base)
}

// Base returns a context that lasts until the call of End.
func (f *Flights) Base() context.Context { return f.base }

// End aborts the requests in flight. Later requests are aborted at once.
func (f *Flights) End() { f.stop() }

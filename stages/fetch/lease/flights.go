package lease

import (
	"context"
	"sync"
)

// Flights provides the contexts of the requests in flight, so that they can be aborted together. It
// is safe for concurrent use.
type Flights struct {
	base context.Context // context of all requests; End cancels it
	stop context.CancelFunc

	mu    sync.Mutex
	now   context.Context    // context of requests that begin now; AbortAll replaces it
	abort context.CancelFunc // ends now
}

// NewFlights makes a Flights whose requests end with ctx. The caller calls End.
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

// AbortAll aborts the requests in flight. It does not affect later requests.
func (f *Flights) AbortAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.abort()
	f.now, f.abort = context.WithCancel(f.base)
}

// Base returns a context that ends when End is called.
func (f *Flights) Base() context.Context { return f.base }

// End aborts the requests in flight, and all later requests as soon as they begin.
func (f *Flights) End() { f.stop() }

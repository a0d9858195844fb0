package simweb

import (
	"context"
	"net"
	"net/http"
	"time"
)

// A server that shares its processors with other programs may read a request long
// after it came. What is held against a crawler's pace is when it came: the kernel
// notes that, where the system has a way to ask for it (arrival_linux.go).

// arrivals is a connection that knows when what was last read from it had arrived.
type arrivals interface {
	// Arrived is zero where the kernel did not say.
	Arrived() time.Time
}

type arrivalKey struct{}

// withArrivals lets the handler of a connection's requests find when they came.
func withArrivals(ctx context.Context, conn net.Conn) context.Context {
	if a, ok := conn.(arrivals); ok {
		return context.WithValue(ctx, arrivalKey{}, a)
	}
	return ctx
}

// arrived is when the last bytes of a request's head reached this machine, or now,
// where nobody but this process knows. No client of simweb's sends a request
// before it has the answer to the one before, so they are this request's.
func arrived(r *http.Request) time.Time {
	if a, ok := r.Context().Value(arrivalKey{}).(arrivals); ok {
		if at := a.Arrived(); !at.IsZero() {
			return at
		}
	}
	return time.Now()
}

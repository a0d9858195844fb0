package simweb

import (
	"context"
	"net"
	"net/http"
	"time"
)

// A busy server may read a request long after the request arrived. Tests judge a crawler's pace by
// the time of arrival. If the system supports it, the kernel records that time (arrival_linux.go).

// arrivals is a connection that knows when the bytes of its last read arrived.
type arrivals interface {
	// Arrived returns the zero time if the kernel did not record the time.
	Arrived() time.Time
}

type arrivalKey struct{}

// withArrivals adds conn to the context of the connection's requests, so that the HTTP handler can
// read arrival times.
func withArrivals(ctx context.Context, conn net.Conn) context.Context {
	if a, ok := conn.(arrivals); ok {
		return context.WithValue(ctx, arrivalKey{}, a)
	}
	return ctx
}

// arrived returns when the last bytes of a request's head reached this machine. If the kernel did
// not record the arrival, arrived returns the current time. The bytes that arrived last belong to
// this request, because no client of simweb pipelines requests.
func arrived(r *http.Request) time.Time {
	if a, ok := r.Context().Value(arrivalKey{}).(arrivals); ok {
		if at := a.Arrived(); !at.IsZero() {
			return at
		}
	}
	return time.Now()
}

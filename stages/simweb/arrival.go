package simweb

import (
	"context"
	"net"
	"net/http"
	"time"
)

// A busy server may read a request long after the request arrived, but tests judge a crawler's pace
// by arrival times. On Linux, the kernel therefore records the arrival times (arrival_linux.go).

// arrivals is a connection that knows when its last bytes arrived.
type arrivals interface {
	// Arrived returns when the last bytes arrived, or the zero time if the kernel did not record
	// their arrival.
	Arrived() time.Time
}

type arrivalKey struct{}

// withArrivals adds conn to the context of its requests, so that the HTTP handler can read arrival
// times.
func withArrivals(ctx context.Context, conn net.Conn) context.Context {
	if a, ok := conn.(arrivals); ok {
		return context.WithValue(ctx, arrivalKey{}, a)
	}
	return ctx
}

// arrived returns when the end of a request's head reached this machine. If the kernel did not
// record this time, arrived returns the current time. No client of simweb pipelines requests, so
// the last bytes that arrived belong to this request.
func arrived(r *http.Request) time.Time {
	if a, ok := r.Context().Value(arrivalKey{}).(arrivals); ok {
		if at := a.Arrived(); !at.IsZero() {
			return at
		}
	}
	return time.Now()
}

package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/netutil"
)

// These constants limit the server. No client may delay a crawl, so the server does not trust its
// clients.
const (
	maxConnections = 64
	maxScrapes     = 4 // largest number of concurrent scrapes; further scrapes get 503
	maxHeader      = 16 << 10
	readWithin     = 5 * time.Second
	scrapeWithin   = 10 * time.Second
	writeWithin    = 15 * time.Second
	idleFor        = 2 * time.Minute // idle time after which a connection is closed; longer than the interval between two scrapes
	closeWithin    = time.Second     // time that running scrapes get to finish
)

// Server serves metrics over HTTP.
type Server struct {
	listener net.Listener
	server   *http.Server
	served   chan struct{}
}

// Listen serves the metrics under http://addr/metrics until Close. /healthz answers 200 as long as
// the process serves. /readyz answers 200 once work has begun, and 503 before, while the process opens
// the crawl, and while the store does not answer. Neither says that a crawl makes progress: the counters do. The address is ADDR:PORT, or
// :PORT for all addresses of the machine; port 0 means any free port. The error says why addr
// cannot be used.
func (m *Metrics) Listen(addr string, log *slog.Logger) (*Server, error) {
	if _, port, err := net.SplitHostPort(addr); err != nil || port == "" {
		return nil, fmt.Errorf("%q names no port: write ADDR:PORT, or :PORT for all addresses", addr)
	}
	listener, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%q: another program listens on this port: end that program, or choose another port: %w", addr, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%q: %w", addr, err)
	}
	faults := slog.NewLogLogger(log.Handler(), slog.LevelDebug) // clients cause most faults
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog: faults, ErrorHandling: promhttp.HTTPErrorOnError, MaxRequestsInFlight: maxScrapes, Timeout: scrapeWithin,
	}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { state(w, true) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { state(w, m.ready.Load() && !m.storeAway.Load()) })
	s := &Server{
		listener: listener,
		served:   make(chan struct{}),
		server: &http.Server{
			Handler: mux, ErrorLog: faults, MaxHeaderBytes: maxHeader,
			ReadHeaderTimeout: readWithin, ReadTimeout: readWithin, WriteTimeout: writeWithin, IdleTimeout: idleFor,
		},
	}
	go func() {
		defer close(s.served)
		if err := s.server.Serve(netutil.LimitListener(listener, maxConnections)); !errors.Is(err, http.ErrServerClosed) {
			log.Warn("metrics are no longer served", "error", err)
		}
	}()
	return s, nil
}

// state answers a request for the state of the process.
func state(w http.ResponseWriter, good bool) {
	text, code := "ok\n", http.StatusOK
	if !good {
		text, code = "the crawl is being opened\n", http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text) // a client that has gone needs no answer
}

// Addr is the address of the listener.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Close stops the server, then the running scrapes. It must be called only once.
func (s *Server) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	if s.server.Shutdown(ctx) != nil {
		_ = s.server.Close() // closing the server cannot lose data
	}
	<-s.served
}

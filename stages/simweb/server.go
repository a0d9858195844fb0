package simweb

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"crawlbatch.io/crawlbatch/stages/simweb/faults"
)

// Server serves a Web over HTTP/1.1 and selects the host by the Host header. It also plays faults
// that net/http cannot produce. It remembers the requested URLs of faults that affect only the
// first request.
type Server struct {
	web *Web
	log *Log // nil if requests are not logged

	mu    sync.Mutex
	asked map[string]bool // requested URLs of faults that affect only the first request
}

// NewServer returns a server of the given web. It records each request in the log, unless the log
// is nil.
func NewServer(web *Web, log *Log) *Server {
	return &Server{web: web, log: log, asked: make(map[string]bool)}
}

// Serve serves requests on ln until ctx ends, then closes ln and all connections and returns nil.
// If ln fails first, it returns the error.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	srv := &http.Server{
		Handler:           s,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       withArrivals,
		ReadHeaderTimeout: 30 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0), // broken clients are normal here
	}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if err := srv.Serve(stampArrivals(ln)); !errors.Is(err, http.ErrServerClosed) || ctx.Err() == nil {
		return err
	}
	return nil
}

// ServeHTTP serves one request. A fault on the wire needs a connection that can be hijacked;
// without one, ServeHTTP responds with 501.
func (s *Server) ServeHTTP(rw http.ResponseWriter, req *http.Request) {
	at := arrived(req)
	name := strings.ToLower(strings.TrimSuffix(req.Host, ":80"))
	path := req.RequestURI
	if !strings.HasPrefix(path, "/") { // the request has the absolute form, which proxies receive
		path = req.URL.RequestURI()
	}
	r := s.respond(name, path, req.Method)
	if r.Fault == nil && r.Document != nil {
		s.negotiate(&r, name, path, req.Header, rw.Header())
	}
	status, onWire := r.Status, r.Fault != nil && r.Fault.OnWire()
	if onWire {
		status = r.Fault.Status
	}
	if s.log != nil {
		s.log.add(Entry{Time: at, Host: name, Path: path, UserAgent: req.UserAgent(), Status: status})
	}
	if onWire {
		s.misbehave(rw, req, r)
		return
	}
	s.sendResponse(rw, req, r)
}

// respond returns the response to a request. A fault may affect only the first request for a URL;
// later requests get the page.
func (s *Server) respond(host, path, method string) Response {
	i, ok := s.web.HostIndex(host)
	switch {
	case !ok:
		return statusPage(http.StatusMisdirectedRequest)
	case method != http.MethodGet && method != http.MethodHead:
		return statusPage(http.StatusMethodNotAllowed)
	}
	r := s.web.Look(i, path)
	if f := r.Fault; f != nil && f.First != 0 && s.isFirst(host, path) {
		r.Document, r.Status, r.Body = nil, f.First, statusPage(f.First).Body
	}
	return r
}

// isFirst records a request for a URL, and reports whether it is the first.
func (s *Server) isFirst(host, path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.asked[host+path]
	s.asked[host+path] = true
	return first
}

// negotiate answers conditional requests with 304, and compresses bodies for clients that accept
// gzip. Half of the hosts send entity tags, and a quarter compress.
func (s *Server) negotiate(r *Response, name, path string, in, out http.Header) {
	i, _ := s.web.HostIndex(name)
	s.web.announce(i, Untracked(path), out)
	if tag := s.web.ETag(i, Untracked(path)); tag != "" {
		out.Set("ETag", tag)
		if in.Get("If-None-Match") == tag {
			r.Status, r.Body, r.MIME = http.StatusNotModified, nil, ""
			return
		}
	}
	if s.web.hostKey(i).named("gzip").below(4) == 0 {
		out.Set("Vary", "Accept-Encoding")
		if strings.Contains(in.Get("Accept-Encoding"), "gzip") {
			out.Set("Content-Encoding", "gzip")
			r.Body = faults.Gzipped(r.Body)
		}
	}
}

// ETag returns the entity tag of a page, or "" if its host sends none.
func (w *Web) ETag(host int, path string) string {
	k := w.hostKey(host).named("etag")
	if k.below(2) == 0 {
		return ""
	}
	return `"` + strconv.FormatUint(uint64(k.named(path)), 16) + `"`
}

// sendResponse writes a response through net/http, without a Date field, so that the same request
// always gets the same bytes.
func (s *Server) sendResponse(rw http.ResponseWriter, req *http.Request, r Response) {
	h := rw.Header()
	h["Date"] = nil
	h["Content-Type"] = nil // nil keeps net/http from sniffing a type
	for _, f := range [...]struct{ name, value string }{{"Content-Type", r.MIME}, {"Location", r.Location}, {"X-Robots-Tag", r.XRobots}} {
		if f.value != "" {
			h.Set(f.name, f.value)
		}
	}
	if f := r.Fault; f != nil {
		for pair := range slices.Chunk(f.Header, 2) {
			h.Set(pair[0], pair[1])
		}
		after := s.web.cfg.RetryAfter
		if after > 0 && (r.Status == http.StatusTooManyRequests || r.Status == http.StatusServiceUnavailable && f.First != 0) {
			h.Set("Retry-After", strconv.Itoa(int(after/time.Second)))
		}
	}
	if r.Status != http.StatusNotModified {
		h.Set("Content-Length", strconv.Itoa(len(r.Body)))
	}
	rw.WriteHeader(r.Status)
	if req.Method != http.MethodHead {
		_, _ = rw.Write(r.Body) // an error means that the client has gone away
	}
}

// misbehave takes the connection from net/http and plays the fault on it.
func (s *Server) misbehave(rw http.ResponseWriter, req *http.Request, r Response) {
	conn, _, err := http.NewResponseController(rw).Hijack()
	if err != nil {
		http.Error(rw, "simweb: fault "+r.Fault.Name+" needs an HTTP/1.1 connection of its own: "+err.Error(), http.StatusNotImplemented)
		return
	}
	stop := context.AfterFunc(req.Context(), func() { _ = conn.Close() })
	defer stop()
	defer conn.Close()
	_ = conn.SetDeadline(time.Time{}) // net/http may have set a deadline
	r.Fault.Play(req.Context(), conn, r.toFaults(s.web), s.web.cfg.SlowDelay)
}

package simweb

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/zeebo/xxh3"
)

// Server serves a Web over HTTP/1.1, keyed by the Host header, faults that
// net/http cannot produce included. The web itself is a pure function; what a
// server knows beside it is its log and, for faults that fail once, which URLs
// were asked for before: 8 bytes for each of the last maxAsked such URLs at least.
type Server struct {
	web *Web
	log *Log // nil: none

	mu    sync.Mutex
	asked map[uint64]struct{} // since the last time it was full
	old   map[uint64]struct{} // before that
}

// maxAsked bounds each of the two generations of asked URLs.
const maxAsked = 1 << 18

// NewServer returns a server of web that notes each request in log, unless that is nil.
func NewServer(web *Web, log *Log) *Server {
	return &Server{web: web, log: log, asked: make(map[uint64]struct{})}
}

// Serve answers what comes in on ln until ctx ends, then closes ln and all
// connections and returns nil. It returns an error when ln fails before.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	srv := &http.Server{
		Handler:           s,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       withArrivals,
		ReadHeaderTimeout: 30 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0), // broken clients are this server's trade
	}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if err := srv.Serve(stamped(ln)); !errors.Is(err, http.ErrServerClosed) || ctx.Err() == nil {
		return err
	}
	return nil
}

// ServeHTTP answers one request. Faults of the wire need a connection that can be
// hijacked; without one they answer 501.
func (s *Server) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	at := arrived(r)
	name := strings.ToLower(strings.TrimSuffix(r.Host, ":80"))
	path := r.RequestURI
	if !strings.HasPrefix(path, "/") { // absolute form, as proxies are asked
		path = r.URL.RequestURI()
	}
	a := s.answer(name, path, r.Method)
	if a.fault == nil && a.doc != nil {
		s.negotiate(&a, name, path, r.Header, rw.Header())
	}
	status := a.status
	if a.fault != nil && (a.fault.wire != nil || a.fault.script != nil) {
		status = a.fault.Status
	}
	if s.log != nil {
		s.log.add(Entry{Time: at, Host: name, Path: path, UserAgent: r.UserAgent(), Status: status})
	}
	if a.fault != nil && (a.fault.wire != nil || a.fault.script != nil) {
		s.misbehave(rw, r, a)
		return
	}
	sendPlain(rw, r, a)
}

// answer finds the answer to a request and lets faults that fail once fail.
func (s *Server) answer(host, path, method string) answer {
	i, ok := s.web.HostIndex(host)
	switch {
	case !ok:
		return statusPage(http.StatusMisdirectedRequest)
	case method != http.MethodGet && method != http.MethodHead:
		return statusPage(http.StatusMethodNotAllowed)
	}
	a := s.web.look(i, path)
	if f := a.fault; f != nil && f.first != 0 && s.isFirst(host, path) {
		a.doc, a.status, a.body = nil, f.first, statusPage(f.first).body
	}
	return a
}

// isFirst notes that a URL is asked for and reports whether that is the first time.
func (s *Server) isFirst(host, path string) bool {
	h := xxh3.HashString(host + path)
	s.mu.Lock()
	defer s.mu.Unlock()
	_, seen := s.asked[h]
	if _, before := s.old[h]; !seen && !before {
		if len(s.asked) >= maxAsked {
			s.old, s.asked = s.asked, make(map[uint64]struct{})
		}
		s.asked[h] = struct{}{}
		return true
	}
	return false
}

// negotiate makes use of what the client says of itself: half of the hosts give
// entity tags, a quarter compress.
func (s *Server) negotiate(a *answer, name, path string, in, out http.Header) {
	i, _ := s.web.HostIndex(name)
	s.web.announce(i, untracked(path), out)
	if tag := s.web.etag(i, untracked(path)); tag != "" {
		out.Set("ETag", tag)
		if in.Get("If-None-Match") == tag {
			a.status, a.body, a.mime = http.StatusNotModified, nil, ""
			return
		}
	}
	if s.web.hostKey(i).named("gzip").below(4) == 0 {
		out.Set("Vary", "Accept-Encoding")
		if strings.Contains(in.Get("Accept-Encoding"), "gzip") {
			out.Set("Content-Encoding", "gzip")
			a.body = pooledGzip(a.body)
		}
	}
}

var gzipWriters = sync.Pool{New: func() any { return gzipWriter(io.Discard) }}

func pooledGzip(b []byte) []byte {
	w := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(w)
	return compressed(b, func(buf io.Writer) io.WriteCloser {
		w.Reset(buf)
		return w
	})
}

// etag is the entity tag of a page; "" on hosts that give none.
func (w *Web) etag(host int, path string) string {
	k := w.hostKey(host).named("etag")
	if k.below(2) == 0 {
		return ""
	}
	return `"` + strconv.FormatUint(uint64(k.named(path)), 16) + `"`
}

// sendPlain sends an answer as net/http does, without a Date: the same request
// gets the same bytes.
func sendPlain(rw http.ResponseWriter, r *http.Request, a answer) {
	h := rw.Header()
	h["Date"] = nil
	h["Content-Type"] = nil // nil keeps net/http from sniffing one
	if a.mime != "" {
		h.Set("Content-Type", a.mime)
	}
	if a.location != "" {
		h.Set("Location", a.location)
	}
	if a.xRobots != "" {
		h.Set("X-Robots-Tag", a.xRobots)
	}
	if f := a.fault; f != nil {
		for i := 0; i+1 < len(f.header); i += 2 {
			h.Set(f.header[i], f.header[i+1])
		}
		after := a.visit.w.cfg.RetryAfter
		if after > 0 && (a.status == http.StatusTooManyRequests || a.status == http.StatusServiceUnavailable && f.first != 0) {
			h.Set("Retry-After", strconv.Itoa(int(after/time.Second)))
		}
	}
	if a.status != http.StatusNotModified {
		h.Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	rw.WriteHeader(a.status)
	if r.Method != http.MethodHead {
		_, _ = rw.Write(a.body) // a client that has gone away is no matter of ours
	}
}

// misbehave takes the connection over and plays the fault on it.
func (s *Server) misbehave(rw http.ResponseWriter, r *http.Request, a answer) {
	conn, _, err := http.NewResponseController(rw).Hijack()
	if err != nil {
		http.Error(rw, "simweb: fault "+a.fault.Name+" needs an HTTP/1.1 connection of its own: "+err.Error(), http.StatusNotImplemented)
		return
	}
	stop := context.AfterFunc(r.Context(), func() { _ = conn.Close() })
	defer stop()
	defer conn.Close()
	_ = conn.SetDeadline(time.Time{}) // net/http may have set one
	if a.fault.script != nil {
		a.fault.script(r.Context(), conn, a.visit, a, s.web.cfg.SlowDelay)
		return
	}
	_, _ = conn.Write(a.fault.wire(a.visit, a))
}

package simweb

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages/simweb/faults"
)

// serve starts a server on loopback that runs until the test ends.
func serve(t testing.TB, w *Web, log *Log) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- NewServer(w, log).Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve returned %v", err)
		}
	})
	return ln.Addr().String()
}

// rawGet requests a URL on a new connection, and returns all bytes until the connection ends or is
// silent for patience.
func rawGet(t *testing.T, addr, host, path string, patience time.Duration) ([]byte, error) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\nUser-Agent: raw\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	var all []byte
	buf := make([]byte, 64<<10)
	for {
		if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		n, err := conn.Read(buf)
		if all = append(all, buf[:n]...); err != nil {
			return all, err
		}
		if len(all) > 1<<20 && strings.Contains(path, "drip") {
			t.Fatalf("%s sends without a pause", path)
		}
	}
}

const ok = "HTTP/1.1 200 OK"

// onTheWire says how the raw bytes of each fault on the wire begin, and which text they must and
// must not contain.
var onTheWire = map[string]struct{ begins, has, hasNot string }{
	"status-colon":      {begins: "HTTP/1.1 200: OK\r\n", has: "</html>"},
	"status-icy":        {begins: "ICY 200 OK\r\n", has: "</html>"},
	"status-http2":      {begins: "HTTP/2 200\r\n", has: "</html>"},
	"status-bare":       {begins: "HTTP/1.1 200\r\n", has: "</html>"},
	"http-1.0":          {begins: "HTTP/1.0 200 OK\r\n", has: "</html>", hasNot: "Content-Length"},
	"length-words":      {begins: ok, has: "Content-Length: thousand\r\n"},
	"length-negative":   {begins: ok, has: "Content-Length: -1\r\n"},
	"length-two":        {begins: ok, has: "\r\nContent-Length: 7\r\n"},
	"header-no-colon":   {begins: ok, has: "\r\nThis line has no colon\r\n"},
	"header-nul":        {begins: ok, has: "X-Nul: a\x00b\r\n"},
	"header-folded":     {begins: ok, has: "X-Folded: one\r\n  two\r\n"},
	"header-space":      {begins: ok, has: "\r\nX-Space : here\r\n"},
	"early-hints":       {begins: "HTTP/1.1 103 Early Hints\r\n", has: "\r\n\r\nHTTP/1.1 200 OK\r\n"},
	"te-identity":       {begins: ok, has: "Transfer-Encoding: identity\r\n"},
	"head-lf":           {begins: ok + "\nContent-Type: ", has: "\n\n<!doctype html>", hasNot: "\r"},
	"status-none":       {begins: "<!doctype html>\n", has: "</html>"},
	"length-short":      {begins: ok, has: "</html>\n<p>These words were not announced.</p>\n"},
	"head-garbage":      {begins: "\x00\x9d\xff", hasNot: "HTTP/"},
	"head-ssh":          {begins: "SSH-2.0-", hasNot: "HTTP/"},
	"head-endless":      {begins: ok + "\r\nX-Filler: ", hasNot: "\r\n\r\n"},
	"status-42":         {begins: "HTTP/1.1 42 What\r\n"},
	"chunked":           {begins: ok, has: "\r\n\r\n2bc;name=\"value\"\r\n<!doctype html>", hasNot: "Content-Length"},
	"chunked-lf":        {begins: ok, has: "\r\n0\r\n\r\n"},
	"chunked-false":     {begins: ok, has: "Transfer-Encoding: chunked\r\n\r\n<!doctype html>"},
	"truncated":         {begins: ok, has: "Content-Length: ", hasNot: "</html>"},
	"chunked-truncated": {begins: ok, has: "</main>\n\r\n", hasNot: "0\r\n\r\n"},
	"chunked-invalid":   {begins: ok, has: "</main>\n\r\nwhat?\r\n", hasNot: "</html>"},
	"slow":              {begins: ok, has: "</html>"},
	"drip-head":         {begins: ok + "\r\nX-Drip: drip\r\nX-Drip: drip\r\n", hasNot: "\r\n\r\n"},
	"drip-body":         {begins: ok, has: "</html>\n<!-- drip -->\n<!-- drip -->\n"},
	"hang-body":         {begins: ok, has: "</main>\n", hasNot: "</html>"},
}

func TestFaultsSendWhatTheyClaim(t *testing.T) {
	w := newWeb(t, func(c *Config) { c.SlowDelay, c.LargeBody = 10*time.Millisecond, 1<<20 })
	addr := serve(t, w, nil)
	host := w.Host(0)
	seen := 0
	for i := range faults.All {
		f := &faults.All[i]
		t.Run(f.Name, func(t *testing.T) {
			patience := 5 * time.Second
			endless := f.Truncated == schema.TruncatedTime || f.Outcome == schema.Timeout
			if endless {
				patience = 100 * time.Millisecond
			}
			if strings.HasPrefix(f.Name, "drip") {
				patience = 0 // 0 selects rawRead, which reads for a fixed time
			}
			path := faultPath(f.Name, 77)
			var got []byte
			var err error
			if patience > 0 {
				got, err = rawGet(t, addr, host, path, patience)
			} else {
				got = rawRead(t, addr, host, path, 200*time.Millisecond)
			}
			switch {
			case f.Name == "reset":
				if !errors.Is(err, syscall.ECONNRESET) || len(got) > 0 {
					t.Errorf("got %d bytes and %v, want a reset", len(got), err)
				}
			case patience == 5*time.Second && err != io.EOF:
				t.Errorf("after %d bytes: %v, want the end of the connection", len(got), err)
			case (f.Name == "hang" || f.Name == "close") && len(got) > 0:
				t.Errorf("got %.60q, want nothing", got)
			}
			if want, ok := onTheWire[f.Name]; ok {
				seen++
				if !bytes.HasPrefix(got, []byte(want.begins)) || !bytes.Contains(got, []byte(want.has)) || want.hasNot != "" && bytes.Contains(got, []byte(want.hasNot)) {
					t.Errorf("want %q, then %q, never %q, got\n%.600q", want.begins, want.has, want.hasNot, got)
				}
			} else if !f.Scripted() {
				wellFormed(t, w, f, got, path)
			}
		})
	}
	if seen != len(onTheWire) {
		t.Errorf("%d of %d faults of the wire are in the table", seen, len(onTheWire))
	}
}

// rawRead returns the bytes that arrive within d.
func rawRead(t *testing.T, addr, host, path string, d time.Duration) []byte {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(d)); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if !errors.Is(err, context.DeadlineExceeded) && !strings.Contains(err.Error(), "timeout") {
		t.Errorf("reading ended early with %v", err)
	}
	return got
}

// wellFormed compares a response with the table of faults. The response must be one that net/http
// can read.
func wellFormed(t *testing.T, w *Web, f *faults.Fault, raw []byte, path string) {
	t.Helper()
	if bytes.Contains(raw, []byte("\r\nDate:")) {
		t.Error("the answer has a Date field, so its bytes change with time")
	}
	rec := httptest.NewRecorder()
	req := httptest.NewRequest(http.MethodGet, "http://"+w.Host(0)+path, nil)
	srv := NewServer(w, nil)
	srv.ServeHTTP(rec, req)
	if f.First != 0 {
		if rec.Code != f.First {
			t.Errorf("the first answer is %d, want %d", rec.Code, f.First)
		}
		rec = httptest.NewRecorder()
		srv.ServeHTTP(rec, req)
	}
	want := f.Status
	if f.Code != 0 {
		want = f.Code
	}
	if rec.Code != want {
		t.Errorf("status %d, want %d", rec.Code, want)
	}
	if rate := rec.Code == http.StatusTooManyRequests; rate != (rec.Header().Get("Retry-After") == "1") {
		t.Errorf("status %d with Retry-After %q", rec.Code, rec.Header().Get("Retry-After"))
	}
	if f.Page == faults.WholePage && f.Redirect == nil && rec.Header().Get("Content-Encoding") == "" && !strings.HasPrefix(f.Name, "charset-utf16") &&
		!bytes.Contains(rec.Body.Bytes(), []byte("</main>")) {
		t.Errorf("the page is missing: %.200q", rec.Body.Bytes())
	}
}

func TestTableOfFaultsIsSound(t *testing.T) {
	if len(faults.All) < 60 {
		t.Errorf("%d faults, want at least 60", len(faults.All))
	}
	w, seen := newWeb(t, nil), map[string]bool{}
	outcomes := map[schema.Outcome]bool{}
	for _, o := range schema.Outcomes {
		outcomes[o] = true
	}
	for i := range faults.All {
		f := &faults.All[i]
		if seen[f.Name] || f.Name == "" || f.About == "" || f.Class == 0 || !outcomes[f.Outcome] {
			t.Errorf("fault %q is incomplete, or in the table twice", f.Name)
		}
		seen[f.Name] = true
		if (f.Page != faults.NoPage) != (f.Outcome == schema.OK) {
			t.Errorf("%s: outcome %s and page %d", f.Name, f.Outcome, f.Page)
		}
		if r := w.Look(0, faultPath(f.Name, 5)); r.Fault != f {
			t.Errorf("%s is not found by its URL", f.Name)
		}
	}
}

func get(srv http.Handler, url string, header ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodGet, url, nil)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	srv.ServeHTTP(rec, req)
	return rec
}

func TestServerAnswersForItsHostsAlone(t *testing.T) {
	w := newWeb(t, nil)
	srv := NewServer(w, nil)
	if c := get(srv, "http://elsewhere.example/").Code; c != http.StatusMisdirectedRequest {
		t.Errorf("another host's home answers %d", c)
	}
	if c := get(srv, "http://"+w.Host(0)+"/nothing").Code; c != http.StatusNotFound {
		t.Errorf("an unknown path answers %d", c)
	}
	if c := get(srv, w.FaultURL(0, "reset", 1)).Code; c != http.StatusNotImplemented {
		t.Errorf("a fault of the wire without a connection answers %d", c)
	}
	plain, tracked := get(srv, w.URL(0, 0)), get(srv, w.URL(0, 0)+"?utm_source=x&gclid=y")
	if plain.Code != 200 || plain.Body.String() != tracked.Body.String() {
		t.Error("tracking parameters change the page")
	}
}

func TestEntityTagsAndCompression(t *testing.T) {
	w := newWeb(t, nil)
	srv := NewServer(w, nil)
	tags, packed := 0, 0
	for h := range w.Hosts() {
		plain := get(srv, w.URL(h, 0))
		if tag := plain.Header().Get("ETag"); tag != "" {
			tags++
			if again := get(srv, w.URL(h, 0), "If-None-Match", tag); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
				t.Errorf("%s: unchanged page answers %d", w.Host(h), again.Code)
			}
		}
		if z := get(srv, w.URL(h, 0), "Accept-Encoding", "gzip"); z.Header().Get("Content-Encoding") == "gzip" {
			packed++
			if !bytes.HasPrefix(z.Body.Bytes(), []byte{0x1f, 0x8b}) || z.Body.Len() >= plain.Body.Len() {
				t.Errorf("%s: no gzip", w.Host(h))
			}
		}
	}
	if tags == 0 || tags == w.Hosts() || packed == 0 || packed == w.Hosts() {
		t.Errorf("of %d hosts %d give tags, %d compress: want some", w.Hosts(), tags, packed)
	}
}

func TestOnceMeansOncePerURL(t *testing.T) {
	w := newWeb(t, nil)
	srv := NewServer(w, nil)
	for _, name := range []string{"unavailable-once", "rate-limited-once", "server-error-once"} {
		for num := range 3 {
			url := w.FaultURL(num, name, num)
			first, second, third := get(srv, url).Code, get(srv, url).Code, get(srv, url).Code
			if first != faults.Named(name).First || second != 200 || third != 200 {
				t.Errorf("%s answers %d, %d, %d", url, first, second, third)
			}
		}
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	w := newWeb(t, nil)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	log := NewLog(nil)
	served := make(chan error, 1)
	go func() { served <- NewServer(w, log).Serve(ctx, ln) }()
	hung := make(chan error, 1)
	go func() {
		conn, err := net.Dial("tcp", ln.Addr().String())
		if err == nil {
			defer conn.Close()
			_, err = io.WriteString(conn, "GET /fault/hang/1 HTTP/1.1\r\nHost: "+w.Host(0)+"\r\n\r\n")
		}
		if err == nil {
			_, err = conn.Read(make([]byte, 1))
		}
		hung <- err
	}()
	for len(log.Entries()) == 0 {
		time.Sleep(time.Millisecond) // waits for the request to arrive
	}
	cancel()
	if err := <-served; err != nil {
		t.Errorf("Serve returned %v", err)
	}
	if err := <-hung; err == nil {
		t.Error("a hanging connection got an answer")
	}
}

func BenchmarkServe(b *testing.B) {
	w := newWeb(b, func(c *Config) { c.FaultShare = 0 })
	addr := serve(b, w, NewLog(nil))
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
		MaxIdleConnsPerHost: 100, DisableCompression: true,
	}}
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			h := i % w.Hosts()
			resp, err := client.Get(w.URL(h, i%w.Pages(h)))
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				b.Fatal(err)
			}
			resp.Body.Close()
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pages/s")
}

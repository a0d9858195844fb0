//go:build lab

package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"
)

// namespace is a network of its own, with nothing but a loopback interface. A thread that nothing else uses
// belongs to it, and so do the sockets that the thread opens and the processes that it starts.
type namespace struct {
	todo chan func()
	fd   int // of the namespace, for further threads
}

// newNamespace makes a namespace whose loopback interface is up.
func newNamespace(t *testing.T) *namespace {
	t.Helper()
	n := &namespace{todo: make(chan func())}
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends with the goroutine
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			n.fd, err = unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		}
		made <- err
		for f := range n.todo {
			f()
		}
	}()
	if err := <-made; err != nil {
		close(n.todo)
		t.Skipf("no network namespace can be made here, which takes root: %v", err)
	}
	t.Cleanup(func() {
		close(n.todo)
		unix.Close(n.fd)
	})
	n.ip(t, "link set lo up")
	return n
}

// do calls f on the thread of the namespace.
func (n *namespace) do(f func()) {
	done := make(chan struct{})
	n.todo <- func() {
		defer close(done)
		f()
	}
	<-done
}

// enter moves the calling goroutine to a new thread of the namespace. The thread ends with the goroutine.
func (n *namespace) enter() error {
	runtime.LockOSThread()
	return unix.Setns(n.fd, unix.CLONE_NEWNET)
}

// ip runs commands of ip(8).
func (n *namespace) ip(t *testing.T, commands ...string) {
	t.Helper()
	for _, c := range commands {
		var out []byte
		var err error
		n.do(func() { out, err = exec.Command("ip", strings.Fields(c)...).CombinedOutput() })
		if err != nil {
			t.Errorf("ip %s: %v %s", c, err, out)
		}
	}
}

// ports sets the ports that the system chooses for connections.
func (n *namespace) ports(t *testing.T, first, last int) {
	t.Helper()
	var err error
	n.do(func() {
		err = os.WriteFile("/proc/sys/net/ipv4/ip_local_port_range", fmt.Appendf(nil, "%d %d", first, last), 0)
	})
	if err != nil {
		t.Error(err)
	}
}

func (n *namespace) listen(address string) (ln net.Listener, err error) {
	n.do(func() { ln, err = net.Listen("tcp", address) })
	return ln, err
}

// The kinds of hosts. All but living hosts are dead for good.
const (
	living   = "living"
	closed   = "closed"   // nothing listens
	silent   = "silent"   // packets vanish
	hanging  = "hanging"  // connections are accepted, and nothing is answered
	noName   = "no name"  // NXDOMAIN
	servFail = "servfail" // the name server cannot find the answer
)

var deadKinds = []string{closed, silent, hanging, noName, servFail}

// The addresses of the name server and of the proxy.
const (
	networkNames = "127.0.0.53:53"
	networkProxy = "127.0.0.2:3128"
)

// networkHost is a host of a networkWeb. Further names, such as go1.NAME, have the same address.
type networkHost struct {
	name, kind, addr string
	ln               net.Listener
	conns            map[net.Conn]struct{}
}

// networkWeb is a web in a namespace, with its name server and its proxy. Each host has an address.
type networkWeb struct {
	t     *testing.T
	ns    *namespace
	hosts []*networkHost
	named map[string]*networkHost

	server  *http.Server
	first   chan struct{} // closed at the first request
	began   sync.Once
	names   atomic.Value // mode of the name server: "", silent, servfail, refused, truncated, other-id
	through atomic.Value // mode of the proxy: "", closing, 407, 502, silent
	flaky   atomic.Bool  // fresh connections are closed with probability 0.5

	mu       sync.Mutex
	random   *rand.Rand
	asked    map[string][]time.Time // when requests came, by host
	udp      net.PacketConn
	tcp      net.Listener
	proxy    net.Listener
	proxied  map[net.Conn]struct{}
	services sync.WaitGroup
}

// networkHosts names the hosts of a web: 60 of 45 domains. kind returns the kind of each.
func networkHosts(kind func(i int) string) (all []*networkHost) {
	for i := range 60 {
		h := &networkHost{kind: kind(i), addr: fmt.Sprintf("127.0.%d.%d", 1+i/20, 10+i%20), conns: map[net.Conn]struct{}{}}
		if h.name = fmt.Sprintf("www.d%02d.example", i%45); i >= 45 {
			h.name = fmt.Sprintf("blog.d%02d.example", i%45)
		}
		if h.kind == silent {
			h.addr = fmt.Sprintf("10.9.0.%d", 1+i)
		}
		all = append(all, h)
	}
	return all
}

// newNetworkWeb serves a web in a new namespace.
func newNetworkWeb(t *testing.T, hosts []*networkHost, random *rand.Rand) *networkWeb {
	t.Helper()
	w := &networkWeb{t: t, ns: newNamespace(t), hosts: hosts, named: map[string]*networkHost{}, first: make(chan struct{}),
		random: random, asked: map[string][]time.Time{}, proxied: map[net.Conn]struct{}{}}
	w.names.Store("")
	w.through.Store("")
	w.server = &http.Server{Handler: http.HandlerFunc(w.answer)}
	w.swallow()
	for _, h := range hosts {
		w.named[h.name] = h
		w.open(h)
	}
	w.openNames()
	w.openProxy()
	t.Cleanup(func() {
		w.closeNames()
		w.closeProxy()
		w.server.Close()
		for _, h := range hosts {
			w.close(h)
		}
		w.services.Wait()
	})
	return w
}

// swallow makes packets to silent hosts vanish: they come back through the loopback interface, which has no
// such address.
func (w *networkWeb) swallow() { w.ns.ip(w.t, "route replace 10.9.0.0/16 dev lo") }

// hostOf returns the host of a name.
func (w *networkWeb) hostOf(name string) *networkHost {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if strings.HasPrefix(name, "go") {
		_, name, _ = strings.Cut(name, ".")
	}
	return w.named[name]
}

// open lets a host accept connections.
func (w *networkWeb) open(h *networkHost) {
	if h.kind != living && h.kind != hanging {
		return
	}
	ln, err := w.ns.listen(h.addr + ":80")
	if err != nil {
		w.t.Error(err)
		return
	}
	w.mu.Lock()
	h.ln = ln
	w.mu.Unlock()
	w.services.Go(func() { _ = w.server.Serve(&networkListener{ln, w, h}) })
}

// close closes the port and the connections of a host.
func (w *networkWeb) close(h *networkHost) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if h.ln != nil {
		h.ln.Close()
		h.ln = nil
	}
	for c := range h.conns {
		if t, ok := c.(*net.TCPConn); ok && w.random.IntN(2) == 0 {
			_ = t.SetLinger(0)
		}
		c.Close()
	}
	clear(h.conns)
}

// networkListener keeps the connections of a host, and closes fresh ones while the web is flaky.
type networkListener struct {
	net.Listener
	w *networkWeb
	h *networkHost
}

func (l *networkListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		l.w.mu.Lock()
		drop := l.w.flaky.Load() && l.w.random.IntN(2) == 0 || l.h.ln != l.Listener
		if !drop {
			l.h.conns[c] = struct{}{}
		}
		l.w.mu.Unlock()
		if !drop {
			return c, nil
		}
		c.Close()
	}
}

// networkPaths are the paths of each host that are planned.
func networkPaths() (all []string) {
	for n := range 12 {
		all = append(all, fmt.Sprintf("/page%d", n))
	}
	return append(all, "/a-slow", "/i-slow", "/page4-slow", "/gone", "/private/1", "/moved1", "/moved2", "/moved3")
}

// answer serves a request. Slow pages come in pieces.
func (w *networkWeb) answer(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.asked[r.Host] = append(w.asked[r.Host], time.Now())
	w.mu.Unlock()
	w.began.Do(func() { close(w.first) })
	h := w.hostOf(r.Host)
	switch {
	case h == nil:
		http.Error(out, r.Host, http.StatusMisdirectedRequest)
	case h.kind == hanging:
		<-r.Context().Done()
	case r.URL.Path == "/robots.txt":
		io.WriteString(out, "User-agent: *\nDisallow: /private/\n")
	case r.URL.Path == "/gone":
		http.NotFound(out, r)
	case strings.HasPrefix(r.URL.Path, "/moved"):
		http.Redirect(out, r, "http://go"+strings.TrimPrefix(r.URL.Path, "/moved")+"."+h.name+"/here", http.StatusFound)
	default:
		out.Header().Set("Content-Type", "text/html")
		pieces := 1
		if strings.HasSuffix(r.URL.Path, "slow") {
			pieces = 5
		}
		fmt.Fprintf(out, "<!doctype html><title>%s%s</title>", r.Host, r.URL.Path)
		for n := range pieces {
			if n > 0 {
				_ = http.NewResponseController(out).Flush()
				time.Sleep(150 * time.Millisecond)
			}
			fmt.Fprintf(out, "<p>This is part %d of the page %s of the host %s.", n, r.URL.Path, r.Host)
		}
	}
}

// openNames starts the name server.
func (w *networkWeb) openNames() {
	w.mu.Lock()
	defer w.mu.Unlock()
	var err error
	w.ns.do(func() { w.udp, err = net.ListenPacket("udp", networkNames) })
	if err != nil {
		w.t.Error(err)
		return
	}
	if w.tcp, err = w.ns.listen(networkNames); err != nil {
		w.t.Error(err)
		return
	}
	udp, tcp := w.udp, w.tcp
	w.services.Go(func() {
		buf := make([]byte, 4<<10)
		for {
			n, from, err := udp.ReadFrom(buf)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if msg := w.nameAnswer(buf[:n]); msg != nil {
				_, _ = udp.WriteTo(msg, from)
			}
		}
	})
	w.services.Go(func() { // a name server without TCP
		for {
			c, err := tcp.Accept()
			if err != nil {
				return
			}
			if t, ok := c.(*net.TCPConn); ok {
				_ = t.SetLinger(0)
			}
			c.Close()
		}
	})
}

// closeNames ends the name server.
func (w *networkWeb) closeNames() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.udp.Close()
	w.tcp.Close()
}

func (w *networkWeb) nameAnswer(query []byte) []byte {
	var p dnsmessage.Parser
	h, err := p.Start(query)
	if err != nil {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	head := dnsmessage.Header{ID: h.ID, Response: true, RecursionAvailable: true}
	host := w.hostOf(q.Name.String())
	mode := w.names.Load()
	switch {
	case host == nil || host.kind == noName:
		head.RCode = dnsmessage.RCodeNameError
	case host.kind == servFail:
		head.RCode = dnsmessage.RCodeServerFailure
	}
	switch mode {
	case "silent":
		return nil
	case "servfail":
		head.RCode = dnsmessage.RCodeServerFailure
	case "refused":
		head.RCode = dnsmessage.RCodeRefused
	case "truncated":
		head.Truncated, head.RCode = true, dnsmessage.RCodeSuccess
	case "other-id":
		head.ID++
	}
	b := dnsmessage.NewBuilder(nil, head)
	_ = b.StartQuestions()
	_ = b.Question(q)
	_ = b.StartAnswers()
	if head.RCode == dnsmessage.RCodeSuccess && !head.Truncated && q.Type == dnsmessage.TypeA {
		_ = b.AResource(dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 30}, dnsmessage.AResource{A: [4]byte(net.ParseIP(host.addr).To4())})
	}
	msg, err := b.Finish()
	if err != nil {
		return nil
	}
	return msg
}

// openProxy starts the proxy.
func (w *networkWeb) openProxy() {
	ln, err := w.ns.listen(networkProxy)
	if err != nil {
		w.t.Error(err)
		return
	}
	w.mu.Lock()
	w.proxy = ln
	w.mu.Unlock()
	w.services.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			w.services.Go(func() { w.tunnel(c) })
		}
	})
}

// closeProxy closes the proxy with its connections.
func (w *networkWeb) closeProxy() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.proxy.Close()
	for c := range w.proxied {
		c.Close()
	}
}

// keep notes a connection that ends with the proxy, until the returned function is called.
func (w *networkWeb) keep(c net.Conn) func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.proxied[c] = struct{}{}
	return func() {
		c.Close()
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.proxied, c)
	}
}

// tunnel serves a connection to the proxy.
func (w *networkWeb) tunnel(c net.Conn) {
	defer w.keep(c)()
	mode := w.through.Load()
	if mode == "closing" {
		return
	}
	in := bufio.NewReader(c)
	r, err := http.ReadRequest(in)
	if err != nil || r.Method != http.MethodConnect {
		return
	}
	say := func(status int) { fmt.Fprintf(c, "HTTP/1.1 %d %s\r\n\r\n", status, http.StatusText(status)) }
	if mode == "silent" {
		_, _ = io.Copy(io.Discard, in)
		return
	}
	name, port, _ := net.SplitHostPort(r.Host)
	host := w.hostOf(name)
	if mode == "407" {
		say(http.StatusProxyAuthRequired)
		return
	}
	if mode == "502" || host == nil || host.kind == noName || host.kind == servFail {
		say(http.StatusBadGateway)
		return
	}
	if err := w.ns.enter(); err != nil {
		w.t.Error(err)
		return
	}
	there, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(context.Background(), "tcp4", net.JoinHostPort(host.addr, port))
	if err != nil {
		say(http.StatusBadGateway)
		return
	}
	defer w.keep(there)()
	say(http.StatusOK)
	w.services.Go(func() {
		_, _ = io.Copy(there, in)
		there.Close()
	})
	_, _ = io.Copy(c, there)
}

// stalls are the times in which this process, with all its servers, did not run.
var stalls struct {
	sync.Mutex
	all [][2]time.Time
}

// watchStalls notes stalls until the test ends.
func watchStalls(t *testing.T) {
	const every, most = 20 * time.Millisecond, 100 * time.Millisecond
	ticks := time.NewTicker(every)
	t.Cleanup(ticks.Stop)
	go func() {
		for last := time.Now(); ; {
			select {
			case <-ticks.C:
			case <-t.Context().Done():
				return
			}
			now := time.Now()
			if now.Sub(last) > most {
				stalls.Lock()
				stalls.all = append(stalls.all, [2]time.Time{last, now})
				stalls.Unlock()
			}
			last = now
		}
	}()
}

// stalled reports whether this process did not run for a while between two times.
func stalled(from, to time.Time) bool {
	stalls.Lock()
	defer stalls.Unlock()
	return slices.ContainsFunc(stalls.all, func(s [2]time.Time) bool { return s[0].Before(to) && s[1].After(from) })
}

// checkPace reports requests that came too soon. late reports whether the network may have delivered at a
// time what was sent earlier.
func (w *networkWeb) checkPace(late func(time.Time) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for host, times := range w.asked {
		n += len(times)
		slices.SortFunc(times, time.Time.Compare)
		for i := 1; i < len(times); i++ {
			if gap := times[i].Sub(times[i-1]); gap < networkDelay-networkSlack && !late(times[i]) && !stalled(times[i-1].Add(-networkDelay), times[i]) {
				w.t.Errorf("%s was asked at %s, %v after the request before", host, times[i].Format("15:04:05.000"), gap)
			}
		}
	}
	w.t.Logf("%d requests", n)
}

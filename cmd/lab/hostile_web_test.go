//go:build lab

package lab

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
)

// hostileWeb is a web on loopback that also misbehaves below HTTP. The web has an HTTP server that
// writes raw answers, a TLS server and a name server. Each fault has its own domain, NAME.test.
type hostileWeb struct {
	http, tls, dns string // addresses of the servers
	refused        string // address of a port without a listener
	roots          string // file with the trusted certificate authority

	certificates map[string]*tls.Certificate // certificates, by kind of handshake
	faults       map[string]*hostileFault
	conns        sync.WaitGroup
	begun        time.Time

	mu    sync.Mutex
	asked map[string]int // number of requests, by host and path
	open  map[net.Conn]struct{}
	ended bool
}

func newHostileWeb(t *testing.T, faults []hostileFault) *hostileWeb {
	w := &hostileWeb{faults: map[string]*hostileFault{}, asked: map[string]int{}, open: map[net.Conn]struct{}{}, begun: time.Now()}
	for i := range faults {
		w.faults[faults[i].name] = &faults[i]
	}
	w.certify(t)
	plain, secure := crawltest.Listen(t), crawltest.Listen(t)
	closed := crawltest.Listen(t)
	w.http, w.tls, w.refused = plain.Addr().String(), secure.Addr().String(), closed.Addr().String()
	closed.Close()
	names, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.dns = names.LocalAddr().String()
	var loops sync.WaitGroup
	loops.Go(func() { w.accept(plain, w.serve) })
	loops.Go(func() { w.accept(secure, w.handshake) })
	loops.Go(func() { w.answerNames(names) })
	t.Cleanup(func() {
		plain.Close()
		secure.Close()
		names.Close()
		loops.Wait()
		w.mu.Lock()
		w.ended = true
		for c := range w.open {
			c.Close()
		}
		w.mu.Unlock()
		w.conns.Wait()
	})
	return w
}

func (w *hostileWeb) accept(ln net.Listener, serve func(net.Conn)) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		w.mu.Lock()
		w.open[c] = struct{}{}
		ended := w.ended
		w.mu.Unlock()
		if ended {
			c.Close()
			return
		}
		w.conns.Go(func() {
			defer func() {
				c.Close()
				w.mu.Lock()
				delete(w.open, c)
				w.mu.Unlock()
			}()
			serve(c)
		})
	}
}

// faultName returns the name of the fault to which a host belongs: the label before .test in the host's name.
func (w *hostileWeb) faultName(host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	host, _, _ = strings.Cut(host, ":")
	host = strings.TrimSuffix(host, ".test")
	return host[strings.LastIndexByte(host, '.')+1:]
}

// serve answers one request on a connection.
func (w *hostileWeb) serve(c net.Conn) {
	r, err := http.ReadRequest(bufio.NewReaderSize(c, 128<<10))
	if err != nil {
		return
	}
	f := w.faults[w.faultName(r.Host)]
	w.mu.Lock()
	w.asked[r.Host+r.URL.Path]++
	nth := w.asked[r.Host+r.URL.Path]
	w.mu.Unlock()
	x := exchange{Conn: c, r: r, nth: nth}
	switch {
	case f == nil:
		x.status(http.StatusMisdirectedRequest)
	case r.URL.Path == "/robots.txt" && f.robots != nil:
		f.robots(x)
	case r.URL.Path == "/robots.txt":
		x.status(http.StatusNotFound)
	case f.serve != nil:
		f.serve(x)
	default:
		x.page("<p>A page without any fault.")
	}
}

// exchange is a request and the connection for its answer.
type exchange struct {
	net.Conn
	r   *http.Request
	nth int // number of this request among the requests for the same host and path, from 1
}

func (x exchange) send(text string) bool {
	_, err := io.WriteString(x.Conn, text)
	return err == nil
}

// sendEndless sends the text first, and then piece again and again, with a pause after each, until the client
// goes away.
func (x exchange) sendEndless(first, piece string, pause time.Duration) {
	for x.send(first) {
		first = piece
		time.Sleep(pause)
	}
}

// sendNothing sends nothing and waits until the client goes away.
func (x exchange) sendNothing() { _, _ = io.Copy(io.Discard, x.Conn) }

// reset ends the connection with an RST.
func (x exchange) reset() {
	if t, ok := x.Conn.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	x.Close()
}

func (x exchange) status(code int) {
	x.send(fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", code, http.StatusText(code)))
}

// answer sends a 200 with header lines and a body.
func (x exchange) answer(body string, lines ...string) { x.reply("200 OK", body, lines...) }

func (x exchange) reply(status, body string, lines ...string) {
	head := "HTTP/1.1 " + status + "\r\nConnection: close\r\n"
	length, kind := true, true
	for _, l := range lines {
		head += l + "\r\n"
		l = strings.ToLower(l)
		length = length && !strings.HasPrefix(l, "content-length:") && !strings.HasPrefix(l, "transfer-encoding:")
		kind = kind && !strings.HasPrefix(l, "content-type:")
	}
	if kind {
		head += "Content-Type: text/html\r\n"
	}
	if length {
		head += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	x.send(head + "\r\n" + body)
}

func (x exchange) page(body string) {
	x.answer("<!doctype html><title>" + x.r.Host + "</title>" + body)
}

// handshake begins TLS in the way that the fault prescribes.
func (w *hostileWeb) handshake(c net.Conn) {
	errPlayed := errors.New("the fault was played")
	tc := tls.Server(c, &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		f := w.faults[w.faultName(hello.ServerName)]
		mode := ""
		if f != nil {
			mode = f.tls
		}
		x := exchange{Conn: c}
		switch mode {
		case "hang":
			x.sendNothing()
		case "close":
			c.Close()
		case "reset":
			x.reset()
		case "half":
			x.send("\x16\x03\x03\x40\x00\x02") // the head of a TLS record whose body never comes
			c.Close()
		case "plain":
			x.send("HTTP/1.1 400 Bad Request\r\n\r\nThis is the port of TLS.\n")
		case "alert":
			x.send("\x15\x03\x03\x00\x02\x02\x28")
		case "garbage":
			x.send(strings.Repeat("\xde\xad\xbe\xef", 1000))
		case "old":
			return &tls.Config{Certificates: []tls.Certificate{*w.certificates["good"]}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, nil
		default:
			if cert := w.certificates[mode]; cert != nil {
				return &tls.Config{Certificates: []tls.Certificate{*cert}}, nil
			}
			return &tls.Config{Certificates: []tls.Certificate{*w.certificates["good"]}}, nil
		}
		return nil, errPlayed
	}})
	if tc.Handshake() == nil {
		w.serve(tc)
		_ = tc.Close()
	}
}

// certify makes the certificates. Each certificate covers all names with two labels below .test.
func (w *hostileWeb) certify(t *testing.T) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	const day = 24 * time.Hour
	now := time.Now()
	make := func(c, parent *x509.Certificate) []byte {
		c.NotAfter = c.NotBefore.Add(10 * day)
		if c.IsCA {
			c.NotAfter = now.Add(100 * day)
		}
		der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "hostile authority"}, NotBefore: now.Add(-365 * day),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	root := make(authority, authority)
	w.roots = filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(w.roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root}), 0o644); err != nil {
		t.Fatal(err)
	}
	var all []string
	for name := range w.faults {
		all = append(all, name+".test")
	}
	w.certificates = map[string]*tls.Certificate{}
	for serial, c := range []struct {
		mode  string
		from  time.Duration
		names []string
		self  bool
	}{
		{"good", -day, all, false}, {"expired", -20 * day, all, false}, {"early", 2 * day, all, false},
		{"other", -day, []string{"elsewhere.example"}, false}, {"self", -day, all, true},
	} {
		leaf := &x509.Certificate{SerialNumber: big.NewInt(int64(serial + 2)), Subject: pkix.Name{CommonName: c.mode}, NotBefore: now.Add(c.from),
			DNSNames: c.names, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
		parent := authority
		if c.self {
			parent = leaf
		}
		w.certificates[c.mode] = &tls.Certificate{Certificate: [][]byte{make(leaf, parent)}, PrivateKey: key}
	}
}

// lookupOutage is the time after which the name server answers lookups of names that fail at first.
const lookupOutage = 3 * time.Second

// answerNames is a name server. The server answers every name with 127.0.0.1, unless a fault has
// another answer.
func (w *hostileWeb) answerNames(pc net.PacketConn) {
	buf := make([]byte, 4<<10)
	for {
		n, from, err := pc.ReadFrom(buf)
		if err != nil {
			return
		}
		if msg := w.nameAnswer(buf[:n]); msg != nil {
			_, _ = pc.WriteTo(msg, from)
		}
	}
}

func (w *hostileWeb) nameAnswer(query []byte) []byte {
	var p dnsmessage.Parser
	h, err := p.Start(query)
	if err != nil {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	mode := ""
	if f := w.faults[w.faultName(q.Name.String())]; f != nil {
		mode = f.dns
	}
	head := dnsmessage.Header{ID: h.ID, Response: true, RecursionAvailable: true}
	switch mode {
	case "silent":
		return nil
	case "garbage":
		return append(query[:2:2], strings.Repeat("\xff\xc0\x0c", 40)...)
	case "other-id":
		head.ID++
	case "nxdomain":
		head.RCode = dnsmessage.RCodeNameError
	case "servfail":
		head.RCode = dnsmessage.RCodeServerFailure
	case "refused":
		head.RCode = dnsmessage.RCodeRefused
	case "flap":
		if time.Since(w.begun) < lookupOutage {
			head.RCode = dnsmessage.RCodeServerFailure
		}
	case "cut":
		head.Truncated = true
	}
	b := dnsmessage.NewBuilder(nil, head)
	_ = b.StartQuestions()
	_ = b.Question(q)
	_ = b.StartAnswers()
	of := func(name dnsmessage.Name) dnsmessage.ResourceHeader {
		return dnsmessage.ResourceHeader{Name: name, Class: q.Class, TTL: 60}
	}
	a := func(name dnsmessage.Name, ips ...string) {
		for _, ip := range ips {
			v := net.ParseIP(ip)
			if v4 := v.To4(); v4 != nil && !strings.Contains(ip, ":") && q.Type == dnsmessage.TypeA {
				_ = b.AResource(of(name), dnsmessage.AResource{A: [4]byte(v4)})
			} else if strings.Contains(ip, ":") && q.Type == dnsmessage.TypeAAAA {
				_ = b.AAAAResource(of(name), dnsmessage.AAAAResource{AAAA: [16]byte(v.To16())})
			}
		}
	}
	cname := func(from, to string) {
		_ = b.CNAMEResource(of(dnsmessage.MustNewName(from)), dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName(to)})
	}
	switch name := q.Name.String(); {
	case head.RCode != dnsmessage.RCodeSuccess || mode == "nodata" || mode == "cut":
	case mode == "cname-loop":
		cname(name, "a."+name)
		cname("a."+name, name)
	case mode == "cname-chain":
		cname(name, "a."+name)
		cname("a."+name, "b."+name)
		a(dnsmessage.MustNewName("b."+name), "127.0.0.1")
	case mode == "dead-first":
		a(q.Name, "127.0.0.9", "127.0.0.1")
	case mode == "many":
		var ips []string
		for n := range 40 {
			ips = append(ips, fmt.Sprintf("127.0.1.%d", n+1))
		}
		a(q.Name, ips...)
	case strings.HasPrefix(mode, "is "):
		a(q.Name, strings.Fields(mode)[1:]...)
	default:
		a(q.Name, "127.0.0.1")
	}
	msg, err := b.Finish()
	if err != nil {
		return nil
	}
	return msg
}

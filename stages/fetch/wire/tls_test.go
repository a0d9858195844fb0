package wire

import (
	"bufio"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/formats/http1/wiretest"
)

// certificate makes a self-signed certificate for a name. Its validity begins and ends at times
// relative to now.
func certificate(t *testing.T, name string, from, to time.Duration) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return selfSigned(t, key, x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotBefore: time.Now().Add(from), NotAfter: time.Now().Add(to),
	})
}

// selfSigned makes a certificate from a template, and a pool that trusts it.
func selfSigned(t *testing.T, key crypto.Signer, tmpl x509.Certificate) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	tmpl.SerialNumber, tmpl.IsCA, tmpl.BasicConstraintsValid = big.NewInt(1), true, true
	tmpl.KeyUsage |= x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, &tmpl, &tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, pool
}

// tlsServer starts a TLS server that answers every request with raw.
func tlsServer(t *testing.T, cfg *tls.Config, raw string, conns *atomic.Int32) netip.AddrPort {
	return rawServer(t, func(c net.Conn, _ *bufio.Reader, _ int) {
		tc := tls.Server(c, cfg)
		if tc.Handshake() != nil {
			return
		}
		if conns != nil {
			conns.Add(1)
		}
		for r := bufio.NewReader(tc); readRequest(r) != ""; {
			io.WriteString(tc, raw)
		}
	})
}

func TestCertificateProblemsAreTLSErrors(t *testing.T) {
	const day = 24 * time.Hour
	tests := []struct {
		name, host string
		from, to   time.Duration
		trusted    bool
		reason     string // text in the expected error; "" for no error
		phrase     string
	}{
		{"good", "host.test", -day, day, true, "", ""},
		{"good with a final dot", "host.test.", -day, day, true, "", ""},
		{"self-signed", "host.test", -day, day, false, "unknown authority", "certificate signed by unknown authority"},
		{"expired", "host.test", -2 * day, -day, true, "expired", "certificate has expired"},
		{"not yet valid", "host.test", day, 2 * day, true, "not yet valid", "certificate is not yet valid"},
		{"for another host", "other.test", -day, day, true, "not other.test", "certificate is for another name"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cert, pool := certificate(t, "host.test", tt.from, tt.to)
			addr := tlsServer(t, &tls.Config{Certificates: []tls.Certificate{cert}}, okHead+wiretest.Page, nil)
			c := clientTo(t, addr, func(c *Config) {
				c.TLS = &tls.Config{RootCAs: pool}
				if !tt.trusted {
					c.TLS.RootCAs = x509.NewCertPool()
				}
			})
			x, err := get(t, c, "https://"+tt.host+"/")
			if tt.reason == "" {
				if err != nil || x.TLSVersion != "TLS 1.3" || x.TLSCipher == "" || x.Timing.TLS <= 0 || string(x.Body) != wiretest.Page {
					t.Errorf("%v over %s %s", err, x.TLSVersion, x.TLSCipher)
				}
				return
			}
			var e *Error
			if !errors.As(err, &e) || e.Kind != ErrTLS || e.Phase != PhaseTLS || !strings.Contains(err.Error(), tt.reason) {
				t.Errorf("error %v, want a TLS error with %q", err, tt.reason)
			}
			if phrase, detail := e.Words(); phrase != tt.phrase || !strings.Contains(detail, tt.host) {
				t.Errorf("in words %q and %q, want %q", phrase, detail, tt.phrase)
			}
			if x.BytesOut != 0 {
				t.Error("the request was sent")
			}
		})
	}
}

// A tolerant client takes the page and says what is wrong. Private fields go to servers with valid certificates only.
func TestCertificateFaultsAreTakenAndNamed(t *testing.T) {
	const day = 24 * time.Hour
	rsaOnly := &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA}}
	for _, tt := range []struct {
		name, host, certified string
		from, to              time.Duration
		trusted, common       bool
		server                *tls.Config
		want                  string
	}{
		{"good", "host.test", "host.test", -day, day, true, false, nil, ""},
		{"self-signed", "host.test", "host.test", -day, day, false, false, nil, "untrusted"},
		{"expired", "host.test", "host.test", -2 * day, -day, true, false, nil, "expired"},
		{"not yet valid", "host.test", "host.test", day, 2 * day, true, false, nil, "not_yet_valid"},
		{"expired and self-signed", "host.test", "host.test", -2 * day, -day, false, false, nil, "expired,untrusted"},
		{"for another host", "other.test", "host.test", -day, day, true, false, nil, "other_name"},
		{"everything", "other.test", "host.test", -2 * day, -day, false, false, nil, "expired,untrusted,other_name"},
		{"for the domain below", "www.host.test", "*.host.test", -day, day, true, false, nil, ""},
		{"for one label only", "a.www.host.test", "*.host.test", -day, day, true, false, nil, "other_name"},
		{"an address", "192.0.2.1", "host.test", -day, day, true, false, nil, "other_name"},
		{"no alternative names", "host.test", "host.test", -day, day, true, true, nil, "untrusted"},
		{"RSA key exchange only", "host.test", "host.test", -day, day, true, false, rsaOnly, ""},
		{"3DES only", "host.test", "host.test", -day, day, true, false, &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_RSA_WITH_3DES_EDE_CBC_SHA}}, ""},
		{"TLS 1.0", "host.test", "host.test", -day, day, true, false, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10}, ""},
		{"TLS 1.1", "host.test", "host.test", -day, day, true, false, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cert, pool := rsaCertificate(t, tt.certified, !tt.common, tt.from, tt.to)
			cfg := tt.server
			if cfg == nil {
				cfg = &tls.Config{}
			}
			cfg = cfg.Clone()
			cfg.Certificates = []tls.Certificate{cert}
			addr := tlsServer(t, cfg, okHead+wiretest.Page, nil)
			c := clientTo(t, addr, func(c *Config) {
				c.Tolerant, c.TLS = true, &tls.Config{RootCAs: x509.NewCertPool()}
				if tt.trusted {
					c.TLS.RootCAs = pool
				}
			})
			for range 2 { // the second time on the same connection
				x, err := c.Do(t.Context(), &Request{URL: "https://" + tt.host + "/", Private: http1.Header{{Name: "Cookie", Value: "secret"}}})
				if err != nil || x.Certificate != tt.want || string(x.Body) != wiretest.Page {
					t.Fatalf("%v, certificate %q, want %q", err, x.Certificate, tt.want)
				}
				if sent := strings.Contains(string(x.RawRequest), "secret"); sent != (tt.want == "") {
					t.Errorf("the private field was sent: %t", sent)
				}
				x.Release()
			}
		})
	}
}

// rsaCertificate is like certificate, with a key that all versions of TLS know. Without alternative names, only the
// common name names the host.
func rsaCertificate(t *testing.T, name string, alternative bool, from, to time.Duration) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(from), NotAfter: time.Now().Add(to), KeyUsage: x509.KeyUsageKeyEncipherment,
	}
	if alternative {
		tmpl.DNSNames = []string{name}
	}
	return selfSigned(t, key, tmpl)
}

// readHello reads a ClientHello from the connection. If it stayed unread, closing the connection
// would send an RST.
func readHello(r *bufio.Reader) {
	var header [5]byte
	if _, err := io.ReadFull(r, header[:]); err == nil {
		_, _ = r.Discard(int(header[3])<<8 | int(header[4]))
	}
}

func TestBrokenHandshakesAreTLSErrors(t *testing.T) {
	for phrase, handle := range map[string]func(net.Conn, *bufio.Reader, int){
		"connection closed in the TLS handshake": func(c net.Conn, r *bufio.Reader, _ int) { readHello(r) },
		"connection reset in the TLS handshake":  func(c net.Conn, r *bufio.Reader, _ int) { r.ReadByte(); reset(c) },
		"TLS alert: handshake failure":           func(c net.Conn, _ *bufio.Reader, _ int) { io.WriteString(c, "\x15\x03\x01\x00\x02\x02\x28") },
	} {
		t.Run(phrase, func(t *testing.T) {
			_, err := get(t, clientTo(t, rawServer(t, handle), nil), "https://host.test/")
			var e *Error
			if !errors.As(err, &e) || e.Kind != ErrTLS {
				t.Fatalf("error %v", err)
			}
			if got, detail := e.Words(); got != phrase {
				t.Errorf("in words %q and %q, want %q", got, detail, phrase)
			}
		})
	}
}

func TestTLSConnectionsAndSessionsAreReused(t *testing.T) {
	cert, pool := certificate(t, "host.test", -time.Hour, time.Hour)
	for _, tt := range []struct {
		raw   string
		conns int32
	}{
		{okHead + wiretest.Page, 1},
		{"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 37\r\n\r\n" + wiretest.Page, 3},
	} {
		var conns, resumed atomic.Int32
		cfg := &tls.Config{Certificates: []tls.Certificate{cert}, VerifyConnection: func(s tls.ConnectionState) error {
			if s.DidResume {
				resumed.Add(1)
			}
			return nil
		}}
		c := clientTo(t, tlsServer(t, cfg, tt.raw, &conns), func(c *Config) { c.TLS = &tls.Config{RootCAs: pool} })
		for i := range 3 {
			x, err := get(t, c, "https://host.test/")
			if err != nil {
				t.Fatal(err)
			}
			if kept := tt.conns == 1; x.Reused != (kept && i > 0) || x.TLSVersion != "TLS 1.3" {
				t.Errorf("exchange %d: reused %v over %q", i, x.Reused, x.TLSVersion)
			}
		}
		if conns.Load() != tt.conns || resumed.Load() != tt.conns-1 {
			t.Errorf("%d connections, %d sessions resumed; want %d, %d", conns.Load(), resumed.Load(), tt.conns, tt.conns-1)
		}
	}
}

// heldBack is a connection that sends written bytes when flush is called.
type heldBack struct {
	net.Conn
	held []byte
	hold bool
}

func (h *heldBack) Write(b []byte) (int, error) {
	if !h.hold {
		return h.Conn.Write(b)
	}
	h.held = append(h.held, b...)
	return len(b), nil
}

// Bytes that arrive before a request must not be taken for its response, even if TLS reads them
// together with the previous response.
func TestUnaskedBytesOnAnIdleConnectionCloseIt(t *testing.T) {
	cert, pool := certificate(t, "host.test", -time.Hour, time.Hour)
	const smuggled = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
	for name, late := range map[string]bool{"with the answer": false, "after it": true} {
		for scheme, secure := range map[string]bool{"http": false, "https": true} {
			t.Run(scheme+" "+name, func(t *testing.T) {
				said := make(chan struct{}, 9)
				addr := rawServer(t, func(c net.Conn, r *bufio.Reader, nth int) {
					h := &heldBack{Conn: c}
					var out io.Writer = h
					if secure {
						tc := tls.Server(h, &tls.Config{Certificates: []tls.Certificate{cert}})
						out, r = tc, bufio.NewReader(tc)
					}
					readRequest(r)
					h.hold = true
					io.WriteString(out, okHead+wiretest.Page)
					if nth == 0 && !late {
						io.WriteString(out, smuggled)
					}
					c.Write(h.held)
					h.hold = false
					if nth == 0 && late {
						io.WriteString(out, smuggled)
					}
					said <- struct{}{}
					readRequest(r)
				})
				c := clientTo(t, addr, func(c *Config) { c.TLS = &tls.Config{RootCAs: pool} })
				if x, err := get(t, c, scheme+"://host.test/"); err != nil || string(x.Body) != wiretest.Page {
					t.Fatal(err)
				}
				<-said
				// Over loopback, bytes arrive a moment after they were written.
				to, err := http1.ParseTarget(scheme + "://host.test/")
				if err != nil {
					t.Fatal(err)
				}
				deadline := time.Now().Add(5 * time.Second)
				for k := c.idle.Take(to.Origin()); k != nil; k = c.idle.Take(to.Origin()) {
					c.idle.Put(k, time.Minute)
					if time.Now().After(deadline) {
						t.Fatal("the connection is still kept")
					}
				}
				x, err := get(t, c, scheme+"://host.test/")
				if err != nil || string(x.Body) != wiretest.Page || x.Reused {
					t.Errorf("%v: body %q, reused %t", err, x.Body, x.Reused)
				}
			})
		}
	}
}

func TestHeadCutOverTLSIsAnError(t *testing.T) {
	cert, pool := certificate(t, "host.test", -time.Hour, time.Hour)
	addr := rawServer(t, func(c net.Conn, _ *bufio.Reader, _ int) {
		tc := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}})
		readRequest(bufio.NewReader(tc))
		io.WriteString(tc, "HTTP/1.1 200 OK\r\nX-Frame-Op")
	})
	_, err := get(t, clientTo(t, addr, func(c *Config) { c.TLS = &tls.Config{RootCAs: pool} }), "https://host.test/")
	if !errors.Is(err, ErrDisconnect) {
		t.Errorf("error %v", err)
	}
}

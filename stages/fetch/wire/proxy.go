package wire

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
)

// proxy is the peer that all requests go through.
type proxy struct {
	host          string
	port          uint16
	authorization string // the value of Proxy-Authorization, or ""; never stored or printed
}

// parseProxy reads "http://[user:password@]host:port".
func parseProxy(s string) (*proxy, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" || u.Host == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" {
		// Not quoted in full: it may hold a password.
		return nil, errors.New("want http://[user:password@]host:port (http is the only scheme to reach a proxy by)")
	}
	p := &proxy{port: 80}
	host := u.Hostname()
	if a := u.Host; a[0] == '[' {
		host = "[" + host + "]"
	}
	if p.host, err = normalHost(host); err != nil {
		return nil, fmt.Errorf("host %.80q: %w", host, err)
	}
	if u.Port() != "" {
		n, err := strconv.ParseUint(u.Port(), 10, 16)
		if err != nil || n == 0 {
			return nil, fmt.Errorf("port %.20q is not a number up to 65535", u.Port())
		}
		p.port = uint16(n)
	}
	if u.User != nil {
		password, _ := u.User.Password()
		p.authorization = "Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password))
	}
	return p, nil
}

// maxConnectHead bounds a proxy's answer to CONNECT in bytes.
const maxConnectHead = 64 << 10

// tunnel asks the proxy behind nc for a connection to authority (RFC 9110,
// 9.3.6). It ends with ctx.
func (p *proxy) tunnel(ctx context.Context, nc net.Conn, authority string) error {
	stop := context.AfterFunc(ctx, func() { nc.SetDeadline(past) })
	defer stop()
	b := []byte("CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n")
	if p.authorization != "" {
		b = append(b, "Proxy-Authorization: "+p.authorization+"\r\n"...)
	}
	if _, err := nc.Write(append(b, "\r\n"...)); err != nil {
		return err
	}
	s := newSource(nc)
	defer func() { putBuffer(s.buf) }()
	var x Exchange
	defer x.Release()
	m := message{source: s, x: &x, method: "CONNECT", maxHeader: maxConnectHead}
	if err := m.readHead(); err != nil {
		return fmt.Errorf("answer to CONNECT: %w", err)
	}
	if x.Status < 200 || x.Status > 299 {
		return fmt.Errorf("proxy answered CONNECT with %s", describe(x.Status, x.StatusText))
	}
	if s.buffered() > 0 {
		return errors.New("proxy sent data after its answer to CONNECT")
	}
	return nil
}

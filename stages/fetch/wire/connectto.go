package wire

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// ConnectTo is one rule of --connect-to, as in curl: a request for Host:Port is
// sent to Addr:ToPort instead, its Host field and TLS name unchanged.
type ConnectTo struct {
	Host   string // lower case, IPv6 without brackets; "" matches any host
	Port   uint16 // 0 matches any port
	Addr   string // a name or an address; "" keeps the host
	ToPort uint16 // 0 keeps the port
}

// ParseConnectTo reads "HOST:PORT:ADDR:PORT". A part may be empty; IPv6
// addresses stand in brackets.
func ParseConnectTo(s string) (ConnectTo, error) {
	var r ConnectTo
	parts, err := splitConnectTo(s)
	if err != nil {
		return r, fmt.Errorf("connect-to %q: %w; want HOST:PORT:ADDR:PORT", s, err)
	}
	if r.Host, err = connectHost(parts[0]); err == nil {
		if r.Port, err = connectPort(parts[1]); err == nil {
			if r.Addr, err = connectHost(parts[2]); err == nil {
				r.ToPort, err = connectPort(parts[3])
			}
		}
	}
	if err != nil {
		return ConnectTo{}, fmt.Errorf("connect-to %q: %w; want HOST:PORT:ADDR:PORT", s, err)
	}
	return r, nil
}

// splitConnectTo cuts s at the colons outside of brackets.
func splitConnectTo(s string) (parts [4]string, err error) {
	n, start, depth := 0, 0, 0
	for i := 0; i <= len(s); i++ {
		switch {
		case i == len(s) || s[i] == ':' && depth == 0:
			if n == len(parts) {
				return parts, fmt.Errorf("more than four parts (IPv6 addresses need brackets)")
			}
			parts[n] = s[start:i]
			n++
			start = i + 1
		case s[i] == '[':
			depth++
		case s[i] == ']':
			depth--
		}
	}
	if n != len(parts) {
		return parts, fmt.Errorf("%d parts", n)
	}
	return parts, nil
}

func connectHost(s string) (string, error) {
	inner, bracketed := strings.CutPrefix(s, "[")
	if bracketed {
		inner, bracketed = strings.CutSuffix(inner, "]")
		a, err := netip.ParseAddr(inner)
		if !bracketed || err != nil || !a.Is6() {
			return "", fmt.Errorf("%q is not an IPv6 address in brackets", s)
		}
		return a.String(), nil
	}
	if strings.ContainsAny(s, "[]/@?# \t\r\n\x00") {
		return "", fmt.Errorf("%q is not a host", s)
	}
	return strings.ToLower(s), nil
}

func connectPort(s string) (uint16, error) {
	if s == "" {
		return 0, nil
	}
	p, err := strconv.ParseUint(s, 10, 16)
	if err != nil || p == 0 {
		return 0, fmt.Errorf("%q is not a port", s)
	}
	return uint16(p), nil
}

// Match says where a request for host:port goes by this rule, and whether it
// applies at all. host is lower case, IPv6 without brackets.
func (r ConnectTo) Match(host string, port uint16) (toHost string, toPort uint16, ok bool) {
	if r.Host != "" && r.Host != host || r.Port != 0 && r.Port != port {
		return host, port, false
	}
	if r.Addr != "" {
		host = r.Addr
	}
	if r.ToPort != 0 {
		port = r.ToPort
	}
	return host, port, true
}

// String is the rule as ParseConnectTo reads it.
func (r ConnectTo) String() string {
	host := func(h string) string {
		if strings.Contains(h, ":") {
			return "[" + h + "]"
		}
		return h
	}
	port := func(p uint16) string {
		if p == 0 {
			return ""
		}
		return strconv.Itoa(int(p))
	}
	return host(r.Host) + ":" + port(r.Port) + ":" + host(r.Addr) + ":" + port(r.ToPort)
}

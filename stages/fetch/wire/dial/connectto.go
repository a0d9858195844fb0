package dial

import (
	"cmp"
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

// ParseConnectTo parses "HOST:PORT:ADDR:PORT". Parts may be empty; IPv6 addresses
// are in brackets.
func ParseConnectTo(s string) (ConnectTo, error) {
	parts, err := splitConnectTo(s)
	if err != nil {
		return ConnectTo{}, fmt.Errorf("connect-to %q: %w; want HOST:PORT:ADDR:PORT", s, err)
	}
	host, err1 := connectHost(parts[0])
	port, err2 := connectPort(parts[1])
	addr, err3 := connectHost(parts[2])
	toPort, err4 := connectPort(parts[3])
	if err := cmp.Or(err1, err2, err3, err4); err != nil {
		return ConnectTo{}, fmt.Errorf("connect-to %q: %w; want HOST:PORT:ADDR:PORT", s, err)
	}
	return ConnectTo{host, port, addr, toPort}, nil
}

// splitConnectTo splits s at the colons outside brackets.
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

// Match returns the destination of a request for host:port by this rule, and whether
// the rule applies. host is lower case, IPv6 without brackets.
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

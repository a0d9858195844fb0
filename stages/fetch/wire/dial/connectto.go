package dial

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// ConnectTo is a rule like that of curl's --connect-to: a connection for Host:Port goes to
// Addr:ToPort instead. The request keeps its Host field and TLS name.
type ConnectTo struct {
	Host   string // in lower case, IPv6 without brackets; "" matches any host
	Port   uint16 // 0 matches any port
	Addr   string // name or address to connect to; "" keeps the host
	ToPort uint16 // port to connect to; 0 keeps the port
}

// connectToForm matches the text of a rule. Only IPv6 addresses have brackets.
var connectToForm = regexp.MustCompile(`^(\[[^\]]*\]|[^:\[\]/@?# \t\r\n\x00]*):(\d*):(\[[^\]]*\]|[^:\[\]/@?# \t\r\n\x00]*):(\d*)$`)

// ParseConnectTo parses "HOST:PORT:ADDR:PORT". Each part may be empty. IPv6 addresses have
// brackets.
func ParseConnectTo(s string) (ConnectTo, error) {
	m := connectToForm.FindStringSubmatch(s)
	if m == nil {
		return ConnectTo{}, fmt.Errorf("connect-to %q: want HOST:PORT:ADDR:PORT, with IPv6 addresses in brackets", s)
	}
	host, err1 := connectHost(m[1])
	port, err2 := connectPort(m[2])
	addr, err3 := connectHost(m[3])
	toPort, err4 := connectPort(m[4])
	if err := cmp.Or(err1, err2, err3, err4); err != nil {
		return ConnectTo{}, fmt.Errorf("connect-to %q: %w; want HOST:PORT:ADDR:PORT", s, err)
	}
	return ConnectTo{host, port, addr, toPort}, nil
}

func connectHost(s string) (string, error) {
	inner, bracketed := strings.CutPrefix(s, "[")
	if !bracketed {
		return strings.ToLower(s), nil
	}
	a, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
	if err != nil || !a.Is6() {
		return "", fmt.Errorf("%q is not an IPv6 address in brackets", s)
	}
	return a.String(), nil
}

func connectPort(s string) (uint16, error) {
	p, err := strconv.ParseUint(s, 10, 16)
	if s != "" && (err != nil || p == 0) {
		return 0, fmt.Errorf("%q is not a port", s)
	}
	return uint16(p), nil
}

// Match returns where the rule sends a connection for host:port. ok reports whether the rule applies.
// The host is in lower case, IPv6 without brackets.
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

package http1

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/nlnwa/whatwg-url/url"
)

// maxURL limits a request's URL, in bytes. Servers commonly accept 8 KiB.
const maxURL = 64 << 10

// Target is the destination of a request, taken from its URL.
type Target struct {
	HTTPS bool
	Host  string // in lower case, addresses normalised, IPv6 without brackets
	Port  uint16
	path  string // path and query; not empty, without bytes that would end a request line
}

func (t Target) scheme() string {
	if t.HTTPS {
		return "https"
	}
	return "http"
}

// authority returns host[:port] for the Host field, without a default port.
func (t Target) authority() string {
	if t.Port == 80 && !t.HTTPS || t.Port == 443 && t.HTTPS {
		if strings.Contains(t.Host, ":") {
			return "[" + t.Host + "]"
		}
		return t.Host
	}
	return net.JoinHostPort(t.Host, strconv.Itoa(int(t.Port)))
}

// Origin returns scheme://host:port. It names the target in errors, and is the key of kept
// connections.
func (t Target) Origin() string {
	return t.scheme() + "://" + net.JoinHostPort(t.Host, strconv.Itoa(int(t.Port)))
}

// ParseTarget parses an absolute http or https URL. It is strict about host and port, but not about
// path and query, which only the server interprets.
func ParseTarget(raw string) (t Target, err error) {
	if len(raw) > maxURL {
		return t, fmt.Errorf("the URL has %d bytes, but at most %d may be sent", len(raw), maxURL)
	}
	scheme, rest, ok := strings.Cut(raw, "://")
	switch {
	case ok && strings.EqualFold(scheme, "http"):
		t.Port = 80
	case ok && strings.EqualFold(scheme, "https"):
		t.HTTPS, t.Port = true, 443
	default:
		return t, fmt.Errorf("%.80q is not an absolute http or https URL", raw)
	}
	authority, path := rest, ""
	if i := strings.IndexAny(rest, `/?#\`); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		authority = authority[i+1:] // credentials are not sent
	}
	host, port := authority, ""
	if i := strings.LastIndexByte(authority, ':'); i >= 0 && i > strings.LastIndexByte(authority, ']') {
		host, port = authority[:i], authority[i+1:]
	}
	if port != "" {
		p, perr := strconv.ParseUint(port, 10, 16)
		if perr != nil {
			return t, fmt.Errorf("port %.20q is not a number up to 65535", port)
		}
		t.Port = uint16(p)
	}
	if t.Host, err = normalHost(host); err != nil {
		return t, fmt.Errorf("host %.80q: %w", host, err)
	}
	t.path = requestPath(path)
	return t, nil
}

// normalHost returns the form of a host that look-ups, comparisons and the guard use. A number that
// a resolver might read as an IPv4 address ("0x7f.1", "2130706433") becomes that address. If it is
// not an address, normalHost returns an error (WHATWG URL, 3.5 "host parser").
func normalHost(h string) (string, error) {
	if inner, ok := strings.CutPrefix(h, "["); ok {
		inner, closed := strings.CutSuffix(inner, "]")
		a, err := netip.ParseAddr(inner)
		if !closed || err != nil || !a.Is6() || a.Zone() != "" {
			return "", errors.New("not an IPv6 address")
		}
		return a.String(), nil
	}
	if h == "" {
		return "", errors.New("empty")
	}
	for i := range len(h) {
		if c := h[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`#%/:<>?@[\]^|`, c) >= 0 {
			return "", errors.New("a character that no host name contains (names in other scripts are sent in Punycode)")
		}
	}
	h = strings.ToLower(h)
	name := strings.TrimSuffix(h, ".")
	if len(name) > 253 {
		return "", errors.New("longer than 253 characters")
	}
	if isNumber(name[strings.LastIndexByte(name, '.')+1:]) {
		u, err := url.Parse("http://" + h + "/")
		if err != nil || strings.ContainsAny(h, "+-") { // package url would accept -1 as a number
			return "", errors.New("ends in a number and is not an IPv4 address")
		}
		return u.Hostname(), nil
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 {
			return "", errors.New("label that is empty or longer than 63 characters")
		}
	}
	return h, nil
}

// isNumber reports whether a host with this last label can only be an IPv4 address (WHATWG URL,
// "ends in a number checker").
func isNumber(label string) bool {
	hex, ok := strings.CutPrefix(label, "0x")
	return ok && strings.Trim(hex, "0123456789abcdef") == "" || label != "" && strings.Trim(label, "0123456789") == ""
}

// requestPath turns the path, query and fragment of a URL into a request target. It drops the
// fragment and percent-encodes bytes that a request line cannot have. Other bytes stay as they are.
func requestPath(p string) string {
	if i := strings.IndexByte(p, '#'); i >= 0 {
		p = p[:i]
	}
	if p == "" || p[0] == '?' {
		p = "/" + p
	}
	outside := func(c rune) bool { return c <= ' ' || c >= 0x7f }
	if strings.IndexFunc(p, outside) < 0 {
		return p
	}
	var b strings.Builder
	for i := range len(p) {
		if outside(rune(p[i])) {
			fmt.Fprintf(&b, "%%%02X", p[i])
		} else {
			b.WriteByte(p[i])
		}
	}
	return b.String()
}

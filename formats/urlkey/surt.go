package urlkey

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// surt returns the SURT of a canonical URL. The tools of the Internet Archive and Common Crawl make
// the same SURT. It has the labels of the host in reverse order, without "www.", then the port, path
// and query. Path and query are unescaped and in lower case. The path has no empty segments and no
// trailing slash. The query is sorted and lacks session identifiers.
func (l urlLayout) surt() string {
	var room [256]byte
	b := appendHost(room[:0], l.url[l.host:l.hostEnd])
	if port := l.url[l.hostEnd:l.portEnd]; port != "" {
		b = append(b, port...)
	}
	return string(l.appendPath(append(b, ')')))
}

// appendPath appends the part of the SURT that stands for the path and the query.
func (l urlLayout) appendPath(b []byte) []byte {
	b = append(b, surtPath(l.url[l.portEnd:l.pathEnd])...)
	if l.pathEnd < len(l.url) {
		if q := surtQuery(l.url[l.pathEnd+1:]); q != "" {
			b = append(append(b, '?'), q...)
		}
	}
	return b
}

// appendHost appends the labels of a host in reverse order, separated by commas. It treats the parts
// of an IPv4 address like labels, and removes the brackets of an IPv6 address.
func appendHost(b []byte, host string) []byte {
	if strings.HasPrefix(host, "[") {
		return append(b, host[1:len(host)-1]...)
	}
	if digits, ok := strings.CutPrefix(host, "www"); ok {
		if rest := strings.TrimLeft(digits, "0123456789"); len(rest) > 1 && rest[0] == '.' {
			host = rest[1:]
		}
	}
	for {
		i := strings.LastIndexByte(host, '.')
		b = append(b, host[i+1:]...)
		if i < 0 {
			return b
		}
		b = append(b, ',')
		host = host[:i]
	}
}

// plain reports whether minimal and ToLower would not change s.
func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c == '%' || c <= ' ' || c >= 0x7f || c == '#' || 'A' <= c && c <= 'Z' {
			return false
		}
	}
	return true
}

// minimal unescapes s until it has no escapes, and then escapes "#", "%" and everything that is not
// printable ASCII.
func minimal(s string) string { return escapeOnce(unescapeAll(s)) }

// unescapeAll gives the same result as calls of unescape until no escape is left, but in one pass.
// When the last three octets of the output are an escape, it replaces them by the octet that they
// encode. This octet may complete another escape. Escapes do not overlap, so the order of decoding
// does not matter.
func unescapeAll(s string) []byte {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		out = append(out, s[i])
		for n := len(out) - 3; n >= 0 && out[n] == '%'; n = len(out) - 3 {
			hi, lo := unhex(out[n+1]), unhex(out[n+2])
			if hi == 0xff || lo == 0xff {
				break
			}
			out = append(out[:n], hi<<4|lo)
		}
	}
	return out
}

func escapeOnce(s []byte) string {
	const hex = "0123456789ABCDEF"
	var out strings.Builder
	out.Grow(len(s))
	for _, c := range s {
		if c <= ' ' || c >= 0x7f || c == '#' || c == '%' {
			out.WriteByte('%')
			out.WriteByte(hex[c>>4])
			out.WriteByte(hex[c&15])
		} else {
			out.WriteByte(c)
		}
	}
	return out.String()
}

// The patterns of session identifiers in paths and queries, from class URLRegexTransformer of the
// Internet Archive's implementation. surt applies each pattern once, in this order.
var (
	pathSessions = []*regexp.Regexp{
		regexp.MustCompile(`(?is)^(.*/)(?:\((?:[a-z]\([0-9a-z]{24}\))+\)/)([^?]+\.aspx.*)$`),
		regexp.MustCompile(`(?is)^(.*/)(?:\([0-9a-z]{24}\)/)([^?]+\.aspx.*)$`),
	}
	querySessions = []struct {
		needs   string // text in lower case; the pattern matches only if this text occurs
		pattern *regexp.Regexp
	}{
		{"jsessionid=", regexp.MustCompile(`(?is)^(.*)(?:jsessionid=[0-9a-z]{32})(?:&(.*))?$`)},
		{"phpsessid=", regexp.MustCompile(`(?is)^(.*)(?:phpsessid=[0-9a-z]{32})(?:&(.*))?$`)},
		{"sid=", regexp.MustCompile(`(?is)^(.*)(?:sid=[0-9a-z]{32})(?:&(.*))?$`)},
		{"aspsessionid", regexp.MustCompile(`(?is)^(.*)(?:aspsessionid[a-z]{8}=[a-z]{24})(?:&(.*))?$`)},
		{"cfid=", regexp.MustCompile(`(?is)^(.*)(?:cfid=[^&]+&cftoken=[^&]+)(?:&(.*))?$`)},
	}
)

func surtPath(path string) string {
	if !plain(path) {
		path = escapeOnce(segments(unescapeAll(path)))
		path = strings.ToLower(path)
	} else if strings.Contains(path, "//") || hasDotSegment(path) {
		path = string(segments([]byte(path)))
	}
	if strings.Contains(path, ".aspx") {
		for _, p := range pathSessions {
			if m := p.FindStringSubmatch(path); m != nil {
				path = m[1] + m[2]
			}
		}
	}
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/")
	}
	return path
}

// segments removes "." and empty segments from an unescaped path, and resolves "..". It keeps an
// empty last segment, and a ".." that would lead above the root.
func segments(path []byte) []byte {
	var kept []string
	for _, s := range strings.Split(string(path), "/")[1:] {
		switch {
		case s == ".":
		case s == ".." && len(kept) > 0:
			kept = kept[:len(kept)-1]
		default:
			kept = append(kept, s)
		}
	}
	out := append(make([]byte, 0, len(path)), '/')
	for i, s := range kept {
		out = append(out, s...)
		if s != "" && i < len(kept)-1 {
			out = append(out, '/')
		}
	}
	return out
}

func surtQuery(q string) string {
	if !plain(q) {
		q = strings.ToLower(minimal(q))
	}
	for _, s := range querySessions {
		if !strings.Contains(q, s.needs) {
			continue
		}
		if m := s.pattern.FindStringSubmatch(q); m != nil {
			q = m[1] + m[2]
		}
	}
	if sortedArgs(q) {
		return q
	}
	args := strings.Split(q, "&")
	slices.SortFunc(args, compareArgs)
	return strings.Join(args, "&")
}

func sortedArgs(q string) bool {
	last, rest, more := strings.Cut(q, "&")
	for more {
		var arg string
		arg, rest, more = strings.Cut(rest, "&")
		if compareArgs(last, arg) > 0 {
			return false
		}
		last = arg
	}
	return true
}

// compareArgs orders arguments by name, then by value. Among equal names, an argument without "="
// comes first.
func compareArgs(a, b string) int {
	name, _, _ := strings.Cut(a, "=")
	other, _, _ := strings.Cut(b, "=")
	return cmp.Or(strings.Compare(name, other), strings.Compare(a, b))
}

package wire

import (
	"fmt"
	"strings"
)

// maxFields bounds the header fields that are kept.
const maxFields = 1024

// maxFolded is the length in bytes from which on a value's continuation lines
// are left out; joining them costs the square of it.
const maxFolded = 8 << 10

// parseHead reads a whole head, its lines as received. All strings of the
// exchange are parts of head.
func (m *message) parseHead(head string, kind headKind) error {
	x := m.x
	if kind == statusLine {
		line, rest, complete := strings.Cut(head, "\n")
		if err := m.parseStatusLine(strings.TrimRight(line, "\r"), complete); err != nil {
			return err
		}
		head = rest
	} else {
		x.warn(WarnNoStatusLine)
		x.Protocol, x.Status, m.minor = "HTTP/0.9", 200, 0
	}
	m.parseFields(head)
	if x.Status/100 == 3 {
		x.checkLocation()
	}
	if kind == headerLine {
		// The head of a CGI script that its server passed on as it was.
		if v, ok := x.Header.Lookup("Status"); ok && len(v) >= 3 {
			if code, ok := statusCode(v[:3]); ok {
				x.Status, x.StatusText = code, strings.TrimSpace(v[3:])
			}
		}
	}
	return nil
}

// parseStatusLine is as lenient as browsers: "HTTP/1.1 200: OK", "HTTP/1.1 OK"
// and "http/2 200" are understood.
func (m *message) parseStatusLine(line string, complete bool) error {
	x := m.x
	version, rest := line, ""
	if i := strings.IndexAny(line, " \t"); i >= 0 {
		version, rest = line[:i], line[i:]
	}
	switch strings.ToUpper(version) {
	case "HTTP/1.1":
		x.Protocol = "HTTP/1.1"
	case "HTTP/1.0":
		x.Protocol, m.minor = "HTTP/1.0", 0
	case "ICY":
		x.Protocol, m.minor = "ICY", 0
	default:
		x.warnf(WarnVersion, "%.20q", version)
		x.Protocol = Text(version[:min(len(version), 16)])
	}
	code := strings.TrimLeft(rest, " \t")
	n := 0
	for n < len(code) && '0' <= code[n] && code[n] <= '9' {
		n++
	}
	switch {
	case n == 0 && !complete:
		return errStatusCut
	case n == 0:
		x.warn(WarnStatusMissing)
		x.Status, x.StatusText = 200, strings.TrimSpace(code)
		return nil
	case n < 3 && !complete:
		return errStatusCut
	}
	var ok bool
	if x.Status, ok = statusCode(code[:n]); !ok {
		return protocolError{"status code out of range", fmt.Sprintf("%.20q is not between 100 and 999", code[:n])}
	}
	text := code[n:]
	if len(rest) != len(code)+1 || text != "" && text[0] != ' ' {
		x.warnf(WarnStatusLine, "%.60q", line)
		text = strings.TrimLeft(text, ":;,.- \t")
	}
	x.StatusText = strings.TrimSpace(strings.ReplaceAll(text, "\x00", ""))
	return nil
}

// statusCode reads three digits that are no less than 100.
func statusCode(s string) (int, bool) {
	if len(s) != 3 {
		return 0, false
	}
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = 10*n + int(s[i]-'0')
	}
	return n, n >= 100
}

// parseFields reads header lines up to an empty one or the end. A last line
// without a line feed is left out: it may have been cut.
func (m *message) parseFields(head string) {
	x := m.x
	if n := strings.Count(head, "\n"); n > 0 {
		x.Header = make(Header, 0, min(n, maxFields))
	}
	for {
		line, rest, ok := strings.Cut(head, "\n")
		if !ok {
			return
		}
		head = rest
		line = strings.TrimRight(line, "\r")
		if line == "" {
			return
		}
		line = x.cleanLine(line)
		if line != "" && (line[0] == ' ' || line[0] == '\t') && len(x.Header) > 0 {
			x.warn(WarnHeaderFolded) // RFC 9112, 5.2: replace by spaces
			last := &x.Header[len(x.Header)-1]
			if len(last.Value) < maxFolded {
				last.Value = strings.TrimSpace(last.Value + " " + strings.Trim(line, " \t"))
			}
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			x.warnf(WarnHeaderNoColon, "%.60q", line)
			continue
		}
		if trimmed := strings.Trim(name, " \t"); trimmed != name {
			x.warn(WarnHeaderSpace)
			name = trimmed
		}
		if name == "" {
			x.warnf(WarnHeaderEmptyName, "%.60q", line)
			continue
		}
		if len(x.Header) == maxFields {
			x.warn(WarnHeaderCount)
			return
		}
		x.Header = append(x.Header, Field{name, strings.Trim(value, " \t")})
	}
}

// cleanLine takes out the control characters that would let a value change its
// meaning further on.
func (x *Exchange) cleanLine(line string) string {
	if strings.IndexByte(line, 0) >= 0 {
		x.warn(WarnHeaderNUL)
		line = strings.ReplaceAll(line, "\x00", "")
	}
	if strings.IndexByte(line, '\r') >= 0 {
		x.warn(WarnHeaderCR)
		line = strings.ReplaceAll(line, "\r", " ")
	}
	return line
}

// checkLocation notes what is odd about where a redirect leads (RFC 9110, 10.2.2).
func (x *Exchange) checkLocation() {
	first := ""
	for v := range x.Header.Values("Location") {
		switch {
		case v == "":
		case first == "":
			first = v
		case v != first:
			x.warnf(WarnLocationConflict, "%.60q and %.60q", first, v)
		}
	}
	if !isReference(first) {
		x.warnf(WarnLocation, "%.120q", first)
	}
}

// isReference reports whether s has only what a URI reference may have (RFC 3986,
// appendix A), brackets left aside.
func isReference(s string) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>\\^`{|}", c) >= 0:
			return false
		case c == '%':
			if i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2]) {
				return false
			}
		}
	}
	return true
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

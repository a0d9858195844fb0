package http1

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

const (
	// maxFields is how many header fields are kept.
	maxFields = 1024
	// maxFolded limits values with continuation lines. When a value has reached this length, in bytes,
	// further continuation lines are dropped, because joining many lines takes quadratic time.
	maxFolded = 8 << 10
)

// parseHead parses a whole head. All strings of the response share its memory.
func (m *Reader) parseHead(head string, kind headKind) error {
	r := m.r
	switch kind {
	case requestLine:
		_, head, _ = strings.Cut(head, "\n")
		r.Status = 200
	case statusLine:
		line, rest, complete := strings.Cut(head, "\n")
		if err := m.parseStatusLine(strings.TrimRight(line, "\r"), complete); err != nil {
			return err
		}
		head = rest
	default:
		m.assumeHTTP09()
	}
	m.parseFields(head)
	if r.Status/100 == 3 {
		r.checkLocation()
	}
	if kind == headerLine {
		// The server sent the output of a CGI script unchanged, which has the status in a field.
		if v, ok := r.Header.Lookup("Status"); ok && len(v) >= 3 {
			if code, ok := statusCode(v[:3]); ok {
				r.Status, r.StatusText = code, strings.TrimSpace(v[3:])
			}
		}
	}
	return nil
}

// parseStatusLine parses a status line as leniently as browsers do. It accepts "HTTP/1.1 200: OK",
// "HTTP/1.1 OK" and "http/2 200".
func (m *Reader) parseStatusLine(line string, complete bool) error {
	r := m.r
	version, rest := line, ""
	if i := strings.IndexAny(line, " \t"); i >= 0 {
		version, rest = line[:i], line[i:]
	}
	switch strings.ToUpper(version) {
	case "HTTP/1.1":
		r.Protocol = "HTTP/1.1"
	case "HTTP/1.0":
		r.Protocol, m.minor = "HTTP/1.0", 0
	case "ICY":
		r.Protocol, m.minor = "ICY", 0
	default:
		r.Warnf(WarnVersion, "%.20q", version)
		r.Protocol = Text(version[:min(len(version), 16)])
	}
	code := strings.TrimLeft(rest, " \t")
	n := len(code) - len(strings.TrimLeft(code, "0123456789"))
	switch {
	case n == 0 && !complete:
		return ErrStatusCut
	case n == 0:
		r.Warn(WarnStatusMissing)
		r.Status, r.StatusText = 200, strings.TrimSpace(code)
		return nil
	case n < 3 && !complete:
		return ErrStatusCut
	}
	var ok bool
	if r.Status, ok = statusCode(code[:n]); !ok {
		return ProtocolError{"status code out of range", fmt.Sprintf("%.20q is not between 100 and 999", code[:n])}
	}
	text := code[n:]
	if len(rest) != len(code)+1 || text != "" && text[0] != ' ' {
		r.Warnf(WarnStatusLine, "%.60q", line)
		text = strings.TrimLeft(text, ":;,.- \t")
	}
	r.StatusText = strings.TrimSpace(strings.ReplaceAll(text, "\x00", ""))
	return nil
}

// statusCode parses a number of three digits that is at least 100.
func statusCode(s string) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 16)
	return int(n), err == nil && len(s) == 3 && n >= 100
}

// parseFields parses header lines up to an empty line or the end. It drops a last line without a
// line feed, because that line may be incomplete.
func (m *Reader) parseFields(head string) {
	r := m.r
	if n := strings.Count(head, "\n"); n > 0 {
		r.Header = make(Header, 0, min(n, maxFields))
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
		line = r.cleanLine(line)
		if line != "" && (line[0] == ' ' || line[0] == '\t') && len(r.Header) > 0 {
			r.Warn(WarnHeaderFolded) // RFC 9112, 5.2, says to replace the fold with spaces
			last := &r.Header[len(r.Header)-1]
			if len(last.Value) < maxFolded {
				last.Value = strings.TrimSpace(last.Value + " " + strings.Trim(line, " \t"))
			}
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			r.Warnf(WarnHeaderNoColon, "%.60q", line)
			continue
		}
		if trimmed := strings.Trim(name, " \t"); trimmed != name {
			r.Warn(WarnHeaderSpace)
			name = trimmed
		}
		if name == "" {
			r.Warnf(WarnHeaderEmptyName, "%.60q", line)
			continue
		}
		if len(r.Header) == maxFields {
			r.Warn(WarnHeaderCount)
			return
		}
		r.Header = append(r.Header, Field{name, strings.Trim(value, " \t")})
	}
}

// cleanLine removes control characters from a line, because other software could misread a value
// that contains them.
func (r *Response) cleanLine(line string) string {
	if strings.IndexByte(line, 0) >= 0 {
		r.Warn(WarnHeaderNUL)
		line = strings.ReplaceAll(line, "\x00", "")
	}
	if strings.IndexByte(line, '\r') >= 0 {
		r.Warn(WarnHeaderCR)
		line = strings.ReplaceAll(line, "\r", " ")
	}
	return line
}

// checkLocation warns of conflicting or malformed redirect targets (RFC 9110, 10.2.2).
func (r *Response) checkLocation() {
	first := ""
	for v := range r.Header.Values("Location") {
		switch {
		case v == "":
		case first == "":
			first = v
		case v != first:
			r.Warnf(WarnLocationConflict, "%.60q and %.60q", first, v)
		}
	}
	if !reference.MatchString(first) {
		r.Warnf(WarnLocation, "%.120q", first)
	}
}

// reference matches the characters of a URI reference (RFC 3986, appendix A), without the rules for
// brackets.
var reference = regexp.MustCompile(`^(?:[!#$&-;=?-\[\]_a-z~]|%[0-9A-Fa-f]{2})*$`)

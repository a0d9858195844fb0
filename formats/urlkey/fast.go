package urlkey

import "strings"

// canonicalizeFast gives the same result as canonicalizeSlow at a tenth of the cost, but only for
// clean ASCII, which most input is. ok is false if the input needs canonicalizeSlow. A fuzz test
// compares both methods.
func (c *Canonicalizer) canonicalizeFast(raw, base string) (l urlLayout, g inputParts, ok bool, err error) {
	if !strings.HasPrefix(raw, "http://") && !strings.HasPrefix(raw, "https://") {
		if raw, ok = join(base, raw); !ok {
			return urlLayout{}, inputParts{}, false, nil
		}
	}
	l, query, ok := scan(raw)
	if !ok {
		return urlLayout{}, inputParts{}, false, nil
	}
	follows := true
	if l.pathEnd == l.portEnd { // an empty path becomes "/"
		l.url = l.url[:l.portEnd] + "/"
		l.pathEnd++
		follows = false
	}
	l, err = c.addQuery(l, query, follows)
	if err != nil {
		return urlLayout{}, inputParts{}, true, err
	}
	return l, inputParts{path: l.url[l.portEnd:l.pathEnd], query: query}, true, nil
}

// scan reads an absolute URL that the standard's parser would not change, except for an empty path.
// ok is false if the host or an escape is not canonical.
func scan(s string) (l urlLayout, query string, ok bool) {
	l.url = s
	i := len("http://")
	if s[4] == 's' {
		i++
	}
	l.host = i
	if i, ok = scanHost(s, i); !ok {
		return l, "", false
	}
	l.hostEnd = i
	if i < len(s) && s[i] == ':' {
		if i, ok = scanPort(s, i); !ok {
			return l, "", false
		}
	}
	l.portEnd = i
	if i < len(s) && s[i] != '/' && s[i] != '?' && s[i] != '#' {
		return l, "", false
	}
	if i, ok = scanPart(s, i, inPath, '?'); !ok || dotted(s[l.portEnd:i]) {
		return l, "", false
	}
	l.pathEnd = i
	if i < len(s) && s[i] == '?' {
		if i, ok = scanPart(s, i+1, inQuery, '#'); !ok {
			return l, "", false
		}
		query = s[l.pathEnd+1 : i]
	}
	return l, query, true
}

// scanHost reads a host name in lower case. The last label must not look like a number.
func scanHost(s string, i int) (end int, ok bool) {
	start, label := i, i
	for ; i < len(s); i++ {
		c := s[i]
		if class[c]&inHost != 0 {
			continue
		}
		if c != '.' {
			break
		}
		if i == label || i-label > 63 {
			return i, false
		}
		label = i + 1
	}
	if i == label || i-label > 63 || i-start > 253 {
		return i, false
	}
	return i, s[label] < '0' || s[label] > '9'
}

// scanPort reads a port other than the scheme's default. The colon before the port is s[i].
func scanPort(s string, i int) (end int, ok bool) {
	start, n := i+1, 0
	for i = start; i < len(s) && '0' <= s[i] && s[i] <= '9' && i-start < 6; i++ {
		n = n*10 + int(s[i]-'0')
	}
	own := 80
	if s[4] == 's' {
		own = 443
	}
	return i, i > start && s[start] != '0' && n <= 65535 && n != own
}

// scanPart reads octets of one class and canonical percent escapes. It ends at "#" and at the octet
// stop.
func scanPart(s string, i int, kind uint8, stop byte) (end int, ok bool) {
	for ; i < len(s); i++ {
		c := s[i]
		if class[c]&kind != 0 {
			continue
		}
		if c == stop || c == '#' {
			break
		}
		octet, ok := triplet(s, i)
		if !ok || class[octet]&unreserved != 0 || s[i+1] >= 'a' || s[i+2] >= 'a' {
			return i, false
		}
		i += 2
	}
	return i, true
}

// dotted reports whether a path has a "." or ".." segment.
func dotted(path string) bool {
	for {
		i := strings.Index(path, "/.")
		if i < 0 {
			return false
		}
		path = path[i+2:]
		rest := strings.TrimPrefix(path, ".")
		if rest == "" || rest[0] == '/' {
			return true
		}
	}
}

// join resolves a reference against a clean base by cutting and joining strings. The result may be
// unclean, so the caller must pass the result to scan.
func join(base, ref string) (string, bool) {
	if !strings.HasPrefix(base, "http://") && !strings.HasPrefix(base, "https://") {
		return "", false
	}
	b, query, ok := scan(base)
	if !ok || schemeOf(ref) != "" {
		return "", false
	}
	switch {
	case ref == "" || ref[0] == '#':
		if query == "" {
			return base[:b.pathEnd], true
		}
		return base[:b.pathEnd+1+len(query)], true
	case ref[0] == '?':
		return base[:b.pathEnd] + ref, true
	case strings.HasPrefix(ref, "//"):
		return base[:b.host-len("//")] + ref, true
	case ref[0] == '/':
		return base[:b.portEnd] + ref, true
	}
	dir := base[:b.pathEnd]
	if b.pathEnd == b.portEnd {
		dir += "/"
	}
	dir = dir[:strings.LastIndexByte(dir, '/')+1]
	for {
		if rest, ok := strings.CutPrefix(ref, "./"); ok {
			ref = rest
		} else if rest, ok := strings.CutPrefix(ref, "../"); ok {
			ref = rest
			if len(dir) > b.portEnd+1 {
				dir = dir[:strings.LastIndexByte(dir[:len(dir)-1], '/')+1]
			}
		} else {
			return dir + ref, true
		}
	}
}

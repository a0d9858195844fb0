package urlkey

import "strings"

// canonicalizeFast gives the same result as canonicalizeSlow at a tenth of the cost. It can do so for
// most input, which is clean ASCII. If not, ok is false, and the caller must call canonicalizeSlow. A
// fuzz test compares both methods.
func (c *Canonicalizer) canonicalizeFast(raw, base string) (l urlLayout, g inputParts, ok bool, err error) {
	if !strings.HasPrefix(raw, "http://") && !strings.HasPrefix(raw, "https://") {
		if raw, ok = join(base, raw); !ok {
			return urlLayout{}, inputParts{}, false, nil
		}
	}
	l, query, ok := scan(lowerHost(raw))
	if !ok {
		return urlLayout{}, inputParts{}, false, nil
	}
	g = inputParts{path: l.url[l.portEnd:l.pathEnd]}
	if l.pathEnd < len(l.url) && l.url[l.pathEnd] == '?' {
		g.query = l.url[l.pathEnd : l.pathEnd+1+len(query)]
	}
	if g.path == "" {
		g.path = "/"
	}
	follows := len(g.path) == l.pathEnd-l.portEnd
	if path := normalizeEscapes(g.path); !follows || path != g.path {
		l.url = l.url[:l.portEnd] + path
		l.pathEnd, follows = len(l.url), false
	}
	normal := normalizeEscapes(query)
	l, err = c.addQuery(l, normal, follows && normal == query)
	if err != nil {
		return urlLayout{}, inputParts{}, true, err
	}
	return l, g, true, nil
}

// lowerHost returns an absolute URL with its host in lower case. It leaves hosts as they are that are not ASCII.
func lowerHost(s string) string {
	begin, upper := strings.Index(s, "://")+3, false
	end := begin
	for ; end < len(s) && s[end] != '/' && s[end] != '?' && s[end] != '#'; end++ {
		if s[end] >= 0x80 {
			return s
		}
		upper = upper || 'A' <= s[end] && s[end] <= 'Z'
	}
	if !upper {
		return s
	}
	return s[:begin] + strings.ToLower(s[begin:end]) + s[end:]
}

// scan finds the parts of an absolute URL that, except for an empty path, is as the URL Standard's
// parser would write it. Any octet may be an escape, but not a dot in the path. ok is false for other URLs.
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
	if i, ok = scanPart(s, i, inPath, '?'); !ok || hasDotSegment(s[l.portEnd:i]) {
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

// scanHost reads the host name at s[i], in lower case. ok is false if the last label begins with a
// digit, because the host may then be an IPv4 address.
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

// scanPort reads the port after the colon at s[i]. ok is false for the default port of the scheme.
func scanPort(s string, i int) (end int, ok bool) {
	start, n := i+1, 0
	for i = start; i < len(s) && '0' <= s[i] && s[i] <= '9' && i-start < 6; i++ {
		n = n*10 + int(s[i]-'0')
	}
	standard := 80
	if s[4] == 's' {
		standard = 443
	}
	return i, i > start && s[start] != '0' && n <= 65535 && n != standard
}

// scanPart reads, from s[i] on, octets of the class kind and percent escapes. It ends before "#" or the
// octet stop.
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
		if !ok || octet == '.' && kind == inPath { // the parser takes an escaped dot for a dot
			return i, false
		}
		i += 2
	}
	return i, true
}

// hasDotSegment reports whether a path has a segment "." or "..".
func hasDotSegment(path string) bool {
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

// join resolves a reference against a base that scan accepts, by cutting and joining strings. ok is
// false if it cannot. scan may refuse the result.
func join(base, ref string) (joined string, ok bool) {
	if !strings.HasPrefix(base, "http://") && !strings.HasPrefix(base, "https://") {
		return "", false
	}
	b, query, ok := scan(base)
	if !ok || schemeOf(ref) != "" {
		return "", false
	}
	switch {
	case ref == "" || ref[0] == '#':
		if b.pathEnd == len(base) || base[b.pathEnd] == '#' {
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

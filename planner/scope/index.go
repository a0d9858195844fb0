package scope

import (
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/urlkey"
)

type pattern struct {
	text  string
	whole bool     // the pattern is compared with the whole URL
	name  bool     // true: the pattern is a host name
	port  bool     // the host name has a port; if not, the pattern matches all ports
	parts []string // parts of the pattern between the stars
	entry string   // entry of an opt-out list from which the pattern was made
}

func newPattern(text string) pattern {
	whole := strings.Contains(text, "://")
	_, port := urlkey.SplitPort(text)
	return pattern{text: text, whole: whole, name: !whole && !strings.ContainsAny(text, "/*"), port: port != "", parts: strings.Split(text, "*")}
}

func (p *pattern) match(url string) bool {
	_, rest, _ := strings.Cut(url, "://")
	switch {
	case p.name:
		host, _, _ := strings.Cut(rest, "/")
		if !p.port {
			host, _ = urlkey.SplitPort(host)
		}
		return host == p.text || strings.HasSuffix(host, p.text) && host[len(host)-len(p.text)-1] == '.'
	case p.whole:
		rest = url
	}
	rest, ok := strings.CutPrefix(rest, p.parts[0])
	if !ok || len(p.parts) == 1 {
		return ok && rest == ""
	}
	last := len(p.parts) - 1
	for _, part := range p.parts[1:last] {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return strings.HasSuffix(rest, p.parts[last])
}

// index is a list of patterns. It looks most of them up, so the time for a URL does not grow with their
// number. It compares a URL with patterns one by one only if they have a star before their end.
type index struct {
	patterns []pattern

	// These maps hold the first of equal patterns, as an index of patterns.
	names    map[string]int // patterns that are host names
	exact    map[string]int // other patterns without a star
	prefixes map[string]int // patterns whose only star is at their end, by the text before it

	sites map[string]*site // patterns with a star by the host that they name, or ""
}

// site has the patterns with a star that name one host.
type site struct {
	lengths []int // lengths of prefixes without scheme and "://", ascending
	others  []int // indices of the patterns that are compared one by one, ascending
}

func (x *index) add(p pattern) {
	if x.patterns == nil {
		x.names, x.exact, x.prefixes, x.sites = map[string]int{}, map[string]int{}, map[string]int{}, map[string]*site{}
	}
	i := len(x.patterns)
	x.patterns = append(x.patterns, p)
	put := func(m map[string]int, key string) {
		if _, known := m[key]; !known {
			m[key] = i
		}
	}
	if len(p.parts) == 1 {
		if p.name {
			put(x.names, p.text)
		} else {
			put(x.exact, p.text)
		}
		return
	}
	begin := p.parts[0]
	if p.whole {
		_, begin, _ = strings.Cut(begin, "://")
	}
	host, _, slash := strings.Cut(begin, "/")
	if !slash {
		host = "" // the star may be in the host
	}
	s := x.sites[host]
	if s == nil {
		s = &site{}
		x.sites[host] = s
	}
	if len(p.parts) > 2 || p.parts[1] != "" {
		s.others = append(s.others, i)
		return
	}
	put(x.prefixes, p.parts[0])
	if at, found := slices.BinarySearch(s.lengths, len(begin)); !found {
		s.lengths = slices.Insert(s.lengths, at, len(begin))
	}
}

// first returns the first pattern that matches a URL, or nil.
func (x *index) first(url string) *pattern {
	if len(x.patterns) == 0 {
		return nil
	}
	first := len(x.patterns)
	try := func(i int) {
		if i < first && x.patterns[i].match(url) {
			first = i
		}
	}
	look := func(m map[string]int, key string) {
		if i, ok := m[key]; ok {
			try(i)
		}
	}
	_, rest, _ := strings.Cut(url, "://")
	host, _, _ := strings.Cut(rest, "/")
	name, port := urlkey.SplitPort(host)
	for above := name; above != "" && len(x.names) > 0; _, above, _ = strings.Cut(above, ".") {
		look(x.names, above)
	}
	for above := host; above != "" && len(x.names) > 0 && port != ""; _, above, _ = strings.Cut(above, ".") {
		look(x.names, above)
	}
	look(x.exact, url)
	look(x.exact, rest)
	for _, of := range [...]string{host, ""} {
		s := x.sites[of]
		if s == nil {
			continue
		}
		for _, n := range s.lengths {
			if n > len(rest) {
				break
			}
			look(x.prefixes, rest[:n])
			look(x.prefixes, url[:len(url)-len(rest)+n])
		}
		for _, i := range s.others {
			try(i)
		}
	}
	if first == len(x.patterns) {
		return nil
	}
	return &x.patterns[first]
}

// firstOf is first for url or, if no pattern matches it, for sent unless that is "".
func (x *index) firstOf(url, sent string) *pattern {
	p := x.first(url)
	if p == nil && sent != "" {
		p = x.first(sent)
	}
	return p
}

package takedown

import (
	"strings"
	"sync"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// Guard recognizes the names of a store's list by their keyed digests. A nil Guard recognizes none. It
// is safe for concurrent use.
type Guard struct {
	key                  Key
	domains, hosts, urls map[string]struct{} // digests
	canonical            *urlkey.Canonicalizer
	rules                *urlkey.Canonicalizer // see WithRules; nil: none

	mu    sync.RWMutex
	known map[string]verdict // answers by host name
}

// verdict is what a list says about a host name.
type verdict struct {
	domain bool // the host is a removed domain or under one
	urls   bool // URLs of the host were removed
}

// maxKnown is the number of hosts that a Guard remembers. They take a few MiB.
const maxKnown = 1 << 16

func newGuard(k Key, list *manifest.Takedowns) *Guard {
	g := &Guard{key: k, domains: map[string]struct{}{}, hosts: map[string]struct{}{}, urls: map[string]struct{}{}, known: map[string]verdict{}}
	for _, e := range list.Entries {
		for set, digests := range map[*map[string]struct{}][]string{&g.domains: e.Domains, &g.hosts: e.Hosts, &g.urls: e.URLs} {
			for _, d := range digests {
				(*set)[d] = struct{}{}
			}
		}
	}
	g.canonical, _ = urlkey.New(nil) // fails only for a bad pattern
	return g
}

// WithRules returns the Guard for a crawl with rules for URLs. The rules give several URLs one form, so the Guard
// also recognizes a URL by the form that the rules give it. Call WithRules before the Guard is used.
func (g *Guard) WithRules(c *urlkey.Canonicalizer) *Guard {
	if g != nil && c != c.Plain() {
		g.rules = c
	}
	return g
}

// of returns what the list says about a canonical host name.
func (g *Guard) of(host string) verdict {
	g.mu.RLock()
	v, ok := g.known[host]
	g.mu.RUnlock()
	if ok {
		return v
	}
	v.domain = len(g.domains) > 0 && anyParent(host, '.', func(s string) bool { return has(g.domains, g.key.digest(kindDomain, s)) })
	v.urls = len(g.hosts) > 0 && has(g.hosts, g.key.digest(kindHost, host))
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.known) >= maxKnown {
		clear(g.known)
	}
	g.known[strings.Clone(host)] = v
	return v
}

// Host reports whether a host, with a port or not, is a removed domain or under one.
func (g *Guard) Host(s string) bool {
	if g == nil || s == "" {
		return false
	}
	host, _ := urlkey.SplitPort(s)
	return g.of(host).domain
}

// URL reports whether a canonical URL was removed or is on a removed domain. What is not a canonical URL
// is made canonical first.
func (g *Guard) URL(s string) bool {
	if g == nil || s == "" {
		return false
	}
	if g.rules != nil && len(g.urls) > 0 { // rules may change the host too
		if u, err := g.rules.URL(s, ""); err == nil && u != s && g.url(u) {
			return true
		}
	}
	return g.url(s)
}

// url does the same as URL without the crawl's rules.
func (g *Guard) url(s string) bool {
	if host, ok := quickHost(s); ok {
		if v := g.of(host); v.domain || !v.urls {
			return v.domain // the usual case
		}
	}
	u, err := g.canonical.URL(s, "")
	if err != nil {
		return false
	}
	n, ok := nameOf(u)
	if !ok {
		return false
	}
	v := g.of(n.host)
	return v.domain || v.urls && has(g.urls, g.key.digest(kindURL, n.url))
}

// Mentions reports whether a text names a removed domain or URL, such as a line of a list that is not a
// URL.
func (g *Guard) Mentions(text string) bool {
	return g != nil && mentions(g, []byte(text))
}

// The methods of names, by which Mentions reads a text.
func (g *Guard) onDomain(host string) bool { return g.of(host).domain }
func (g *Guard) onHosts(host string) bool  { return g.of(host).urls }
func (g *Guard) hasURLs() bool             { return len(g.urls) > 0 }
func (g *Guard) singleLabels() bool        { return true }
func (g *Guard) anyScript() bool           { return true }
func (g *Guard) surtURL(string) bool       { return false }

// surtHost reports whether the labels of a SURT are those of a removed domain.
func (g *Guard) surtHost(labels string) bool {
	return g.of(join(strings.Split(labels, ","), ".")).domain
}

// reversedHost reports whether a name in reverse order is a removed domain.
func (g *Guard) reversedHost(name string) bool {
	return g.of(join(strings.Split(name, "."), ".")).domain
}

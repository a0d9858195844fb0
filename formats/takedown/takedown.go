// Package takedown finds the URLs and hosts that a store must forget, and keeps the list of those that
// no crawl may plan or fetch again.
//
// A Matcher holds the names themselves, for as long as a takedown runs. It recognizes a name in every
// form that a store has: canonical URLs and other forms of them, hosts, domains, SURT keys, reversed hosts,
// and text. The List in the store holds only keyed digests of the names. With the key, which is not in
// the store, it becomes a Guard, which recognizes a name but cannot list the names.
//
// A name is either a domain, which stands for its subdomains and all their ports too, or a URL without
// its scheme and without the ports 80 and 443. So a URL that was taken down does not come back with
// another scheme.
//
// No input causes a panic. Time is linear in the input and does not depend on the number of names.
// Package takedown imports urlkey, manifest, layout and store.
package takedown

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/net/publicsuffix"

	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// ErrTarget means that a given URL or domain cannot be taken down.
var ErrTarget = errors.New("cannot be taken down")

// Matcher recognizes the names of a takedown. It is immutable and safe for concurrent use.
type Matcher struct {
	canonical []*urlkey.Canonicalizer
	urls      map[string]struct{} // names of URLs
	urlHosts  map[string]struct{} // host names of these URLs, without port
	urlSURTs  map[string]struct{}
	domains   map[string]struct{} // canonical host names
	reversed  map[string]struct{} // their labels in reverse order, joined by dots
	surts     map[string]bool     // their labels as SURTs have them; true if the domain itself begins with "www."
	single    bool                // a name has only one label
	unicode   bool                // a name has labels in punycode, which text may spell in Unicode
	addresses []string            // IPv6 addresses in the forms of text
	labels    [][]byte            // every mention has one of them; nil: nothing is known (see findLabels)
}

// New returns a Matcher of the given URLs and domains. Each URL stands for all its forms: it is made
// canonical with each of the given canonicalizers, which are those of the crawls, and without rules. An
// error wraps ErrTarget and quotes what is wrong.
func New(urls, domains []string, crawls ...*urlkey.Canonicalizer) (*Matcher, error) {
	m := &Matcher{
		urls: map[string]struct{}{}, urlHosts: map[string]struct{}{}, urlSURTs: map[string]struct{}{},
		domains: map[string]struct{}{}, reversed: map[string]struct{}{}, surts: map[string]bool{},
	}
	plain, err := urlkey.New(nil)
	if err != nil {
		return nil, err
	}
	m.canonical = []*urlkey.Canonicalizer{plain}
	for _, c := range crawls {
		m.canonical = append(m.canonical, c)
		if without := c.Plain(); without != c {
			m.canonical = append(m.canonical, without)
		}
	}
	for _, d := range domains {
		if err := m.addDomain(d); err != nil {
			return nil, err
		}
	}
	for _, u := range urls {
		if err := m.addURL(u); err != nil {
			return nil, err
		}
	}
	m.findLabels()
	return m, nil
}

func (m *Matcher) addDomain(text string) error {
	name, err := urlkey.HostName(strings.TrimSpace(text))
	if err != nil {
		return fmt.Errorf("domain %q %w: give a host name such as example.org: %w", text, ErrTarget, err)
	}
	if suffix, icann := publicsuffix.PublicSuffix(name); icann && suffix == name {
		return fmt.Errorf("domain %q %w: it is a public suffix, under which others register their domains", text, ErrTarget)
	}
	if !strings.ContainsAny(name, ".:") { // test would cover a.test and b.test, which are not in the list of suffixes
		return fmt.Errorf("domain %q %w: it is a single label, which stands for all domains that end in it: give a longer name, or URLs", text, ErrTarget)
	}
	m.domains[name] = struct{}{}
	m.reversed[reverse(name)] = struct{}{}
	surt, err := urlkey.SURT("http://" + name + "/")
	if err != nil {
		return fmt.Errorf("domain %q %w: %w", text, ErrTarget, err)
	}
	key := strings.TrimSuffix(surt, ")/")
	m.surts[key] = m.surts[key] || key != surtLabels(name)
	m.noteHost(name)
	return nil
}

func (m *Matcher) addURL(text string) error {
	for i, c := range m.canonical {
		u, err := c.URL(text, "")
		if err != nil && i > 0 {
			continue // the rules of this crawl make no URL of it, so the crawl has none
		}
		if err != nil {
			return fmt.Errorf("URL %q %w: %w", text, ErrTarget, err)
		}
		n, ok := nameOf(u)
		if !ok {
			return fmt.Errorf("URL %q %w: its canonical form %q has no host and path", text, ErrTarget, u)
		}
		if n.url == n.host+n.port+"/robots.txt" {
			return fmt.Errorf("URL %q %w: a crawl must obey it, so take its domain down", text, ErrTarget)
		}
		m.urls[n.url] = struct{}{}
		m.urlHosts[n.host] = struct{}{}
		m.noteHost(n.host)
		ports := []string{n.port}
		if n.port == "" {
			ports = []string{"", ":80", ":443"}
		}
		for _, port := range ports {
			surt, err := urlkey.SURT("http://" + n.host + port + n.url[len(n.host)+len(n.port):])
			if err != nil {
				return fmt.Errorf("URL %q %w: %w", text, ErrTarget, err)
			}
			m.urlSURTs[surt] = struct{}{}
		}
	}
	return nil
}

// noteHost notes what Mentions must look for because of a host.
func (m *Matcher) noteHost(host string) {
	m.single = m.single || !strings.Contains(host, ".")
	m.unicode = m.unicode || strings.Contains(host, "xn--")
	if strings.HasPrefix(host, "[") {
		m.addresses = append(m.addresses, strings.ToLower(host), strings.ToLower(host[1:len(host)-1]))
	}
}

// name is a canonical URL without scheme and default port, and its parts.
type name struct {
	url, host string
	port      string // colon and port, "" for 80 and 443
}

// nameOf returns the name of a canonical URL.
func nameOf(canonical string) (name, bool) {
	_, rest, ok := strings.Cut(canonical, "://")
	path := strings.IndexByte(rest, '/')
	if !ok || path <= 0 {
		return name{}, false
	}
	host, port := urlkey.SplitPort(rest[:path])
	if port == ":80" || port == ":443" {
		port = ""
	}
	return name{url: host + port + rest[path:], host: host, port: port}, true
}

// Empty reports whether the Matcher has no names.
func (m *Matcher) Empty() bool { return len(m.urls)+len(m.domains) == 0 }

// URL reports whether a URL is a target or on a target domain. The URL may be canonical or in any other
// form. What is not a URL is no target.
func (m *Matcher) URL(s string) bool {
	if m.Empty() || s == "" {
		return false
	}
	if host, ok := quickHost(s); ok && !m.onHosts(host) && !m.onDomain(host) {
		return false // the usual case
	}
	for _, c := range m.canonical {
		u, err := c.URL(s, "")
		if err != nil {
			continue
		}
		if n, ok := nameOf(u); ok && (m.onDomain(n.host) || has(m.urls, n.url)) {
			return true
		}
	}
	return false
}

// quickHost returns the host name of a URL that has a plain host: letters, digits, dots, hyphens and
// underscores, with a port or not. No canonicalizer changes such a host except by a rule for www.
func quickHost(s string) (string, bool) {
	i := strings.Index(s, "://")
	if i != len("http") && i != len("https") {
		return "", false
	}
	rest := s[i+3:]
	end := strings.IndexAny(rest, "/?#")
	if end <= 0 {
		return "", false
	}
	host, port := urlkey.SplitPort(rest[:end])
	if strings.Trim(port, ":0123456789") != "" || host == "" {
		return "", false
	}
	for i := range len(host) {
		if !hostByte(host[i]) || host[i] >= 0x80 || 'A' <= host[i] && host[i] <= 'Z' {
			return "", false
		}
	}
	last := host[len(host)-1]
	return host, last != '.' && (last < '0' || last > '9') // 0x7f000001 and 1.2.3 are addresses
}

// onHosts reports whether a target URL is on the host, or on the host that a rule may make of it.
func (m *Matcher) onHosts(host string) bool {
	return has(m.urlHosts, host) || has(m.urlHosts, strings.TrimPrefix(host, "www.")) || len(m.canonical) > 1 && len(m.urlHosts) > 0 && rewrites(m.canonical)
}

// rewrites reports whether a canonicalizer has rules, which may change a host.
func rewrites(cs []*urlkey.Canonicalizer) bool {
	for _, c := range cs {
		if c.Plain() != c {
			return true
		}
	}
	return false
}

// Host reports whether a host is a target domain or under one. The host may have a port, a trailing dot,
// capital letters, or labels in Unicode.
func (m *Matcher) Host(s string) bool {
	if len(m.domains) == 0 || s == "" {
		return false
	}
	host, _ := urlkey.SplitPort(s)
	if m.onDomain(host) {
		return true
	}
	canonical, err := urlkey.HostName(host)
	return err == nil && canonical != host && m.onDomain(canonical)
}

// Domain reports whether a registered domain is a target or under one. It is Host, by the name that
// callers expect: a column of domains holds host names.
func (m *Matcher) Domain(s string) bool { return m.Host(s) }

// onDomain reports whether a canonical host name is a target domain or under one.
func (m *Matcher) onDomain(host string) bool {
	return len(m.domains) > 0 && anyParent(host, '.', func(s string) bool { return has(m.domains, s) })
}

// anyParent reports whether found is true for a name or for what follows one of its separators. Of
// longer names than DNS has, it looks at the end.
func anyParent(name string, separator byte, found func(string) bool) bool {
	if len(name) > maxHost {
		name = name[len(name)-maxHost:]
	}
	for {
		if found(name) {
			return true
		}
		i := strings.IndexByte(name, separator)
		if i < 0 {
			return false
		}
		name = name[i+1:]
	}
}

// anyPrefix is like anyParent for names whose labels are in reverse order.
func anyPrefix(name string, separator byte, found func(string) bool) bool {
	name = name[:min(len(name), maxHost)]
	for {
		if found(name) {
			return true
		}
		i := strings.LastIndexByte(name, separator)
		if i < 0 {
			return false
		}
		name = name[:i]
	}
}

// maxHost is the length of the longest host name, with a trailing dot.
const maxHost = 254

// surtHost reports whether the part of a SURT before the parenthesis is that of a target domain.
func (m *Matcher) surtHost(host string) bool {
	if len(m.surts) == 0 {
		return false
	}
	whole := host
	if i := strings.LastIndexByte(host, ':'); i >= 0 && (strings.IndexByte(host, ':') == i || has2(m.surts, host[:i])) {
		whole = host[:i] // an IPv6 address has several colons
	}
	return anyPrefix(whole, ',', func(s string) bool {
		www, ok := m.surts[s]
		if !ok || s == whole {
			return ok
		}
		_, bare := m.domains[unreverse(s)]
		return bare || www && strings.HasPrefix(whole[len(s):], ",www")
	})
}

// ReversedHost reports whether a host name whose labels are in reverse order, such as org.example.www,
// is a target domain or under one. It may have a port.
func (m *Matcher) ReversedHost(s string) bool {
	if len(m.reversed) == 0 {
		return false
	}
	name, _ := urlkey.SplitPort(s)
	return anyPrefix(name, '.', func(s string) bool { return has(m.reversed, s) })
}

func has(set map[string]struct{}, s string) bool {
	_, ok := set[s]
	return ok
}

func has2(set map[string]bool, s string) bool {
	_, ok := set[s]
	return ok
}

// reverse returns the labels of a host name in reverse order. Addresses have no labels.
func reverse(host string) string {
	if strings.HasPrefix(host, "[") {
		return host
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return host
	}
	return join(strings.Split(host, "."), ".")
}

// surtLabels returns a host name as a SURT would have it if it kept "www.".
func surtLabels(host string) string {
	if strings.HasPrefix(host, "[") {
		return host[1 : len(host)-1]
	}
	return join(strings.Split(host, "."), ",")
}

// unreverse returns the host name of the labels of a SURT.
func unreverse(labels string) string { return join(strings.Split(labels, ","), ".") }

// join joins labels in reverse order.
func join(labels []string, separator string) string {
	var b strings.Builder
	for i := len(labels) - 1; i >= 0; i-- {
		b.WriteString(labels[i])
		if i > 0 {
			b.WriteString(separator)
		}
	}
	return b.String()
}

package owner

import (
	"errors"
	"fmt"
	"strings"

	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/jobs/config"
)

// ErrName means that a text does not name a host.
var ErrName = errors.New("not a host")

// ErrUnknown means that the crawl neither planned nor requested a URL of the host.
var ErrUnknown = errors.New("the crawl does not know the host")

// Target is the host, or the registered domain, that a question is about.
type Target struct {
	Host   string // as in the tables: name or address, with the port unless the port is 80 or 443; "" for a domain
	Domain string // registered domain of the host
	surt   string // prefix of the SURT keys of all URLs of the target, and perhaps of other URLs
}

// Parse reads the name of a host. The letter case, a trailing dot, a Unicode name, the default
// ports, and the other parts of a URL do not matter. If domain is true, the target is the whole
// registered domain of the host. The error wraps ErrName.
func Parse(given string, domain bool) (Target, error) {
	url := strings.TrimSpace(given)
	if !strings.Contains(url, "://") {
		url = "http://" + strings.TrimPrefix(url, "//")
	}
	canonical, err := urlkey.New(nil)
	if err != nil {
		return Target{}, err
	}
	key, err := canonical.Canonical(url, "")
	if err != nil {
		return Target{}, fmt.Errorf("%q: give a host such as example.org, or a URL of the host: %w", given, ErrName)
	}
	t := Target{Host: key.Host, Domain: key.Domain}
	name := key.Domain
	if domain {
		t.Host = ""
	} else {
		parts, err := urlkey.Split(key.URL)
		if err != nil {
			return Target{}, err
		}
		name = parts.HostName
	}
	surt, err := urlkey.SURT("http://" + name + "/")
	if err != nil {
		return Target{}, err
	}
	t.surt = strings.TrimSuffix(surt, ")/")
	return t, nil
}

// String returns the host, or "all hosts of" and the domain.
func (t Target) String() string {
	if t.Host == "" {
		return "all hosts of " + t.Domain
	}
	return t.Host
}

// matcher returns a function that reports whether a host belongs to the target. Only one goroutine
// may use the function.
func (t Target) matcher() func(host string) bool {
	if t.Host != "" {
		return func(host string) bool { return host == t.Host }
	}
	last, matches := "", false // the last host and its answer: tables are sorted by host, so the next row often has the same host
	return func(host string) bool {
		if host != last {
			key, err := urlkey.KeyOf("http://" + host + "/")
			last, matches = host, err == nil && key.Domain == t.Domain
		}
		return matches
	}
}

// hostOf returns the host of a canonical URL.
func hostOf(url string) string {
	key, err := urlkey.KeyOf(url)
	if err != nil {
		return ""
	}
	return key.Host
}

// nearestShown is the largest number of hosts that the error about an unknown host names.
const nearestShown = 5

// nearest keeps the hosts whose names differ least from the name of a given host.
type nearest struct {
	host  string
	most  int // the largest number of differences that counts
	hosts []string
	dists []int
	last  string // the host that was added last: rows of a host often follow one another
}

func (n *nearest) add(host string) {
	// The distance is at least the difference of the lengths, which is cheap to compare for millions of hosts.
	if host == n.last || max(len(host)-len(n.host), len(n.host)-len(host)) > n.most {
		return
	}
	n.last = strings.Clone(host)
	d := config.EditDistance(n.host, host)
	if d > n.most {
		return
	}
	at := len(n.hosts)
	for i, h := range n.hosts {
		if h == host {
			return
		}
		if at == len(n.hosts) && d < n.dists[i] {
			at = i
		}
	}
	if at == nearestShown {
		return
	}
	n.hosts = append(n.hosts[:at], append([]string{host}, n.hosts[at:]...)...)
	n.dists = append(n.dists[:at], append([]int{d}, n.dists[at:]...)...)
	n.hosts, n.dists = n.hosts[:min(len(n.hosts), nearestShown)], n.dists[:min(len(n.dists), nearestShown)]
}

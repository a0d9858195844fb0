package urlkey

import (
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"
	"golang.org/x/net/publicsuffix"
)

// KeyOf returns the keys of a canonical URL, such as one from a table. The error wraps ErrNotURL if
// the argument cannot be a canonical URL.
func KeyOf(canonical string) (Key, error) {
	l, err := layCanonical(canonical)
	if err != nil {
		return Key{}, err
	}
	return l.key(), nil
}

// Keyer returns the keys of canonical URLs. It is faster than KeyOf if consecutive URLs often have the same host.
// The zero value is ready for use. Only one goroutine may use a Keyer.
type Keyer struct {
	layout urlLayout // of the last URL with a host that the URL before did not have
	key    Key       // of that URL
	group  int       // length of the part of key.SURT that stands for the host and port
}

// KeyOf is like the function KeyOf.
func (r *Keyer) KeyOf(canonical string) (Key, error) {
	l := r.layout
	if n := l.portEnd; n == 0 || len(canonical) <= n || canonical[n] != '/' || canonical[:n] != l.url[:n] || strings.ContainsAny(canonical[n:], "# \t\r\n") {
		var err error
		if l, err = layCanonical(canonical); err != nil {
			return Key{}, err
		}
		r.layout, r.key = l, l.key()
		r.group = strings.IndexByte(r.key.SURT, ')') + 1
		return r.key, nil
	}
	l.url = canonical
	l.pathEnd = l.endOfPath()
	var room [256]byte
	k := r.key
	k.URL, k.SURT = canonical, string(l.appendPath(append(room[:0], k.SURT[:r.group]...)))
	return k, nil
}

// SURT is like KeyOf but returns only the SURT.
func SURT(canonical string) (string, error) {
	l, err := layCanonical(canonical)
	if err != nil {
		return "", err
	}
	return l.surt(), nil
}

// layCanonical finds the parts of a canonical URL.
func layCanonical(s string) (urlLayout, error) {
	l := urlLayout{url: s}
	switch {
	case strings.HasPrefix(s, "http://"):
		l.host = len("http://")
	case strings.HasPrefix(s, "https://"):
		l.host = len("https://")
	default:
		return l, fmt.Errorf("key of %s: %w", quoted(s), ErrNotURL)
	}
	path := strings.IndexByte(s[l.host:], '/')
	if path < 0 || strings.ContainsAny(s, "# \t\r\n") {
		return l, fmt.Errorf("key of %s: %w", quoted(s), ErrNotURL)
	}
	l.portEnd = l.host + path
	l.hostEnd = l.portEnd
	if i := strings.LastIndexByte(s[l.host:l.portEnd], ':'); i >= 0 && s[l.portEnd-1] != ']' {
		l.hostEnd = l.host + i
	}
	l.pathEnd = l.endOfPath()
	if !validHost(s[l.host:l.hostEnd]) {
		return l, fmt.Errorf("key of %s: %w", quoted(s), ErrNotURL)
	}
	return l, nil
}

// endOfPath finds the end of the path of a URL with a query or without one.
func (l urlLayout) endOfPath() int {
	if i := strings.IndexByte(l.url[l.portEnd:], '?'); i >= 0 {
		return l.portEnd + i
	}
	return len(l.url)
}

// Domain returns the domain of a host name without port: the public suffix, private suffixes
// included, and the label before it. For an IP address, a single label or a suffix, Domain returns
// the host itself.
func Domain(host string) string {
	if isIP(host) {
		return host
	}
	suffix, _ := publicsuffix.PublicSuffix(host)
	return suffixWithLabel(host, suffix, host)
}

// Domains remembers the domains of some hosts: looking up a public suffix takes longer than making most URLs canonical.
// The zero value is ready for use. Only one goroutine may use a Domains.
type Domains struct {
	hosts [domainHosts]struct {
		name   string
		domain int // length of the domain, with which the name ends
	}
}

// domainHosts is the number of hosts that Domains remembers at most. URLs of one host are often near each other.
const domainHosts = 4096

// of is like Domain.
func (d *Domains) of(host string) string {
	known := &d.hosts[xxh3.HashString(host)%domainHosts]
	if known.name != host || host == "" {
		known.name, known.domain = strings.Clone(host), len(Domain(host)) // without the rest of the URL
	}
	return host[len(host)-known.domain:]
}

// SplitPort splits the host of a URL into its name and its port with the colon, which is "" if the host
// has no port. The colons of an IPv6 address, which is in brackets, belong to the name.
func SplitPort(host string) (name, port string) {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && host[len(host)-1] != ']' {
		return host[:i], host[i:]
	}
	return host, ""
}

// suffixWithLabel returns the end of the host that consists of the suffix and the label before it, or
// fallback if there is no such label.
func suffixWithLabel(host, suffix, fallback string) string {
	i := len(host) - len(suffix) - 1
	if i <= 0 {
		return fallback
	}
	return host[1+strings.LastIndexByte(host[:i], '.'):]
}

// isIP reports whether a host is an IP address. IPv6 addresses are in brackets, so a host that ends in
// a letter is none.
func isIP(host string) bool {
	if host == "" || host[0] == '[' {
		return host != ""
	}
	if last := host[len(host)-1]; last < '0' || last > '9' {
		return false
	}
	_, err := netip.ParseAddr(host)
	return err == nil
}

// Hash returns the XXH3-64 of a domain's name. It is the same on every machine and in every version
// of crawlbatch. A bucket is a range of these hashes.
func Hash(domain string) uint64 { return xxh3.HashString(domain) }

// Bucket maps a domain to one of n reduce buckets, 0 to n-1. The i-th bucket holds the i-th of n
// equal ranges of hashes.
func Bucket(domain string, n int) int { return BucketOf(Hash(domain), n) }

// BucketOf is like Bucket but takes the hash of a domain.
func BucketOf(hash uint64, n int) int {
	if n <= 1 {
		return 0
	}
	hi, _ := bits.Mul64(hash, uint64(n))
	return int(hi)
}

// Overlapping compares two divisions of all hashes, one into the given number of buckets and one into
// n buckets. It returns the first and the last of the n buckets that share hashes with the given
// bucket of the first division.
func Overlapping(bucket, buckets, n int) (first, last int) {
	return bucket * n / buckets, ((bucket+1)*n - 1) / buckets
}

// Parts holds the url_* columns of Common Crawl's cc-index. An empty string means null.
//
// Suffixes follow the Public Suffix List with its default rule "*": a top-level domain that is not
// listed counts as a suffix. Common Crawl has no URLs with such domains. An IP address has no labels,
// suffixes or domains.
type Parts struct {
	HostName         string // url_host_name, such as www.example.co.uk
	TLD              string // url_host_tld, such as uk
	SecondLast       string // url_host_2nd_last_part, such as co
	ThirdLast        string // url_host_3rd_last_part, such as example
	FourthLast       string // url_host_4th_last_part, such as www
	FifthLast        string // url_host_5th_last_part, often null
	RegistrySuffix   string // url_host_registry_suffix, such as co.uk, from the list's ICANN section only
	RegisteredDomain string // url_host_registered_domain, such as example.co.uk
	PrivateSuffix    string // url_host_private_suffix, such as co.uk or github.io
	PrivateDomain    string // url_host_private_domain, such as example.co.uk
	NameReversed     string // url_host_name_reversed, such as uk.co.example.www
	Protocol         string // url_protocol, http or https
	Port             int32  // url_port; 0, which is null in the table, means the default port of the protocol
	Path             string // url_path, with its first slash
	Query            string // url_query, without the question mark
}

// Split splits a canonical URL into Common Crawl's columns.
func Split(canonical string) (Parts, error) {
	l, err := layCanonical(canonical)
	if err != nil {
		return Parts{}, err
	}
	p := Parts{
		HostName: l.url[l.host:l.hostEnd],
		Protocol: l.url[:l.host-len("://")],
		Path:     l.url[l.portEnd:l.pathEnd],
	}
	if l.hostEnd < l.portEnd {
		port, err := strconv.ParseUint(l.url[l.hostEnd+1:l.portEnd], 10, 16)
		if err != nil {
			return Parts{}, fmt.Errorf("port of %s: %w", quoted(canonical), ErrNotURL)
		}
		p.Port = int32(port)
	}
	if l.pathEnd < len(l.url) {
		p.Query = l.url[l.pathEnd+1:]
	}
	if !isIP(p.HostName) {
		p.splitName()
	}
	return p, nil
}

// splitName fills the parts that a host name has but an IP address does not.
func (p *Parts) splitName() {
	labels := strings.Split(p.HostName, ".")
	slices.Reverse(labels)
	p.NameReversed = strings.Join(labels, ".")
	for i, last := range [...]*string{&p.TLD, &p.SecondLast, &p.ThirdLast, &p.FourthLast, &p.FifthLast} {
		if i < len(labels) {
			*last = labels[i]
		}
	}
	suffix, icann := publicsuffix.PublicSuffix(p.HostName)
	p.PrivateSuffix = suffix
	p.PrivateDomain = suffixWithLabel(p.HostName, suffix, "")
	for !icann && strings.Contains(suffix, ".") {
		// A private suffix ends in a registry suffix, such as io in github.io.
		_, suffix, _ = strings.Cut(suffix, ".")
		suffix, icann = publicsuffix.PublicSuffix(suffix)
	}
	p.RegistrySuffix = suffix
	p.RegisteredDomain = suffixWithLabel(p.HostName, suffix, "")
}

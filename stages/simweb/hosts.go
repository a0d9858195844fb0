package simweb

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"crawlbatch.io/crawlbatch/stages/simweb/faults"
)

// Web is a synthetic web. It stores no pages. It is immutable and safe for concurrent use.
type Web struct {
	cfg    Config
	root   key
	faults []*faults.Fault // faults that pages of the web have
	// harmonic[n] is the sum of the Zipf weights of ranks 1 to n.
	harmonic [sizeBlock + 1]float64
}

// New validates the config and returns its web.
func New(cfg Config) (*Web, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("simweb: %w", err)
	}
	w := &Web{cfg: cfg, root: key(cfg.Seed).named("simweb"), faults: cfg.pageFaults()}
	for n := 1; n <= sizeBlock; n++ {
		w.harmonic[n] = w.harmonic[n-1] + zipf(n)
	}
	return w, nil
}

// Config returns the config of the web.
func (w *Web) Config() Config { return w.cfg }

// Hosts returns the number of hosts.
func (w *Web) Hosts() int { return w.cfg.Hosts }

// The hosts of each block of domainBlock consecutive hosts share domains by one of these patterns.
// Element i of a pattern belongs to host i of the block, and is the index of the first host that has
// the same domain.
const domainBlock = 8

var domainPatterns = [...][domainBlock]int{
	{0, 1, 2, 2, 4, 4, 4, 4},
	{0, 0, 0, 3, 4, 5, 6, 6},
	{0, 1, 1, 3, 3, 5, 6, 7},
}

// domainOf returns the number of the first host in host i's domain.
func (w *Web) domainOf(i int) int {
	block := i / domainBlock
	pattern := &domainPatterns[w.root.named("domains").at(block).below(len(domainPatterns))]
	return block*domainBlock + pattern[i%domainBlock]
}

// hasPrivateName reports whether the name of host i is below the private suffix. One in five of the
// hosts that are alone in their domain has such a name.
func (w *Web) hasPrivateName(i int) bool {
	if w.cfg.PrivateSuffix == "" || w.root.named("private").at(i).below(5) != 0 {
		return false
	}
	return w.domainOf(i) == i && (i%domainBlock == domainBlock-1 || w.domainOf(i+1) != i)
}

// Host returns the name of host i, 0 ≤ i < Hosts.
func (w *Web) Host(i int) string {
	if w.hasPrivateName(i) {
		return number("h", i) + "." + w.cfg.PrivateSuffix
	}
	return number("h", i) + "." + number("d", w.domainOf(i)) + ".test"
}

// Domain returns the registered domain of host i, the unit of sharding.
func (w *Web) Domain(i int) string {
	if w.hasPrivateName(i) {
		return w.Host(i)
	}
	return number("d", w.domainOf(i)) + ".test"
}

func number(letter string, i int) string {
	digits := strconv.Itoa(i)
	return letter + "00000"[min(5, len(digits)):] + digits
}

// HostIndex returns the number of the host with the given name, which may end in ":80".
func (w *Web) HostIndex(name string) (int, bool) {
	name = strings.ToLower(strings.TrimSuffix(name, ":80"))
	digits, ok := strings.CutPrefix(name, "h")
	if !ok {
		return 0, false
	}
	digits, _, ok = strings.Cut(digits, ".")
	if !ok || len(digits) > 10 {
		return 0, false
	}
	i, err := strconv.Atoi(digits)
	if err != nil || i < 0 || i >= w.cfg.Hosts || w.Host(i) != name {
		return 0, false
	}
	return i, true
}

// sibling returns another host of the same domain, or i itself if there is none.
func (w *Web) sibling(i int) int {
	d := w.domainOf(i)
	for j := d; j < d+domainBlock && j < w.cfg.Hosts; j++ {
		if j != i && w.domainOf(j) == d && !w.hasPrivateName(j) && !w.hasPrivateName(i) {
			return j
		}
	}
	return i
}

// stranger returns a host of another domain, if there is one.
func (w *Web) stranger(k key, i int) (j int, ok bool) {
	n := w.cfg.Hosts
	for off, try := k.below(n), 0; try < min(n, 2*domainBlock); try++ {
		if j = (off + try) % n; w.domainOf(j) != w.domainOf(i) {
			return j, true
		}
	}
	return 0, false
}

// Each block of sizeBlock consecutive hosts has sizeBlock × PagesPerHost pages, divided among its
// hosts by Zipf's law.
const sizeBlock = 64

func zipf(rank int) float64 { return math.Pow(float64(rank), -0.7) }

// Pages returns the number of pages of host i, with its home page and its faults.
func (w *Web) Pages(i int) int {
	block := i / sizeBlock
	n := min(sizeBlock, w.cfg.Hosts-block*sizeBlock)
	rank := 1 + permute(w.root.named("sizes").at(block), i%sizeBlock, n)
	share := zipf(rank) / w.harmonic[n]
	return max(1, int(math.Round(share*float64(n)*float64(w.cfg.PagesPerHost))))
}

func (w *Web) hostKey(i int) key          { return w.root.named("host").at(i) }
func (w *Web) pageKey(host, page int) key { return w.hostKey(host).at(page) }

// Locate returns the host and path of a canonical URL, if the host is in the web.
func (w *Web) Locate(url string) (host int, path string, ok bool) {
	rest, found := strings.CutPrefix(url, "http://")
	i := strings.IndexByte(rest, '/')
	if !found || i < 0 {
		return 0, "", false
	}
	host, ok = w.HostIndex(rest[:i])
	return host, rest[i:], ok
}

package simweb

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/stages/simweb/faults"
	"golang.org/x/net/publicsuffix"
)

// ErrConfig means that a Config is invalid. The error's text names the field and the allowed
// values.
var ErrConfig = errors.New("not a usable simweb config")

// Config describes a Web. Webs with equal Configs are equal.
type Config struct {
	Seed         uint64
	Hosts        int // number of hosts, at least 1
	PagesPerHost int // mean number of pages per host, at least 1; sizes follow Zipf's law

	// These are shares of a host's pages, from 0 to 1, and together at most 0.9. The home page is
	// always an ordinary page.
	FaultShare float64 // share of pages that have a fault, such as a redirect
	ExactShare float64 // share of pages that are copies of another page
	NearShare  float64 // share of pages that are near copies of another page
	ShortShare float64 // share of pages that have fewer than 50 words
	ChainShare float64 // probability that a block of 16 pages contains a chain of 4 near copies

	// SeedShare is the share of a host's pages, without its home page, that Seeds returns, from 0
	// to 1.
	SeedShare float64

	// Faults are the classes of faults that pages may have.
	Faults faults.Class
	// Without is a list of names of faults. No page has a fault of this list.
	Without []string
	// Robots makes hosts have different robots.txt files. Without it, every host allows everything.
	Robots bool

	CrawlDelay time.Duration // Crawl-delay in the robots.txt of some hosts; 0 for none
	RetryAfter time.Duration // Retry-After of 429 and 503 responses, in whole seconds; 0 for none
	SlowDelay  time.Duration // pause before a slow response, and between the pieces of a dripping response
	LargeBody  int           // size of the large document in bytes

	// Topics is the number of topics. Pages link to pages of their own topic more often than to others (see
	// Web.Topic). 0 means a web without topics.
	Topics int

	// PrivateSuffix, if not empty, is a suffix such as github.io: each host directly below the
	// suffix is a domain of its own. Some hosts of the web have names below the suffix. Hosts with
	// these names may really exist, so a crawl of such a web must use a connect-to rule that covers
	// all hosts.
	PrivateSuffix string
}

// Default returns a web of 20 hosts and about 2,000 pages with quick faults.
func Default() Config {
	return Config{
		Seed: 1, Hosts: 20, PagesPerHost: 100,
		FaultShare: 0.05, ExactShare: 0.03, NearShare: 0.03, ShortShare: 0.05, ChainShare: 0.3,
		SeedShare: 0.4,
		Faults:    faults.Quick,
		Robots:    true,

		CrawlDelay: 500 * time.Millisecond,
		RetryAfter: time.Second,
		SlowDelay:  300 * time.Millisecond,
		LargeBody:  6 << 20,
	}
}

// maxHosts and maxPages keep host and page numbers within an int on every platform.
const (
	maxHosts = 1 << 30
	maxPages = 1 << 24
)

// Validate returns an error for the first invalid field.
func (c *Config) Validate() error {
	if c.Hosts < 1 || c.Hosts > maxHosts {
		return fmt.Errorf("Hosts %d: want 1 to %d: %w", c.Hosts, maxHosts, ErrConfig)
	}
	if c.PagesPerHost < 1 || c.PagesPerHost > maxPages {
		return fmt.Errorf("PagesPerHost %d: want 1 to %d: %w", c.PagesPerHost, maxPages, ErrConfig)
	}
	for _, s := range []struct {
		name  string
		share float64
	}{
		{"FaultShare", c.FaultShare}, {"ExactShare", c.ExactShare}, {"NearShare", c.NearShare},
		{"ShortShare", c.ShortShare}, {"ChainShare", c.ChainShare}, {"SeedShare", c.SeedShare},
		{"FaultShare + ExactShare + NearShare + ShortShare + 0.1", c.FaultShare + c.ExactShare + c.NearShare + c.ShortShare + 0.1},
	} {
		if !(s.share >= 0 && s.share <= 1+1e-9) { // the condition also refuses NaN
			return fmt.Errorf("%s %v: want 0 to 1: %w", s.name, s.share, ErrConfig)
		}
	}
	for _, d := range []struct {
		name string
		d    time.Duration
	}{{"CrawlDelay", c.CrawlDelay}, {"RetryAfter", c.RetryAfter}, {"SlowDelay", c.SlowDelay}} {
		if d.d < 0 {
			return fmt.Errorf("%s %v: want 0 or more: %w", d.name, d.d, ErrConfig)
		}
	}
	if c.Topics < 0 || c.Topics > 1000 {
		return fmt.Errorf("number of Topics %d: want 0 to 1000: %w", c.Topics, ErrConfig)
	}
	if c.RetryAfter%time.Second != 0 {
		return fmt.Errorf("RetryAfter %v: want whole seconds, because the header Retry-After counts seconds: %w", c.RetryAfter, ErrConfig)
	}
	if c.LargeBody < 0 || c.LargeBody > 1<<30 {
		return fmt.Errorf("LargeBody %d: want 0 to %d bytes: %w", c.LargeBody, 1<<30, ErrConfig)
	}
	if c.FaultShare > 0 && len(c.pageFaults()) == 0 {
		return fmt.Errorf("FaultShare %v: Faults has no class: %w", c.FaultShare, ErrConfig)
	}
	if s := c.PrivateSuffix; s != "" {
		if got, _ := publicsuffix.PublicSuffix("h." + s); got != s || s != strings.ToLower(s) {
			return fmt.Errorf("PrivateSuffix %q: want a public suffix such as \"github.io\": %w", s, ErrConfig)
		}
	}
	return nil
}

// pageFaults returns the faults that pages may have.
func (c *Config) pageFaults() []*faults.Fault {
	return slices.DeleteFunc(faults.InClasses(c.Faults), func(f *faults.Fault) bool { return slices.Contains(c.Without, f.Name) })
}

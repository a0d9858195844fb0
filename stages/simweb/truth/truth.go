// Package truth computes the correct result of a crawl of a synthetic web.
//
// Compute computes a Truth from a simweb.Web and a Config. A Truth has the rows of every
// round by the rules below. The generator knows the content of all pages, so package truth fetches
// and parses nothing. Package truth uses no code of the crawler's stages. CheckLog finds requests
// in a server's log that no polite crawler sends.
//
// # The rules of a crawl
//
//   - A planned URL is robots_unreachable if its host's robots.txt responds with 5xx, and
//     robots_denied if a rule denies it. 4xx means that there are no rules.
//   - The crawl follows at most maxRedirects redirects, within the domain. The crawl checks each
//     hop in this order. A Location that names no http or https URL is a protocol_error. A URL
//     already in the chain is redirect_limit. Another domain, or a target that is planned in this
//     round, is redirected. A hop beyond maxRedirects is redirect_limit. After these checks, the
//     robots.txt of the target's host decides.
//   - final_url is the URL of the last response, and http_status is the status of that response.
//     final_url and http_status are empty if there was no response. If a URL is denied before its
//     first request, its final_url and http_status are empty. If a URL is denied at a later hop, it
//     has the final_url and http_status of the hop before.
//   - pages.url is the final URL; pages.depth is the depth of the planned URL.
//   - Links are recorded in document order, but only http and https links. A meta robots nofollow
//     makes all links of a page nofollow.
//   - The next round plans every target of a followed kind that at least one link of the round
//     names without nofollow. Planned targets include the targets of redirected URLs, and redirect
//     hops that were denied or gave no response. Planned targets exclude URLs that were planned
//     before, and final URLs. The depth of a target is one more than the lowest depth of the pages
//     with such a link to it. Any other target is skipped with the first reason that applies:
//     nofollow (all links to the target are nofollow), out_of_scope, depth.
//   - Duplicates are the connected components of the round's pages and of the
//     representatives of earlier rounds. Two pages are connected if their text digests are
//     equal, or if both texts have at least minWords words and their Hamming distance is
//     at most maxDistance. A page without text is in no cluster. Pages of earlier rounds
//     are not compared with each other.
//
// Package truth imports only simweb, faults and formats packages.
package truth

import (
	"errors"
	"fmt"
	"slices"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages/simweb"
)

// ErrConfig means that a Config is invalid. The text of the error names the field.
var ErrConfig = errors.New("not a usable truth config")

// These are the defaults of crawlbatch. By default crawlbatch follows schema.DefaultFollowed within
// planned domains.
const (
	MaxBody      = 5 << 20 // number of bytes of a document that are kept
	maxRedirects = 5
	minWords     = 50 // least number of words of a text that can be a near duplicate
	maxDistance  = 3  // largest distance of near duplicates, in bits
)

// Config describes the crawl whose result is computed.
type Config struct {
	Seeds       []string // canonical URLs of the seeds; nil means the seeds of the web
	Rounds      int
	MaxDepth    int32
	StripParams []string
}

// Default returns a crawl of two rounds with the defaults of crawlbatch.
func Default() Config {
	return Config{Rounds: 2, MaxDepth: 15, StripParams: []string{"utm_*", "fbclid", "gclid", "ref"}}
}

// Truth is the result of a correct crawl, round by round.
type Truth struct{ Rounds []Round }

// Round is the truth of one round. All lists are sorted by URL. Links are sorted by source, then by
// position in the page. Clusters are sorted by first member.
type Round struct {
	Fetches   []Fetch   // outcomes, one for each planned URL
	Pages     []Page    // pages, one for each document
	Links     []Link    // links of the pages
	Redirects []Link    // redirects of planned URLs that the crawl did not follow; the frontier decides about the targets
	Clusters  []Cluster // clusters of duplicates
	Next      []Planned // URLs of the next round
	Skips     []Skip    // URLs that were found but not planned
}

// Planned is a URL that a round plans.
type Planned struct {
	URL   string
	Depth int32
}

// Fetch is the result of a planned URL. The fields are columns of fetches.
type Fetch struct {
	URL, Host, Domain string
	Outcome           schema.Outcome
	HTTPStatus        int16
	RobotsAllowed     *bool // verdict on the planned URL; nil if robots.txt was unreachable
	RobotsRule        string
	Depth             int32
	Truncated         string
	RedirectTarget    string
	Redirects         int32
	FinalURL          string
	Fault             string // name of the first fault on the way, or ""
}

// Page is a document. The fields are columns of pages, but Main is a column of the dataset text.
type Page struct {
	URL, PlannedURL string
	Depth           int32
	ETag            string

	// TextKnown marks that every crawler finds the same text and links. If TextKnown is false,
	// these depend on how a crawler repairs the page. The fields below are then empty, and the
	// page's links are not listed.
	TextKnown                            bool
	Title, Description, Keywords, Author string
	Language                             string // language in ISO-639-3
	CanonicalURL                         string
	Robots                               string
	Indexable                            bool
	Outlinks                             int32
	WordCount                            int32  // number of words between white space
	Main                                 string // main text, with one block per line
	TextDigest                           string // base-32 SHA-1 of the main text, in lower case and with single spaces
	SimHash                              uint64
}

// Link is an edge. The fields are columns of links.
type Link struct {
	Source, Target string
	Anchor, Rel    string
	Kind           schema.LinkKind
	Nofollow       bool
	Position       string
	Hreflang       string
	Ordinal        int32
}

// Cluster is a set of duplicates.
type Cluster struct {
	Representative string
	Earlier        int // earlier round of the representative; -1 if the representative is of this round
	Members        []Member
}

// Member is a page of this round in a cluster.
type Member struct {
	URL      string
	Kind     schema.DuplicateKind
	Distance int32 // distance between the fingerprints of the member and the representative, in bits
}

// Skip is a URL that was found but not planned.
type Skip struct {
	URL    string
	Reason schema.SkipReason
	Depth  int32
}

// Compute computes the truth of a crawl of the web. All results are in memory, and each page is
// compared with all other pages, so webs must be small.
func Compute(web *simweb.Web, cfg Config) (*Truth, error) {
	canonicalizer, err := urlkey.New(cfg.StripParams)
	if err != nil {
		return nil, fmt.Errorf("simweb: truth config: StripParams: %v: %w", err, ErrConfig)
	}
	if cfg.Rounds < 1 {
		return nil, fmt.Errorf("simweb: truth config: Rounds %d: want at least 1: %w", cfg.Rounds, ErrConfig)
	}
	c := &crawl{web: web, cfg: cfg, seen: make(map[string]bool), domains: make(map[string]bool)}
	c.canonical = func(url string) (string, bool) {
		k, err := canonicalizer.Canonical(url, "")
		return k.URL, err == nil
	}
	var plan []Planned
	for _, url := range c.seeds() {
		k, err := urlkey.KeyOf(url)
		if err != nil {
			return nil, fmt.Errorf("simweb: truth config: Seeds: %v: %w", err, ErrConfig)
		}
		c.domains[k.Domain] = true
		plan = append(plan, Planned{URL: url})
	}
	t := new(Truth)
	for range cfg.Rounds {
		r, err := c.round(plan)
		if err != nil {
			return nil, err
		}
		t.Rounds = append(t.Rounds, *r)
		plan = r.Next
	}
	return t, nil
}

// seeds returns the sorted seeds without duplicates.
func (c *crawl) seeds() []string {
	seeds := slices.Clone(c.cfg.Seeds)
	if seeds == nil {
		seeds = slices.Collect(c.web.Seeds())
	}
	slices.Sort(seeds)
	return slices.Compact(seeds)
}

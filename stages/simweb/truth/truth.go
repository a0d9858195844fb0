// Package truth computes the correct result of a crawl of a synthetic web.
//
// Compute computes a Truth from a simweb.Web and a Config: the rows of every round, by the rules
// below. The generator knows the content of all pages, so package truth fetches and parses nothing,
// and uses no code of the crawler's stages. CheckLog finds requests in a server's log that no
// polite crawler sends.
//
// # The rules of a crawl
//
//   - A planned URL is robots_unreachable if its host's robots.txt responds with 5xx, and
//     robots_denied if a rule denies it. A 4xx response means that there are no rules.
//   - The crawl follows at most maxRedirects redirects, within the domain. It checks each hop in
//     this order. A Location that names no http or https URL is a protocol_error. A URL already in
//     the chain is redirect_limit. Another domain, or a target that is planned in this round, is
//     redirected. A hop beyond maxRedirects is redirect_limit. Finally the robots.txt of the
//     target's host decides.
//   - final_url and http_status belong to the last response. They are empty if there was none, for
//     example because the URL was denied before its first request. If a later hop is denied, they
//     belong to the hop before it.
//   - pages.url is the final URL; pages.depth is the depth of the planned URL.
//   - Only http and https links are recorded, in document order. A meta robots nofollow makes all
//     links of a page nofollow.
//   - The targets of a round are the targets of its links of followed kinds, the targets of its
//     redirected URLs, and redirect hops that were denied or gave no response. URLs that were planned
//     before, and URLs of pages, are no targets. The depth of a target is one more than the lowest
//     depth of the pages with a followed link to it. A target is skipped for the first reason that
//     applies: nofollow (all links to it are nofollow), out_of_scope, depth. The next round plans all
//     other targets.
//   - With Config.Sitemaps, the first round that asks a host for robots.txt also fetches the sitemaps that
//     it names. Their entries are targets like those of links on seeds. Sitemaps are no pages, and have
//     no outcome.
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

// ErrConfig means that a Config is invalid. The error's text names the field.
var ErrConfig = errors.New("not a usable truth config")

// These are the defaults of crawlbatch. By default, crawlbatch also follows links of the kinds in
// schema.DefaultFollowed within planned domains.
const (
	MaxBody      = 5 << 20 // number of bytes of a document that are kept
	maxRedirects = 5
	minWords     = 50 // least number of words in a near duplicate
	maxDistance  = 3  // largest distance of near duplicates, in bits
)

// Config describes the crawl whose result is computed.
type Config struct {
	Seeds       []string // canonical URLs of the seeds; nil means the seeds of the web
	Rounds      int
	MaxDepth    int32
	StripParams []string
	Sitemaps    bool // whether the crawl fetches the sitemaps that robots.txt names
}

// Default returns a crawl of two rounds with the defaults of crawlbatch.
func Default() Config {
	return Config{Rounds: 2, MaxDepth: 15, StripParams: []string{"utm_*", "fbclid", "gclid"}}
}

// Truth is the result of a correct crawl, round by round.
type Truth struct{ Rounds []Round }

// Round is the truth of one round. All lists are sorted by URL. Links are sorted by source and
// position in the page, clusters by their first member.
type Round struct {
	Fetches   []Fetch   // outcomes, one for each planned URL
	Pages     []Page    // pages, one for each document
	Links     []Link    // links of the pages
	Redirects []Link    // redirects of planned URLs that the crawl did not follow; the frontier decides about their targets
	Clusters  []Cluster // clusters of duplicates
	Next      []Planned // URLs of the next round
	Skips     []Skip    // URLs that were found but not planned
}

// Planned is a URL that a round plans.
type Planned struct {
	URL   string
	Depth int32
}

// Fetch is the result of a planned URL. Its fields are columns of fetches.
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

// Page is a document. Its fields are columns of pages, except Main, a column of the text dataset.
type Page struct {
	URL, PlannedURL string
	Depth           int32
	ETag            string

	// TextKnown is true if every correct crawler finds the same text and links. If it is false, the
	// text and links depend on how a crawler repairs the page, so the fields below are empty and
	// the page's links are not listed.
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

// Link is an edge. Its fields are columns of links.
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
	Earlier        int // round of the representative if that is an earlier round; otherwise -1
	Members        []Member
}

// Member is a page of this round in a cluster.
type Member struct {
	URL      string
	Kind     schema.DuplicateKind
	Distance int32 // distance between the fingerprints of the member and of the representative, in bits
}

// Skip is a URL that was found but not planned.
type Skip struct {
	URL    string
	Reason schema.SkipReason
	Depth  int32
}

// Compute computes the truth of a crawl of the web. It keeps all results in memory and compares all
// pages with each other, so the web must be small.
func Compute(web *simweb.Web, cfg Config) (*Truth, error) {
	canonicalizer, err := urlkey.New(cfg.StripParams)
	if err != nil {
		return nil, fmt.Errorf("simweb: truth config: StripParams: %v: %w", err, ErrConfig)
	}
	if cfg.Rounds < 1 {
		return nil, fmt.Errorf("simweb: truth config: Rounds %d: want at least 1: %w", cfg.Rounds, ErrConfig)
	}
	c := &crawl{web: web, cfg: cfg, seen: make(map[string]bool), domains: make(map[string]bool), hosts: make(map[int]bool)}
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

package simweb

import (
	"errors"
	"fmt"
	"slices"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// ErrTruth: a TruthConfig cannot be used; the error names the field.
var ErrTruth = errors.New("not a usable truth config")

// Follow says whose links the frontier follows.
type Follow string

// The values of frontier.follow.
const (
	FollowNone   Follow = "none"
	FollowHost   Follow = "host"   // hosts that were planned
	FollowDomain Follow = "domain" // domains that were planned
	FollowAny    Follow = "any"
)

// TruthConfig is the crawl whose results Truth foretells.
type TruthConfig struct {
	Seeds        []string // canonical URLs; nil: those of the web
	Rounds       int
	Follow       Follow
	MaxDepth     int32
	MaxRedirects int
	MaxBody      int64 // bytes of a document that are kept
	StripParams  []string
	Kinds        []schema.LinkKind // whose targets are followed
	MinWords     int               // of a text that takes part in near duplicates
	MaxDistance  int               // bits

	// Better orders the pages of a cluster: the first is its representative, unless
	// an earlier round has one; of several, the oldest. nil: pages that name no other
	// as canonical, then the shorter URL, then the lesser one.
	Better func(a, b *Page) int
}

// DefaultTruth is a crawl of two rounds with the defaults of crawlbatch.
func DefaultTruth() TruthConfig {
	return TruthConfig{
		Rounds: 2, Follow: FollowDomain, MaxDepth: 15, MaxRedirects: 5, MaxBody: 5 << 20,
		StripParams: []string{"utm_*", "fbclid", "gclid", "ref"},
		Kinds:       schema.DefaultFollowed,
		MinWords:    50, MaxDistance: 3,
	}
}

// Truth is what a correct crawl finds, round by round.
type Truth struct{ Rounds []Round }

// Round is the truth of one round. All lists are sorted by URL (links: source,
// then place in the page; clusters: first member).
type Round struct {
	Fetches   []Fetch   // one for each planned URL
	Pages     []Page    // one for each document
	Links     []Link    // of the pages
	Redirects []Link    // from a planned URL to the target that is left to the frontier
	Clusters  []Cluster // of duplicates
	Next      []Planned // what the next round plans
	Skips     []Skip    // what was found and is not planned
}

// Planned is a URL that a round plans.
type Planned struct {
	URL   string
	Depth int32
}

// Fetch is what becomes of a planned URL. The fields are the columns of fetches.
type Fetch struct {
	URL, Host, Domain string
	Outcome           schema.Outcome
	HTTPStatus        int16
	RobotsAllowed     *bool // verdict on the planned URL; nil where robots.txt was unreachable
	RobotsRule        string
	Depth             int32
	Truncated         string
	RedirectTarget    string
	Redirects         int32
	FinalURL          string
	Fault             string // name of the fault that was met first, "" if none
}

// Page is a document. The fields are the columns of pages, and Main that of text.
type Page struct {
	URL, PlannedURL string
	Depth           int32
	ETag            string

	// TextKnown says that the fields below are certain. They are not, and left
	// empty, where what the page says depends on how a crawler mends what is
	// broken; the links of such a page are not listed.
	TextKnown                            bool
	Title, Description, Keywords, Author string
	Language                             string // ISO-639-3
	CanonicalURL                         string
	Robots                               string
	Indexable                            bool
	Outlinks                             int32
	WordCount                            int32  // words between white space
	Main                                 string // blocks as lines
	TextDigest                           string // SHA-1, base 32, of Main in lower case with white space folded to single spaces
	SimHash                              uint64
}

// Link is an edge. The fields are the columns of links.
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
	Earlier        int // round of the representative, -1 if it is this round
	Members        []Member
}

// Member is a page of the round in a cluster.
type Member struct {
	URL      string
	Kind     schema.DuplicateKind
	Distance int32 // to the representative
}

// Skip is a URL that was found and not planned.
type Skip struct {
	URL    string
	Reason schema.SkipReason
	Depth  int32
}

// Truth walks the web as a crawl of the config would, by the rules in the package
// comment, on what the generator knows: nothing is fetched or parsed, and no code
// of the crawler's stages takes part. It holds all results in memory and compares
// all pages with all, so it is for small webs.
func (w *Web) Truth(cfg TruthConfig) (*Truth, error) {
	canonicalizer, err := urlkey.New(cfg.StripParams)
	if err != nil {
		return nil, fmt.Errorf("simweb: truth config: StripParams: %v: %w", err, ErrTruth)
	}
	switch cfg.Follow {
	case FollowNone, FollowHost, FollowDomain, FollowAny:
	default:
		return nil, fmt.Errorf("simweb: truth config: Follow %q: want none, host, domain or any: %w", cfg.Follow, ErrTruth)
	}
	if cfg.Rounds < 1 {
		return nil, fmt.Errorf("simweb: truth config: Rounds %d: want at least 1: %w", cfg.Rounds, ErrTruth)
	}
	if cfg.Better == nil {
		cfg.Better = better
	}
	c := &crawl{web: w, cfg: cfg, known: make(map[string]bool), hosts: make(map[string]bool), domains: make(map[string]bool)}
	c.canonical = func(url string) (string, bool) {
		k, err := canonicalizer.Canonical(url, "")
		return k.URL, err == nil
	}
	var plan []Planned
	for _, url := range c.seeds() {
		k, err := urlkey.KeyOf(url)
		if err != nil {
			return nil, fmt.Errorf("simweb: truth config: Seeds: %v: %w", err, ErrTruth)
		}
		c.hosts[k.Host], c.domains[k.Domain] = true, true
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

// seeds gives the seeds, sorted, each once.
func (c *crawl) seeds() []string {
	seeds := slices.Clone(c.cfg.Seeds)
	if seeds == nil {
		seeds = slices.Collect(c.web.Seeds())
	}
	slices.Sort(seeds)
	return slices.Compact(seeds)
}

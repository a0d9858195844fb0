// Package config reads the config file of crawlbatch. One table of keys gives the defaults, the
// checks, the flags, the frozen keys of crawl.json, and the reference.
//
// It reads YAML and the environment, and returns a checked Config. An error is one line, which
// names the file, the line, the key and the allowed values. The package imports formats packages
// only. Package jobs/worker turns sections of a Config into the stages' own configs.
package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/focus"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/priority"
	"crawlbatch.io/crawlbatch/formats/recrawl"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// Config holds the values of all keys. The table documents every key.
type Config struct {
	UserAgent  string     `yaml:"user_agent"`
	Politeness Politeness `yaml:"politeness"`
	Fetch      Fetch      `yaml:"fetch"`
	Parse      Parse      `yaml:"parse"`
	Plan       Plan       `yaml:"plan"`
	Dedup      Dedup      `yaml:"dedup"`
	Frontier   Frontier   `yaml:"frontier"`
	Store      Store      `yaml:"store"`
	Retention  Retention  `yaml:"retention"`
	Prices     Prices     `yaml:"prices"`
	Kubernetes Kubernetes `yaml:"kubernetes"`

	references []unexpanded      // values that contain ${VAR} in the file
	from       map[string]string // source of each key's value; no entry for a default
}

// Politeness limits the requests to each host.
type Politeness struct {
	Delay           Duration            `yaml:"delay"`
	InFlightPerHost int                 `yaml:"in_flight_per_host"`
	PerAddressDelay *Duration           `yaml:"per_address_delay,omitempty"`
	SlowFactor      float64             `yaml:"slow_factor"`
	RobotsTTL       Duration            `yaml:"robots_ttl"`
	Classes         map[string]Duration `yaml:"classes,omitempty"`
	Domains         map[string]Domain   `yaml:"domains,omitempty"`
	// Stops holds the stops of the crawl's ledger. No config file can change them.
	Stops *manifest.Stops `yaml:"-"`
}

// Domain overrides politeness for one registered domain.
type Domain struct {
	Class           string    `yaml:"class,omitempty"`
	Delay           *Duration `yaml:"delay,omitempty"`
	InFlightPerHost int       `yaml:"in_flight_per_host,omitempty"`
	Stop            string    `yaml:"stop,omitempty"`
}

// Fetch holds the limits of a fetch task and of its requests.
type Fetch struct {
	Slots                int           `yaml:"slots"`
	Timeout              Timeout       `yaml:"timeout"`
	MaxBody              Bytes         `yaml:"max_body"`
	MaxSitemap           Bytes         `yaml:"max_sitemap"`
	MaxRedirects         int           `yaml:"max_redirects"`
	Sitemaps             string        `yaml:"sitemaps"`
	SitemapLimits        SitemapLimits `yaml:"sitemap_limits"`
	Types                Types         `yaml:"types"`
	Retries              Retries       `yaml:"retries"`
	Pauses               Pauses        `yaml:"pauses"`
	Window               Duration      `yaml:"window"`
	CrawlWindow          Duration      `yaml:"crawl_window"`
	Certificates         string        `yaml:"certificates"`
	Proxy                string        `yaml:"proxy"`
	ProxyFilters         bool          `yaml:"proxy_filters"`
	Resolvers            []string      `yaml:"resolvers,omitempty"`
	Checkpoint           Checkpoint    `yaml:"checkpoint"`
	ConnectTo            []string      `yaml:"connect_to,omitempty"`
	AllowPrivateNetworks bool          `yaml:"allow_private_networks"`
	NAT64Prefixes        []string      `yaml:"nat64_prefixes,omitempty"`
}

// The values of Fetch.Sitemaps.
const (
	SitemapsOfRobots  = "robots"  // the crawl fetches the sitemaps that robots.txt names
	SitemapsIfPlanned = "planned" // the crawl fetches sitemaps only if sources, links or index files name them as URLs
	SitemapsIgnored   = "none"    // the crawl does not follow entries of sitemaps and feeds
)

// The values of Fetch.Certificates.
const (
	CertificatesTolerant = "tolerant" // pages of servers whose certificate is not valid are taken and marked
	CertificatesValid    = "valid"    // such pages end as tls_error
)

// SitemapLimits bounds the sitemaps that the crawl fetches because robots.txt names them. The
// bounds apply to each host and to each registered domain.
type SitemapLimits struct {
	Files int   `yaml:"files"`
	URLs  int   `yaml:"urls"`
	Bytes Bytes `yaml:"bytes"`
}

// Types says which documents are stored, by detected media type.
type Types struct {
	Store []string `yaml:"store,omitempty"`
	Skip  []string `yaml:"skip,omitempty"`
}

// Timeout limits the time of one request.
type Timeout struct {
	Connect   Duration `yaml:"connect"`
	FirstByte Duration `yaml:"first_byte"`
	Total     Duration `yaml:"total"`
	Robots    Duration `yaml:"robots"`
}

// Retries holds the number of retries for each class of failure.
type Retries struct {
	Timeout     int `yaml:"timeout"`
	ServerError int `yaml:"server_error"`
	RateLimited int `yaml:"rate_limited"`
	Robots      int `yaml:"robots"`
}

// Pauses holds the pauses before retries, without their random part.
type Pauses struct {
	RateLimited Duration `yaml:"rate_limited"`
	Timeout     Duration `yaml:"timeout"`
	ServerError Duration `yaml:"server_error"`
	DNS         Duration `yaml:"dns"`
	Breaker     Duration `yaml:"breaker"`
}

// Checkpoint says how often a fetch task saves its work and how long its lease lasts.
type Checkpoint struct {
	Every Duration `yaml:"every"`
	Bytes Bytes    `yaml:"bytes"`
	Lease Duration `yaml:"lease"`
}

// Parse says what is extracted from a page.
type Parse struct {
	MaxLinks  int    `yaml:"max_links"`
	NoArchive string `yaml:"noarchive"`
}

// Withholds reports whether the datasets have no words of a document that says noarchive.
func (p *Parse) Withholds() bool { return p.NoArchive != NoArchiveText }

// Values of parse.noarchive and store.noarchive: what is kept of a document that says noarchive.
const (
	NoArchiveCounts = "counts" // no words but the title
	NoArchiveText   = "text"   // its text and all other columns
	NoArchiveHead   = "head"   // no byte of its body
	NoArchiveKeep   = "keep"   // the whole response
)

// Plan limits which URLs are planned.
type Plan struct {
	PartitionURLs int              `yaml:"partition_urls"`
	BucketURLs    int              `yaml:"bucket_urls"`
	Budgets       Budgets          `yaml:"budgets"`
	Priority      priority.Weights `yaml:"priority"`
	MaxDepth      int              `yaml:"max_depth"`
	StripParams   []string         `yaml:"strip_params"`
	Canonical     Canonical        `yaml:"canonical"`
	Rewrite       []Rewrite        `yaml:"rewrite,omitempty"`
	Filter        []Filter         `yaml:"filter,omitempty"`
	Scope         Scope            `yaml:"scope"`
	OptOut        string           `yaml:"opt_out,omitempty"`
	History       bool             `yaml:"history"`
	SkipWithin    Duration         `yaml:"skip_within"`
}

// Canonical holds the switches of urlkey.Rules.
type Canonical struct {
	Sessions      bool     `yaml:"sessions"`
	HTTPS         []string `yaml:"https,omitempty"`
	WWW           bool     `yaml:"www"`
	IndexFiles    bool     `yaml:"index_files"`
	TrailingSlash bool     `yaml:"trailing_slash"`
}

// Rewrite is a rule that changes URLs (urlkey.Rewrite).
type Rewrite struct {
	Name    string `yaml:"name,omitempty"`
	Match   string `yaml:"match"`
	Replace string `yaml:"replace"`
	Last    bool   `yaml:"last,omitempty"`
}

// Filter is a rule that decides whether a URL may be planned.
type Filter struct {
	Name   string `yaml:"name,omitempty"`
	Match  string `yaml:"match"`
	Accept bool   `yaml:"accept,omitempty"`
}

// URLRules returns the rules by which sources and links become canonical URLs.
func (p *Plan) URLRules() urlkey.Rules {
	r := urlkey.Rules{
		Sessions: p.Canonical.Sessions, HTTPS: p.Canonical.HTTPS, WWW: p.Canonical.WWW,
		IndexFiles: p.Canonical.IndexFiles, TrailingSlash: p.Canonical.TrailingSlash,
	}
	for _, w := range p.Rewrite {
		r.Rewrite = append(r.Rewrite, urlkey.Rewrite(w))
	}
	return r
}

// Canonicalizer returns the canonicalizer of sources and links. Its method Plain returns the
// canonicalizer of redirects and documents.
func (p *Plan) Canonicalizer() (*urlkey.Canonicalizer, error) {
	return urlkey.NewWithRules(p.StripParams, p.URLRules())
}

// Budgets limits how many URLs are planned; 0 means no limit.
type Budgets struct {
	Default int            `yaml:"default"`
	PerDay  int            `yaml:"per_day"`
	Total   int            `yaml:"total"`
	Domains map[string]int `yaml:"domains,omitempty"`

	Host           int             `yaml:"host,omitempty"`
	Ranked         int             `yaml:"ranked,omitempty"`
	Address        int             `yaml:"address,omitempty"`
	HostsPerDomain int             `yaml:"hosts_per_domain,omitempty"`
	Patterns       []BudgetPattern `yaml:"patterns,omitempty"`
	Exploration    float64         `yaml:"exploration,omitempty"`
	RateLimited    float64         `yaml:"rate_limited,omitempty"`
}

// BudgetPattern bounds the URLs of each host that match an expression.
type BudgetPattern struct {
	Name  string `yaml:"name,omitempty"`
	Match string `yaml:"match"`
	URLs  int    `yaml:"urls"`
}

// Scope holds URL patterns, in which * matches any characters.
type Scope struct {
	Include []string `yaml:"include,omitempty"`
	Exclude []string `yaml:"exclude,omitempty"`
}

// Dedup says what counts as a near duplicate.
type Dedup struct {
	MaxDistance int `yaml:"max_distance"`
	MinWords    int `yaml:"min_words"`
	Months      int `yaml:"months"`
}

// Frontier says which links are followed, and when URLs are due again.
type Frontier struct {
	Follow  string   `yaml:"follow"`
	Kinds   []string `yaml:"kinds"`
	Recrawl Recrawl  `yaml:"recrawl"`
	Focus   Focus    `yaml:"focus,omitempty"`
	Traps   Traps    `yaml:"traps,omitempty"`
}

// Traps says which URLs are no traps.
type Traps struct {
	Except []string `yaml:"except,omitempty"`
}

// Focus says which found URLs are preferred and kept.
type Focus struct {
	File      string   `yaml:"file,omitempty"` // always empty in a config that was read: its content is in Model
	Model     string   `yaml:"model,omitempty"`
	Points    int      `yaml:"points,omitempty"`
	Threshold *float64 `yaml:"threshold,omitempty"`
}

// Scorer returns the parsed model, or nil if there is none.
func (f *Focus) Scorer() (*focus.Model, error) {
	if f.Model == "" {
		return nil, nil
	}
	return focus.Parse(f.Model)
}

// readFocus replaces frontier.focus.file by the content of the file, because tasks on other machines do not
// have it. given is whether the config that names the file also has a model.
func (c *Config) readFocus(given bool) error {
	f := &c.Frontier.Focus
	if f.File == "" {
		return nil
	}
	const key = "frontier.focus.file"
	if given {
		return &fieldError{key, "is set, and frontier.focus.model, too: give one of them"}
	}
	file, err := os.Open(f.File)
	if err != nil {
		return &fieldError{key, fmt.Sprintf("%q cannot be read: %v", f.File, errors.Unwrap(err))}
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, focus.MaxBytes+1))
	if err != nil {
		return &fieldError{key, fmt.Sprintf("%q cannot be read: %v", f.File, err)}
	}
	model, err := focus.Parse(string(text))
	if err != nil {
		return &fieldError{key, fmt.Sprintf("%q is %v", f.File, err)}
	}
	f.File, f.Model = "", model.String()
	c.note("frontier.focus.model", c.from[key])
	delete(c.from, key)
	return nil
}

// Recrawl holds the times after which URLs are due again.
type Recrawl struct {
	First      Duration `yaml:"first"`
	Min        Duration `yaml:"min"`
	Max        Duration `yaml:"max"`
	RetryAfter Duration `yaml:"retry_after"`
}

// Rule returns the rule of recrawls.
func (r Recrawl) Rule() recrawl.Rule {
	return recrawl.Rule{First: time.Duration(r.First), Min: time.Duration(r.Min), Max: time.Duration(r.Max)}
}

// Store says how S3 objects are stored.
type Store struct {
	SSEKMSKey    string `yaml:"sse_kms_key"`
	StorageClass string `yaml:"storage_class"`
	NoArchive    string `yaml:"noarchive"`
	TakedownKey  string `yaml:"takedown_key,omitempty"`
}

// Retention says how long objects are kept. WorkingDays are days after a crawl's last round was finished. Raw and
// Metadata are months after a crawl's month.
type Retention struct {
	WorkingDays int      `yaml:"working_data_days"`
	Raw         int      `yaml:"raw"`
	Metadata    int      `yaml:"metadata"`
	ColdAfter   Duration `yaml:"cold_after"`
	ColdClass   string   `yaml:"cold_class"`
}

// Prices holds the prices, in dollars, with which `plan` and `status` estimate what a round costs.
type Prices struct {
	Date   string  `yaml:"date"`
	CPU    float64 `yaml:"cpu_hour"`
	Memory float64 `yaml:"memory_gib_hour"`
	Puts   float64 `yaml:"puts_1000"`
	Gets   float64 `yaml:"gets_1000"`
	Stored float64 `yaml:"stored_gb_month"`
}

// Public reports whether a crawl with this config may reach public hosts. It may not if a connect_to
// rule redirects the connections to every host.
func (c *Config) Public() bool {
	for _, r := range c.Fetch.ConnectTo {
		if strings.HasPrefix(r, "::") {
			return false
		}
	}
	return true
}

// FollowedKinds returns the kinds of links whose targets may be planned.
func (c *Config) FollowedKinds() []schema.LinkKind {
	kinds := make([]schema.LinkKind, 0, len(c.Frontier.Kinds))
	for _, name := range c.Frontier.Kinds {
		kind := schema.LinkKind(name)
		if c.Fetch.Sitemaps == SitemapsIgnored && (kind == schema.KindSitemap || kind == schema.KindSitemapIndex) {
			continue
		}
		kinds = append(kinds, kind)
	}
	return kinds
}

func kindNames(kinds []schema.LinkKind) []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	return names
}

// Package config is the one YAML file of crawlbatch: its shape, its defaults,
// how it is read strictly, checked, frozen into crawl.json and compared with a
// file that is given later.
//
// In: YAML bytes and the environment. Out: a checked Config, or an error of one
// line that names the file, the line, the field and what is allowed. It imports
// formats packages only; jobs/worker turns its sections into the stages' own
// configs.
package config

import (
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// Config is the whole file. Default documents every value.
type Config struct {
	// UserAgent is sent with every request; its product token is what
	// robots.txt is asked for. A public crawl needs one that names a contact.
	UserAgent  string     `yaml:"user_agent"`
	Politeness Politeness `yaml:"politeness"`
	Fetch      Fetch      `yaml:"fetch"`
	Parse      Parse      `yaml:"parse"`
	Plan       Plan       `yaml:"plan"`
	Dedup      Dedup      `yaml:"dedup"`
	Frontier   Frontier   `yaml:"frontier"`
	Store      Store      `yaml:"store"`
	Kubernetes Kubernetes `yaml:"kubernetes"`

	references []unexpanded // values that hold ${VAR} in the file
	older      []string     // fields that the text of a frozen config did not know
}

// Politeness says how often a host may be asked.
type Politeness struct {
	Delay           Duration            `yaml:"delay"`                       // least gap between two requests to one host
	InFlightPerHost int                 `yaml:"in_flight_per_host"`          // concurrent requests to one host
	PerAddressDelay *Duration           `yaml:"per_address_delay,omitempty"` // least gap between two requests to one IP address; unset: 200ms, and none for connect_to targets
	SlowFactor      float64             `yaml:"slow_factor"`                 // a slow host's delay grows by this times what its answers take beyond it, to 30s at most; 0: never
	RobotsTTL       Duration            `yaml:"robots_ttl"`                  // how long a robots.txt is believed
	Classes         map[string]Duration `yaml:"classes,omitempty"`           // delay by class of domain
	Domains         map[string]Domain   `yaml:"domains,omitempty"`           // overrides by registered domain
}

// Domain overrides politeness for one registered domain.
type Domain struct {
	Class           string    `yaml:"class,omitempty"`
	Delay           *Duration `yaml:"delay,omitempty"`
	InFlightPerHost int       `yaml:"in_flight_per_host,omitempty"` // 0: as for all
	Stop            string    `yaml:"stop,omitempty"`               // reason; not empty: no more requests
}

// Fetch bounds a fetch task and its requests.
type Fetch struct {
	Slots                int        `yaml:"slots"` // concurrent fetches of one task
	Timeout              Timeout    `yaml:"timeout"`
	MaxBody              Bytes      `yaml:"max_body"`    // longer bodies are cut
	MaxSitemap           Bytes      `yaml:"max_sitemap"` // longer sitemaps are cut, where this is more than max_body
	MaxRedirects         int        `yaml:"max_redirects"`
	Types                Types      `yaml:"types"`
	Retries              Retries    `yaml:"retries"`
	Pauses               Pauses     `yaml:"pauses"`
	Window               Duration   `yaml:"window"`              // of a round's fetch stage
	CrawlWindow          Duration   `yaml:"crawl_window"`        // run starts no further round after it
	Proxy                string     `yaml:"proxy"`               // http://[user:password@]host:port that every request goes through
	Resolvers            []string   `yaml:"resolvers,omitempty"` // name servers, ADDRESS[:PORT], asked in turn in the place of the system's
	Checkpoint           Checkpoint `yaml:"checkpoint"`
	ConnectTo            []string   `yaml:"connect_to,omitempty"` // HOST:PORT:ADDR:PORT as curl's
	AllowPrivateNetworks bool       `yaml:"allow_private_networks"`
}

// Types say which documents are stored, by media type as detected: beyond what the
// parse stage can read, and text. They are media ranges, such as application/pdf, image/*,
// application/*+xml or */*; of all that a type is in the most specific decides.
// Documents that are not stored are recorded with their type (outcome mime_filtered).
type Types struct {
	Store []string `yaml:"store,omitempty"` // stored too
	Skip  []string `yaml:"skip,omitempty"`  // not stored
}

// Timeout bounds one request.
type Timeout struct {
	Connect   Duration `yaml:"connect"`
	FirstByte Duration `yaml:"first_byte"`
	Total     Duration `yaml:"total"`
	Robots    Duration `yaml:"robots"` // of a request for robots.txt, which all URLs of a host wait for
}

// Retries are counts by class of failure.
type Retries struct {
	Timeout     int `yaml:"timeout"`
	ServerError int `yaml:"server_error"`
	RateLimited int `yaml:"rate_limited"`
	Robots      int `yaml:"robots"` // of a robots.txt that none of the others got, minutes later
}

// Pauses are the times before retries, before jitter.
type Pauses struct {
	RateLimited Duration `yaml:"rate_limited"` // of the whole host, doubled for each in a row; Retry-After outdoes it
	Timeout     Duration `yaml:"timeout"`
	ServerError Duration `yaml:"server_error"`
	DNS         Duration `yaml:"dns"`     // of the whole host
	Breaker     Duration `yaml:"breaker"` // of a host that most requests failed at, until it is probed
}

// Checkpoint says how often a fetch task makes its work durable.
type Checkpoint struct {
	Every Duration `yaml:"every"`
	Bytes Bytes    `yaml:"bytes"`
	Lease Duration `yaml:"lease"`
}

// Parse bounds what is taken from a page.
type Parse struct {
	MaxLinks int    `yaml:"max_links"` // a page; the rest is counted only; 0: as the default
	MainText string `yaml:"main_text"` // what chooses the main content: fast or trafilatura
}

// Plan says what is planned.
type Plan struct {
	PartitionURLs int      `yaml:"partition_urls"`
	Budgets       Budgets  `yaml:"budgets"`
	MaxDepth      int      `yaml:"max_depth"`
	StripParams   []string `yaml:"strip_params"`
	Scope         Scope    `yaml:"scope"`
}

// Budgets bound planned URLs; 0 means no bound.
type Budgets struct {
	Default int            `yaml:"default"` // a domain a crawl
	PerDay  int            `yaml:"per_day"` // a round, by its window in days
	Total   int            `yaml:"total"`   // a crawl
	Domains map[string]int `yaml:"domains,omitempty"`
}

// Scope holds URL patterns with * for any characters.
type Scope struct {
	Include []string `yaml:"include,omitempty"`
	Exclude []string `yaml:"exclude,omitempty"`
}

// Dedup says what counts as a near duplicate.
type Dedup struct {
	MaxDistance int `yaml:"max_distance"` // bits
	MinWords    int `yaml:"min_words"`
}

// Frontier says which links are followed.
type Frontier struct {
	Follow string   `yaml:"follow"` // none, host, domain (of planned domains) or any
	Kinds  []string `yaml:"kinds"`  // kinds of links whose targets may be planned, as links.kind names them
}

// Store says how S3 objects are stored.
type Store struct {
	SSEKMSKey    string `yaml:"sse_kms_key"`
	StorageClass string `yaml:"storage_class"`
}

// Default returns the config of an empty file.
func Default() *Config {
	return &Config{
		Politeness: Politeness{
			Delay: Duration(2 * time.Second), InFlightPerHost: 1,
			SlowFactor: 2, RobotsTTL: Duration(24 * time.Hour),
			Classes: map[string]Duration{"ecommerce": Duration(5 * time.Second), "news": Duration(3 * time.Second)},
		},
		Fetch: Fetch{
			Slots:   200,
			Timeout: Timeout{Connect: Duration(10 * time.Second), FirstByte: Duration(15 * time.Second), Total: Duration(30 * time.Second), Robots: Duration(15 * time.Second)},
			MaxBody: 5 << 20, MaxSitemap: 50 << 20, MaxRedirects: 5,
			Retries: Retries{Timeout: 1, ServerError: 2, RateLimited: 3, Robots: 2},
			Pauses: Pauses{RateLimited: Duration(30 * time.Second), Timeout: Duration(15 * time.Second),
				ServerError: Duration(10 * time.Second), DNS: Duration(time.Minute), Breaker: Duration(2 * time.Minute)},
			Window: Duration(20 * time.Hour), CrawlWindow: Duration(720 * time.Hour),
			Checkpoint: Checkpoint{Every: Duration(time.Minute), Bytes: 256 << 20, Lease: Duration(3 * time.Minute)},
		},
		Parse: Parse{MaxLinks: 10000, MainText: "fast"},
		Plan: Plan{
			PartitionURLs: 50000, Budgets: Budgets{Default: 10000}, MaxDepth: 15,
			StripParams: []string{"utm_*", "fbclid", "gclid", "ref"},
		},
		Dedup:      Dedup{MaxDistance: 3, MinWords: 50},
		Frontier:   Frontier{Follow: "domain", Kinds: kindNames(schema.DefaultFollowed)},
		Kubernetes: defaultKubernetes(),
	}
}

// Public reports whether a crawl under this config may reach hosts of others:
// whether some host is not covered by a connect_to rule with an empty host part.
func (c *Config) Public() bool {
	for _, r := range c.Fetch.ConnectTo {
		if strings.HasPrefix(r, "::") {
			return false
		}
	}
	return true
}

// FollowedKinds are the link kinds whose targets may be planned.
func (c *Config) FollowedKinds() []schema.LinkKind {
	kinds := make([]schema.LinkKind, len(c.Frontier.Kinds))
	for i, name := range c.Frontier.Kinds {
		kinds[i] = schema.LinkKind(name)
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

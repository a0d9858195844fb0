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

	"crawlbatch.io/crawlbatch/formats/schema"
)

// Config is the whole file. Default documents every value.
type Config struct {
	UserAgent  string     `yaml:"user_agent"`
	Politeness Politeness `yaml:"politeness"`
	Fetch      Fetch      `yaml:"fetch"`
	Parse      Parse      `yaml:"parse"`
	Plan       Plan       `yaml:"plan"`
	Dedup      Dedup      `yaml:"dedup"`
	Frontier   Frontier   `yaml:"frontier"`
	Store      Store      `yaml:"store"`
	Kubernetes Kubernetes `yaml:"kubernetes"`

	references []unexpanded      // values that hold ${VAR} in the file
	older      []string          // keys that the text of a frozen config did not know
	from       map[string]string // where the value of a key comes from; none: the default
}

// Politeness says how often a host may be asked.
type Politeness struct {
	Delay           Duration            `yaml:"delay"`
	InFlightPerHost int                 `yaml:"in_flight_per_host"`
	PerAddressDelay *Duration           `yaml:"per_address_delay,omitempty"`
	SlowFactor      float64             `yaml:"slow_factor"`
	RobotsTTL       Duration            `yaml:"robots_ttl"`
	Classes         map[string]Duration `yaml:"classes,omitempty"`
	Domains         map[string]Domain   `yaml:"domains,omitempty"`
}

// Domain overrides politeness for one registered domain.
type Domain struct {
	Class           string    `yaml:"class,omitempty"`
	Delay           *Duration `yaml:"delay,omitempty"`
	InFlightPerHost int       `yaml:"in_flight_per_host,omitempty"`
	Stop            string    `yaml:"stop,omitempty"`
}

// Fetch bounds a fetch task and its requests.
type Fetch struct {
	Slots                int        `yaml:"slots"`
	Timeout              Timeout    `yaml:"timeout"`
	MaxBody              Bytes      `yaml:"max_body"`
	MaxSitemap           Bytes      `yaml:"max_sitemap"`
	MaxRedirects         int        `yaml:"max_redirects"`
	Types                Types      `yaml:"types"`
	Retries              Retries    `yaml:"retries"`
	Pauses               Pauses     `yaml:"pauses"`
	Window               Duration   `yaml:"window"`
	CrawlWindow          Duration   `yaml:"crawl_window"`
	Proxy                string     `yaml:"proxy"`
	Resolvers            []string   `yaml:"resolvers,omitempty"`
	Checkpoint           Checkpoint `yaml:"checkpoint"`
	ConnectTo            []string   `yaml:"connect_to,omitempty"`
	AllowPrivateNetworks bool       `yaml:"allow_private_networks"`
}

// Types say which documents are stored, by media type as detected: beyond what the
// parse stage can read, and text. They are media ranges, such as application/pdf, image/*,
// application/*+xml or */*; of all that a type is in the most specific decides.
// Documents that are not stored are recorded with their type (outcome mime_filtered).
type Types struct {
	Store []string `yaml:"store,omitempty"`
	Skip  []string `yaml:"skip,omitempty"`
}

// Timeout bounds one request.
type Timeout struct {
	Connect   Duration `yaml:"connect"`
	FirstByte Duration `yaml:"first_byte"`
	Total     Duration `yaml:"total"`
	Robots    Duration `yaml:"robots"`
}

// Retries are counts by class of failure.
type Retries struct {
	Timeout     int `yaml:"timeout"`
	ServerError int `yaml:"server_error"`
	RateLimited int `yaml:"rate_limited"`
	Robots      int `yaml:"robots"`
}

// Pauses are the times before retries, before jitter.
type Pauses struct {
	RateLimited Duration `yaml:"rate_limited"`
	Timeout     Duration `yaml:"timeout"`
	ServerError Duration `yaml:"server_error"`
	DNS         Duration `yaml:"dns"`
	Breaker     Duration `yaml:"breaker"`
}

// Checkpoint says how often a fetch task makes its work durable.
type Checkpoint struct {
	Every Duration `yaml:"every"`
	Bytes Bytes    `yaml:"bytes"`
	Lease Duration `yaml:"lease"`
}

// Parse bounds what is taken from a page.
type Parse struct {
	MaxLinks int    `yaml:"max_links"`
	MainText string `yaml:"main_text"`
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
	Default int            `yaml:"default"`
	PerDay  int            `yaml:"per_day"`
	Total   int            `yaml:"total"`
	Domains map[string]int `yaml:"domains,omitempty"`
}

// Scope holds URL patterns with * for any characters.
type Scope struct {
	Include []string `yaml:"include,omitempty"`
	Exclude []string `yaml:"exclude,omitempty"`
}

// Dedup says what counts as a near duplicate.
type Dedup struct {
	MaxDistance int `yaml:"max_distance"`
	MinWords    int `yaml:"min_words"`
}

// Frontier says which links are followed.
type Frontier struct {
	Follow string   `yaml:"follow"`
	Kinds  []string `yaml:"kinds"`
}

// Store says how S3 objects are stored.
type Store struct {
	SSEKMSKey    string `yaml:"sse_kms_key"`
	StorageClass string `yaml:"storage_class"`
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

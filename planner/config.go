package planner

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/takedown"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/budget"
	"crawlbatch.io/crawlbatch/planner/pace"
	"crawlbatch.io/crawlbatch/planner/pack"
	"crawlbatch.io/crawlbatch/planner/scope"
	"crawlbatch.io/crawlbatch/planner/slowest"
	"crawlbatch.io/crawlbatch/planner/source/listed"
)

var (
	// ErrConfig means that a value of Config is not allowed.
	ErrConfig = scope.ErrConfig
	// ErrNothing means that no URL can be planned: the plan refuses every line of the sources, or
	// no URL of the frontier is due.
	ErrNothing = errors.New("nothing to plan")
)

// Config says which URLs may be planned. It also holds the figures for the prediction of a round's
// time.
type Config struct {
	PartitionURLs int      // largest number of URLs per partition; a larger domain has a partition of its own
	MaxDepth      int      // largest accepted number of links from a listed URL
	StripParams   []string // patterns of query parameters to strip, as urlkey.New takes them
	Rules         urlkey.Rules
	Include       []string // patterns of URLs in scope, as scope.New takes them
	Exclude       []string
	Filters       []scope.Filter
	OptOut        *scope.OptOut     // URLs that must not be requested; nil if there is no list
	Gone          *takedown.Guard   // URLs that were taken down, which no file of the plan may name; nil if there are none
	Stopped       map[string]string // reason for each stopped domain or host; their subdomains are stopped too
	Stops         *manifest.Stops   // hosts and registered domains that people stopped while the crawl ran

	Budget        int            // largest number of URLs per domain and crawl; 0 means no bound
	DomainBudgets map[string]int // budgets of registered domains that replace Budget; 0 means no bound
	RoundURLs     int64          // largest number of URLs per round; 0 means no bound
	CrawlURLs     int64          // largest number of URLs per crawl, with the URLs of earlier rounds; 0 means no bound
	Limits        budget.Limits  // budgets by host

	Delay time.Duration // least gap between two requests to a host
	// Pace returns a host's delay, which replaces Delay, and its limit of requests in flight. If Pace
	// is nil, each host has Delay and one request in flight.
	Pace func(host string) (delay time.Duration, inFlight int)
	// Reach reports whether crawlbatch refuses to connect to a host, because its address is not public, and whether
	// the system's resolver must look up the host's name. It knows only the name. If Reach is nil, no host is counted.
	Reach        func(host string) (refused, named bool)
	AddressDelay time.Duration // least gap between two requests to an address; 0 means that domains at one address may be in different partitions
	Window       time.Duration // time after which a fetch task ends; 0 means no bound
	Service      time.Duration // mean time of one fetch, if no earlier round has observed it
	RobotsTries  time.Duration // time of all tries for a robots.txt that answers 503; 0 means that predictions do not allow for it
	RobotsAgain  time.Duration // the same if the newest round left the host after such answers
	Slots        int           // number of concurrent fetches of a task
	PageBytes    int64         // mean size of a page in bytes, for the prediction

	SkipWithin time.Duration // URLs that were fetched within this time before the plan are refused; 0 means none

	BucketURLs int64 // approximate maximum of URLs per reduce bucket
	Memory     int64 // memory for sorting, in bytes, before rows spill to disk
	Workers    int   // number of goroutines that canonicalize and write

	fewListed   int // arguments of listed.New, which tests change
	listedBytes int64
}

// mostWorkers is the default of Config.Workers if there are more CPUs. Each worker writes a Parquet file, with up to
// table.DefaultRowGroupBytes in memory.
const mostWorkers = 8

// Default returns a Config with every bound at its documented default. Service and PageBytes are
// means of the public web.
func Default() Config {
	return Config{
		PartitionURLs: 500_000, MaxDepth: 15, Budget: 10_000,
		Delay: 2 * time.Second, AddressDelay: 200 * time.Millisecond, Service: 1500 * time.Millisecond, Slots: 200, PageBytes: 100_000,
		BucketURLs: 2_000_000, Memory: 384 << 20, Workers: min(runtime.GOMAXPROCS(0), mostWorkers), fewListed: listed.Few, listedBytes: listed.Bytes,
	}
}

// Scope returns the scope with the filters and the opt-out list. Errors wrap ErrConfig.
func (c *Config) Scope() (*scope.Scope, error) {
	return scope.New(c.Include, c.Exclude, c.Filters, c.OptOut)
}

// check returns an error for the first value that is not allowed.
func (c *Config) check() error {
	for _, v := range []struct {
		name  string
		value int64
		least int64
	}{
		{"partition_urls", int64(c.PartitionURLs), 1}, {"max_depth", int64(c.MaxDepth), 0},
		{"budgets.default", int64(c.Budget), 0}, {"round URLs", c.RoundURLs, 0}, {"budgets.total", c.CrawlURLs, 0},
		{"delay", int64(c.Delay), 0}, {"delay per address", int64(c.AddressDelay), 0}, {"window", int64(c.Window), 0}, {"service time", int64(c.Service), 0}, {"slots", int64(c.Slots), 1}, {"skip_within", int64(c.SkipWithin), 0},
		{"bucket URLs", c.BucketURLs, 1}, {"memory", c.Memory, 1 << 20}, {"workers", int64(c.Workers), 1},
	} {
		if v.value < v.least {
			return fmt.Errorf("%w: %s is %d, it has to be at least %d", ErrConfig, v.name, v.value, v.least)
		}
	}
	return nil
}

// rules is a checked Config with its canonicalizer and scope.
type rules struct {
	Config
	note      func(verb string, n int64, of string) // Request.Note, or a function that does nothing
	canonical *urlkey.Canonicalizer
	scope     *scope.Scope
	budgets   *budget.Rules
	measured  time.Duration // mean time to fetch a URL: Service, or what earlier rounds observed

	unreachable float64 // expected share of hosts whose robots.txt cannot be fetched
	unobserved  float64 // share of the planned hosts that no round has observed
	carries     bool    // whether an earlier round of the crawl passes on the pauses and raised delays of its hosts
}

func (c *Config) rules() (*rules, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	canonical, err := urlkey.NewWithRules(c.StripParams, c.Rules)
	if err != nil {
		return nil, fmt.Errorf("%w: strip_params or rules: %w", ErrConfig, err)
	}
	inScope, err := c.Scope()
	if err != nil {
		return nil, err
	}
	budgets, err := budget.NewRules(c.Limits)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	silent := func(string, int64, string) {}
	return &rules{note: silent, Config: *c, canonical: canonical, scope: inScope, budgets: budgets, measured: c.Service}, nil
}

// budget returns the number of URLs that a crawl may plan from a domain, and whether the domain has a
// budget of its own. A budget of 0 means no bound.
func (r *rules) budget(domain string) (urls int64, own bool) {
	if n, ok := r.DomainBudgets[domain]; ok {
		return int64(n), true
	}
	return int64(r.Budget), false
}

// slowHost predicts the time for the URLs of one host. A host's first request is for robots.txt, so
// its URLs need as many delays as requests.
func (r *rules) slowHost(h *hostCount) slowest.Host {
	delay, inFlight := r.Delay, 1
	if r.Pace != nil {
		delay, inFlight = r.Pace(h.host)
	}
	latency, perURL := r.measured, 1.0
	if h.answered {
		latency = h.latency
	}
	if h.perURL > 0 {
		perURL = h.perURL
	}
	each := max(delay, h.delay, latency/time.Duration(max(inFlight, 1)))
	slow := slowest.Host{Host: h.host, Domain: h.domain, URLs: h.n, New: !h.observed}
	if slow.New {
		slow.Tries = r.RobotsTries
	}
	if h.requests > 0 {
		each = max(delay, h.span/time.Duration(h.requests))
		if h.unreachable {
			longest, limited := max(r.RobotsTries, r.RobotsAgain), r.RobotsAgain
			if !r.carries {
				longest, limited = r.RobotsTries, r.RobotsTries
			}
			slow.Unreachable = min(h.span, longest) // a longer time contains a pause of the crawl
			// Only 429 and 503 raise the delay of a host that answered, but no page.
			if h.delay > delay && h.answered {
				slow.Unreachable = limited
			}
		}
		if r.carries && h.answered && h.latency < pace.SlowFrom && h.delay > each {
			each = pace.Raised(h.delay, each, h.n, h.perURL)
		}
	}
	slow.Each = time.Duration(float64(each) * perURL)
	return slow
}

// tail returns the time of the tries for robots.txt files that cannot be fetched, in seconds, if it is
// likely that so many hosts contain such a host that no round has observed. Otherwise it returns 0.
func (r *rules) tail(hosts int64) float64 {
	if math.Pow(1-r.unreachable, float64(hosts)*r.unobserved) > 0.5 {
		return 0
	}
	return r.pack().WithinWindow(r.RobotsTries.Seconds())
}

// pack returns the rules by which groups are packed.
func (r *rules) pack() *pack.Rules {
	return &pack.Rules{PartitionURLs: r.PartitionURLs, AddressDelay: r.AddressDelay, Window: r.Window, Service: r.measured, Slots: r.Slots}
}

// knownFactor is the number of known URLs that count as one planned URL in the size of a bucket. A
// reduce task does most of its work on planned URLs and only streams known URLs.
const knownFactor = 5

// buckets returns the number of reduce buckets for a round with the given number of URLs. If the buckets of the
// previous round are too small for the URLs, each bucket is split in two. Buckets are never joined,
// so in most rounds a task reads the files of only one bucket of earlier rounds.
func (r *rules) buckets(urls int64, req Request) int {
	if req.Buckets == 0 {
		return int(max(1, (urls+r.BucketURLs-1)/r.BucketURLs))
	}
	n := req.Buckets
	for int64(n)*r.BucketURLs < max(urls, req.Known/knownFactor) {
		n *= 2
	}
	return n
}

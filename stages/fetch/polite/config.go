package polite

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// Config is the politeness section of a crawl's config. Scheduler.Reload replaces the Config while
// a task runs.
type Config struct {
	// Delay is the least time between two requests to a host, from write to write. Default 2s.
	Delay time.Duration
	// InFlightPerHost bounds the requests in flight to one host. Default 1.
	InFlightPerHost int
	// PerAddressDelay is the least time between two requests to an IP address, even for different
	// hosts. Default 200ms.
	PerAddressDelay time.Duration
	// SlowFactor lengthens the delay of a host whose response time is longer than its delay. The
	// new delay is delay + SlowFactor × (response time − delay), at most 30s. In this formula, the
	// response time is the last one or the moving mean, whichever is shorter, and a delay under 1s
	// counts as 1s. For example, with SlowFactor 2 and a delay of 2s, a host that takes 5s gets a
	// request every 8s. With SlowFactor 0, no delay is lengthened. Default 2.
	SlowFactor float64
	// RobotsTTL is how long a robots.txt is valid before it is fetched again. Default 24h.
	RobotsTTL time.Duration
	// Classes maps a kind of site to its delay. Default: ecommerce 5s, news 3s.
	Classes map[string]time.Duration
	// Domains maps a domain or host to its settings. If several names match a host, the longest
	// applies.
	Domains map[string]Domain
	// Stops holds hosts and registered domains that people stopped while the crawl ran.
	Stops *manifest.Stops
}

// Domain holds the politeness settings of one domain.
type Domain struct {
	Class string         // kind of the site, a key of Config.Classes
	Delay *time.Duration // delay of the domain; overrides the delay of the class
	Stop  string         // reason why fetching from the domain has stopped; "" if it has not
	// InFlightPerHost replaces Config.InFlightPerHost unless it is 0.
	InFlightPerHost int
}

// Default returns the config with all default values.
func Default() Config {
	return Config{
		Delay:           2 * time.Second,
		InFlightPerHost: 1,
		PerAddressDelay: 200 * time.Millisecond,
		SlowFactor:      2,
		RobotsTTL:       24 * time.Hour,
		Classes:         map[string]time.Duration{"ecommerce": 5 * time.Second, "news": 3 * time.Second},
	}
}

const (
	maxDelay      = 24 * time.Hour // a longer configured delay is probably a typing error
	maxInFlight   = 64
	maxSlowFactor = 10
)

// Validate checks the config. The error names the field, its value and the allowed values.
func (c Config) Validate() error {
	if err := checkDelay("delay", c.Delay); err != nil {
		return err
	}
	if err := checkDelay("per_address_delay", c.PerAddressDelay); err != nil {
		return err
	}
	if c.InFlightPerHost < 1 || c.InFlightPerHost > maxInFlight {
		return fmt.Errorf("politeness.in_flight_per_host: %d is not between 1 and %d", c.InFlightPerHost, maxInFlight)
	}
	if !(c.SlowFactor >= 0 && c.SlowFactor <= maxSlowFactor) { // the condition also refuses NaN
		return fmt.Errorf("politeness.slow_factor: %v is not between 0 and %d", c.SlowFactor, maxSlowFactor)
	}
	if c.RobotsTTL < time.Minute {
		return fmt.Errorf("politeness.robots_ttl: %v is less than 1m", c.RobotsTTL)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Classes)) {
		if err := checkDelay("classes."+name, c.Classes[name]); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Domains)) {
		d := c.Domains[name]
		field := "domains." + name
		if host, err := urlkey.HostName(name); err != nil || host != name {
			return fmt.Errorf("politeness.domains: %q is not a domain: correct it in the config, without scheme, port or star, and give the file with --config", name)
		}
		if d.Delay != nil {
			if err := checkDelay(field+".delay", *d.Delay); err != nil {
				return err
			}
		}
		if d.InFlightPerHost < 0 || d.InFlightPerHost > maxInFlight {
			return fmt.Errorf("politeness.%s.in_flight_per_host: %d is not between 1 and %d", field, d.InFlightPerHost, maxInFlight)
		}
		if _, ok := c.Classes[d.Class]; d.Class != "" && !ok {
			return fmt.Errorf("politeness.%s.class: %q is not one of politeness.classes (%s)",
				field, d.Class, strings.Join(slices.Sorted(maps.Keys(c.Classes)), ", "))
		}
	}
	return nil
}

func checkDelay(field string, d time.Duration) error {
	if d < 0 || d > maxDelay {
		return fmt.Errorf("politeness.%s: %v is not between 0s and %v", field, d, maxDelay)
	}
	return nil
}

// terms holds the settings of one host.
type terms struct {
	delay    time.Duration
	inFlight int
	stop     string // reason why the host's domain is stopped; "" if it is not
}

// termsOf returns the settings of a host; the port does not matter. If a domain is stopped, its
// subdomains are stopped too. Each other setting comes from the longest matching name in Domains
// that has it.
func (c *Config) termsOf(host string) terms {
	name, _ := urlkey.SplitPort(host)
	t := terms{delay: c.Delay}
	if c.Stops != nil {
		key, _ := urlkey.KeyOf("http://" + host + "/") // if there is no key, only a stop of the host itself applies
		t.stop = c.Stops.Reason(host, key.Domain)
	}
	paced := false
	for name != "" {
		if d, ok := c.Domains[name]; ok {
			if t.stop == "" {
				t.stop = d.Stop
			}
			if t.inFlight == 0 {
				t.inFlight = d.InFlightPerHost
			}
			switch {
			case paced:
			case d.Delay != nil:
				t.delay, paced = *d.Delay, true
			case d.Class != "":
				t.delay, paced = c.Classes[d.Class], true
			}
		}
		_, parent, ok := strings.Cut(name, ".")
		if !ok {
			break
		}
		name = parent
	}
	if t.inFlight == 0 {
		t.inFlight = c.InFlightPerHost
	}
	return t
}

// MostInFlight returns the largest limit of requests in flight per host.
func (c *Config) MostInFlight() int {
	most := c.InFlightPerHost
	for _, d := range c.Domains {
		most = max(most, d.InFlightPerHost)
	}
	return most
}

// DelayOf returns a host's configured delay. The actual delay may be longer, because of robots.txt
// or the host's responses.
func (c *Config) DelayOf(host string) time.Duration { return c.termsOf(host).delay }

// PaceOf returns a host's configured delay, as DelayOf does, and its limit of requests in flight.
func (c *Config) PaceOf(host string) (delay time.Duration, inFlight int) {
	t := c.termsOf(host)
	return t.delay, t.inFlight
}

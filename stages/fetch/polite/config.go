package polite

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Config is the politeness section of a crawl's config. It may be replaced while
// a task runs.
type Config struct {
	// Delay is the least time between two requests to one host, from when one is
	// written to when the next is. Default 2s.
	Delay time.Duration
	// InFlightPerHost is how many requests to one host may be in flight. Default 1.
	InFlightPerHost int
	// PerAddressDelay is the least time between two requests to one IP address,
	// whatever the host. Default 200ms.
	PerAddressDelay time.Duration
	// RobotsTTL is how long a robots.txt holds before it is asked for again. Default 24h.
	RobotsTTL time.Duration
	// Classes are delays by kind of site. Default ecommerce 5s, news 3s.
	Classes map[string]time.Duration
	// Domains are exceptions, by domain or host name; the longest name that fits a host holds.
	Domains map[string]Domain
}

// Domain is the politeness of one domain.
type Domain struct {
	Class string         // one of Config.Classes
	Delay *time.Duration // beats the class
	Stop  string         // a reason: nothing is fetched from it any more
}

// Default is the config where nothing is said.
func Default() Config {
	return Config{
		Delay:           2 * time.Second,
		InFlightPerHost: 1,
		PerAddressDelay: 200 * time.Millisecond,
		RobotsTTL:       24 * time.Hour,
		Classes:         map[string]time.Duration{"ecommerce": 5 * time.Second, "news": 3 * time.Second},
	}
}

// maxDelay bounds configured delays: more would be a typing error.
const maxDelay = 24 * time.Hour

// Validate checks the config; an error names the field, its value and what is allowed.
func (c Config) Validate() error {
	if err := checkDelay("delay", c.Delay); err != nil {
		return err
	}
	if err := checkDelay("per_address_delay", c.PerAddressDelay); err != nil {
		return err
	}
	if c.InFlightPerHost < 1 || c.InFlightPerHost > 64 {
		return fmt.Errorf("politeness.in_flight_per_host: %d is not within 1 and 64", c.InFlightPerHost)
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
		if name == "" || name != strings.ToLower(name) || strings.ContainsAny(name, "/:* ") {
			return fmt.Errorf("politeness.domains: %q is no domain: write it in lower case, without scheme, port or star", name)
		}
		if d.Delay != nil {
			if err := checkDelay(field+".delay", *d.Delay); err != nil {
				return err
			}
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
		return fmt.Errorf("politeness.%s: %v is not within 0s and %v", field, d, maxDelay)
	}
	return nil
}

// of gives the delay that is configured for a host, and the reason for which its
// domain is stopped, if it is. A host's port does not matter.
func (c *Config) of(host string) (delay time.Duration, stop string) {
	name := host
	if i := strings.LastIndexByte(name, ':'); i >= 0 && !strings.HasSuffix(name, "]") {
		name = name[:i]
	}
	delay = c.Delay
	found := false
	for name != "" {
		if d, ok := c.Domains[name]; ok {
			// A stop of a parent domain stops what is below it; other exceptions
			// are taken from the longest name only.
			if stop == "" {
				stop = d.Stop
			}
			if !found && (d.Delay != nil || d.Class != "") {
				found = true
				if d.Delay != nil {
					delay = *d.Delay
				} else {
					delay = c.Classes[d.Class]
				}
			}
		}
		_, parent, ok := strings.Cut(name, ".")
		if !ok {
			break
		}
		name = parent
	}
	return delay, stop
}

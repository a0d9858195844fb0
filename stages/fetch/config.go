package fetch

import (
	"fmt"
	"time"

	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
	"crawlbatch.io/crawlbatch/stages/fetch/retries"
	"crawlbatch.io/crawlbatch/stages/fetch/sitemaps"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// Config bounds a fetch task and its requests.
type Config struct {
	UserAgent  string // User-Agent of all requests; its product token selects the rules of robots.txt
	Politeness polite.Config

	Slots    int           // number of concurrent fetches; default 200
	MaxIdle  int           // largest number of idle connections; 0 means 2 × Slots, at least 256
	Memory   int64         // memory of bodies in flight, in bytes (wire.Config.Memory); 0 means 64 MiB
	Timeouts wire.Timeouts // time limits of a request; default: connect 10s, first byte 15s, total 30s
	// RobotsTimeout limits a whole request for robots.txt; default 15s. It should be shorter than
	// Timeouts.Total, because all URLs of the origin wait for robots.txt. If it is 0 or more than
	// Timeouts.Total, Timeouts.Total applies.
	RobotsTimeout time.Duration
	response.Limits
	KeepNoArchive bool            // whether to store the bodies of responses that say noarchive
	Sitemaps      sitemaps.Limits // bounds of the sitemaps that robots.txt names; zero means that none is fetched
	MaxRedirects  int             // largest number of redirects that are followed for a URL; default 5
	Retries       retries.Limits
	Pauses        retries.Pauses
	Window        time.Duration // how long the stage may send requests; 0 means no limit; default 20h
	Checkpoint    Checkpoint
	StripParams   []string // query parameters that are removed from canonical URLs

	// Tolerant takes pages from servers whose certificate is not valid; schema.Request.Certificate says what is wrong.
	Tolerant bool

	Proxy        string // URL of the HTTP proxy for all connections; "" for none
	ProxyFilters bool   // whether the proxy itself refuses private addresses

	Resolvers []string // name servers, as ADDRESS[:PORT], that replace the system's; each is asked in turn until one answers
	ConnectTo []string // rules HOST:PORT:ADDR:PORT that send connections to another address
	// PaceConnectTo makes the delay per address apply to the addresses that ConnectTo names, too.
	PaceConnectTo bool

	AllowPrivateNetworks bool
	NAT64Prefixes        []string // prefixes of the network's NAT64, as nat64.Parse reads them, besides 64:ff9b::/96
}

// Checkpoint says how often a task makes its work durable.
type Checkpoint struct {
	Every time.Duration // interval between checkpoints, up to ten times longer while little is recorded; default 60s
	Bytes int64         // amount of recorded data that triggers a checkpoint early; default 256 MiB
	Lease time.Duration // length of the lease; default 180s
}

// Default is the config with all default values.
func Default() Config {
	return Config{
		Politeness:    polite.Default(),
		Slots:         200,
		Timeouts:      wire.Timeouts{Connect: 10 * time.Second, FirstByte: 15 * time.Second, Total: 30 * time.Second},
		RobotsTimeout: 15 * time.Second,
		Limits:        response.Limits{MaxBody: 5 << 20, MaxSitemap: 50 << 20},
		Sitemaps:      sitemaps.Default(),
		MaxRedirects:  5,
		Retries:       retries.Limits{Timeout: 1, ServerError: 2, RateLimited: 3, DNS: 1, Robots: 2},
		Pauses:        retries.Pauses{RateLimited: 30 * time.Second, Timeout: 15 * time.Second, ServerError: 10 * time.Second, DNS: time.Minute, Breaker: 2 * time.Minute, Grace: 20 * time.Second},
		Window:        20 * time.Hour,
		Checkpoint:    Checkpoint{Every: time.Minute, Bytes: 256 << 20, Lease: 3 * time.Minute},
	}
}

// Validate refuses settings with which a task cannot work.
func (c *Config) Validate() error {
	if err := c.Politeness.Validate(); err != nil {
		return err
	}
	switch t := c.Timeouts; {
	case c.Slots < 1:
		return fmt.Errorf("fetch.slots: %d is less than 1", c.Slots)
	case t.Connect <= 0 || t.FirstByte <= 0 || t.Total <= 0:
		return fmt.Errorf("fetch.timeout: connect %v, first_byte %v and total %v must each be more than 0", t.Connect, t.FirstByte, t.Total)
	case c.RobotsTimeout < 0:
		return fmt.Errorf("fetch.timeout.robots: %v is less than 0", c.RobotsTimeout)
	case c.MaxBody < 1 || c.MaxBody > 1<<30:
		return fmt.Errorf("fetch.max_body: %d is not between 1 byte and 1 GiB", c.MaxBody)
	case c.MaxSitemap < 0 || c.MaxSitemap > 1<<30:
		return fmt.Errorf("fetch.max_sitemap: %d is not between 0 and 1 GiB", c.MaxSitemap)
	case c.MaxRedirects < 0:
		return fmt.Errorf("fetch.max_redirects: %d is less than 0", c.MaxRedirects)
	case c.Checkpoint.Every <= 0 || c.Checkpoint.Bytes <= 0:
		return fmt.Errorf("fetch.checkpoint: every %v and bytes %d must be more than 0", c.Checkpoint.Every, c.Checkpoint.Bytes)
	case c.Checkpoint.Lease < 2*t.Total+c.Checkpoint.Every:
		return fmt.Errorf("fetch.checkpoint.lease: %v is less than 2 × timeout.total + checkpoint.every = %v",
			c.Checkpoint.Lease, 2*t.Total+c.Checkpoint.Every)
	}
	return nil
}

// leastReserve and mostReserve bound the reserve, in bytes.
const (
	leastReserve = 1 << 20
	mostReserve  = 256 << 20
)

// reserve estimates the disk space that requests in flight still need for compressed bodies and
// rows, in bytes.
func (c *Config) reserve() int64 {
	return min(max(int64(c.Slots)*c.MaxBody/4, leastReserve), mostReserve)
}

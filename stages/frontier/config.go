package frontier

import (
	"fmt"
	"time"

	"crawlbatch.io/crawlbatch/stages"
)

// Follow says which new URLs may be planned.
type Follow string

// The policies. They apply to redirects and links alike.
const (
	FollowNone   Follow = "none"   // no found URLs; only listed URLs are planned
	FollowHost   Follow = "host"   // URLs of hosts that this crawl has planned
	FollowDomain Follow = "domain" // URLs of registered domains that this crawl has planned
	FollowAny    Follow = "any"    // all URLs
)

// Scope reports whether a canonical URL is in scope, and if not, why.
type Scope interface {
	Allows(url string) (ok bool, why string)
}

// Config and the inputs together determine the results.
type Config struct {
	Follow   Follow
	Scope    Scope // nil means that everything is in scope
	MaxDepth int32 // deeper URLs are skipped

	MaxLength   int // bytes; longer URLs are taken for traps
	MaxSegments int // path segments; more are taken for a trap
	MaxRepeats  int // repetitions in a row of one to three segments; more are taken for a trap
	// URLs of a host that differ only in numbers, identifiers and values are taken for a trap
	// if the round has at least SimilarPages pages at such URLs, nearly all with the same
	// text. If SimilarPages is 0, such URLs are never taken for a trap.
	SimilarPages int

	Interval    time.Duration // time until a URL that was fetched once is due again
	MinInterval time.Duration // least interval, for a URL that changes each time
	MaxInterval time.Duration // largest interval, for a URL that never changes
	RetryAfter  time.Duration // time until a failed URL is due again; doubled with each failure in a row

	Memory int64 // bytes that each sort holds before it spills
}

// Default is the config of a monthly crawl.
func Default() Config {
	const day = 24 * time.Hour
	return Config{
		Follow: FollowDomain, MaxDepth: 15,
		MaxLength: 2000, MaxSegments: 20, MaxRepeats: 2, SimilarPages: 50,
		Interval: 30 * day, MinInterval: day, MaxInterval: 180 * day, RetryAfter: day,
		Memory: 64 << 20,
	}
}

func (c *Config) check() error {
	switch c.Follow {
	case FollowNone, FollowHost, FollowDomain, FollowAny:
	default:
		return fmt.Errorf("frontier.follow is %q: it must be none, host, domain, any: %w", c.Follow, stages.ErrPermanent)
	}
	if c.MaxDepth < 0 || c.MaxLength < 1 || c.MaxSegments < 1 || c.MaxRepeats < 1 || c.MinInterval <= 0 || c.MaxInterval < c.MinInterval || c.RetryAfter <= 0 {
		return fmt.Errorf("frontier: a limit or an interval is not positive: %w", stages.ErrPermanent)
	}
	return nil
}

package frontier

import (
	"fmt"
	"time"

	"crawlbatch.io/crawlbatch/stages"
)

// Follow says which new URLs become planned ones.
type Follow string

// The policies. They apply to redirects as to links.
const (
	FollowNone   Follow = "none"   // none: only listed URLs are planned
	FollowHost   Follow = "host"   // those of hosts that this crawl has planned
	FollowDomain Follow = "domain" // those of registered domains that this crawl has planned
	FollowAny    Follow = "any"    // all
)

// Scope tells whether a canonical URL is in scope, and else why not.
type Scope interface {
	Allows(url string) (ok bool, why string)
}

// Config is what decides the results beside the inputs.
type Config struct {
	Follow   Follow
	Scope    Scope // nil: everything is in scope
	MaxDepth int32 // deeper URLs are skipped

	MaxLength   int // octets; longer URLs are taken for traps
	MaxSegments int // path segments; more are taken for a trap
	MaxRepeats  int // of a run of one to three segments one after another; more are taken for a trap
	// SimilarPages is how many pages of a round must have URLs that differ in numbers
	// and values only, and the same text, for more such URLs to be taken for a trap; 0:
	// no number does.
	SimilarPages int

	Interval    time.Duration // until a URL that was fetched once is due again
	MinInterval time.Duration // of one that changes each time
	MaxInterval time.Duration // of one that never changes
	RetryAfter  time.Duration // until a URL that failed is due again; doubled with each failure in a row

	Memory int64 // bytes held by each of the sorts before it spills
}

// Default is the documented default: a monthly crawl.
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
		return fmt.Errorf("frontier.follow is %q: it may be none, host, domain, any: %w", c.Follow, stages.ErrPermanent)
	}
	if c.MaxDepth < 0 || c.MaxLength < 1 || c.MaxSegments < 1 || c.MaxRepeats < 1 || c.MinInterval <= 0 || c.MaxInterval < c.MinInterval || c.RetryAfter <= 0 {
		return fmt.Errorf("frontier: a limit or an interval is not positive: %w", stages.ErrPermanent)
	}
	return nil
}

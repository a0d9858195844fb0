package frontier

import (
	"fmt"
	"time"

	"crawlbatch.io/crawlbatch/formats/focus"
	"crawlbatch.io/crawlbatch/formats/priority"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
)

// Follow says which new URLs may be planned.
type Follow string

// The policies apply to the targets of links and of redirects.
const (
	FollowNone   Follow = "none"   // no found URL may be planned, only URLs that a source lists
	FollowHost   Follow = "host"   // a URL may be planned if this crawl has planned a URL of its host
	FollowDomain Follow = "domain" // a URL may be planned if this crawl has planned a URL of its registered domain
	FollowAny    Follow = "any"    // every found URL may be planned
)

// Scope decides which URLs may be planned. Refusal returns why a canonical URL, sent as in sent unless
// that is "", may not be planned, with the rule that decides, or "" if the URL may be planned.
type Scope interface {
	Refusal(url, sent string) (reason schema.SkipReason, detail string)
}

// Config holds the settings of frontier. The results of frontier depend only on its Config and
// inputs.
type Config struct {
	Follow   Follow
	Scope    Scope // decides which URLs are in scope; nil means that all URLs are
	MaxDepth int32 // a URL of a greater depth is skipped

	MaxLength   int // a URL of more bytes is a trap
	MaxSegments int // a URL with more path segments is a trap
	MaxRepeats  int // a URL is a trap if one to three segments follow themselves this many times in a row
	// URLs of one host that differ only in numbers, identifiers and values form a pattern. A
	// pattern is a trap if it has at least SimilarPages pages and nearly all have the same title and
	// nearly the same text. A calendar needs as many pages that are far from today. If
	// SimilarPages is 0, no traps are learned from pages.
	SimilarPages int
	Except       func(url string) bool // URLs that are neither evidence of such traps nor refused as one; nil: none

	Priority priority.Weights // weights of the facts that make up the priority of a URL

	// Focus scores URLs that are found; nil if the crawl has no frontier.focus. A found URL whose score is
	// below Threshold is skipped, unless Threshold is nil.
	Focus     *focus.Model
	Threshold *float64

	Interval    time.Duration // time from the first fetch of a URL until the second
	MinInterval time.Duration // least interval, for a URL that changes each time
	MaxInterval time.Duration // largest interval, for a URL that never changes
	RetryAfter  time.Duration // time until a failed URL is due again; doubled with each failure in a row

	Memory int64 // memory of each sort before the sort writes to disk, in bytes
}

// Default is the config of a monthly crawl.
func Default() Config {
	const day = 24 * time.Hour
	return Config{
		Follow: FollowDomain, MaxDepth: 15,
		MaxLength: 2000, MaxSegments: 20, MaxRepeats: 2, SimilarPages: 50, Priority: priority.Default(),
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

// Package robotscache holds the robots.txt rules of a fetch task. A Cache has one entry for each
// origin (scheme, name and port): its rules, or the reason why they could not be fetched.
//
// The input is parsed files, failures, and the rows that earlier attempts recorded. The output is
// the rules that apply to a URL, and rows for the next attempt. While a robots.txt is being
// requested, the Cache blocks its host in the scheduler. No other request is sent before the
// Crawl-delay in that file applies. Rules that exceed a memory limit are kept in a scratch file.
// The Cache has its own lock. Package robotscache imports packages stages, formats, polite, robots,
// response and segments.
package robotscache

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
)

// Options configures a Cache.
type Options struct {
	Clock     stages.Clock
	Scheduler *polite.Scheduler // blocks hosts and applies Crawl-delay
	Canon     *urlkey.Canonicalizer
	Token     string         // product token by which rules are chosen
	TTL       time.Duration  // how long a robots.txt applies
	Scratch   string         // local directory for the scratch file
	Memory    int            // limit of the memory for rules, in bytes
	Looked    func(hit bool) // called for each look-up that need not wait; may be nil
}

// Cache has an entry for each origin. It is safe for concurrent use.
type Cache struct {
	opt Options

	mu      sync.Mutex
	ttl     time.Duration
	entries map[string]*Entry // by Entry.Root
	pending map[string]int    // number of robots.txt requests that have not ended, by host
	rules   lru
}

// Entry is the robots.txt of an origin. The cache's lock guards the unexported fields.
type Entry struct {
	Root string // scheme, name and port of the origin
	Host string // host of the origin, the unit of pacing

	state  State
	rules  *Rules // last good rules, set if the state is Known; Rules.Group is nil while it is only in the scratch file
	page   page
	until  time.Time // when the rules expire
	failed Failure   // set if the state is Failed
}

// MaxStale is how long the last good rules apply from their request on, if the robots.txt cannot be fetched again (RFC
// 9309, 2.3.1.4 and 2.4).
const MaxStale = 30 * 24 * time.Hour

// Path is the path of robots.txt.
const Path = "/robots.txt"

// URL returns the URL of the origin's robots.txt.
func (e *Entry) URL() string { return e.Root + Path }

// State tells whether a robots.txt was fetched.
type State uint8

// The states of a robots.txt.
const (
	Unknown State = iota // nothing is known about the robots.txt
	Pending              // the robots.txt is being requested, and the host is blocked
	Known
	Failed // the robots.txt could not be fetched
)

// Rules holds the rules of an origin, the digest of their robots.txt, and the place of its stored
// response. It is immutable.
type Rules struct {
	*robots.Group
	Digest string // digest of the file; "" if there is no file
	Record Record
}

// Record gives the place of the stored response to a robots.txt request.
type Record struct {
	File           string // WARC file; "" if the response was not archived
	Offset, Length int32
	At             time.Time // when the request was written
}

// Failure is the outcome that the URLs of an origin get if its robots.txt could not be fetched.
type Failure struct {
	Outcome schema.Outcome
	Why     response.Failure
}

// New makes a cache without entries. The caller closes the cache.
func New(opt Options) *Cache {
	return &Cache{
		opt: opt, ttl: opt.TTL, entries: map[string]*Entry{}, pending: map[string]int{},
		rules: lru{dir: opt.Scratch, max: opt.Memory},
	}
}

// Close removes the scratch file.
func (c *Cache) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rules.close()
}

// SetTTL changes how long a robots.txt applies. It does not change known entries.
func (c *Cache) SetTTL(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ttl = d
}

// Entry returns the entry for a canonical URL's origin, and creates it if necessary.
func (c *Cache) Entry(key urlkey.Key) *Entry {
	scheme, rest, _ := strings.Cut(key.URL, "://")
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	root := key.URL[:len(scheme)+len("://")+len(rest)]
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[root]
	if e == nil {
		root = strings.Clone(root)
		e = &Entry{Root: root, Host: strings.Clone(key.Host)}
		c.entries[root] = e
	}
	return e
}

// EntryOf returns the entry of a root, and creates it if necessary.
func (c *Cache) EntryOf(root string) (*Entry, error) {
	key, err := c.opt.Canon.Canonical(root+"/", "")
	if err != nil {
		return nil, err
	}
	return c.Entry(key), nil
}

// Lookup returns the state of an entry, with the rules if the state is Known and the failure if the
// state is Failed. If the state is Unknown, Lookup blocks the host, and the caller must request the
// robots.txt and then call Learn or Fail. An error means that the scratch file cannot be read.
func (c *Cache) Lookup(e *Entry) (State, *Rules, Failure, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.state == Known && c.opt.Clock.Now().After(e.until) {
		e.state = Unknown // the rules stay, for Extend
	}
	if c.opt.Looked != nil && e.state != Pending { // a URL of a pending file comes back, and is counted then
		c.opt.Looked(e.state != Unknown)
	}
	switch e.state {
	case Known:
		rules, err := c.rules.get(e)
		return Known, rules, Failure{}, err
	case Unknown:
		e.state = Pending
		c.pending[e.Host]++
		c.opt.Scheduler.Block(e.Host)
		return Unknown, nil, Failure{}, nil
	}
	return e.state, nil, e.failed, nil
}

// Expected reports whether the robots.txt of a root is being requested, or may be requested because nothing is
// known about it. If later is false, it is not expected while its host has no items.
func (c *Cache) Expected(root string, later bool) bool {
	e, err := c.EntryOf(root)
	if err != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return e.state == Pending || e.state == Unknown && c.opt.Scheduler.Expects(e.Host, later)
}

// Failed returns an entry's failure, if it has one.
func (c *Cache) Failed(e *Entry) (Failure, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return e.failed, e.state == Failed
}

// Learn ends a robots.txt request that brought rules. It returns a row, without the file's text,
// from which another attempt can restore the entry.
func (c *Cache) Learn(e *Entry, rules *Rules) (*schema.RobotsFile, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.storeRules(e, rules, c.opt.Clock.Now().Add(c.ttl))
	c.endRequest(e)
	return e.row(), err
}

// Stale reports whether an entry has rules that have expired, but apply if its robots.txt cannot be fetched. That there was
// no robots.txt is no rule.
func (c *Cache) Stale(e *Entry) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return e.state != Known && e.rules != nil && e.rules.Digest != "" && c.opt.Clock.Now().Sub(e.rules.Record.At) <= MaxStale
}

// Extend ends a robots.txt request that failed. The rules of an entry that is Stale apply until the next request is
// due. There is no new row: another attempt starts with the row of the rules, and requests the robots.txt again.
func (c *Cache) Extend(e *Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.state, e.until = Known, earlier(c.opt.Clock.Now().Add(c.ttl), e.rules.Record.At.Add(MaxStale))
	c.endRequest(e)
}

// Fail ends a robots.txt request that failed, if Extend cannot. It returns a row from which another attempt can
// restore the entry.
func (c *Cache) Fail(e *Entry, f Failure) *schema.RobotsFile {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.Why.Phrase = "robots.txt: " + f.Why.Phrase
	c.forget(e)
	e.state, e.failed = Failed, f
	c.endRequest(e)
	return e.row()
}

// endRequest unblocks the host if no other robots.txt request for it is under way. The caller holds
// c.mu.
func (c *Cache) endRequest(e *Entry) {
	if c.pending[e.Host]--; c.pending[e.Host] == 0 {
		delete(c.pending, e.Host)
		c.opt.Scheduler.Unblock(e.Host)
	}
}

// storeRules stores the rules of an entry. The caller holds c.mu.
func (c *Cache) storeRules(e *Entry, rules *Rules, until time.Time) error {
	e.state, e.rules, e.until, e.failed = Known, rules, until, Failure{}
	if d, ok := rules.Delay(); ok {
		c.opt.Scheduler.SetCrawlDelay(e.Host, d)
	}
	return c.rules.put(e)
}

// forget drops an entry's rules and failure. The caller holds c.mu.
func (c *Cache) forget(e *Entry) {
	c.rules.drop(e)
	e.state, e.rules, e.failed = Unknown, nil, Failure{}
}

// row returns a row, without the file's text, from which the next attempt can restore the entry.
// The caller holds the cache's mu.
func (e *Entry) row() *schema.RobotsFile {
	r := &schema.RobotsFile{Origin: e.Root, Host: e.Host, Until: schema.TimeOf(e.until)}
	if e.state == Failed {
		r.Outcome, r.Failure, r.Detail = e.failed.Outcome, response.Bounded(e.failed.Why.Phrase), response.Bounded(e.failed.Why.Detail)
		return r
	}
	k := e.rules
	r.Rules, r.Digest = k.Digest != "", k.Digest
	r.FetchedAt, r.WARCFile, r.WARCOffset, r.WARCLength = schema.TimeOf(k.Record.At), k.Record.File, k.Record.Offset, k.Record.Length
	return r
}

// Restore loads a row that an earlier attempt recorded, and reports whether its rules still apply.
// If the row has expired, the entry becomes Unknown, and may be Stale.
func (c *Cache) Restore(row *schema.RobotsFile) (known bool, err error) {
	e, err := c.EntryOf(row.Origin)
	if err != nil {
		return false, fmt.Errorf("origin %q: %v: %w", row.Origin, err, table.ErrCorrupt)
	}
	rules := &Rules{Record: Record{row.WARCFile, row.WARCOffset, row.WARCLength, row.FetchedAt.Time()}}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.opt.Clock.Now()
	// The clock of the earlier attempt's machine may have been wrong, so the row applies no longer
	// than a new robots.txt would.
	until := earlier(row.Until.Time(), now.Add(c.ttl))
	if row.FetchedAt > 0 {
		until = earlier(until, rules.Record.At.Add(c.ttl))
	}
	c.forget(e)
	switch {
	case row.Outcome != "":
		e.state, e.failed = Failed, Failure{row.Outcome, response.Failure{Phrase: row.Failure, Detail: row.Detail}}
		return false, nil
	case !until.After(now) && now.Sub(rules.Record.At) > MaxStale:
		return false, nil
	case row.Rules:
		rules.Group, rules.Digest = robots.Parse(row.Body).GroupFor(c.opt.Token), row.Digest
	default:
		rules.Group = robots.AllowAll()
	}
	if err := c.storeRules(e, rules, until); err != nil {
		return false, err
	}
	if !until.After(now) {
		e.state = Unknown
	}
	return e.state == Known, nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

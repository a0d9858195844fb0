package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/guard"
	"crawlbatch.io/crawlbatch/stages/fetch/partition"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dial"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dns"
)

// crawl fetches a set of planned URLs. It knows nothing of stores and checkpoints.
type crawl struct {
	cfg      Config
	clock    stages.Clock
	log      *slog.Logger
	progress stages.Progress
	parser   document.Parser
	planned  *partition.Index
	sink     segments.Sink
	archiver *segments.Archiver
	client   *wire.Client
	canon    *urlkey.Canonicalizer
	token    string // product token
	reading  robots.Reading
	epoch    int
	segment  string // warc_segment: the partition, as part-00017

	sched *polite.Scheduler
	cpu   chan struct{} // held by who compresses or parses
	ttl   atomic.Int64  // of robots.txt, after a reload; nanoseconds

	failures failures

	// mayWrite says whether the task has the right to send a request at a time;
	// admit waits until one may be begun; alone, if set, is told of each turn what it does.
	mayWrite func(now time.Time) bool
	admit    func(ctx context.Context) error
	alone    func(*manifest.Trying) error // nil says that it is done
	slots    chan struct{}                // one element for each turn that is out
	gaveUp   bool                         // nothing is fetched any more: the rest is deferred

	mu      sync.Mutex
	visits  map[int64]*visit // that go on at a later turn
	origins map[string]*origin
	byID    []*origin
	pending map[string]int // downloads of robots.txt under way, by host
	claims  map[uint64]struct{}
	rules   rulebook

	stop  context.CancelCauseFunc // of the loop
	fatal atomic.Pointer[error]
}

// newCrawl makes a crawl of planned rows. mayWrite and admit allow everything.
func newCrawl(env *stages.Env, cfg Config, parser document.Parser, p *partition.Index, out segments.Sink) (*crawl, error) {
	canon, err := urlkey.New(cfg.StripParams)
	if err != nil {
		return nil, err
	}
	var rules []dial.ConnectTo
	for _, s := range cfg.ConnectTo {
		r, err := dial.ParseConnectTo(s)
		if err != nil {
			return nil, err
		}
		rules = append(rules, r)
	}
	connections := wire.Config{
		UserAgent: cfg.UserAgent, Timeouts: cfg.Timeouts, MaxBody: cfg.MaxBody, Proxy: cfg.Proxy, ConnectTo: rules,
		Guard: guard.New(cfg.AllowPrivateNetworks), Now: env.Clock.Now,
		MaxIdle: max(256, 2*cfg.Slots), MaxIdlePerHost: cfg.Politeness.MostInFlight(),
	}
	if len(cfg.Resolvers) > 0 {
		if connections.Resolver, err = dns.NameServers(cfg.Resolvers...); err != nil {
			return nil, fmt.Errorf("fetch.resolvers: %w", err)
		}
	}
	if cfg.tune != nil {
		cfg.tune(&connections)
	}
	client, err := wire.New(connections)
	if err != nil {
		return nil, err
	}
	breaker := polite.DefaultBreaker()
	if cfg.Pauses.Breaker > 0 {
		breaker.Pause = cfg.Pauses.Breaker
	}
	return &crawl{
		cfg: cfg, clock: env.Clock, log: env.Log, progress: env.Progress, parser: parser, planned: p, sink: out, archiver: segments.NewArchiver(out),
		client: client, canon: canon, token: robots.ProductToken(cfg.UserAgent),
		sched: polite.New(polite.Options{
			Config: cfg.Politeness, Clock: env.Clock, Log: env.Log, LimitedPause: cfg.Pauses.RateLimited, Breaker: breaker, Slots: cfg.Slots,
		}),
		cpu:      make(chan struct{}, runtime.GOMAXPROCS(0)),
		mayWrite: func(time.Time) bool { return true },
		admit:    func(ctx context.Context) error { return ctx.Err() },
		slots:    make(chan struct{}, cfg.Slots),
		visits:   map[int64]*visit{}, origins: map[string]*origin{}, pending: map[string]int{}, claims: map[uint64]struct{}{},
		rules: rulebook{dir: env.Scratch, max: cmp.Or(cfg.rules, maxRules)},
	}, nil
}

// close gives connections and scratch space back.
func (c *crawl) close() {
	c.client.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rules.close()
}

// fail ends the crawl with the first error that comes.
func (c *crawl) fail(err error) {
	if c.fatal.CompareAndSwap(nil, &err) && c.stop != nil {
		c.stop(err)
	}
}

// loop gives out turns until nothing is left or ctx ends; then it waits for the
// requests in flight. Each of them has the context that flight gives. It returns
// nil when every URL has its outcome.
func (c *crawl) loop(ctx context.Context, flight func() context.Context) error {
	ctx, c.stop = context.WithCancelCause(ctx)
	defer c.stop(nil)
	slots := c.slots
	var wg sync.WaitGroup
	var err error
	for err == nil {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			err = context.Cause(ctx)
			continue
		}
		if err = c.admit(ctx); err != nil {
			break
		}
		var t *polite.Turn
		if t, err = c.sched.Next(ctx); err != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			c.serve(flight(), t)
			if c.alone != nil {
				if err := c.alone(nil); err != nil {
					c.fail(err)
				}
			}
		})
	}
	wg.Wait()
	if f := c.fatal.Load(); f != nil {
		return *f
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// serve spends a turn: on one request, or on URLs that need none.
func (c *crawl) serve(ctx context.Context, t *polite.Turn) {
	if t.Kind > polite.Probe {
		c.drain(t)
		return
	}
	for {
		if c.step(ctx, t) {
			return
		}
		if _, ok := t.Another(); !ok {
			t.Done(polite.Result{})
			return
		}
	}
}

// step takes the turn's item on. It reports whether the turn is over.
func (c *crawl) step(ctx context.Context, t *polite.Turn) bool {
	if t.Item.ID < 0 {
		o := c.originByID(t.Item.ID)
		if !c.announce(t, manifest.Trying{Origin: o.name()}) {
			return true
		}
		c.askRobots(ctx, t, o)
		return true
	}
	v, err := c.visit(t.Item.ID)
	if err != nil {
		c.fail(err)
		t.Done(polite.Result{})
		return true
	}
	o := c.originOf(v.key)
	switch state, known := c.rulesOf(o); state {
	case robotsUnknown:
		t.PutBack(t.Item)
		if !c.announce(t, manifest.Trying{Origin: o.name()}) {
			return true
		}
		c.askRobots(ctx, t, o)
		return true
	case robotsPending:
		t.PutBack(t.Item)
		t.Done(polite.Result{})
		return true
	case robotsFailed:
		c.finish(v, o.outcome, o.failure)
		return false
	default:
		verdict := known.rules.Verdict(c.reading, v.key.URL, v.spellings()...)
		var why response.Failure
		if len(v.met) == 0 {
			v.judge(verdict)
			if verdict.Spelling != "" {
				why = response.Failure{Phrase: "robots.txt denies another spelling of the URL", Detail: verdict.Spelling}
			}
		} else {
			why = response.Failed("redirect to a URL that robots.txt denies", "%s: %s", cmp.Or(verdict.Spelling, v.key.URL), verdict.Rule)
		}
		// Of too many spellings not all are known: such a URL is not planned either.
		tooMany := v.known.Overflow() && c.reading == robots.Every
		if tooMany && verdict.Allowed {
			why = response.Failed("redirect to a URL with too many spellings", "%s: %s", v.key.URL, v.known.TooMany())
		}
		if !verdict.Allowed || tooMany {
			c.finish(v, schema.RobotsDenied, why)
			return false
		}
		if !c.announce(t, manifest.Trying{Row: v.row}) {
			return true
		}
		c.get(ctx, t, v, known, verdict.Rule)
		return true
	}
}

// announce tells who wants to know what the turn is about to do; false: it could
// not, which ends the crawl and the turn.
func (c *crawl) announce(t *polite.Turn, what manifest.Trying) bool {
	if c.alone == nil {
		return true
	}
	if err := c.alone(&what); err != nil {
		c.fail(err)
		t.Done(polite.Result{})
		return false
	}
	return true
}

// drain ends the URLs of a turn that may send nothing.
func (c *crawl) drain(t *polite.Turn) {
	outcome, why := schema.Deferred, response.Failure{}
	switch t.Kind {
	case polite.Stopped:
		outcome, why = schema.Stopped, response.Failure{Phrase: t.Reason}
	case polite.Suspended:
		outcome = schema.HostSuspended
	}
	if c.gaveUp {
		outcome, why = schema.Deferred, response.Failure{Phrase: "given up"}
	}
	for it, ok := t.Item, true; ok; it, ok = t.Another() {
		if it.ID < 0 {
			o := c.originByID(it.ID)
			c.robotsFailed(o, schema.RobotsUnreachable, response.Failure{Phrase: "its host is " + string(outcome)})
			c.recordRobots(o, nil) // another attempt is another try
			continue
		}
		v, err := c.visit(it.ID)
		if err != nil {
			c.fail(err)
			break
		}
		c.finish(v, outcome, why)
		if c.fatal.Load() != nil {
			break
		}
	}
	t.Done(polite.Result{})
}

// reload replaces the politeness of the running crawl.
func (c *crawl) reload(p polite.Config) {
	c.ttl.Store(int64(p.RobotsTTL))
	c.sched.Reload(p)
	c.log.Info("politeness reloaded", "delay", p.Delay.String(), "domains", len(p.Domains))
}

// A robots.txt that none of the retries of its failure got is asked for again later,
// after 2 minutes by default, then after three times as long each.
const (
	laterPauses = 12 // of Pauses.ServerError
	laterGrowth = 3
	maxLater    = 5
)

// retry decides whether a failure of a class is tried again, and completes the
// turn's result with the item. why is what failed, for people.
func (c *crawl) retry(counts *[response.RetryClasses]int, class response.RetryClass, why, host string, it *polite.Item, r *polite.Result) bool {
	limit, pause := 0, time.Duration(0)
	switch class {
	case response.AfterTimeout:
		limit, pause = c.cfg.Retries.Timeout, c.cfg.Pauses.Timeout
	case response.AfterServerError:
		limit, pause = c.cfg.Retries.ServerError, c.cfg.Pauses.ServerError
	case response.AfterLimit:
		limit = c.cfg.Retries.RateLimited // the host slows down, which is the pause
	case response.AfterDNS:
		limit = c.cfg.Retries.DNS
		if counts[class] < limit {
			r.Hold = c.sched.Jitter(host, c.cfg.Pauses.DNS)
		}
	}
	if class == response.ForRobots {
		limit, pause = c.cfg.Retries.Robots, laterPauses*c.cfg.Pauses.ServerError
		for range min(counts[class], maxLater) {
			pause *= laterGrowth
		}
	}
	if counts[class] >= limit || c.cfg.patience > 0 && r.RetryAfter > c.cfg.patience {
		return false
	}
	counts[class]++
	it.Why = why
	if c.cfg.tell != nil {
		c.tellRetry(class, counts[class], host, it, r, pause)
	}
	if pause > 0 {
		it.NotBefore = c.clock.Now().Add(c.sched.Jitter(host, pause))
	}
	r.Again = it
	c.progress.Add(retryCounts[class], 1)
	return true
}

// record emits a record, unless it has no rows.
func (c *crawl) record(r *segments.Record) {
	if r.Empty() {
		if r.OnRecorded != nil {
			r.OnRecorded()
		}
		return
	}
	if err := c.sink.Emit(r); err != nil {
		c.fail(err)
	}
}

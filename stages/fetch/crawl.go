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
	"crawlbatch.io/crawlbatch/stages/fetch/robotscache"
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
	robots   *robotscache.Cache
	canon    *urlkey.Canonicalizer
	token    string // product token
	reading  robots.Reading
	epoch    int
	segment  string // warc_segment: the partition, as part-00017

	sched *polite.Scheduler
	cpu   chan struct{} // held by who compresses or parses

	failures failures

	// mayWrite says whether the task has the right to send a request at a time;
	// admit waits until one may be begun; alone, if set, is told of each turn what it does.
	mayWrite func(now time.Time) bool
	admit    func(ctx context.Context) error
	alone    func(*manifest.Trying) error // nil says that it is done
	slots    chan struct{}                // one element for each turn that is out
	gaveUp   bool                         // nothing is fetched any more: the rest is deferred

	mu             sync.Mutex
	visits         map[int64]*visit // that go on at a later turn
	robotsTasks    map[int64]*robotsTask
	lastRobotsTask int64 // ID of the newest
	claims         map[uint64]struct{}

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
	sched := polite.New(polite.Options{
		Config: cfg.Politeness, Clock: env.Clock, Log: env.Log, LimitedPause: cfg.Pauses.RateLimited, Breaker: breaker, Slots: cfg.Slots,
	})
	token := robots.ProductToken(cfg.UserAgent)
	return &crawl{
		cfg: cfg, clock: env.Clock, log: env.Log, progress: env.Progress, parser: parser, planned: p, sink: out, archiver: segments.NewArchiver(out),
		client: client, canon: canon, token: token, sched: sched,
		robots: robotscache.New(robotscache.Options{
			Clock: env.Clock, Scheduler: sched, Canon: canon, Token: token, TTL: cfg.Politeness.RobotsTTL, Scratch: env.Scratch, Memory: cmp.Or(cfg.rules, maxRules),
		}),
		cpu:      make(chan struct{}, runtime.GOMAXPROCS(0)),
		mayWrite: func(time.Time) bool { return true },
		admit:    func(ctx context.Context) error { return ctx.Err() },
		slots:    make(chan struct{}, cfg.Slots),
		visits:   map[int64]*visit{}, robotsTasks: map[int64]*robotsTask{}, claims: map[uint64]struct{}{},
	}, nil
}

// maxRules bounds the memory that the rules of robots.txt files take, in bytes. A
// partition may have a million hosts, and a robots.txt 500 KiB of rules.
const maxRules = 64 << 20

// close gives connections and scratch space back.
func (c *crawl) close() {
	c.client.Close()
	c.robots.Close()
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
		return c.stepRobots(ctx, t, c.robotsTaskOf(t.Item.ID))
	}
	v, err := c.visit(t.Item.ID)
	if err != nil {
		c.fail(err)
		t.Done(polite.Result{})
		return true
	}
	entry := c.robots.Entry(v.key)
	state, rules, failed, err := c.robots.Lookup(entry)
	switch {
	case err != nil:
		c.fail(err)
		fallthrough
	case state == robotscache.Pending:
		t.PutBack(t.Item)
		t.Done(polite.Result{})
		return true
	case state == robotscache.Unknown:
		t.PutBack(t.Item)
		return c.stepRobots(ctx, t, c.newRobotsTask(entry))
	case state == robotscache.Failed:
		c.finish(v, failed.Outcome, failed.Why)
		return false
	}
	verdict, why := c.judge(v, rules)
	if !verdict.Allowed {
		c.finish(v, schema.RobotsDenied, why)
		return false
	}
	if c.announce(t, manifest.Trying{Row: v.row}) {
		c.get(ctx, t, v, rules, verdict.Rule)
	}
	return true
}

// stepRobots spends the turn on a robots task. It returns true: the turn is over.
func (c *crawl) stepRobots(ctx context.Context, t *polite.Turn, rt *robotsTask) bool {
	if c.announce(t, manifest.Trying{Origin: rt.entry.Root}) {
		c.askRobots(ctx, t, rt)
	}
	return true
}

// judge gives the verdict of robots.txt on the URL to ask for next, and why it is denied.
func (c *crawl) judge(v *visit, rules *robotscache.Rules) (verdict robots.Verdict, why response.Failure) {
	verdict = rules.Verdict(c.reading, v.key.URL, v.spellings()...)
	if len(v.met) == 0 {
		v.judge(verdict)
		if verdict.Spelling != "" {
			why = response.Failure{Phrase: "robots.txt denies another spelling of the URL", Detail: verdict.Spelling}
		}
	} else {
		why = response.Failed("redirect to a URL that robots.txt denies", "%s: %s", cmp.Or(verdict.Spelling, v.key.URL), verdict.Rule)
	}
	// Of a URL with too many spellings not all are known, so it is not planned either.
	if verdict.Allowed && v.known.Overflow() && c.reading == robots.Every {
		verdict.Allowed = false
		why = response.Failed("redirect to a URL with too many spellings", "%s: %s", v.key.URL, v.known.TooMany())
	}
	return verdict, why
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
			rt := c.robotsTaskOf(it.ID)
			c.robots.Fail(rt.entry, robotscache.Failure{Outcome: schema.RobotsUnreachable, Why: response.Failure{Phrase: "its host is " + string(outcome)}})
			c.recordRobots(rt, nil) // another attempt is another try
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
	c.robots.SetTTL(cmp.Or(p.RobotsTTL, c.cfg.Politeness.RobotsTTL))
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

// retryRule gives the counter of a class of failures, how many retries it has, and the
// pause before the next.
func (c *crawl) retryRule(counts *manifest.RetryCounts, class response.RetryClass) (used *int, limit int, pause time.Duration) {
	r, p := &c.cfg.Retries, &c.cfg.Pauses
	switch class {
	case response.AfterTimeout:
		return &counts.Timeouts, r.Timeout, p.Timeout
	case response.AfterServerError:
		return &counts.ServerErrors, r.ServerError, p.ServerError
	case response.AfterLimit:
		return &counts.Limited, r.RateLimited, 0 // the host slows down, which is the pause
	case response.AfterDNS:
		return &counts.DNS, r.DNS, 0 // the host is put off
	case response.ForRobots:
		pause = laterPauses * p.ServerError
		for range min(counts.Later, maxLater) {
			pause *= laterGrowth
		}
		return &counts.Later, r.Robots, pause
	}
	return new(int), 0, 0
}

// retry decides whether a failure of a class is tried again, and completes the turn's
// result with the item. why is what failed, for people.
func (c *crawl) retry(counts *manifest.RetryCounts, class response.RetryClass, why, host string, it *polite.Item, r *polite.Result) bool {
	used, limit, pause := c.retryRule(counts, class)
	if *used >= limit || c.cfg.patience > 0 && r.RetryAfter > c.cfg.patience {
		return false
	}
	*used++
	if class == response.AfterDNS {
		r.Hold = c.sched.Jitter(host, c.cfg.Pauses.DNS)
	}
	it.Why = why
	if c.cfg.tell != nil {
		c.tellRetry(class, *used, host, it, r, pause)
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

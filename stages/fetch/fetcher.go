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
	"crawlbatch.io/crawlbatch/formats/nat64"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/guard"
	"crawlbatch.io/crawlbatch/stages/fetch/lease"
	"crawlbatch.io/crawlbatch/stages/fetch/partition"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/request"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
	"crawlbatch.io/crawlbatch/stages/fetch/retries"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
	"crawlbatch.io/crawlbatch/stages/fetch/robotscache"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
	"crawlbatch.io/crawlbatch/stages/fetch/sitemaps"
	"crawlbatch.io/crawlbatch/stages/fetch/status"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dial"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dns"
	"crawlbatch.io/crawlbatch/stages/fetch/witness"
)

// fetcher leads planned URLs to their outcomes. It does not depend on a store, a lease or a
// checkpoint.
type fetcher struct {
	options
	cfg      Config
	clock    stages.Clock
	log      *slog.Logger
	progress stages.Progress
	trace    func(*schema.Fetch, []schema.Request)
	archiver *segments.Archiver
	client   *wire.Client
	requests request.Sender
	robots   *robotscache.Cache
	sitemaps *sitemaps.List
	canon    *urlkey.Canonicalizer
	token    string // product token of the user agent

	sched *polite.Scheduler
	cpu   chan struct{} // a semaphore: each goroutine that compresses or parses holds one of its slots

	failures status.Failures

	mu             sync.Mutex
	urlTasks       map[int64]*urlTask // URL tasks that need another grant, by row number in the plan
	robotsTasks    map[int64]*robotsTask
	lastRobotsTask int64               // ID of the newest robots task
	refusers       map[string]string   // services that refused requests, by host
	gates          map[uint64]bool     // whether a URL redirects, by its hash; false if it ended a redirect chain
	claims         map[uint64]struct{} // hashes of the redirect targets that URL tasks and sitemaps have reserved

	endWaits context.CancelFunc // ends all waits for the network

	fatal atomic.Pointer[error] // the first error; nil if there is none
	ended chan struct{}         // closed after fatal is set
}

// options are the arguments of newFetcher.
type options struct {
	parser   document.Parser
	index    *partition.Index
	sink     segments.Sink
	gate     gate
	epoch    int
	segment  string // column warc_segment: the partition's name, such as part-00017
	deferAll bool   // whether to send no requests and to defer every URL without an outcome
	clocks   *polite.Clocks
	witness  *witness.Witness
	parsing  chan struct{}               // see Input.Parsing
	barred   func(url, sent string) bool // reports whether a URL must not be requested; nil if all may be

	// patience is the longest Retry-After that the fetcher waits for; 0 means no limit.
	patience time.Duration
	onRetry  func(stages.Wait) // called for each retry; may be nil

	hooks
}

// hooks replace parts of the environment in tests. The zero value replaces nothing.
type hooks struct {
	tune      func(*wire.Config)              // changes the config of the HTTP client; may be nil
	free      func(dir string) (int64, error) // returns the room in scratch space in bytes; may be nil
	rules     int                             // limit of the memory for robots.txt rules, in bytes; 0 means maxRules
	maxSerial int                             // number of grants after which serial mode may end; 0 means the constant
}

// newFetcher makes a fetcher whose scheduler has no hosts yet. The caller closes the fetcher.
func newFetcher(env *stages.Env, cfg Config, o options) (*fetcher, error) {
	canon, err := urlkey.New(cfg.StripParams)
	if err != nil {
		return nil, err
	}
	translated, err := nat64.Parse(cfg.NAT64Prefixes)
	if err != nil {
		return nil, fmt.Errorf("fetch.nat64_prefixes: %w", err)
	}
	client, err := newClient(env, &cfg, translated, o.witness, o.tune)
	if err != nil {
		return nil, err
	}
	if o.parsing == nil {
		o.parsing = make(chan struct{}, runtime.GOMAXPROCS(0))
	}
	breaker := polite.DefaultBreaker()
	if cfg.Pauses.Breaker > 0 {
		breaker.Pause = cfg.Pauses.Breaker
	}
	sched := polite.New(polite.Options{
		Config: cfg.Politeness, Clock: env.Clock, Log: env.Log, LimitedPause: cfg.Pauses.RateLimited, Breaker: breaker, Slots: cfg.Slots, Clocks: o.clocks,
		Late: retries.Late(&cfg.Pauses),
	})
	token := robots.ProductToken(cfg.UserAgent)
	f := &fetcher{
		options: o, cfg: cfg, clock: env.Clock, log: env.Log, progress: env.Progress, trace: env.Trace, archiver: segments.NewArchiver(o.sink),
		client: client, requests: request.Sender{
			Client: client, Clock: env.Clock, Log: env.Log, Progress: env.Progress, MayWrite: o.gate.mayWrite,
			RobotsTimeout: cfg.RobotsTimeout, PaceConnectTo: cfg.PaceConnectTo, NAT64: translated, Epoch: o.epoch, Witness: o.witness,
		},
		canon: canon, token: token, sched: sched,
		robots: robotscache.New(robotscache.Options{
			Clock: env.Clock, Scheduler: sched, Canon: canon, Token: token, TTL: cfg.Politeness.RobotsTTL, Scratch: env.Scratch, Memory: cmp.Or(o.rules, maxRules),
			Looked: stages.Lookups(env.Progress, stages.CacheRobots),
		}),
		cpu:      o.parsing,
		urlTasks: map[int64]*urlTask{}, robotsTasks: map[int64]*robotsTask{}, claims: map[uint64]struct{}{}, gates: map[uint64]bool{}, refusers: map[string]string{},
		ended: make(chan struct{}),
	}
	f.requests.Fail, f.requests.Barred = f.fail, func(url string) bool {
		key, _ := urlkey.KeyOf(url)
		return f.optedOut(url, "") || sched.Stopped(key.Host)
	}
	f.requests.Stopping, f.endWaits = context.WithCancel(context.Background())
	f.sitemaps = sitemaps.New(cfg.Sitemaps, f.sitemapTools())
	sched.Foresee(f.sitemaps.Waiting)
	return f, nil
}

// newClient makes the HTTP client of a fetcher. tune may be nil.
func newClient(env *stages.Env, cfg *Config, translated nat64.Prefixes, w *witness.Witness, tune func(*wire.Config)) (*wire.Client, error) {
	var rules []dial.ConnectTo
	for _, s := range cfg.ConnectTo {
		r, err := dial.ParseConnectTo(s)
		if err != nil {
			return nil, err
		}
		rules = append(rules, r)
	}
	connections := wire.Config{
		UserAgent: cfg.UserAgent, Timeouts: cfg.Timeouts, MaxBody: cfg.MaxBody, Proxy: cfg.Proxy, ProxyFilters: cfg.ProxyFilters, ConnectTo: rules, Tolerant: cfg.Tolerant,
		Guard: guard.New(cfg.AllowPrivateNetworks, translated...), Dial: env.Dial, Now: env.Clock.Now,
		MaxIdle: cmp.Or(cfg.MaxIdle, max(256, 2*cfg.Slots)), Memory: cfg.Memory, MaxIdlePerHost: cfg.Politeness.MostInFlight(),
		NameLooked: stages.Lookups(env.Progress, stages.CacheDNS),
		Resolver:   dns.SystemResolver(),
	}
	if len(cfg.Resolvers) > 0 {
		resolver, err := dns.NameServers(cfg.Resolvers...)
		if err != nil {
			return nil, fmt.Errorf("fetch.resolvers: %w", err)
		}
		connections.Resolver = resolver
	}
	if tune != nil {
		tune(&connections)
	}
	connections.Resolver = heardResolver{connections.Resolver, w, env.Clock.Now}
	return wire.New(connections)
}

// heardResolver tells the witness that a name server answered.
type heardResolver struct {
	dns.Resolver
	witness *witness.Witness
	now     func() time.Time
}

func (r heardResolver) Lookup(ctx context.Context, host string) (dns.Answer, error) {
	a, err := r.Resolver.Lookup(ctx, host)
	if !a.Local && (err == nil || dns.IsNotFound(err)) {
		r.witness.Answered(witness.Peer{Path: witness.Names, Origin: host}, r.now(), func() string {
			key, _ := urlkey.KeyOf("http://" + host + "/")
			return key.Domain
		})
	}
	return a, err
}

// maxRules limits the memory for robots.txt rules, in bytes. A partition may have a million hosts,
// and each robots.txt may hold 500 KiB of rules.
const maxRules = 64 << 20

// optedOut reports whether a redirect to a URL must not be followed.
func (f *fetcher) optedOut(url, sent string) bool { return f.barred != nil && f.barred(url, sent) }

// close releases connections and scratch space.
func (f *fetcher) close() {
	f.endWaits()
	f.client.Close()
	f.robots.Close()
}

// fail ends the fetcher. The first error becomes the error of the fetcher.
func (f *fetcher) fail(err error) {
	if f.fatal.CompareAndSwap(nil, &err) {
		close(f.ended)
	}
}

// loop serves grants until no URL is left or ctx ends. Before it returns, it waits for the requests
// in flight. Each request gets its context from flights. The error is nil if every URL has its
// outcome.
func (f *fetcher) loop(ctx context.Context, flights *lease.Flights) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(ctx, f.endWaits)()
	go func() {
		select {
		case <-f.ended:
			stop(*f.fatal.Load())
		case <-ctx.Done():
		}
	}()
	slots := make(chan struct{}, f.cfg.Slots)
	var wg sync.WaitGroup
	var err error
	for err == nil {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			err = context.Cause(ctx)
			continue
		}
		if f.gate.serial() {
			wg.Wait()
		}
		if err = f.gate.admit(ctx); err != nil {
			break
		}
		var g *polite.Grant
		if g, err = f.sched.Next(ctx); err != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := f.use(ctx, flights.Context(), g); err != nil {
				f.fail(err)
			}
		})
	}
	wg.Wait()
	if fatal := f.fatal.Load(); fatal != nil {
		return *fatal
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// use serves a grant and tells the gate that it was served.
func (f *fetcher) use(ctx, flight context.Context, g *polite.Grant) (err error) {
	defer stages.Recover(&err)
	f.serve(ctx, flight, g)
	return f.gate.done(ctx)
}

// serve uses a grant for one request, whose context is flight. If an item needs no request, serve
// finishes the item and continues with the next one of the same host.
func (f *fetcher) serve(ctx, flight context.Context, g *polite.Grant) {
	if g.Kind > polite.Probe {
		f.drain(g)
		return
	}
	for {
		if f.step(ctx, flight, g) {
			return
		}
		if _, ok := g.Another(); !ok {
			g.Done(polite.Result{})
			return
		}
	}
}

// step does the next step of the grant's item (a URL task, a robots task or a sitemap). It returns
// false if the item ended without a request, so that the grant can serve another item.
func (f *fetcher) step(ctx, flight context.Context, g *polite.Grant) bool {
	switch {
	case g.Item.ID < 0:
		return f.stepRobots(ctx, flight, g, f.robotsTaskOf(g.Item.ID))
	case g.Item.ID >= sitemaps.FirstID:
		return f.stepSitemap(ctx, flight, g, f.sitemaps.Task(g.Item.ID))
	}
	u, err := f.urlTask(g.Item.ID)
	if err != nil {
		f.fail(err)
		g.Done(polite.Result{})
		return true
	}
	rules, failed, used := f.rulesFor(ctx, flight, g, u.key)
	switch {
	case used:
		return true
	case failed != nil:
		f.finish(u, failed.Outcome, failed.Why)
		return false
	}
	verdict, why := f.judge(u, rules)
	if !verdict.Allowed {
		f.finish(u, schema.RobotsDenied, why)
		return false
	}
	if f.begin(ctx, g, manifest.Trying{Row: u.row}) {
		f.get(flight, g, u, rules, verdict.Rule)
	}
	return true
}

// rulesFor returns the robots.txt rules that apply to a URL, or the reason why they could not be
// fetched. If used is true, it returns neither: the URL waits, and the grant was used, for example
// for the request for robots.txt.
func (f *fetcher) rulesFor(ctx, flight context.Context, g *polite.Grant, key urlkey.Key) (rules *robotscache.Rules, failed *robotscache.Failure, used bool) {
	entry := f.robots.Entry(key)
	state, rules, failure, err := f.robots.Lookup(entry)
	switch {
	case err != nil:
		f.fail(err)
		fallthrough
	case state == robotscache.Pending:
		g.PutBack(g.Item)
		g.Done(polite.Result{})
		return nil, nil, true
	case state == robotscache.Unknown:
		g.PutBack(g.Item)
		return nil, nil, f.stepRobots(ctx, flight, g, f.newRobotsTask(entry))
	case state == robotscache.Failed:
		return nil, &failure, false
	}
	return rules, nil, false
}

// stepRobots does the next step of a robots task. It always returns true, because every such step
// uses up the grant.
func (f *fetcher) stepRobots(ctx, flight context.Context, g *polite.Grant, rt *robotsTask) bool {
	if f.begin(ctx, g, manifest.Trying{Origin: rt.entry.Root}) {
		f.askRobots(flight, g, rt)
	}
	return true
}

// judge returns the verdict of robots.txt on the URL that u sends next. If the verdict denies the URL, why is the reason.
// It is empty if a rule denies the planned URL in its canonical form.
func (f *fetcher) judge(u *urlTask, rules *robotscache.Rules) (verdict robots.Verdict, why response.Failure) {
	verdict = rules.Verdict(u.asked())
	switch {
	case len(u.met) > 0:
		return verdict, response.Failed(schema.RedirectDenied, "%s: %s", u.asked(), verdict.Rule)
	case u.sent != "":
		why = response.Failure{Phrase: "robots.txt denies the URL as it was linked", Detail: u.sent}
	}
	u.noteVerdict(verdict)
	return verdict, why
}

// begin tells the gate what the grant is about to request: a URL, a robots.txt or a sitemap. If the
// gate returns an error, begin ends the fetcher and the grant, and returns false.
func (f *fetcher) begin(ctx context.Context, g *polite.Grant, what manifest.Trying) bool {
	err := f.gate.begin(ctx, what)
	if err != nil {
		f.fail(err)
		g.Done(polite.Result{})
	}
	return err == nil
}

// drain ends all items of a grant that permits no request.
func (f *fetcher) drain(g *polite.Grant) {
	outcome, why := schema.Deferred, response.Failure{}
	failed := robotscache.Failure{Outcome: schema.RobotsUnreachable}
	switch g.Kind {
	case polite.Postponed:
		why = response.Failure{Phrase: "no answer: the next round tries again", Detail: g.Item.Why}
		failed = robotscache.Failure{Outcome: outcome, Why: why}
	case polite.Stopped:
		outcome, why = schema.Stopped, response.Failure{Phrase: g.Reason}
	case polite.Suspended:
		outcome, why = schema.HostSuspended, response.Failure{Phrase: "the host refused or failed too many requests"}
	}
	if f.deferAll {
		outcome, why = schema.Deferred, response.Failure{Phrase: "given up"}
	}
	for it, ok := g.Item, true; ok; it, ok = g.Another() {
		if it.ID < 0 {
			rt := f.robotsTaskOf(it.ID)
			if failed.Why == (response.Failure{}) {
				failed.Why.Phrase = "its host is " + string(outcome)
			}
			f.robots.Fail(rt.entry, failed)
			f.recordRobots(rt, nil) // no row is recorded, so another attempt may request this robots.txt again
			continue
		}
		if it.ID >= sitemaps.FirstID {
			f.sitemaps.Drop(f.sitemaps.Task(it.ID)) // the next round may request it
			continue
		}
		u, err := f.urlTask(it.ID)
		if err != nil {
			f.fail(err)
			break
		}
		if outcome == schema.HostSuspended {
			f.mu.Lock()
			u.fetch.BlockedBy = f.refusers[u.key.Host]
			f.mu.Unlock()
		}
		f.finish(u, outcome, why)
		if f.fatal.Load() != nil {
			break
		}
	}
	g.Done(polite.Result{})
}

// reload replaces the politeness settings of the running fetcher.
func (f *fetcher) reload(p polite.Config) {
	f.robots.SetTTL(cmp.Or(p.RobotsTTL, f.cfg.Politeness.RobotsTTL))
	if f.sched.Reload(p) { // the ledger may have changed for another reason
		f.log.Info("new politeness settings apply", "delay", p.Delay.String(), "domains", len(p.Domains))
	}
}

// retry decides whether to try an item again after a failure of the given class. If so, it sets
// r.Requeue to the item and returns true. why describes the failure for people.
func (f *fetcher) retry(counts *manifest.RetryCounts, class response.RetryClass, why, host string, it *polite.Item, r *polite.Result) bool {
	used, limit, pause := retries.Rule(&f.cfg.Retries, &f.cfg.Pauses, counts, class)
	if *used >= limit || f.patience > 0 && r.RetryAfter > f.patience {
		return false
	}
	*used++
	if class == response.AfterDNS {
		r.Hold = f.sched.Jitter(host, f.cfg.Pauses.DNS)
	}
	it.Why = why
	if f.onRetry != nil {
		f.tellRetry(class, *used, host, it, r, pause)
	}
	if pause > 0 {
		it.NotBefore = f.clock.Now().Add(f.sched.Jitter(host, pause))
	}
	r.Requeue = it
	f.progress.Add(retryCounts[class], 1)
	return true
}

// retryLate decides whether an item that got no answer waits for the late try of its host. It is like retry.
func (f *fetcher) retryLate(counts *manifest.RetryCounts, v response.Verdict, why, host string, it *polite.Item, r *polite.Result) bool {
	if !v.NoAnswer || counts.Late > 0 || f.patience > 0 {
		return false
	}
	due, ok := f.sched.LateTry(host)
	if !ok {
		return false
	}
	counts.Late++
	it.Why, it.NotBefore, it.Late = why, due, true
	r.Requeue = it
	f.progress.Add(stages.CountRetries+"late", 1)
	return true
}

// record emits a record, unless it has no rows.
func (f *fetcher) record(r *segments.Record) {
	if r.Empty() {
		if r.OnRecorded != nil {
			r.OnRecorded()
		}
		return
	}
	if err := f.sink.Emit(r); err != nil {
		f.fail(err)
	}
}

// retryCounts names the progress count of each retry class.
var retryCounts = [response.RetryClasses]string{
	response.AfterTimeout:     stages.CountRetries + "timeout",
	response.AfterServerError: stages.CountRetries + "server_error",
	response.AfterLimit:       stages.CountRetries + "rate_limited",
	response.AfterDNS:         stages.CountRetries + "dns",
	response.ForRobots:        stages.CountRetries + "robots",
}

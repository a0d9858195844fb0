package fetch

import (
	"context"
	"sync"
	"time"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/lease"
	"crawlbatch.io/crawlbatch/stages/fetch/partition"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
	"crawlbatch.io/crawlbatch/stages/fetch/sitemaps"
	"crawlbatch.io/crawlbatch/stages/fetch/status"
)

// Limits for fetching one URL while a person waits for the result.
const (
	onePause     = 2 * time.Second  // pause before a retry
	oneLimited   = 5 * time.Second  // pause after a 429 or 503, doubled for each further 429 or 503 in a row
	oneRetries   = 2                // largest number of retries of one class
	onePatience  = 15 * time.Second // longest Retry-After for which the fetcher waits
	oneTellEvery = time.Second      // interval between two looks for waits
	oneBrief     = 2 * time.Second  // a wait for a delay is reported only if it is longer than this
	oneSilent    = 4                // a request without a response is reported after this many looks
)

// hastyConfig returns cfg with shorter pauses, fewer retries and no sitemaps, because a person
// waits for the result. It does not change the delays between requests.
func hastyConfig(cfg Config) Config {
	r, p := &cfg.Retries, &cfg.Pauses
	r.Timeout, r.ServerError, r.RateLimited, r.DNS = min(r.Timeout, oneRetries), min(r.ServerError, oneRetries), min(r.RateLimited, oneRetries), min(r.DNS, oneRetries)
	r.Robots = 0
	cfg.Sitemaps = sitemaps.Limits{}
	p.Timeout, p.ServerError, p.DNS, p.RateLimited = min(p.Timeout, onePause), min(p.ServerError, onePause), min(p.DNS, onePause), min(p.RateLimited, oneLimited)
	return cfg
}

// Session fetches URLs one after another like a fetch task, with robots.txt, redirects and short retries, but
// without a store: captures name no file, and Env.Bucket is not used. All requests of a Session share robots.txt
// files, connections and the delays of their hosts. Only one goroutine may use a Session.
type Session struct {
	f       *fetcher
	scratch string
	told    *reporter
}

// NewSession makes a session, which calls tell for each wait. barred reports whether a canonical URL, sent as in sent, must not be
// requested; if barred is nil, all may be requested. The caller closes the session.
func NewSession(env *stages.Env, cfg Config, parser document.Parser, barred func(url, sent string) bool, tell func(stages.Wait)) (*Session, error) {
	return newSession(env, cfg, options{parser: parser, barred: barred}, tell)
}

func newSession(env *stages.Env, cfg Config, o options, tell func(stages.Wait)) (*Session, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	told := &reporter{tell: tell}
	o.sink, o.gate, o.patience, o.onRetry = &memory{}, openGate{}, onePatience, told.retry
	f, err := newFetcher(env, hastyConfig(cfg), o)
	if err != nil {
		return nil, err
	}
	return &Session{f, env.Scratch, told}, nil
}

// Close releases connections and scratch space.
func (s *Session) Close() { s.f.close() }

// Fetch requests rawURL as it is given, if robots.txt allows it. If ctx ends, the error
// wraps stages.ErrInterrupted. After an error, the session must not be used again, unless the error only says why
// rawURL is not a URL.
func (s *Session) Fetch(ctx context.Context, rawURL string) (*segments.Record, error) {
	f := s.f
	key, sent, err := f.canon.Sent(rawURL, "")
	if err != nil {
		return nil, err
	}
	row := schema.PlannedURL{URL: key.URL, SURT: key.SURT, Host: key.Host, Domain: key.Domain, Form: schema.Form{Sent: sent, SentFrom: schema.SentBySource}}
	if f.index, err = partition.One(s.scratch, &row); err != nil {
		return nil, err
	}
	defer f.index.Close() //nolint:errcheck // scratch
	out := f.sink.(*memory)
	out.rows = segments.Record{}
	clear(f.gates)
	clear(f.refusers)
	clear(f.claims) // an earlier URL may have been redirected to this one
	f.sched.Push(key.Host, polite.Item{})
	defer s.told.watch(f)()
	flights := lease.NewFlights(ctx)
	defer flights.End()
	if err := f.loop(ctx, flights); err != nil {
		if ctx.Err() != nil {
			return nil, stages.ErrInterrupted
		}
		return nil, err
	}
	rows := out.rows
	return &rows, nil
}

// tellRetry reports a retry and its time to onRetry.
func (f *fetcher) tellRetry(class response.RetryClass, n int, host string, it *polite.Item, r *polite.Result, pause time.Duration) {
	if class == response.AfterLimit && r.RetryAfter == 0 {
		pause = f.cfg.Pauses.RateLimited << (n - 1)
	}
	pause = max(pause, r.RetryAfter, r.Hold)
	f.onRetry(stages.Wait{Host: host, Why: status.Why(polite.Wait{Reason: polite.ByItem, Item: *it}), Until: f.clock.Now().Add(pause)})
}

// reporter tells a person about waits. It reports each message once, except for retries.
type reporter struct {
	tell func(stages.Wait)

	mu   sync.Mutex
	told map[string]bool // messages that were already reported
}

// retry reports a retry even if the same message was reported before.
func (w *reporter) retry(wait stages.Wait) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(wait)
	w.tell(wait)
}

// note marks the message of a wait as reported. It returns true if it was marked before.
func (w *reporter) note(wait stages.Wait) bool {
	if w.told == nil {
		w.told = map[string]bool{}
	}
	before := w.told[wait.Why]
	w.told[wait.Why] = true
	return before
}

// watch reports waits other than retries, such as a Crawl-delay or a slow response. It returns a
// function that ends the reports.
func (w *reporter) watch(f *fetcher) (end func()) {
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		look := time.NewTicker(oneTellEvery)
		defer look.Stop()
		for silent := 0; ; {
			select {
			case <-stop:
				return
			case <-look.C:
			}
			st := f.sched.Overview(status.ShownWaits, oneBrief)
			if silent++; st.InFlight == 0 {
				silent = 0
			}
			w.mu.Lock()
			if silent == oneSilent {
				w.tell(stages.Wait{Host: st.Asked, Why: "was asked, no answer yet"})
			}
			for _, wait := range st.Waits {
				if told := (stages.Wait{Host: wait.Host, Why: status.Why(wait), Until: wait.Until}); !w.note(told) {
					w.tell(told)
				}
			}
			w.mu.Unlock()
		}
	}()
	return func() { close(stop); <-ended }
}

// memory is a segments.Sink that gathers all rows in one record and drops responses.
type memory struct {
	mu   sync.Mutex
	rows segments.Record
}

func (m *memory) Archive([]byte, int, *warc.Capture) error { return nil }

func (m *memory) Emit(b *segments.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b.OnRecorded != nil {
		b.OnRecorded()
	}
	r := &m.rows
	r.Requests = append(r.Requests, b.Requests...)
	r.Captures = append(r.Captures, b.Captures...)
	r.Links = append(r.Links, b.Links...)
	if b.Fetch != nil {
		r.Fetch, r.Page, r.Text = b.Fetch, b.Page, b.Text
	}
	return nil
}

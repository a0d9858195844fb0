package fetch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
)

// What a fetch task tells people: whom it waits for, why, and what failed last.

// shownWaits is how many waits are told one by one.
const shownWaits = 5

// brief is the longest wait for a delay that a task does not tell of.
const brief = 30 * time.Second

// activity tells what the crawl is doing.
func (f *fetcher) activity() stages.Activity {
	st := f.sched.Stand(shownWaits, brief)
	a := stages.Activity{
		Left: int64(st.Left), InFlight: st.InFlight, Ready: st.Ready, Delayed: st.Delayed, More: st.More,
		Remaining: st.Rest, Closes: st.Closes, Failures: f.failures.list(),
	}
	for _, w := range st.Waits {
		a.Waits = append(a.Waits, stages.Wait{Host: w.Host, Why: why(w), Until: w.Until, URLs: int64(w.Left)})
	}
	if w := st.Slowest; len(a.Waits) == 0 && w.Host != "" && w.Rest >= worthNaming {
		a.Waits = append(a.Waits, stages.Wait{Host: w.Host, Why: every(w), URLs: int64(w.Left)})
	}
	return a
}

// worthNaming is the time from which the host that takes longest is named though it does not
// wait for anything in particular.
const worthNaming = time.Minute

// every tells the pace of a host.
func every(w polite.Wait) string { return fmt.Sprintf("one request every %s", pace(w)) }

// pace is the delay of a host with what makes it as long as it is.
func pace(w polite.Wait) string {
	d := w.Delay.Round(100 * time.Millisecond).String()
	switch w.Reason {
	case polite.ByCrawlDelay:
		return d + " (Crawl-delay)"
	case polite.BySlowness:
		return d + " (it answers slowly)"
	case polite.ByRaised:
		return d + " (it answered 429 or 503)"
	}
	return d
}

// why puts the reason of a wait into words that end in what comes after it.
func why(w polite.Wait) string {
	if w.Item.Why != "" {
		what := "a page"
		if w.Item.Urgent {
			what = "robots.txt"
		}
		if w.Reason == polite.ByBreaker {
			return fmt.Sprintf("suspended, as too many of its requests failed (%s %s); tried again", what, w.Item.Why)
		}
		return what + " " + w.Item.Why + ", asked again"
	}
	switch w.Reason {
	case polite.ByLimit:
		return "answered 429 or 503, asked again"
	case polite.ByRetryAfter:
		return "answered 429 or 503 with Retry-After, asked again"
	case polite.ByHold:
		return "its name could not be looked up, tried again"
	case polite.ByEarlier:
		return "left in peace since before this attempt, asked again"
	case polite.ByBreaker:
		return "suspended, as too many of its requests failed; tried again"
	case polite.ByItem:
		return "a request failed, made again"
	}
	return every(w) + ", the next"
}

// what is how a request failed, as a verb phrase that follows what was asked for.
func (s *sent) what(outcome schema.Outcome) string {
	if s.x.Status != 0 && s.err == nil {
		if s.retryAfter > 0 {
			return fmt.Sprintf("answered %d with Retry-After", s.x.Status)
		}
		return fmt.Sprintf("answered %d", s.x.Status)
	}
	switch outcome {
	case schema.Timeout:
		return "did not answer in time"
	case schema.DNSError:
		return "is on a host whose name could not be looked up"
	case schema.ConnectError:
		return "could not be had, no connection"
	}
	return "could not be had (" + string(outcome) + ")"
}

// failures are the failed requests of a crawl by class.
type failures struct {
	mu sync.Mutex
	by map[string]*stages.Failure
}

// calm are the outcomes that are no trouble.
var calm = []schema.Outcome{
	schema.OK, schema.NotModified, schema.Redirected, schema.RobotsDenied, schema.HTTP4xx, schema.MIMEFiltered,
	schema.Deferred, schema.Stopped,
}

// note counts a failure.
func (f *failures) note(outcome schema.Outcome, host, text string, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.by == nil {
		f.by = map[string]*stages.Failure{}
	}
	n := f.by[string(outcome)]
	if n == nil {
		n = &stages.Failure{Class: string(outcome)}
		f.by[string(outcome)] = n
	}
	n.N++
	n.Host, n.Text, n.At = host, text, now
}

// of counts the outcome of a URL, if it is a failure.
func (f *failures) of(u *urlTask, outcome schema.Outcome, now time.Time) {
	if slices.Contains(calm, outcome) {
		return
	}
	text := u.fetch.Error
	if text == "" && u.fetch.HTTPStatus != 0 {
		text = fmt.Sprintf("answered %d", u.fetch.HTTPStatus)
	}
	f.note(outcome, u.key.Host, text, now)
}

// list gives them, the newest first.
func (f *failures) list() []stages.Failure {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []stages.Failure
	for _, n := range f.by {
		out = append(out, *n)
	}
	slices.SortFunc(out, func(a, b stages.Failure) int {
		if c := b.At.Compare(a.At); c != 0 {
			return c
		}
		return strings.Compare(a.Class, b.Class)
	})
	return out
}

// activity tells what the attempt is doing.
func (a *attempt) activity() stages.Activity {
	out := a.fetcher.activity()
	if w := a.paused.Load(); w != nil {
		out.Waits = append([]stages.Wait{*w}, out.Waits...)
	}
	return out
}

// storeAway puts into words that the store takes nothing.
func storeAway(err error) string {
	what := "the store does not answer"
	if errors.Is(err, store.ErrFull) {
		what = "the store is full: make room"
	}
	return what + "; tried again all the time, given up"
}

// shownFailures is how many classes of failures a checkpoint tells of.
const shownFailures = 5

// tell writes into a checkpoint what the attempt is doing, for `status`.
func (a *attempt) tell(d *manifest.Checkpoint) {
	if d.Complete {
		d.Activity = nil
		return
	}
	now := a.activity()
	told := &manifest.Activity{
		At: a.env.Clock.Now().UnixMilli(), InFlight: now.InFlight, Ready: now.Ready, Delayed: now.Delayed, More: now.More, RemainingMS: now.Remaining.Milliseconds(), Closes: unixMilli(now.Closes),
	}
	for _, w := range now.Waits {
		told.Waits = append(told.Waits, manifest.Wait{Host: w.Host, Why: w.Why, Until: unixMilli(w.Until), URLs: w.URLs})
	}
	for _, f := range now.Failures[:min(len(now.Failures), shownFailures)] {
		told.Failures = append(told.Failures, manifest.Failure{Class: f.Class, N: f.N, Host: f.Host, Text: f.Text, At: unixMilli(f.At)})
	}
	d.Activity = told
}

func unixMilli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

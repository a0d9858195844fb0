// Package status describes for people what a fetch task does: the hosts for which it waits and why,
// and the last failed requests.
//
// The input is the state of the scheduler's hosts and the failures of requests. The output is the
// activity, which progress displays and checkpoints show. No decision of the program depends on it.
// Package status imports packages stages, formats and polite.
package status

import (
	"cmp"
	"errors"
	"fmt"
	"os"
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

// ShownWaits is how many waits are shown in detail.
const ShownWaits = 5

// A wait for a host's delay is shown in detail only if it is longer than brief.
const brief = 30 * time.Second

// Activity describes what a fetcher is doing now. sitemaps is the number of sitemaps that wait.
func Activity(sched *polite.Scheduler, failures *Failures, sitemaps int) stages.Activity {
	st := sched.Overview(ShownWaits, brief)
	a := stages.Activity{
		Left: int64(st.Left), InFlight: st.InFlight, Ready: st.Ready, Delayed: st.Delayed, Suspended: st.Suspended, More: st.More, Sitemaps: sitemaps,
		Remaining: st.Rest, Closes: st.Closes, Failures: failures.list(),
	}
	for _, w := range st.Waits {
		a.Waits = append(a.Waits, stages.Wait{Host: w.Host, Why: Why(w), Until: w.Until, URLs: int64(w.Left)})
	}
	for _, w := range st.Slowest {
		a.Slowest = append(a.Slowest, stages.SlowHost{Host: w.Host, URLs: int64(w.Left), Rest: w.Rest, Delay: w.Delay, Suspended: w.Suspended})
	}
	if len(st.Slowest) > 0 && st.Slowest[0].Rest >= worthNaming {
		w := st.Slowest[0]
		if len(a.Waits) == 0 || st.Waits[0].Host != w.Host { // the waits are sorted by the same time
			a.Waits = slices.Insert(a.Waits, 0, stages.Wait{Host: w.Host, Why: delayWords(w), URLs: int64(w.Left)})
		}
	}
	return a
}

// Least returns the value of a.Least. The host of a.Latest needs time for its pages only if one of the next
// tries of its robots.txt succeeds.
func Least(a *stages.Activity, now time.Time) time.Duration {
	if len(a.Slowest) == 0 || a.Slowest[0].Host != a.Latest.Host {
		return 0 // another host decides the end
	}
	least := max(a.Latest.Until.Sub(now), time.Second)
	if len(a.Slowest) > 1 {
		least = max(least, a.Slowest[1].Rest)
	}
	if least >= a.Remaining {
		return 0
	}
	return least
}

// The host that takes the longest is shown, even if it waits only for its delay, if its remaining time
// is at least worthNaming.
const worthNaming = time.Minute

// delayWords returns a phrase for the delay of a host, such as "one request every 2s".
func delayWords(w polite.Wait) string { return fmt.Sprintf("one request every %s", paceText(w)) }

// paceText returns the delay of a host as text. It names the cause of the delay, unless the cause is
// the config.
func paceText(w polite.Wait) string {
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

// Why returns the reason for a wait in words. Displays append the time at which the wait ends.
func Why(w polite.Wait) string {
	if explains(w.Item.Why, w.Reason) {
		what := "a page"
		if w.Item.Urgent {
			what = "robots.txt"
		}
		if w.Reason == polite.ByBreaker {
			return fmt.Sprintf("suspended, because too many of its requests failed (%s %s); tried again", what, w.Item.Why)
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
	case polite.ByLate:
		return "gave no answer in the round before, asked again"
	case polite.ByEarlier:
		return "a pause from an earlier attempt, asked again"
	case polite.ByBreaker:
		return "suspended, because too many of its requests failed; tried again"
	case polite.ByItem:
		return "a request failed, made again"
	}
	return delayWords(w) + ", the next"
}

// explains reports whether the failure of the host's next item, as How describes it, can be the reason of a wait. The
// pause may come from the failure of another item.
func explains(why string, reason polite.Reason) bool {
	switch reason {
	case polite.ByLimit, polite.ByRetryAfter:
		return strings.HasPrefix(why, "answered 429") || strings.HasPrefix(why, "answered 503")
	case polite.ByHold:
		return why == How(0, false, schema.DNSError)
	}
	return why != "" && reason >= polite.ByEarlier
}

// How returns a verb phrase for the failure of a request, to follow "a page" or "robots.txt". status
// is 0 if there was no complete response.
func How(status int, retryAfter bool, outcome schema.Outcome) string {
	switch {
	case status != 0 && retryAfter:
		return fmt.Sprintf("answered %d with Retry-After", status)
	case status != 0:
		return fmt.Sprintf("answered %d", status)
	case outcome == schema.Timeout:
		return "did not answer in time"
	case outcome == schema.DNSError:
		return "is on a host whose name could not be looked up"
	case outcome == schema.ConnectError:
		return "could not be fetched (no connection)"
	}
	return "could not be fetched (" + string(outcome) + ")"
}

// Failures counts failed requests by outcome. The zero value is ready for use. It is safe for
// concurrent use.
type Failures struct {
	mu sync.Mutex
	by map[string]*stages.Failure
}

// notFailures lists the outcomes that do not count as failures of a request. A URL that ends as
// robots_unreachable or host_suspended got no request of its own.
var notFailures = []schema.Outcome{
	schema.OK, schema.NotModified, schema.Redirected, schema.RobotsDenied, schema.HTTP4xx, schema.Blocked, schema.PaymentRequired, schema.MIMEFiltered,
	schema.Deferred, schema.Stopped, schema.RobotsUnreachable, schema.HostSuspended,
}

// Note counts a failed request.
func (f *Failures) Note(outcome schema.Outcome, host, text string, now time.Time) {
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

// NoteOutcome counts the outcome of a URL if it is a failure of the URL's last request.
func (f *Failures) NoteOutcome(u *schema.Fetch, host string, now time.Time) {
	if slices.Contains(notFailures, u.Outcome) || u.Attempts == 0 && u.Outcome != schema.InternalError {
		return
	}
	text := u.Error
	if text == "" && u.HTTPStatus != 0 {
		text = fmt.Sprintf("answered %d", u.HTTPStatus)
	}
	f.Note(u.Outcome, host, text, now)
}

// list returns the failures, newest first.
func (f *Failures) list() []stages.Failure {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []stages.Failure
	for _, n := range f.by {
		out = append(out, *n)
	}
	slices.SortFunc(out, func(a, b stages.Failure) int {
		return cmp.Or(b.At.Compare(a.At), strings.Compare(a.Class, b.Class))
	})
	return out
}

// StoreAway describes why the store accepts no writes. Displays append the time at which the
// fetcher gives up.
func StoreAway(err error) string {
	what := "the store does not answer"
	if errors.Is(err, store.ErrFull) {
		what = "the store is full: make room"
	}
	return what + "; the fetcher keeps trying, and gives up"
}

// FirstReport is the time after which an attempt reports for the first time. By then, the quick hosts
// have answered. Further reports come with the renewals of the lease and with checkpoints.
const FirstReport = 5 * time.Second

// Taken is the activity of an attempt that has just taken its partition and has not reported yet.
func Taken(at time.Time) *manifest.Activity {
	machine, _ := os.Hostname() // without a name, the display names no machine
	return &manifest.Activity{At: at.UnixMilli(), Began: at.UnixMilli(), Machine: machine}
}

// shownFailures limits the number of failure classes in a checkpoint.
const shownFailures = 5

// Stored converts an activity to the form that checkpoints hold. Began stays 0.
func Stored(now stages.Activity, at time.Time) *manifest.Activity {
	out := &manifest.Activity{
		At: at.UnixMilli(), InFlight: now.InFlight, Ready: now.Ready, Delayed: now.Delayed, Sitemaps: now.Sitemaps, More: now.More, RemainingMS: now.Remaining.Milliseconds(), Closes: unixMilli(now.Closes),
		Left: now.Left, Bytes: now.Bytes, ElapsedMS: now.Elapsed.Milliseconds(),
	}
	out.Machine, _ = os.Hostname() // without a name, the display names no machine
	for _, w := range now.Waits {
		out.Waits = append(out.Waits, storedWait(w))
	}
	if now.Latest != nil {
		w := storedWait(*now.Latest)
		out.Latest = &w
	}
	out.LeastMS = now.Least.Milliseconds()
	if last := now.EndTogether(); len(last) > 1 && last[0].Rest >= worthNaming {
		for _, h := range last {
			out.Slowest = append(out.Slowest, h.Host)
		}
	}
	for _, f := range now.Failures[:min(len(now.Failures), shownFailures)] {
		out.Failures = append(out.Failures, manifest.Failure{Class: f.Class, N: f.N, Host: f.Host, Text: f.Text, At: unixMilli(f.At)})
	}
	return out
}

func storedWait(w stages.Wait) manifest.Wait {
	return manifest.Wait{Host: w.Host, Why: w.Why, Until: unixMilli(w.Until), URLs: w.URLs}
}

func unixMilli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

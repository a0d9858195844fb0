package metrics

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
)

// Begin notes that work has begun, for /readyz.
func (m *Metrics) Begin() {
	if m != nil {
		m.ready.Store(true)
	}
}

// Attempt wraps a function that makes an attempt at a task. It counts the attempts under way.
func (m *Metrics) Attempt(run func(context.Context, stages.Task) error) func(context.Context, stages.Task) error {
	if m == nil {
		return run
	}
	return func(ctx context.Context, t stages.Task) error {
		m.ready.Store(true)
		running := m.running.WithLabelValues(string(t.Stage))
		running.Inc()
		defer running.Dec()
		return run(ctx, t)
	}
}

// Watcher returns a stages.Watcher that exports the hosts and the fetch window of the watched tasks. It then passes the
// tasks on to the parameter next, which may be nil.
func (m *Metrics) Watcher(next stages.Watcher) stages.Watcher {
	if m == nil {
		return next
	}
	return &watcher{m.hosts, next}
}

type watcher struct {
	hosts *hosts
	next  stages.Watcher
}

// Watch implements stages.Watcher.
func (w *watcher) Watch(t stages.Task, look func() stages.Activity) (end func()) {
	unwatch, unregister := stages.Watched(w.next, t, look), w.hosts.add(look)
	return func() { unregister(); unwatch() }
}

// hosts counts the hosts of the watched tasks by state. It is a prometheus.Collector, because the
// states are only known by looking.
type hosts struct {
	clock                    stages.Clock
	states, suspends, closes *prometheus.Desc

	top                            int // number of hosts that have series of their own
	left, rest, delay, topSuspends *prometheus.Desc

	mu      sync.Mutex
	watched map[int]*watchedTask
	watches int
}

// watchedTask is a running task, and its hosts at the last look.
type watchedTask struct {
	look func() stages.Activity

	ready, delayed, waiting, suspended int
	closes                             time.Time // end of the fetch window; zero if unknown
	slowest                            []stages.SlowHost
	next                               time.Time // earliest time of the next look
}

// To collect, a task walks through all its hosts, and sends no requests meanwhile. At least lookEvery
// passes between two collections. Collections take at most 1/lookShare of a task's time.
const (
	lookEvery = 5 * time.Second
	lookShare = 100
)

// newHosts returns a collector without tasks.
func newHosts(clock stages.Clock) *hosts {
	return &hosts{
		clock: clock, watched: map[int]*watchedTask{},
		states: prometheus.NewDesc("crawler_hosts",
			"Hosts of the fetch tasks in this process that have URLs left and no request under way: ready (due), delayed (by their usual delay) or waiting (longer than 30 s, or after a failure).", []string{"state"}, nil),
		suspends: prometheus.NewDesc("crawler_hosts_suspended",
			"Hosts of the fetch tasks in this process that are suspended, because too many of their requests failed (breaker open).", nil, nil),
		closes: prometheus.NewDesc("crawler_window_closes_timestamp_seconds",
			"When the fetch window of the tasks in this process closes, in Unix time; there is no such series while no window is open.", nil, nil),
		left:        topHost("urls_left", "URLs without an outcome of the hosts that take the longest in this process"),
		rest:        topHost("remaining_seconds", "Predicted time until the last URL of the hosts that take the longest in this process, waits included"),
		delay:       topHost("delay_seconds", "Present delay between two requests to the hosts that take the longest in this process"),
		topSuspends: topHost("suspended", "1 for each of the hosts that take the longest in this process that is suspended (breaker open), 0 for the others"),
	}
}

// MaxTopHosts bounds the number of hosts that have series of their own.
const MaxTopHosts = 20

// topHost describes a series of single hosts.
func topHost(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("crawler_top_host_"+name, help+"; only with `--metrics-top-hosts`.", []string{"domain", "host"}, nil)
}

// TopHosts adds series of the n hosts that take the longest, at most MaxTopHosts. They are the only series
// with the names of hosts. The caller calls TopHosts before Listen.
func (m *Metrics) TopHosts(n int) { m.hosts.top = min(n, MaxTopHosts) }

// add registers a task. The returned function unregisters it.
func (h *hosts) add(look func() stages.Activity) (end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watches++
	n := h.watches
	h.watched[n] = &watchedTask{look: look}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.watched, n)
	}
}

// Describe implements prometheus.Collector.
func (h *hosts) Describe(out chan<- *prometheus.Desc) {
	out <- h.states
	out <- h.suspends
	out <- h.closes
	out <- h.left
	out <- h.rest
	out <- h.delay
	out <- h.topSuspends
}

// Collect implements prometheus.Collector.
func (h *hosts) Collect(out chan<- prometheus.Metric) {
	var sum watchedTask
	h.mu.Lock()
	for _, w := range h.watched {
		w.update(h.clock)
		sum.ready += w.ready
		sum.delayed += w.delayed
		sum.waiting += w.waiting
		sum.suspended += w.suspended
		if w.closes.After(sum.closes) {
			sum.closes = w.closes
		}
		sum.slowest = append(sum.slowest, w.slowest...)
	}
	h.mu.Unlock()
	gauge := func(d *prometheus.Desc, n float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, n, labels...)
	}
	gauge(h.states, float64(sum.ready), "ready")
	gauge(h.states, float64(sum.delayed), "delayed")
	gauge(h.states, float64(sum.waiting), "waiting")
	gauge(h.suspends, float64(sum.suspended))
	if !sum.closes.IsZero() {
		gauge(h.closes, float64(sum.closes.Unix()))
	}
	for _, s := range slowest(sum.slowest, h.top) {
		host := strings.ToValidUTF8(s.Host, "?")
		name, _ := urlkey.SplitPort(host)
		domain := urlkey.Domain(name)
		gauge(h.left, float64(s.URLs), domain, host)
		gauge(h.rest, s.Rest.Seconds(), domain, host)
		gauge(h.delay, s.Delay.Seconds(), domain, host)
		suspended := 0.0
		if s.Suspended {
			suspended = 1
		}
		gauge(h.topSuspends, suspended, domain, host)
	}
}

// slowest returns the n hosts that take the longest, each once: while a partition changes hands, two tasks
// may have the same hosts.
func slowest(all []stages.SlowHost, n int) []stages.SlowHost {
	slices.SortFunc(all, func(a, b stages.SlowHost) int {
		return cmp.Or(cmp.Compare(b.Rest, a.Rest), strings.Compare(a.Host, b.Host))
	})
	seen := map[string]bool{}
	all = slices.DeleteFunc(all, func(s stages.SlowHost) bool {
		again := seen[s.Host]
		seen[s.Host] = true
		return again
	})
	return all[:min(n, len(all))]
}

// update looks at the task, unless it was looked at lately.
func (w *watchedTask) update(clock stages.Clock) {
	began := clock.Now()
	if began.Before(w.next) {
		return
	}
	a := w.look()
	w.ready, w.delayed, w.waiting, w.suspended = a.Ready, a.Delayed, a.More, a.Suspended
	w.closes, w.slowest = a.Closes, a.Slowest
	for _, wait := range a.Waits {
		// Without a host, the whole task waits. Without an end, the wait is a host's usual delay.
		if wait.Host != "" && !wait.Until.IsZero() {
			w.waiting++
		}
	}
	w.next = began.Add(max(lookEvery, lookShare*clock.Now().Sub(began)))
}

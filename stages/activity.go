package stages

import "time"

// Activity describes what a task is doing, for display only.
type Activity struct {
	Left     int64 // planned URLs that have no outcome yet
	InFlight int   // number of requests in flight
	Ready    int   // number of hosts that are due and wait for a free slot
	Delayed  int   // number of hosts that wait only for their usual delay
	// Suspended is the number of hosts whose breaker is open. The other numbers include these hosts.
	Suspended int
	Sitemaps  int // number of known sitemaps that the task has yet to request
	Waits     []Wait
	More      int // number of waits that are not in Waits
	// Slowest lists the hosts that take the longest, longest first, whether they wait or not. It has at
	// most twenty hosts.
	Slowest []SlowHost
	// Remaining is a lower bound of the time until the task ends, known waits included. Zero means
	// unknown.
	Remaining time.Duration
	// Latest is the host that may delay the end beyond Remaining, and until when; nil if there is none. Its
	// robots.txt has failed, and further tries are left.
	Latest *Wait
	// Least is the time until the task ends if the robots.txt of Latest goes on failing, because no page of
	// the host is then requested. Zero means that it is not shorter than Remaining.
	Least time.Duration
	// Closes is when the fetch window closes. URLs without an outcome are then deferred. Zero means
	// unknown.
	Closes   time.Time
	Failures []Failure // at most one for each class, the newest first
	// Bytes is the number of bytes that the attempt received. Elapsed is the time of all attempts at the
	// task. Zero means unknown.
	Bytes   int64
	Elapsed time.Duration
}

// EndTogether returns the slowest hosts that need at least nine tenths of the time of the slowest one. To
// stop one of them alone would hardly shorten the task.
func (a *Activity) EndTogether() []SlowHost {
	n := 0
	for n < len(a.Slowest) && 10*a.Slowest[n].Rest >= 9*a.Slowest[0].Rest {
		n++
	}
	return a.Slowest[:n]
}

// Wait is one thing that a task waits for.
type Wait struct {
	Host string // host that the task waits for; empty if the whole task waits
	// Why is a phrase that says why the task waits and what happens at Until, such as
	// "robots.txt answered 503, asked again".
	Why   string
	Until time.Time // end of the wait; zero means unknown
	URLs  int64     // number of planned URLs that wait for Host
}

// SlowHost is a host with URLs left.
type SlowHost struct {
	Host      string
	URLs      int64         // planned URLs without an outcome that no request serves now
	Rest      time.Duration // predicted time until the last of them, waits included
	Delay     time.Duration // present delay between two requests
	Suspended bool          // whether the breaker is open
}

// Failure describes the failed requests of one class.
type Failure struct {
	Class string // outcome that a URL gets if its last request fails like these
	N     int64  // number of such requests
	Host  string // host of the newest failed request
	Text  string // text of the newest failure
	At    time.Time
}

// Watcher displays what tasks do. Its methods are safe for concurrent use.
type Watcher interface {
	// Watch registers a task. The Watcher calls look whenever it wants to know what the task is doing.
	// The task calls end when it ends; after that, the Watcher forgets the task.
	Watch(t Task, look func() Activity) (end func())
}

// Watched registers a task with w, if w is not nil.
func Watched(w Watcher, t Task, look func() Activity) (end func()) {
	if w == nil {
		return func() {}
	}
	return w.Watch(t, look)
}

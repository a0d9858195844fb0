package stages

import "time"

// Activity is what a task is doing, for people: nothing that the task does depends on it.
type Activity struct {
	Left     int64 // planned URLs that have no outcome yet
	InFlight int   // requests under way
	Ready    int   // hosts that are due and get the next free slots
	Delayed  int   // hosts that wait for nothing but the usual delay
	Waits    []Wait
	More     int // waits that Waits leaves out
	// Remaining is how long the task takes at least, known waits included. Zero: not known.
	Remaining time.Duration
	// Closes is when the fetch window closes and the rest is deferred. Zero: not known.
	Closes   time.Time
	Failures []Failure // by class, the newest first
}

// Wait is one thing that a task waits for.
type Wait struct {
	Host string // "": the whole task waits
	// Why is a phrase that ends in what happens at Until:
	// "robots.txt answered 503, asked again".
	Why   string
	Until time.Time // zero: not known
	URLs  int64     // planned URLs that wait with it
}

// Failure is what is known of a class of failed requests.
type Failure struct {
	Class string // an outcome
	N     int64
	Host  string // of the newest
	Text  string // of the newest
	At    time.Time
}

// Watcher is shown what tasks do. Its methods may be called by several goroutines at
// a time.
type Watcher interface {
	// Watch announces that look may be asked, until end is called, what a task is doing.
	Watch(t Task, look func() Activity) (end func())
}

// Watched sets up what is shown of a task, where somebody watches; w may be nil.
func Watched(w Watcher, t Task, look func() Activity) (end func()) {
	if w == nil {
		return func() {}
	}
	return w.Watch(t, look)
}

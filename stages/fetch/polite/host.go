package polite

import (
	"container/heap"
	"time"
)

// These constants determine how the responses of a host lengthen its delay.
const (
	limitedPause    = 30 * time.Second // default of Options.LimitedPause
	maxLimitedPause = 2 * time.Hour    // longest pause that doubling may reach; a Retry-After may be longer, up to maxDelay
	minRaisedDelay  = time.Second      // smallest raised delay, or the first pause if that is shorter
	maxRaisedDelay  = 2 * time.Minute
	maxDoublings    = 4  // largest number of doublings of the pause and the delay; without this limit, a task that is often interrupted might never send a request
	calmAfter       = 10 // number of responses in a row without 429 or 503 after which a raised delay is halved

	slowFrom     = time.Second      // a host that responds within this time is never slow, even if its delay is shorter
	maxSlowDelay = 30 * time.Second // largest delay of a slow host
	newestWeight = 0.2              // weight of the last response in the moving mean
)

// guessedService is the assumed duration of a host's first request, in seconds. serviceWeight is
// the weight of each further request in the moving mean.
const (
	guessedService = 1.5
	serviceWeight  = 0.2
)

// Rows is a host's queue of planned items in fetch order. The scheduler calls its methods while it
// holds its lock, so they must be quick.
type Rows interface {
	Len() int
	Band() Band // band of the item that Pop returns next; not called if no item is left
	Pop() (id int64, ok bool)
}

// host is the state of one host.
type host struct {
	name  string
	rows  Rows
	extra items // pushed items that are not urgent

	urgent  items
	blocked bool // whether only urgent items get grants

	base       time.Duration // configured delay
	stop       string        // reason why the config stops the host's domain; "" if it does not
	allowed    int           // configured limit of requests in flight
	crawlDelay time.Duration
	stored     time.Duration // delay that an earlier attempt stored; zero after a reload
	raised     time.Duration // delay raised by 429 and 503; 0 if not raised
	slowed     time.Duration // delay of a slow host; 0 if the host is not slow
	limited    int           // number of 429 and 503 in a row
	refusals   int           // number of results in a row of the classes Forbidden and Refused
	gavePages  bool          // whether a result had Page
	calm       int           // number of other responses in a row since the delay was raised
	jitters    uint64

	notBefore time.Time // no request before this time, even if the delay is shorter
	putOff    Reason    // why notBefore is set
	paced     time.Time // start of the current delay: the last request or failed connection; zero if none
	written   time.Time // when the last request was written; zero if none
	service   float64   // mean time from a grant to its Done, in seconds
	response  float64   // mean time from a request to the end of its response, in seconds; 0 if none
	recent    float64   // smaller of the last response time and the mean (response), so that one slow response does not make the host slow
	silent    int       // number of requests in a row without a response
	failing   time.Time // when the first request failed without an answer since the last answer; zero if none
	carried   bool      // whether an earlier round left the late try to this one
	owed      bool      // whether carried and not made yet
	postponed bool      // whether an item was postponed to the next round
	inFlight  int
	met       bool // whether addr is set, or the host needs no delay per address (addr is then nil)
	held      bool // whether the host has an open grant whose request is not written yet, or which permits no request
	br        breaker
	addr      *address

	drain Kind // Fetch if requests are allowed, otherwise the kind of grant that the host's items get
	place place
	band  Band    // band of the host's next row
	queue *byWork // lane in which the ready host waits
	index int     // index in queue, or in the heap of hosts that wait for the address
	work  float64 // predicted work when the host entered its heap, in seconds
	wait  waiter
}

// required returns the delay that the config and the host's robots.txt require, or required when an
// earlier attempt stored it.
func (h *host) required() time.Duration { return max(h.base, h.crawlDelay, h.stored) }

// delay returns the current delay, which is the longest of all delays of the host.
func (h *host) delay() time.Duration { return max(h.required(), h.raised, h.slowed) }

// remaining returns the number of items that the host has left.
func (h *host) remaining() int { return h.rows.Len() + len(h.extra) + len(h.urgent) }

// dueTime returns when the host's next request may be sent. The host's address may be due later.
func (h *host) dueTime() time.Time {
	at := later(h.pace(), h.firstItem())
	if h.br.open {
		at = later(at, h.br.probeAt)
	}
	return at
}

// firstItem returns the time at which the first item that is not blocked becomes due. Zero means
// now.
func (h *host) firstItem() (at time.Time) {
	rows := !h.blocked && h.rows.Len() > 0
	pushed := len(h.urgent) > 0 || !h.blocked && len(h.extra) > 0
	if pushed && !rows {
		at = h.nextItem().NotBefore
	}
	return at
}

// take removes the next item: an urgent item, a pushed item that is due, or a planned row. If all
// is true, it also takes items that are not due, and items of a blocked host.
func (h *host) take(now time.Time, all bool) (Item, bool) {
	if len(h.urgent) > 0 && (all || !h.urgent[0].NotBefore.After(now)) {
		return heap.Pop(&h.urgent).(Item), true
	}
	if h.blocked && !all {
		return Item{}, false
	}
	if len(h.extra) > 0 && (all || !h.extra[0].NotBefore.After(now)) {
		return heap.Pop(&h.extra).(Item), true
	}
	if id, ok := h.rows.Pop(); ok {
		return Item{ID: id}, true
	}
	return Item{}, false
}

// predict returns how long the host's remaining items take at least, by its current delay and
// service time, in seconds.
func (h *host) predict() float64 {
	return float64(h.remaining()) * max(h.delay().Seconds(), h.service/float64(h.allowed))
}

// PauseAfter returns how long a host gets no request after n responses in a row with 429 or 503,
// without the random part. first is the pause after the first of them.
func PauseAfter(n int, first time.Duration) time.Duration {
	return min(first<<min(n-1, maxDoublings), maxLimitedPause)
}

// slowDown raises the delay after a 429 or 503.
func (h *host) slowDown(s *Scheduler, now time.Time, retryAfter time.Duration) {
	h.limited++
	pause := PauseAfter(h.limited, s.pause)
	reason := ByLimit
	if retryAfter > pause {
		reason = ByRetryAfter
	}
	h.keepFrom(now.Add(s.jitter(h, max(pause, min(retryAfter, maxDelay)))), reason)
	least := min(minRaisedDelay, s.pause)
	most := min(h.required(), maxRaisedDelay) << maxDoublings
	h.raised = min(max(2*h.delay(), least), maxRaisedDelay, max(least, most))
	h.calm = 0
}

// updateSlowed computes the delay that the host gets because it is slow (Config.SlowFactor).
func (h *host) updateSlowed(factor float64) {
	h.slowed = 0
	from := max(h.required(), slowFrom)
	over := h.recent - from.Seconds()
	if factor <= 0 || over <= 0 {
		return
	}
	over = min(factor*over, maxSlowDelay.Seconds())
	h.slowed = min(from+time.Duration(over*float64(time.Second)), maxSlowDelay)
}

// answered updates the response times of the host, and its delay as a slow host, after a response
// that took d.
func (h *host) answered(d time.Duration, factor float64) {
	last := d.Seconds()
	if h.response == 0 {
		h.response = last
	} else {
		h.response += newestWeight * (last - h.response)
	}
	h.recent = min(last, h.response)
	h.updateSlowed(factor)
}

// GavePage notes that a host gave a page in an earlier attempt.
func (s *Scheduler) GavePage(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.host(name).gavePages = true
}

// mostRefusals returns the number of refusals in a row after which the host is suspended, by the class of the last.
func (h *host) mostRefusals(c Class) int {
	if c == Forbidden && h.gavePages {
		return manyRefusals
	}
	return fewRefusals
}

// speedUp halves a raised delay after calmAfter responses without 429 or 503.
func (h *host) speedUp() {
	h.limited = 0
	if h.raised == 0 {
		return
	}
	if h.calm++; h.calm >= calmAfter {
		h.calm = 0
		if h.raised /= 2; h.raised <= h.required() {
			h.raised = 0
		}
	}
}

func (h *host) served(d time.Duration) {
	h.service += serviceWeight * (d.Seconds() - h.service)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

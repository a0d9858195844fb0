package polite

import (
	"container/heap"
	"time"
)

// How a host's own answers slow it down.
const (
	limitedPause    = 30 * time.Second // Options.LimitedPause where nothing is said
	maxLimitedPause = 2 * time.Hour    // bounds that pause; a Retry-After is obeyed up to maxDelay
	minRaisedDelay  = time.Second      // or the pause, where that is shorter
	maxRaisedDelay  = 2 * time.Minute
	maxDoublings    = 4  // of pause and delay, so that a task that is interrupted often gets to ask again
	calmAfter       = 10 // answers in a row without 429 or 503 that halve a raised delay

	slowFrom     = time.Second      // a host that takes no longer is not slow, however short its delay
	maxSlowDelay = 30 * time.Second // bounds the delay of a slow host
	newestWeight = 0.2              // of the last response in the mean
)

// guessedService is the time of a request to a host that has answered none, in
// seconds; later ones move the mean by serviceWeight.
const (
	guessedService = 1.5
	serviceWeight  = 0.2
)

// Rows are a host's planned items in the order in which they are to be fetched.
// The methods are called under the scheduler's lock and must be quick.
type Rows interface {
	Len() int
	Band() Band // of the item that Pop gives next; not asked when there is none
	Pop() (id int64, ok bool)
}

// host is the state of one host.
type host struct {
	name  string
	rows  Rows
	extra items // pushed

	urgent  items
	blocked bool // nothing but urgent items

	base       time.Duration // configured
	stop       string        // configured
	allowed    int           // configured: requests in flight
	crawlDelay time.Duration
	stored     time.Duration // what an earlier attempt kept to, until a newer config comes
	raised     time.Duration // by its own answers, 0 if not
	slowed     time.Duration // as its answers take long, 0 if not
	limited    int           // 429 and 503 in a row
	calm       int           // other answers in a row since the delay was raised
	jitters    uint64

	notBefore time.Time // of the next request, beside the delay
	putOff    Reason    // of notBefore
	paced     time.Time // from when the delay counts: the last request or try of one; zero: none
	written   time.Time // when the last request was written; zero: none
	service   float64   // mean seconds of a grant, from when it was given
	response  float64   // mean seconds from a request to the end of its answer; 0: none yet
	recent    float64   // the smaller of that and the last: one slow answer makes no slow host
	silent    int       // requests in a row that got no answer
	inFlight  int
	met       bool // its address is known: addr, or that it is exempt
	held      bool // by a grant that may yet write, or that drains
	br        breaker
	addr      *address

	drain Kind // Fetch, or why it is to be drained
	place place
	band  Band    // of its rows
	queue *byWork // that it is in, while ready
	index int     // in that heap or in that of its address
	work  float64 // predicted seconds of work when it was put there
	wait  waiter
}

// asked is the delay that the config and the host's robots.txt ask for.
func (h *host) asked() time.Duration { return max(h.base, h.crawlDelay, h.stored) }

// delay is the delay in force.
func (h *host) delay() time.Duration { return max(h.asked(), h.raised, h.slowed) }

// remaining is how many items the host has left.
func (h *host) remaining() int { return h.rows.Len() + len(h.extra) + len(h.urgent) }

// due is when the host's next request may be sent, as far as the host goes.
func (h *host) due() time.Time {
	at := h.notBefore
	if !h.paced.IsZero() {
		at = later(at, h.paced.Add(h.delay()))
	}
	if h.br.open {
		at = later(at, h.br.probeAt)
	}
	return later(at, h.firstItem())
}

// firstItem is when the first of the available items is due.
func (h *host) firstItem() (at time.Time) {
	if !h.blocked {
		if h.rows.Len() > 0 {
			return at
		}
		if len(h.extra) > 0 {
			at = h.extra[0].NotBefore
		}
	}
	if len(h.urgent) > 0 && (h.blocked || len(h.extra) == 0 || h.urgent[0].NotBefore.Before(at)) {
		at = h.urgent[0].NotBefore
	}
	return at
}

// take removes the item that comes next: an urgent one, a pushed one that is due,
// or a row. When all is set, they are taken before they are due, and from a
// blocked host too.
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

// push adds an item.
func (h *host) push(it Item) {
	if it.Urgent {
		heap.Push(&h.urgent, it)
	} else {
		heap.Push(&h.extra, it)
	}
}

// predict is how long the rest of the host takes at least, in seconds.
func (h *host) predict() float64 {
	return float64(h.remaining()) * max(h.delay().Seconds(), h.service/float64(h.allowed))
}

// slowDown takes a 429 or 503.
func (h *host) slowDown(s *Scheduler, now time.Time, retryAfter time.Duration) {
	h.limited++
	pause := min(s.pause<<min(h.limited-1, maxDoublings), maxLimitedPause)
	reason := ByLimit
	if retryAfter > pause {
		reason = ByRetryAfter
	}
	h.keepFrom(now.Add(s.jitter(h, max(pause, min(retryAfter, maxDelay)))), reason)
	least := min(minRaisedDelay, s.pause)
	most := min(h.asked(), maxRaisedDelay) << maxDoublings
	h.raised = min(max(2*h.delay(), least), maxRaisedDelay, max(least, most))
	h.calm = 0
}

// slacken sets what a slow host's delay grows to: by factor times what its answers
// take longer than the delay, so that such a host rests more the slower it is.
func (h *host) slacken(factor float64) {
	h.slowed = 0
	from := max(h.asked(), slowFrom)
	over := h.recent - from.Seconds()
	if factor <= 0 || over <= 0 {
		return
	}
	over = min(factor*over, maxSlowDelay.Seconds())
	h.slowed = min(from+time.Duration(over*float64(time.Second)), maxSlowDelay)
}

// answered takes how long the answer to a request took, and slackens the host's pace.
func (h *host) answered(d time.Duration, factor float64) {
	last := d.Seconds()
	if h.response == 0 {
		h.response = last
	} else {
		h.response += newestWeight * (last - h.response)
	}
	h.recent = min(last, h.response)
	h.slacken(factor)
}

// speedUp takes an answer that is neither 429 nor 503.
func (h *host) speedUp() {
	h.limited = 0
	if h.raised == 0 {
		return
	}
	if h.calm++; h.calm >= calmAfter {
		h.calm = 0
		if h.raised /= 2; h.raised <= h.asked() {
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

package polite

import (
	"container/heap"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/zeebo/xxh3"

	"crawlbatch.io/crawlbatch/stages"
)

// Options configures a Scheduler.
type Options struct {
	Config  Config
	Breaker Breaker      // zero means DefaultBreaker
	Clock   stages.Clock // nil means the system clock
	Log     *slog.Logger // for suspended and resumed hosts; nil means no log
	Seed    uint64       // seed of the random part of pauses
	// LimitedPause is the pause of a host after its first 429 or 503, without the random part. It
	// doubles with each further 429 or 503 in a row, at most four times. Zero means 30s.
	LimitedPause time.Duration
	// Slots is the largest number of grants that the caller holds at a time; zero means no limit.
	// Hosts whose last request got no response may have an eighth of these grants, but at least
	// one.
	Slots int
	// Clocks are shared with the Schedulers of other tasks; nil if there are none.
	Clocks *Clocks
	// Late is the time from a request without an answer to the late try of its host (LateTry). Zero means that
	// there are no late tries.
	Late time.Duration
}

// A Scheduler gives grants, which permit requests to hosts. Only one goroutine at a time may call
// Next. All other methods are safe for concurrent use.
type Scheduler struct {
	clock  stages.Clock
	log    *slog.Logger
	seed   uint64
	brk    Breaker
	pause  time.Duration         // pause of a host after its first 429 or 503
	clocks *Clocks               // may be nil
	late   time.Duration         // see Options.Late
	later  func(host string) int // returns how many items will be pushed to a host later, for predictions; may be nil

	mu        sync.Mutex
	cfg       Config
	hosts     map[string]*host
	inOrder   []*host // hosts in the order of Add
	addresses map[netip.Addr]*address
	timed     byTime
	drains    byWork // due hosts whose items get grants that permit no request
	lanes     [lanes]lane
	paid      float64 // what the lane of the last grant had paid before it; a lane that was empty starts there
	seq       int64
	grants    int // number of open grants
	left      int // number of items in queues
	closed    bool
	postponed bool               // whether all remaining items are postponed to the next round
	sent      bool               // whether this or an earlier attempt has written a request
	closesAt  time.Time          // when Close will be called; zero if unknown
	held      time.Time          // when HoldAddresses or HoldAll was called; zero if not
	wholly    bool               // whether HoldAll was called
	wakeup    context.CancelFunc // ends the sleep of Next

	slots          int     // limit of open grants; 0 if unknown
	service        float64 // moving mean of the time that a grant takes, over about a hundred grants, in seconds
	doubtfulGrants int     // number of open grants of hosts whose last request got no response
	doubtfulMax    int
}

// New makes a Scheduler without hosts.
func New(opt Options) *Scheduler {
	s := &Scheduler{
		clock: opt.Clock, log: opt.Log, seed: opt.Seed, brk: opt.Breaker, cfg: opt.Config,
		hosts: make(map[string]*host), addresses: make(map[netip.Addr]*address),
		slots: opt.Slots, service: guessedService, clocks: opt.Clocks, late: opt.Late,
	}
	if s.clock == nil {
		s.clock = stages.SystemClock{}
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.pause = opt.LimitedPause; s.pause == 0 {
		s.pause = limitedPause
	}
	if s.brk == (Breaker{}) {
		s.brk = DefaultBreaker()
	}
	if s.doubtfulMax = max(1, opt.Slots/doubtfulPart); opt.Slots == 0 {
		s.doubtfulMax = math.MaxInt
	}
	s.makeLanes()
	return s
}

// Add adds a host with its planned rows. Each name may be added once.
func (s *Scheduler) Add(name string, rows Rows) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hosts[name] != nil {
		return fmt.Errorf("polite: host %q exists already", name)
	}
	s.add(name, rows)
	return nil
}

func (s *Scheduler) add(name string, rows Rows) *host {
	s.seq++
	h := &host{name: name, rows: rows, service: guessedService, notBefore: s.clock.Now(), wait: waiter{order: s.seq, index: -1}}
	h.wait.host = h
	h.adopt(s.cfg.termsOf(name))
	s.hold(h)
	s.hosts[name] = h
	s.inOrder = append(s.inOrder, h)
	s.left += rows.Len()
	s.reschedule(h)
	return h
}

// adopt applies the host's settings from the config.
func (h *host) adopt(t terms) { h.base, h.allowed, h.stop = t.delay, t.inFlight, t.stop }

// host returns the host with the given name. It adds an unknown host, because a redirect or a
// robots.txt may name a host without planned rows.
func (s *Scheduler) host(name string) *host {
	if h := s.hosts[name]; h != nil {
		return h
	}
	return s.add(name, noRows{})
}

type noRows struct{}

func (noRows) Len() int           { return 0 }
func (noRows) Band() Band         { return Medium }
func (noRows) Pop() (int64, bool) { return 0, false }

// Push adds an item to a host, such as a retry or the next hop of a redirect. When the item is due,
// it comes before the planned rows of the host. If the host is unknown, Push adds it.
func (s *Scheduler) Push(name string, it Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.host(name)
	s.push(h, it)
	s.reschedule(h)
	s.wakeNext()
}

func (s *Scheduler) push(h *host, it Item) {
	s.seq++
	it.seq = s.seq
	to := &h.extra
	if it.Urgent {
		to = &h.urgent
	}
	heap.Push(to, it)
	s.left++
}

// Block limits a host to urgent items until Unblock is called. If the host is unknown, Block adds
// it.
func (s *Scheduler) Block(name string) { s.setBlocked(name, true) }

// Unblock ends a Block.
func (s *Scheduler) Unblock(name string) { s.setBlocked(name, false) }

func (s *Scheduler) setBlocked(name string, blocked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.host(name); h.blocked != blocked {
		h.blocked = blocked
		s.reschedule(h)
		s.wakeNext()
	}
}

// Next waits for the next grant. It returns io.EOF if no item is left and no open grant can add
// one. If the context ends, it returns the context's error.
func (s *Scheduler) Next(ctx context.Context) (*Grant, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s.mu.Lock()
		t, wait, more := s.pick(s.clock.Now())
		if t != nil || !more {
			s.mu.Unlock()
			if t == nil {
				return nil, io.EOF
			}
			return t, nil
		}
		sleep, cancel := context.WithCancel(ctx)
		s.wakeup = cancel
		s.mu.Unlock()
		_ = s.clock.Sleep(sleep, wait) // wakeNext may end the sleep early
		cancel()
	}
}

// idleSleep is the time for which Next sleeps when only Done can add work. Done wakes it up.
const idleSleep = time.Hour

// pick returns a grant if a host is due at the time now. Otherwise it returns how long to wait, and
// whether more grants can follow.
func (s *Scheduler) pick(now time.Time) (t *Grant, wait time.Duration, more bool) {
	for len(s.timed) > 0 && !s.timed[0].at.After(now) {
		w := heap.Pop(&s.timed).(*waiter)
		if w.addr != nil {
			s.wake(w.addr)
		} else {
			w.host.place = nowhere
			s.makeReady(w.host)
		}
	}
	for {
		h, from := s.dequeue()
		if h == nil {
			break
		}
		h.place = nowhere
		if h.drain == Fetch {
			if h.dueTime().After(now) {
				s.reschedule(h) // the delay grew while the host was ready
				continue
			}
			if h.addr != nil && h.addr.due.After(now) {
				s.park(h)
				continue
			}
		}
		if t := s.give(h, now, from); t != nil {
			return t, 0, true
		}
	}
	if len(s.timed) == 0 {
		return nil, idleSleep, s.grants > 0
	}
	if s.grants == 0 && s.timed[0].at.Sub(now) > worthAwaiting && s.onlyLate(now.Add(worthAwaiting)) {
		s.postpone()
		return s.pick(now)
	}
	// If no item is due before the window closes, the scheduler closes now. But a task that has
	// sent nothing does not close early: the next round would start in the same state and send
	// nothing either.
	if first := s.timed[0].at; s.grants > 0 || s.closed || !s.sent || s.closesAt.IsZero() || first.Before(s.closesAt) {
		return nil, first.Sub(now), true
	}
	s.log.Info("no remaining item is due before the window closes", "left", s.left)
	s.close()
	return s.pick(now)
}

// give takes an item of the host and makes a grant for it. It returns nil if no item is due.
func (s *Scheduler) give(h *host, now time.Time, from *lane) *Grant {
	due := h.dueTime()
	it, ok := h.take(now, h.drain != Fetch)
	if !ok {
		s.reschedule(h)
		return nil
	}
	s.left--
	s.grants++
	h.held = true
	h.postponed = h.postponed || h.drain == Postponed
	t := &Grant{s: s, h: h, Host: h.name, Item: it, Kind: h.drain, Due: due, Delay: h.delay(), given: now}
	if h.drain != Fetch {
		t.Reason = h.stop
		return t
	}
	s.charge(from, h)
	h.inFlight++
	if h.silent > 0 {
		t.doubtful = true
		s.doubtfulGrants++
	}
	if h.br.open {
		t.Kind = Probe
	}
	if a := h.addr; a != nil {
		a.due = later(a.due, now.Add(s.cfg.PerAddressDelay))
		s.arm(a)
	}
	return t
}

// reschedule moves a host to the right heap after a change of its state.
func (s *Scheduler) reschedule(h *host) {
	drain := s.drainKind(h)
	if h.held || h.remaining() == 0 || drain == Fetch && h.blocked && len(h.urgent) == 0 {
		s.remove(h)
		return
	}
	if drain != Fetch {
		if h.place != ready || h.drain == Fetch {
			s.remove(h)
			h.drain = drain
			s.makeReady(h)
		}
		return
	}
	if h.place == ready && h.drain != Fetch {
		s.remove(h) // a reload lifted the stop
	}
	h.drain = Fetch
	if h.inFlight >= h.allowed || h.br.open && h.inFlight > 0 {
		s.remove(h)
		return
	}
	if h.place == ready || h.place == parked {
		return // pick checks again whether the host is due
	}
	h.place = timed
	setTime(&s.timed, &h.wait, h.dueTime())
}

// drainKind returns Fetch if requests to the host are allowed, otherwise the kind of grant that its
// items get.
func (s *Scheduler) drainKind(h *host) Kind {
	switch {
	case h.stop != "":
		return Stopped
	case s.postponed:
		return Postponed
	case h.br.gaveUp, s.closed && h.br.open:
		return Suspended
	case s.closed:
		return Closed
	}
	return Fetch
}

func (s *Scheduler) makeReady(h *host) {
	h.place = ready
	h.work = h.predict()
	s.enqueue(h)
}

// remove takes a host out of the heap that holds it, if any does.
func (s *Scheduler) remove(h *host) {
	switch h.place {
	case timed:
		heap.Remove(&s.timed, h.wait.index)
	case ready:
		heap.Remove(h.queue, h.index)
	case parked:
		heap.Remove(&h.addr.parked, h.index)
	}
	h.place = nowhere
}

// wakeNext ends the sleep of Next, which then calls pick again.
func (s *Scheduler) wakeNext() {
	if s.wakeup != nil {
		s.wakeup()
		s.wakeup = nil
	}
}

// Remaining returns the number of items in queues, without those of open grants.
func (s *Scheduler) Remaining() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left
}

// Jitter lengthens a pause by a random part, so that items that failed together are not retried
// together. This part is at most a quarter of the pause, and at most half an hour.
func (s *Scheduler) Jitter(host string, d time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.hosts[host]; h != nil {
		return s.jitter(h, d)
	}
	return d
}

func (s *Scheduler) jitter(h *host, d time.Duration) time.Duration {
	h.jitters++
	r := rand.New(rand.NewPCG(s.seed^xxh3.HashString(h.name), h.jitters))
	return d + time.Duration(r.Int64N(int64(Longest(d)-d)+1))
}

// Longest returns the longest time that a pause of d may become with its random part.
func Longest(d time.Duration) time.Duration { return d + min(d, maxLimitedPause)/4 }

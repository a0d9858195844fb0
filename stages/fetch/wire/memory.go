package wire

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

const (
	// While other exchanges wait, the client stops reading slow bodies. A body is slow if it has
	// held memory for at least slowAfter, and if fewer than slowest bytes per second have arrived.
	slowest   = 32 << 10 // bytes per second
	slowAfter = 5 * time.Second
	// hurryAfter is how long an exchange waits before the client stops reading the slow body of
	// another exchange.
	hurryAfter = 2 * time.Second
	// If an exchange waits for memory longer than maxUnblamedWait, the end of its time limit does
	// not count as slowness of the peer.
	maxUnblamedWait = time.Second
)

// ErrNoRoom is a cause of ErrAborted. The exchange waited for memory until its time limit, because
// other exchanges held the memory.
var ErrNoRoom = errors.New("no memory for the body within the time limit: other exchanges hold it")

// memory is shared by all exchanges of a client. Each response takes what it needs beyond
// http1.OwnMemory from it, piece by piece as the body grows. If no memory is left, an exchange
// waits in a queue and stops reading, so TCP slows the peer down. If all exchanges held memory and
// waited for more, they would wait forever. Therefore the first exchange in the queue may overdraw:
// it gets all the memory that it wants, even beyond the total. Only one exchange at a time may
// overdraw.
type memory struct {
	mu        sync.Mutex
	free      int64  // memory that no share holds, in bytes
	overdrawn *share // share that may overdraw, or nil
	cutting   *share // share whose body is no longer read, until it releases its memory; else nil
	queue     []*claim
	shares    map[*share]struct{} // shares that hold memory
}

// share is the part of a memory that one exchange holds. Only this exchange's goroutine changes it,
// under the memory's mutex.
type share struct {
	memory    *memory
	bytes     int64
	overdrawn bool
	reached   int64         // largest number of bytes that the share was ever granted, including overdrawn bytes
	since     time.Time     // when the share took its first byte
	waiting   time.Time     // when the share joined the queue; zero if not in it
	waited    time.Duration // total time of earlier waits in the queue
	cut       func()        // stops reading the body of the exchange; nil while no body is being read
	wasCut    bool
}

// claim is a share's place in the queue.
type claim struct {
	share   *share
	bytes   int64         // total size of the share after the claim is granted
	granted chan struct{} // closed when the claim is granted
}

func newMemory(bytes int64) *memory { return &memory{free: bytes, shares: make(map[*share]struct{})} }

// grow raises the share s to the given number of bytes in total. It waits for the memory, at most
// until the deadline.
func (m *memory) grow(ctx context.Context, s *share, bytes int64, deadline time.Time) error {
	m.mu.Lock()
	if bytes <= s.bytes || s.overdrawn {
		s.reached = max(s.reached, bytes)
		m.mu.Unlock()
		return nil
	}
	s.waiting = time.Now()
	defer s.endWait()
	w := &claim{share: s, bytes: bytes, granted: make(chan struct{})}
	m.queue = append(m.queue, w)
	m.grantClaims()
	m.mu.Unlock()
	select {
	case <-w.granted:
		return nil
	default:
	}
	ended := time.NewTimer(time.Until(deadline))
	defer ended.Stop()
	look := time.NewTicker(hurryAfter)
	defer look.Stop()
	for {
		select {
		case <-w.granted:
			return nil
		case <-look.C:
			m.cutSlow(w)
		case <-ended.C:
			return m.dropClaim(w, ErrNoRoom)
		case <-ctx.Done():
			return m.dropClaim(w, context.Cause(ctx))
		}
	}
}

// grantClaims grants claims from the head of the queue while the memory suffices. The caller holds
// m.mu.
func (m *memory) grantClaims() {
	for len(m.queue) > 0 {
		w := m.queue[0]
		more := w.bytes - w.share.bytes
		switch {
		case more <= m.free:
			m.free -= more
			w.share.bytes = w.bytes
		case m.overdrawn == nil:
			m.overdrawn, w.share.overdrawn = w.share, true
		default:
			return
		}
		if _, ok := m.shares[w.share]; !ok {
			m.shares[w.share] = struct{}{}
			w.share.since = time.Now()
		}
		w.share.reached = max(w.share.reached, w.bytes)
		close(w.granted)
		m.queue = slices.Delete(m.queue, 0, 1)
	}
}

// dropClaim removes w from the queue and returns err. If w has just been granted, it returns nil.
func (m *memory) dropClaim(w *claim, err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.Index(m.queue, w)
	if i < 0 {
		return nil
	}
	m.queue = slices.Delete(m.queue, i, i+1)
	m.grantClaims() // w may have blocked smaller claims behind it
	return err
}

// cutSlow stops reading the slow body that holds the most memory, if w is the first claim in the
// queue. One body at a time is stopped, because it may release more than w needs.
func (m *memory) cutSlow(w *claim) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cutting != nil || len(m.queue) == 0 || m.queue[0] != w {
		return
	}
	var worst *share
	for h := range m.shares {
		age := time.Since(h.since) - h.waited
		if h.cut == nil || !h.waiting.IsZero() || age < slowAfter || float64(h.reached) >= slowest*age.Seconds() {
			continue
		}
		if worst == nil || h.reached > worst.reached || h.reached == worst.reached && h.since.Before(worst.since) {
			worst = h
		}
	}
	if worst != nil {
		m.cutting, worst.wasCut = worst, true
		worst.cut()
		worst.cut = nil
	}
}

// endWait ends s's time in the queue. This time does not count as slowness of the peer.
func (s *share) endWait() {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	s.waited += time.Since(s.waiting)
	s.waiting = time.Time{}
}

// state reports whether cutSlow stopped the body of the share s, and how long the share waited in
// the queue.
func (s *share) state() (wasCut bool, waited time.Duration) {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	return s.wasCut, s.waited
}

// setCut sets the function that stops reading s's body. When reading has ended, the caller sets
// nil.
func (s *share) setCut(cut func()) {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	s.cut = cut
}

// shrink returns the memory that s holds beyond the given number of bytes.
func (s *share) shrink(bytes int64) {
	m := s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if bytes < s.bytes {
		m.free += s.bytes - bytes
		s.bytes = bytes
		m.grantClaims()
	}
}

// release returns all memory of the share. A second call does nothing.
func (s *share) release() {
	m := s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free += s.bytes
	s.bytes, s.cut = 0, nil
	if s.overdrawn {
		m.overdrawn, s.overdrawn = nil, false
	}
	if m.cutting == s {
		m.cutting = nil
	}
	delete(m.shares, s)
	m.grantClaims()
}

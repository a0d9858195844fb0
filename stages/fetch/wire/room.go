package wire

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

const (
	// ownBytes is what any exchange may hold of a response (payload, framing and
	// decoded body) without asking.
	ownBytes = 256 << 10
	// A body that comes more slowly than slowest, in bytes a second since it began
	// to hold room, and has held it for slowAfter, is cut off when others wait.
	slowest   = 32 << 10
	slowAfter = 5 * time.Second
	// hurryAfter is how long an exchange waits for room until it looks for such.
	hurryAfter = 2 * time.Second
	// noWait is how long an exchange may have stood in line and yet have run out of
	// time for its peer's slowness.
	noWait = time.Second
)

// ErrNoRoom, an ErrAborted: other exchanges held the memory for as long as this one had time.
var ErrNoRoom = errors.New("no memory for the body within the time limit, others hold it")

// room is memory that exchanges share for what of their responses is beyond
// ownBytes. Each takes it as its body grows. Who finds none waits in line, and
// does not read on meanwhile: the peer's TCP waits as well. Nobody waits for
// ever, though all hold something and want more: the first in line may also pass
// through a gate that lets one exchange at a time have all it wants, outside
// the sum.
type room struct {
	mu      sync.Mutex
	free    int64
	through *holding // who is through the gate; nil: nobody
	cutting *holding // who was cut off and has not given back yet; nil: nobody
	line    []*want  // the first comes first
	holders map[*holding]struct{}
}

// holding is what one exchange has of a room. Only its own goroutine changes it,
// with the room's mutex.
type holding struct {
	room    *room
	bytes   int64
	through bool
	reached int64         // the most it asked for and was given, through the gate too
	since   time.Time     // when it took its first byte
	waiting time.Time     // since when it stands in line; zero: it does not
	waited  time.Duration // in line before that
	cut     func()        // ends its reading; nil while it does not read
	wasCut  bool
}

type want struct {
	hold  *holding
	bytes int64         // in all
	given chan struct{} // closed when it is
}

func newRoom(bytes int64) *room { return &room{free: bytes, holders: make(map[*holding]struct{})} }

// grow gets h room for so many bytes in all, and waits for them until a time.
func (r *room) grow(ctx context.Context, h *holding, bytes int64, until time.Time) error {
	r.mu.Lock()
	if bytes <= h.bytes || h.through {
		h.reached = max(h.reached, bytes)
		r.mu.Unlock()
		return nil
	}
	h.waiting = time.Now()
	defer h.goOn()
	w := &want{hold: h, bytes: bytes, given: make(chan struct{})}
	r.line = append(r.line, w)
	r.serve()
	r.mu.Unlock()
	select {
	case <-w.given:
		return nil
	default:
	}
	ended := time.NewTimer(time.Until(until))
	defer ended.Stop()
	look := time.NewTicker(hurryAfter)
	defer look.Stop()
	for {
		select {
		case <-w.given:
			return nil
		case <-look.C:
			r.hurry(w)
		case <-ended.C:
			return r.leave(w, ErrNoRoom)
		case <-ctx.Done():
			return r.leave(w, context.Cause(ctx))
		}
	}
}

// serve gives the first in line what they want, as far as it goes. The caller has
// the mutex.
func (r *room) serve() {
	for len(r.line) > 0 {
		w := r.line[0]
		more := w.bytes - w.hold.bytes
		switch {
		case more <= r.free:
			r.free -= more
			w.hold.bytes = w.bytes
		case r.through == nil:
			r.through, w.hold.through = w.hold, true
		default:
			return
		}
		if _, ok := r.holders[w.hold]; !ok {
			r.holders[w.hold] = struct{}{}
			w.hold.since = time.Now()
		}
		w.hold.reached = max(w.hold.reached, w.bytes)
		close(w.given)
		r.line = slices.Delete(r.line, 0, 1)
	}
}

// leave takes w out of the line, unless it has been given just now.
func (r *room) leave(w *want, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(r.line, w)
	if i < 0 {
		return nil
	}
	r.line = slices.Delete(r.line, i, i+1)
	r.serve() // it may have stood in the way of those behind it
	return err
}

// hurry cuts off, of the bodies that come too slowly, the one that holds most. It is
// the first in line who does so, one body at a time: more than w needs may come back.
func (r *room) hurry(w *want) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cutting != nil || len(r.line) == 0 || r.line[0] != w {
		return
	}
	var worst *holding
	for h := range r.holders {
		age := time.Since(h.since) - h.waited
		if h.cut == nil || !h.waiting.IsZero() || age < slowAfter || float64(h.reached) >= slowest*age.Seconds() {
			continue
		}
		if worst == nil || h.reached > worst.reached || h.reached == worst.reached && h.since.Before(worst.since) {
			worst = h
		}
	}
	if worst != nil {
		r.cutting, worst.wasCut = worst, true
		worst.cut()
		worst.cut = nil
	}
}

// goOn ends h's waiting in line, which does not count as its peer being slow.
func (h *holding) goOn() {
	h.room.mu.Lock()
	defer h.room.mu.Unlock()
	h.waited += time.Since(h.waiting)
	h.waiting = time.Time{}
}

// state says whether h was cut off, and how long it has stood in line.
func (h *holding) state() (wasCut bool, waited time.Duration) {
	h.room.mu.Lock()
	defer h.room.mu.Unlock()
	return h.wasCut, h.waited
}

// reads says how the reading of h can be ended; nil when it has.
func (h *holding) reads(cut func()) {
	h.room.mu.Lock()
	defer h.room.mu.Unlock()
	h.cut = cut
}

// shrink gives back what is beyond so many bytes.
func (h *holding) shrink(bytes int64) {
	r := h.room
	r.mu.Lock()
	defer r.mu.Unlock()
	if bytes < h.bytes {
		r.free += h.bytes - bytes
		h.bytes = bytes
		r.serve()
	}
}

// release gives all back. A second call does nothing.
func (h *holding) release() {
	r := h.room
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free += h.bytes
	h.bytes, h.cut = 0, nil
	if h.through {
		r.through, h.through = nil, false
	}
	if r.cutting == h {
		r.cutting = nil
	}
	delete(r.holders, h)
	r.serve()
}

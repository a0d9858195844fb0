package store

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Hedge configures WithHedge, which sends slow reads a second time. The zero value selects the
// defaults.
type Hedge struct {
	MaxBytes int64         // size of the largest read that is hedged, in bytes; zero means 4 MiB
	Floor    time.Duration // shortest wait before the second request; zero means 50 ms
	Samples  int           // number of reads of a size class that are measured before any is hedged; zero means 32
	Share    float64       // largest share of reads that may have a second request; zero means 0.05
}

// Hedged is a Bucket whose small reads are hedged.
type Hedged struct {
	Bucket
	hedge Hedge

	mu      sync.Mutex
	tokens  float64 // number of second requests that may be sent: each read adds Share, each second request takes 1
	classes [hedgeClasses]latencies

	sent, won atomic.Int64 // numbers of second requests, and of those that were answered first
}

// The size classes of reads: up to 64 KiB, up to 512 KiB, and larger. Get is a class of its own,
// because the object's size is not known in advance.
const (
	hedgeGet = iota
	hedgeSmall
	hedgeMiddle
	hedgeLarge
	hedgeClasses
)

// hedgeTokens bounds the number of second requests that may be sent at once. Without this bound, a
// store that becomes slow after a long fast time would get many second requests.
const hedgeTokens = 10

// WithHedge returns a bucket that hedges reads: if a request takes longer than 95 percent of recent
// requests, it sends a second request and uses the response that comes first. Only Get and short
// reads of an open object are hedged, never writes. Hedging makes the slowest reads faster if one of
// the store's many machines is overloaded. The slower request of a Get is cancelled. The slower
// request of a read runs to its end, because ReadAt takes no context.
func WithHedge(b Bucket, h Hedge) *Hedged {
	h.MaxBytes = cmp.Or(h.MaxBytes, 4<<20)
	h.Floor = cmp.Or(h.Floor, 50*time.Millisecond)
	h.Samples = cmp.Or(h.Samples, 32)
	h.Share = cmp.Or(h.Share, 0.05)
	return &Hedged{Bucket: b, hedge: h}
}

// Unwrap returns the wrapped bucket.
func (h *Hedged) Unwrap() Bucket { return h.Bucket }

// Hedges returns how many second requests were sent, and how many of them were answered first.
func (h *Hedged) Hedges() (sent, won int64) { return h.sent.Load(), h.won.Load() }

// latencies holds the durations of the last reads of one size class.
type latencies struct {
	ring  [128]time.Duration
	n     int           // number of measured reads
	p95   time.Duration // 95th percentile of the durations in ring, updated after every 16 reads
	known bool          // enough reads were measured, so p95 is set
}

func (l *latencies) add(d time.Duration, samples int) {
	l.ring[l.n%len(l.ring)] = d
	l.n++
	if l.n >= samples && (!l.known || l.n%16 == 0) {
		sorted := slices.Clone(l.ring[:min(l.n, len(l.ring))])
		slices.Sort(sorted)
		l.p95, l.known = sorted[len(sorted)*95/100], true
	}
}

// begin adds a read's share to the budget. It returns the wait before a second request. If too few
// reads of the class were measured, it returns false: no second request may be sent.
func (h *Hedged) begin(class int) (time.Duration, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tokens = min(h.tokens+h.hedge.Share, hedgeTokens)
	l := &h.classes[class]
	return max(l.p95+l.p95/10, h.hedge.Floor), l.known // a read is slow if it takes a tenth longer than p95
}

// takeBudget takes one second request from the budget, or returns false if the budget is used up.
func (h *Hedged) takeBudget() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tokens < 1 {
		return false
	}
	h.tokens--
	return true
}

func (h *Hedged) measured(class int, d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.classes[class].add(d, h.hedge.Samples)
}

// reply is the result of the first or the second request.
type reply[T any] struct {
	value  T
	err    error
	second bool
}

// hedged calls ask. If this call takes long, hedged calls ask a second time in parallel, and returns
// the first result. ask must not touch data of the caller, because one call may still run when
// hedged returns. discard receives the value of the slower call.
func hedged[T any](h *Hedged, class int, ask func() (T, error), discard func(T)) (T, error) {
	wait, allowed := h.begin(class)
	replies := make(chan reply[T], 2)
	send := func(second bool) {
		began := time.Now()
		value, err := ask()
		// The duration of a cancelled request counts too, because most cancelled requests are slow.
		if err == nil || err == io.EOF || errors.Is(err, context.Canceled) {
			h.measured(class, time.Since(began))
		}
		replies <- reply[T]{value, err, second}
	}
	go send(false)
	if !allowed {
		r := <-replies
		return r.value, r.err
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	pending := 1
	for {
		select {
		case r := <-replies:
			pending--
			if pending > 0 && errors.Is(r.err, ErrUnavailable) {
				discard(r.value)
				continue // the other request may still succeed
			}
			if r.second {
				h.won.Add(1)
			}
			if pending > 0 {
				go func() { discard((<-replies).value) }()
			}
			return r.value, r.err
		case <-timer.C:
			if h.takeBudget() {
				pending++
				h.sent.Add(1)
				go send(true)
			}
		}
	}
}

// Get implements Bucket.
func (h *Hedged) Get(ctx context.Context, key string, limit int64) ([]byte, Version, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the slower request
	type object struct {
		body []byte
		at   Version
	}
	o, err := hedged(h, hedgeGet, func() (object, error) {
		body, at, err := h.Bucket.Get(ctx, key, limit)
		return object{body, at}, err
	}, func(object) {})
	return o.body, o.at, err
}

// Open implements Bucket. It hedges the short reads of the object.
func (h *Hedged) Open(ctx context.Context, key string) (Object, error) {
	o, err := h.Bucket.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	return &hedgedObject{Object: o, hedged: h}, nil
}

// hedgedObject is an open object with hedged reads. It closes the wrapped object when Close was
// called and no read runs any more.
type hedgedObject struct {
	Object
	hedged *Hedged

	mu     sync.Mutex
	reads  int // number of running reads
	closed bool
}

// buffers holds buffers for hedged reads. The slower request may write to its buffer after ReadAt
// has returned, so a request must not write to the caller's buffer.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// part is the result of one ranged read.
type part struct {
	buffer *[]byte
	n      int
}

func (o *hedgedObject) ReadAt(p []byte, off int64) (int, error) {
	size := int64(len(p))
	if size > o.hedged.hedge.MaxBytes || size == 0 {
		return o.Object.ReadAt(p, off)
	}
	class := hedgeLarge
	switch {
	case size <= 64<<10:
		class = hedgeSmall
	case size <= 512<<10:
		class = hedgeMiddle
	}
	got, err := hedged(o.hedged, class, func() (part, error) {
		if !o.enter() {
			return part{}, errClosed
		}
		defer o.leave()
		buffer := buffers.Get().(*[]byte)
		*buffer = slices.Grow((*buffer)[:0], len(p))[:size]
		n, err := o.Object.ReadAt(*buffer, off)
		return part{buffer, n}, err
	}, part.release)
	if got.buffer != nil {
		copy(p, (*got.buffer)[:got.n])
		got.release()
	}
	return got.n, err
}

func (p part) release() {
	if p.buffer != nil {
		buffers.Put(p.buffer)
	}
}

var errClosed = errors.New("read of a closed object")

func (o *hedgedObject) enter() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	o.reads++
	return true
}

func (o *hedgedObject) leave() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reads--
	if o.closed && o.reads == 0 {
		_ = o.Object.Close() // nobody gets the error, because hedgedObject.Close has already returned
	}
}

// Close implements io.Closer.
func (o *hedgedObject) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil
	}
	o.closed = true
	if o.reads > 0 {
		return nil
	}
	return o.Object.Close()
}

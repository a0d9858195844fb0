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
	Samples  int           // number of reads that each size class measures before it hedges; zero means 32
	Share    float64       // largest share of reads that may have a second request; zero means 0.05
}

// Hedged is a Bucket whose small reads are hedged.
type Hedged struct {
	Bucket
	hedge Hedge

	mu      sync.Mutex
	tokens  float64 // budget of second requests: each read adds Share, each second request takes 1
	classes [hedgeClasses]latencies

	sent, won atomic.Int64
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

// hedgeTokens bounds the unused budget of second requests. A store that becomes slow therefore does
// not get many second requests in a short time.
const hedgeTokens = 10

// WithHedge sends a second request if the first request takes longer than 95 percent of recent
// requests. It uses the response that comes first. Only Get and short reads of an open object are
// hedged, never writes. Hedging makes the slowest reads faster if one of the store's many machines
// is overloaded. The losing request of a Get is cancelled. The losing request of a read runs to its
// end.
func WithHedge(b Bucket, h Hedge) *Hedged {
	h.MaxBytes = cmp.Or(h.MaxBytes, 4<<20)
	h.Floor = cmp.Or(h.Floor, 50*time.Millisecond)
	h.Samples = cmp.Or(h.Samples, 32)
	h.Share = cmp.Or(h.Share, 0.05)
	return &Hedged{Bucket: b, hedge: h}
}

// Unwrap returns the wrapped bucket.
func (h *Hedged) Unwrap() Bucket { return h.Bucket }

// Hedges returns how many second requests were sent, and how many of them answered first.
func (h *Hedged) Hedges() (sent, won int64) { return h.sent.Load(), h.won.Load() }

// latencies holds the durations of the last reads of one size class.
type latencies struct {
	ring  [128]time.Duration
	n     int           // number of measured reads
	p95   time.Duration // 95th percentile of the durations in ring, updated after every 16 reads
	known bool
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

// begin counts a read. It returns the wait before a second request, and whether a second request is
// allowed.
func (h *Hedged) begin(class int) (time.Duration, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tokens = min(h.tokens+h.hedge.Share, hedgeTokens)
	l := &h.classes[class]
	return max(l.p95+l.p95/10, h.hedge.Floor), l.known // a tenth more than p95, because a read that takes about p95 is not slow
}

// takeBudget takes the budget for a second request, or returns false if the budget is used up.
func (h *Hedged) takeBudget() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tokens < 1 {
		return false
	}
	h.tokens--
	return true
}

func (h *Hedged) took(class int, d time.Duration) {
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

// hedged calls ask() and, if this call takes long, calls ask() a second time in parallel. ask must
// not touch data of the caller. discard receives the value of the losing call.
func hedged[T any](h *Hedged, class int, ask func() (T, error), discard func(T)) (T, error) {
	wait, may := h.begin(class)
	replies := make(chan reply[T], 2)
	send := func(second bool) {
		began := time.Now()
		value, err := ask()
		// The duration of a cancelled request counts too, because most cancelled requests are slow.
		if err == nil || err == io.EOF || errors.Is(err, context.Canceled) {
			h.took(class, time.Since(began))
		}
		replies <- reply[T]{value, err, second}
	}
	go send(false)
	if !may {
		r := <-replies
		return r.value, r.err
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	asked := 1
	for {
		select {
		case r := <-replies:
			asked--
			if asked > 0 && errors.Is(r.err, ErrUnavailable) {
				discard(r.value)
				continue // the other request may still succeed
			}
			if r.second {
				h.won.Add(1)
			}
			if asked > 0 {
				go func() { discard((<-replies).value) }()
			}
			return r.value, r.err
		case <-timer.C:
			if h.takeBudget() {
				asked++
				h.sent.Add(1)
				go send(true)
			}
		}
	}
}

// Get implements Bucket.
func (h *Hedged) Get(ctx context.Context, key string, limit int64) ([]byte, Version, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the cancellation ends the losing request
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

// hedgedObject closes the wrapped object as soon as Close was called and the last read has ended.
type hedgedObject struct {
	Object
	hedged *Hedged

	mu     sync.Mutex
	reads  int
	closed bool
}

// buffers is the pool of the buffers of hedged reads. The losing request may write to its buffer
// after ReadAt has returned, so a request must not write to the caller's buffer.
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
		_ = o.Object.Close() // the error is dropped, because Close has already returned
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

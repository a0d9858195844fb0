package polite

import (
	"container/heap"
	"time"
)

// Item is something to fetch from a host.
type Item struct {
	ID        int64     // the caller's
	NotBefore time.Time // a retry's due time; zero: as soon as the host is due
	// Urgent items come before all others, and are the only ones that a blocked
	// host is asked for: what has to be known before it may be asked for more.
	Urgent bool
	Why    string // what a retry waits for, for people

	seq int64
}

// items is a heap of pushed items, the first due on top.
type items = heapOf[Item]

func (it Item) before(o Item) bool {
	if !it.NotBefore.Equal(o.NotBefore) {
		return it.NotBefore.Before(o.NotBefore)
	}
	return it.seq < o.seq
}

func (Item) moved(int) {}

// element of a heap: before orders it, moved tells it its index, -1 if it left.
type element[T any] interface {
	before(T) bool
	moved(index int)
}

// heapOf is a binary heap for container/heap.
type heapOf[T element[T]] []T

func (q heapOf[T]) Len() int           { return len(q) }
func (q heapOf[T]) Less(i, j int) bool { return q[i].before(q[j]) }
func (q heapOf[T]) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].moved(i)
	q[j].moved(j)
}
func (q *heapOf[T]) Push(x any) {
	v := x.(T)
	v.moved(len(*q))
	*q = append(*q, v)
}
func (q *heapOf[T]) Pop() any {
	n := len(*q) - 1
	last := (*q)[n]
	clear((*q)[n:])
	*q = (*q)[:n]
	last.moved(-1)
	return last
}

// place says in which heap a host is.
type place uint8

const (
	nowhere place = iota // nothing to do, or a grant of it is being written
	timed
	ready
	parked
)

// byWork is a heap of hosts: the most predicted work on top, of equals the first added.
type byWork = heapOf[*host]

func (h *host) before(o *host) bool {
	if h.work != o.work {
		return h.work > o.work
	}
	return h.wait.order < o.wait.order
}

func (h *host) moved(i int) { h.index = i }

// waiter is a host or an address with the time at which it may go on.
type waiter struct {
	at    time.Time
	order int64
	index int // in the heap, -1 if not there
	host  *host
	addr  *address
}

// byTime is a heap of waiters, the earliest on top.
type byTime = heapOf[*waiter]

func (w *waiter) before(o *waiter) bool {
	if !w.at.Equal(o.at) {
		return w.at.Before(o.at)
	}
	return w.order < o.order
}

func (w *waiter) moved(i int) { w.index = i }

// setTime puts w in the heap at a time, or moves it.
func setTime(q *byTime, w *waiter, at time.Time) {
	w.at = at
	if w.index < 0 {
		heap.Push(q, w)
	} else {
		heap.Fix(q, w.index)
	}
}

package polite

import (
	"container/heap"
	"time"
)

// Item is something to fetch from a host.
type Item struct {
	ID        int64     // chosen by the caller
	NotBefore time.Time // when a retry is due; zero means as soon as the host is due
	// Urgent marks an item that comes before all others, such as a robots.txt. A blocked host gets
	// grants for its urgent items only.
	Urgent bool
	Why    string // reason of a retry, in words for people
	Late   bool   // whether the item waits for the late try of its host (LateTry)

	seq int64
}

// items is a heap of pushed items with the earliest on top.
type items = heapOf[Item]

func (it Item) less(o Item) bool {
	if !it.NotBefore.Equal(o.NotBefore) {
		return it.NotBefore.Before(o.NotBefore)
	}
	return it.seq < o.seq
}

func (Item) setIndex(int) {}

// element is an element of a heap. less reports whether the element comes before another. setIndex
// receives the element's new index, or -1 when the element leaves the heap.
type element[T any] interface {
	less(T) bool
	setIndex(index int)
}

// heapOf is a binary heap for container/heap.
type heapOf[T element[T]] []T

func (q heapOf[T]) Len() int           { return len(q) }
func (q heapOf[T]) Less(i, j int) bool { return q[i].less(q[j]) }
func (q heapOf[T]) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].setIndex(i)
	q[j].setIndex(j)
}
func (q *heapOf[T]) Push(x any) {
	v := x.(T)
	v.setIndex(len(*q))
	*q = append(*q, v)
}
func (q *heapOf[T]) Pop() any {
	n := len(*q) - 1
	last := (*q)[n]
	clear((*q)[n:])
	*q = (*q)[:n]
	last.setIndex(-1)
	return last
}

// place says which heap a host is in.
type place uint8

const (
	nowhere place = iota // the host has nothing to do, or it has a grant whose request is not written yet
	timed
	ready
	parked
)

// byWork is a heap of hosts with the most predicted work on top. Of hosts with equal work, the host
// that was added first comes first.
type byWork = heapOf[*host]

func (h *host) less(o *host) bool {
	if h.work != o.work {
		return h.work > o.work
	}
	return h.wait.order < o.wait.order
}

func (h *host) setIndex(i int) { h.index = i }

// waiter is the timer of a host or an address. It is an element of byTime.
type waiter struct {
	at    time.Time
	order int64
	index int // index in the heap; -1 if not in it
	host  *host
	addr  *address
}

// byTime is a heap of waiters with the earliest on top.
type byTime = heapOf[*waiter]

func (w *waiter) less(o *waiter) bool {
	if !w.at.Equal(o.at) {
		return w.at.Before(o.at)
	}
	return w.order < o.order
}

func (w *waiter) setIndex(i int) { w.index = i }

// setTime sets the time of w, and adds w to the heap if it is not there.
func setTime(q *byTime, w *waiter, at time.Time) {
	w.at = at
	if w.index < 0 {
		heap.Push(q, w)
	} else {
		heap.Fix(q, w.index)
	}
}

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

// items is a heap of the items that were pushed: those due first, first.
type items []Item

func (q items) Len() int { return len(q) }
func (q items) Less(i, j int) bool {
	if !q[i].NotBefore.Equal(q[j].NotBefore) {
		return q[i].NotBefore.Before(q[j].NotBefore)
	}
	return q[i].seq < q[j].seq
}
func (q items) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *items) Push(x any)   { *q = append(*q, x.(Item)) }
func (q *items) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
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

// byWork is a heap of hosts: those with the most predicted work left first, of equal
// ones those added first.
type byWork []*host

func (q byWork) Len() int { return len(q) }
func (q byWork) Less(i, j int) bool {
	a, b := q[i], q[j]
	if a.work != b.work {
		return a.work > b.work
	}
	return a.wait.order < b.wait.order
}
func (q byWork) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}
func (q *byWork) Push(x any) {
	h := x.(*host)
	h.index = len(*q)
	*q = append(*q, h)
}
func (q *byWork) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return last
}

// waiter is a host or an address with the time at which it may go on.
type waiter struct {
	at    time.Time
	order int64
	index int // in the heap, -1 if not there
	host  *host
	addr  *address
}

// byTime is a heap of waiters.
type byTime []*waiter

func (q byTime) Len() int { return len(q) }
func (q byTime) Less(i, j int) bool {
	if !q[i].at.Equal(q[j].at) {
		return q[i].at.Before(q[j].at)
	}
	return q[i].order < q[j].order
}
func (q byTime) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}
func (q *byTime) Push(x any) {
	w := x.(*waiter)
	w.index = len(*q)
	*q = append(*q, w)
}
func (q *byTime) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = nil
	last.index = -1
	*q = old[:len(old)-1]
	return last
}

// set puts w in the heap at a time, or moves it.
func (q *byTime) set(w *waiter, at time.Time) {
	w.at = at
	if w.index < 0 {
		heap.Push(q, w)
	} else {
		heap.Fix(q, w.index)
	}
}

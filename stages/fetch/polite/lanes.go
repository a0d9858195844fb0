package polite

import "container/heap"

// Band is a class of priorities. Hosts that are due share the slots by the bands
// that their next items are in.
type Band uint8

// The bands, of 200 points of priority each, the highest first.
const (
	Critical Band = iota // 800 to 1000
	High
	Medium
	Low
	Batch // 0 to 199
	bands
)

// BandOf is the band of a priority, 0 to 1000.
func BandOf(priority int32) Band {
	return Batch - Band(min(max(priority, 0)/200, int32(Batch)))
}

// shares are the weights by which bands share the slots when more hosts are due
// than there are slots: each band gets at least its weight over the sum of all,
// so that none starves, and what a band has no use for goes to the others.
var shares = [bands]float64{Critical: 16, High: 8, Medium: 4, Low: 2, Batch: 1}

// The lanes behind those of the bands have hosts of whatever band, with shares of
// their own.
const (
	// longest is for hosts that need as long as everything that is left needs in all
	// slots, or longer: the task ends with them, so they cannot wait for others,
	// and there are never more of them than slots.
	longest = int(bands) + iota
	// doubtful is for hosts whose last request got no answer. A slot may stand still
	// for a whole time-out for such a host: together they have one in doubtfulPart at most.
	doubtful
	lanes

	longestShare  = 16
	doubtfulShare = 1
	doubtfulPart  = 8
)

// lane holds hosts that are due, those that the task would wait for longest first.
// Between lanes it is start-time fair queueing: a lane pays for each grant the slot
// time that is predicted for it, over its weight, and the lane that has paid least
// is next.
type lane struct {
	hosts  byWork
	weight float64
	paid   float64
}

func (s *Scheduler) makeLanes() {
	for b, w := range shares {
		s.lanes[b].weight = w
	}
	s.lanes[longest].weight = longestShare
	s.lanes[doubtful].weight = doubtfulShare
}

// laneOf is the lane in which a host waits for a slot.
func (s *Scheduler) laneOf(h *host) int {
	switch {
	case h.silent > 0:
		return doubtful
	case s.slots > 0 && h.work*float64(s.slots) >= float64(s.left)*s.service:
		return longest
	}
	if h.rows.Len() > 0 {
		h.band = h.rows.Band() // of items that were pushed it is that of the rows they came from
	}
	return int(h.band)
}

// enqueue puts a host that is due into its lane, or first of all if it is to be drained.
func (s *Scheduler) enqueue(h *host) {
	if h.drain != Fetch {
		h.queue = &s.drains
		heap.Push(h.queue, h)
		return
	}
	l := &s.lanes[s.laneOf(h)]
	if len(l.hosts) == 0 {
		l.paid = max(l.paid, s.paid) // what it had no use for is not saved up
	}
	h.queue = &l.hosts
	heap.Push(h.queue, h)
}

// dequeue takes out the host that gets the next grant; nil if none may have one.
// charge is to be called if it does.
func (s *Scheduler) dequeue() (h *host, from *lane) {
	if len(s.drains) > 0 {
		return heap.Pop(&s.drains).(*host), nil
	}
	for i := range s.lanes {
		l := &s.lanes[i]
		if len(l.hosts) == 0 || i == doubtful && s.doubtfulGrants >= s.doubtfulMax {
			continue
		}
		if from == nil || l.paid < from.paid {
			from = l
		}
	}
	if from == nil {
		return nil, nil
	}
	return heap.Pop(&from.hosts).(*host), from
}

// charge has a lane pay for a grant of a host.
func (s *Scheduler) charge(l *lane, h *host) {
	s.paid = l.paid
	l.paid += h.service / l.weight
}

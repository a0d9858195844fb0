package polite

import "container/heap"

// Band is a range of priorities. The band of a host's next item determines the share of the slots
// that the host gets when it is due.
type Band uint8

// The bands, from the highest to the lowest. Each band covers 200 points of priority.
const (
	Critical Band = iota // 800 to 1000
	High
	Medium
	Low
	Batch // 0 to 199
	bands
)

// BandOf returns the band of a priority from 0 to 1000.
func BandOf(priority int32) Band {
	return Batch - Band(min(max(priority, 0)/200, int32(Batch)))
}

// bandWeights holds the weights of the bands. They apply when more hosts are due than slots are
// free. The least share of a band is its weight divided by the sum of all weights, so no band
// starves. If a band needs less than its share, other bands get the rest.
var bandWeights = [bands]float64{Critical: 16, High: 8, Medium: 4, Low: 2, Batch: 1}

// Besides the lane of each band, there are two more lanes, for hosts of any band. Each of these lanes
// has a share of its own.
const (
	// The first lane is for the hosts that take longest. A host belongs to it if its own items take at least
	// as long as all remaining items would take on all slots. These hosts decide when the task
	// ends, so they do not wait for others. The lane never holds more hosts than there are slots.
	longest = int(bands) + iota
	// The second lane is for hosts whose last request got no response. Such a host may block a slot
	// for a whole time-out. Together, these hosts get at most 1/doubtfulPart of the slots.
	doubtful
	lanes

	longestShare  = 16
	doubtfulShare = 1
	doubtfulPart  = 8
)

// lane is a queue of due hosts with the most predicted work first. Lanes share the slots by
// start-time fair queueing. For each grant, a lane pays the predicted slot time divided by its
// weight. The lane that has paid least comes next.
type lane struct {
	hosts  byWork
	weight float64
	paid   float64
}

func (s *Scheduler) makeLanes() {
	for b, w := range bandWeights {
		s.lanes[b].weight = w
	}
	s.lanes[longest].weight = longestShare
	s.lanes[doubtful].weight = doubtfulShare
}

// laneOf returns the index of the lane in which a host waits for a slot.
func (s *Scheduler) laneOf(h *host) int {
	switch {
	case h.silent > 0:
		return doubtful
	case s.slots > 0 && h.work*float64(s.slots) >= float64(s.left)*s.service:
		return longest
	}
	if h.rows.Len() > 0 {
		h.band = h.rows.Band() // pushed items do not affect the band
	}
	return int(h.band)
}

// enqueue puts a due host into its lane. A host whose items get grants that permit no request goes
// to s.drains instead, and comes before all lanes.
func (s *Scheduler) enqueue(h *host) {
	if h.drain != Fetch {
		h.queue = &s.drains
		heap.Push(h.queue, h)
		return
	}
	l := &s.lanes[s.laneOf(h)]
	if len(l.hosts) == 0 {
		l.paid = max(l.paid, s.paid) // a lane does not save up its share while it is empty
	}
	h.queue = &l.hosts
	heap.Push(h.queue, h)
}

// dequeue removes and returns the host that gets the next grant, or nil if there is none. When the
// caller gives the grant, it calls charge.
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

// charge makes a lane pay the predicted slot time of a grant.
func (s *Scheduler) charge(l *lane, h *host) {
	s.paid = l.paid
	l.paid += h.service / l.weight
}

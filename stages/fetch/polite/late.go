package polite

import (
	"slices"
	"time"
)

// A request without an answer may have failed because the host restarted, or because a part of the network
// did. So its item ends only if the host still does not answer much later: in its late try. If nothing else
// is left to do before the late tries, the task does not wait for them. It postpones them to the next round.

// worthAwaiting is the longest time for which a task waits for late tries if it has nothing else to do.
const worthAwaiting = 10 * time.Second

// LateTry returns when an item that got no answer from a host is requested again at the earliest: Options.Late
// and a random time after the first request since the host's last answer. again tells whether the item has
// been requested before. It returns false if the item gets no late try: that time has passed, the host has
// answered between two requests for the item, or an earlier round left the late try to this one.
func (s *Scheduler) LateTry(name string, again bool) (due time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	h := s.host(name)
	if h.carried || again && h.failing.IsZero() {
		return now, false
	}
	first := h.failing
	if first.IsZero() {
		first = now
	}
	if now.Sub(first) >= s.late {
		return now, false
	}
	return first.Add(s.jitter(h, s.late)), true
}

// onlyLate reports whether late tries of hosts that failed in this round are the only items left. Rows of a
// host that is blocked wait for its robots.txt, which is such an item, perhaps of another host.
func (s *Scheduler) onlyLate() bool {
	late := func(it Item) bool { return it.Late }
	all := func(q items) bool { return !slices.ContainsFunc(q, func(it Item) bool { return !it.Late }) }
	found := false
	for _, h := range s.inOrder {
		switch {
		case h.remaining() == 0:
			continue
		case h.owed, !all(h.urgent), !h.blocked && (h.rows.Len() > 0 || !all(h.extra)):
			return false
		}
		found = found || slices.ContainsFunc(h.urgent, late) || slices.ContainsFunc(h.extra, late)
	}
	return found
}

// postpone ends fetching like Close, but each remaining item gets a grant of kind Postponed.
func (s *Scheduler) postpone() {
	s.log.Info("only hosts that gave no answer are left: the next round tries them once more", "left", s.left)
	s.postponed = true
	for _, h := range s.inOrder {
		s.reschedule(h)
	}
}

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
// and a random time after the first request since the host's last answer. It returns false if an earlier round
// left the late tries of the host to this one. How often an item is requested does not depend on what other
// items of the host get, so two crawls of the same web send the same requests.
func (s *Scheduler) LateTry(name string) (due time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.host(name)
	first := h.failing
	if first.IsZero() {
		first = s.clock.Now()
	}
	return first.Add(s.jitter(h, s.late)), s.late > 0 && !h.carried
}

// onlyLate reports whether late tries of hosts that failed in this round, which are due after the given time, are the
// only items left. A late try that waits only because its host has a long delay is like any other item. Rows of a
// host that is blocked wait for its robots.txt, which is such an item, perhaps of another host.
func (s *Scheduler) onlyLate(after time.Time) bool {
	found := false
	for _, h := range s.inOrder {
		paused := h.notBefore.After(after) || h.br.open && h.br.probeAt.After(after)
		late := func(it Item) bool { return it.Late && (paused || it.NotBefore.After(after)) }
		all := func(q items) bool { return !slices.ContainsFunc(q, func(it Item) bool { return !late(it) }) }
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

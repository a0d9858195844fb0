package polite

import "time"

// SetCrawlDelay takes the Crawl-delay of a host's robots.txt, a floor under the
// configured delay. Of several (http and https are one host) the longest holds.
// An unknown host is added.
func (s *Scheduler) SetCrawlDelay(name string, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hosts[name]
	if h == nil {
		h = s.add(name, noRows{})
	}
	if d > h.crawlDelay {
		h.crawlDelay = d
		h.slacken(s.cfg.SlowFactor)
		s.settle(h)
	}
}

// Configured is the delay that the config has for a host.
func (s *Scheduler) Configured(name string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg.of(name).delay
}

// Reload replaces the config at once. Hosts of a domain that is stopped now get
// grants that say so.
func (s *Scheduler) Reload(cfg Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg = cfg
	for _, h := range s.inOrder {
		h.adopt(s.cfg.of(h.name))
		h.stored = 0
		h.slacken(cfg.SlowFactor)
		s.settle(h)
	}
	s.wake1()
}

// Close ends fetching: all items left get grants that say Closed (Suspended where
// the breaker is open). Grants that were given before go on.
func (s *Scheduler) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close()
	s.wake1()
}

func (s *Scheduler) close() {
	s.closed = true
	for _, h := range s.inOrder {
		s.settle(h)
	}
}

// Resumed says that an earlier attempt has sent requests: what it left may be what
// cannot be due before the window closes, which nobody has to wait for then.
func (s *Scheduler) Resumed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = true
}

// CloseAt says when Close will be called, so that nobody waits for it: what cannot
// be due before is given back as soon as nothing else is left, if anything was sent.
// Zero: not known.
func (s *Scheduler) CloseAt(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closesAt = at
	s.wake1()
}

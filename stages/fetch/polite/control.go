package polite

import "time"

// SetCrawlDelay raises a host's delay to at least d, the Crawl-delay of its robots.txt.
// The longest value of several calls counts, since http and https share a host. It adds
// an unknown host.
func (s *Scheduler) SetCrawlDelay(name string, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.host(name); d > h.crawlDelay {
		h.crawlDelay = d
		h.slacken(s.cfg.SlowFactor)
		s.reschedule(h)
	}
}

// Configured is a host's delay in the current config.
func (s *Scheduler) Configured(name string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg.of(name).delay
}

// Reload replaces the config at once. Items of a domain that is now stopped get grants
// of kind Stopped.
func (s *Scheduler) Reload(cfg Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg = cfg
	for _, h := range s.inOrder {
		h.adopt(s.cfg.of(h.name))
		h.stored = 0
		h.slacken(cfg.SlowFactor)
		s.reschedule(h)
	}
	s.wakeNext()
}

// Close ends fetching: all remaining items get grants of kind Closed, or Suspended if the
// host's breaker is open. Earlier grants stay valid.
func (s *Scheduler) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close()
	s.wakeNext()
}

func (s *Scheduler) close() {
	s.closed = true
	for _, h := range s.inOrder {
		s.reschedule(h)
	}
}

// Resumed marks that an earlier attempt sent requests. If no remaining item is due before
// the window closes, the scheduler then closes early.
func (s *Scheduler) Resumed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = true
}

// CloseAt sets when the crawl window closes; zero: unknown. Once requests were sent and
// all remaining items are due later than that, the scheduler closes at once instead of
// waiting.
func (s *Scheduler) CloseAt(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closesAt = at
	s.wakeNext()
}

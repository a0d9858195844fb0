package polite

import "time"

// SetCrawlDelay raises a host's delay to at least d, the Crawl-delay of its robots.txt. If several
// calls name different delays, the longest delay applies. There may be several calls because http
// and https share a host. SetCrawlDelay adds the host if it is unknown.
func (s *Scheduler) SetCrawlDelay(name string, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.host(name); d > h.crawlDelay {
		h.crawlDelay = d
		h.slacken(s.cfg.SlowFactor)
		s.reschedule(h)
	}
}

// Configured returns a host's delay in the current config.
func (s *Scheduler) Configured(name string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg.termsOf(name).delay
}

// Reload replaces the config at once. Items of a domain that the new config stops get grants of
// kind Stopped.
func (s *Scheduler) Reload(cfg Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg = cfg
	for _, h := range s.inOrder {
		h.adopt(s.cfg.termsOf(h.name))
		h.stored = 0
		h.slacken(cfg.SlowFactor)
		s.reschedule(h)
	}
	s.wakeNext()
}

// Close ends fetching. All remaining items get grants of kind Closed, or of kind Suspended if the
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

// Resumed marks that an earlier attempt sent requests. The scheduler may then close early if no
// remaining item is due before the window closes.
func (s *Scheduler) Resumed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = true
}

// CloseAt sets when the crawl window closes. The zero time means unknown. If a request was sent and
// no remaining item is due before the given time, the scheduler closes at once.
func (s *Scheduler) CloseAt(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closesAt = at
	s.wakeNext()
}

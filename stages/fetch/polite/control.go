package polite

import (
	"reflect"
	"time"
)

// SetCrawlDelay raises a host's delay to at least d, the Crawl-delay of its robots.txt. The http
// and https origins of a host may have different delays. The longest one applies. If the host is
// unknown, SetCrawlDelay adds it.
func (s *Scheduler) SetCrawlDelay(name string, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.host(name); d > h.crawlDelay {
		h.crawlDelay = d
		h.updateSlowed(s.cfg.SlowFactor)
		s.reschedule(h)
	}
}

// Configured returns a host's delay according to the current config.
func (s *Scheduler) Configured(name string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg.termsOf(name).delay
}

// Stopped reports whether a host is stopped.
func (s *Scheduler) Stopped(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg.termsOf(name).stop != ""
}

// Reload replaces the config and applies it immediately. If it stops a domain, the domain's items
// get grants of kind Stopped. It reports whether the config differs from the one before.
func (s *Scheduler) Reload(cfg Config) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	differs := !reflect.DeepEqual(s.cfg, cfg)
	s.cfg = cfg
	for _, h := range s.inOrder {
		h.adopt(s.cfg.termsOf(h.name))
		h.stored = 0
		h.updateSlowed(cfg.SlowFactor)
		s.reschedule(h)
	}
	s.wakeNext()
	return differs
}

// Close ends fetching. Each remaining item gets a grant of kind Closed, or of kind Suspended if its
// host's breaker is open. Grants that were given before stay valid.
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

// Resumed tells the scheduler that an earlier attempt sent requests. The scheduler may then close
// early, as soon as no remaining item is due before the window closes.
func (s *Scheduler) Resumed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = true
}

// CloseAt sets when the crawl window closes; zero means unknown. The scheduler closes early if a
// request was sent and no remaining item is due before that time.
func (s *Scheduler) CloseAt(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closesAt = at
	s.wakeNext()
}

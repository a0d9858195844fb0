package polite

import "time"

// Breaker says when a host is suspended for its failures.
type Breaker struct {
	Window   time.Duration // requests older than this no longer count
	Requests int           // at least so many must be in the window
	Pause    time.Duration // from suspension to the first probe; doubled after each that fails
	MaxPause time.Duration
	Probes   int // so many failed in a row: the host is given up
}

// DefaultBreaker suspends a host when over half of at least 20 requests of 5
// minutes failed.
func DefaultBreaker() Breaker {
	return Breaker{Window: 5 * time.Minute, Requests: 20, Pause: 2 * time.Minute, MaxPause: 20 * time.Minute, Probes: 3}
}

// windowParts is into how many parts the window is cut; a request leaves it with its part.
const windowParts = 10

// breaker is a host's record in the window.
type breaker struct {
	counts [windowParts]struct{ ok, failed int32 }
	newest int64 // part of time that the newest slice stands for

	open    bool
	gaveUp  bool
	probeAt time.Time
	pause   time.Duration
	probes  int // failed in a row
	opened  int // times
}

// record counts a request that ended, and reports whether it opened the breaker.
func (b *breaker) record(cfg *Breaker, now time.Time, failed bool) bool {
	part := now.UnixNano() / int64(cfg.Window/windowParts)
	if part > b.newest {
		for p := max(b.newest+1, part-windowParts+1); p <= part; p++ {
			b.counts[p%windowParts] = struct{ ok, failed int32 }{}
		}
		b.newest = part
	}
	c := &b.counts[b.newest%windowParts]
	if !failed {
		c.ok++
		return false
	}
	c.failed++
	var ok, bad int
	for _, c := range b.counts {
		ok += int(c.ok)
		bad += int(c.failed)
	}
	if ok+bad < cfg.Requests || bad <= ok {
		return false
	}
	b.open, b.opened = true, b.opened+1
	b.pause, b.probes = cfg.Pause, 0
	b.probeAt = now.Add(b.pause)
	return true
}

// probed takes the end of a probe: success closes the breaker, with a clean
// record; a failure makes the pause longer, or gives the host up.
func (b *breaker) probed(cfg *Breaker, now time.Time, failed bool) {
	if !failed {
		opened := b.opened
		*b = breaker{opened: opened, newest: b.newest}
		return
	}
	b.probes++
	if b.probes >= cfg.Probes {
		b.gaveUp = true
		return
	}
	b.pause = min(2*b.pause, cfg.MaxPause)
	b.probeAt = now.Add(b.pause)
}

package polite

import "time"

// Breaker says when a host is suspended for its failures.
type Breaker struct {
	Window   time.Duration // requests older than this no longer count
	Requests int           // at least so many must be in the window
	InARow   int           // so many failed one after the other, however long that took
	Silent   int           // so many got no answer at all, one after the other
	Pause    time.Duration // from suspension to the first probe; doubled after each that fails
	MaxPause time.Duration
	Probes   int // so many failed in a row: the host is given up
}

// DefaultBreaker suspends a host when over half of at least 20 requests of 5
// minutes failed. A host whose delay is too long for 20 requests in that time is
// suspended when 20 failed in a row, and one that does not answer after 5: each of
// them may cost a slot a whole time-out, and its URL.
func DefaultBreaker() Breaker {
	return Breaker{Window: 5 * time.Minute, Requests: 20, InARow: 20, Silent: 5, Pause: 2 * time.Minute, MaxPause: 20 * time.Minute, Probes: 3}
}

// windowParts is into how many parts the window is cut; a request leaves it with its part.
const windowParts = 10

// breaker is a host's record in the window.
type breaker struct {
	counts [windowParts]struct{ ok, failed int32 }
	newest int64 // part of time that the newest slice stands for
	row    int   // failed one after the other

	open    bool
	gaveUp  bool
	probeAt time.Time
	pause   time.Duration
	probes  int // failed in a row
	opened  int // times
}

// record counts a request that ended, of which silent in a row got no answer, and
// reports whether it opened the breaker.
func (b *breaker) record(cfg *Breaker, now time.Time, failed bool, silent int) bool {
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
		b.row = 0
		return false
	}
	c.failed++
	b.row++
	var ok, bad int
	for _, c := range b.counts {
		ok += int(c.ok)
		bad += int(c.failed)
	}
	if (ok+bad < cfg.Requests || bad <= ok) && b.row < cfg.InARow && silent < cfg.Silent {
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

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

// breaker says whether a host is suspended.
type breaker struct {
	record  *record // nil: nothing has ended, or nothing is to be remembered
	open    bool
	gaveUp  bool
	row     int32 // requests that failed one after the other
	probes  int32 // failed in a row
	opened  int32 // times
	pause   time.Duration
	probeAt time.Time
}

// record counts a host's requests in the window.
type record struct {
	counts [windowParts]struct{ ok, failed int32 }
	newest int64 // part of time that the newest slice stands for
}

// sum gives the requests in the window.
func (r *record) sum() (ok, failed int) {
	if r == nil {
		return 0, 0
	}
	for _, c := range r.counts {
		ok += int(c.ok)
		failed += int(c.failed)
	}
	return ok, failed
}

// forget gives up the record of a host that has nothing left, unless it failed.
func (b *breaker) forget() {
	if _, failed := b.record.sum(); failed == 0 {
		b.record = nil
	}
}

// count counts a request that ended, of which silent in a row got no answer, and
// reports whether it opened the breaker.
func (b *breaker) count(cfg *Breaker, now time.Time, failed bool, silent int) bool {
	if b.record == nil {
		b.record = &record{}
	}
	r := b.record
	part := now.UnixNano() / int64(cfg.Window/windowParts)
	if part > r.newest {
		for p := max(r.newest+1, part-windowParts+1); p <= part; p++ {
			r.counts[p%windowParts] = struct{ ok, failed int32 }{}
		}
		r.newest = part
	}
	c := &r.counts[r.newest%windowParts]
	if !failed {
		c.ok++
		b.row = 0
		return false
	}
	c.failed++
	b.row++
	ok, bad := r.sum()
	if (ok+bad < cfg.Requests || bad <= ok) && int(b.row) < cfg.InARow && silent < cfg.Silent {
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
		*b = breaker{opened: opened}
		return
	}
	b.probes++
	if int(b.probes) >= cfg.Probes {
		b.gaveUp = true
		return
	}
	b.pause = min(2*b.pause, cfg.MaxPause)
	b.probeAt = now.Add(b.pause)
}

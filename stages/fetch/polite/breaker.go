package polite

import "time"

// Breaker holds the settings that decide when failures suspend a host.
type Breaker struct {
	Window   time.Duration // period before now in which requests are counted
	Requests int           // if fewer requests are in the window, the share of failures does not suspend the host
	InARow   int           // number of failures in a row that suspend the host; the first of them may lie before the window
	Silent   int           // number of requests in a row without a response that suspend the host
	Pause    time.Duration // time from the suspension to the first probe, doubled after each failed probe
	MaxPause time.Duration
	Probes   int // number of failed probes in a row after which the host is given up
}

// DefaultBreaker suspends a host if more than half of at least 20 requests in 5 minutes failed, or
// if 20 requests in a row failed. It also suspends a host after 5 requests in a row without a
// response, because each such request may block a slot for a whole time-out.
func DefaultBreaker() Breaker {
	return Breaker{Window: 5 * time.Minute, Requests: 20, InARow: 20, Silent: 5, Pause: 2 * time.Minute, MaxPause: 20 * time.Minute, Probes: 3}
}

const (
	fewRefusals  = 10  // refusals in a row that suspend a host of which no page was read, or whose service refuses
	manyRefusals = 100 // refusals in a row that suspend another host: a part of a site may be forbidden
	refusedPause = 5   // time to the probe of a host that refuses, in units of Breaker.Pause
)

// windowParts is the number of parts into which the window is divided. All requests of one part
// leave the window together.
const windowParts = 10

// breaker is the state of one host's Breaker.
type breaker struct {
	record  *record // nil before the first request has ended, and after forget and dropOld
	open    bool
	gaveUp  bool
	inARow  int32 // failed requests in a row
	probes  int32 // failed probes in a row
	opened  int32 // number of times that the breaker opened
	pause   time.Duration
	probeAt time.Time
}

// record counts the outcomes of a host's requests in the window.
type record struct {
	counts [windowParts]struct{ ok, failed int32 }
	newest int64 // number of the window's newest part; parts are numbered from 1970 on
}

// sum returns how many requests in the window succeeded and how many failed.
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

// forget frees the record of a finished host. A record with failures stays, because checkpoints
// store it until dropOld frees it.
func (b *breaker) forget() {
	if _, failed := b.record.sum(); failed == 0 {
		b.record = nil
	}
}

// dropOld frees a record whose requests have all left the window, unless the host is suspended.
func (b *breaker) dropOld(cfg *Breaker, now time.Time) {
	if b.record != nil && !b.open && !b.gaveUp && cfg.part(now)-b.record.newest >= windowParts {
		b.record = nil
	}
}

// part returns the number of the window's part at a time.
func (b *Breaker) part(at time.Time) int64 { return at.UnixNano() / int64(b.Window/windowParts) }

// count adds a finished request and reports whether it opened the breaker. silent is the number of
// requests in a row that got no response.
func (b *breaker) count(cfg *Breaker, now time.Time, failed bool, silent int) bool {
	if b.record == nil {
		b.record = &record{}
	}
	r := b.record
	part := cfg.part(now)
	if part > r.newest {
		for p := max(r.newest+1, part-windowParts+1); p <= part; p++ {
			r.counts[p%windowParts] = struct{ ok, failed int32 }{}
		}
		r.newest = part
	}
	c := &r.counts[r.newest%windowParts]
	if !failed {
		c.ok++
		b.inARow = 0
		return false
	}
	c.failed++
	b.inARow++
	ok, bad := r.sum()
	if (ok+bad < cfg.Requests || bad <= ok) && int(b.inARow) < cfg.InARow && silent < cfg.Silent {
		return false
	}
	b.open, b.opened = true, b.opened+1
	b.pause, b.probes = cfg.Pause, 0
	b.probeAt = now.Add(b.pause)
	return true
}

// refuse opens the breaker of a host that refuses requests. That seldom changes soon, so there is one late probe.
func (b *breaker) refuse(cfg *Breaker, now time.Time) {
	b.open, b.opened = true, b.opened+1
	b.pause, b.probes = refusedPause*cfg.Pause, int32(cfg.Probes)-1
	b.probeAt = now.Add(b.pause)
}

// probed updates the breaker after a probe. A successful probe closes the breaker and clears the
// record. A failed probe doubles the pause or gives the host up.
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

package model

// protocol emits the actions that a running attempt may take next.
func (m partition) protocol(s *partitionState, i int, emit func(label, *partitionState)) {
	a := &s.att[i]
	do := func(name string, arg int, change func(n *partitionState, a *attempt)) {
		n := *s
		change(&n, &n.att[i])
		emit(label{name, i, arg}, &n)
	}
	if a.sent.epoch > 0 {
		m.settle(s, i, do)
	}
	switch a.phase {
	case looking, standing, doubting:
		m.standBy(s, i, do)
	case comparing:
		do("compare with the objects", -1, func(n *partitionState, _ *attempt) { m.compare(n, i) })
	case taking:
		if a.sent.epoch == 0 && a.seen.epoch < maxEpoch {
			m.take(s, i, do)
		}
		if m.mutation == sweepAny {
			m.sweep(s, i, do)
		}
	case marking:
		do("mark", -1, func(n *partitionState, _ *attempt) { m.mark(n, i) })
	case fetching, stopping:
		m.holdActions(s, i, do)
	case finished:
		do("result", -1, func(n *partitionState, a *attempt) {
			m.settleResult(n, a.seen)
			m.unlock(n, i)
			end(n, i)
		})
	}
}

// mark marks the partition as taken. If the attempt found no checkpoint, but the mark already
// exists, somebody has deleted the checkpoint. The attempt then deletes its own checkpoint and
// refuses the partition.
func (m partition) mark(n *partitionState, i int) {
	a := &n.att[i]
	if n.marked && a.epoch == 1 {
		switch {
		case m.mutation == takenUnchecked:
			n.fault(traceRefuses)
		case n.store != a.seen: // another attempt has taken the partition
			m.unlock(n, i)
			end(n, i)
			return
		default:
			n.store = checkpoint{}
			m.unlock(n, i)
			end(n, i)
			n.att[i].phase = refused
			return
		}
	}
	n.begun = true
	n.marked = n.marked || m.mutation != unmarked
	a.phase = fetching
}

type doer = func(name string, arg int, change func(n *partitionState, a *attempt))

func (m partition) settleResult(n *partitionState, c checkpoint) {
	if n.result.epoch > 0 && n.result != c && !n.tampered {
		n.fault(oneResult)
	}
	n.result = c
}

// standBy emits the actions of an attempt that waits for the partition.
func (m partition) standBy(s *partitionState, i int, do doer) {
	a := &s.att[i]
	if m.locks && a.phase == standing && a.lock == unlocked && !s.locked() {
		do("lock", -1, func(n *partitionState, a *attempt) { a.lock, n.lockFile = stands, true })
	}
	if a.phase == doubting && a.seen == s.store {
		do("refuse", -1, func(n *partitionState, a *attempt) {
			m.unlock(n, i)
			end(n, i)
			n.att[i].phase = refused
		})
		return
	}
	do("look", -1, func(n *partitionState, _ *attempt) { m.look(n, i) })
}

// compare decides whether an attempt refuses its checkpoint because an object proves that a newer
// checkpoint existed.
func (m partition) compare(n *partitionState, i int) {
	a := &n.att[i]
	truth := a.seen.epoch == 0 && n.begun || partition{}.provesLater(n, a.seen)
	if m.provesLater(n, a.seen) {
		a.phase = doubting
		if m.mutation == oneLook {
			end(n, i)
			n.att[i].phase = refused
		}
		return
	}
	a.phase = taking
	switch {
	case n.tampered && truth && a.seen == n.store:
		n.fault(traceRefuses)
	case n.tampered:
		n.blind = true
	}
}

// provesLater reports whether an object proves that a checkpoint newer than c existed.
func (m partition) provesLater(n *partitionState, c checkpoint) bool {
	if c.epoch == 0 && n.marked {
		return true
	}
	var next [maxEpoch]int // number of the first unlisted segment, by epoch
	for k := range n.segments {
		if c.files&(1<<k) != 0 {
			next[k/perEpoch] = k%perEpoch + 1
		}
	}
	for k, g := range n.segments {
		if g.state != present || c.files&(1<<k) != 0 {
			continue
		}
		epoch := uint8(k/perEpoch + 1)
		switch {
		case c.epoch == 0:
			return true
		case epoch > c.epoch && m.mutation != noEpochRule,
			epoch == c.epoch && g.follows > c.counter && m.mutation != noFollowsRule,
			epoch <= c.epoch && k%perEpoch > next[k/perEpoch] && m.mutation != noOrderRule:
			return true
		}
	}
	return false
}

func (m partition) take(s *partitionState, i int, do doer) {
	if m.mutation == markFirst && !s.marked {
		do("mark", -1, func(n *partitionState, _ *attempt) { n.marked = true })
		return
	}
	do("take", -1, func(n *partitionState, a *attempt) {
		c := a.seen
		if m.mutation != sameEpoch || c.epoch == 0 {
			c.epoch++
		}
		c.counter, c.holder, c.released = 1, uint8(i), false
		m.send(n, i, c)
	})
}

// send sends a swap. If somebody removed the attempt's lock, the attempt first takes the lock
// again.
func (m partition) send(n *partitionState, i int, c checkpoint) {
	m.reclaim(n, i)
	a := &n.att[i]
	a.sent, a.sentAge, a.net, a.body = c, 0, underway, c
}

func (m partition) reclaim(n *partitionState, i int) {
	if a := &n.att[i]; a.lock == removed && !n.locked() {
		a.lock, n.lockFile = stands, true
		if m.mutation != reclaimKeepsRight {
			a.right = 0
		}
	}
}

// settle finds out whether an attempt's last swap took effect: the answer arrives, or the attempt
// reads the checkpoint back.
func (m partition) settle(s *partitionState, i int, do doer) {
	a := &s.att[i]
	switch a.net {
	case answeredYes:
		do("answer: swapped", -1, func(n *partitionState, _ *attempt) { m.acknowledged(n, i) })
	case answeredNo:
		do("answer: conflict", -1, func(n *partitionState, _ *attempt) { m.conflict(n, i) })
	}
	mine := s.store == a.sent
	if m.mutation == otherBytes {
		mine = s.store.epoch == a.sent.epoch && s.store.counter == a.sent.counter && s.store.holder == a.sent.holder
	}
	if a.sent.complete && m.mutation == resultUnanswered {
		do("result", -1, func(n *partitionState, a *attempt) { m.settleResult(n, a.sent) })
	}
	switch {
	case mine:
		do("answer lost, read back: own bytes", -1, func(n *partitionState, _ *attempt) { m.acknowledged(n, i) })
	case s.store == a.seen && a.net != underway:
		do("answer lost, read back: not yet, send the same bytes", -1, func(n *partitionState, _ *attempt) {
			m.reclaim(n, i)
			n.att[i].net = underway
		})
	case s.store == a.seen && m.mutation == otherBytes:
		if k := m.uploaded(s, i); k >= 0 && a.sent.files&(1<<k) == 0 {
			do("answer lost, read back: not yet, send other bytes", -1, func(n *partitionState, a *attempt) {
				a.sent.files |= 1 << k
				a.sent.rows |= n.segments[k].rows
			})
		}
	case s.store != a.seen:
		do("answer lost, read back: another's bytes", -1, func(n *partitionState, _ *attempt) { m.conflict(n, i) })
	}
}

func (m partition) acknowledged(n *partitionState, i int) {
	a := &n.att[i]
	grew := a.sent.files != a.seen.files
	a.seen, a.net, a.body = a.sent, quiet, checkpoint{}
	a.right = 0
	if a.sentAge <= leaseTicks {
		a.right = leaseTicks + 1 - a.sentAge
	}
	if m.mutation == leaseFromAnswer {
		a.right = leaseTicks + 1
	}
	a.sent, a.sentAge = checkpoint{}, 0
	n.known |= a.seen.rows
	if grew {
		a.listed++
	}
	switch {
	case a.phase == taking:
		a.phase, a.epoch, a.age = marking, a.seen.epoch, 0
	case a.seen.complete:
		a.phase = finished
	case a.seen.released && a.flight > 0: // happens only with the mutation releaseInFlight
	case a.seen.released:
		m.unlock(n, i)
		end(n, i)
	}
}

// conflict handles a swap that failed. An attempt that was taking the partition reads the
// checkpoint again. Any other attempt has lost its lease for good, and ends.
func (m partition) conflict(n *partitionState, i int) {
	a := &n.att[i]
	switch {
	case a.phase == taking:
		m.unlock(n, i)
		*a = attempt{phase: looking, renewed: a.renewed}
	case m.mutation == foundIsMine:
		a.seen, a.sent, a.net, a.body = n.store, checkpoint{}, quiet, checkpoint{}
		a.right = leaseTicks + 1 - min(a.sentAge, leaseTicks)
		a.sentAge = 0
	default:
		m.unlock(n, i)
		end(n, i)
	}
}

// holdActions emits the actions of an attempt that holds the partition: ask, record, upload, swap
// and sweep.
func (m partition) holdActions(s *partitionState, i int, do doer) {
	a := &s.att[i]
	for u := 0; u < m.urls; u++ {
		if m.mayAsk(s, i, u) {
			do("request URL", u, func(n *partitionState, _ *attempt) { m.write(n, i, u) })
		}
	}
	if a.flight > 0 {
		do("record URL", int(a.flight-1), func(_ *partitionState, a *attempt) {
			a.mem |= 1 << (a.flight - 1)
			a.flight, a.flightAge = 0, 0
		})
	}
	first := int(a.epoch-1) * perEpoch
	if a.mem > 0 && a.cut < perEpoch {
		do("cut segment", first+int(a.cut), func(n *partitionState, a *attempt) {
			follows := a.seen.counter
			if m.mutation == followsUnanswered {
				follows = max(follows, a.sent.counter)
			}
			n.segments[first+int(a.cut)] = segment{onDisk, a.mem, follows}
			a.mem = 0
			a.cut++
		})
	}
	if a.listed < a.cut && s.segments[first+int(a.listed)].state == onDisk {
		do("upload segment", first+int(a.listed), func(n *partitionState, a *attempt) { n.segments[first+int(a.listed)].state = uploading })
	}
	if m.mutation == otherBytes && a.sent.files != a.seen.files && a.listed+1 < a.cut && s.segments[first+int(a.listed)+1].state == onDisk {
		do("upload segment", first+int(a.listed)+1, func(n *partitionState, a *attempt) { n.segments[first+int(a.listed)+1].state = uploading })
	}
	m.sweep(s, i, do)
	if a.sent.epoch == 0 {
		m.swapActions(s, i, do)
	}
}

// uploaded returns the next uploaded segment that a checkpoint may list, or -1 if there is none.
func (m partition) uploaded(s *partitionState, i int) int {
	a := &s.att[i]
	for n := a.listed; n < a.cut; n++ {
		k := int(a.epoch-1)*perEpoch + int(n)
		there := s.segments[k].state == present || m.mutation == namesBeforeData && s.segments[k].state == uploading
		switch {
		case there && a.sent.files&(1<<k) == 0:
			return k
		case !there || m.mutation != otherBytes:
			return -1
		}
	}
	return -1
}

// swapActions emits the swaps of an attempt that holds the partition.
func (m partition) swapActions(s *partitionState, i int, do doer) {
	a := &s.att[i]
	swap := func(name string, change func(c *checkpoint, a *attempt)) {
		do(name, -1, func(n *partitionState, a *attempt) {
			c := a.seen
			c.counter++
			change(&c, a)
			m.send(n, i, c)
		})
	}
	all := uint8(1)<<m.urls - 1
	if k := m.uploaded(s, i); k >= 0 {
		swap("checkpoint", func(c *checkpoint, _ *attempt) {
			c.rows |= s.segments[k].rows
			if m.mutation != recordedOnly {
				c.files |= 1 << k
			}
		})
	}
	if a.renewed < m.renewals {
		swap("renew", func(c *checkpoint, a *attempt) {
			a.renewed++
			if m.mutation == uncountedCheckpoint {
				c.counter--
				c.holder += maxAttempts // so that the bytes of each checkpoint are still unique
			}
		})
	}
	switch {
	case a.phase == stopping && a.flight > 0:
		do("abort what is in flight", -1, func(_ *partitionState, a *attempt) { a.flight, a.flightAge = 0, 0 })
		if m.mutation != releaseInFlight {
			return
		}
		fallthrough
	case a.phase == stopping:
		swap("release", func(c *checkpoint, _ *attempt) { c.released = true })
	case a.seen.rows == all:
		swap("complete", func(c *checkpoint, _ *attempt) { c.complete, c.released = true, true })
	}
	if a.phase == fetching && a.seen.rows != all {
		do("is told to stop", -1, func(_ *partitionState, a *attempt) { a.phase = stopping })
	}
}

// sweep deletes unlisted files of lower epochs.
func (m partition) sweep(s *partitionState, i int, do doer) {
	a := &s.att[i]
	below := a.epoch
	switch m.mutation {
	case sweepOwn:
		below++
	case sweepAny:
		below = maxEpoch + 1
	}
	for k := range s.segments {
		if s.segments[k].state == present && uint8(k/perEpoch+1) < below && a.seen.files&(1<<k) == 0 {
			do("sweep segment", k, func(n *partitionState, _ *attempt) { n.segments[k] = segment{} })
		}
	}
}

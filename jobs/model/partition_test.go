package model

// This file models one partition, as described in the section "A partition's checkpoint" of
// jobs/README.md. Attempts take, renew, mark, checkpoint, release and complete the partition, fetch
// its URLs, and upload and sweep files. The store is linearizable, but a request may take effect
// late, and its answer may be lost. Time passes in ticks, even while a process is paused.

const (
	leaseTicks   = 2 // length of a lease in ticks; a request takes up to one tick (timeout.total)
	standTicks   = leaseTicks + 1
	maxAttempts  = 3
	maxEpoch     = 3 // largest epoch that the model visits
	perEpoch     = 2 // largest number of segments in an epoch
	mostSegments = maxEpoch * perEpoch
)

// These are the mutations of the protocol. Each mutation omits or changes one rule.
const (
	leaseFromAnswer     = "the lease starts when the answer arrives"
	impatient           = "a newcomer waits for less than the lease"
	uncheckedRequests   = "a request is written without a look at the lease"
	lateRequests        = "a request starts in the lease's last timeout.total"
	foundIsMine         = "an attempt that sees another epoch goes on with it"
	monotonicClock      = "a suspended machine's wall clock does not count"
	releaseInFlight     = "a release does not wait for requests in flight"
	namesBeforeData     = "a checkpoint lists a file whose upload has no answer"
	sweepOwn            = "the sweep deletes unlisted files of the holder's own epoch"
	sweepAny            = "an attempt sweeps before it has taken the partition"
	sameEpoch           = "a take keeps the epoch"
	otherBytes          = "after a lost answer, other bytes are sent"
	recordedOnly        = "a checkpoint lists rows and leaves their file out"
	resultUnanswered    = "the result is made before the complete checkpoint has its answer"
	unmarked            = "no mark is made"
	markFirst           = "the mark is made before the take"
	takenUnchecked      = "an attempt that found no checkpoint does not look for the mark"
	noEpochRule         = "a file of a later epoch proves nothing"
	noFollowsRule       = "a file that follows a later checkpoint proves nothing"
	noOrderRule         = "a segment after another unlisted one proves nothing"
	oneLook             = "the checkpoint is not read again before it is refused"
	followsUnanswered   = "a file follows a checkpoint that was sent, without its answer"
	locksUnchecked      = "a holder does not look for its lock's file"
	reclaimKeepsRight   = "a lock that is taken again gives the right without a swap"
	uncountedCheckpoint = "a renewal keeps the counter"
)

// These are the promises of the partition.
const (
	oneFetches     = "only one attempt fetches"
	withRight      = "each request is written with the right to fetch"
	flightsEnd     = "requests end before another attempt fetches"
	nothingListed  = "nothing listed is deleted, or listed before it is there"
	nothingTwice   = "a URL is asked again only if no acknowledged checkpoint has its outcome"
	neverRecurs    = "epochs and counters never recur"
	sumsAgree      = "the files of a checkpoint have the rows that it records"
	oneResult      = "the result is a pure function of the complete checkpoint"
	refusedForLoss = "only a checkpoint that an outsider changed is refused"
	traceRefuses   = "a checkpoint that was put back or deleted, and left a trace, is refused"
)

var promises = []string{oneFetches, withRight, flightsEnd, nothingListed, nothingTwice, neverRecurs, sumsAgree, oneResult, refusedForLoss, traceRefuses}

// These are the acts of an outsider. An outsider acts at most one time in a model.
const (
	nobody = iota
	putsBack
	deletes
)

// partition is a model of the protocol by which attempts share one partition. Its fields limit the
// numbers of attempts, URLs and events, and say what an outsider does.
type partition struct {
	attempts, urls            int
	renewals, pauses, crashes uint8
	locks                     bool // whether the store is a directory: a newcomer then waits for the lock, not for the lease
	removals                  uint8
	outsider                  int
	mutation                  string
}

// checkpoint is a state of checkpoint.json. Its content is also its version in the store. Epoch 0
// means that there is no checkpoint.
type checkpoint struct {
	epoch, counter, holder uint8
	files, rows            uint8 // sets of listed segments and of recorded URLs
	released, complete     bool
}

// phase is the phase of an attempt.
type phase uint8

const (
	idle      phase = iota
	looking         // the attempt has just begun, or has lost a race for the partition
	standing        // the attempt waits for another attempt that holds the partition
	comparing       // the attempt may take the partition, and first compares the checkpoint with the objects
	doubting        // the attempt found an object that proves a later checkpoint
	taking
	marking
	fetching
	stopping // the attempt was told to stop
	finished // the attempt knows that the checkpoint is complete
	refused
	gone
)

// These are the states of the last swap's request.
const (
	quiet = iota
	underway
	answeredYes
	answeredNo
)

// These are the states of an attempt's hold on the store's lock.
const (
	unlocked = iota
	stands
	removed // somebody deleted the lock's file
)

type attempt struct {
	phase     phase
	seen      checkpoint // checkpoint that the attempt last read, or last swapped with an answer
	age       uint8      // ticks since the attempt first saw that checkpoint
	right     uint8      // 0: no right to fetch; otherwise 1 + the number of ticks until the right expires
	sent      checkpoint // content of the swap whose outcome the attempt does not know yet
	sentAge   uint8      // ticks since the attempt first sent that swap
	net       uint8
	body      checkpoint // content of the last request for a swap, which may still take effect
	flight    uint8      // 1 + the URL that is being requested; 0: none
	flightAge uint8
	mem       uint8 // set of URLs whose outcome is not in a segment yet
	cut       uint8 // number of segments made
	listed    uint8 // number of segments listed
	epoch     uint8
	lock      uint8
	armed     uint8 // 1 + the URL whose request was checked before the process was paused; 0: none
	paused    bool
	raced     bool // true: an outsider acted after the attempt's comparison, so only the attempt's next swap can notice it
	renewed   uint8
}

// These are the states of a segment.
const (
	absent = iota
	onDisk
	uploading
	present
)

type segment struct{ state, rows, follows uint8 }

type partitionState struct {
	att      [maxAttempts]attempt
	store    checkpoint
	segments [mostSegments]segment
	marked   bool
	begun    bool // whether any attempt has begun to fetch
	result   checkpoint
	lockFile bool

	pauses, crashes, removals uint8
	copied                    checkpoint
	tampered, tamperedLive    bool
	blind                     bool // true: an outsider acted without leaving a trace, so the protocol no longer promises anything

	known              uint8 // set of URLs recorded by a checkpoint that took effect or was acknowledged
	topEpoch, topCount uint8
	faults             uint16 // set of promises that an action has broken
}

func (s *partitionState) fault(promise string) {
	for i, p := range promises {
		if p == promise {
			s.faults |= 1 << i
		}
	}
}

func (m partition) machine() machine[partitionState] {
	return machine[partitionState]{next: m.next, broken: m.broken}
}

// broken returns the promise that a state breaks.
func (m partition) broken(s *partitionState) string {
	if s.blind {
		return ""
	}
	for i, p := range promises {
		if s.faults&(1<<i) != 0 {
			return p
		}
	}
	writers := 0
	for i := range s.att {
		if m.mayWrite(&s.att[i]) {
			writers++
		}
		if s.att[i].phase == refused && !s.tampered {
			return refusedForLoss
		}
	}
	if writers > 1 && !s.tamperedLive {
		return oneFetches
	}
	for _, c := range [...]checkpoint{s.store, s.result} {
		rows := uint8(0)
		for i := range s.segments {
			if c.files&(1<<i) == 0 {
				continue
			}
			if s.segments[i].state != present && !s.tamperedLive {
				return nothingListed
			}
			rows |= s.segments[i].rows
		}
		if rows != c.rows && !s.tamperedLive {
			return sumsAgree
		}
	}
	if s.result.epoch > 0 && s.result != s.store && !s.tampered {
		return oneResult
	}
	return ""
}

// mayWrite reports whether a request that the attempt sends now will end before the attempt loses
// its right to fetch.
func (m partition) mayWrite(a *attempt) bool {
	least := uint8(2)
	if m.mutation == lateRequests {
		least = 1
	}
	return a.phase == fetching && a.right >= least && (!m.locks || a.lock == stands || m.mutation == locksUnchecked)
}

func (m partition) next(s *partitionState, emit func(label, *partitionState)) {
	if s.blind {
		return
	}
	for i := 0; i < m.attempts; i++ {
		m.network(s, i, emit)
		a := &s.att[i]
		switch {
		case a.phase == gone || a.phase == refused:
		case a.phase == idle:
			m.begin(s, i, emit)
		case a.paused:
			m.resume(s, i, emit)
		default:
			m.disturb(s, i, emit)
			m.protocol(s, i, emit)
		}
	}
	m.environment(s, emit)
}

// network lets the request of a swap take effect, or fail, at any time.
func (m partition) network(s *partitionState, i int, emit func(label, *partitionState)) {
	if s.att[i].net != underway {
		return
	}
	n := *s
	a := &n.att[i]
	name := "swap fails"
	switch {
	case n.store == a.seen:
		name = "swap takes effect"
		n.store = a.body
		if c := a.body; !n.tampered {
			if c.epoch < n.topEpoch || c.epoch == n.topEpoch && c.counter <= n.topCount {
				n.fault(neverRecurs)
			}
			n.topEpoch, n.topCount = c.epoch, c.counter
		}
		n.known |= a.body.rows
		n.blind = a.raced && !(a.body.epoch == 1 && n.marked) // with a mark, an attempt that found no checkpoint still learns that it was deleted
		a.net = answeredYes
	case n.store == a.body:
		a.net = answeredYes
	default:
		a.net = answeredNo
	}
	if a.phase == gone {
		end(&n, i)
	}
	emit(label{name, i, -1}, &n)
}

func (m partition) begin(s *partitionState, i int, emit func(label, *partitionState)) {
	// Attempts are alike, so it is enough that they begin in the order of their numbers.
	if i > 0 && s.att[i-1].phase == idle || s.result.epoch > 0 {
		return
	}
	n := *s
	n.att[i].phase = looking
	m.look(&n, i)
	emit(label{"look", i, -1}, &n)
}

// look reads the checkpoint and decides what an attempt may do.
func (m partition) look(n *partitionState, i int) {
	a := &n.att[i]
	if a.phase == looking || a.seen != n.store {
		a.seen, a.age = n.store, 0
	}
	a.phase = standing
	patience := uint8(standTicks)
	if m.mutation == impatient {
		patience = leaseTicks - 1
	}
	switch {
	case n.store.complete:
		a.phase = finished
		m.unlock(n, i)
	case m.locks && a.lock != unlocked:
		a.phase = comparing
	case !m.locks && (n.store.epoch == 0 || n.store.released || a.age >= patience):
		a.phase = comparing
	}
}

func (m partition) unlock(n *partitionState, i int) {
	if n.att[i].lock == stands {
		n.lockFile = false
	}
	n.att[i].lock = unlocked
}

func (n *partitionState) locked() bool {
	for i := range n.att {
		if n.att[i].lock == stands {
			return true
		}
	}
	return false
}

// end ends an attempt for good, but the attempt's last request may still take effect.
func end(n *partitionState, i int) {
	a := &n.att[i]
	for k := range n.segments {
		if a.epoch > 0 && k/perEpoch == int(a.epoch-1) && n.segments[k].state == onDisk {
			n.segments[k] = segment{}
		}
	}
	keep := attempt{phase: gone}
	if a.net == underway {
		keep.net, keep.seen, keep.body, keep.raced = a.net, a.seen, a.body, a.raced
	}
	*a = keep
}

// disturb kills or pauses a process, or tells the process to stop.
func (m partition) disturb(s *partitionState, i int, emit func(label, *partitionState)) {
	if s.crashes < m.crashes {
		n := *s
		n.crashes++
		end(&n, i)
		emit(label{"kill", i, -1}, &n)
	}
	if s.pauses < m.pauses && s.att[i].armed == 0 {
		n := *s
		n.pauses++
		n.att[i].paused = true
		emit(label{"pause", i, -1}, &n)
		for u := 0; u < m.urls; u++ {
			if m.mayAsk(s, i, u) {
				frozen := n
				frozen.att[i].armed = uint8(u + 1)
				emit(label{"pause between check and write of URL", i, u}, &frozen)
			}
		}
	}
}

func (m partition) resume(s *partitionState, i int, emit func(label, *partitionState)) {
	n := *s
	a := &n.att[i]
	a.paused = false
	if a.right <= 1 {
		a.flight, a.flightAge = 0, 0 // the attempt loses its right to fetch and aborts its requests
	}
	name, arg := "resume", -1
	if a.armed > 0 {
		name, arg = "resume, write URL", int(a.armed-1)
		if m.mayWrite(a) {
			m.write(&n, i, arg)
		} else {
			a.mem |= 1 << arg // the paused process sends its request: exception 4 of the protocol
		}
		a.armed = 0
	}
	emit(label{name, i, arg}, &n)
}

// mayAsk reports whether an attempt may request a URL.
func (m partition) mayAsk(s *partitionState, i, u int) bool {
	a := &s.att[i]
	if a.phase != fetching || a.flight > 0 || !m.mayWrite(a) && m.mutation != uncheckedRequests {
		return false
	}
	done := a.seen.rows | a.mem
	for k := range s.segments {
		if k/perEpoch == int(a.epoch)-1 {
			done |= s.segments[k].rows
		}
	}
	return done&(1<<u) == 0
}

// write makes an attempt write the request for a URL.
func (m partition) write(n *partitionState, i, u int) {
	for j := range n.att {
		// A holder notices within a second that its lock was removed, and then aborts its requests
		// in flight.
		other := &n.att[j]
		if j != i && other.flight > 0 && !other.paused && other.lock != removed && !n.tamperedLive {
			n.fault(flightsEnd)
		}
	}
	if !m.mayWrite(&n.att[i]) {
		n.fault(withRight)
	}
	if n.known&(1<<u) != 0 && !n.att[i].raced {
		n.fault(nothingTwice)
	}
	n.att[i].flight, n.att[i].flightAge = uint8(u+1), 0
}

// environment emits the actions of the clock, of uploads under way and of outsiders.
func (m partition) environment(s *partitionState, emit func(label, *partitionState)) {
	m.tick(s, emit)
	for k := range s.segments {
		if s.segments[k].state == uploading {
			n := *s
			n.segments[k].state = present
			emit(label{"upload takes effect: segment", -1, k}, &n)
		}
		listed := s.result.files&(1<<k) != 0
		if s.result.epoch > 0 && s.segments[k].state == present && !listed {
			n := *s
			n.segments[k] = segment{}
			emit(label{"sweep after the result: segment", -1, k}, &n)
		}
	}
	if s.lockFile && s.removals < m.removals {
		n := *s
		n.removals++
		n.lockFile = false
		for i := range n.att {
			if n.att[i].lock == stands {
				n.att[i].lock = removed
			}
		}
		emit(label{"an outsider removes the lock's file", -1, -1}, &n)
	}
	if s.tampered || s.store.epoch == 0 || s.result.epoch > 0 {
		return
	}
	switch {
	case m.outsider == putsBack && s.copied.epoch == 0:
		n := *s
		n.copied = n.store
		emit(label{"an outsider copies the checkpoint", -1, -1}, &n)
	case m.outsider == putsBack && s.store != s.copied:
		m.tamper(*s, s.copied, "an outsider puts the copy back", emit)
	case m.outsider == deletes:
		m.tamper(*s, checkpoint{}, "an outsider deletes the checkpoint", emit)
	}
}

func (m partition) tamper(n partitionState, c checkpoint, name string, emit func(label, *partitionState)) {
	n.store, n.copied, n.tampered = c, checkpoint{}, true
	for i := range n.att {
		a := &n.att[i]
		live := a.phase >= taking && a.phase <= stopping
		a.raced = live || a.net == underway
		n.tamperedLive = n.tamperedLive || live
	}
	emit(label{name, -1, -1}, &n)
}

func (m partition) tick(s *partitionState, emit func(label, *partitionState)) {
	n := *s
	for i := range n.att {
		a := &n.att[i]
		if !a.paused && a.flight > 0 {
			if a.flightAge == 1 {
				return // timeout.total ends the request in flight before the next tick
			}
			a.flightAge++
		}
		if a.right > 0 && !(a.paused && m.mutation == monotonicClock) {
			a.right--
		}
		if a.phase == standing && !m.locks && a.age < standTicks {
			a.age++
		}
		if a.sent.epoch > 0 && a.sentAge <= leaseTicks {
			a.sentAge++
		}
	}
	if n != *s {
		emit(label{"a tick passes", -1, -1}, &n)
	}
}

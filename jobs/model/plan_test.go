package model

import "testing"

// This file models the choice of a round's plan. Two drivers plan a round at about the time when
// its URLs become due, and users run `plan --replace`. All of them choose a plan by swapping the
// ledger. In the program, a plan's ID is a digest of its content, which depends on the clock. In the
// model, the plan that is made with clock 1 therefore has ID 1, and that with clock 2 has ID 2.

// These are the mutations of the choice of a plan.
const (
	ownClock         = "each driver plans with its own clock"
	blindAppend      = "an entry is appended to whatever ledger is there"
	decideOnce       = "after a conflict, the same entry is appended without a new decision"
	entryFirst       = "a plan is named before it is stored"
	replaceDeletes   = "`plan --replace` deletes the plan that it replaces"
	replaceAll       = "`plan --replace` deletes every other plan"
	startDeletes     = "replaced plans are deleted before the start has its answer"
	discardAlways    = "a plan that came too late is deleted though it is the started one"
	forgottenLedger  = "a driver follows its own plan, whatever the ledger names"
	replaceUnchecked = "`plan --replace` does not look whether the round has started"
)

// These are the promises of the choice of a plan.
const (
	samePlan      = "two drivers make the same plan"
	oneStart      = "a round starts once, with the plan that was chosen last"
	driversAgree  = "two drivers follow the same plan"
	startedStands = "the started plan is never deleted"
	namedExists   = "what the ledger names exists"
)

type planning struct {
	drivers, users int
	crashes        uint8
	mutation       string
}

// These are the kinds of ledger entries.
const (
	planningEntry = iota + 1
	planEntry
	startedEntry
)

type entry struct{ what, plan uint8 } // kind of the entry, and ID of its plan; in a planning entry, plan is the clock

const (
	mostEntries = 8
	mostActors  = 4
)

// step is how far a process has come.
type step uint8

const (
	loads step = iota // the process reads the ledger and decides
	makes             // the process stores the plan
	appends
	lists   // the process lists the plans to delete
	removes // the process deletes the listed plans one after the other
	follows
	refusedLate
	dead
)

type actor struct {
	step  step
	made  uint8 // plan that the process stored
	to    uint8 // plan that the process makes
	view  uint8 // number of ledger entries that the process read
	what  entry // the entry that the process appends
	net   uint8
	trash uint8 // set of plans that the process deletes
	plan  uint8 // plan that the process follows
}

type planState struct {
	ledger  [mostEntries]entry
	n       uint8
	plans   uint8 // set of stored plans
	actors  [mostActors]actor
	crashes uint8
	fault   string
}

func (m planning) machine() machine[planState] {
	return machine[planState]{next: m.next, broken: m.broken}
}

// newest returns the newest clock and the newest plan among the first n entries, and the plan with
// which the round was started.
func (s *planState) newest(n uint8) (clock, plan, started uint8) {
	for _, e := range s.ledger[:n] {
		switch e.what {
		case planningEntry:
			if clock == 0 {
				clock = e.plan
			}
		case planEntry:
			plan = e.plan
		case startedEntry:
			started = e.plan
		}
	}
	return clock, plan, started
}

func (m planning) broken(s *planState) string {
	if s.fault != "" {
		return s.fault
	}
	_, plan, started := s.newest(s.n)
	chosen, begun := uint8(0), false
	for _, e := range s.ledger[:s.n] {
		if e.what == startedEntry && (begun || e.plan != chosen) || begun && e.what == planEntry {
			return oneStart
		}
		begun = begun || e.what == startedEntry
		if e.what == planEntry {
			chosen = e.plan
		}
	}
	if started > 0 && s.plans&(1<<started) == 0 {
		return startedStands
	}
	if plan > 0 && s.plans&(1<<plan) == 0 {
		return namedExists
	}
	followed := uint8(0)
	for i := range m.drivers {
		if a := &s.actors[i]; a.plan > 0 {
			if followed > 0 && a.plan != followed {
				return driversAgree
			}
			followed = a.plan
		}
	}
	return ""
}

func (m planning) next(s *planState, emit func(label, *planState)) {
	for i := range m.drivers + m.users {
		a := &s.actors[i]
		do := func(name string, arg int, change func(n *planState, a *actor)) {
			n := *s
			change(&n, &n.actors[i])
			emit(label{name, i, arg}, &n)
		}
		if a.net == underway {
			do("swap of the ledger arrives", -1, func(n *planState, a *actor) { m.applySwap(n, a) })
		}
		if a.step == dead || a.step == follows || a.step == refusedLate {
			continue
		}
		if s.crashes < m.crashes {
			do("kill", -1, func(n *planState, a *actor) {
				n.crashes++
				kept := actor{step: dead}
				if a.net == underway {
					kept.net, kept.what, kept.view = a.net, a.what, a.view
				}
				*a = kept
			})
		}
		switch a.step {
		case loads:
			name := "load the ledger"
			if i >= m.drivers {
				name = "plan --replace: load the ledger"
			}
			do(name, -1, func(n *planState, a *actor) {
				a.view = n.n
				m.decide(n, a, i)
			})
		case makes:
			do("store plan", int(a.to), func(n *planState, a *actor) { m.store(n, a, i) })
		case appends:
			m.settle(s, a, i, do)
		case lists:
			do("list the plans", -1, func(n *planState, a *actor) {
				a.trash, a.step = n.plans&^(1<<max(a.plan, a.to)), removes
			})
		case removes:
			m.remove(a, i, do)
		}
	}
}

// applySwap lets a process's swap take effect. It fails if the ledger has changed since the process
// read it.
func (m planning) applySwap(n *planState, a *actor) {
	a.net = answeredNo
	if (n.n == a.view || m.mutation == blindAppend) && n.n < mostEntries {
		n.ledger[n.n] = a.what
		n.n++
		a.net = answeredYes
	}
	if a.step == dead {
		*a = actor{step: dead}
	}
}

func (m planning) store(n *planState, a *actor, i int) {
	n.plans |= 1 << a.to
	a.made, a.step = a.to, loads
	if clock, _, _ := n.newest(n.n); i < m.drivers && a.to != clock {
		n.fault = samePlan
	}
	if m.mutation == entryFirst {
		a.step = loads
	}
}

// setWanted sets the entry that a process appends next.
func setWanted(a *actor, what, plan uint8) {
	a.what, a.step, a.net = entry{what, plan}, appends, underway
}

// decide chooses the next step of a process by the ledger that it has read.
func (m planning) decide(n *planState, a *actor, i int) {
	clock, plan, started := n.newest(a.view)
	if i >= m.drivers {
		m.replace(a, plan, started, uint8(3-2*(i-m.drivers)%3))
		return
	}
	if m.mutation == forgottenLedger && a.made > 0 && started > 0 {
		started = a.made
	}
	switch {
	case started > 0:
		a.plan, a.step = started, follows
	case plan > 0:
		setWanted(a, startedEntry, plan)
		if m.mutation == startDeletes {
			a.to, a.step, a.net = plan, lists, quiet
		}
	case clock == 0 && m.mutation != ownClock:
		setWanted(a, planningEntry, uint8(i+1))
	case a.made > 0:
		setWanted(a, planEntry, a.made)
	default:
		a.to, a.step = clock, makes
		if m.mutation == ownClock {
			a.to = uint8(i + 1)
		}
		if m.mutation == entryFirst {
			a.made = a.to
			setWanted(a, planEntry, a.to)
		}
	}
}

// replace chooses the next step of a process that runs `plan --replace` and made the plan own.
func (m planning) replace(a *actor, plan, started, own uint8) {
	if m.mutation == replaceUnchecked {
		started = 0
	}
	switch {
	case started > 0:
		a.step = refusedLate
		if a.made > 0 && (started != a.made || m.mutation == discardAlways) {
			a.trash, a.step = 1<<a.made, removes // nobody can choose that plan any more
		}
	case a.made == 0:
		a.to, a.step = own, makes
	case plan == a.made:
		a.step = follows
	default:
		setWanted(a, planEntry, a.made)
		a.trash = 0
		if plan > 0 && m.mutation == replaceDeletes {
			a.trash = 1 << plan
		}
	}
}

// settle finds out whether a process's swap took effect: the answer arrives, or the process reads
// the ledger back.
func (m planning) settle(s *planState, a *actor, i int, do func(string, int, func(*planState, *actor))) {
	mine := s.n > a.view && s.ledger[a.view] == a.what && m.mutation != blindAppend
	switch {
	case mine || a.net == answeredYes:
		do("acknowledged", -1, func(n *planState, a *actor) { m.appended(n, a, i) })
	case s.n > a.view && m.mutation != blindAppend:
		do("conflict", -1, func(n *planState, a *actor) {
			a.step, a.net = loads, quiet
			if m.mutation == decideOnce {
				a.step, a.net, a.view = appends, underway, n.n
			}
		})
	}
}

func (m planning) appended(n *planState, a *actor, i int) {
	a.net = quiet
	a.step = loads
	switch {
	case i < m.drivers && a.what.what == startedEntry:
		a.plan, a.to, a.step = a.what.plan, 0, lists
		if m.mutation == startDeletes { // this mutation deletes the other plans before the start
			a.step = follows
		}
	case i >= m.drivers && m.mutation == replaceAll:
		a.trash, a.step = n.plans&^(1<<a.made), removes
	case i >= m.drivers && a.trash > 0:
		a.step = removes
	case i >= m.drivers:
		a.step = follows
	case a.what.what == planEntry && m.mutation == entryFirst && n.plans&(1<<a.made) == 0:
		a.step = makes
	}
}

func (m planning) remove(a *actor, i int, do func(string, int, func(*planState, *actor))) {
	for p := 1; p < 8; p++ {
		if a.trash&(1<<p) != 0 {
			do("delete plan", p, func(n *planState, a *actor) {
				n.plans &^= 1 << p
				a.trash &^= 1 << p
			})
		}
	}
	if a.trash == 0 {
		do("done", -1, func(_ *planState, a *actor) {
			a.step = follows
			if i < m.drivers && m.mutation == startDeletes {
				setWanted(a, startedEntry, a.to)
			}
		})
	}
}

func TestOnePlanIsChosen(t *testing.T) {
	m := planning{drivers: 2, users: 1, crashes: 1}
	if thorough() {
		m.users, m.crashes = 2, 2
	}
	reached := map[string]bool{}
	expectHolds(t, m.machine(), most, func(s *planState) {
		_, plan, started := s.newest(s.n)
		reached["a user's plan is started"] = reached["a user's plan is started"] || started == 3
		reached["a driver's plan is started"] = reached["a driver's plan is started"] || started == 1 || started == 2
		reached["a replaced plan is deleted"] = reached["a replaced plan is deleted"] || started > 0 && plan == started && s.plans == 1<<started
		reached["both drivers follow it"] = reached["both drivers follow it"] || s.actors[0].plan > 0 && s.actors[1].plan > 0
	})
	requireAll(t, reached, 4)
}

func TestEachRuleOfThePlanIsNeeded(t *testing.T) {
	for _, c := range []struct {
		mutation, promise string
		users             int
	}{
		{ownClock, samePlan, 0},
		{blindAppend, oneStart, 0},
		{decideOnce, oneStart, 1},
		{entryFirst, namedExists, 0},
		{replaceDeletes, namedExists, 2},
		{replaceAll, namedExists, 2},
		{startDeletes, namedExists, 1},
		{discardAlways, startedStands, 2},
		{forgottenLedger, driversAgree, 1},
		{replaceUnchecked, oneStart, 1},
	} {
		t.Run(c.mutation, func(t *testing.T) {
			expectBreaks(t, planning{drivers: 2, users: c.users, mutation: c.mutation}.machine(), c.promise)
		})
	}
}

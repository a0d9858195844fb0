package model

import "testing"

// This file models the adoption of a store in which the crawl X has an older format. Commands of
// this version adopt the store. A driver of the older version may run at any point, and a new `run`
// wants to fetch another crawl, Y. Every write is a swap. A swap fails if the document has changed
// since its writer read it.

// Each mutation is a deliberate mistake in the adoption. The test expects that a search then finds a
// broken promise.
const (
	activeKeeps    = "active.json keeps its format"
	crawlKeeps     = "crawl.json keeps its format until the ledger is there"
	ledgerFirst    = "the ledger is written before active.json and crawl.json have the new format"
	headFirst      = "the head names the crawl before its ledger is there"
	roundsTell     = "a crawl of the new format with rounds and without a ledger has lost it"
	ledgerReplaces = "a ledger is written over another one"
	activeBlind    = "active.json is written over whatever is there"
)

// The model checks these promises in every state.
const (
	oneStage     = "one fetch stage runs in a store"
	neverLost    = "nothing is called lost that is not"
	ledgerKnows  = "the ledger of an adopted crawl knows what was started and fetched"
	appendedOnly = "no entry of a ledger is lost"
	headNames    = "the head names crawls with a ledger only"
)

type adoption struct {
	adopters int
	crashes  uint8
	mutation string
}

// oldStep is how far the older driver has come.
type oldStep uint8

const (
	oldAway    oldStep = iota // the older driver has not begun
	oldBegins                 // the older driver has read crawl.json
	oldReads                  // start.json exists, and the older driver is about to read active.json
	oldClaims                 // the older driver has read active.json
	oldFetches                // active.json names the round of the older driver
	oldHolds                  // the older driver holds a partition
	oldEnded
)

// newStep is how far a command of this version has come.
type newStep uint8

const (
	newLooks newStep = iota
	newReadsActive
	newWaits // the command waits until no older attempt holds a partition
	newSwapsActive
	newSwapsCrawl
	newSnapshots
	newWritesLedger
	newNames
	newReady
	newStarts // the command appends the start of X's round to the ledger
	newEnded
)

// active is the content of active.json.
type active struct {
	newFormat bool
	crawl     byte // crawl whose fetch stage runs; 0: none
}

type command struct {
	step     newStep
	read     active
	started  bool // the command saw the start of the round in the store
	fetched  bool
	noLedger bool // the command saw no ledger of the crawl
	dead     bool
}

type adoptionState struct {
	active         active
	crawlNew       bool // crawl.json has the new format
	start, fetched bool // whether the round has start.json, and whether it has objects of its fetch stage
	ledger         bool
	knowsStart     bool // the ledger has an entry for the start
	appended       bool // another entry was appended to the ledger
	head           bool
	old            oldStep
	oldRead        active
	cmd            [2]command
	otherFetches   bool
	crashes        uint8
	fault          string
}

func (m adoption) machine() machine[adoptionState] {
	return machine[adoptionState]{next: m.next, broken: m.broken}
}

func (m adoption) broken(s *adoptionState) string {
	switch {
	case s.fault != "":
		return s.fault
	case s.otherFetches && (s.old == oldFetches || s.old == oldHolds):
		return oneStage
	case s.head && !s.ledger:
		return headNames
	case s.head && s.fetched && !s.knowsStart:
		return ledgerKnows
	}
	return ""
}

func (m adoption) next(s *adoptionState, emit func(label, *adoptionState)) {
	m.older(s, emit)
	for i := range m.adopters {
		if c := &s.cmd[i]; !c.dead && c.step != newEnded {
			m.command(s, i, emit)
			if s.crashes < m.crashes {
				n := *s
				n.crashes++
				n.cmd[i] = command{dead: true}
				emit(label{"kill", i, -1}, &n)
			}
		}
	}
	// A `run` of the new crawl Y adopts nothing, but needs active.json in the new format.
	if s.active == (active{newFormat: true}) || m.mutation == activeKeeps && s.head && s.active.crawl == 0 {
		n := *s
		n.active.crawl, n.otherFetches = 'Y', true
		emit(label{"a new run claims active.json for crawl Y", -1, -1}, &n)
	}
	if s.otherFetches {
		n := *s
		n.otherFetches, n.active.crawl = false, 0
		emit(label{"the run of crawl Y ends its fetch stage", -1, -1}, &n)
	}
}

// older is a driver of the older version that runs crawl X.
func (m adoption) older(s *adoptionState, emit func(label, *adoptionState)) {
	do := func(name string, change func(n *adoptionState)) {
		n := *s
		change(&n)
		emit(label{"an older run " + name, -1, -1}, &n)
	}
	switch s.old {
	case oldAway:
		if !s.crawlNew {
			do("reads crawl.json", func(n *adoptionState) { n.old = oldBegins })
		}
	case oldBegins:
		do("creates start.json", func(n *adoptionState) { n.start, n.old = true, oldReads })
	case oldReads:
		do("reads active.json", func(n *adoptionState) {
			n.old, n.oldRead = oldClaims, n.active
			if n.active.newFormat || n.active.crawl == 'Y' {
				n.old = oldEnded // the older driver exits: it sees the new format, or crawl Y being fetched
			}
		})
	case oldClaims:
		do("claims active.json", func(n *adoptionState) {
			switch {
			case n.oldRead.crawl == 'X':
				n.old = oldFetches
			case n.active == n.oldRead:
				n.active.crawl, n.old = 'X', oldFetches
			default:
				n.old = oldReads
			}
		})
	case oldFetches:
		do("takes a partition and fetches", func(n *adoptionState) { n.old, n.fetched = oldHolds, true })
	case oldHolds:
		do("ends its attempt", func(n *adoptionState) { n.old = oldFetches })
	case oldEnded:
	}
	if !s.crawlNew && !s.fetched {
		n := *s
		n.start, n.fetched = true, true
		emit(label{"an older task, which does not look at active.json, starts the round and fetches", -1, -1}, &n)
	}
	if s.old > oldAway && s.old < oldEnded {
		do("is killed", func(n *adoptionState) { n.old = oldAway })
	}
	if s.old == oldFetches {
		do("ends its fetch stage", func(n *adoptionState) {
			n.old = oldEnded
			if n.active == (active{crawl: 'X'}) {
				n.active.crawl = 0
			}
		})
	}
}

// command is a command of this version, which adopts crawl X and then runs it.
func (m adoption) command(s *adoptionState, i int, emit func(label, *adoptionState)) {
	c := &s.cmd[i]
	do := func(name string, change func(n *adoptionState, c *command)) {
		n := *s
		change(&n, &n.cmd[i])
		emit(label{name, i, -1}, &n)
	}
	switch c.step {
	case newLooks:
		do("look at head, crawl.json and ledger", func(n *adoptionState, c *command) { m.looks(n, c) })
	case newReadsActive:
		do("read active.json", func(n *adoptionState, c *command) {
			c.read, c.step = n.active, newWaits
			if n.active.newFormat {
				c.step = newSwapsCrawl
			}
		})
	case newWaits:
		if s.old != oldHolds || c.read.crawl == 0 {
			do("no older attempt holds a partition", func(_ *adoptionState, c *command) { c.step = newSwapsActive })
		}
	case newSwapsActive:
		do("swap active.json to the new format", func(n *adoptionState, c *command) { m.swapsActive(n, c) })
	case newSwapsCrawl:
		do("swap crawl.json to the new format", func(n *adoptionState, c *command) {
			n.crawlNew = n.crawlNew || m.mutation != crawlKeeps
			c.step = newSnapshots
			if m.mutation == ledgerFirst || m.mutation == headFirst {
				c.step = newNames
			}
		})
	case newSnapshots:
		do("list what is there", func(n *adoptionState, c *command) {
			c.started, c.fetched, c.noLedger, c.step = n.start, n.fetched, !n.ledger, newWritesLedger
		})
	case newWritesLedger:
		do("create ledger.json", func(n *adoptionState, c *command) { m.writesLedger(n, c) })
	case newNames:
		do("name the crawl in the head", func(n *adoptionState, c *command) {
			n.head, c.step = true, newReady
			if m.mutation == headFirst {
				c.step = newSnapshots
				if n.ledger {
					c.step = newReady
				}
			}
			if m.mutation == crawlKeeps {
				n.crawlNew = true
			}
		})
	case newReady:
		do("run: read the ledger", func(n *adoptionState, c *command) {
			c.step = newStarts
			if n.fetched && !n.knowsStart {
				n.fault = neverLost // the round has objects, but the ledger has no entry `started`
			}
		})
	case newStarts:
		do("run: append to the ledger", func(n *adoptionState, c *command) {
			n.knowsStart, n.appended, c.step = true, true, newEnded
		})
	case newEnded:
	}
}

func (m adoption) looks(n *adoptionState, c *command) {
	switch {
	case n.head && n.ledger:
		c.step = newReady
	case n.head:
		n.fault = neverLost
	case m.mutation == roundsTell && n.crawlNew && !n.ledger && (n.start || n.fetched):
		n.fault = neverLost
	case m.mutation == ledgerFirst:
		c.step = newSnapshots
	default:
		c.step = newReadsActive
	}
}

func (m adoption) swapsActive(n *adoptionState, c *command) {
	switch {
	case m.mutation == activeKeeps:
		c.step = newSwapsCrawl
	case m.mutation == activeBlind:
		n.active, c.step = active{true, c.read.crawl}, newSwapsCrawl
	case n.active == c.read:
		n.active.newFormat, c.step = true, newSwapsCrawl
	default:
		c.step = newReadsActive
	}
}

func (m adoption) writesLedger(n *adoptionState, c *command) {
	if !n.ledger || m.mutation == ledgerReplaces {
		if n.appended {
			n.fault = appendedOnly
		}
		n.ledger, n.knowsStart = true, c.started
	}
	c.step = newNames
	switch m.mutation {
	case headFirst:
		c.step = newReady
	case ledgerFirst:
		c.step = newReadsActive
	}
}

func TestCrawlsAreAdopted(t *testing.T) {
	reached := map[string]bool{}
	expectHolds(t, adoption{adopters: 2, crashes: 1}.machine(), most, func(s *adoptionState) {
		reached["a half-fetched round is adopted"] = reached["a half-fetched round is adopted"] || s.head && s.fetched && s.knowsStart
		reached["a round that was never started is adopted"] = reached["a round that was never started is adopted"] || s.head && !s.start
		reached["one command goes on with the adoption of another that died"] = reached["one command goes on with the adoption of another that died"] ||
			s.cmd[0].dead && s.crawlNew && s.cmd[1].step == newEnded
		reached["an older run starts too late"] = reached["an older run starts too late"] || s.start && s.head && !s.fetched && s.old == oldEnded
	})
	requireAll(t, reached, 4)
}

func TestEachRuleOfTheAdoptionIsNeeded(t *testing.T) {
	for _, c := range []struct{ mutation, promise string }{
		{activeKeeps, ledgerKnows},
		{crawlKeeps, ledgerKnows},
		{ledgerFirst, ledgerKnows},
		{headFirst, headNames},
		{roundsTell, neverLost},
		{ledgerReplaces, appendedOnly},
		{activeBlind, oneStage},
	} {
		t.Run(c.mutation, func(t *testing.T) {
			expectBreaks(t, adoption{adopters: 2, crashes: 1, mutation: c.mutation}.machine(), c.promise)
		})
	}
}

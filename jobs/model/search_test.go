package model

import (
	"fmt"
	"hash/maphash"
	"strings"
	"testing"
	"time"
)

// label is an action and the attempt or process that takes it. The names of actions are the names
// in jobs/README.md.
type label struct {
	name string
	who  int // number of the attempt or process; -1: the network, the clock or an outsider
	arg  int // argument of the action, such as a URL; -1: none
}

func (l label) String() string {
	var b strings.Builder
	if l.who >= 0 {
		fmt.Fprintf(&b, "%c: ", 'A'+l.who)
	}
	b.WriteString(l.name)
	if l.arg >= 0 {
		fmt.Fprintf(&b, " %d", l.arg)
	}
	return b.String()
}

// machine is a model. It has a first state, the possible actions in each state, and a function that
// finds broken promises.
type machine[S comparable] struct {
	start  S
	next   func(s *S, emit func(label, *S))
	broken func(s *S) string // returns the promise that a state breaks, or ""
}

// outcome is the result of a search.
type outcome[S comparable] struct {
	states  int
	depth   int    // number of actions from the start to the last states
	whole   bool   // whether the search saw every reachable state
	broken  string // the first broken promise
	trace   []label
	elapsed time.Duration
}

func (o *outcome[S]) String() string {
	reach := "all of them"
	if !o.whole {
		reach = "and there are more"
	}
	return fmt.Sprintf("%d states, %s, up to %d actions, %v", o.states, reach, o.depth, o.elapsed.Round(10*time.Millisecond))
}

// story returns the actions that led to the broken promise, one per line.
func (o *outcome[S]) story() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s after %d actions:\n", o.broken, len(o.trace))
	for _, l := range o.trace {
		fmt.Fprintf(&b, "  %v\n", l)
	}
	return b.String()
}

// predecessor records the action that led to a state, and the state in which the action was taken.
// A predecessor has only 8 bytes, because a search visits millions of states.
type predecessor struct {
	from   uint32
	choice uint32
}

// search visits the states of a model, nearest first, until a state breaks a promise or the search
// has visited most states. If seen is not nil, search calls it for each state. The set of visited
// states keeps only a 64-bit hash of each state. Of searches of ten million states, one in 300,000
// takes a state for another with the same hash. Each search uses another seed.
func search[S comparable](m machine[S], most int, seen func(*S)) outcome[S] {
	began := time.Now()
	visited := newSet()
	var how []predecessor
	var o outcome[S]
	var after []S
	add := func(s *S, from, choice int) bool {
		if !visited.add(maphash.Comparable(visited.seed, *s)) {
			return false
		}
		how = append(how, predecessor{uint32(from), uint32(choice)})
		after = append(after, *s)
		if seen != nil {
			seen(s)
		}
		o.broken = m.broken(s)
		return o.broken != "" || len(how) >= most
	}
	end := add(&m.start, 0, 0)
	first := 0 // index of the first state at the current depth
	for level := after; len(level) > 0 && !end; level = after {
		after = nil
		for i := range level {
			choice := 0
			m.next(&level[i], func(_ label, s *S) {
				if !end {
					end = add(s, first+i, choice)
				}
				choice++
			})
			if end {
				break
			}
		}
		first += len(level)
		if len(after) > 0 {
			o.depth++
		}
	}
	o.states, o.whole = len(how), !end
	if o.broken != "" {
		o.trace = retrace(m, how)
	}
	o.elapsed = time.Since(began)
	return o
}

// retrace returns the actions that lead from the first state to the last state of how.
func retrace[S comparable](m machine[S], how []predecessor) []label {
	var choices []uint32
	for i := uint32(len(how) - 1); i > 0; i = how[i].from {
		choices = append(choices, how[i].choice)
	}
	trace := make([]label, 0, len(choices))
	at := m.start
	for k := len(choices) - 1; k >= 0; k-- {
		n, want := uint32(0), choices[k]
		var next S
		m.next(&at, func(l label, s *S) {
			if n == want {
				trace = append(trace, l)
				next = *s
			}
			n++
		})
		at = next
	}
	return trace
}

// set holds hashes in a table that is at most three quarters full.
type set struct {
	seed  maphash.Seed
	table []uint64
	n     int
}

func newSet() *set { return &set{seed: maphash.MakeSeed(), table: make([]uint64, 1<<12)} }

// add adds a hash and reports whether it is new.
func (s *set) add(h uint64) bool {
	if h == 0 {
		h = 1 // because a 0 marks an empty place in the table
	}
	if 4*s.n >= 3*len(s.table) {
		old := s.table
		s.table = make([]uint64, 2*len(old))
		for _, o := range old {
			if o != 0 {
				s.table[s.place(o)] = o
			}
		}
	}
	at := s.place(h)
	if s.table[at] == h {
		return false
	}
	s.table[at] = h
	s.n++
	return true
}

// place returns the index of a hash in the table, or the index at which to add it.
func (s *set) place(h uint64) uint64 {
	mask := uint64(len(s.table) - 1)
	for at := h & mask; ; at = (at + 1) & mask {
		if s.table[at] == 0 || s.table[at] == h {
			return at
		}
	}
}

// expectHolds fails the test if a state of the model breaks a promise.
func expectHolds[S comparable](t *testing.T, m machine[S], most int, seen func(*S)) outcome[S] {
	t.Helper()
	o := search(m, most, seen)
	t.Log(&o)
	if o.broken != "" {
		t.Error(o.story())
	}
	return o
}

// expectBreaks fails the test unless the mutated protocol breaks the given promise.
func expectBreaks[S comparable](t *testing.T, m machine[S], promise string) {
	t.Helper()
	o := search(m, enough, nil)
	if o.broken != promise {
		t.Errorf("the mutation should break %q: it broke %q within %v", promise, o.broken, &o)
		return
	}
	t.Log(o.story())
}

// enough is the largest number of states that a search for a broken promise may visit. The searches
// of these tests need far fewer.
const enough = 2_000_000

func TestSearchFindsTheShortestTrace(t *testing.T) {
	m := machine[int]{
		start: 1,
		next: func(s *int, emit func(label, *int)) {
			for _, l := range []label{{"add one", 0, 1}, {"double", 1, 2}} {
				n := *s + 1
				if l.arg == 2 {
					n = *s * 2
				}
				if n <= 100 {
					emit(l, &n)
				}
			}
		},
		broken: func(s *int) string {
			if *s == 11 {
				return "eleven"
			}
			return ""
		},
	}
	o := search(m, enough, nil)
	if got := fmt.Sprint(o.trace); o.broken != "eleven" || got != "[A: add one 1 B: double 2 A: add one 1 B: double 2 A: add one 1]" && len(o.trace) != 5 {
		t.Errorf("broken %q by %v", o.broken, o.trace)
	}
	m.broken = func(*int) string { return "" }
	if o := search(m, enough, nil); o.states != 100 || !o.whole {
		t.Errorf("%v, want 100, all", &o)
	}
	if o := search(m, 50, nil); o.states != 50 || o.whole {
		t.Errorf("%v, want 50, not all", &o)
	}
}

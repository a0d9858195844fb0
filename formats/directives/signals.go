package directives

import (
	"slices"
	"strings"
)

// Signals are the preferences of Content-Signal (contentsignals.org): what content
// may be used for once it has been fetched, such as search=yes, ai-train=no. The
// zero value says nothing.
type Signals struct {
	list []signal // by name
}

type signal struct {
	name string
	yes  bool
}

const (
	maxSignals    = 16
	maxSignalName = 32 // bytes; a longer name is none
)

// Add takes a list such as "search=yes, ai-train=no". What is neither yes nor no is
// passed over; no wins over yes.
func (s *Signals) Add(list string) {
	for item := range strings.SplitSeq(list, ",") {
		name, value, ok := strings.Cut(item, "=")
		name = trim(name)
		value = trim(value)
		yes := strings.EqualFold(value, "yes")
		if !ok || !yes && !strings.EqualFold(value, "no") || !isSignalName(name) {
			continue
		}
		s.set(strings.ToLower(name), yes, false)
	}
}

// Merge takes what another says too; no wins over yes.
func (s *Signals) Merge(other Signals) {
	for _, g := range other.list {
		s.set(g.name, g.yes, false)
	}
}

// Override takes what another says, which replaces what s says of the same names.
func (s *Signals) Override(other Signals) {
	for _, g := range other.list {
		s.set(g.name, g.yes, true)
	}
}

func (s *Signals) set(name string, yes, replace bool) {
	i, there := slices.BinarySearchFunc(s.list, name, func(g signal, n string) int { return strings.Compare(g.name, n) })
	switch {
	case there && (replace || !yes):
		s.list[i].yes = yes
	case !there && len(s.list) < maxSignals:
		s.list = slices.Insert(s.list, i, signal{name, yes})
	}
}

func isSignalName(name string) bool {
	if name == "" || len(name) > maxSignalName {
		return false
	}
	for i := range len(name) {
		if c := name[i] | 0x20; (c < 'a' || c > 'z') && (name[i] < '0' || name[i] > '9') && name[i] != '-' && name[i] != '_' {
			return false
		}
	}
	return true
}

// String lists the signals by name: "ai-train=no,search=yes"; "" if there are none.
func (s Signals) String() string {
	var b strings.Builder
	for i, g := range s.list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(g.name)
		if g.yes {
			b.WriteString("=yes")
		} else {
			b.WriteString("=no")
		}
	}
	return b.String()
}

// TDM is the reservation of text and data mining (TDMRep, a W3C community group's
// final report of 2024). The zero value says nothing.
type TDM struct {
	// Reserved says whether the right is reserved; nil: nothing is said.
	Reserved *bool
	Policy   string // as given: a URL, or what stands in its place
}

// maxPolicy bounds a policy that is kept, in bytes; a longer one is none.
const maxPolicy = 2048

// Reservation takes a value of tdm-reservation: 1 reserves, 0 does not.
func (t *TDM) Reservation(value string) {
	var reserved bool
	switch trim(value) {
	case "1":
		reserved = true
	case "0":
	default:
		return
	}
	if t.Reserved == nil || reserved {
		t.Reserved = &reserved
	}
}

// PolicyAt takes a value of tdm-policy; the first counts.
func (t *TDM) PolicyAt(value string) {
	if value = trim(value); t.Policy == "" && len(value) <= maxPolicy {
		t.Policy = oneLine(value)
	}
}

package directives

import (
	"slices"
	"strings"
)

// Signals holds the preferences of Content-Signal (contentsignals.org). They say what fetched
// content may be used for, such as search=yes, ai-train=no. The zero value has none.
type Signals struct {
	list []signal // by name
}

type signal struct {
	name string
	yes  bool
}

const (
	maxSignals    = 16
	maxSignalName = 32 // bytes; longer names are ignored
)

// Add adds a list such as "search=yes, ai-train=no". It ignores values other than yes and no. A no
// overrides a yes.
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

// Merge adds the signals of other. A no overrides a yes.
func (s *Signals) Merge(other Signals) {
	for _, g := range other.list {
		s.set(g.name, g.yes, false)
	}
}

// Override adds the signals of other. They replace signals of s with the same names.
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

// signalNameBytes are the bytes that a signal's name may have. The check comes before ToLower,
// because ToLower turns the Kelvin sign into an ASCII k.
const signalNameBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

func isSignalName(name string) bool {
	return name != "" && len(name) <= maxSignalName && strings.Trim(name, signalNameBytes) == ""
}

// String lists the signals by name, such as "ai-train=no,search=yes". It returns "" if there are
// none.
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

// TDM is the reservation of text and data mining (TDMRep, the final report of a W3C community group
// from 2024). The zero value states nothing.
type TDM struct {
	// Reserved tells whether the right is reserved. It is nil if the document does not say.
	Reserved *bool
	Policy   string // as given, usually a URL
}

// maxPolicy bounds a policy that is kept, in bytes. Longer policies are ignored.
const maxPolicy = 2048

// Reservation adds a value of tdm-reservation: 1 reserves, 0 does not.
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

// PolicyAt adds a value of tdm-policy. The first value counts.
func (t *TDM) PolicyAt(value string) {
	if value = trim(value); t.Policy == "" && len(value) <= maxPolicy {
		t.Policy = oneLine(value)
	}
}

package directives

import (
	"slices"
	"strings"
)

// Signals holds the signals of Content-Signal (contentsignals.org). A signal such as ai-train=no says
// whether fetched content may be used for a purpose. The zero value has no signals.
type Signals struct {
	list []signal // sorted by name
}

type signal struct {
	name string
	yes  bool
}

const (
	maxSignals    = 16 // largest number of signals; further ones are ignored
	maxSignalName = 32 // longest accepted name, in bytes
)

// Add adds the signals of a list such as "search=yes, ai-train=no". It ignores values other than yes
// and no. If a signal occurs with both values, the result is no.
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

// Merge adds the other signals to s. If a signal occurs with both values, the result is no.
func (s *Signals) Merge(other Signals) {
	for _, g := range other.list {
		s.set(g.name, g.yes, false)
	}
}

// Override adds the other signals to s. They replace signals of s with the same names.
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

// signalNameBytes are the bytes that may occur in the name of a signal. Add checks a name before it
// calls ToLower, because ToLower turns the Kelvin sign into an ASCII k.
const signalNameBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

func isSignalName(name string) bool {
	return name != "" && len(name) <= maxSignalName && strings.Trim(name, signalNameBytes) == ""
}

// String returns the signals, sorted by name, such as "ai-train=no,search=yes".
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

// TDM says whether a document reserves the right of text and data mining (TDMRep, the final report of
// a W3C community group from 2024). The zero value states nothing.
type TDM struct {
	// Reserved says whether the right is reserved. It is nil if the document does not say.
	Reserved *bool
	Policy   string // the policy as the document gives it, usually a URL
}

// maxPolicy is the length of the longest accepted policy, in bytes.
const maxPolicy = 2048

// Reservation adds a value of tdm-reservation. The value 1 reserves the right, and the value 0 does
// not. If both occur, the right is reserved. Reservation ignores other values.
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

// PolicyAt adds a value of tdm-policy. If there are several values, PolicyAt keeps the first.
func (t *TDM) PolicyAt(value string) {
	if value = trim(value); t.Policy == "" && len(value) <= maxPolicy {
		t.Policy = oneLine(value)
	}
}

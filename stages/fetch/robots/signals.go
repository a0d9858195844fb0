package robots

import (
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/directives"
)

// maxSignalLines is how many Content-Signal lines of a crawler's groups count.
const maxSignalLines = 1000

// signalLine is a Content-Signal line, which holds for the agents named before it:
// for a path if one stands before the signals, else for the whole host.
type signalLine struct {
	path    pattern // text "": every URL
	signals directives.Signals
	agents  int
}

func newSignalLine(value string, agents int) signalLine {
	l := signalLine{agents: agents}
	if value != "" && (value[0] == '/' || value[0] == '*') {
		path := value
		if i := strings.IndexAny(value, " \t"); i >= 0 {
			path, value = value[:i], value[i:]
		} else {
			value = ""
		}
		l.path = compile(path)
	}
	l.signals.Add(value)
	return l
}

// Signals are the content signals (contentsignals.org) in force for a URL. Of each
// signal the line with the longest path that matches decides, as it does for rules;
// of two as long, the one that says no.
func (g *Group) Signals(rawURL string) directives.Signals {
	var out directives.Signals
	if len(g.signals) == 0 {
		return out
	}
	path := pathOf(rawURL)
	var held []*signalLine
	for i := range g.signals {
		if l := &g.signals[i]; l.path.text == "" || l.path.match(path) {
			held = append(held, l)
		}
	}
	// From the least specific to the most: what comes later overrides.
	slices.SortStableFunc(held, func(a, b *signalLine) int { return len(a.path.text) - len(b.path.text) })
	for len(held) > 0 {
		var same directives.Signals
		n := 0
		for ; n < len(held) && len(held[n].path.text) == len(held[0].path.text); n++ {
			same.Merge(held[n].signals)
		}
		out.Override(same)
		held = held[n:]
	}
	return out
}

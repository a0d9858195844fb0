package robots

import (
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/directives"
)

// maxSignalLines is how many Content-Signal lines a Group keeps. Further lines are ignored.
const maxSignalLines = 1000

// signalLine is a Content-Signal line. It applies to the agents named before it. If it has a path,
// it applies to the URLs that match the path, otherwise to the whole host.
type signalLine struct {
	path    pattern // path of the line; if it has no text, every URL matches
	signals directives.Signals
	agents  int // the line applies to this many agents of the group, counted from the first
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

// Signals returns the content signals (contentsignals.org) of a URL. For each signal, the matching
// line with the longest path decides; if two paths have equal length, "no" wins.
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
	// The line with the longest path comes last, because each line overrides those before it.
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

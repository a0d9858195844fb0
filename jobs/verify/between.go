package verify

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"strings"

	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

// edgeRequest is the last request to a host in one round, or the first in the next.
type edgeRequest struct {
	Host    string
	Later   bool // of the round that is checked
	Start   int64
	DelayMS int64
	URL     string
	Object  string
}

// compareEdges has each host's last request of the round before and then its first
// of this one come first.
func compareEdges(a, b *edgeRequest) int {
	later := 0
	switch {
	case a.Later && !b.Later:
		later = 1
	case b.Later && !a.Later:
		later = -1
	}
	order := cmp.Compare(a.Start, b.Start)
	if !a.Later {
		order = -order
	}
	return cmp.Or(strings.Compare(a.Host, b.Host), later, order, strings.Compare(a.URL, b.URL))
}

// checkBetweenRounds compares, for each host, the last request of the round before
// with the first of this one: host clocks carry over. Times of two rounds are
// compared on one clock only. A sample is one of hosts.
func (a *audit) checkBetweenRounds(ctx context.Context, r *round) error {
	if !a.OneClock || r.before == nil {
		return nil
	}
	edges, err := table.NewSorter(a.Scratch, compareEdges, sortMemory)
	if err != nil {
		return err
	}
	defer edges.Close() //nolint:errcheck // scratch
	for _, of := range []*round{r.before, r} {
		for n := range of.plan.Partitions {
			files, _ := of.files(stages.FileRequests, "", n)
			if a.isBroken(keysOf(files)...) {
				return nil // which request was the last is not known
			}
			for _, key := range keysOf(files) {
				if err := a.edges(concat[paced](ctx, a, []string{key}), key, of == r, edges); err != nil {
					return a.skip(err, 3, pace, of)
				}
			}
		}
	}
	var gaps int64
	var last, first edgeRequest // of the host, in the round before and in this one
	for e, err := range edges.Sorted(ctx) {
		if err != nil {
			return err
		}
		switch {
		case !e.Later:
			if last.Host != e.Host {
				last = e
			}
			continue
		case last.Host != e.Host || first.Host == e.Host:
			continue
		}
		first = e
		gaps++
		if gap := e.Start - last.Start; gap < e.DelayMS-rounding {
			a.report(Violation{
				Invariant: 3, Check: pace, Round: r.number, Object: e.Object, Row: e.URL, Where: urlIs(e.URL),
				Problem: fmt.Sprintf("it was sent %d ms after %s of the round before, the delay in force was %d ms", gap, last.URL, e.DelayMS),
			})
		}
	}
	a.note(3, pace, "gaps", gaps)
	return nil
}

// edges adds the first or the last request of each run of rows of a host.
func (a *audit) edges(rows iter.Seq2[paced, error], object string, later bool, out *table.Sorter[edgeRequest]) error {
	var e edgeRequest
	have, in := false, false
	flush := func() error {
		if !have {
			return nil
		}
		have = false
		return out.Add(&e)
	}
	for q, err := range rows {
		if err != nil {
			return err
		}
		if q.Host != e.Host || e.Host == "" {
			if err := flush(); err != nil {
				return err
			}
			e, in = edgeRequest{Host: strings.Clone(q.Host)}, a.sampled(q.Host)
		} else if have && (later && q.Start >= e.Start || !later && q.Start <= e.Start) {
			continue
		}
		if in {
			e = edgeRequest{Host: e.Host, Later: later, Start: q.Start, DelayMS: q.DelayMS, URL: q.URL, Object: object}
			have = true
		}
	}
	return flush()
}

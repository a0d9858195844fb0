package fetchcheck

import (
	"cmp"
	"context"
	"iter"
	"strings"

	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
	"crawlbatch.io/crawlbatch/stages"
)

// edgeRequest is the last request to a host in one round, or the first in the next.
type edgeRequest struct {
	Host    string
	Later   bool // true for the round that is checked
	Start   int64
	DelayMS int64
	URL     string
	Object  string
}

// compareEdges orders the requests to each host: first those of the previous round, latest first,
// then those of this round, earliest first.
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

// delaysAreKeptBetweenRounds compares, for each host, the last request of the previous round with
// the first request of this round, because host clocks carry over. It compares times of two rounds
// only if all tasks ran on one clock. Its sample is a sample of hosts.
func delaysAreKeptBetweenRounds(ctx context.Context, a *audit.Audit, r *audit.Round) error {
	if !a.OneClock || r.Before == nil {
		return nil
	}
	edges, err := table.NewSorter(a.Scratch, compareEdges, audit.SortMemory)
	if err != nil {
		return err
	}
	defer edges.Close() //nolint:errcheck // scratch
	for _, of := range []*audit.Round{r.Before, r} {
		for n := range of.Plan.Partitions {
			files, _ := of.Files(stages.FileRequests, "", n)
			if a.Broken(audit.Keys(files)...) {
				return nil // the last request is unknown
			}
			for _, key := range audit.Keys(files) {
				if err := addEdges(a, audit.Concat[paced](ctx, a, []string{key}), key, of == r, edges); err != nil {
					return a.Skip(err, delayKept, of)
				}
			}
		}
	}
	var gaps int64
	var last, first edgeRequest // the host's requests in the previous round and in this one
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
			a.Wrong(delayKept, r.Number, audit.URL(e.Object, e.URL), "it was sent %d ms after %s of the round before, the delay in force was %d ms", gap, last.URL, e.DelayMS)
		}
	}
	a.Count(delayKept, gaps)
	return nil
}

// addEdges adds one request for each host to out: the first if later is true, otherwise the last.
func addEdges(a *audit.Audit, rows iter.Seq2[paced, error], object string, later bool, out *table.Sorter[edgeRequest]) error {
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
			e, in = edgeRequest{Host: strings.Clone(q.Host)}, a.Sampled(q.Host)
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

package fetchcheck

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
	"crawlbatch.io/crawlbatch/stages"
)

// edgeRequest is the last request to a host in one round, or the first in the next.
type edgeRequest struct {
	paced
	Later  bool // true for the round that is checked
	Object string
}

// compareEdges orders the requests to each host: first those of the previous round, then those of
// this round, each earliest first. A host has several if redirects lead to it from other partitions.
func compareEdges(a, b *edgeRequest) int {
	return cmp.Or(strings.Compare(a.Host, b.Host), audit.FalseFirst(a.Later, b.Later), comparePaced(&a.paced, &b.paced))
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
			keys, _ := of.Files(stages.FileRequests, "", n)
			if a.Broken(keys...) {
				return nil // the last request is unknown
			}
			if err := addEdges(ctx, a, keys, of == r, edges); err != nil {
				return a.Skip(err, delayKept, of)
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
			last = e
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

// addEdges adds one request for each host of a partition to out: the first if later is true,
// otherwise the last. It needs a few hundred bytes of memory for each host.
func addEdges(ctx context.Context, a *audit.Audit, keys []string, later bool, out *table.Sorter[edgeRequest]) error {
	edges := map[string]edgeRequest{}
	err := audit.Each(ctx, a, keys, func(key string, q *paced) error {
		e, known := edges[q.Host]
		if a.Sampled(q.Host) && (!known || later && q.Start < e.Start || !later && q.Start > e.Start) {
			q.Host, q.URL = strings.Clone(q.Host), strings.Clone(q.URL)
			edges[q.Host] = edgeRequest{*q, later, key}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, host := range slices.Sorted(maps.Keys(edges)) {
		e := edges[host]
		if err := out.Add(&e); err != nil {
			return err
		}
	}
	return nil
}

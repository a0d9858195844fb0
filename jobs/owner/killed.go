package owner

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
)

// Killed is an attempt at the target's partition whose process was killed. The requests that it sent after
// its last checkpoint are in no table.
type Killed struct {
	Began   string `json:"began"`   // "" if unknown
	Noticed string `json:"noticed"` // when its death was noticed; "" if unknown
}

func (k Killed) String() string {
	return fmt.Sprintf("began %s, its death was noticed %s", cmp.Or(k.Began, "at an unknown time"), cmp.Or(k.Noticed, "at an unknown time"))
}

func (k Killed) missing() string {
	return fmt.Sprintf("an attempt was killed (%s): its requests after its last checkpoint are missing here", k)
}

// killed returns the killed attempts at the target's partitions in a finished round.
func (q *Question) killed(ctx context.Context, number int) (all []Killed, err error) {
	l, err := ledger.Load(ctx, q.Bucket, q.Crawl)
	if err != nil {
		return nil, err
	}
	p, _, err := roundstate.PlanIn(ctx, q.Bucket, l, number)
	if err != nil {
		return nil, err
	}
	byTask := map[int][]Killed{}
	for a, err := range roundstate.FetchAttempts(ctx, q.Bucket, p) {
		if err != nil {
			return nil, err
		}
		if a.Outcome == manifest.ClassKilled {
			byTask[int(a.Task)] = append(byTask[int(a.Task)], Killed{a.BeganAt.String(), a.EndedAt.String()})
		}
	}
	if len(byTask) == 0 { // the answer then needs no part of the plan
		return nil, nil
	}
	partitions, err := q.partitions(ctx, p)
	for _, n := range partitions {
		all = append(all, byTask[n]...)
	}
	return all, err
}

// partitions returns the partitions of a plan that have URLs of the target.
func (q *Question) partitions(ctx context.Context, p *manifest.Plan) (numbers []int, err error) {
	matches, bucket := q.Target.matcher(), urlkey.Bucket(q.Target.Domain, p.Buckets)
	for _, part := range p.Partitions {
		if part.Bucket != bucket {
			continue
		}
		for row, err := range table.Concat[plannedHost](ctx, q.Bucket, []string{part.File.Key}, q.Target.byHost()...) {
			if err != nil {
				return nil, err
			}
			if matches(row.Host) {
				numbers = append(numbers, part.Partition)
				break
			}
		}
	}
	return numbers, nil
}

// killed returns the killed attempts of all rounds.
func (s *Summary) killed() (all []Killed) {
	for _, r := range s.Rounds {
		all = append(all, r.Killed...)
	}
	return all
}

// missing says, in the reply to the owner, which requests the list may lack.
func missing(killed []Killed) string {
	var times []string
	for _, k := range killed {
		times = append(times, k.String())
	}
	return fmt.Sprintf("The list may lack requests: %s of the crawl died before it recorded its last requests (%s).\n", processes(len(killed)), strings.Join(times, "; "))
}

func processes(n int) string {
	if n == 1 {
		return "one process"
	}
	return fmt.Sprintf("%d processes", n)
}

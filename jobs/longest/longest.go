// Package longest finds the host that decided how long a finished round fetched, and where the host's
// time went.
//
// The input is the seal and the plan of a round, the attempts at its fetch tasks, and the pauses of the
// crawl. The package reads a row of runs, the rows of stages, the rows of hosts of the partition's bucket,
// and the requests of one host. The output is the host with the last request, with its time divided by the
// reasons to wait. Only displays use it. Package longest imports jobs/ledger, jobs/roundstate, stages,
// stages/publish and formats.
package longest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/publish"
)

// Round says how long a round fetched, and which host decided it.
type Round struct {
	FetchHours     float64 `json:"fetch_hours,omitempty"`           // as in the runs dataset; 0: unknown
	PredictedHours float64 `json:"predicted_fetch_hours,omitempty"` // as in the runs dataset; 0: unknown
	PausedMS       int64   `json:"paused_ms,omitempty"`             // how long people paused the crawl between the begin of the first fetch task and the end of the last one; without pauses of up to 10 s of that time, which tasks may not have noticed
	Killed         int64   `json:"killed_attempts,omitempty"`       // attempts at fetch tasks whose process was killed; requests after their last checkpoints are in no table
	Partition      int     `json:"partition"`                       // the partition whose task ended last
	Host           *Host   `json:"host,omitempty"`                  // the host with the last request to that partition's bucket; nil: no request was sent
}

// Host is the host that decided the length of a round.
type Host struct {
	Host        string `json:"host"`
	URLs        int64  `json:"planned_urls"`
	Requests    int64  `json:"requests"` // attempts without a connection included
	First       int64  `json:"first_request_ms"`
	Last        int64  `json:"last_request_ms"` // milliseconds since 1970, UTC
	DelayMS     int64  `json:"largest_delay_ms"`
	Cause       string `json:"delay_cause,omitempty"` // why the delay was longer than the config's; "" if it was not, or unknown
	Unreachable bool   `json:"robots_unreachable,omitempty"`
	Spent       []Time `json:"spent"`                  // parts of the time from First to Last, longest first
	Before      []Time `json:"before_first,omitempty"` // parts of the time from the begin of the first attempt at the task to First, longest first
}

// Time is a part of a host's time.
type Time struct {
	On string `json:"on"`
	MS int64  `json:"ms"`
}

// OnDelay is the reason Time.On of the time that the delay between two requests takes.
const OnDelay = "the delay between two requests"

// The other reasons for the time between two requests to a host.
const (
	onPause    = "a pause by people"
	onKilled   = "a killed attempt, from its last recorded request to the first one of the next attempt"
	onLimited  = "pauses after 429 or 503"
	onServer   = "pauses after another 5xx"
	onNoAnswer = "pauses after requests without an answer"
	onAttempts = "pauses between two attempts at the task"
	onLost     = "killed attempts that recorded no request to it"
	onTurn     = "other hosts, or the load of its task"
	onOther    = "other waits: for the answer, a free slot, the address or the store"
)

// slowFrom is the mean time of a response from which a host counts as slow, in milliseconds.
const slowFrom = 1000

// Of returns what decided the length of a sealed round. attempts are the attempts at its fetch tasks, by
// partition, or nil if a caller has none at hand. pauses are those of its crawl. Of returns nil if the
// task that ended last is unknown, or if a table that Of reads is gone or damaged: `verify` reports the loss.
func Of(ctx context.Context, b store.Bucket, p *manifest.Plan, s *manifest.Sealed, attempts map[int][]*manifest.Attempt, pauses []ledger.Pause) (*Round, error) {
	out, err := read(ctx, b, p, s, lastToEnd(attempts), spans(pauses))
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, table.ErrCorrupt) || errors.Is(err, manifest.ErrCorrupt) || errors.Is(err, manifest.ErrChanged) {
		return nil, nil
	}
	return out, err
}

func read(ctx context.Context, b store.Bucket, p *manifest.Plan, s *manifest.Sealed, partition int, paused []span) (*Round, error) {
	out := &Round{Partition: partition}
	killed, began, err := out.readAttempts(ctx, b, p, paused)
	if err != nil || out.Partition < 0 || out.Partition >= len(p.Partitions) {
		return nil, err
	}
	want := roundstate.Selection{
		Dataset: func(name string) bool { return name == stages.FileHosts || name == stages.FileRequests },
		Bucket:  p.Partitions[out.Partition].Bucket, Buckets: s.Buckets,
	}
	filled, err := roundstate.WithFiles(ctx, b, []*manifest.Sealed{s}, want)
	if err != nil {
		return nil, err
	}
	if out.FetchHours, out.PredictedHours, err = hours(ctx, b, p); err != nil {
		return nil, err
	}
	host, err := lastHost(ctx, b, keys(filled[0].Files, stages.FileHosts))
	if err != nil || host == nil {
		return out, err
	}
	out.Host = &Host{Host: host.Host, URLs: host.Planned, First: host.First.UnixMilli(), Last: host.Last.UnixMilli(), Unreachable: host.Robots == "unreachable"}
	lost := lostTime{paused: paused, killed: killed, began: began}
	out.Host.Before = lost.before(host.First)
	return out, out.Host.read(ctx, b, keys(filled[0].Files, stages.FileRequests), host.Robots == "rules", &lost)
}

// lastToEnd returns the partition whose successful attempt ended last, or -1 if there is none.
func lastToEnd(attempts map[int][]*manifest.Attempt) (partition int) {
	var last time.Time
	partition = -1
	for _, n := range slices.Sorted(maps.Keys(attempts)) {
		for _, a := range attempts[n] {
			if at, err := time.Parse(time.RFC3339Nano, a.At); err == nil && a.Class == manifest.ClassDone && at.After(last) {
				partition, last = n, at
			}
		}
	}
	return partition
}

func keys(files []manifest.File, dataset string) (out []string) {
	for _, f := range files {
		if f.Dataset == dataset {
			out = append(out, f.Key)
		}
	}
	return out
}

// runTimes holds the columns of runs that the package reads.
type runTimes struct {
	Fetch     *float64 `parquet:"fetch_hours,optional"`
	Predicted *float64 `parquet:"predicted_fetch_hours,optional"`
}

// hours returns how long the round fetched and was predicted to fetch, or 0 if it has no row of runs.
func hours(ctx context.Context, b store.Bucket, p *manifest.Plan) (fetch, predicted float64, err error) {
	key := publish.AccountKey(p, stages.FileRuns)
	if there, err := manifest.Exists(ctx, b, key); err != nil || !there {
		return 0, 0, err
	}
	for row, err := range table.Concat[runTimes](ctx, b, []string{key}) {
		if err != nil {
			return 0, 0, err
		}
		fetch, predicted = *cmp.Or(row.Fetch, new(0.0)), *cmp.Or(row.Predicted, new(0.0))
	}
	return fetch, predicted, nil
}

// hostTimes holds the columns of hosts that the package reads.
type hostTimes struct {
	Host    string      `parquet:"host"`
	Robots  string      `parquet:"robots_state,optional"`
	Planned int64       `parquet:"planned"`
	First   schema.Time `parquet:"first_request,optional,timestamp(microsecond)"`
	Last    schema.Time `parquet:"last_request,optional,timestamp(microsecond)"`
}

// lastHost returns the host with the last request, or nil if no request was sent.
func lastHost(ctx context.Context, b store.Bucket, keys []string) (*hostTimes, error) {
	var last *hostTimes
	for row, err := range table.Concat[hostTimes](ctx, b, keys) {
		if err != nil {
			return nil, err
		}
		if row.Last > 0 && (last == nil || row.Last > last.Last) {
			row.Host, row.Robots = strings.Clone(row.Host), strings.Clone(row.Robots)
			last = &row
		}
	}
	return last, nil
}

// parts returns the parts that took time, the longest first.
func parts(spent map[string]int64) (all []Time) {
	for on, ms := range spent {
		if ms > 0 {
			all = append(all, Time{on, ms})
		}
	}
	slices.SortFunc(all, func(a, b Time) int { return cmp.Or(cmp.Compare(b.MS, a.MS), strings.Compare(a.On, b.On)) })
	return all
}

// sent holds the columns of requests that the package reads.
type sent struct {
	Host    string         `parquet:"host,dict"`
	Purpose schema.Purpose `parquet:"purpose,dict"`
	Start   schema.Time    `parquet:"start,timestamp(microsecond)"`
	DelayMS int64          `parquet:"delay_ms"`
	Status  int16          `parquet:"http_status,optional"`
	TotalMS int64          `parquet:"total_ms"`
	Epoch   int32          `parquet:"epoch"`
}

// read reads the requests to the host, which are sorted by time. rules says whether its robots.txt has
// rules, among which may be a Crawl-delay.
func (h *Host) read(ctx context.Context, b store.Bucket, keys []string, rules bool, lost *lostTime) error {
	spent := map[string]int64{}
	var before *sent
	var limited, total int64
	least := int64(-1) // the delay before robots.txt was known
	for q, err := range table.Concat[sent](ctx, b, keys, table.StringRange("host", h.Host, h.Host)) {
		if err != nil {
			return err
		}
		if q.Host != h.Host {
			continue
		}
		h.Requests++
		total += q.TotalMS
		h.DelayMS = max(h.DelayMS, q.DelayMS)
		if q.Status == 429 || q.Status == 503 {
			limited++
		}
		if q.Purpose == schema.ForRobots && least < 0 {
			least = q.DelayMS
		}
		if before != nil {
			gap := q.Start.Sub(before.Start).Milliseconds()
			delay := max(min(gap, q.DelayMS), 0)
			rest := max(gap-delay, 0)
			paused := int64(0)
			if q.Epoch != before.Epoch { // a task that notices a pause releases its partition, and takes it with another epoch
				paused = min(rest, overlap(lost.paused, before.Start, q.Start))
			}
			spent[OnDelay] += delay
			spent[onPause] += paused
			spent[lost.why(before, &q)] += rest - paused
		}
		before = &q
	}
	h.Spent = parts(spent)
	switch {
	case least >= 0 && h.DelayMS <= least:
	case limited > 0:
		h.Cause = fmt.Sprintf("it answered 429 or 503 to %d of its requests", limited)
	case h.Requests > 0 && total/h.Requests > slowFrom:
		h.Cause = fmt.Sprintf("it answers slowly, after %s on average", (time.Duration(total/h.Requests) * time.Millisecond).Round(100*time.Millisecond))
	case least >= 0 && rules:
		h.Cause = "Crawl-delay"
	}
	return nil
}

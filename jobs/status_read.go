package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// readers is the largest number of small objects that are read at the same time.
const readers = 32

// eachNumber calls read with the numbers 0 to n-1, several calls at a time, and
// returns the first error.
func eachNumber(ctx context.Context, n int, read func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i := range n {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return read(ctx, i)
		})
	}
	return group.Wait()
}

// readResults returns the counts of each task's result, or nil for a task without a result.
func (r *StatusReader) readResults(ctx context.Context, p *manifest.Plan, stage stages.Stage) ([][]manifest.Count, error) {
	tasks := roundstate.Tasks(p, stage)
	found := make([][]manifest.Count, len(tasks))
	var ask []stages.Task
	var there map[int]bool
	if !r.allDone(p, stage) {
		var err error
		if there, err = present(ctx, r.Bucket, p, stage); err != nil {
			return nil, err
		}
	}
	for n, t := range tasks {
		counts, ok := r.results[t]
		if ok {
			found[n] = counts
			continue
		}
		may, err := r.mayHaveResult(ctx, p, t)
		if err != nil {
			return nil, err
		}
		if may && (there == nil || there[n]) {
			ask = append(ask, t)
		}
	}
	err := roundstate.EachResult(ctx, r.Bucket, p, ask, func(i int, result *manifest.Result, _ string) {
		if result != nil {
			found[ask[i].Partition] = append([]manifest.Count{}, result.Counts...) // an empty result must not be nil
		}
	})
	for n, counts := range found {
		if counts != nil {
			r.results[tasks[n]] = counts
		}
	}
	return found, err
}

// present returns the partitions of a stage that have a result. It needs one LIST request for 1,000
// results. For fetch, present returns nil, because a listing would also contain many segments. The
// caller must then read each result. A listing may omit objects. This does no harm, because only
// the display of status depends on present.
func present(ctx context.Context, b store.Bucket, p *manifest.Plan, stage stages.Stage) (map[int]bool, error) {
	if stage == stages.Fetch {
		return nil, nil
	}
	there := map[int]bool{}
	dir := layout.StageDir(p.Crawl, p.Round, string(stage))
	for o, err := range b.List(ctx, layout.Results(p.Crawl, p.Round, string(stage))) {
		if err != nil {
			return nil, fmt.Errorf("list results of %s@%s.%d: %w", stage, p.Crawl, p.Round, err)
		}
		name := strings.TrimSuffix(strings.TrimPrefix(o.Key, dir), ".json")
		if n, err := layout.ParsePart(name); err == nil {
			there[n] = true
		}
	}
	return there, nil
}

// readAttempts returns the ended attempts at each task of a stage, by partition.
func (r *StatusReader) readAttempts(ctx context.Context, p *manifest.Plan, stage stages.Stage) (map[int][]*manifest.Attempt, error) {
	if all := r.known.done[stageKey{p.Crawl, p.Round, stage}]; all != nil {
		return all, nil
	}
	keys, err := attemptKeys(ctx, r.Bucket, p, stage)
	if err != nil {
		return nil, err
	}
	var ask []string
	for _, k := range keys {
		if r.attempts[k.key] == nil {
			ask = append(ask, k.key)
		}
	}
	read := make([]*manifest.Attempt, len(ask))
	err = eachNumber(ctx, len(ask), func(ctx context.Context, i int) error {
		var a manifest.Attempt
		_, _, err := manifest.Load(ctx, r.Bucket, ask[i], &a)
		read[i] = &a
		return err
	})
	if err != nil {
		return nil, err
	}
	for i, key := range ask {
		r.attempts[key] = read[i]
	}
	all := map[int][]*manifest.Attempt{}
	for _, k := range keys {
		all[k.partition] = append(all[k.partition], r.attempts[k.key])
	}
	return all, nil
}

type attemptKey struct {
	key       string
	partition int
}

// attemptKeys lists the records of attempts at the tasks of a stage.
func attemptKeys(ctx context.Context, b store.Bucket, p *manifest.Plan, stage stages.Stage) ([]attemptKey, error) {
	var keys []attemptKey
	dir := layout.AttemptsDir(p.Crawl, p.Round, string(stage))
	for o, err := range b.List(ctx, dir) {
		if err != nil {
			return nil, fmt.Errorf("list attempts at %s@%s.%d: %w", stage, p.Crawl, p.Round, err)
		}
		if n, _, ok := layout.ParseAttempt(dir, o.Key); ok && n < stage.Tasks(p) {
			keys = append(keys, attemptKey{o.Key, n})
		}
	}
	return keys, nil
}

// readCheckpoints returns the status of the fetch tasks that have a checkpoint.
func (r *StatusReader) readCheckpoints(ctx context.Context, p *manifest.Plan, tasks []stages.Task) ([]FetchStatus, error) {
	ask, err := r.mayHaveChanged(ctx, p, tasks)
	if err != nil {
		return nil, err
	}
	read, leases := make([]*FetchStatus, len(ask)), make([]time.Duration, len(ask))
	err = eachNumber(ctx, len(ask), func(ctx context.Context, i int) error {
		n := ask[i].Partition
		key := layout.Checkpoint(p.Crawl, p.Round, n)
		var c manifest.Checkpoint
		_, _, err := manifest.Load(ctx, r.Bucket, key, &c)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		recorded, err := c.RecordedRows()
		if err != nil {
			return fmt.Errorf("%q: %w", key, err)
		}
		leases[i] = time.Duration(c.LeaseMS) * time.Millisecond
		read[i] = &FetchStatus{
			Partition: n, Planned: p.Partitions[n].URLs, Recorded: int64(recorded.GetCardinality()),
			Epoch: c.Epoch, Released: c.Released, Complete: c.Complete, ElapsedMS: c.ElapsedMS,
			Activity: c.Activity, Outcomes: outcomes(c.Counts), Bytes: countOf(c.Counts, stages.CountBytes),
		}
		read[i].Done = read[i].Recorded
		if a := c.Activity; a != nil && a.Left > 0 && !c.Complete {
			read[i].Done = max(read[i].Recorded, read[i].Planned-a.Left)
		}
		if a := c.Activity; a != nil && len(a.Waits) > 0 {
			read[i].GiveUp = fmt.Sprintf("crawlbatch retry --month %s --give-up --partition %d%s", p.Crawl, n, r.Flags)
			read[i].Stops = hostStops(a, p.Crawl, r.Flags)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, f := range read {
		r.keepCheckpoint(ask[i], f, leases[i])
	}
	var all []FetchStatus
	for _, t := range tasks {
		if f := r.known.checkpoints[t].status; f != nil {
			all = append(all, *f)
		}
	}
	return all, nil
}

// mostStops is the number of hosts that end at nearly the same time for which hostStops returns commands.
const mostStops = 3

// hostStops returns the commands that stop the hosts that delay the end of a task the most: the slowest
// host, those that end at nearly the same time, and the host whose robots.txt may be tried for longer.
func hostStops(a *manifest.Activity, crawl, flags string) (out []HostStop) {
	late := a.Waits[:1:1]
	for _, host := range a.Slowest[:min(len(a.Slowest), mostStops)] {
		if host != late[0].Host {
			late = append(late, manifest.Wait{Host: host})
		}
	}
	if a.Latest != nil && !slices.ContainsFunc(late, func(w manifest.Wait) bool { return w.Host == a.Latest.Host }) {
		late = append(late, *a.Latest)
	}
	for _, w := range late {
		if w.Host == "" { // the whole task waits
			continue
		}
		s := HostStop{Host: w.Host, URLs: w.URLs, Command: StopCommand(w.Host, crawl, flags)}
		for _, known := range a.Waits {
			if known.Host == w.Host {
				s.URLs = known.URLs
			}
		}
		out = append(out, s)
	}
	return out
}

// StopCommand returns the command that stops a host. flags are the flags for the store, with a leading
// space.
func StopCommand(host, crawl, flags string) string {
	if strings.ContainsFunc(host, func(r rune) bool {
		return r != '.' && r != '-' && r != ':' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		host = "'" + strings.ReplaceAll(host, "'", `'\''`) + "'" // an IPv6 address has brackets, which shells expand
	}
	return fmt.Sprintf(`crawlbatch host %s --month %s --stop "REASON"%s`, host, crawl, flags)
}

// countOf returns the sum of the counts with the given name.
func countOf(counts []manifest.Count, name string) (n int64) {
	for _, c := range counts {
		if c.Name == name {
			n += c.N
		}
	}
	return n
}

// outcomes selects the counts of outcomes from the counts of a checkpoint.
func outcomes(counts []manifest.Count) []manifest.Count {
	var out []manifest.Count
	for _, c := range counts {
		if name, ok := strings.CutPrefix(c.Name, stages.CountOutcomes); ok {
			out = append(out, manifest.Count{Name: name, N: c.N})
		}
	}
	return out
}

// Fetching returns the status of the fetch tasks of a round that have a checkpoint. tasks are fetch tasks without a
// result. A later call of the same StatusReader does not read those whose partition was not taken. The reader keeps
// nothing of other tasks, because `run` goes through many rounds.
func (r *StatusReader) Fetching(ctx context.Context, p *manifest.Plan, tasks []stages.Task) ([]FetchStatus, error) {
	was := r.known.checkpoints
	r.known = known{checkpoints: map[stages.Task]*knownCheckpoint{}}
	for _, t := range tasks {
		if k := was[t]; k != nil {
			r.known.checkpoints[t] = k
		}
	}
	return r.readCheckpoints(ctx, p, tasks)
}

package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/stages"
)

var (
	// ErrNoCrawl: the store holds no crawl of that name.
	ErrNoCrawl = errors.New("no such crawl")
	// ErrNoPlan: the round has no plan.
	ErrNoPlan = errors.New("no plan")
	// ErrNotReady: a task of an earlier stage has no result yet.
	ErrNotReady = errors.New("the stage before is not done")
)

// MadeBy is the command that makes a crawl; flags, with a space before them, are what
// commands for the same store need.
func MadeBy(crawl, flags string) string {
	if layout.IsReparse(crawl) {
		month, _ := layout.MonthOf(crawl)
		return fmt.Sprintf("crawlbatch reparse --month %s --as %s%s", month, crawl, flags)
	}
	return fmt.Sprintf("crawlbatch plan --month %s --source FILE%s", crawl, flags)
}

// OpenCrawl reads crawl.json and the config that it froze.
func OpenCrawl(ctx context.Context, b store.Bucket, crawl string, lookup func(string) (string, bool)) (*manifest.Crawl, *config.Config, error) {
	var m manifest.Crawl
	key := layout.CrawlManifest(crawl)
	if _, _, err := manifest.Load(ctx, b, key, &m); err != nil {
		if errors.Is(err, store.ErrNotFound) {
			return nil, nil, fmt.Errorf("%s holds no crawl %s: make one with `%s`: %w", b, crawl, MadeBy(crawl, ""), ErrNoCrawl)
		}
		return nil, nil, err
	}
	if m.Crawl != crawl {
		return nil, nil, foreign(key, "crawl "+m.Crawl, "crawl "+crawl)
	}
	c, err := config.ReadFrozen(key, []byte(m.Config), lookup)
	if err != nil {
		return nil, nil, err
	}
	return &m, c, nil
}

// FindPlan returns the plan of a round that counts: the one that start.json names
// or, before the round is started, the only one there is. started says which.
func FindPlan(ctx context.Context, b store.Bucket, crawl string, round int) (p *manifest.Plan, started bool, err error) {
	var s manifest.Start
	_, _, err = manifest.Load(ctx, b, layout.Start(crawl, round), &s)
	switch {
	case err == nil:
		p, err = loadPlan(ctx, b, crawl, round, s.Plan)
		if errors.Is(err, store.ErrNotFound) {
			err = fmt.Errorf("round %d of %s was started with plan %s, which is gone: restore it: %w", round, crawl, s.Plan, stages.ErrPermanent)
		}
		return p, true, err
	case !errors.Is(err, store.ErrNotFound):
		return nil, false, err
	}
	ids, err := Plans(ctx, b, crawl, round)
	if err != nil {
		return nil, false, err
	}
	switch len(ids) {
	case 0:
		return nil, false, fmt.Errorf("round %d of crawl %s has no plan: make one with `%s`: %w", round, crawl, MadeBy(crawl, ""), ErrNoPlan)
	case 1:
		p, err = loadPlan(ctx, b, crawl, round, ids[0])
		return p, false, err
	}
	return nil, false, fmt.Errorf("round %d of crawl %s has %d plans (%s), left by a `plan --replace` that was cut off: run it again",
		round, crawl, len(ids), strings.Join(ids, ", "))
}

// Plans lists the IDs of the complete plans of a round.
func Plans(ctx context.Context, b store.Bucket, crawl string, round int) ([]string, error) {
	var ids []string
	prefix := layout.RoundDir(crawl, round) + "plan-"
	for o, err := range b.List(ctx, prefix) {
		if err != nil {
			return nil, fmt.Errorf("list plans of %s.%d: %w", crawl, round, err)
		}
		id, rest, _ := strings.Cut(strings.TrimPrefix(o.Key, prefix), "/")
		if rest == "plan.json" {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func loadPlan(ctx context.Context, b store.Bucket, crawl string, round int, id string) (*manifest.Plan, error) {
	var p manifest.Plan
	key := layout.PlanManifest(crawl, round, id)
	if _, _, err := manifest.Load(ctx, b, key, &p); err != nil {
		return nil, err
	}
	if p.Crawl != crawl || p.Round != round || p.ID != id {
		return nil, foreign(key, fmt.Sprintf("plan %s of %s.%d", p.ID, p.Crawl, p.Round), fmt.Sprintf("plan %s of %s.%d", id, crawl, round))
	}
	return &p, nil
}

// foreign is the error of a document that belongs elsewhere: somebody copied or
// renamed it.
func foreign(key, of, want string) error {
	return fmt.Errorf("%q is of %s, not of %s: restore the right one; what was copied there by mistake can be removed: %w", key, of, want, manifest.ErrCorrupt)
}

// formatOfRound is the schema.FormatVersion that start.json of a round was written in.
func formatOfRound(ctx context.Context, b store.Bucket, crawl string, round int) (int, error) {
	var s manifest.Start
	_, _, err := manifest.Load(ctx, b, layout.Start(crawl, round), &s)
	return s.Format, err
}

// LacksSpellings reports whether a round reads robots.txt for every spelling of a URL
// and its plan, made by an older version, does not know them.
func LacksSpellings(ctx context.Context, b store.Bucket, p *manifest.Plan) (bool, error) {
	if p.KeepsSpellings() {
		return false, nil
	}
	format, err := formatOfRound(ctx, b, p.Crawl, p.Round)
	return format >= 2, err
}

// Begin starts a round: it creates start.json, once, and returns the plan that counts.
func Begin(ctx context.Context, b store.Bucket, crawl string, round int, version string) (*manifest.Plan, error) {
	p, started, err := FindPlan(ctx, b, crawl, round)
	if err != nil || started {
		return p, err
	}
	_, err = manifest.Create(ctx, b, layout.Start(crawl, round), &manifest.Start{Header: manifest.Header{Version: version}, Plan: p.ID})
	if err != nil && !errors.Is(err, store.ErrExists) {
		return nil, err
	}
	p, _, err = FindPlan(ctx, b, crawl, round)
	return p, err
}

// LoadResult reads the result of a task; nil where it has none.
func LoadResult(ctx context.Context, b store.Bucket, t stages.Task) (*manifest.Result, string, error) {
	var r manifest.Result
	key := resultKey(t)
	_, digest, err := manifest.Load(ctx, b, key, &r)
	if errors.Is(err, store.ErrNotFound) {
		return nil, "", nil
	}
	if err == nil && (r.Task != t.String() || r.Stage != string(t.Stage) || r.Partition != t.Partition) {
		err = foreign(key, "task "+r.Task, "task "+t.String())
	}
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", t, err)
	}
	return &r, digest, nil
}

// LoadResultOf is LoadResult for a task of a plan: a result of another plan's task
// is refused.
func LoadResultOf(ctx context.Context, b store.Bucket, p *manifest.Plan, t stages.Task) (*manifest.Result, string, error) {
	r, digest, err := LoadResult(ctx, b, t)
	if err == nil && r != nil && r.Plan != p.ID {
		return nil, "", fmt.Errorf("%s: %w", t, foreign(resultKey(t), "plan "+r.Plan, "plan "+p.ID))
	}
	return r, digest, err
}

// feeds says which stages a stage reads the results of.
var feeds = map[stages.Stage][]stages.Stage{
	stages.Merge:    {stages.Fetch},
	stages.Dedup:    {stages.Merge},
	stages.Rank:     {stages.Merge},
	stages.Frontier: {stages.Merge, stages.Rank},
	stages.Publish:  {stages.Merge, stages.Dedup, stages.Rank},
}

// Feeds lists the stages whose results a stage reads, in the order in which its
// inputs.json lists them.
func Feeds(stage stages.Stage) []stages.Stage { return slices.Clone(feeds[stage]) }

// reads says whether a task reads the result of partition n of the stage from:
// merge and publish read their own partition, publish its own bucket of rank, all
// else is read whole (frontier reads of the other buckets of rank how many hosts
// they have).
func reads(t stages.Task, p *manifest.Plan, from stages.Stage, n int) bool {
	switch {
	case t.Stage == stages.Merge, t.Stage == stages.Publish && from == stages.Merge:
		return n == t.Partition
	case t.Stage == stages.Publish && from == stages.Rank:
		return n == p.Partitions[t.Partition].Bucket
	}
	return true
}

// Freeze creates inputs.json of a stage, once, when every task that feeds it has
// a result, and returns it.
func Freeze(ctx context.Context, b store.Bucket, p *manifest.Plan, stage stages.Stage, version string) (*manifest.Inputs, error) {
	key := layout.Inputs(p.Crawl, p.Round, string(stage))
	var in manifest.Inputs
	_, _, err := manifest.Load(ctx, b, key, &in)
	if err == nil && (in.Stage != string(stage) || in.Plan != p.ID) {
		err = foreign(key, fmt.Sprintf("%s of plan %s", in.Stage, in.Plan), fmt.Sprintf("%s of plan %s", stage, p.ID))
	}
	if err == nil || !errors.Is(err, store.ErrNotFound) {
		return &in, err
	}
	in = manifest.Inputs{Header: manifest.Header{Version: version}, Stage: string(stage), Plan: p.ID}
	for _, from := range feeds[stage] {
		tasks := tasksOf(p, from)
		all, err := loadResults(ctx, b, p, tasks)
		if err != nil {
			return nil, err
		}
		for n, l := range all {
			if l.result == nil {
				return nil, fmt.Errorf("%s of %s.%d cannot start: %s has no result: %w", stage, p.Crawl, p.Round, tasks[n], ErrNotReady)
			}
			in.Tasks = append(in.Tasks, manifest.InputTask{Stage: string(from), Partition: n, SHA256: l.digest})
		}
	}
	if _, err := manifest.Create(ctx, b, key, &in); err != nil && !errors.Is(err, store.ErrExists) {
		return nil, err
	}
	if _, _, err := manifest.Load(ctx, b, key, &in); err != nil {
		return nil, err
	}
	return &in, nil
}

// gather loads what a reduce task reads and checks it against the frozen inputs.
// Results that the task does not read stay nil.
func gather(ctx context.Context, b store.Bucket, p *manifest.Plan, t stages.Task, frozen *manifest.Inputs) (*stages.Input, error) {
	in := &stages.Input{Task: t, Plan: p, Results: map[stages.Stage][]*manifest.Result{}}
	var sources []stages.Task
	var digests []string
	for _, f := range frozen.Tasks {
		from := stages.Stage(f.Stage)
		if in.Results[from] == nil {
			in.Results[from] = make([]*manifest.Result, from.Tasks(p))
		}
		if f.Partition < 0 || f.Partition >= len(in.Results[from]) {
			return nil, fmt.Errorf("%s: inputs.json names %s:%d, which the plan does not have: %w", t, from, f.Partition, manifest.ErrCorrupt)
		}
		if !reads(t, p, from, f.Partition) {
			continue
		}
		sources = append(sources, stages.Task{Stage: from, Crawl: t.Crawl, Round: t.Round, Partition: f.Partition})
		digests = append(digests, f.SHA256)
	}
	all, err := loadResults(ctx, b, p, sources)
	if err != nil {
		return nil, err
	}
	for i, from := range sources {
		if all[i].result == nil || all[i].digest != digests[i] {
			return nil, fmt.Errorf("%s: the result of %s is not the one that inputs.json froze: restore it: %w", t, from, stages.ErrPermanent)
		}
		in.Results[from.Stage][from.Partition] = all[i].result
	}
	in.Earlier, err = Earlier(ctx, b, t.Crawl, t.Round)
	return in, err
}

// Earlier returns the sealed rounds before a round, oldest first: those of the
// same crawl, and of the crawls that it continues.
func Earlier(ctx context.Context, b store.Bucket, crawl string, round int) ([]*manifest.Sealed, error) {
	all, err := History(ctx, b, crawl)
	if err != nil {
		return nil, err
	}
	for i, s := range all {
		if s.Crawl == crawl && s.Round >= round {
			return all[:i], nil
		}
	}
	return all, nil
}

// History returns all sealed rounds of a crawl and of the crawls that it
// continues, oldest first.
func History(ctx context.Context, b store.Bucket, crawl string) ([]*manifest.Sealed, error) {
	var chain []*manifest.Sealed
	seen := map[string]bool{}
	for crawl != "" && !seen[crawl] {
		seen[crawl] = true
		own, err := Sealed(ctx, b, crawl)
		if err != nil {
			return nil, err
		}
		chain = append(own, chain...)
		var m manifest.Crawl
		if _, _, err := manifest.Load(ctx, b, layout.CrawlManifest(crawl), &m); err != nil {
			return nil, err
		}
		crawl = m.Continues
	}
	return chain, nil
}

// Sealed returns the sealed rounds of a crawl, from round 0 on.
func Sealed(ctx context.Context, b store.Bucket, crawl string) ([]*manifest.Sealed, error) {
	var all []*manifest.Sealed
	for round := 0; ; round++ {
		var s manifest.Sealed
		key := layout.Sealed(crawl, round)
		_, _, err := manifest.Load(ctx, b, key, &s)
		if errors.Is(err, store.ErrNotFound) {
			return all, nil
		}
		if err == nil && (s.Crawl != crawl || s.Round != round) {
			err = foreign(key, fmt.Sprintf("round %s.%d", s.Crawl, s.Round), fmt.Sprintf("round %s.%d", crawl, round))
		}
		if err != nil {
			return nil, err
		}
		all = append(all, &s)
	}
}

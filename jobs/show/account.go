package show

import (
	"context"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/cost"
	"crawlbatch.io/crawlbatch/stages"
)

// Costs holds what a Progress needs to compute the cost of a round.
type Costs struct {
	Model  *cost.Model
	Bucket store.Bucket        // holds the records of ended attempts
	Used   func() store.Counts // calls of this process to the store so far; nil if tasks run elsewhere
}

// account holds the cost of a round: that of the ended attempts, to which spent adds what this
// process has used since the stage began. Its fields are guarded by Progress.mu.
type account struct {
	due   chan struct{} // asks for a new look at the records
	known *Spent        // nil: not read yet
	since store.Counts  // calls when the stage began
	shown float64       // the last shown cost of the round, which never falls
	of    *manifest.Plan
}

// begin notes that a stage begins. The caller holds p.mu.
func (a *account) begin(p *Progress) {
	if p.Costs == nil {
		return
	}
	if a.of == nil || a.of.Round != p.start.Plan.Round || a.of.Crawl != p.start.Plan.Crawl {
		a.known, a.shown = nil, 0
	}
	a.of = p.start.Plan
	if p.Costs.Used != nil {
		a.since = p.Costs.Used()
	}
	a.ask()
}

// ask makes keepAccount read the records again. It does not wait.
func (a *account) ask() {
	select {
	case a.due <- struct{}{}:
	default:
	}
}

// keepAccount reads the records of ended attempts after each call of ask.
func (p *Progress) keepAccount(ctx context.Context) {
	reader := jobs.StatusReader{Bucket: p.Costs.Bucket, Costs: p.Costs.Model, Clock: p.Clock}
	var meter Meter
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.account.due:
		}
		p.mu.Lock()
		plan := p.account.of
		p.mu.Unlock()
		s, err := reader.Read(ctx, plan.Crawl)
		if err != nil {
			continue // the shown cost stays the same until the next call of ask
		}
		if screen := meter.Screen(s, p.Clock.Now()); screen.Round == plan.Round && screen.Cost != nil {
			p.mu.Lock()
			p.account.known = screen.Cost
			p.mu.Unlock()
		}
	}
}

// spent returns what the round has cost so far, or nil if that is unknown.
func (p *Progress) spent(pic *picture) *Spent {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := &p.account
	if p.Costs == nil || a.known == nil || len(pic.plan.Partitions) == 0 {
		return nil
	}
	out := *a.known
	if used := p.Costs.Used; used != nil {
		now, lanes := used(), 1
		if pic.fetch {
			lanes = min(p.FetchTasks, len(p.start.Missing))
		}
		u := manifest.Usage{
			WallMS: pic.took.Milliseconds() * int64(lanes), Puts: now.Puts - a.since.Puts, Gets: now.Gets - a.since.Gets, Lists: now.Lists - a.since.Lists,
		}
		out.Used += p.Costs.Model.Price(pic.plan, pic.stage, u).Once()
	}
	a.shown = max(a.shown, out.Used)
	out.Used = a.shown
	return &out
}

// stageCounts returns how many tasks of each stage have a result. The caller holds p.mu.
func (p *Progress) stageCounts() []StageCount {
	plan, current := p.start.Plan, p.start.Stage
	if len(plan.Partitions) == 0 {
		return nil
	}
	var out []StageCount
	before := true
	for _, stage := range stages.Of(plan) {
		n := StageCount{Stage: stage, Tasks: stage.Tasks(plan)}
		switch {
		case stage == current:
			n.Done, n.Tasks, before = p.done, p.start.Tasks, false
		case before:
			n.Done = n.Tasks
		}
		out = append(out, n)
	}
	return out
}

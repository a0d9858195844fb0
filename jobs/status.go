package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/cost"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/longest"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// Status is the state of a crawl in its store.
type Status struct {
	Crawl    string        `json:"crawl"`
	Store    string        `json:"store"`
	Paused   *ledger.Pause `json:"paused,omitempty"` // the pause in force, or nil
	Pruned   string        `json:"pruned,omitempty"` // what was deleted by age, when and why
	NoRaw    bool          `json:"no_raw,omitempty"` // the raw captures were
	Takedown string        `json:"takedown,omitempty"`
	Held     string        `json:"held,omitempty"`  // the command that changes objects, or was interrupted
	Stops    []ledger.Stop `json:"stops,omitempty"` // hosts and domains that people stopped, and did not resume
	Rounds   []RoundStatus `json:"rounds"`
	// Lost lists the objects that the ledger or the head of the crawl names, but that are gone or changed.
	Lost []*ledger.Lost `json:"lost,omitempty"`
}

// Err returns the losses as one error, or nil if nothing is lost.
func (s *Status) Err() error {
	switch len(s.Lost) {
	case 0:
		return nil
	case 1:
		return s.Lost[0]
	}
	return fmt.Errorf("%d objects are lost or changed; the first one: %w", len(s.Lost), s.Lost[0])
}

// lose adds an error of type ledger.Lost to the list of losses, and returns any other error.
func (s *Status) lose(err error) error {
	var lost *ledger.Lost
	if !errors.As(err, &lost) {
		return err
	}
	if !slices.ContainsFunc(s.Lost, func(known *ledger.Lost) bool { return known.Object == lost.Object }) {
		s.Lost = append(s.Lost, lost)
	}
	return nil
}

// RoundStatus is one round.
type RoundStatus struct {
	Round      int              `json:"round"`
	State      string           `json:"state"` // state of the round: planned, running or sealed
	Plan       string           `json:"plan"`
	StartedAt  string           `json:"started_at,omitempty"` // time when the round began, RFC 3339, UTC; empty if it has not
	URLs       int64            `json:"urls"`
	Partitions int              `json:"partitions"`
	Hours      float64          `json:"predicted_hours"`     // predicted time of the longest partition
	PodHours   float64          `json:"predicted_pod_hours"` // predicted times of all partitions
	Stages     []StageStatus    `json:"stages"`
	Counts     []manifest.Count `json:"counts,omitempty"`  // counts of a sealed round; empty for other rounds
	Advice     string           `json:"advice,omitempty"`  // advice to follow before the round begins
	Prices     string           `json:"prices,omitempty"`  // date of the prices of all dollars; empty if nothing is predicted
	Learned    int              `json:"learned_rounds"`    // number of earlier rounds whose usage corrects the predictions
	Longest    *longest.Round   `json:"longest,omitempty"` // what decided the length of the newest sealed round; nil for other rounds, and if unknown
}

// PredictedUsage is the predicted usage of a stage and its price.
type PredictedUsage struct {
	manifest.Usage
	Dollars cost.Dollars `json:"dollars"`
}

// StageStatus is one stage of a round.
type StageStatus struct {
	Stage    stages.Stage     `json:"stage"`
	Tasks    int              `json:"tasks"`
	Done     int              `json:"done"`
	Running  int              `json:"running"`          // number of fetch tasks with a lease, including leases of dead attempts; 0 for other stages
	Failed   []TaskStatus     `json:"failed,omitempty"` // tasks without a result whose newest attempt failed
	Attempts int              `json:"attempts"`         // number of ended attempts
	Usage    manifest.Usage   `json:"usage"`            // resources that the ended attempts used
	Dollars  cost.Dollars     `json:"dollars"`          // price of Usage
	Counts   []manifest.Count `json:"counts,omitempty"` // counts of the results, summed over the tasks
	Recorded int64            `json:"recorded_urls"`    // number of planned URLs with a recorded outcome; only for the fetch stage
	Fetching []FetchStatus    `json:"fetching,omitempty"`
	// Predicted is the predicted usage of all tasks, or nil if it is unknown.
	Predicted *PredictedUsage `json:"predicted,omitempty"`
}

// FetchStatus is the state of a fetch task without a result, from its checkpoint.
type FetchStatus struct {
	Partition int   `json:"partition"`
	Planned   int64 `json:"planned_urls"`
	Recorded  int64 `json:"recorded_urls"` // URLs whose outcome the checkpoint lists, so that a crash keeps it
	Done      int64 `json:"done_urls"`     // URLs with an outcome at the last report; at least Recorded
	Bytes     int64 `json:"bytes"`         // number of bytes that were received for the recorded URLs
	Epoch     int   `json:"epoch"`         // number of attempts that have held the task's lease
	Released  bool  `json:"released"`
	Complete  bool  `json:"complete"` // true: all URLs are done and only the result is missing
	ElapsedMS int64 `json:"elapsed_ms"`
	// Activity is what the attempt reported last, or nil if unknown. Before its first report, it only says
	// when and where the attempt took the partition.
	Activity *manifest.Activity `json:"activity,omitempty"`
	Outcomes []manifest.Count   `json:"outcomes,omitempty"` // number of recorded URLs, by outcome
	GiveUp   string             `json:"give_up,omitempty"`  // command that ends the waits of Activity, as soon as no attempt holds the lease
	Stops    []HostStop         `json:"stop_hosts,omitempty"`
}

// HostStop is how to end the requests to a host that delays the end of a task.
type HostStop struct {
	Host    string `json:"host"`
	URLs    int64  `json:"urls,omitempty"` // URLs of the host without an outcome; 0: unknown
	Command string `json:"command"`
}

// TaskStatus is a task that failed and has no result.
type TaskStatus struct {
	Task      string `json:"task"`
	Partition int    `json:"partition"`
	Attempts  int    `json:"attempts"` // number of failed attempts
	Class     string `json:"class"`
	Error     string `json:"error"`
	Rerun     string `json:"rerun"` // command that runs the task again
}

// StatusReader reads statuses of crawls. Results, attempts and sealed rounds never change. A StatusReader
// therefore keeps them, and a later Read reads only what may be new. Only one goroutine may use a
// StatusReader.
type StatusReader struct {
	Bucket store.Bucket
	Flags  string      // all flags for this store except --month, with a leading space; for the printed commands
	Costs  *cost.Model // predicts the usage of each round; nil: the status has no predictions

	// With a Clock, Read does not look again for checkpoints and lost objects for which it looked a
	// moment ago. nil: each Read looks for all of them.
	Clock stages.Clock

	listed   bool       // true: the store's crawls were compared with the head
	before   *cost.Past // resource usage of the continued crawl's rounds
	results  map[stages.Task][]manifest.Count
	attempts map[string]*manifest.Attempt // attempts that were read, by key
	known    known
}

// Read reads the status of a crawl.
func (r *StatusReader) Read(ctx context.Context, crawl string) (*Status, error) {
	if r.results == nil {
		r.results, r.attempts = map[stages.Task][]manifest.Count{}, map[string]*manifest.Attempt{}
	}
	r.known.taken = nil
	s := &Status{Crawl: crawl, Store: r.Bucket.String()}
	l, err := ledger.Load(ctx, r.Bucket, crawl)
	if errors.Is(err, roundstate.ErrNoCrawl) {
		return nil, err
	}
	if err != nil {
		return s, s.lose(err)
	}
	if l.TakedownUnfinished() { // some documents have changed, and others have not
		s.Takedown = fmt.Sprintf("%s: %v", r.Bucket, ledger.ErrTakedown)
		return s, nil
	}
	if !r.listed { // a watch shows a round, during which no other command may hold the store
		if s.Held, err = roundstate.Held(ctx, r.Bucket); err != nil {
			return nil, err
		}
	}
	s.Paused, s.Stops = l.Paused(r.Flags), l.StopsInForce()
	if err := l.CheckWorking(); err != nil {
		s.Pruned, s.NoRaw = err.Error(), l.CheckRaw() != nil
	}
	past, err := r.pastOf(ctx, l)
	if err != nil {
		return nil, err
	}
	for round := 0; ; round++ {
		rs, err := r.round(ctx, s, l, round, &past)
		if errors.Is(err, roundstate.ErrNoPlan) && round >= l.Rounds() {
			if err := r.findLongest(ctx, s, l); err != nil {
				return nil, err
			}
			return s, r.losses(ctx, s, l)
		}
		if errors.Is(err, roundstate.ErrNoPlan) {
			continue
		}
		if err := s.lose(err); err != nil {
			return nil, err
		}
		if rs != nil {
			s.Rounds = append(s.Rounds, *rs)
		}
	}
}

// findLongest says what decided the length of the newest sealed round.
func (r *StatusReader) findLongest(ctx context.Context, s *Status, l *ledger.Ledger) error {
	for i, rs := range slices.Backward(s.Rounds) {
		key := stageKey{l.Crawl, rs.Round, stages.Fetch}
		attempts := r.known.done[key]
		if rs.State != "sealed" || attempts == nil || layout.IsReparse(l.Crawl) {
			continue
		}
		found, known := r.known.longest[key]
		if !known {
			p, _, err := roundstate.PlanIn(ctx, r.Bucket, l, rs.Round)
			if err != nil {
				return s.lose(err)
			}
			sealed, err := roundstate.SealIn(ctx, r.Bucket, l, rs.Round)
			if err != nil || sealed == nil {
				return s.lose(err)
			}
			if found, err = longest.Of(ctx, r.Bucket, p, sealed, attempts, l.Pauses()); err != nil {
				return s.lose(err)
			}
			r.known.longest = map[stageKey]*longest.Round{key: found}
		}
		s.Rounds[i].Longest = found
		return nil
	}
	return nil
}

// losses adds to s all lost objects in the ledger or the head, without repetition.
func (r *StatusReader) losses(ctx context.Context, s *Status, l *ledger.Ledger) error {
	if r.lookedForLosses(l) {
		return nil
	}
	if err := r.lookForLosses(ctx, s, l); err != nil {
		return err
	}
	r.keepLosses(s, l)
	return nil
}

// lookForLosses does the work of losses.
func (r *StatusReader) lookForLosses(ctx context.Context, s *Status, l *ledger.Ledger) error {
	if !r.listed { // a ledger that a watch began to read only gets newer
		if err := s.lose(l.CheckBehind(ctx, r.Bucket)); err != nil {
			return err
		}
	}
	for lost, err := range l.Losses(ctx, r.Bucket) {
		if err != nil {
			return err
		}
		_ = s.lose(lost)
	}
	head, _, err := ledger.LoadHead(ctx, r.Bucket, l.Crawl)
	if err := s.lose(err); err != nil {
		return err
	}
	if err == nil {
		if !r.listed { // the comparison takes a long time, and `status --watch` calls Read often
			err = ledger.CheckCrawls(ctx, r.Bucket, head, l.Crawl)
		} else {
			err = ledger.CheckHead(l, head)
		}
		if err := s.lose(err); err != nil {
			return err
		}
		r.listed = err == nil
	}
	return s.lose(ledger.CheckActive(ctx, r.Bucket, head, l.Crawl))
}

// round reads the status of a round. It predicts the usage of the round from past, the usage of the
// rounds before it. It adds a sealed round to past.
func (r *StatusReader) round(ctx context.Context, s *Status, l *ledger.Ledger, round int, past *cost.Past) (*RoundStatus, error) {
	if rs := r.sealedBefore(l, round, past); rs != nil {
		return rs, nil
	}
	crawl := l.Crawl
	p, started, err := roundstate.PlanIn(ctx, r.Bucket, l, round)
	if err != nil {
		return nil, err
	}
	rs := &RoundStatus{Round: round, State: "planned", Plan: p.ID, URLs: p.URLs, Partitions: len(p.Partitions), Hours: p.EstimatedSeconds / 3600, PodHours: p.PodHours()}
	if started {
		rs.State, rs.StartedAt = "running", l.Started(round).At
	}
	sealed, err := roundstate.SealIn(ctx, r.Bucket, l, round)
	if err := s.lose(err); err != nil {
		return nil, err
	}
	if l.Newest(manifest.EntrySealed, round) != nil {
		rs.State = "sealed"
	}
	if sealed != nil {
		rs.State, rs.Counts = "sealed", sealed.Counts
	}
	missing, err := r.readStages(ctx, s, l, p, rs)
	if err != nil {
		return nil, err
	}
	if r.Costs != nil && !layout.IsReparse(crawl) {
		r.predict(rs, p, past)
	}
	if missing == 0 {
		r.keepSealed(l, p, rs)
	}
	return rs, nil
}

// readStages reads the stages of a round. It returns how many of their tasks have no result.
func (r *StatusReader) readStages(ctx context.Context, s *Status, l *ledger.Ledger, p *manifest.Plan, rs *RoundStatus) (missing int, err error) {
	for _, stage := range stages.Of(p) {
		if rs.State == "planned" || missing > 0 && r.known.idle[stageKey{p.Crawl, p.Round, stage}] {
			missing += stage.Tasks(p)
			rs.Stages = append(rs.Stages, StageStatus{Stage: stage, Tasks: stage.Tasks(p)})
			continue
		}
		st, tasks, err := r.stage(ctx, p, stage)
		if err != nil {
			return missing, err
		}
		for _, t := range tasks {
			_, err := roundstate.RecheckResult(ctx, r.Bucket, l, t)
			if err := s.lose(err); err != nil {
				return missing, err
			}
		}
		missing += len(tasks)
		r.keepIdle(p, st)
		rs.Stages = append(rs.Stages, *st)
	}
	return missing, nil
}

// stage reads the results and attempts of a stage's tasks. For the stage fetch, it also
// reads the checkpoints of tasks without a result. It returns the status of the stage, and the
// tasks without a result.
func (r *StatusReader) stage(ctx context.Context, p *manifest.Plan, stage stages.Stage) (st *StageStatus, missing []stages.Task, err error) {
	st = &StageStatus{Stage: stage, Tasks: stage.Tasks(p)}
	results, err := r.readResults(ctx, p, stage)
	if err != nil {
		return nil, nil, err
	}
	attempts, err := r.readAttempts(ctx, p, stage)
	if err != nil {
		return nil, nil, err
	}
	st.Usage = usageOf(attempts)
	totals := map[string]int64{}
	var order []string
	for n, counts := range results {
		t := stages.Task{Stage: stage, Crawl: p.Crawl, Round: p.Round, Partition: n}
		st.Attempts += len(attempts[n])
		if counts == nil {
			missing = append(missing, t)
			if failed := lastFailure(t, attempts[n], r.Flags); failed != nil {
				st.Failed = append(st.Failed, *failed)
			}
			continue
		}
		st.Done++
		for _, c := range counts {
			if _, ok := totals[c.Name]; !ok {
				order = append(order, c.Name)
			}
			totals[c.Name] += c.N
		}
		if stage == stages.Fetch {
			st.Recorded += p.Partitions[n].URLs
		}
	}
	for _, name := range order {
		st.Counts = append(st.Counts, manifest.Count{Name: name, N: totals[name]})
	}
	if stage == stages.Fetch {
		if st.Fetching, err = r.readCheckpoints(ctx, p, missing); err != nil {
			return nil, nil, err
		}
		for _, f := range st.Fetching {
			st.Recorded += f.Recorded
			if !f.Released && !f.Complete {
				st.Running++
			}
		}
	}
	r.keepDone(p, stage, len(missing), attempts)
	return st, missing, nil
}

// lastFailure returns the last failure of a task, or nil if the task's newest attempt did not fail.
func lastFailure(t stages.Task, attempts []*manifest.Attempt, flags string) *TaskStatus {
	failed := 0
	var last *manifest.Attempt
	for _, a := range attempts {
		if a.Failure() {
			failed++
		}
		if last == nil || a.Attempt > last.Attempt {
			last = a
		}
	}
	if last == nil || !last.Failure() {
		return nil
	}
	return &TaskStatus{
		Task: t.String(), Partition: t.Partition, Attempts: failed, Class: last.Class, Error: last.Error,
		Rerun: fmt.Sprintf("crawlbatch retry --month %s --stage %s --partition %d%s", t.Crawl, t.Stage, t.Partition, flags),
	}
}

package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/takedown"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/publish"
)

// Round holds the documents of a round for the checks.
type Round struct {
	Crawl   string
	Number  int
	Plan    *manifest.Plan
	Sealed  *manifest.Sealed   // with the files that later rounds read; nil if the round is not sealed
	Earlier []*manifest.Sealed // sealed rounds before this round, oldest first, with the files that later rounds read
	Before  *Round             // the previous round; nil if the previous round is missing or unreadable

	TakenDown   bool // true: a takedown changed objects of the round
	Forgot      bool // true: a takedown removed requests or records of the round, or of the round that a reparse parses again
	started     bool // true: the round has started, so its plan does not change
	results     *resultCache
	digests     map[stages.Stage][]string // SHA-256 of each task's result, or "" if the task has no readable result
	checkpoints *checkpoints              // readable checkpoints of fetch tasks without a result
}

// documents is the check that reads a crawl's JSON documents.
var documents = Check{0, "documents", "documents"}

// Load reads the documents of the crawl and returns the rounds that have a valid plan. Load reports
// faulty documents as violations, and leaves them out of the rounds.
func (a *Audit) Load(ctx context.Context) ([]*Round, error) {
	earlier, err := a.loadCrawl(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.startList(); err != nil {
		return nil, err
	}
	if list, err := takedown.List(ctx, a.Bucket); err != nil {
		return nil, err
	} else if a.TakenDown = list != nil; a.TakenDown {
		a.Note("the store has a list of takedowns, so redirects without a target were accepted: the target may be on the list")
	}
	var rounds []*Round
	var last *Round
	for n := 0; ; n++ {
		some, err := a.hasRound(ctx, n)
		if err != nil {
			return nil, err
		}
		if !some {
			a.last = n // another process may be planning round n
			if a.Ledger != nil && n < a.Ledger.Rounds() {
				continue // checkLosses has reported the lost round
			}
			// A lost round must not hide later rounds, so Load also looks for the next round.
			if more, err := a.hasRound(ctx, n+1); err != nil || !more {
				break
			}
			a.misplaced(n, layout.RoundDir(a.Crawl, n), "no object of the round is left, though a later round exists: restore it from a copy")
			continue
		}
		r, err := a.loadRound(ctx, n, earlier)
		if err != nil {
			return nil, err
		}
		if err := a.checkSuccessor(ctx, last, n); err != nil {
			return nil, err
		}
		if r != nil && last != nil && last.Number == n-1 {
			r.Before = last
		}
		last = r
		if r == nil {
			continue
		}
		a.checkTakedowns(ctx, r)
		if r.Sealed != nil {
			earlier = append(earlier[:len(earlier):len(earlier)], r.Sealed)
		}
		if a.Round < 0 || a.Round == n {
			rounds = append(rounds, r)
		}
	}
	if a.Round >= 0 && len(rounds) == 0 && a.Report().Found() == 0 {
		return nil, fmt.Errorf("crawl %s has no round %d that has begun: see `crawlbatch status --month %s`: %w", a.Crawl, a.Round, a.Crawl, roundstate.ErrNoPlan)
	}
	return rounds, nil
}

// checkTakedowns notes whether a takedown changed a round. It reports a lost list of takedowns if the plan of the round
// says that there was one.
func (a *Audit) checkTakedowns(ctx context.Context, r *Round) {
	r.TakenDown = a.Ledger != nil && a.Ledger.TakenDownIn(r.Number)
	r.Forgot = r.TakenDown || a.source != nil && a.source.TakenDownIn(r.Number)
	if a.TakenDown || r.Plan.TakenDown == 0 {
		return
	}
	var lost *ledger.Lost
	if errors.As(ledger.CheckTakedownListOf(ctx, a.Bucket, r.Plan), &lost) {
		a.reportLoss(lost)
	}
}

// loadCrawl reads the documents of the crawl as a whole. It returns the sealed rounds of the crawls
// that this crawl continues.
func (a *Audit) loadCrawl(ctx context.Context) ([]*manifest.Sealed, error) {
	a.Count(documents, 0)
	var crawl manifest.Crawl
	key := layout.CrawlManifest(a.Crawl)
	_, ok, err := a.readDocument(ctx, -1, key, &crawl, true)
	if err != nil {
		return nil, err
	}
	if ok && crawl.Crawl != a.Crawl {
		a.misplaced(-1, key, "it belongs to crawl %q: restore the document of %s", crawl.Crawl, a.Crawl)
	}
	if ok && layout.IsReparse(a.Crawl) {
		if err := a.loadReparse(ctx, &crawl); err != nil {
			return nil, err
		}
	}
	if err := a.loadLedger(ctx); err != nil {
		return nil, err
	}
	if err := a.checkLosses(ctx); err != nil {
		return nil, err
	}
	if err := a.loadPruned(ctx); err != nil {
		return nil, err
	}
	if err := a.loadPoliteness(ctx); err != nil {
		return nil, err
	}
	return a.continuedRounds(ctx, &crawl)
}

// loadLedger reads the crawl's ledger.
func (a *Audit) loadLedger(ctx context.Context) error {
	l, err := ledger.Load(ctx, a.Bucket, a.Crawl)
	var lost *ledger.Lost
	switch {
	case err == nil:
		a.Ledger = l
		if a.compaction, err = roundstate.Compaction(ctx, a.Bucket, l); err != nil && !errors.Is(err, ledger.ErrLost) {
			return err // a lost or damaged list is reported with the other losses
		}
		if a.compaction != nil {
			a.copy = l.Of(manifest.EntryCompacted).Object
		}
	case errors.As(err, &lost) && lost.Object == layout.CrawlManifest(a.Crawl), errors.Is(err, ledger.ErrNoCrawl), a.Broken(layout.CrawlManifest(a.Crawl)):
		// the loss of the ledger is already reported
	case errors.As(err, &lost):
		a.reportLoss(lost)
	default:
		return a.Fault(err, documents, -1, layout.Ledger(a.Crawl))
	}
	return nil
}

// checkSuccessor reports a round without a seal, although the later round n was planned.
func (a *Audit) checkSuccessor(ctx context.Context, last *Round, n int) error {
	if last == nil || last.Sealed != nil || a.Broken(layout.Sealed(a.Crawl, last.Number)) {
		return nil
	}
	key := layout.Sealed(a.Crawl, last.Number)
	sealed, err := manifest.Exists(ctx, a.Bucket, key) // the round may have been sealed since the audit looked for the seal
	if err == nil && !sealed {
		a.misplaced(last.Number, key, "the round is not sealed, though round %d was planned after it", n)
	}
	return err
}

// loadPoliteness reads the newest revision of politeness, if a revision exists. The limit of requests
// in flight and the lifetime of robots.txt may change during a crawl, and no row records which value
// applied. The checks therefore use the larger of the config's value and that of the newest revision.
func (a *Audit) loadPoliteness(ctx context.Context) error {
	key := layout.Politeness(a.FetchedIn())
	_, ok, err := a.readDocument(ctx, -1, key, &manifest.Politeness{}, false)
	if err != nil || a.Config == nil { // without a config, the limits stay unknown
		return err
	}
	a.InFlight, a.RobotsTTL = mostInFlight(a.Config.Politeness), a.Config.Politeness.RobotsTTL.Std()
	if !ok || a.lost[key] {
		return nil
	}
	newest, _, err := roundstate.NewestPoliteness(ctx, a.Bucket, a.FetchedIn())
	if err != nil {
		return a.Fault(err, documents, -1, key)
	}
	a.InFlight = max(a.InFlight, mostInFlight(newest))
	a.RobotsTTL = max(a.RobotsTTL, newest.RobotsTTL.Std())
	return nil
}

// mostInFlight returns the largest in_flight_per_host of all domains, because rows do not record which
// domain's setting applied.
func mostInFlight(p config.Politeness) int {
	most := p.InFlightPerHost
	for _, d := range p.Domains {
		most = max(most, d.InFlightPerHost)
	}
	return most
}

// hasRound reports whether the store has any object of a round.
func (a *Audit) hasRound(ctx context.Context, n int) (bool, error) {
	dir := layout.RoundDir(a.Crawl, n)
	for _, err := range a.Bucket.List(ctx, dir) {
		if err != nil {
			return false, fmt.Errorf("list %s: %w", dir, err)
		}
		return true, nil
	}
	return false, nil
}

// continuedRounds returns the sealed rounds of the crawls that this crawl continues.
func (a *Audit) continuedRounds(ctx context.Context, m *manifest.Crawl) ([]*manifest.Sealed, error) {
	if m.Continues == "" && len(m.Continued) == 0 {
		return nil, nil
	}
	names := []string{m.Continues}
	for _, c := range m.Continued {
		names = append(names, c.Crawl)
	}
	for _, crawl := range names {
		if !layout.ValidCrawl(crawl) {
			a.misplaced(-1, layout.CrawlManifest(a.Crawl), "it continues %q, which is not the name of a crawl", crawl)
			return nil, nil
		}
	}
	all, err := roundstate.Continued(ctx, a.Bucket, m)
	if err == nil {
		later := func(dataset string) bool { return stages.ReadLater(manifest.File{Dataset: dataset}) }
		all, err = roundstate.WithFiles(ctx, a.Bucket, all, roundstate.Selection{Dataset: later})
	}
	if err != nil && IsFault(err) {
		a.misplaced(-1, layout.CrawlDir(m.Continues), "the crawl that this one continues cannot be read: %v", err)
		err = nil
	}
	return all, err
}

// readDocument reads a document and reports whether the document exists and is readable. A missing
// document is a violation if must is true.
func (a *Audit) readDocument(ctx context.Context, round int, key string, d manifest.Document, must bool) (digest string, ok bool, err error) {
	_, digest, err = manifest.Load(ctx, a.Bucket, key, d)
	if errors.Is(err, store.ErrNotFound) && !must {
		return "", false, nil
	}
	a.Count(documents, 1)
	if err != nil {
		return "", false, a.Fault(err, documents, round, key)
	}
	return digest, true, nil
}

// misplaced reports a document that is missing or does not belong under its key.
func (a *Audit) misplaced(round int, key, format string, args ...any) {
	if a.lost[key] {
		return
	}
	a.Wrong(documents, round, At{Object: key}, format, args...)
}

// loadRound reads the documents of a round. It returns nil if the round has no valid plan.
func (a *Audit) loadRound(ctx context.Context, n int, earlier []*manifest.Sealed) (*Round, error) {
	r := &Round{
		Crawl: a.Crawl, Number: n, Earlier: earlier,
		results: a.results, digests: map[stages.Stage][]string{},
	}
	started, err := a.loadPlan(ctx, r)
	r.started = started
	if err != nil || r.Plan == nil {
		return nil, err
	}
	// The crawl may continue during the audit. loadRound therefore reads each document before the
	// documents from which it was made. If a document existed, its sources must then exist too.
	if err := a.loadSealed(ctx, r); err != nil {
		return nil, err
	}
	if err := a.listPlan(r); err != nil {
		return nil, err
	}
	some := false
	sealing := publish.NewSealing(r.Plan)
	for _, stage := range slices.Backward(stages.Of(r.Plan)) {
		err := a.loadResults(ctx, r, stage, func(n int, result *manifest.Result) error {
			some = true
			if r.Sealed != nil {
				sealing.Add(stage, n, result)
			}
			return a.listResult(r, stage, n, result)
		})
		if err != nil {
			return nil, err
		}
	}
	if err := a.loadUnfinished(ctx, r); err != nil {
		return nil, err
	}
	some = some || r.checkpoints.count() > 0
	if !started && a.Ledger != nil {
		if err := a.checkStarted(ctx, n, some); err != nil {
			return nil, err
		}
	}
	for _, stage := range stages.Of(r.Plan) {
		if err := a.checkInputs(ctx, r, stage); err != nil {
			return nil, err
		}
	}
	if err := a.checkSealed(r, sealing); err != nil {
		return nil, err
	}
	return r, a.listSealed(r)
}

// checkStarted reports a round that has results or fetched objects although the ledger has no entry
// `started`. It reads the ledger again, because the round may have started meanwhile.
func (a *Audit) checkStarted(ctx context.Context, n int, some bool) error {
	l, err := ledger.Load(ctx, a.Bucket, a.Crawl)
	if err != nil {
		return err
	}
	err = l.CheckUnbegun(ctx, a.Bucket, n)
	if lost, ok := errors.AsType[*ledger.Lost](err); ok {
		a.reportLoss(lost)
		return nil
	}
	if err == nil && some && l.Started(n) == nil {
		a.misplaced(n, layout.Ledger(a.Crawl), "it does not say that round %d was started, although tasks of the round have results or checkpoints: an older ledger was put back; restore the newest", n)
	}
	return err
}

// loadPlan reads the plan that the round follows, if the round has a plan.
func (a *Audit) loadPlan(ctx context.Context, r *Round) (started bool, err error) {
	id := ""
	if a.Ledger != nil {
		var choice *manifest.Entry
		if choice, started = a.Ledger.Plan(r.Number); choice != nil {
			id = choice.Plan
		}
	}
	if id == "" {
		ids, err := roundstate.Plans(ctx, a.Bucket, r.Crawl, r.Number)
		if err != nil {
			return started, err
		}
		if len(ids) != 1 {
			if len(ids) == 0 {
				a.misplaced(r.Number, layout.RoundDir(r.Crawl, r.Number), "the round has objects, but no readable plan: restore its plan.json from a copy")
			}
			return started, nil // the round has several plans, and no entry chooses one
		}
		id = ids[0]
	}
	key := layout.PlanManifest(r.Crawl, r.Number, id)
	var p manifest.Plan
	_, ok, err := a.readDocument(ctx, r.Number, key, &p, true)
	if err != nil || !ok {
		return started, err
	}
	if problem := planProblem(&p, r, id); problem != "" {
		a.misplaced(r.Number, key, "%s", problem)
		return started, nil
	}
	r.Plan = &p
	return started, nil
}

// planProblem says why a plan does not match its key, or returns "" if the plan matches.
func planProblem(p *manifest.Plan, r *Round, id string) string {
	if p.Crawl != r.Crawl || p.Round != r.Number || p.ID != id {
		return fmt.Sprintf("it is plan %q of round %d of crawl %q: restore the one that belongs here", p.ID, p.Round, p.Crawl)
	}
	var urls int64
	for n, part := range p.Partitions {
		urls += part.URLs
		switch {
		case part.Partition != n:
			return fmt.Sprintf("partition %d is at place %d of the list", part.Partition, n)
		case part.Bucket < 0 || part.Bucket >= p.Buckets:
			return fmt.Sprintf("partition %d is of bucket %d of %d", n, part.Bucket, p.Buckets)
		case part.File.Key != layout.PlanPart(r.Crawl, r.Number, id, n):
			return fmt.Sprintf("partition %d names the file %q, which is not its own", n, part.File.Key)
		case part.File.Rows != part.URLs:
			return fmt.Sprintf("partition %d has %d URLs and a file of %d rows", n, part.URLs, part.File.Rows)
		}
	}
	if urls != p.URLs {
		return fmt.Sprintf("it has %d URLs, its partitions %d", p.URLs, urls)
	}
	return ""
}

// loadResult reads the result of a task. It returns nil if the task has no result, or if the
// document belongs to another task.
func (a *Audit) loadResult(ctx context.Context, r *Round, t stages.Task) (*manifest.Result, string, error) {
	key := roundstate.ResultKey(t)
	var result manifest.Result
	digest, ok, err := a.readDocument(ctx, r.Number, key, &result, false)
	if err != nil || !ok {
		return nil, "", err
	}
	if result.Task != t.String() || result.Stage != string(t.Stage) || result.Partition != t.Partition {
		a.setBroken(key)
		advice := "restore it from a copy"
		if t.Stage != stages.Fetch || a.Reparse != nil {
			advice += fmt.Sprintf(", or rebuild it with `crawlbatch retry --month %s --rebuild`", t.Crawl)
		}
		a.misplaced(r.Number, key, "it is the result of %s, not of %s: %s", result.Task, t, advice)
		return nil, "", nil
	}
	if result.Plan != r.Plan.ID {
		a.setBroken(key)
		a.misplaced(r.Number, key, "it belongs to plan %q, the round was started with %q", result.Plan, r.Plan.ID)
		return nil, "", nil
	}
	seen := map[string]bool{}
	for _, f := range result.Files {
		if seen[f.Key] {
			a.misplaced(r.Number, key, "it lists %q twice", f.Key)
		}
		seen[f.Key] = true
	}
	return &result, digest, nil
}

package verify

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
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
)

// documents is the check that crawl, plans, starts, inputs, results and seals can
// be read and belong together.
const documents = "documents"

// load reads the documents of the crawl and gives the rounds that have a plan that
// counts. What is wrong with a document is reported, and the document left out.
func (a *audit) load(ctx context.Context) ([]*round, error) {
	a.note(0, documents, "documents", 0)
	var crawl manifest.Crawl
	key := layout.CrawlManifest(a.Crawl)
	_, ok, err := a.document(ctx, -1, key, &crawl, true)
	if err != nil {
		return nil, err
	}
	if ok && crawl.Crawl != a.Crawl {
		a.misplaced(-1, key, "it is of crawl %q: restore %s's own", crawl.Crawl, a.Crawl)
	}
	if err := a.loadReparse(ctx, &crawl, ok); err != nil {
		return nil, err
	}
	if err := a.loadPoliteness(ctx); err != nil {
		return nil, err
	}
	earlier, err := a.continued(ctx, crawl.Continues)
	if err != nil {
		return nil, err
	}
	var rounds []*round
	var last *round
	for n := 0; ; n++ {
		there, err := a.hasRound(ctx, n)
		if err != nil {
			return nil, err
		}
		if !there {
			// One round that was lost must not hide those after it.
			if more, err := a.hasRound(ctx, n+1); err != nil || !more {
				break
			}
			a.misplaced(n, layout.RoundDir(a.Crawl, n), "nothing is left of the round, though there is a later one: restore it")
			continue
		}
		r, err := a.loadRound(ctx, n, earlier)
		if err != nil {
			return nil, err
		}
		if last != nil && last.sealed == nil && !a.isBroken(layout.Sealed(a.Crawl, last.number)) {
			key := layout.Sealed(a.Crawl, last.number)
			switch sealed, err := manifest.Exists(ctx, a.Bucket, key); { // by now
			case err != nil:
				return nil, err
			case !sealed:
				a.misplaced(last.number, key, "the round is not sealed, though round %d was planned after it", n)
			}
		}
		if r != nil && last != nil && last.number == n-1 {
			r.before = last
		}
		last = r
		if r == nil {
			continue
		}
		if r.sealed != nil {
			earlier = append(earlier[:len(earlier):len(earlier)], r.sealed)
		}
		if a.Round < 0 || a.Round == n {
			rounds = append(rounds, r)
		}
	}
	if a.Round >= 0 && len(rounds) == 0 && len(a.found) == 0 {
		return nil, fmt.Errorf("crawl %s has no round %d that was begun: see `crawlbatch status --month %s`: %w", a.Crawl, a.Round, a.Crawl, roundstate.ErrNoPlan)
	}
	return rounds, nil
}

// loadPoliteness reads the newest revision of politeness, if there is one: what may
// be in flight, and how long a robots.txt holds, is the larger of it and the config,
// as rows do not record that.
func (a *audit) loadPoliteness(ctx context.Context) error {
	if a.Config == nil {
		return nil
	}
	a.inFlight, a.robotsTTL = mostInFlight(a.Config.Politeness), a.Config.Politeness.RobotsTTL.Std()
	key := layout.Politeness(a.fetchedIn())
	_, ok, err := a.document(ctx, -1, key, &manifest.Politeness{}, false)
	if err != nil || !ok {
		return err
	}
	newest, _, err := roundstate.NewestPoliteness(ctx, a.Bucket, a.fetchedIn())
	if err != nil {
		return a.fault(err, 0, documents, -1, key)
	}
	a.inFlight = max(a.inFlight, mostInFlight(newest))
	a.robotsTTL = max(a.robotsTTL, newest.RobotsTTL.Std())
	return nil
}

// mostInFlight is how many requests to some host may be in flight: rows do not tell
// which domain's exception held for them.
func mostInFlight(p config.Politeness) int {
	most := p.InFlightPerHost
	for _, d := range p.Domains {
		most = max(most, d.InFlightPerHost)
	}
	return most
}

// hasRound reports whether there is any object of a round.
func (a *audit) hasRound(ctx context.Context, n int) (bool, error) {
	for _, err := range a.Bucket.List(ctx, layout.RoundDir(a.Crawl, n)) {
		if err != nil {
			return false, fmt.Errorf("list %s: %w", layout.RoundDir(a.Crawl, n), err)
		}
		return true, nil
	}
	return false, nil
}

// continued are the sealed rounds of the crawls that this one continues.
func (a *audit) continued(ctx context.Context, crawl string) ([]*manifest.Sealed, error) {
	if crawl == "" {
		return nil, nil
	}
	if !layout.ValidCrawl(crawl) {
		a.misplaced(-1, layout.CrawlManifest(a.Crawl), "it continues %q, which is no crawl", crawl)
		return nil, nil
	}
	all, err := roundstate.History(ctx, a.Bucket, crawl)
	if err != nil && isFault(err) {
		a.report(Violation{Check: documents, Round: -1, Object: layout.CrawlDir(crawl), Problem: "the crawl that this one continues cannot be read: " + err.Error()})
		err = nil
	}
	return all, err
}

// document reads a document and says whether there is one that can be read. A
// missing one is a violation where it must be there.
func (a *audit) document(ctx context.Context, round int, key string, d manifest.Document, must bool) (digest string, ok bool, err error) {
	_, digest, err = manifest.Load(ctx, a.Bucket, key, d)
	if errors.Is(err, store.ErrNotFound) && !must {
		return "", false, nil
	}
	a.note(0, documents, "documents", 1)
	if err != nil {
		return "", false, a.fault(err, 0, documents, round, key)
	}
	return digest, true, nil
}

// misplaced reports a document that does not belong where it lies.
func (a *audit) misplaced(round int, key, format string, args ...any) {
	a.report(Violation{Check: documents, Round: round, Object: key, Problem: fmt.Sprintf(format, args...)})
}

// loadRound reads the documents of a round; nil if none of its plans counts.
func (a *audit) loadRound(ctx context.Context, n int, earlier []*manifest.Sealed) (*round, error) {
	r := &round{
		crawl: a.Crawl, number: n, earlier: earlier,
		results: map[stages.Stage][]*manifest.Result{}, digests: map[stages.Stage][]string{},
	}
	started, err := a.loadPlan(ctx, r)
	if err != nil || r.plan == nil {
		return nil, err
	}
	// A crawl may go on meanwhile: what is made from other documents is read before
	// those, so that they are there.
	if err := a.loadSealed(ctx, r); err != nil {
		return nil, err
	}
	some := false
	for _, stage := range slices.Backward(stages.Order) {
		for p := range stage.Tasks(r.plan) {
			result, digest, err := a.loadResult(ctx, r, stages.Task{Stage: stage, Crawl: a.Crawl, Round: n, Partition: p})
			if err != nil {
				return nil, err
			}
			r.results[stage] = append(r.results[stage], result)
			r.digests[stage] = append(r.digests[stage], digest)
			some = some || result != nil
		}
	}
	if some && !started && !a.isBroken(layout.Start(a.Crawl, n)) {
		if started, err = manifest.Exists(ctx, a.Bucket, layout.Start(a.Crawl, n)); err != nil {
			return nil, err
		}
	}
	if some && !started && !a.isBroken(layout.Start(a.Crawl, n)) {
		a.misplaced(n, layout.Start(a.Crawl, n), "it is missing, though tasks of the round have results: restore it, or nobody knows which plan counts")
	}
	for _, stage := range stages.Order {
		if err := a.checkInputs(ctx, r, stage); err != nil {
			return nil, err
		}
	}
	return r, a.checkSealed(r)
}

// readingOf is how the round read robots.txt: as start.json of the round that fetched
// says.
func (a *audit) readingOf(ctx context.Context, r *round, start *manifest.Start) (robots.Reading, error) {
	if of := a.fetchedIn(); of != r.crawl {
		var fetched manifest.Start
		_, ok, err := a.document(ctx, r.number, layout.Start(of, r.number), &fetched, false)
		if err != nil || ok {
			return robots.ReadingOf(fetched.Format), err
		}
	}
	return robots.ReadingOf(start.Format), nil
}

// loadPlan finds the plan of the round that counts.
func (a *audit) loadPlan(ctx context.Context, r *round) (started bool, err error) {
	var start manifest.Start
	_, started, err = a.document(ctx, r.number, layout.Start(r.crawl, r.number), &start, false)
	if err != nil {
		return started, err
	}
	if r.reading, err = a.readingOf(ctx, r, &start); err != nil {
		return started, err
	}
	id := start.Plan
	if !started {
		ids, err := roundstate.Plans(ctx, a.Bucket, r.crawl, r.number)
		if err != nil {
			return started, err
		}
		if len(ids) != 1 {
			if len(ids) == 0 {
				a.misplaced(r.number, layout.RoundDir(r.crawl, r.number), "the round has objects and no plan that can be read: restore its plan.json")
			}
			return started, nil // several: `plan --replace` was cut off, and nothing is begun
		}
		id = ids[0]
	}
	key := layout.PlanManifest(r.crawl, r.number, id)
	if strings.ContainsAny(id, "/ ") || id == "" {
		a.misplaced(r.number, layout.Start(r.crawl, r.number), "it names the plan %q, which is no plan's name", id)
		return started, nil
	}
	var p manifest.Plan
	_, ok, err := a.document(ctx, r.number, key, &p, true)
	if err != nil || !ok {
		return started, err
	}
	if problem := planProblem(&p, r, id); problem != "" {
		a.misplaced(r.number, key, "%s", problem)
		return started, nil
	}
	r.plan = &p
	if a.reparse == nil && started && r.reading == robots.Every && !p.KeepsSpellings() {
		a.tell("round %d, %s: its plan was made by an older crawlbatch, which kept no spellings of URLs: planned URLs are checked in their canonical form alone", r.number, obeyed)
	}
	return started, nil
}

// planProblem says why a plan is not the one that its key names.
func planProblem(p *manifest.Plan, r *round, id string) string {
	if p.Crawl != r.crawl || p.Round != r.number || p.ID != id {
		return fmt.Sprintf("it is plan %q of round %d of crawl %q: restore the one that belongs here", p.ID, p.Round, p.Crawl)
	}
	var urls int64
	for n, part := range p.Partitions {
		urls += part.URLs
		switch {
		case part.Partition != n:
			return fmt.Sprintf("partition %d stands in place %d", part.Partition, n)
		case part.Bucket < 0 || part.Bucket >= p.Buckets:
			return fmt.Sprintf("partition %d is of bucket %d of %d", n, part.Bucket, p.Buckets)
		case part.File.Key != layout.PlanPart(r.crawl, r.number, id, n):
			return fmt.Sprintf("partition %d names the file %q, which is not its own", n, part.File.Key)
		case part.Spellings != nil && part.Spellings.Key != layout.PlanSpellings(r.crawl, r.number, id, n):
			return fmt.Sprintf("partition %d names the file %q, which is not its own", n, part.Spellings.Key)
		case part.File.Rows != part.URLs:
			return fmt.Sprintf("partition %d has %d URLs and a file of %d rows", n, part.URLs, part.File.Rows)
		}
	}
	if urls != p.URLs {
		return fmt.Sprintf("it has %d URLs, its partitions %d", p.URLs, urls)
	}
	return ""
}

// loadResult reads the result of a task; nil if there is none, or none that is its own.
func (a *audit) loadResult(ctx context.Context, r *round, t stages.Task) (*manifest.Result, string, error) {
	key := layout.Result(t.Crawl, t.Round, string(t.Stage), t.Partition)
	var result manifest.Result
	digest, ok, err := a.document(ctx, r.number, key, &result, false)
	if err != nil || !ok {
		return nil, "", err
	}
	if result.Task != t.String() || result.Stage != string(t.Stage) || result.Partition != t.Partition {
		a.setBroken(key)
		a.misplaced(r.number, key, "it is the result of %s, not of %s: restore it, or remove it and run `crawlbatch retry --month %s`", result.Task, t, t.Crawl)
		return nil, "", nil
	}
	if result.Plan != r.plan.ID {
		a.setBroken(key)
		a.misplaced(r.number, key, "it is of plan %q, the round was started with %q", result.Plan, r.plan.ID)
		return nil, "", nil
	}
	seen := map[string]bool{}
	for _, f := range result.Files {
		if seen[f.Key] {
			a.misplaced(r.number, key, "it lists %q twice", f.Key)
		}
		seen[f.Key] = true
	}
	return &result, digest, nil
}

package accounts

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/jobs/cost"
	"crawlbatch.io/crawlbatch/stages"
)

// longestError bounds the column error, in bytes.
const longestError = 1000

// outcomeKilled and outcomeFailed are values of the column outcome. Its other values are the
// classes of attempts that did not fail.
const (
	outcomeKilled = manifest.ClassKilled
	outcomeFailed = manifest.ClassFailed
)

// rows returns the rows of the attempts at a task.
func (r *Round) rows(stage stages.Stage, task int, found *records) []schema.StageAttempt {
	var rows []schema.StageAttempt
	for _, pair := range pairs(found) {
		row := schema.StageAttempt{Stage: string(stage), Task: int32(task), Outcome: outcomeKilled, ErrorClass: manifest.ClassKilled}
		if b := pair.begun; b != nil {
			row.BeganAt, row.Machine, row.Version = timeOf(b.At), b.Machine, b.Version
		}
		if pair.ended != nil {
			r.end(&row, stage, pair.ended)
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b schema.StageAttempt) int {
		return cmp.Or(cmp.Compare(cmp.Or(a.BeganAt, a.EndedAt), cmp.Or(b.BeganAt, b.EndedAt)), cmp.Compare(a.EndedAt, b.EndedAt))
	})
	for i := range rows {
		rows[i].Attempt = int32(i + 1)
	}
	inferEpochs(rows)
	return rows
}

// pair holds the two records of one attempt. At most one of the records is nil.
type pair struct {
	begun *manifest.Begun
	ended *manifest.Attempt
}

// pairs matches the records of beginnings and ends. If another process recorded the end of a dead
// attempt, this record lacks the time of the beginning. It then belongs to an attempt whose end has
// no other record: the newest on the same machine or, if the machine is unknown, the newest on any
// machine.
func pairs(found *records) []pair {
	all := make([]pair, len(found.begun))
	for i, b := range found.begun {
		all[i].begun = b
	}
	free := func(fits func(b *manifest.Begun) bool) *pair {
		for i := range slices.Backward(all) {
			if p := &all[i]; p.ended == nil && p.begun != nil && fits(p.begun) {
				return p
			}
		}
		return nil
	}
	var lost []*manifest.Attempt
	for _, a := range found.ended {
		if a.Began == "" {
			lost = append(lost, a)
		} else if p := free(func(b *manifest.Begun) bool { return b.Machine == a.Machine && b.At == a.Began }); p != nil {
			p.ended = a
		} else {
			all = append(all, pair{&manifest.Begun{At: a.Began, Machine: a.Machine}, a})
		}
	}
	for _, a := range lost { // after the others have found their beginnings
		if p := free(func(b *manifest.Begun) bool { return a.Machine == "" || b.Machine == a.Machine }); p != nil {
			p.ended = a
		} else {
			all = append(all, pair{nil, a})
		}
	}
	return all
}

// end fills the columns of a row from the record of the attempt's end.
func (r *Round) end(row *schema.StageAttempt, stage stages.Stage, a *manifest.Attempt) {
	row.EndedAt, row.Outcome, row.ErrorClass = timeOf(a.At), a.Class, ""
	row.Machine, row.Version = cmp.Or(a.Machine, row.Machine), cmp.Or(row.Version, a.Version)
	if a.Failure() {
		row.Outcome, row.ErrorClass = outcomeFailed, a.Class
		if a.Class == manifest.ClassKilled || a.Class == manifest.ClassOutOfMemory {
			row.Outcome = outcomeKilled
		}
	}
	row.Error = strings.ToValidUTF8(a.Error[:min(len(a.Error), longestError)], "")
	if a.Epoch > 0 {
		row.Epoch = new(int32(a.Epoch))
	}
	u := a.Usage
	if u == nil {
		return
	}
	row.WallMS, row.BytesWritten, row.BytesRead = new(u.WallMS), new(u.BytesWritten), new(u.BytesRead)
	row.Puts, row.Gets, row.Lists, row.Deletes, row.FailedCalls = new(u.Puts), new(u.Gets), new(u.Lists), new(u.Deletes), new(u.Failed)
	if r.Costs != nil {
		row.Dollars = new(r.Costs.Price(r.Plan, stage, *u).Once())
	}
	if a.Began != "" {
		row.CPUMS, row.PeakMemory, row.Rows = new(a.CPUMS), new(a.Peak), a.Rows
	}
}

// inferEpochs gives the epochs that no attempt recorded to the killed attempts, if there are as many of
// both. Each attempt that takes a partition raises its epoch by one.
func inferEpochs(rows []schema.StageAttempt) {
	var killed []*schema.StageAttempt
	known, last := map[int32]bool{}, int32(0)
	for i := range rows {
		switch e := rows[i].Epoch; {
		case e != nil:
			known[*e], last = true, max(last, *e)
		case rows[i].Outcome == outcomeKilled:
			killed = append(killed, &rows[i])
		}
	}
	if int(last) != len(known)+len(killed) {
		return
	}
	for e := int32(1); e <= last; e++ {
		if !known[e] {
			killed[0].Epoch, killed = new(e), killed[1:]
		}
	}
}

// timeOf returns a time in RFC 3339, or 0 if it is unreadable.
func timeOf(at string) schema.Time {
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return 0
	}
	return schema.TimeOf(t)
}

// span is the time from the first beginning to the last end of some attempts.
type span struct{ first, last schema.Time }

func (s *span) add(a *schema.StageAttempt) {
	if a.BeganAt > 0 && (s.first == 0 || a.BeganAt < s.first) {
		s.first = a.BeganAt
	}
	s.last = max(s.last, a.EndedAt)
}

// hours returns the span in hours, or nil if it is unknown.
func (s *span) hours() *float64 {
	if s.first == 0 || s.last < s.first {
		return nil
	}
	return new(s.last.Sub(s.first).Hours())
}

// run returns the row of the round in the runs dataset.
func (r *Round) run(attempts []schema.StageAttempt, used, predicted cost.Usages) schema.Run {
	p, total := r.Plan, used.Total()
	row := schema.Run{
		Plan: p.ID, Partitions: int32(len(p.Partitions)), Attempts: int32(len(attempts)), Version: r.Version,
		TaskHours: total.Wall().Hours(), Puts: total.Puts, Gets: total.Gets, Lists: total.Lists, BytesRead: total.BytesRead, BytesWritten: total.BytesWritten,
		URLsPlanned: p.URLs, URLsFetched: r.count("merge.outcome.ok") + r.count("merge.outcome.not_modified"), URLsDeferred: r.count("merge.outcome.deferred"),
		Requests: r.count("merge.requests"), Pages: r.count("publish.pages"),
	}
	var round, fetch span
	for i := range attempts {
		a := &attempts[i]
		round.add(a)
		if a.Stage == string(stages.Fetch) {
			fetch.add(a)
		}
		if a.ErrorClass != "" {
			row.Failed++
		}
		if a.CPUMS != nil {
			row.CPUHours += float64(*a.CPUMS) / 3.6e6
			row.PeakMemory = max(row.PeakMemory, *a.PeakMemory)
		}
	}
	row.BeganAt, row.EndedAt, row.Hours, row.FetchHours = round.first, round.last, round.hours(), fetch.hours()
	if r.Costs != nil {
		spent := r.price(used)
		row.PricesDate, row.Dollars, row.StoredDollars = r.Costs.Config.Prices.Date, new(spent.Once()), new(spent.Monthly)
	}
	if predicted != nil {
		u := predicted.Total()
		row.PredictedTask, row.PredictedPuts, row.PredictedGets, row.PredictedLists = new(u.Wall().Hours()), new(u.Puts), new(u.Gets), new(u.Lists)
		row.PredictedBytes, row.PredictedDollars = new(u.BytesWritten), new(r.price(predicted).Once())
		tasks := 1
		if h := fetch.hours(); h != nil && *h > 0 {
			tasks = int(math.Round(used[stages.Fetch].Wall().Hours() / *h))
		}
		row.PredictedFetch = new(p.SecondsAt(tasks) / 3600)
	}
	return row
}

// price returns what the usage of all stages costs.
func (r *Round) price(used cost.Usages) (sum cost.Dollars) {
	for _, stage := range stages.Order {
		sum = sum.Add(r.Costs.Price(r.Plan, stage, used[stage]))
	}
	return sum
}

// count returns a count of the seal, or 0.
func (r *Round) count(name string) int64 {
	for _, c := range r.Counts {
		if c.Name == name {
			return c.N
		}
	}
	return 0
}

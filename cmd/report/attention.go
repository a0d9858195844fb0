package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/jobs/longest"
	"crawlbatch.io/crawlbatch/jobs/show"
	"crawlbatch.io/crawlbatch/jobs/verify"
)

// verdict returns the section with the findings of verify.
func (m *maker) verdict() Section {
	s := Section{ID: "verdict", Title: "Verdict of verify"}
	v := m.Verdict
	if v == nil {
		s.Notes = []string{fmt.Sprintf("This report was made without a verdict, because the store keeps none. To include one, run `crawlbatch verify --month %s%s -o json > verdict.json`, then `crawlbatch report --month %[1]s%[2]s --verdict verdict.json`. If one machine ran all tasks, add --one-clock to verify.", m.Crawl, m.Flags)}
		return s
	}
	t := &Table{
		ID: "checks", Title: "Checks", Rows: [][]any{}, folded: violations(v) == 0, Source: "the output of `crawlbatch verify -o json` that was given with --verdict",
		Columns: []Column{{Name: "invariant", Unit: unitText}, {Name: "check", Unit: unitText}, {Name: "checked", Unit: unitCount}, {Name: "of", Unit: unitText}, {Name: "violations", Unit: unitCount, bar: true}},
	}
	for _, c := range v.Checked {
		invariant := "store"
		if c.Invariant > 0 {
			invariant = fmt.Sprint(c.Invariant)
		}
		t.Rows = append(t.Rows, []any{invariant, shown(c.Check), c.Looked, shown(c.Of), c.Found})
	}
	s.Tables, s.Notes = []*Table{t}, []string{m.verdictOf().Text}
	if len(v.Violations) > 0 {
		list := &Table{ID: "violations", Title: "Violations", Rows: [][]any{}, Source: t.Source, More: violations(v),
			Columns: []Column{{Name: "check", Unit: unitText}, {Name: "round", Unit: unitText}, {Name: "object", Unit: unitText}, {Name: "row", Unit: unitText}, {Name: "problem", Unit: unitText}}}
		for i, f := range v.Violations {
			if i == mostViolations {
				break
			}
			round := ""
			if f.Round >= 0 {
				round = fmt.Sprint(f.Round)
			}
			list.Rows = append(list.Rows, []any{shown(f.Check), round, shown(f.Object), shown(f.Row), shown(f.Problem)})
		}
		list.More -= int64(len(list.Rows))
		s.Tables = append(s.Tables, list)
	}
	for i, n := range v.Notes {
		if i == mostViolations {
			break
		}
		s.Notes = append(s.Notes, shown(n))
	}
	return s
}

// violations returns the number of violations of a verdict, those that it does not list too.
func violations(v *verify.Report) int64 { return max(v.Found(), int64(len(v.Violations))) }

// mostViolations is the number of violations that the report lists.
const mostViolations = 100

// verdictOf returns the sentence about the verdict.
func (m *maker) verdictOf() Attention {
	v := m.Verdict
	a := Attention{Level: levelGood, Section: "verdict"}
	switch {
	case v == nil:
		a.Level, a.Text = levelNote, "The stored data was not verified for this report."
	case violations(v) > 0:
		a.Level, a.Text = levelBad, fmt.Sprintf("verify found %s: the stored data is not as promised.", show.Count(violations(v), "violation"))
	case v.Sample < 1:
		a.Level, a.Text = levelNote, fmt.Sprintf("verify found no violation in a sample of %g %% of the data.", v.Sample*100)
	default:
		a.Text = "verify found no violation: the stored data is as promised."
	}
	if v != nil {
		for _, s := range m.rounds.sealed {
			if !slices.Contains(v.Rounds, s.Round) && a.Level != levelBad {
				a.Level, a.Text = levelWarn, a.Text+fmt.Sprintf(" The verdict does not cover round %d.", s.Round)
				break
			}
		}
	}
	return a
}

// hours returns how long the rounds lasted, and how long they were predicted to last. The second
// number is 0 if a plan is lost.
func (m *maker) hours() (lasted, predicted float64) {
	known := true
	for _, t := range m.timing {
		lasted, predicted = lasted+t.hours(), predicted+t.predicted
		known = known && (t.predicted > 0 || t.urls == 0)
	}
	if !known {
		predicted = 0
	}
	return lasted, predicted
}

func (m *maker) headline() []Figure {
	f, q := m.fetches, m.requests
	lasted, predicted := m.hours()
	var rate any
	if lasted > 0 {
		rate = float64(f.documents) / (lasted * 3600)
	}
	perRound := "SELECT %s FROM (SELECT count(*) FILTER (WHERE " + documentsAre + ") AS n, epoch_ms(max(recorded_at)) - epoch_ms(min(recorded_at)) AS ms\nFROM fetches WHERE crawl = '" + m.Crawl + "' GROUP BY round)"
	share := func(condition string) string {
		return "count(*) FILTER (WHERE " + condition + ") / count(*)"
	}
	figures := []Figure{
		m.of("URLs planned", f.urls, unitCount, "count(*)", "fetches"),
		m.of("Documents fetched", f.documents, unitCount, "count(*) FILTER (WHERE "+documentsAre+")", "fetches"),
		m.of("Share fetched", ratio(f.documents, f.urls), unitShare, share(documentsAre), "fetches"),
		m.of("Share failed", ratio(f.failed, f.urls), unitShare, share(failedAre), "fetches"),
		{Name: "Time, first to last outcome", Value: lasted, Unit: unitHours, SQL: fmt.Sprintf(perRound, "sum(ms) / 3600000")},
		{Name: "Documents per second", Value: rate, Unit: unitRate, SQL: fmt.Sprintf(perRound, "sum(n) / nullif(sum(ms) / 1000, 0)")},
		m.of("Requests sent", q.sent, unitCount, "count(*) FILTER (WHERE bytes_sent > 0)", "requests"),
		m.of("Bytes received", q.bytes, unitBytes, "coalesce(sum(bytes_received), 0)::BIGINT", "requests"),
	}
	figures[1].Note = "ok and not_modified"
	figures[3].Note = "of servers, networks, the crawler"
	if predicted > 0 {
		figures[4].Note = "the plans predicted " + duration(predicted*3600)
	}
	return figures
}

// Limits beyond which a number needs attention.
const (
	manyFailed    = 0.10 // share of planned URLs
	longerThan    = 1.25 // times the predicted time
	blockingShare = 0.5  // share of 403 and 429 in a network
	blockingFrom  = 20   // responses of the network
	holdingShare  = 0.5  // share of the time of a round that one domain needs
)

// attention lists what an operator should know, the most urgent first.
func (m *maker) attention(r *Report) []Attention {
	all := []Attention{m.verdictOf()}
	add := func(level, section, format string, args ...any) {
		all = append(all, Attention{Level: level, Section: section, Text: fmt.Sprintf(format, args...)})
	}
	f, q, h := m.fetches, m.requests, m.hosts
	if n := len(m.status.Lost); n > 0 {
		add(levelBad, "verdict", "The crawl has lost or changed objects, %d in all: `crawlbatch status --month %s%s` says which, and what to do.", n, m.Crawl, m.Flags)
	}
	if q.tooSoon > 0 {
		add(levelBad, "politeness", "%s came before the delay of the host had passed.", show.Count(q.tooSoon, "request"))
	}
	if f.faults > 0 {
		add(levelBad, "outcomes", "%s ended with internal_error, a fault of crawlbatch.", show.Count(f.faults, "URL"))
	}
	if n := len(m.failedTasks()); n > 0 {
		add(levelBad, "progress", "%s failed and has no result: `crawlbatch status --month %s%s` shows why.", show.Count(int64(n), "task"), m.Crawl, m.Flags)
	}
	if f.urls > 0 && float64(f.failed) > manyFailed*float64(f.urls) {
		name, n := f.mostFailed()
		add(levelWarn, "outcomes", "%.1f %% of the planned URLs failed, most often with %s (%s).", 100*float64(f.failed)/float64(f.urls), name, show.Count(n, "URL"))
	}
	if f.deferred > 0 {
		add(levelWarn, "outcomes", "%s were deferred to the next round: the fetch window closed before their turn, their hosts asked for pauses longer than what was left of it or gave no answer yet, or a task was given up.", show.Count(f.deferred, "URL"))
	}
	if n := m.requests.blocking(); n > 0 {
		add(levelWarn, "blocked", "%s answered at least half of the requests with 403 or 429.", show.Count(n, "network"))
	}
	if lasted, predicted := m.hours(); predicted > 0 && lasted > longerThan*predicted {
		add(levelWarn, "progress", "The rounds lasted %.1f times as long as predicted. %s", lasted/predicted, m.whyLonger())
	} else if l := m.longest; l != nil && l.PredictedHours > 0 && l.FetchHours > longerThan*l.PredictedHours {
		add(levelWarn, "progress", "A round fetched %.1f times as long as predicted. %s", l.FetchHours/l.PredictedHours, m.whyLonger())
	}
	m.interruptions(add)
	if domain, share, round := m.holds(r.table("holding")); share > holdingShare {
		add(levelNote, "hosts", "%s needs at least %.0f %% of the time of round %d.", domain, 100*share, round)
	}
	if h.suspendedHosts > 0 {
		add(levelNote, "hosts", "The breaker suspended hosts %s, because too many of their requests failed.", show.Count(h.breakers, "time"))
	}
	if r.Unfinished != "" {
		add(levelNote, "progress", "%s", r.Unfinished)
	}
	order := []string{levelBad, levelWarn, levelGood, levelNote}
	slices.SortStableFunc(all, func(a, b Attention) int { return slices.Index(order, a.Level) - slices.Index(order, b.Level) })
	if all[0].Level != levelBad && all[0].Level != levelWarn {
		add(levelGood, "outcomes", "Nothing else needs attention.")
	}
	return all
}

// slowest returns the round that exceeds its prediction most. The begin of its first attempt counts, if known:
// a killed attempt may have left no outcome.
func (m *maker) slowest() roundTime {
	if len(m.timing) == 0 {
		return roundTime{round: -1}
	}
	excess := func(t roundTime) float64 {
		if hours, known := m.accounts.excess[t.round]; known {
			return hours
		}
		return t.hours() - t.predicted
	}
	return slices.MaxFunc(m.timing, func(a, b roundTime) int { return cmp.Compare(excess(a), excess(b)) })
}

// whyLonger says what decided the length of the slowest round.
func (m *maker) whyLonger() string {
	r := m.slowest()
	took, predicted := r.hours(), r.predicted
	if m.longest != nil && m.longest.FetchHours > 0 && m.longest.PredictedHours > 0 {
		took, predicted = m.longest.FetchHours, m.longest.PredictedHours
	}
	text := fmt.Sprintf("Round %d took %s instead of %s.", r.round, duration(took*3600), duration(predicted*3600))
	if m.longest != nil && m.longest.Host != nil {
		h := m.longest.Host
		for _, t := range h.Before {
			if 10*float64(t.MS) >= took*3.6e6 {
				text += fmt.Sprintf(" Before the first request to %s, %s went to %s.", shown(h.Host), duration(float64(t.MS)/1000), t.On)
			}
		}
		text += fmt.Sprintf(" Its last request went to %s, which got %s in %s.", shown(h.Host), show.Count(h.Requests, "request"), duration(float64(h.Last-h.First)/1000))
		for i, t := range h.Spent[:min(len(h.Spent), mostSpent)] {
			text += []string{" Of this time, ", "; "}[min(i, 1)] + duration(float64(t.MS)/1000) + " went to " + t.On
			if t.On == longest.OnDelay && h.Cause != "" {
				text += ", because of this: " + shown(h.Cause)
			}
		}
		return text + "."
	}
	waits, sum := m.requests.waits, int64(0)
	for _, ms := range waits {
		sum += ms
	}
	if longest := byValue(waits[:])[0]; sum > 0 {
		text += fmt.Sprintf(" Between two requests, hosts mostly waited for %s (%.0f %% of the time).", waitReasons[longest], 100*float64(waits[longest])/float64(sum))
	}
	return text
}

// mostSpent is the number of parts of a host's time that the report names.
const mostSpent = 3

// interruptions says how long people paused the crawl while its rounds fetched, and how many attempts at
// fetch tasks were killed.
func (m *maker) interruptions(add func(level, section, format string, args ...any)) {
	var paused int64
	for _, t := range m.timing {
		paused += longest.Paused(m.pauses, schema.TimeOf(time.UnixMilli(t.first)), schema.TimeOf(time.UnixMilli(t.last)))
	}
	if paused > 0 {
		add(levelNote, "progress", "People paused the crawl for %s between the first and the last outcomes of its rounds.", duration(float64(paused)/1000))
	}
	if n := m.accounts.killed; n > 0 {
		add(levelWarn, "cost", "Killed processes ended %s at fetch tasks. The requests after their last checkpoints are in no table, and the next attempts fetched those URLs again.", show.Count(n, "attempt"))
	}
}

// mostFailed returns the failure that most URLs have.
func (f *fetches) mostFailed() (string, int64) {
	for _, e := range f.outcomes.top.Sorted() {
		if schema.Outcome(e.Key).Failed() {
			return e.Key, e.Values[0]
		}
	}
	return "", 0
}

// blocking counts the networks that block most requests, also those that the table does not show.
func (q *requests) blocking() (n int64) {
	for _, e := range q.networks.top.Entries {
		blocked, responses := e.Values[0], e.Values[1]
		n += one(responses >= blockingFrom && float64(blocked) >= blockingShare*float64(responses))
	}
	return n
}

// holds returns the domain that needs the largest share of its round's time.
func (m *maker) holds(t *Table) (domain string, share float64, round int64) {
	for _, row := range t.Rows {
		for _, r := range m.timing {
			if of := row[2].(float64) / 3600 / r.hours(); int64(r.round) == row[1].(int64) && r.hours() > 0 && of > share {
				domain, share, round = row[0].(string), min(of, 1), row[1].(int64)
			}
		}
	}
	return domain, share, round
}

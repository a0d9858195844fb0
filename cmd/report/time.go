package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"crawlbatch.io/crawlbatch/cmd/report/sketch"
	"crawlbatch.io/crawlbatch/stages"
)

// roundTime is the time of a round, from the outcomes, the plan and the attempts.
type roundTime struct {
	round       int
	urls        int64
	first, last int64   // first and last outcome, milliseconds since 1970
	taskHours   float64 // time of all attempts at fetch tasks
	predicted   float64 // hours; 0 if the plan is lost
	predictedPH float64 // predicted hours of all tasks
	tasks       int     // fetch tasks that ran at a time, on average
}

func (t *roundTime) hours() float64 { return float64(t.last-t.first) / 3.6e6 }

// times returns the times of the rounds.
func (m *maker) times() (all []roundTime) {
	for _, s := range m.rounds.sealed {
		t := roundTime{round: s.Round}
		if e := m.fetches.rounds.top.Entries[strconv.Itoa(s.Round)]; e != nil {
			t.urls, t.first, t.last = e.Values[0], e.Values[2], e.Values[3]
		}
		for _, r := range m.status.Rounds {
			for _, st := range r.Stages {
				if r.Round == s.Round && st.Stage == stages.Fetch {
					t.taskHours = st.Usage.Wall().Hours()
				}
			}
		}
		if p := m.plans[s.Round]; p != nil && p.URLs > 0 {
			t.tasks = 1
			if t.hours() > 0 {
				t.tasks = min(max(1, int(math.Round(t.taskHours/t.hours()))), max(1, len(p.Partitions)))
			}
			t.predicted, t.predictedPH = p.SecondsAt(t.tasks)/3600, p.PodHours()
		}
		all = append(all, t)
	}
	return all
}

func (m *maker) progress() Section {
	t := &Table{
		ID: "rounds", Title: "Rounds, and what the plan predicted", SQL: m.fetches.rounds.sql(m.Crawl),
		Note: "A round lasts from its first to its last outcome. The prediction is that of the plan for as many fetch tasks at a time as ran on average. Predictions come from plan.json and the hours of tasks from the records of their attempts, as `crawlbatch status -o json` shows them.",
		Columns: []Column{
			{Name: "round", Unit: unitScore}, {Name: "URLs", Unit: unitCount, bar: true}, {Name: "documents", Unit: unitCount},
			{Name: "first outcome", Unit: unitTime}, {Name: "last outcome", Unit: unitTime},
			{Name: "lasted", Unit: unitHours, NoSQL: true}, {Name: "predicted", Unit: unitHours, NoSQL: true}, {Name: "tasks at a time", Unit: unitScore, NoSQL: true},
			{Name: "hours of tasks", Unit: unitHours, NoSQL: true}, {Name: "predicted hours of tasks", Unit: unitHours, NoSQL: true},
		},
	}
	t.Rows = m.fetches.rounds.table(m.Crawl).Rows
	byRound := map[int64]roundTime{}
	for _, r := range m.timing {
		byRound[int64(r.round)] = r
	}
	for i, row := range t.Rows {
		r := byRound[row[0].(int64)]
		row = append(row, r.hours())
		if r.predicted > 0 {
			row = append(row, r.predicted, int64(r.tasks), r.taskHours, r.predictedPH)
		} else {
			row = append(row, nil, nil, r.taskHours, nil)
		}
		t.Rows[i] = row
	}
	s := Section{ID: "progress", Title: "Progress", Tables: []*Table{m.leftTable(byRound), t}}
	if m.unfinished() != "" {
		s.Notes = append(s.Notes, m.unfinished())
	}
	return s
}

// leftTable returns the table of the URLs without an outcome over time.
func (m *maker) leftTable(times map[int64]roundTime) *Table {
	step := m.fetches.left.Step
	t := &Table{
		ID: "left", Title: "URLs without an outcome", Rows: [][]any{},
		Note:    "The prediction falls evenly from the first outcome of a round on. It comes from plan.json.",
		Columns: []Column{{Name: "round", Unit: unitScore}, {Name: "until", Unit: unitTime}, {Name: "outcomes", Unit: unitCount}, {Name: "left", Unit: unitCount}, {Name: "predicted", Unit: unitCount, NoSQL: true}},
		SQL: fmt.Sprintf(`SELECT round, make_timestamp((epoch_ms(recorded_at) // %[1]d + 1) * %[1]d000) AS until, count(*) AS outcomes,
  (sum(count(*)) OVER (PARTITION BY round) - sum(count(*)) OVER (PARTITION BY round ORDER BY epoch_ms(recorded_at) // %[1]d))::BIGINT AS left
FROM fetches
WHERE crawl = '%s'
GROUP BY round, epoch_ms(recorded_at) // %[1]d
ORDER BY 1, 2`, step*1000, m.Crawl),
		Chart: &Chart{X: 1, Y: []int{3, 4}, Seconds: step, Gaps: true},
	}
	round, left := -1, int64(0)
	for _, p := range m.fetches.left.Sorted() {
		r := times[int64(p.Round)]
		if p.Round != round {
			round, left = p.Round, r.urls
		}
		n := m.fetches.left.Points[p][0]
		left -= n
		end := p.At + step*1000
		var predicted any
		if r.predicted > 0 {
			predicted = int64(math.Round(float64(r.urls) * max(0, 1-float64(end-r.first)/(r.predicted*3.6e6))))
		}
		t.Rows = append(t.Rows, []any{int64(p.Round), clock(end), n, left, predicted})
	}
	t.Chart.Alt = fmt.Sprintf("URLs of each round that have no outcome yet, over time, in steps of %s, with the prediction of the plan.", span(step))
	return t
}

// span writes seconds, such as 5 min.
func span(seconds int64) string {
	switch {
	case seconds%86400 == 0:
		return fmt.Sprintf("%d d", seconds/86400)
	case seconds%3600 == 0:
		return fmt.Sprintf("%d h", seconds/3600)
	case seconds%60 == 0:
		return fmt.Sprintf("%d min", seconds/60)
	}
	return fmt.Sprintf("%d s", seconds)
}

// rateColumns are the values of the timeline of requests.
var rateColumns = [rateValues]struct{ name, unit, sql string }{
	{"requests", unitCount, "count(*)"},
	{"bytes received", unitBytes, "sum(bytes_received)::BIGINT"},
	{"2xx", unitCount, "count(*) FILTER (WHERE http_status // 100 = 2)"},
	{"3xx", unitCount, "count(*) FILTER (WHERE http_status // 100 = 3)"},
	{"4xx", unitCount, "count(*) FILTER (WHERE http_status // 100 = 4)"},
	{"5xx", unitCount, "count(*) FILTER (WHERE http_status // 100 = 5)"},
	{"no response", unitCount, "count(*) FILTER (WHERE coalesce(http_status // 100, 0) NOT BETWEEN 2 AND 5)"},
}

// rateTable returns a table of values of the timeline of requests.
func (m *maker) rateTable(id, title, alt string, values ...int) *Table {
	step := m.requests.rate.Step
	t := &Table{
		ID: id, Title: title, Rows: [][]any{}, Columns: []Column{{Name: "round", Unit: unitScore}, {Name: "from", Unit: unitTime}},
		Chart: &Chart{X: 1, Seconds: step, Rate: true, Alt: fmt.Sprintf(alt, span(step))},
	}
	var columns []string
	for i, v := range values {
		c := rateColumns[v]
		t.Columns = append(t.Columns, Column{Name: c.name, Unit: c.unit})
		t.Chart.Y = append(t.Chart.Y, i+2)
		columns = append(columns, c.sql+" AS "+quoted(c.name))
	}
	t.SQL = fmt.Sprintf("SELECT round, make_timestamp(epoch_ms(start) // %[1]d * %[1]d000) AS \"from\",\n  %[2]s\nFROM requests\nWHERE crawl = '%[3]s'\nGROUP BY 1, 2\nORDER BY 1, 2",
		step*1000, strings.Join(columns, ",\n  "), m.Crawl)
	for _, p := range m.requests.rate.Sorted() {
		row := []any{int64(p.Round), clock(p.At)}
		for _, v := range values {
			row = append(row, m.requests.rate.Points[p][v])
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func (m *maker) throughput() Section {
	q := m.requests
	return Section{
		ID: "throughput", Title: "Throughput",
		Figures: []Figure{
			m.of("Requests sent", q.sent, unitCount, "count(*) FILTER (WHERE bytes_sent > 0)", "requests"),
			m.of("Attempts without a connection", q.unconnected, unitCount, "count(*) FILTER (WHERE bytes_sent = 0)", "requests"),
			m.of("Bytes received", q.bytes, unitBytes, "sum(bytes_received)::BIGINT", "requests"),
			m.of("Bytes sent", q.sentBytes, unitBytes, "sum(bytes_sent)::BIGINT", "requests"),
		},
		Tables: []*Table{
			m.rateTable("rate", "Requests over time", "Requests per second over time, in steps of %s.", rateRequests),
			m.rateTable("bytes", "Bytes received over time", "Bytes received per second over time, in steps of %s.", rateBytes),
			m.rateTable("answers", "Answers over time", "Requests per second over time by class of answer, in steps of %s.", rate2xx, rate3xx, rate4xx, rate5xx, rateNone),
			q.purposes.table(m.Crawl),
		},
	}
}

// percentiles are the shares that tables of percentiles show.
var percentiles = []float64{0.5, 0.9, 0.99}

// percentileColumns are the columns of tables of percentiles.
func percentileColumns(of, n, unit string) []Column {
	columns := []Column{{Name: of, Unit: unitText}, {Name: n, Unit: unitCount}}
	for _, name := range []string{"median", "90 %", "99 %"} {
		columns = append(columns, Column{Name: name, Unit: unit, Within: sketch.Within})
	}
	return append(columns, Column{Name: "largest", Unit: unit})
}

// percentileRow returns the row of a histogram.
func percentileRow(h *sketch.Histogram, name string, factor float64) []any {
	row := []any{name, h.N}
	if h.N == 0 {
		return append(row, make([]any, len(percentiles)+1)...)
	}
	for _, q := range percentiles {
		row = append(row, float64(h.Quantile(q))*factor)
	}
	return append(row, float64(h.Max)*factor)
}

// percentileSQL returns the SQL of the row of a histogram.
func percentileSQL(name, column, factor string) string {
	return fmt.Sprintf("SELECT '%[1]s' AS \"of\", count(%[2]s) AS n, quantile_disc(%[2]s, 0.5)%[3]s AS \"median\", quantile_disc(%[2]s, 0.9)%[3]s AS \"90 %%\", quantile_disc(%[2]s, 0.99)%[3]s AS \"99 %%\", max(%[2]s)%[3]s AS \"largest\"",
		name, column, factor)
}

// withinText says how exact percentiles are.
const withinText = "Percentiles are exact to 0.8 %."

func (m *maker) speed() Section {
	q := m.requests
	t := &Table{ID: "latency", Title: "Latency of requests", Note: withinText, Columns: percentileColumns("step", "requests", unitMS), Rows: [][]any{}}
	var sql []string
	for _, l := range q.latencies {
		t.Rows = append(t.Rows, percentileRow(&l.Histogram, l.name, 0.001))
		sql = append(sql, percentileSQL(l.name, fmt.Sprintf("coalesce(%[1]s_us, %[1]s_ms * 1000)", l.column), " / 1000")+"\nFROM requests WHERE crawl = '"+m.Crawl+"'")
	}
	t.SQL = strings.Join(sql, "\nUNION ALL ")
	waits := &Table{
		ID: "waits", Title: "What hosts waited for between two requests", SQL: fmt.Sprintf(waitsSQL, m.Crawl), Rows: [][]any{},
		Note: "The time between two requests to a host has three parts: the delay in force, then the wait for a free slot, then the rest. The answer to the request before says why there is a rest. Times of all hosts add up.",
		Columns: []Column{
			{Name: "waited for", Unit: unitText}, {Name: "host-hours", Unit: unitHours, bar: true, Within: loose}, {Name: "share", Unit: unitShare, Within: loose}, {Name: "requests", Unit: unitCount, Within: loose},
		},
	}
	var all int64
	for _, ms := range q.waits {
		all += ms
	}
	for _, i := range byValue(q.waits[:]) {
		if q.waits[i] > 0 {
			waits.Rows = append(waits.Rows, []any{waitReasons[i], float64(q.waits[i]) / 3.6e6, ratio(q.waits[i], all), q.waited[i]})
		}
	}
	late := &Table{
		ID: "queue", Title: "Time from when a request was due until it started", Note: withinText,
		Columns: percentileColumns("wait", "requests", unitMS), Rows: [][]any{percentileRow(&q.queue, "in the queue", 1)},
		SQL: percentileSQL("in the queue", "queue_ms", "") + "\nFROM requests WHERE crawl = '" + m.Crawl + "'",
	}
	late.Columns[1].Name = "requests"
	if f := m.fetches.retryAfter; f.N > 0 {
		late.Rows = append(late.Rows, percentileRow(&f, "Retry-After", 1))
		late.SQL += "\nUNION ALL " + percentileSQL("Retry-After", "retry_after_ms", "") + "\nFROM fetches WHERE crawl = '" + m.Crawl + "'"
		late.Title, late.Note = "Queue, and what servers asked for", "Queue: from when a request was due until it started. Retry-After: the pause that the last response to a URL asked for. "+withinText
	}
	return Section{ID: "speed", Title: "Latency and waits", Tables: []*Table{t, waits, late}}
}

// loose is the largest relative error of numbers that depend on the order of requests in the same
// millisecond.
const loose = 0.02

// byValue returns the indexes of values, the largest value first.
func byValue(values []int64) []int {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[b], values[a]) })
	return order
}

package report

import (
	"context"

	"crawlbatch.io/crawlbatch/cmd/report/sketch"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/stages"
)

// accountRow holds the columns of the datasets stages and runs that a report needs. Each dataset
// has only some of them.
type accountRow struct {
	Stage      string   `parquet:"stage"`
	Outcome    string   `parquet:"outcome,optional"`
	ErrorClass string   `parquet:"error_class,optional"`
	WallMS     *int64   `parquet:"wall_ms,optional"`
	CPUMS      *int64   `parquet:"cpu_ms,optional"`
	PeakMemory int64    `parquet:"peak_memory_bytes,optional"`
	Rows       *int64   `parquet:"rows_written,optional"`
	Written    *int64   `parquet:"bytes_written,optional"`
	Read       *int64   `parquet:"bytes_read,optional"`
	Puts       *int64   `parquet:"store_puts,optional"`
	Gets       *int64   `parquet:"store_gets,optional"`
	Lists      *int64   `parquet:"store_lists,optional"`
	Deletes    *int64   `parquet:"store_deletes,optional"`
	Failed     *int64   `parquet:"store_failed,optional"`
	Dollars    *float64 `parquet:"dollars,optional"`

	FetchHours       *float64 `parquet:"fetch_hours,optional"`
	PredictedFetch   *float64 `parquet:"predicted_fetch_hours,optional"`
	TaskHours        *float64 `parquet:"task_hours,optional"`
	PredictedTask    *float64 `parquet:"predicted_task_hours,optional"`
	PredictedPuts    *int64   `parquet:"predicted_store_puts,optional"`
	PredictedGets    *int64   `parquet:"predicted_store_gets,optional"`
	PredictedWritten *int64   `parquet:"predicted_bytes_written,optional"`
	PredictedDollars *float64 `parquet:"predicted_dollars,optional"`
	Stored           *float64 `parquet:"stored_dollars_month,optional"`
	PricesDate       string   `parquet:"prices_date,optional"`
}

// billionths converts billionths of a dollar to dollars. Groups add up whole billionths, because
// they add only whole numbers.
const billionths = 1e-9

// accounts collects the figures of the datasets stages and runs.
type accounts struct {
	stages, lost *group
	killed       int64           // attempts at fetch tasks whose process was killed
	excess       map[int]float64 // hours by which rounds fetched longer than predicted
	runs         [][]any
}

// added returns the value column with the sum of a column, or 0 if all values are null.
func added(name, unit, column string) value {
	return value{name: name, unit: unit, sql: "coalesce(sum(" + column + "), 0)::BIGINT"}
}

func newAccounts() *accounts {
	seconds := func(name, column string) value {
		return value{name: name, unit: unitSeconds, scale: 0.001, sql: "coalesce(sum(" + column + "), 0) / 1000"}
	}
	dollars := value{name: "dollars", unit: unitDollars, scale: billionths, sql: "coalesce(sum(dollars), 0)"}
	peak := value{name: "peak memory", unit: unitBytes, how: sketch.Largest, sql: "coalesce(max(peak_memory_bytes), 0)::BIGINT"}
	return &accounts{
		excess: map[int]float64{},
		stages: (&group{
			id: "stages", title: "Stages", from: stages.FileStages, keys: []key{{name: "stage", sql: "stage"}}, rank: 10,
			values: []value{
				count("attempts"), countIf("failed", "error_class IS NOT NULL"), seconds("time", "wall_ms"), seconds("CPU", "cpu_ms"), peak,
				added("rows written", unitCount, "rows_written"), added("PUT", unitCount, "store_puts"), added("GET", unitCount, "store_gets"),
				added("LIST", unitCount, "store_lists"), added("DELETE", unitCount, "store_deletes"), dollars, added("failed calls", unitCount, "store_failed"),
				added("bytes written", unitBytes, "bytes_written"), added("bytes read", unitBytes, "bytes_read"),
			},
			note: "All attempts are counted, failed ones too. An upload in parts counts as one PUT. An attempt that was killed left no times and no numbers. Dollars are those of machines as large as the stage's pods and of calls to the store, at the prices of the config when the round was sealed.",
		}).start(),
		lost: (&group{
			id: "lost", title: "Attempts that failed or were killed", from: stages.FileStages, where: "error_class IS NOT NULL",
			keys:   []key{{name: "stage", sql: "stage"}, {name: "class", sql: "error_class"}},
			values: []value{count("attempts"), seconds("time", "wall_ms"), dollars},
			note:   "`crawlbatch retry --class` selects tasks by these classes.",
		}).start(),
	}
}

// runColumns are the columns of the table of rounds, with their SQL.
var runColumns = []struct{ name, unit, sql string }{
	{"round", unitScore, "round"},
	{"hours of tasks", unitHours, "task_hours"}, {"predicted", unitHours, "predicted_task_hours"},
	{"PUT", unitCount, "store_puts"}, {"predicted PUT", unitCount, "predicted_store_puts"},
	{"GET", unitCount, "store_gets"}, {"predicted GET", unitCount, "predicted_store_gets"},
	{"bytes written", unitBytes, "bytes_written"}, {"predicted bytes", unitBytes, "predicted_bytes_written"},
	{"dollars", unitDollars, "dollars"}, {"predicted dollars", unitDollars, "predicted_dollars"},
	{"dollars a month for storage", unitDollars, "stored_dollars_month"}, {"prices of", unitText, "prices_date"},
}

func (a *accounts) read(ctx context.Context, r *rounds) error {
	err := scan(ctx, r, stages.FileStages, nil, a.add)
	if err != nil {
		return err
	}
	return scan(ctx, r, stages.FileRuns, nil, func(round int, row *accountRow) {
		if row.FetchHours != nil && row.PredictedFetch != nil {
			a.excess[round] = *row.FetchHours - *row.PredictedFetch
		}
		var prices any
		if row.PricesDate != "" {
			prices = shown(row.PricesDate)
		}
		a.runs = append(a.runs, []any{
			int64(round), orNil(row.TaskHours), orNil(row.PredictedTask), orNil(row.Puts), orNil(row.PredictedPuts), orNil(row.Gets), orNil(row.PredictedGets),
			orNil(row.Written), orNil(row.PredictedWritten), orNil(row.Dollars), orNil(row.PredictedDollars), orNil(row.Stored), prices,
		})
	})
}

func (a *accounts) add(_ int, row *accountRow) {
	nanos := int64(0)
	if row.Dollars != nil {
		nanos = int64(*row.Dollars/billionths + 0.5)
	}
	n := func(v *int64) int64 {
		if v == nil {
			return 0
		}
		return *v
	}
	a.stages.add(row.Stage, 1, one(row.ErrorClass != ""), n(row.WallMS), n(row.CPUMS), row.PeakMemory, n(row.Rows), n(row.Puts), n(row.Gets),
		n(row.Lists), n(row.Deletes), nanos, n(row.Failed), n(row.Written), n(row.Read))
	a.killed += one(row.Stage == string(stages.Fetch) && row.Outcome == manifest.ClassKilled)
	if row.ErrorClass != "" {
		a.lost.add(pair(row.Stage, row.ErrorClass), 1, n(row.WallMS), nanos)
	}
}

// orNil returns the value at p, or nil.
func orNil[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

// cost returns the section with the cost of the stages and the size of what the store holds.
func (m *maker) cost() Section {
	s := Section{ID: "cost", Title: "Cost"}
	t := &Table{ID: "runs", Title: "What rounds took, and what was predicted", Rows: m.accounts.runs, Note: "Hours of tasks are the times of all attempts, which the machines cost."}
	t.SQL = "SELECT "
	for i, c := range runColumns {
		t.Columns = append(t.Columns, Column{Name: c.name, Unit: c.unit})
		if i > 0 {
			t.SQL += ", "
		}
		t.SQL += c.sql + " AS " + quoted(c.name)
	}
	t.SQL += "\nFROM runs\nWHERE crawl = '" + m.Crawl + "'\nORDER BY round"
	s.Tables = append(m.tables(m.accounts.stages, m.accounts.lost), t)
	for _, t := range s.Tables {
		for i := range t.Columns {
			if t.Columns[i].Unit == unitDollars {
				t.Columns[i].Within = withinDollars
			}
		}
	}
	s.Tables = append(s.Tables, m.stored(), m.captures.table(m.Crawl))
	return s
}

// withinDollars is the relative error of dollars, which are added up in billionths.
const withinDollars = 1e-3

package fetchcheck

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
	"crawlbatch.io/crawlbatch/stages"
)

// fetchOutcome holds the columns of the fetches dataset that everyPlannedURLHasOneOutcome reads.
type fetchOutcome struct {
	Row     int32  `parquet:"planned_row"`
	URL     string `parquet:"url"`
	Outcome string `parquet:"outcome"`
}

func endedKey(k table.Key, f *fetchOutcome) table.Key { return k.Int(int64(f.Row)).Text(f.URL) }

// planned holds the columns of a plan that everyPlannedURLHasOneOutcome reads.
type planned struct {
	URL    string `parquet:"url"`
	Domain string `parquet:"domain"`
}

// everyPlannedURLHasOneOutcome compares the planned URLs of a partition with its rows in the
// dataset fetches. It matches a row of fetches with a planned URL by the number of the planned row,
// and then compares their URLs. In an unfinished partition, exactly the URLs that the checkpoint
// records have an outcome.
func everyPlannedURLHasOneOutcome(ctx context.Context, a *audit.Audit, r *audit.Round, n int) error {
	p, err := r.Partition(ctx, n)
	if err != nil {
		return err
	}
	fetches, _ := p.Files(stages.FileFetches, "")
	plan := r.Plan.Partitions[n].File.Key
	if p.Fetched == nil || a.Broken(plan) || a.Broken(fetches...) {
		return nil
	}
	rows, err := audit.SortRows(ctx, a, fetches, endedKey, nil)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // the sorter holds only temporary data
	o := outcomes{Audit: a, round: r, object: plan, plan: plan, counts: map[string]int64{}}
	if len(fetches) > 0 {
		o.object = fetches[0]
	}
	o.recorded = p.Recorded
	if err := o.compare(audit.Concat[planned](ctx, a, []string{plan}), rows.Sorted(ctx)); err != nil {
		return err
	}
	a.Count(oneOutcome, o.planned)
	a.Count(knownOutcomes, rows.Len())
	o.compareCounts(p.Fetched)
	return nil
}

// outcomes compares the plan and the fetches of one partition.
type outcomes struct {
	*audit.Audit
	round   *audit.Round
	object  string // key of the first file of fetches, or of the plan if there is none
	plan    string // key of the plan's file
	planned int64
	counts  map[string]int64 // number of rows, by outcome
	// recorded holds the planned rows that must have an outcome, or is nil if all must.
	recorded *roaring.Bitmap
}

func (o *outcomes) wrong(url, format string, args ...any) {
	o.Wrong(oneOutcome, o.round.Number, audit.URL(o.object, url), format, args...)
}

// compare reads the rows of the plan in order, and the rows of fetches in the order of their
// planned rows.
func (o *outcomes) compare(plan iter.Seq2[planned, error], fetches iter.Seq2[fetchOutcome, error]) error {
	next, stop := iter.Pull2(fetches)
	defer stop()
	f, err, more := next()
	advance := func() { f, err, more = next() }
	row := int32(0)
	for p, perr := range plan {
		if perr != nil {
			return perr
		}
		o.planned++
		found := 0
		for ; more && err == nil && f.Row <= row; advance() {
			o.count(&f)
			switch {
			case f.Row < row:
				o.wrong(f.URL, "the row names row %d of the plan, which does not exist", f.Row)
			case f.URL != p.URL:
				o.wrong(f.URL, "the row names row %d of the plan, which is %q", f.Row, p.URL)
			default:
				found++
			}
		}
		if err != nil {
			return err
		}
		switch {
		case o.recorded != nil && !o.recorded.Contains(uint32(row)):
			if found > 0 {
				o.wrong(p.URL, "it is planned (%s, row %d) and has %d rows, and the checkpoint does not record it", o.plan, row, found)
			}
		case found != 1:
			o.wrong(p.URL, "it is planned (%s, row %d) and has %d rows", o.plan, row, found)
		}
		row++
	}
	for ; more && err == nil; advance() {
		o.count(&f)
		o.wrong(f.URL, "the row names row %d of the plan, which has %d rows", f.Row, row)
	}
	return err
}

// count counts a row's outcome.
func (o *outcomes) count(f *fetchOutcome) {
	if o.counts[f.Outcome]++; o.counts[f.Outcome] > 1 || slices.Contains(schema.Outcomes, schema.Outcome(f.Outcome)) {
		return
	}
	o.Wrong(knownOutcomes, o.round.Number, audit.At{Object: o.object, Row: f.URL, Where: "outcome = " + audit.SQL(f.Outcome)},
		"its outcome %q does not exist", f.Outcome)
}

// compareCounts compares the number of rows of each outcome with the task's counts.
func (o *outcomes) compareCounts(result *manifest.Result) {
	const prefix = "outcome."
	counted := map[string]int64{}
	for _, c := range result.Counts {
		if outcome, ok := strings.CutPrefix(c.Name, prefix); ok {
			counted[outcome] = c.N
		}
	}
	all := maps.Clone(counted)
	maps.Copy(all, o.counts)
	for _, outcome := range slices.Sorted(maps.Keys(all)) {
		if counted[outcome] != o.counts[outcome] {
			o.Wrong(oneOutcome, o.round.Number, audit.At{Object: o.object}, "it has %d rows with outcome %q, the fetch task counted %d", o.counts[outcome], outcome, counted[outcome])
		}
	}
}

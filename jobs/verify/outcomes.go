package verify

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
)

// The checks of invariant 1.
const (
	oneOutcome    = "one outcome a URL"
	knownOutcomes = "known outcomes"
	apart         = "a domain is in one partition"
)

// ended is what invariant 1 reads of fetches.
type ended struct {
	Row     int32  `parquet:"planned_row"`
	URL     string `parquet:"url"`
	Outcome string `parquet:"outcome"`
}

func compareEnded(a, b *ended) int {
	return cmp.Or(cmp.Compare(a.Row, b.Row), strings.Compare(a.URL, b.URL))
}

// planned is what invariant 1 reads of a plan.
type planned struct {
	URL    string `parquet:"url"`
	Domain string `parquet:"domain"`
}

// checkOutcomes compares the planned URLs of a partition with its rows of fetches,
// both by row of the plan and by URL.
func (a *audit) checkOutcomes(ctx context.Context, r *round, n int) error {
	result := r.results[stages.Fetch][n]
	files, _ := r.files(stages.FileFetches, "", n)
	plan := r.plan.Partitions[n].File.Key
	if result == nil || a.isBroken(append(keysOf(files), plan)...) {
		return nil
	}
	rows, err := sortRows(ctx, a, keysOf(files), compareEnded)
	if err != nil {
		return a.skip(err, 1, oneOutcome, r)
	}
	defer rows.Close() //nolint:errcheck // scratch
	o := outcomes{audit: a, round: r, fetches: keysOf(files), plan: plan, counts: map[string]int64{}}
	if err := o.compare(concat[planned](ctx, a, []string{plan}), rows.Sorted(ctx)); err != nil {
		return a.skip(err, 1, oneOutcome, r)
	}
	a.note(1, oneOutcome, "planned URLs", o.planned)
	a.note(1, knownOutcomes, "rows of fetches", rows.Len())
	o.compareCounts(result)
	return nil
}

// outcomes compares plan and fetches of one partition.
type outcomes struct {
	*audit
	round   *round
	fetches []string // files
	plan    string   // file
	planned int64
	counts  map[string]int64 // rows by outcome
}

func (o *outcomes) wrong(object, url, format string, args ...any) {
	v := Violation{Invariant: 1, Check: oneOutcome, Round: o.round.number, Object: object, Row: url, Problem: fmt.Sprintf(format, args...)}
	if url != "" {
		v.Where = urlIs(url)
	}
	o.report(v)
}

// table names the file of the rows, or the first of several.
func (o *outcomes) table() string {
	if len(o.fetches) == 0 {
		return o.plan
	}
	return o.fetches[0]
}

// compare walks through the plan in its order, and through fetches by planned row.
func (o *outcomes) compare(plan iter.Seq2[planned, error], fetches iter.Seq2[ended, error]) error {
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
				o.wrong(o.table(), f.URL, "a row says that it is of row %d of the plan, which there is not", f.Row)
			case f.URL != p.URL:
				o.wrong(o.table(), f.URL, "a row says that it is of row %d of the plan, which is %q", f.Row, p.URL)
			default:
				found++
			}
		}
		if err != nil {
			return err
		}
		if found != 1 {
			o.wrong(o.table(), p.URL, "it is planned (%s, row %d) and has %d rows", o.plan, row, found)
		}
		row++
	}
	for ; more && err == nil; advance() {
		o.count(&f)
		o.wrong(o.table(), f.URL, "a row says that it is of row %d of the plan, which has %d", f.Row, row)
	}
	return err
}

// count takes a row's outcome.
func (o *outcomes) count(f *ended) {
	if o.counts[f.Outcome]++; o.counts[f.Outcome] > 1 || slices.Contains(schema.Outcomes, schema.Outcome(f.Outcome)) {
		return
	}
	o.report(Violation{
		Invariant: 1, Check: knownOutcomes, Round: o.round.number, Object: o.table(), Row: f.URL,
		Problem: fmt.Sprintf("its outcome is %q, which is none", f.Outcome), Where: "outcome = " + quoted(f.Outcome),
	})
}

// compareCounts compares the rows by outcome with what the task counted.
func (o *outcomes) compareCounts(result *manifest.Result) {
	const prefix = "outcome."
	counted := map[string]int64{}
	for _, c := range result.Counts {
		if outcome, ok := strings.CutPrefix(c.Name, prefix); ok {
			counted[outcome] = c.N
		}
	}
	if maps.Equal(counted, o.counts) {
		return
	}
	all := maps.Clone(counted)
	maps.Copy(all, o.counts)
	for _, outcome := range slices.Sorted(maps.Keys(all)) {
		if counted[outcome] != o.counts[outcome] {
			o.wrong(o.table(), "", "it has %d rows with outcome %q, the fetch task counted %d", o.counts[outcome], outcome, counted[outcome])
		}
	}
}

// placed is a planned URL with its partition.
type placed struct {
	Domain    string
	URL       string
	Partition int32
}

func comparePlaced(a, b *placed) int {
	return cmp.Or(strings.Compare(a.Domain, b.Domain), strings.Compare(a.URL, b.URL), cmp.Compare(a.Partition, b.Partition))
}

// checkPartitions looks for domains and URLs that are planned in two partitions of
// the round, and URLs that are planned twice in one. A sample is one of domains.
func (a *audit) checkPartitions(ctx context.Context, r *round) error {
	rows, err := table.NewSorter(a.Scratch, comparePlaced, 4*sortMemory)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // scratch
	for n, part := range r.plan.Partitions {
		if a.isBroken(part.File.Key) {
			continue
		}
		if err := a.place(ctx, r, n, rows); err != nil {
			return err
		}
	}
	a.note(1, apart, "planned URLs", rows.Len())
	wrong := func(p *placed, format string, args ...any) {
		a.report(Violation{
			Invariant: 1, Check: apart, Round: r.number, Object: r.plan.Partitions[p.Partition].File.Key, Row: p.URL,
			Problem: fmt.Sprintf(format, args...), Where: urlIs(p.URL),
		})
	}
	var last placed
	first := true
	for p, err := range rows.Sorted(ctx) {
		if err != nil {
			return err
		}
		switch {
		case first || p.Domain != last.Domain:
		case p.URL == last.URL:
			wrong(&p, "it is planned twice in the round, before in %s", r.plan.Partitions[last.Partition].File.Key)
		case p.Partition != last.Partition:
			wrong(&p, "its domain %s is planned in two partitions, also in %s: two tasks would fetch from it at once", p.Domain, r.plan.Partitions[last.Partition].File.Key)
		}
		last, first = p, false
	}
	return nil
}

// place reads the planned URLs of a partition, whose domains must be theirs and of
// the partition's bucket.
func (a *audit) place(ctx context.Context, r *round, n int, rows *table.Sorter[placed]) error {
	part := r.plan.Partitions[n]
	domain, in := "", false
	for p, err := range concat[planned](ctx, a, []string{part.File.Key}) {
		if err != nil {
			return a.skip(err, 1, apart, r)
		}
		if p.Domain != domain || domain == "" {
			domain, in = strings.Clone(p.Domain), a.sampled(p.Domain)
		}
		if !in {
			continue
		}
		if k, err := urlkey.KeyOf(p.URL); err != nil || k.Domain != p.Domain || urlkey.Bucket(k.Domain, r.plan.Buckets) != part.Bucket {
			a.report(Violation{
				Invariant: 1, Check: apart, Round: r.number, Object: part.File.Key, Row: p.URL, Where: urlIs(p.URL),
				Problem: fmt.Sprintf("it is planned under domain %q in a partition of bucket %d; its own domain is %q", p.Domain, part.Bucket, k.Domain),
			})
		}
		if err := rows.Add(&placed{p.Domain, p.URL, int32(n)}); err != nil {
			return err
		}
	}
	return nil
}

package report

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/longest"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/verify"
	"crawlbatch.io/crawlbatch/stages"
)

// Options say what to report.
type Options struct {
	Bucket  store.Bucket
	Crawl   string
	Store   string         // address of the store, as the user gave it
	Flags   string         // flags that commands about this store need, with a leading space
	Version string         // version of crawlbatch
	Verdict *verify.Report // what verify found; nil: it did not run
}

// maker holds what the sections are made of.
type maker struct {
	Options
	*collected
	rounds   *rounds
	status   *jobs.Status
	plans    map[int]*manifest.Plan
	previous string
	earlier  []*manifest.Sealed // sealed rounds of the previous crawl
	timing   []roundTime
	pauses   []ledger.Pause
	longest  *longest.Round  // what decided the length of the round that exceeds its prediction most; nil: unknown
	sizes    map[string]size // by dataset
}

// Make makes the report of a crawl. If no round is sealed, the error wraps jobs.ErrNotSealed.
func Make(ctx context.Context, o Options) (*Report, error) {
	sealed, err := roundstate.Sealed(ctx, o.Bucket, o.Crawl)
	if err != nil {
		return nil, err
	}
	if len(sealed) == 0 {
		return nil, fmt.Errorf("crawl %s has nothing to report yet: %w: `crawlbatch status --month %[1]s%[3]s` shows its state, and `crawlbatch run --month %[1]s%[3]s` continues it",
			o.Crawl, jobs.ErrNotSealed, o.Flags)
	}
	m := &maker{Options: o, plans: map[int]*manifest.Plan{}}
	if err := m.readSealed(ctx, sealed); err != nil {
		return nil, err
	}
	if m.status, err = (&jobs.StatusReader{Bucket: o.Bucket, Flags: o.Flags}).Read(ctx, o.Crawl); err != nil {
		return nil, err
	}
	if err := m.readPlans(ctx); err != nil {
		return nil, err
	}
	if err := m.readPrevious(ctx); err != nil {
		return nil, err
	}
	if m.collected, err = collect(ctx, m.rounds); err != nil {
		return nil, err
	}
	m.timing = m.times()
	if err := m.readLongest(ctx, sealed); err != nil {
		return nil, err
	}
	return m.report(), nil
}

// readLongest reads the pauses of the crawl, and what decided the length of the slowest round.
func (m *maker) readLongest(ctx context.Context, sealed []*manifest.Sealed) error {
	l, err := ledger.Load(ctx, m.Bucket, m.Crawl)
	if errors.Is(err, ledger.ErrLost) {
		return nil // the status names the loss
	}
	if err != nil {
		return err
	}
	m.pauses = l.Pauses()
	slow := m.slowest().round
	i := slices.IndexFunc(sealed, func(s *manifest.Sealed) bool { return s.Round == slow })
	if p := m.plans[slow]; p != nil && i >= 0 && len(p.Partitions) > 0 && !layout.IsReparse(m.Crawl) {
		m.longest, err = longest.Of(ctx, m.Bucket, p, sealed[i], nil, m.pauses)
	}
	return err
}

// datasets are the datasets that the report reads.
var datasets = []string{stages.FileFetches, stages.FileRequests, stages.FileHosts, stages.FilePages, stages.FileDuplicates, stages.FileLinks, stages.FileURLs, stages.FileSkips, stages.FileCaptures, stages.FileStages, stages.FileRuns}

// size is the size of a dataset in the store.
type size struct{ files, rows, bytes int64 }

// readSealed reads the lists of files of sealed rounds, one after the other, because a large round
// lists many. It keeps the files that the report reads, and the sizes of all.
func (m *maker) readSealed(ctx context.Context, sealed []*manifest.Sealed) error {
	m.rounds, m.sizes = &rounds{bucket: m.Bucket, crawl: m.Crawl}, map[string]size{}
	for _, s := range sealed {
		filled, err := roundstate.WithFiles(ctx, m.Bucket, []*manifest.Sealed{s}, roundstate.Selection{})
		if err != nil {
			return err
		}
		of := *filled[0]
		of.Files = nil
		for _, f := range filled[0].Files {
			have := m.sizes[f.Dataset]
			m.sizes[f.Dataset] = size{have.files + 1, have.rows + f.Rows, have.bytes + f.Bytes}
			if slices.Contains(datasets, f.Dataset) {
				of.Files = append(of.Files, manifest.File{Dataset: f.Dataset, Key: f.Key})
			}
		}
		m.rounds.sealed = append(m.rounds.sealed, &of)
	}
	return nil
}

// readPlans reads the plans of the sealed rounds, unless they are lost.
func (m *maker) readPlans(ctx context.Context) error {
	for _, s := range m.rounds.sealed {
		p, _, err := roundstate.FindPlan(ctx, m.Bucket, m.Crawl, s.Round)
		if errors.Is(err, ledger.ErrLost) || errors.Is(err, roundstate.ErrNoPlan) {
			continue // the status names the loss
		}
		if err != nil {
			return err
		}
		m.plans[s.Round] = p
	}
	return nil
}

// readPrevious reads the seals of the newest earlier month with a sealed round.
func (m *maker) readPrevious(ctx context.Context) error {
	crawls, err := roundstate.Crawls(ctx, m.Bucket)
	if err != nil {
		return err
	}
	month, _ := layout.MonthOf(m.Crawl)
	crawls = slices.DeleteFunc(crawls, func(c string) bool { return layout.IsReparse(c) || c >= month })
	crawl, sealed, err := roundstate.NewestSealed(ctx, m.Bucket, crawls)
	if errors.Is(err, ledger.ErrLost) {
		return nil // leave out the comparison, because the loss is in another crawl
	}
	if len(sealed) > 0 {
		m.previous, m.earlier = crawl, sealed
	}
	return err
}

func (m *maker) report() *Report {
	r := &Report{Crawl: m.Crawl, Store: m.Store, Version: m.Version, Views: "crawlbatch views --dialect duckdb --month " + m.Crawl + m.Flags}
	for _, s := range m.rounds.sealed {
		r.Rounds = append(r.Rounds, s.Round)
	}
	r.Unfinished = m.unfinished()
	r.Sections = []Section{
		m.verdict(), m.progress(), m.throughput(), m.outcomes(), m.speed(), m.politeness(), m.busyHosts(), m.robots(), m.blocked(),
		m.content(), m.copies(), m.graph(), m.cost(), m.change(),
	}
	r.Headline = m.headline()
	r.Attention = m.attention(r)
	return r
}

// unfinished describes the round that is not sealed, or returns "".
func (m *maker) unfinished() string {
	for _, r := range m.status.Rounds {
		if r.State == "sealed" {
			continue
		}
		text := fmt.Sprintf("Round %d is %s and not in this report: ", r.Round, r.State)
		for _, s := range r.Stages {
			if s.Done < s.Tasks {
				text += fmt.Sprintf("in stage %s, %d of %d tasks have a result", s.Stage, s.Done, s.Tasks)
				if s.Recorded > 0 {
					text += fmt.Sprintf(", and %d of %d URLs have an outcome", s.Recorded, r.URLs)
				}
				return text + "."
			}
		}
		return text + "it has no result yet."
	}
	return ""
}

// sqlOf returns a query over a dataset of the crawl.
func (m *maker) sqlOf(expression, dataset string) string {
	return "SELECT " + expression + "\nFROM " + dataset + "\nWHERE crawl = '" + m.Crawl + "'"
}

// of returns a figure that one expression over a dataset gives.
func (m *maker) of(name string, v any, unit, expression, dataset string) Figure {
	return Figure{Name: name, Value: v, Unit: unit, SQL: m.sqlOf(expression, dataset)}
}

// tables returns the finished tables of groups.
func (m *maker) tables(groups ...*group) (all []*Table) {
	for _, g := range groups {
		all = append(all, g.table(m.Crawl))
	}
	return all
}

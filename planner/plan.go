package planner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/formats/visible"
	"crawlbatch.io/crawlbatch/planner/entry"
	"crawlbatch.io/crawlbatch/planner/pace"
	"crawlbatch.io/crawlbatch/planner/pack"
	"crawlbatch.io/crawlbatch/planner/planfile"
	"crawlbatch.io/crawlbatch/planner/slowest"
	"crawlbatch.io/crawlbatch/planner/source"
)

// Request names the round to plan and the sources of its URLs.
type Request struct {
	Crawl   string
	Round   int
	Sources []source.Source               // sources of URLs; if sources repeat an entry, the entry of the first source counts
	History []source.Known                // history of these URLs from earlier rounds, and URLs that are due
	Hosts   iter.Seq2[source.Host, error] // hosts of earlier rounds, oldest round first; nil if there are none
	Known   int64                         // lower bound of the number of URLs that earlier rounds know
	Buckets int                           // number of reduce buckets of the previous round, which is the least number for this round; 0 if there is no previous round
	// HasLinks reports whether the store has the links of a page, which an answer 304 does not bring. Its
	// argument is the key of the WARC file with the page's content. If the result is false, the page is planned
	// without validators. HasLinks is nil if nobody needs the links of unchanged pages.
	HasLinks func(warc string) bool
	// Pruned reports whether a WARC file was deleted by age. A page whose content is in such a file
	// is planned as if its content were not stored. Pruned is nil if no WARC file was deleted.
	Pruned  func(warc string) bool
	Now     time.Time // time of the plan, for Config.SkipWithin
	Scratch string    // empty local directory with room for twice the sources' size; the caller removes the directory
	Version string    // version of crawlbatch, for plan.json
	// Note gets what Make and Commit do, as a verb, a number and its object, such as "read 4096 entries of urls.txt". They
	// call it often, and from several goroutines. It may be nil.
	Note   func(verb string, n int64, of string)
	DryRun bool // predict without making a plan: the result has no ID and no files, and cannot be committed
}

// sourceAt returns the source with a number. The sources come first, then the history from earlier
// rounds.
func (r *Request) sourceAt(n int) source.Source {
	if n < len(r.Sources) {
		return r.Sources[n]
	}
	return r.History[n-len(r.Sources)]
}

// Plan is a plan in scratch space.
type Plan struct {
	manifest manifest.Plan
	counts   []SourceCount
	slowest  []slowest.Host
	reach    entry.Reach
	budgets  []manifest.Count
	note     func(verb string, n int64, of string) // Request.Note, or a function that does nothing
	files    []table.Local                         // local files in the order of planfile.Of, empty after a dry run
}

// Counts returns the number of entries of each source, in the order of the sources.
func (p *Plan) Counts() []SourceCount { return p.counts }

// Slowest returns the slowest host of each of the ten slowest domains, slowest first.
func (p *Plan) Slowest() []slowest.Host { return p.slowest }

// Reach says how requests would reach the planned hosts, as far as Config.Reach knows.
func (p *Plan) Reach() entry.Reach { return p.reach }

// OverBudget returns the number of URLs that each key of plan.budgets refuses.
func (p *Plan) OverBudget() []manifest.Count { return p.budgets }

// Manifest returns plan.json, with the ID, totals, a prediction for each partition, and numbers of
// refusals. After a dry run, the manifest has no ID and names no files.
func (p *Plan) Manifest() *manifest.Plan { return &p.manifest }

// Make makes a plan in scratch space. Errors wrap ErrConfig, ErrNothing, or an error of package
// source. The user can correct the cause of each error.
func Make(ctx context.Context, cfg Config, req Request) (_ *Plan, err error) {
	r, err := cfg.rules()
	if err != nil {
		return nil, err
	}
	if req.Note != nil {
		r.note = req.Note
	}
	names := &entry.Names{Round: fmt.Sprintf("%s.%d", req.Crawl, req.Round)}
	s := newSorting(req.Scratch)
	defer func() { err = errors.Join(err, s.close()) }()
	seen, err := r.sortObservations(req.Hosts, s.hosts)
	if err != nil {
		return nil, err
	}
	r.measured, r.unreachable, r.carries = seen.Service(r.Service), seen.UnreachableShare(), req.Round > 0
	read, picked, err := s.join(ctx, r, req, names)
	defer func() { err = errors.Join(err, picked.close()) }()
	if err != nil {
		return nil, err
	}
	entries := read.Entries
	for i, n := range read.Sources {
		entries[i].Refused += n
	}
	own := len(req.Sources)
	entries = append(entries[:own:own], slices.DeleteFunc(entries[own:], func(c SourceCount) bool { return c.Name == source.HistoryName })...)
	p := &Plan{counts: entries, note: r.note, manifest: manifest.Plan{Crawl: req.Crawl, Round: req.Round, Refused: manifest.SortedCounts(read.Counts), TakenDown: read.TakenDown}}
	for i, c := range entries {
		p.manifest.Sources = append(p.manifest.Sources, c.Name)
		if i < own && c.Name != source.FrontierName {
			p.manifest.SourceLines += c.Entries
		}
	}
	if len(picked.chosen.Groups) == 0 {
		return nil, emptyPlanError(p, s.refused.sorted(ctx))
	}
	p.manifest.Merged = manifest.SortedCounts(picked.chooser.mergedBy)
	p.slowest, p.reach, p.budgets = picked.chosen.Slowest, picked.chosen.Reach, manifest.SortedCounts(picked.chooser.overBudget)
	partitions := p.predict(r, req, picked.chosen)
	if req.DryRun {
		return p, nil
	}
	if err := p.write(ctx, r, req, picked, partitions, s.refused.sorted(ctx)); err != nil {
		return nil, err
	}
	return p, planfile.Identify(&p.manifest, req.Version)
}

// sorting holds the sorters of a plan.
type sorting struct {
	records entry.Sorters
	refused *sorters[entry.Refusal]
	hosts   *sorters[pace.Observation]
}

func newSorting(dir string) *sorting {
	return &sorting{
		entry.Sorters{Dir: dir, Order: entry.ByDomain}, &sorters[entry.Refusal]{dir: dir, key: entry.RefusalKey},
		&sorters[pace.Observation]{dir: dir, key: pace.ObservationKey},
	}
}

func (s *sorting) close() error {
	return errors.Join(s.records.Close(), s.refused.close(), s.hosts.close())
}

// join reads all sources and chooses the URLs that the budgets allow. The caller closes picked, even after an
// error.
func (s *sorting) join(ctx context.Context, r *rules, req Request, names *entry.Names) (read *ingested, p *picked, err error) {
	p = &picked{}
	if read, err = ingest(ctx, r, req, &s.records, s.refused, names); err == nil {
		err = checkNoMatch(read.Entries)
	}
	if err != nil {
		return nil, p, err
	}
	if p, err = newPicked(r, req, observed(s.hosts), s.refused, names); err == nil {
		err = p.pick(ctx, ahead(s.records.Sorted(ctx)))
	}
	if err == nil {
		err = errors.Join(s.records.Close(), s.hosts.close()) // makes room for sorting partitions
	}
	if err == nil {
		p.counts(read)
	}
	return read, p, err
}

// emptyPlanError returns an error that says why a plan is empty.
func emptyPlanError(p *Plan, refused iter.Seq2[entry.Refusal, error]) error {
	m := &p.manifest
	if len(m.Refused) == 0 && m.TakenDown > 0 {
		return fmt.Errorf("plan %s.%d: %w: every URL was taken down (%d)", m.Crawl, m.Round, ErrNothing, m.TakenDown)
	}
	if len(m.Refused) == 0 {
		return fmt.Errorf("plan %s.%d: %w: no known URL is due", m.Crawl, m.Round, ErrNothing)
	}
	var why []string
	var most manifest.Count // of the reason that refused most: its remedy helps
	for _, c := range m.Refused {
		why = append(why, fmt.Sprintf("%d %s", c.N, c.Name))
		if c.N > most.N && c.Name != string(schema.SkipDuplicate) {
			most = c
		}
	}
	advice := cmp.Or(remedies[schema.SkipReason(most.Name)], "give absolute http or https URLs, one per line")
	if most.Name == string(schema.SkipBadRecord) {
		first, err := firstBroken(refused)
		if err != nil {
			return err
		}
		advice = "the first records that cannot be read are " + first
	}
	return fmt.Errorf("plan %s.%d: %w: every entry of %s was refused (%s): %s",
		m.Crawl, m.Round, ErrNothing, strings.Join(m.Sources, ", "), strings.Join(why, ", "), advice)
}

// remedies says what a person can do about a plan that is empty for a reason. The keys of the config are
// frozen in a crawl that has a plan.
var remedies = map[schema.SkipReason]string{
	schema.SkipOutOfScope: "give URLs in plan.scope, or widen plan.scope" + inNewCrawl,
	schema.SkipFiltered:   "give URLs that plan.filter and plan.rewrite let pass, or change these keys" + inNewCrawl,
	schema.SkipBudget:     "raise plan.budgets" + inNewCrawl,
	schema.SkipDepth:      "raise plan.max_depth" + inNewCrawl,
	schema.SkipOptOut:     "give URLs that the list of plan.opt_out does not name",
	schema.SkipStopped:    "end the stops, with `crawlbatch host HOST --resume` or in politeness.domains, or give other URLs",
	schema.SkipRecent:     "add --force to plan also what was fetched within plan.skip_within",
}

const inNewCrawl = "; if the month has a plan already, plan another month"

// quotedBroken is the number of unreadable records that an error quotes.
const quotedBroken = 3

// firstBroken describes the first unreadable records of the sources.
func firstBroken(refused iter.Seq2[entry.Refusal, error]) (string, error) {
	var quoted []string
	for row, err := range refused {
		if err != nil {
			return "", err
		}
		if row.Reason != schema.SkipBadRecord {
			continue
		}
		if quoted = append(quoted, fmt.Sprintf("%s, record %d (%.200s): %s", row.Source, row.Line, visible.Text(row.URL), row.Detail)); len(quoted) == quotedBroken {
			break
		}
	}
	return strings.Join(quoted, "; "), nil
}

// predict makes the partitions and fills the manifest's list of partitions.
func (p *Plan) predict(r *rules, req Request, chosen *entry.List) []pack.Partition {
	m := &p.manifest
	for _, g := range chosen.Groups {
		m.URLs += g.URLs
		m.Domains += int64(g.Domains)
		m.Hosts += int64(g.Hosts)
	}
	m.Known, m.Buckets = req.Known, r.buckets(m.URLs, req)
	m.EstimatedBytes = m.URLs * r.PageBytes
	rules := r.pack()
	partitions := rules.Assign(chosen.Groups, chosen.Addresses, m.Buckets)
	r.unobserved = 1 - float64(chosen.Observed)/float64(max(m.Hosts, 1))
	for i := range partitions {
		q := &partitions[i]
		seconds := max(rules.Seconds(q.URLs, q.Longest), r.tail(q.Hosts))
		m.EstimatedSeconds = max(m.EstimatedSeconds, seconds)
		m.Partitions = append(m.Partitions, manifest.PlanPartition{
			Partition: i, Bucket: q.Bucket, URLs: q.URLs, Domains: q.Domains, Hosts: q.Hosts, EstimatedSeconds: seconds,
		})
	}
	return partitions
}

// write writes the plan's files to scratch space, several at a time.
func (p *Plan) write(ctx context.Context, r *rules, req Request, from *picked, partitions []pack.Partition, refused iter.Seq2[entry.Refusal, error]) error {
	m := &p.manifest
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(r.Workers)
	var last [2][]table.Local
	g.Go(func() (err error) {
		last[0], m.RefusedFile, err = writeLast(req, planfile.Refused, "refused", refusedRows(refused, m.Buckets))
		return err
	})
	if r.OptOut != nil {
		g.Go(func() (err error) {
			last[1], m.OptOutFile, err = writeLast(req, planfile.OptOut, "opt-out", r.OptOut.Rows(r.Gone))
			return err
		})
	}
	locals := make([][]table.Local, len(partitions))
	of, written := fmt.Sprintf("of %d partitions", len(partitions)), atomic.Int64{}
	for _, i := range largestFirst(partitions) {
		g.Go(func() error {
			w := partitionWriter{req.Scratch, r.Memory / int64(r.Workers), from, &partitions[i]}
			urls, err := w.writeFile(gctx, i)
			if err != nil {
				return fmt.Errorf("partition %d: %w", i, err)
			}
			m.Partitions[i].File, locals[i] = urls.File(planfile.URLs, ""), []table.Local{urls}
			r.note("wrote", written.Add(1), of)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	p.files = slices.Concat(append(locals, last[:]...)...)
	return nil
}

// writeLast writes a file that follows those of the partitions.
func writeLast[T any](req Request, dataset, name string, rows iter.Seq2[T, error]) ([]table.Local, *manifest.File, error) {
	l, err := table.WriteFile(filepath.Join(req.Scratch, name+".parquet"), rows)
	return []table.Local{l}, new(l.File(dataset, "")), err
}

// largestFirst returns the indices of partitions in an order in which no large one is left when the others are written.
func largestFirst(partitions []pack.Partition) []int {
	order := make([]int, len(partitions))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(partitions[j].URLs, partitions[i].URLs) })
	return order
}

// partitionWriter writes the files of one partition.
type partitionWriter struct {
	scratch string
	memory  int64 // memory for one sort, in bytes
	from    *picked
	part    *pack.Partition
}

// writeFile writes the partition's planned URLs.
func (w *partitionWriter) writeFile(ctx context.Context, number int) (_ table.Local, err error) {
	sorting := entry.Sorters{Dir: w.scratch, Order: entry.ByHost}
	defer func() { err = errors.Join(err, sorting.Close()) }()
	if err := sorting.Sorter(w.memory).AddGroups(ctx, w.from.chosen, slices.Values(w.part.Groups)); err != nil {
		return table.Local{}, err
	}
	return table.WriteFile(filepath.Join(w.scratch, layout.Part(number)+".parquet"), ahead(w.rows(sorting.Sorted(ctx))))
}

func (w *partitionWriter) rows(records iter.Seq2[entry.Record, error]) iter.Seq2[schema.PlannedRow, error] {
	return func(yield func(schema.PlannedRow, error) bool) {
		for u, err := range records {
			if err == nil {
				u.SURT, err = urlkey.SURT(u.URL)
			}
			if err != nil {
				yield(schema.PlannedRow{}, err)
				return
			}
			if !yield(schema.PlannedRow{PlannedURL: u.PlannedURL, Listing: w.from.names.Listing(&u)}, nil) {
				return
			}
		}
	}
}

// Commit stores the plan's files, then plan.json, which names the files. Without plan.json the plan
// does not exist. A caller can repeat Commit after an interruption, or after another process has
// committed the same plan.
func (p *Plan) Commit(ctx context.Context, b store.Bucket) error {
	m := &p.manifest
	if m.ID == "" {
		return fmt.Errorf("commit plan %s.%d: %w: it was a dry run", m.Crawl, m.Round, ErrConfig)
	}
	err := p.upload(ctx, b)
	if err == nil {
		_, err = planfile.Create(ctx, b, m)
	}
	if err != nil {
		return fmt.Errorf("commit plan %s.%d: %w", m.Crawl, m.Round, err)
	}
	return nil
}

// upload commits the files. In a repeated Commit, already uploaded files are no longer in scratch space.
func (p *Plan) upload(ctx context.Context, b store.Bucket) error {
	for i, f := range planfile.Of(&p.manifest) {
		if _, err := os.Stat(p.files[i].Path); errors.Is(err, os.ErrNotExist) {
			continue
		}
		if _, err := table.Commit(ctx, b, p.files[i], f.Dataset, f.Key); err != nil {
			return err
		}
		p.note("stored", int64(i)+1, fmt.Sprintf("of %d files of the plan", len(p.files)))
	}
	return nil
}

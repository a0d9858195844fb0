package planner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/budget"
	"crawlbatch.io/crawlbatch/planner/entry"
	"crawlbatch.io/crawlbatch/planner/pace"
	"crawlbatch.io/crawlbatch/planner/pack"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/planner/spool"
)

// Elsewhere runs the tasks of a plan, perhaps in other processes. Only one goroutine may call its methods.
type Elsewhere interface {
	// Depot returns the Depot of the plan m.
	Depot(ctx context.Context, m *manifest.Plan) (spool.Depot, error)
	// Most returns the largest number of tasks of a phase.
	Most() int
	// CanRead reports whether the tasks can read the source with a name.
	CanRead(name string) bool
	// Run runs a task for each share, which calls RunShare, and returns the results in the same order. The
	// EstimatedBytes of m are the scratch space that a task needs.
	Run(ctx context.Context, m *manifest.Plan, phase string, shares []json.RawMessage) ([]json.RawMessage, error)
	// Place copies the files from, which tasks committed, to the keys of the files to, in the same order.
	Place(ctx context.Context, m *manifest.Plan, from []manifest.File, to []*manifest.File) error
}

// MostTasks is the largest number of tasks of a phase, because a task opens the runs of all tasks of the phase before.
const MostTasks = 128

// cellsPerPart is the number of cells of the part of a task. A task that writes partitions fetches whole cells.
const cellsPerPart = 16

// CanDivide reports whether tasks can make the plan. They cannot if the config turns URLs of a domain into URLs of
// another, or counts the URLs at an address, which may be those of any domain.
func (c *Config) CanDivide() bool {
	r, err := c.rules()
	return err != nil || c.Limits.Address == 0 && r.canonical == r.canonical.Plain()
}

// driver makes a plan in tasks.
type driver struct {
	*rules
	req   Request
	plan  *manifest.Plan // its crawl, its round, and in EstimatedBytes the scratch space of a task
	depot spool.Depot
	names *entry.Names

	common  share // what all shares have
	read    []*readDone
	joined  []*joinDone
	refused []manifest.File
}

// newDriver returns the driver of a plan. The parameter hosts holds the sorted observations.
func newDriver(ctx context.Context, r *rules, req Request, hosts *sorters[pace.Observation], names *entry.Names) (d *driver, err error) {
	d = &driver{rules: r, req: req, plan: &manifest.Plan{Crawl: req.Crawl, Round: req.Round}, names: names}
	if d.depot, err = req.Elsewhere.Depot(ctx, d.plan); err != nil {
		return nil, err
	}
	for i := range len(req.Sources) + len(req.History) {
		d.common.Sources = append(d.common.Sources, req.sourceAt(i).Name())
	}
	if d.common.Parts = req.Elsewhere.Most(); len(req.History) > 0 && req.Buckets > 0 {
		d.common.Parts = min(d.common.Parts, req.Buckets) // each bucket of earlier rounds is read by one task or two
	}
	d.common.Measured = r.measured
	if len(hosts.all) > 0 {
		f, err := spool.StoreRows(ctx, d.depot, filepath.Join(req.Scratch, "hosts.s2"), "hosts", pace.Observations, hosts.sorted(ctx),
			func(o *pace.Observation) int { return urlkey.BucketOf(o.Hash, d.common.Parts) })
		if err != nil {
			return nil, err
		}
		d.common.Hosts = &f
	}
	return d, nil
}

// run runs the tasks of a phase and decodes their results.
func run[T any](ctx context.Context, d *driver, phase string, shares []share) ([]*T, error) {
	encoded := make([]json.RawMessage, len(shares))
	for i := range shares {
		var err error
		if encoded[i], err = json.Marshal(&shares[i]); err != nil {
			return nil, err
		}
	}
	d.plan.EstimatedBytes = d.scratch(phase, shares)
	d.note("began", int64(len(shares)), "tasks of phase "+phase)
	results, err := d.req.Elsewhere.Run(ctx, d.plan, phase, encoded)
	if err != nil {
		return nil, err
	}
	out := make([]*T, len(results))
	for i := range out {
		out[i] = new(T)
		if err := json.Unmarshal(results[i], out[i]); err != nil {
			return nil, fmt.Errorf("result of task %d of phase %s: %w", i, phase, err)
		}
	}
	return out, nil
}

// Bytes of scratch space that a task needs for each byte that it reads, because what it reads is compressed and a sort
// has runs; and for each known URL.
const (
	scratchPerByte  = 10
	scratchPerKnown = 1 << 10
)

// scratch estimates the scratch space of a task of a phase, in bytes: that of the largest share. The parts of known
// URLs have no sizes, so twice their mean counts.
func (d *driver) scratch(phase string, shares []share) (bytes int64) {
	known := int64(0)
	if phase == phaseJoin {
		known = 2 * d.req.Known / int64(max(len(shares), 1))
	}
	for i := range shares {
		bytes = max(bytes, d.reads(phase, &shares[i]))
	}
	return scratchPerByte*bytes + scratchPerKnown*known
}

// reads returns the number of bytes that a task reads.
func (d *driver) reads(phase string, s *share) (bytes int64) {
	switch phase {
	case phaseRead:
		for _, p := range s.Slices {
			bytes += p.Slice.Bytes
		}
	case phaseJoin:
		for i := range d.common.Records {
			bytes += sectionBytes(&d.common.Records[i], s.Part, s.Part+1)
		}
	case phaseCut:
		bytes = s.Chosen.Rows.Bytes
	default:
		for i := range d.joined {
			bytes += sectionBytes(&d.joined[i].Chosen.Rows, s.FirstCell, s.EndCell)
			for k := range d.joined[i].Left {
				bytes += sectionBytes(&d.joined[i].Left[k].Rows, s.FirstCell, s.EndCell)
			}
		}
	}
	return bytes
}

// sectionBytes returns the size of the sections of a run from first to end (exclusive).
func sectionBytes(f *manifest.File, first, end int) (bytes int64) {
	sections, err := f.Sections()
	if err != nil { // the task will say what is wrong
		return f.Bytes
	}
	for _, s := range sections {
		if s.Bucket >= first && s.Bucket < end {
			bytes += s.Bytes
		}
	}
	return bytes
}

// divide divides the sources that tasks can read into shares. The other sources are in own.
func (d *driver) divide(ctx context.Context) (shares []share, own []slicePart, err error) {
	n := d.req.Elsewhere.Most()
	var all []slicePart
	total := int64(0)
	for i, s := range d.req.Sources {
		var slices []source.Slice
		if divided, ok := s.(source.Divided); ok && d.req.Elsewhere.CanRead(s.Name()) {
			if slices, err = divided.Slices(ctx, n); err != nil {
				return nil, nil, err
			}
		}
		if len(slices) > maxSlices {
			return nil, nil, fmt.Errorf("%w: source %q has %d files, tasks can read %d: plan without --tasks", ErrConfig, s.Name(), len(slices), maxSlices)
		}
		for k, slice := range slices {
			all, total = append(all, slicePart{Source: i, Number: k, Slice: slice}), total+slice.Bytes
		}
		if slices == nil {
			own = append(own, slicePart{Source: i})
		}
	}
	sum := int64(0)
	for _, s := range all {
		at := min(int(sum*int64(n)/max(total, 1)), n-1) // a last file may be empty
		if sum += s.Slice.Bytes; len(shares) == 0 || len(shares) <= at {
			shares = append(shares, d.common)
		}
		last := &shares[len(shares)-1]
		last.Slices = append(last.Slices, s)
	}
	return shares, own, nil
}

// readAll reads all sources, in tasks or here.
func (d *driver) readAll(ctx context.Context) (*ingested, error) {
	shares, own, err := d.divide(ctx)
	if err != nil {
		return nil, err
	}
	total := newIngested()
	total.Entries = make([]SourceCount, len(d.req.Sources))
	for i, s := range d.req.Sources {
		total.Entries[i].Name = s.Name()
	}
	if len(own) > 0 {
		here := &task{rules: d.rules, req: d.req, depot: d.depot, share: &d.common, names: &entry.Names{}, suffix: "-here"}
		done, err := here.read(ctx, own)
		if err != nil {
			return nil, err
		}
		d.read = append(d.read, done)
	}
	if len(shares) > 0 {
		done, err := run[readDone](ctx, d, phaseRead, shares)
		if err != nil {
			return nil, err
		}
		d.read = append(d.read, done...)
	}
	var lines []sliceLines
	var names []entry.Name
	for _, done := range d.read {
		total.join(&done.Read)
		d.common.Records, d.refused = append(d.common.Records, done.Records), append(d.refused, done.Refused)
		lines = append(lines, done.Lines...)
		packed, err := spool.FetchBytes(ctx, d.depot.Bucket(), &done.Names)
		if err != nil {
			return nil, err
		}
		n := &entry.Names{}
		if err := n.Unpack(packed); err != nil {
			return nil, err
		}
		names = append(names, n.Files...)
	}
	for i, s := range d.req.Sources {
		count := &total.Entries[i]
		for _, done := range d.read {
			for _, of := range done.Slices {
				if of.Source == i {
					count.Entries, count.noMatch = count.Entries+of.Entries, errors.Join(count.noMatch, of.noMatch)
				}
			}
		}
		if divided, ok := s.(source.Divided); ok && count.Entries == 0 && count.noMatch == nil {
			if count.noMatch = divided.Empty(); !errors.Is(count.noMatch, source.ErrNoMatch) {
				return nil, count.noMatch
			}
		}
	}
	d.common.Lines = firstLines(lines)
	slices.SortFunc(names, func(a, b entry.Name) int { return cmp.Compare(a.First, b.First) })
	for _, n := range names {
		d.names.Append(n.First, n.Text, d.req.Sources[n.First.Source()].Name())
	}
	d.common.Names, err = spool.StoreBytes(ctx, d.depot, filepath.Join(d.req.Scratch, "names.s2"), "names", d.names.Pack())
	return total, err
}

// join reads all sources and chooses the URLs that the budgets allow, in tasks.
func (d *driver) join(ctx context.Context) (read *ingested, p *picked, err error) {
	p = &picked{}
	if read, err = d.readAll(ctx); err != nil {
		return nil, p, err
	}
	shares := make([]share, d.common.Parts)
	for i := range shares {
		shares[i] = d.common
		shares[i].Part = i
	}
	if d.joined, err = run[joinDone](ctx, d, phaseJoin, shares); err != nil {
		return nil, p, err
	}
	c := &chooser{rules: d.rules, round: d.budgets.NewRound(), overBudget: map[string]int64{}}
	p = &picked{chooser: c}
	rounds := make([]*budget.Round, len(d.joined))
	for i, done := range d.joined {
		c.spent += done.Spent
		c.round.Join(done.Round)
		rounds[i] = done.Round
		for k, of := range done.Read.Entries {
			at := len(d.req.Sources) + k
			if at == len(read.Entries) {
				read.Entries = append(read.Entries, SourceCount{Name: of.Name})
			}
			read.Entries[at].Entries += of.Entries
		}
		read.join(&done.Read)
		d.refused = append(d.refused, done.Refused)
	}
	addUp := func() {
		for _, done := range d.joined {
			for key, n := range done.OverBudget {
				c.overBudget[key] += n
			}
		}
	}
	addUp()
	if err := checkNoMatch(read.Entries); err != nil {
		return nil, p, err
	}
	if limit, key, detail := c.roundLimit(); limit >= 0 {
		c.round.Cut(limit)
		c.round.Divide(rounds)
		for i := range shares {
			shares[i].Round, shares[i].Key, shares[i].Detail = rounds[i], key, detail
			shares[i].Chosen, shares[i].Spent = d.joined[i].Chosen, c.spent
		}
		before := d.joined
		if d.joined, err = run[joinDone](ctx, d, phaseCut, shares); err != nil {
			return nil, p, err
		}
		for i, done := range d.joined {
			done.Left = append(before[i].Left, done.Left...)
			read.join(&done.Read)
			d.refused = append(d.refused, done.Refused)
		}
		addUp()
	}
	p.chosen = &entry.List{}
	for _, done := range d.joined {
		if err := done.Chosen.Each(ctx, d.depot.Bucket(), func(g *entry.StoredGroup) {
			p.chosen.Groups = append(p.chosen.Groups, g.Group)
			if d.common.Hosts != nil {
				p.chosen.Addresses = append(p.chosen.Addresses, g.Address)
			}
		}); err != nil {
			return nil, p, err
		}
		for _, h := range done.Slowest {
			p.chosen.Slowest.Add(h)
		}
		p.chosen.Observed += done.Observed
	}
	return read, p, nil
}

// refusals yields the refusals of all tasks in their order.
func (d *driver) refusals(ctx context.Context) iter.Seq2[entry.Refusal, error] {
	return func(yield func(entry.Refusal, error) bool) {
		rows, err := spool.FetchRuns(ctx, d.depot.Bucket(), filepath.Join(d.req.Scratch, "refused"), d.refused, 0, 1)
		if err != nil {
			yield(entry.Refusal{}, err)
			return
		}
		defer rows.Close() //nolint:errcheck // the file was only read
		for r, err := range spool.MergeRuns(ctx, entry.Refusals, entry.CompareRefusals, rows, nil) {
			if r.Line > 0 {
				r.Line += d.common.firstLine(r.Seq)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// write has tasks write the files of the partitions, and returns them in the order of planfile.Of.
func (d *driver) write(ctx context.Context, m *manifest.Plan, groups []pack.Group, partitions []pack.Partition) (placed []manifest.File, err error) {
	var shares []share
	sum, n := int64(0), int64(min(d.req.Elsewhere.Most(), len(partitions)))
	lists := d.common
	lists.Records, lists.Format, lists.BeforeFormat8 = nil, d.format(), d.BeforeFormat8
	for _, done := range d.joined {
		lists.ChosenOf, lists.LeftOf = append(lists.ChosenOf, done.Chosen), append(lists.LeftOf, done.Left)
	}
	cells := d.common.Parts * cellsPerPart
	for first := 0; first < len(partitions); {
		end, at := first, sum*n/m.URLs
		for end < len(partitions) && sum*n/m.URLs == at {
			sum += partitions[end].URLs
			end++
		}
		s := lists
		least, most := uint64(1<<64-1), uint64(0)
		for _, q := range partitions[first:end] {
			least, most = min(least, groups[q.Groups[0]].Hash), max(most, groups[q.Groups[len(q.Groups)-1]].Hash)
		}
		s.Partition, s.FirstCell, s.EndCell = first, urlkey.BucketOf(least, cells), urlkey.BucketOf(most, cells)+1
		skipped, _ := slices.BinarySearchFunc(groups, s.FirstCell, func(g pack.Group, cell int) int { return urlkey.BucketOf(g.Hash, cells) - cell })
		if s.Groups, err = spool.StoreBytes(ctx, d.depot, filepath.Join(d.req.Scratch, "groups.s2"), fmt.Sprintf("groups-%d", len(shares)), pack.EncodeGroups(partitions[first:end], skipped)); err != nil {
			return nil, err
		}
		shares, first = append(shares, s), end
	}
	done, err := run[writeDone](ctx, d, phaseWrite, shares)
	if err != nil {
		return nil, err
	}
	at := 0
	for _, w := range done {
		for _, q := range w.Partitions {
			if at == len(partitions) || q.URLs.Rows != partitions[at].URLs {
				return nil, fmt.Errorf("a task wrote wrong files of partition %d: %w", at, table.ErrDiffers)
			}
			m.Partitions[at].File, m.Partitions[at].Spellings = q.URLs, q.Spellings
			for _, f := range []*manifest.File{&m.Partitions[at].File, q.Spellings} {
				if f != nil {
					placed = append(placed, *f)
					f.Key = "" // the plan's ID does not depend on where a task wrote
				}
			}
			at++
		}
	}
	if at < len(partitions) {
		return nil, fmt.Errorf("no task wrote partition %d: %w", at, table.ErrDiffers)
	}
	return placed, nil
}

// join adds the refusals of another part of a plan.
func (in *ingested) join(o *ingested) {
	in.add(&refusals{counts: o.Counts, sources: o.Sources, takenDown: o.TakenDown})
}

// firstLines returns the number of lines before each slice of lines of a file, by the slice's place.
func firstLines(lines []sliceLines) []sliceLines {
	slices.SortFunc(lines, func(a, b sliceLines) int { return cmp.Compare(a.First, b.First) })
	before := int64(0)
	for i := range lines {
		n := lines[i].Lines
		if i == 0 || !lines[i].Continues {
			before = 0
		}
		lines[i].Lines, before = before, before+n
	}
	return slices.DeleteFunc(lines, func(l sliceLines) bool { return l.Lines == 0 })
}

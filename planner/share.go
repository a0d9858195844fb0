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
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/budget"
	"crawlbatch.io/crawlbatch/planner/entry"
	"crawlbatch.io/crawlbatch/planner/pace"
	"crawlbatch.io/crawlbatch/planner/pack"
	"crawlbatch.io/crawlbatch/planner/planfile"
	"crawlbatch.io/crawlbatch/planner/slowest"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/planner/spool"
)

// The phases of a plan in tasks, in their order.
const (
	phaseRead  = "read"  // make slices of sources canonical and sort them
	phaseJoin  = "join"  // join a part of the URLs with earlier rounds, and choose by domain
	phaseCut   = "cut"   // drop the URLs of a part that the budget of a round or a crawl refuses
	phaseWrite = "write" // sort and write partitions
)

// share is the work of a task.
type share struct {
	Sources     []string // names of all sources, then of the history
	Part, Parts int      // the task's part of the URLs, which is a range of the hashes of domains, in phases join and cut
	Measured    time.Duration
	Hosts       *manifest.File // observations of earlier rounds, by part; null if there are none

	Slices []slicePart // what to read, in phase read

	Records []manifest.File // what the tasks of phase read found, by part
	Lines   []sliceLines    // numbers of lines before the slices of lines
	Names   manifest.File   // names of the files of all entries

	Chosen      entry.Stored  // the URLs of the part, in phase cut
	Round       *budget.Round // the cut of the part
	Key, Detail string        // key and numbers of the budget that cuts
	Spent       int64         // number of URLs that earlier rounds of the crawl planned

	Format             int // in phase write
	BeforeFormat8      bool
	ChosenOf           []entry.Stored // of each part
	LeftOf             [][]entry.Stored
	Partition          int           // first partition to write
	Groups             manifest.File // groups of each partition, as packGroups packs them
	FirstCell, EndCell int           // cells of the groups
}

// slicePart is a slice of a source.
type slicePart struct {
	Source, Number int
	Slice          source.Slice
}

// maxSlices is the largest number of slices of a source that a seq can distinguish.
const maxSlices = 1 << 16

// first returns the place of the slice's first entry.
func (s *slicePart) first() entry.Seq { return entry.NewSeq(s.Source, int64(s.Number)<<32) }

// sliceLines is the number of lines in a slice, or of lines before it.
type sliceLines struct {
	First     entry.Seq
	Lines     int64
	Continues bool // the slice is not the first of its file
}

// firstLine returns the number of lines before the slice of an entry.
func (s *share) firstLine(at entry.Seq) int64 {
	i, found := slices.BinarySearchFunc(s.Lines, at>>32, func(l sliceLines, slice entry.Seq) int { return cmp.Compare(l.First>>32, slice) })
	if !found {
		return 0
	}
	return s.Lines[i].Lines
}

// readDone is the result of a task of phase read.
type readDone struct {
	Read             ingested
	Slices           []sliceCount
	Lines            []sliceLines
	Names            manifest.File
	Records, Refused manifest.File
}

// sliceCount counts the entries of a slice.
type sliceCount struct {
	Source  int
	Entries int64
	noMatch error
}

// joinDone is the result of a task of phase join or cut.
type joinDone struct {
	Read       ingested // entries of the history, and refusals
	Spent      int64
	Round      *budget.Round
	OverBudget map[string]int64
	Chosen     entry.Stored
	Left       []entry.Stored
	Slowest    slowest.List
	Observed   int64
	Refused    manifest.File
}

// writeDone is the result of a task of phase write.
type writeDone struct{ Partitions []writtenPart }

type writtenPart struct {
	URLs      manifest.File
	Spellings *manifest.File
}

// task does the work of a share.
type task struct {
	*rules
	req    Request
	depot  spool.Depot
	share  *share
	names  *entry.Names
	suffix string // end of the names of its working files
}

// taskMemory is the memory for sorting in a task, in bytes.
const taskMemory = 128 << 20

// RunShare does the work of a task of a phase, and returns its result. The config and the request are those
// of the plan, but for the sources: the function open opens a source by its name. The task's number
// is unique in its phase. Work that is done again gives the same files.
func RunShare(ctx context.Context, cfg Config, req Request, depot spool.Depot, phase string, number int, work json.RawMessage, open func(name string) (source.Source, error)) (json.RawMessage, error) {
	cfg.Workers, cfg.Memory = 1, min(cfg.Memory, taskMemory)
	r, err := cfg.rules()
	if err != nil {
		return nil, err
	}
	s := new(share)
	if err := json.Unmarshal(work, s); err != nil {
		return nil, err
	}
	r.measured, r.carries = s.Measured, req.Round > 0
	t := &task{rules: r, req: req, depot: depot, share: s, suffix: fmt.Sprintf("-%s-%d", phase, number)}
	t.names = &entry.Names{Round: fmt.Sprintf("%s.%d", req.Crawl, req.Round), Hide: r.format() >= 11}
	var done any
	switch phase {
	case phaseRead:
		t.req.Sources = make([]source.Source, len(s.Sources))
		for _, p := range s.Slices {
			if t.req.Sources[p.Source] == nil {
				if t.req.Sources[p.Source], err = open(s.Sources[p.Source]); err != nil {
					return nil, err
				}
			}
		}
		done, err = t.read(ctx, s.Slices)
	case phaseJoin, phaseCut:
		done, err = t.join(ctx, phase == phaseCut)
	case phaseWrite:
		done, err = t.write(ctx)
	default:
		err = fmt.Errorf("%w: a plan has no phase %q", ErrConfig, phase)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(done)
}

// cells returns the number of cells of all parts.
func (t *task) cells() int { return t.share.Parts * cellsPerPart }

// path returns the path of a scratch file, and commit stores it under the same name.
func (t *task) path(name string) string { return filepath.Join(t.req.Scratch, name+t.suffix) }

// read makes slices of sources canonical and sorts them. A slice without a file is a whole source.
func (t *task) read(ctx context.Context, parts []slicePart) (_ *readDone, err error) {
	s := newSorting(t.req.Scratch)
	defer func() { err = errors.Join(err, s.close()) }()
	in := input{at: len(t.req.Sources)}
	for _, p := range parts {
		one := t.req.Sources[p.Source]
		if p.Slice.File != "" {
			one = one.(source.Divided).Part(p.Slice)
		}
		in.sources, in.first = append(in.sources, one), append(in.first, p.first())
	}
	read, err := ingest(ctx, t.rules, in, &s.records, s.refused, t.names)
	if err != nil {
		return nil, err
	}
	done := &readDone{}
	if done.Names, err = spool.StoreBytes(ctx, t.depot, t.path("names"), "names"+t.suffix, t.names.Pack()); err != nil {
		return nil, err
	}
	for i, p := range parts {
		done.Slices = append(done.Slices, sliceCount{p.Source, read.Entries[i].Entries, read.Entries[i].noMatch})
		if part, ok := in.sources[i].(*source.Part); ok && p.Slice.Lines {
			done.Lines = append(done.Lines, sliceLines{p.first(), part.Lines(), p.Slice.From > 0})
		}
	}
	read.Entries, done.Read = nil, *read
	done.Records, err = spool.StoreRows(ctx, t.depot, t.path("records"), "records"+t.suffix, entry.Records, s.records.Sorted(ctx), func(r *entry.Record) int { return urlkey.BucketOf(r.Hash, t.share.Parts) })
	if err == nil {
		done.Refused, err = t.storeRefused(ctx, s)
	}
	return done, err
}

func (t *task) storeRefused(ctx context.Context, s *sorting) (manifest.File, error) {
	return spool.StoreRows(ctx, t.depot, t.path("refused"), "refused"+t.suffix, entry.Refusals, s.refused.sorted(ctx), func(*entry.Refusal) int { return 0 })
}

// join reads what earlier rounds know about a part of the URLs, and chooses the URLs that the budgets of domains
// and hosts allow. If again is true, it only drops the chosen URLs over the budget of the round.
func (t *task) join(ctx context.Context, again bool) (_ *joinDone, err error) {
	s, b := newSorting(t.req.Scratch), t.depot.Bucket()
	defer func() { err = errors.Join(err, s.close()) }()
	if err := t.fetchNames(ctx); err != nil {
		return nil, err
	}
	seen := observed(s.hosts)
	if t.share.Hosts != nil {
		hosts, err := spool.FetchRuns(ctx, b, t.path("observed"), []manifest.File{*t.share.Hosts}, t.share.Part, t.share.Part+1)
		if err != nil {
			return nil, err
		}
		defer hosts.Close() //nolint:errcheck // the file was only read
		seen = func(ctx context.Context) *table.Cursor[pace.Observation] {
			return table.Pull(spool.MergeRuns(ctx, pace.Observations, pace.CompareObservations, hosts, nil))
		}
	}
	nameOf := func(n int) string { return t.share.Sources[n] }
	p, err := newPicked(t.rules, t.req, nameOf, seen, s.refused, t.names)
	defer func() { err = errors.Join(err, p.close()) }()
	if err != nil {
		return nil, err
	}
	done := &joinDone{Read: *newIngested()}
	if again {
		err = t.cut(ctx, p)
	} else {
		done.Read, err = t.choose(ctx, s, p)
	}
	if err != nil {
		return nil, err
	}
	p.counts(&done.Read)
	c := p.chooser
	done.Spent, done.Round, done.OverBudget = c.spent, c.round, c.overBudget
	done.Slowest, done.Observed = p.chosen.Slowest, p.chosen.Observed
	if done.Chosen, err = p.chosen.Store(ctx, t.depot, t.path("rows"), "chosen"+t.suffix, t.cells()); err != nil {
		return nil, err
	}
	left, err := p.left[0].Store(ctx, t.depot, t.path("rows"), "left"+t.suffix, t.cells())
	if err != nil {
		return nil, err
	}
	done.Left = []entry.Stored{left}
	done.Refused, err = t.storeRefused(ctx, s)
	return done, err
}

// choose is the part of join in the phase join.
func (t *task) choose(ctx context.Context, s *sorting, p *picked) (ingested, error) {
	none := ingested{}
	runs, err := spool.FetchRuns(ctx, t.depot.Bucket(), t.path("runs"), t.share.Records, t.share.Part, t.share.Part+1)
	if err != nil {
		return none, err
	}
	defer runs.Close() //nolint:errcheck // the file was only read
	in := input{history: t.req.History, at: len(t.share.Sources) - len(t.req.History), listed: t.newListed(t.req.History)}
	for i := range runs.Ends {
		if in.listed == nil {
			break
		}
		for r, err := range spool.RowsOf(ctx, entry.Records, runs, i) {
			if err != nil {
				return none, err
			}
			if r.Due {
				in.listed.Add(urlkey.Key{URL: r.URL, Domain: r.Domain})
			}
		}
	}
	for _, known := range in.history {
		known.Within(t.share.Part, t.share.Parts)
	}
	t.part, t.parts = t.share.Part, t.share.Parts
	read, err := ingest(ctx, t.rules, in, &s.records, s.refused, t.names)
	if err != nil {
		return none, err
	}
	return *read, p.choose(ctx, t.withLines(spool.MergeRuns(ctx, entry.Records, entry.Compare, runs, s.records.Sorted(ctx))))
}

// withLines adds the numbers of lines before the slices to records.
func (t *task) withLines(records iter.Seq2[entry.Record, error]) iter.Seq2[entry.Record, error] {
	if len(t.share.Lines) == 0 {
		return records
	}
	return func(yield func(entry.Record, error) bool) {
		for r, err := range records {
			if r.Listed {
				r.Line += t.share.firstLine(r.Seq)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// cut is the part of join in the phase cut.
func (t *task) cut(ctx context.Context, p *picked) error {
	all, err := entry.Fetch(ctx, t.depot.Bucket(), t.path("all"), []entry.Stored{t.share.Chosen}, t.share.Part*cellsPerPart, (t.share.Part+1)*cellsPerPart, t.cells())
	if err != nil {
		return err
	}
	p.scratch, p.chosen = append(p.scratch, all), all
	p.chooser.round, p.chooser.spent = t.share.Round, t.share.Spent
	return p.cut(ctx, t.share.Key, t.share.Detail)
}

// write writes the files of partitions.
func (t *task) write(ctx context.Context) (_ *writeDone, err error) {
	if err := t.fetchNames(ctx); err != nil {
		return nil, err
	}
	p := &picked{names: t.names}
	defer func() { err = errors.Join(err, p.close()) }()
	if p.chosen, err = entry.Fetch(ctx, t.depot.Bucket(), t.path("chosen"), t.share.ChosenOf, t.share.FirstCell, t.share.EndCell, t.cells()); err != nil {
		return nil, err
	}
	p.scratch = append(p.scratch, p.chosen)
	for i := range t.share.LeftOf[0] {
		lists := make([]entry.Stored, len(t.share.LeftOf))
		for part, of := range t.share.LeftOf {
			lists[part] = of[i]
		}
		left, err := entry.Fetch(ctx, t.depot.Bucket(), t.path(fmt.Sprintf("left%d", i)), lists, t.share.FirstCell, t.share.EndCell, t.cells())
		if err != nil {
			return nil, err
		}
		p.scratch, p.left = append(p.scratch, left), append(p.left, left)
	}
	packed, err := spool.FetchBytes(ctx, t.depot.Bucket(), &t.share.Groups)
	if err != nil {
		return nil, err
	}
	done := &writeDone{}
	for i, groups := range pack.DecodeGroups(packed) {
		n := t.share.Partition + i
		w := partitionWriter{t.req.Scratch, t.Memory, t.fileFormat(), p, &pack.Partition{Groups: groups}}
		urls, spellings, err := w.writeFiles(ctx, n)
		if err != nil {
			return nil, fmt.Errorf("partition %d: %w", n, err)
		}
		var out writtenPart
		if out.URLs, err = t.depot.Commit(ctx, urls, fmt.Sprintf("%s-%d", planfile.URLs, n)); err == nil && spellings.Path != "" {
			out.Spellings = new(manifest.File)
			*out.Spellings, err = t.depot.Commit(ctx, spellings, fmt.Sprintf("%s-%d", planfile.Spellings, n))
		}
		if err != nil {
			return nil, err
		}
		out.URLs.Dataset = planfile.URLs
		if out.Spellings != nil {
			out.Spellings.Dataset = planfile.Spellings
		}
		done.Partitions = append(done.Partitions, out)
	}
	return done, nil
}

func (t *task) fetchNames(ctx context.Context) error {
	packed, err := spool.FetchBytes(ctx, t.depot.Bucket(), &t.share.Names)
	if err != nil {
		return err
	}
	return t.names.Unpack(packed)
}

package rewrite

import (
	"context"
	"iter"
	"path/filepath"
	"reflect"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

// kind says how to rewrite a Parquet file or a run with rows of one type.
type kind struct {
	rows    reflect.Type
	rewrite func(ctx context.Context, r *Rewriter, f *manifest.File) (*Rewritten, error)
}

// The datasets of plan files (manifest.Plan).
const (
	planPart    = "plan"
	planRefused = "refused"
	planOptOut  = "opt_out"
)

// kinds has the files with rows that may name something, by the name of the dataset. Files of pages
// and texts have other rows until they are published (schema.WorkingPage, WorkingText), and working files have the prefix "work/".
var kinds = map[string]kind{
	stages.FileCaptures:              of[schema.Capture](stages.FileCaptures),
	stages.FileFetches:               of[schema.Fetch](stages.FileFetches),
	stages.FileRequests:              of[schema.Request](stages.FileRequests),
	stages.FilePages:                 of[schema.Page](stages.FilePages),
	stages.FileText:                  of[schema.Text](stages.FileText),
	stages.FileLinks:                 of[schema.Link](stages.FileLinks),
	stages.FileLinkSets:              of[schema.LinkSet](stages.FileLinkSets),
	stages.FileDuplicates:            of[schema.Duplicate](stages.FileDuplicates),
	stages.FileHosts:                 of[schema.Host](stages.FileHosts),
	stages.FileDomains:               of[schema.Domain](stages.FileDomains),
	stages.FileURLs:                  of[schema.URLRecord](stages.FileURLs),
	stages.FileSkips:                 of[schema.Skip](stages.FileSkips),
	stages.FileRobots:                of[schema.RobotsFile](stages.FileRobots),
	work(stages.FilePages):           of[schema.WorkingPage](stages.FilePages),
	work(stages.FileText):            of[schema.WorkingText](stages.FileText),
	work(stages.FileSitemaps):        of[schema.Sitemap](stages.FileSitemaps),
	work(stages.FileHostEdges):       of[schema.HostEdge](stages.FileHostEdges),
	work(stages.FileHosts):           of[schema.Host](stages.FileHosts),
	work(stages.FileInlinks):         of[schema.Inlink](stages.FileInlinks),
	work(stages.FileURLsBase):        of[schema.URLRecord](stages.FileURLsBase),
	work(stages.FileRepresentatives): of[schema.Representative](stages.FileRepresentatives),
	work(stages.FileTargets):         runOf(stages.FileTargets, func(t *schema.TargetLinks) int32 { return t.Bucket }),
	work(stages.FileRedirects):       runOf(stages.FileRedirects, func(t *schema.Redirect) int32 { return t.Bucket }),
	work(stages.FileVerdicts):        runOf(stages.FileVerdicts, func(t *schema.Verdict) int32 { return t.Bucket }),
	stages.FileStages:                of[schema.StageAttempt](stages.FileStages),
	planPart:                         of[schema.PlannedRow](planPart),
	planRefused:                      of[schema.Refused](planRefused),
	planOptOut:                       of[schema.OptOut](planOptOut),
}

func work(dataset string) string { return "work/" + dataset }

func of[T any](dataset string) kind {
	t := reflect.TypeFor[T]()
	return kind{t, func(ctx context.Context, r *Rewriter, f *manifest.File) (*Rewritten, error) {
		open := func() (*table.Reader[T], error) { return table.Open[T](ctx, r.Bucket, f.Key) }
		e := newEditor[T](r, dataset, f)
		changes, err := e.anything(ctx, func() (store.Object, error) { return r.Bucket.Open(ctx, f.Key) }, open)
		if err != nil || !changes {
			return e.unchanged(), err
		}
		opts, notes, err := r.layoutOf(ctx, f)
		if err != nil {
			return nil, err
		}
		if f.Dataset == stages.FileLinkSets {
			opts = append(opts, table.Packed())
		}
		in, err := open()
		if err != nil {
			return nil, err
		}
		defer in.Close() // nolint:errcheck // nothing was written
		w, err := table.NewWriter[T](r.path(), opts...)
		if err != nil {
			return nil, err
		}
		defer w.Abort()
		for _, n := range notes {
			w.Note(n[0], n[1])
		}
		for row, err := range e.rows(in.All(ctx)) {
			if err != nil {
				return nil, err
			}
			if err := w.Append(row); err != nil {
				return nil, err
			}
		}
		l, err := w.Close()
		if err != nil {
			return nil, err
		}
		return e.result(l), nil
	}}
}

// runOf is like of for runs. A run is a sequence of sections, one for each bucket.
func runOf[T any](dataset string, bucketOf func(*T) int32) kind {
	return kind{reflect.TypeFor[T](), func(ctx context.Context, r *Rewriter, f *manifest.File) (*Rewritten, error) {
		sections, err := f.Sections()
		if err != nil {
			return nil, err
		}
		e := newEditor[T](r, dataset, f)
		changes := false
		for _, s := range sections {
			open := func() (*table.Reader[T], error) { return table.OpenSection[T](ctx, r.Bucket, s) }
			object := func() (store.Object, error) { return manifest.OpenSection(ctx, r.Bucket, s) }
			if changes, err = e.anything(ctx, object, open); err != nil {
				return nil, err
			} else if changes {
				break
			}
		}
		if !changes {
			return e.unchanged(), nil
		}
		opts, _, err := r.sectionLayout(ctx, sections[0])
		if err != nil {
			return nil, err
		}
		rows := func(yield func(T, error) bool) {
			for _, s := range sections {
				in, err := table.OpenSection[T](ctx, r.Bucket, s)
				if err != nil {
					yield(*new(T), err)
					return
				}
				for row, err := range e.rows(in.All(ctx)) {
					if err != nil {
						yield(*new(T), err)
						return
					}
					if !yield(*row, nil) {
						return
					}
				}
			}
		}
		l, err := table.WriteRun(r.path(), iter.Seq2[T, error](rows), bucketOf, opts...)
		if err != nil {
			return nil, err
		}
		return e.result(l), nil
	}}
}

// editor edits the rows of a file.
type editor[T any] struct {
	r       *Rewriter
	file    *manifest.File
	dataset string
	cells   []cell
	adjust  func(row *T) bool             // reports whether it changed a row that stays; may be nil
	within  func(row *T) (changed, error) // edits the links in a row; nil for rows of other kinds
	insert  []T                           // rows to add, in the order of the file
	before  func(a, b *T) bool
	at      int32 // position of the next row
	out     Rewritten
	// unscanned means that the columns alone do not tell whether rows change.
	unscanned bool
}

func newEditor[T any](r *Rewriter, dataset string, f *manifest.File) *editor[T] {
	e := &editor[T]{r: r, file: f, dataset: dataset, cells: cellsOf(dataset, reflect.TypeFor[T]())}
	e.adjust, e.insert, e.before = adjustments[T](r, f)
	e.within, _ = any(r.editLinks).(func(*T) (changed, error))
	e.unscanned = e.within != nil || f.Dataset == stages.FileFetches && len(r.droppedRows(f)) > 0
	return e
}

// anything reports whether a file or a section of a run changes. It reads rows only if scan finds a name.
func (e *editor[T]) anything(ctx context.Context, object func() (store.Object, error), open func() (*table.Reader[T], error)) (bool, error) {
	if len(e.insert) > 0 {
		return true, nil
	}
	if !e.unscanned {
		affected, mentions, err := e.r.quick(ctx, object, e.cells)
		if err != nil || !affected {
			e.out.Mentions += mentions
			return false, err
		}
	}
	in, err := open()
	if err != nil {
		return false, err
	}
	defer in.Close() // nolint:errcheck // nothing was written
	for row, err := range in.All(ctx) {
		if err != nil {
			return false, err
		}
		c, err := e.edit(&row)
		if err != nil || c.dropped || c.adjusted || c.cleared+c.links > 0 {
			return true, err
		}
		e.out.Mentions += int64(c.mentions)
	}
	return false, nil
}

// edit edits a row.
func (e *editor[T]) edit(row *T) (c changed, err error) {
	// A representative that goes is replaced and not cleared, so adjust comes first.
	adjusted := e.adjust != nil && e.adjust(row)
	c = apply(e.r.Matcher, e.cells, reflect.ValueOf(row).Elem())
	if e.within != nil && !c.dropped {
		c, err = e.within(row)
	}
	c.adjusted = adjusted
	return c, err
}

// rows yields the edited rows, with the rows to add.
func (e *editor[T]) rows(in iter.Seq2[T, error]) iter.Seq2[*T, error] {
	e.out.Mentions = 0
	return func(yield func(*T, error) bool) {
		for row, err := range in {
			if err != nil {
				yield(nil, err)
				return
			}
			for len(e.insert) > 0 && e.before(&e.insert[0], &row) {
				added := e.insert[0]
				e.insert = e.insert[1:]
				if !yield(&added, nil) {
					return
				}
			}
			c, err := e.edit(&row)
			if err != nil {
				yield(nil, err)
				return
			}
			e.at++
			if c.dropped {
				e.out.Dropped += int64(max(1, c.links))
				if e.dataset == planPart {
					e.out.DroppedRows = append(e.out.DroppedRows, e.at-1)
				}
				continue
			}
			switch {
			case c.cleared > 0:
				e.out.Cleared++
			case c.adjusted:
				e.out.Adjusted++
			}
			e.out.Dropped += int64(c.links)
			e.out.Mentions += int64(c.mentions)
			if !yield(&row, nil) {
				return
			}
		}
		for ; len(e.insert) > 0; e.insert = e.insert[1:] {
			if !yield(&e.insert[0], nil) {
				return
			}
		}
	}
}

// unchanged returns the result for a file that stays as it is, which is nil if it mentions no target.
func (e *editor[T]) unchanged() *Rewritten {
	if e.out.Mentions == 0 {
		return nil
	}
	return &Rewritten{File: *e.file, Mentions: e.out.Mentions}
}

func (e *editor[T]) result(l table.Local) *Rewritten {
	e.out.File = l.File(e.file.Dataset, e.file.Key)
	e.out.File.Subset, e.out.Path = e.file.Subset, l.Path
	return &e.out
}

// path returns the path of the new content.
func (r *Rewriter) path() string { return filepath.Join(r.Scratch, "rewritten") }

// layoutOf returns the options that give a file the layout of the stored one, and the file's notes.
func (r *Rewriter) layoutOf(ctx context.Context, f *manifest.File) ([]table.WriterOption, [][2]string, error) {
	obj, err := r.Bucket.Open(ctx, f.Key)
	if err != nil {
		return nil, nil, err
	}
	defer obj.Close() // nolint:errcheck // nothing was written
	return layoutIn(obj, f.Key, obj.Size())
}

func (r *Rewriter) sectionLayout(ctx context.Context, s manifest.Section) ([]table.WriterOption, [][2]string, error) {
	obj, err := manifest.OpenSection(ctx, r.Bucket, s)
	if err != nil {
		return nil, nil, err
	}
	defer obj.Close() // nolint:errcheck // nothing was written
	return layoutIn(obj, s.Key, obj.Size())
}

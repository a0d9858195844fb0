package planner

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/entry"
	"crawlbatch.io/crawlbatch/planner/scope"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/planner/source/listed"
)

// batchEntries is the number of entries that a worker takes at a time.
const batchEntries = 256

// newListed returns a set for the URLs that sources list, or nil if there is no history.
func (r *rules) newListed(history []source.Known) *listed.Set {
	if len(history) == 0 {
		return nil
	}
	named := listed.New(r.fewListed, r.listedBytes)
	named.WithPlanned = r.canonical != r.canonical.Plain()
	return named
}

// ingested counts what ingest has read.
type ingested struct {
	Entries   []SourceCount               // of each source
	Counts    map[schema.SkipReason]int64 // refusals for each reason
	Sources   map[int]int64               // refusals by the number of the source
	TakenDown int64                       // entries that were taken down
}

// batch is a run of entries of one source.
type batch struct {
	entries []source.Entry
	first   entry.Seq
}

// ingest canonicalizes all entries in parallel, refuses entries for reasons other than budgets, and
// sorts the rest as records. Every record carries its place in the sources, so the result does not
// depend on the order in which workers finish. After the sources, ingest reads the rows of earlier
// rounds.
func ingest(ctx context.Context, r *rules, req Request, records *entry.Sorters, refused *sorters[entry.Refusal], names *entry.Names) (_ *ingested, err error) {
	if n := len(req.Sources) + len(req.History); n > entry.MaxSources {
		return nil, fmt.Errorf("%w: %d sources, at most %d", ErrConfig, n, entry.MaxSources)
	}
	named := r.newListed(req.History)
	workers := make([]*worker, r.Workers)
	for i := range workers {
		// Records get two thirds of the memory, because refusals are fewer.
		w := &worker{rules: r, listed: named, records: records.Sorter(r.Memory / int64(r.Workers) * 2 / 3)}
		workers[i] = w
		if w.refused, err = newRefusals(refused, r.Memory/int64(r.Workers)/6); err != nil {
			return nil, err
		}
	}
	done := &ingested{Counts: map[schema.SkipReason]int64{}, Sources: map[int]int64{}}
	if done.Entries, err = ingestSources(ctx, workers, req.Sources, names, 0); err != nil {
		return nil, err
	}
	for i, known := range req.History {
		for _, w := range workers {
			w.listed = nil
		}
		known.Tell(named)
		of, err := ingestSources(ctx, workers, []source.Source{known}, names, len(req.Sources)+i)
		if err != nil {
			return nil, err
		}
		done.Entries = append(done.Entries, of...)
	}
	for _, w := range workers {
		done.add(w.refused)
	}
	return done, nil
}

// add adds the counts of refusals.
func (in *ingested) add(r *refusals) {
	for reason, n := range r.counts {
		in.Counts[reason] += n
	}
	for i, n := range r.sources {
		in.Sources[i] += n
	}
	in.TakenDown += r.takenDown
}

// ingestSources passes the entries of sources to workers, and notes the names of their files. The
// parameter first is the number of the first source.
func ingestSources(ctx context.Context, workers []*worker, sources []source.Source, names *entry.Names, first int) (entries []SourceCount, err error) {
	g, ctx := errgroup.WithContext(ctx)
	batches := make(chan batch, len(workers))
	g.Go(func() error {
		defer close(batches)
		for i, s := range sources {
			n, err := feed(ctx, entry.NewSeq(first+i, 0), s, names, batches, workers[0].note)
			count := SourceCount{Name: s.Name(), Entries: n}
			if errors.Is(err, source.ErrNoMatch) {
				count.noMatch, err = err, nil
			}
			if err != nil {
				return err
			}
			entries = append(entries, count)
		}
		return nil
	})
	for _, w := range workers {
		g.Go(func() error { return w.run(batches) })
	}
	return entries, g.Wait()
}

// SourceCount counts the entries of one source.
type SourceCount struct {
	Name    string
	Entries int64 // entries that the plan should include
	Refused int64 // refused entries, except duplicates
	noMatch error // the error of a source whose condition no record meets
}

// NoMatch reports whether the source has no entries because no record meets its condition.
func (c SourceCount) NoMatch() bool { return c.noMatch != nil }

// checkNoMatch returns the error of the first source whose condition no record meets, if no source has
// an entry.
func checkNoMatch(counts []SourceCount) (err error) {
	for _, c := range counts {
		if c.Entries > 0 {
			return nil
		}
		if err == nil {
			err = c.noMatch
		}
	}
	return err
}

// feed cuts a source into batches, and notes each. It returns the number of entries that the plan should include.
func feed(ctx context.Context, first entry.Seq, s source.Source, names *entry.Names, batches chan<- batch, note func(verb string, n int64, of string)) (due int64, err error) {
	n, of := int64(0), "entries of "+s.Name()
	b := batch{first: first}
	send := func() error {
		select {
		case batches <- b:
			b = batch{entries: make([]source.Entry, 0, batchEntries), first: first + entry.Seq(n)}
			note("read", n, of)
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for e, err := range s.Entries(ctx) {
		if err != nil {
			return due, err
		}
		names.Note(first+entry.Seq(n), &e, s)
		b.entries = append(b.entries, e)
		n++
		if e.Due {
			due++
		}
		if len(b.entries) == batchEntries {
			if err := send(); err != nil {
				return due, err
			}
		}
	}
	return due, send()
}

// worker holds the state of one goroutine of ingest.
type worker struct {
	*rules
	records *entry.Sorter
	refused *refusals
	domains urlkey.Domains
	listed  *listed.Set  // gets the URLs that sources name; nil if no function needs them
	named   []urlkey.Key // URLs for listed
}

func (w *worker) run(batches <-chan batch) error {
	for b := range batches {
		for i := range b.entries {
			if err := w.take(&b.entries[i], b.first+entry.Seq(i)); err != nil {
				return err
			}
		}
		if len(w.named) > 0 {
			w.listed.Add(w.named...)
			w.named = w.named[:0]
		}
	}
	return nil
}

// take checks one entry and adds it to the records or to the refusals. A refused URL is added to both
// if it counts in the budgets.
func (w *worker) take(e *source.Entry, s entry.Seq) error {
	k, sent, err := w.canonical.SentUnsorted(e.URL, "", &w.domains)
	if scope.TakenDown(w.Gone, w.canonical, e, k.URL, err) {
		w.refused.takenDown++
		return nil
	}
	if e.Broken != "" {
		return w.refused.addText(e, s, schema.SkipBadRecord, entry.Excerpt(e.Broken))
	}
	if err != nil {
		return w.refused.addText(e, s, reasonOf(err), detailOf(err))
	}
	if e.History && k.URL != e.URL {
		return nil // the config changes the URL, so the history of the given URL belongs to another URL
	}
	renamed := k.URL != e.URL && !e.Listed && w.canonical != w.canonical.Plain()
	form := w.form(k.URL, sent, e)
	text, plannedBy := e.URL, e.Planned
	if renamed { // the URL gets the history of its own form
		e = &source.Entry{URL: e.URL, File: e.File, Due: e.Due, DueReason: e.DueReason, Priority: e.Priority, Depth: e.Depth, Listing: e.Listing}
	}
	if !e.Due && form.Sent != "" { // an old form out of scope does not take the URL's history away
		if reason, _ := w.scope.Refusal(k.URL, form.Sent); reason != "" {
			form = schema.Form{}
		}
	}
	given := e
	if e, err = w.accepted(k, e, text, form, s); e == nil || err != nil {
		return err
	}
	if e != given {
		form = schema.Form{}
	}
	if w.listed != nil && e.Due {
		w.named = append(w.named, k)
	}
	rec := entry.New(k, e, form, s)
	if e.Listed {
		rec.Merged = int32(w.canonical.Merged(text, "", k.URL, sent))
	} else if rec.GaveContent = e.Form.Of(e.URL); rec.GaveContent == k.URL { // form may have dropped the form that gave the content
		rec.GaveContent = ""
	}
	if renamed {
		rec.Due, rec.Planned = false, 0
		if rec.Renamed = e.Due; e.Due {
			rec.RenamedPlanned = plannedBy
		}
	}
	return w.records.Add(&rec)
}

// accepted returns an entry that the plan accepts. It adds any other due entry to the refusals, and returns
// what must be recorded of a refused entry that counts in the budgets, else nil.
func (w *worker) accepted(k urlkey.Key, e *source.Entry, text string, form schema.Form, s entry.Seq) (*source.Entry, error) {
	reason, detail := w.refusalOf(k, form.Sent, text, "", e.Depth)
	if reason == "" {
		return e, nil
	}
	if e.Due {
		if err := w.refused.addURL(k, s, schema.Refused{
			Source: entry.Excerpt(e.File), Line: e.Line, Depth: e.Depth, Reason: reason, Detail: detail, Form: form,
		}); err != nil {
			return nil, err
		}
		e = &source.Entry{Depth: e.Depth, Spent: e.Spent}
	}
	if !e.Spent {
		return nil, nil
	}
	return e, nil
}

// form returns the form that an entry gives its URL. sent is what the entry's text gives. A form from an earlier round
// counts only if this config makes the same URL of it: with another list of plan.strip_params, for example, it may be
// another.
func (w *worker) form(url, sent string, e *source.Entry) schema.Form {
	if e.Listed {
		return schema.Form{Sent: sent, SentFrom: schema.SentBySource}
	}
	f := e.Form
	if f.Sent == "" && url == e.URL {
		return f
	}
	asked := f.Of(e.URL)
	of, same, err := w.canonical.SentURL(asked, "")
	if err != nil || of != url {
		return schema.Form{Sent: sent}
	}
	if f.Sent = same; f.Of(url) != asked && f.SentFrom == schema.SentAnswered { // rules changed it, so it has not answered
		f.SentFrom = schema.SentByDomain
	}
	return f
}

// stoppedBy reports whether the host, or a domain above the host, is stopped, and returns the
// reason.
func (r *rules) stoppedBy(k urlkey.Key) (why string, ok bool) {
	if why = r.Stops.Reason(k.Host, k.Domain); why != "" || len(r.Stopped) == 0 {
		return why, why != ""
	}
	name, _ := urlkey.SplitPort(k.Host)
	for name != "" && !ok {
		why, ok = r.Stopped[name]
		_, name, _ = strings.Cut(name, ".")
	}
	return why, ok
}

// refusalReason returns the reason why a plan refuses the URL, or "". It ignores budgets.
func (r *rules) refusalReason(k urlkey.Key, sent string, depth int32) (reason schema.SkipReason, detail string) {
	if why, ok := r.stoppedBy(k); ok {
		return schema.SkipStopped, why
	}
	if reason, detail := r.scope.Refusal(k.URL, sent); reason != "" {
		return reason, detail
	}
	if int(depth) > r.MaxDepth {
		return schema.SkipDepth, fmt.Sprintf("max_depth %d", r.MaxDepth)
	}
	return "", ""
}

// refusalOf is like refusalReason, for a text and its URL k. The opt-out list may also name the URL
// that the text has without rules.
func (r *rules) refusalOf(k urlkey.Key, sent, text, base string, depth int32) (reason schema.SkipReason, detail string) {
	reason, detail = r.refusalReason(k, sent, depth)
	if plain := r.canonical.Plain(); reason == "" && r.OptOut != nil && plain != r.canonical {
		if url, err := plain.URL(text, base); err == nil && url != k.URL {
			if entry, ok := r.OptOut.Refuses(url, ""); ok {
				return schema.SkipOptOut, entry
			}
		}
	}
	return reason, detail
}

// Judge returns the keys of the URL in a text, and the reason why a plan refuses the URL. It
// ignores budgets. If the plan accepts the URL, the reason is "".
func Judge(cfg Config, text, base string) (k urlkey.Key, reason schema.SkipReason, detail string, err error) {
	r, err := cfg.rules()
	if err != nil {
		return k, "", "", err
	}
	k, sent, err := r.canonical.Sent(text, base)
	if err != nil {
		for _, known := range []error{urlkey.ErrNotURL, urlkey.ErrScheme, urlkey.ErrHost, urlkey.ErrTooLong, urlkey.ErrRewrite} {
			if errors.Is(err, known) {
				return k, reasonOf(err), known.Error(), nil
			}
		}
		return k, "", "", err
	}
	reason, detail = r.refusalOf(k, sent, text, base, 0)
	return k, reason, detail, nil
}

// Keys returns a function that makes a listed URL canonical as a plan does.
func Keys(cfg Config) (func(text string) (urlkey.Key, error), error) {
	r, err := cfg.rules()
	if err != nil {
		return nil, err
	}
	return func(text string) (urlkey.Key, error) {
		return r.canonical.Canonical(text, "")
	}, nil
}

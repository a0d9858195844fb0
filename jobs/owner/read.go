package owner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// Question asks what a crawl did to a target.
type Question struct {
	Bucket  store.Bucket
	Crawl   string
	Earlier []string       // other crawls to ask, oldest first; the answer lacks pruned ones, and says so
	Config  *config.Config // config of Crawl
	Target  Target
	Scratch string // directory for sorting
}

// round is a round of the crawl with the files that may name the target.
type round struct {
	name     string // such as 2026-11.0
	number   int
	finished bool
	files    []manifest.File
	planned  []string // keys of the plan's parts, if the round is unfinished
}

// keys returns the keys of the round's files that belong to a dataset and, unless subset is "", to
// this subset of it.
func (r *round) keys(dataset, subset string) (keys []string) {
	for _, f := range r.files {
		if f.Dataset == dataset && (subset == "" || f.Subset == subset) {
			keys = append(keys, f.Key)
		}
	}
	return keys
}

// wanted reports whether an answer reads a dataset.
func wanted(dataset string) bool {
	return dataset == stages.FileRequests || dataset == stages.FileFetches || dataset == stages.FileCaptures || dataset == stages.FileHosts
}

// rounds returns the finished rounds of the crawl, and the round after them if it has a plan.
func (q *Question) rounds(ctx context.Context) ([]*round, error) {
	sealed, err := roundstate.Sealed(ctx, q.Bucket, q.Crawl)
	if err != nil {
		return nil, err
	}
	var rounds []*round
	for _, s := range sealed {
		want := roundstate.Selection{Dataset: wanted, Bucket: urlkey.Bucket(q.Target.Domain, s.Buckets), Buckets: s.Buckets}
		filled, err := roundstate.WithFiles(ctx, q.Bucket, []*manifest.Sealed{s}, want)
		if err != nil {
			return nil, err
		}
		rounds = append(rounds, &round{name: fmt.Sprintf("%s.%d", q.Crawl, s.Round), number: s.Round, finished: true, files: filled[0].Files})
	}
	plan, _, err := roundstate.FindPlan(ctx, q.Bucket, q.Crawl, len(sealed))
	if errors.Is(err, roundstate.ErrNoPlan) {
		return rounds, nil
	}
	if err != nil {
		return nil, err
	}
	last := &round{name: fmt.Sprintf("%s.%d", q.Crawl, plan.Round)}
	bucket := urlkey.Bucket(q.Target.Domain, plan.Buckets)
	for _, p := range plan.Partitions {
		if p.Bucket != bucket {
			continue
		}
		last.planned = append(last.planned, p.File.Key)
		var c manifest.Checkpoint
		_, _, err := manifest.Load(ctx, q.Bucket, layout.Checkpoint(q.Crawl, plan.Round, p.Partition), &c)
		if errors.Is(err, store.ErrNotFound) {
			continue // nothing of the partition was fetched
		}
		if err != nil {
			return nil, err
		}
		if c.Plan == plan.ID {
			last.files = append(last.files, c.Files...)
		}
	}
	return append(rounds, last), nil
}

// plannedHost holds the columns of a plan's part that an answer reads.
type plannedHost struct {
	Host string `parquet:"host"`
}

// capture holds the columns of captures that an answer reads.
type capture struct {
	URL    string `parquet:"url"`
	File   string `parquet:"warc_filename"`
	Length int32  `parquet:"warc_record_length"`
}

// byHost limits a reader to row groups that may have rows of the target, if the column host is
// sorted.
func (t Target) byHost() []table.ReaderOption {
	if t.Host == "" {
		return nil
	}
	return []table.ReaderOption{table.StringRange("host", t.Host, t.Host)}
}

// bySURT limits a reader to row groups that may have URLs of the target.
func (t Target) bySURT() []table.ReaderOption {
	return []table.ReaderOption{table.StringRange("url_surtkey", t.surt, t.surt+"\xff")}
}

// requestKey orders the requests of a round.
func requestKey(k table.Key, r *schema.Request) table.Key {
	return k.Text(r.Host).Int(int64(r.Start)).Text(r.URL)
}

// requests yields a round's requests to the target, sorted by host and time.
func (q *Question) requests(ctx context.Context, r *round) iter.Seq2[schema.Request, error] {
	matches := q.Target.matcher()
	keys := r.keys(stages.FileRequests, "")
	if r.finished { // a domain is in one partition, so at most one of the parts has rows
		return filtered(table.Concat[schema.Request](ctx, q.Bucket, keys, q.Target.byHost()...), func(row *schema.Request) bool { return matches(row.Host) })
	}
	return func(yield func(schema.Request, error) bool) {
		sorter, err := table.NewSorter(q.Scratch, requestKey, 0)
		if err != nil {
			yield(schema.Request{}, err)
			return
		}
		defer sorter.Close()
		for row, err := range table.Concat[schema.Request](ctx, q.Bucket, keys, q.Target.byHost()...) {
			if err == nil && matches(row.Host) {
				err = sorter.Add(&row)
			}
			if err != nil {
				yield(schema.Request{}, err)
				return
			}
		}
		sorter.Sorted(ctx)(yield)
	}
}

// filtered yields the accepted rows and the errors of a sequence.
func filtered[T any](rows iter.Seq2[T, error], accepts func(*T) bool) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for row, err := range rows {
			if (err != nil || accepts(&row)) && !yield(row, err) {
				return
			}
		}
	}
}

// fetches yields the outcomes of planned URLs of the target.
func (q *Question) fetches(ctx context.Context, r *round) iter.Seq2[schema.Fetch, error] {
	matches := q.Target.matcher()
	return filtered(table.Concat[schema.Fetch](ctx, q.Bucket, r.keys(stages.FileFetches, ""), q.Target.bySURT()...), func(f *schema.Fetch) bool { return matches(f.Host) })
}

// captures calls use with each response of the target that was stored.
func (q *Question) captures(ctx context.Context, r *round, use func(subset string, c *capture) error) error {
	matches := q.Target.matcher()
	for _, subset := range schema.Subsets {
		for c, err := range table.Concat[capture](ctx, q.Bucket, r.keys(stages.FileCaptures, subset), q.Target.bySURT()...) {
			if err == nil && matches(hostOf(c.URL)) {
				err = use(subset, &c)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// hosts yields those rows of the hosts dataset of a finished round that belong to the target.
func (q *Question) hosts(ctx context.Context, r *round) iter.Seq2[schema.Host, error] {
	matches := q.Target.matcher()
	return filtered(table.Concat[schema.Host](ctx, q.Bucket, r.keys(stages.FileHosts, ""), q.Target.byHost()...), func(h *schema.Host) bool { return matches(h.Host) })
}

// planned returns the number of URLs of the target in the plan of an unfinished round.
func (q *Question) planned(ctx context.Context, r *round) (n int64, err error) {
	matches := q.Target.matcher()
	for row, err := range table.Concat[plannedHost](ctx, q.Bucket, r.planned, q.Target.byHost()...) {
		if err != nil {
			return 0, err
		}
		if matches(row.Host) {
			n++
		}
	}
	return n, nil
}

// Known returns nil if a round planned or requested a URL of the target. Otherwise its error wraps
// ErrUnknown and names known hosts of the domain.
func (q *Question) Known(ctx context.Context) error {
	rounds, err := q.rounds(ctx)
	if err != nil {
		return err
	}
	for _, r := range rounds {
		for _, err := range q.hosts(ctx, r) {
			return lost(err) // the first row is enough
		}
		if n, err := q.planned(ctx, r); err != nil || n > 0 {
			return lost(err)
		}
	}
	return q.unknown(ctx, rounds)
}

// unknown returns the error about an unknown target. The error names known hosts of its domain, or else
// known hosts with a similar name.
func (q *Question) unknown(ctx context.Context, rounds []*round) error {
	name := cmp.Or(q.Target.Host, q.Target.Domain)
	near, similar := nearest{host: name, most: math.MaxInt}, nearest{host: name, most: min(3, len(name)/4)}
	matches := Target{Domain: q.Target.Domain}.matcher()
	for _, r := range rounds {
		for h, err := range table.Concat[schema.Host](ctx, q.Bucket, r.keys(stages.FileHosts, "")) {
			if err != nil {
				return lost(err)
			}
			if h.Domain == q.Target.Domain {
				near.add(h.Host)
			} else if q.Target.Host != "" {
				similar.add(h.Host)
			} else {
				similar.add(h.Domain)
			}
		}
		for row, err := range table.Concat[plannedHost](ctx, q.Bucket, r.planned) {
			if err != nil {
				return lost(err)
			}
			if matches(row.Host) {
				near.add(row.Host)
			} else {
				similar.add(row.Host)
			}
		}
	}
	switch {
	case q.Target.Host != "" && len(near.hosts) > 0:
		return fmt.Errorf("%s: %w: no round of %s planned or requested a URL there. It knows these hosts of %s: %s",
			q.Target, ErrUnknown, q.Crawl, q.Target.Domain, strings.Join(near.hosts, ", "))
	case len(similar.hosts) > 0:
		return fmt.Errorf("%s: %w: no round of %s planned or requested a URL there. It knows similar names: %s", q.Target, ErrUnknown, q.Crawl, strings.Join(similar.hosts, ", "))
	case q.Target.Host != "":
		return fmt.Errorf("%s: %w: no round of %s planned or requested a URL of this host, or of another host of %s", q.Target, ErrUnknown, q.Crawl, q.Target.Domain)
	}
	return fmt.Errorf("%s: %w: no round of %s planned or requested a URL there", q.Target, ErrUnknown, q.Crawl)
}

// lost adds advice to an error about a file that is gone.
func lost(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: a document of the crawl lists this file, so the answer would be incomplete: `crawlbatch verify` says what else is gone, and `crawlbatch retry --rebuild` recreates parts of finished rounds: %w", err, stages.ErrPermanent)
	}
	return err
}

// addOnce appends a text to a bounded list, unless the list already has the text.
func addOnce(list []string, text string, most int) []string {
	if text == "" || len(list) == most || slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}

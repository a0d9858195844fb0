// Package feedback writes the outcomes of sealed rounds to the database from whose table the URLs
// came.
//
// The input is the table of URLs, and the fetches dataset of the rounds. The output is the
// database's result table and the updated rows of the table of URLs (package sqldb).
//
// A table may spell a URL in any way, so the database cannot join its URLs with canonical ones.
// Feedback therefore reads the table once for each round, makes the URLs canonical as the planner
// does, sorts them, and merges them with fetches. It sends the matching rows to the database in
// batches, in the order of the table's key.
//
// Package feedback promises:
//
//   - every row with a planned URL gets the outcome, however the row spells the URL, and whether or not
//     it meets the condition of the address;
//   - after an interruption, the same command continues; after a complete run, it changes nothing;
//   - an outcome never replaces the outcome of a newer round;
//   - the memory is bounded by two sorts of 64 MiB and the readers of a bucket's parts; sorting
//     spills the URLs of the table to local disk.
//
// Package feedback imports jobs, planner, stages and formats packages.
package feedback

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/scratch"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/planner"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/planner/source/sqldb"
	"crawlbatch.io/crawlbatch/stages"
)

// Request says which outcomes go to which table.
type Request struct {
	Bucket store.Bucket
	Crawl  string
	Round  int                         // a sealed round, or jobs.AllRounds
	Config *config.Config              // config of the crawl
	To     string                      // address of package sqldb
	Lookup func(string) (string, bool) // the environment, for ${VAR} in the address
	Out    io.Writer                   // output for a line about each round
	Log    *slog.Logger
}

// Run writes the outcomes of the requested rounds to the database, older rounds first. Errors wrap
// jobs.ErrNotSealed, or an error of package sqldb.
func Run(ctx context.Context, r Request) (err error) {
	address, err := sqldb.Parse(r.To, r.Lookup)
	if err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	address.DropWhere()
	sealed, err := r.rounds(ctx)
	if err != nil {
		return err
	}
	keys, err := planner.Keys(worker.PlanConfig(r.Config))
	if err != nil {
		return err
	}
	dir, remove, err := scratch.New()
	if err != nil {
		return err
	}
	defer remove()
	defer func() {
		if err != nil {
			err = fmt.Errorf("feedback to %q: %w", address.Name(), err)
		}
	}()
	to, err := sqldb.Open(ctx, address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	results, err := to.OpenResults(ctx)
	if err != nil {
		return err
	}
	for _, s := range sealed {
		g := giver{Request: r, sealed: s, keys: keys, scratch: dir, table: to, results: results}
		if err := g.give(ctx); err != nil {
			return err
		}
	}
	return nil
}

// rounds returns the sealed rounds of the request.
func (r *Request) rounds(ctx context.Context) ([]*manifest.Sealed, error) {
	sealed, err := roundstate.Sealed(ctx, r.Bucket, r.Crawl)
	switch {
	case err != nil:
		return nil, err
	case len(sealed) == 0:
		return nil, fmt.Errorf("feedback of %s: %w", r.Crawl, jobs.ErrNotSealed)
	case r.Round == jobs.AllRounds:
		return sealed, nil
	case r.Round < 0 || r.Round >= len(sealed):
		return nil, fmt.Errorf("feedback of round %d of %s: its finished rounds are 0 to %d: %w", r.Round, r.Crawl, len(sealed)-1, jobs.ErrNotSealed)
	}
	return sealed[r.Round : r.Round+1], nil
}

// listed is a row of the table with its canonical URL.
type listed struct {
	Bucket int64
	SURT   string
	URL    string
	N      int64 // place of the row in the order of its key
	Key    []string
}

func listedKey(k table.Key, l *listed) table.Key {
	return k.Int(int64(l.Bucket)).Text(l.SURT).Text(l.URL)
}

// outcome holds the columns of the fetches dataset that feedback reads.
type outcome struct {
	SURT          string         `parquet:"url_surtkey"`
	URL           string         `parquet:"url"`
	Outcome       schema.Outcome `parquet:"outcome"`
	HTTPStatus    int16          `parquet:"http_status,optional"`
	FetchedAt     schema.Time    `parquet:"fetched_at,optional,timestamp(microsecond)"`
	ContentDigest string         `parquet:"content_digest,optional"`
}

func outcomeKey(k table.Key, o *outcome) table.Key { return k.Text(o.SURT).Text(o.URL) }

// match is a row of the table with its outcome.
type match struct {
	N int64
	sqldb.Result
}

func matchKey(k table.Key, m *match) table.Key { return k.Int(m.N) }

// giver writes the outcomes of one round to the database.
type giver struct {
	Request
	sealed  *manifest.Sealed
	keys    func(text string) (urlkey.Key, error) // makes URLs canonical as the plan did
	scratch string
	table   *sqldb.Table
	results *sqldb.Results

	rows    int64 // rows of the table
	matched int64 // rows whose URL the round planned
	stored  int64 // new rows of the result table
	updated int64 // changed rows of the table
}

// give writes the outcomes to the database and prints the number of changes.
func (g *giver) give(ctx context.Context) (err error) {
	plan, _, err := roundstate.FindPlan(ctx, g.Bucket, g.Crawl, g.sealed.Round)
	if err != nil {
		return err
	}
	rows, err := table.NewSorter(g.scratch, listedKey, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	matches, err := table.NewSorter(g.scratch, matchKey, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, matches.Close()) }()
	if err := g.read(ctx, rows, plan.Buckets); err != nil {
		return err
	}
	if err := g.match(ctx, rows, matches, plan); err != nil {
		return err
	}
	if err := g.apply(ctx, matches.Sorted(ctx)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(g.Out, "round %d of %s: it planned %d of the %d rows of %s; %d new rows in %s, %d rows updated (%s)\n",
		g.sealed.Round, g.Crawl, g.matched, g.rows, g.table.Name(), g.stored, g.results.Name(), g.updated, strings.Join(g.results.Columns(), ", "))
	return err
}

// read reads the rows of the table. It leaves out a row without a URL, because no round has planned
// it.
func (g *giver) read(ctx context.Context, rows *table.Sorter[listed], buckets int) error {
	for row, err := range g.table.Rows(ctx, source.MaxURL) {
		if err != nil {
			return err
		}
		g.rows = row.N
		k, err := g.keys(row.URL)
		if err != nil || row.Null {
			continue
		}
		if err := rows.Add(&listed{int64(urlkey.Bucket(k.Domain, buckets)), k.SURT, k.URL, row.N, row.Key}); err != nil {
			return err
		}
	}
	return nil
}

// match merges the rows of the table with the outcomes, bucket by bucket.
func (g *giver) match(ctx context.Context, rows *table.Sorter[listed], matches *table.Sorter[match], plan *manifest.Plan) error {
	in := table.Pull(rows.Sorted(ctx))
	defer in.Close()
	for {
		first, err := in.Peek()
		if err != nil || first == nil {
			return err
		}
		if err := g.matchBucket(ctx, in, int(first.Bucket), matches, plan); err != nil {
			return err
		}
	}
}

// matchBucket merges the rows of one bucket with the outcomes of its partitions.
func (g *giver) matchBucket(ctx context.Context, in *table.Cursor[listed], bucket int, matches *table.Sorter[match], plan *manifest.Plan) error {
	filled, err := roundstate.WithFiles(ctx, g.Bucket, []*manifest.Sealed{g.sealed}, roundstate.Selection{
		Dataset: func(name string) bool { return name == stages.FileFetches }, Bucket: bucket, Buckets: plan.Buckets,
	})
	if err != nil {
		return err
	}
	checked := manifest.NewChecked(g.Bucket)
	for _, f := range filled[0].Files {
		checked.Add(stages.RemedyFor(stages.Merge, g.Crawl, f), f)
	}
	var keys []string
	for _, p := range plan.Partitions {
		if p.Bucket == bucket {
			keys = append(keys, layout.Table(stages.FileFetches, g.sealed.Crawl, g.sealed.Round, p.Partition))
		}
	}
	outcomes := table.Pull(table.MergeFiles(ctx, checked, g.scratch, keys, outcomeKey))
	defer outcomes.Close()
	for {
		row, err := in.Peek()
		if err != nil || row == nil || int(row.Bucket) != bucket {
			return err
		}
		o, err := outcomes.Find(func(o *outcome) int { return schema.CompareURLs(o.SURT, o.URL, row.SURT, row.URL) })
		if err != nil {
			return err
		}
		if o != nil {
			g.matched++
			if err := matches.Add(&match{row.N, sqldb.Result{
				Key: row.Key, URL: o.URL, Outcome: string(o.Outcome), HTTPStatus: o.HTTPStatus, FetchedAt: o.FetchedAt, Digest: o.ContentDigest,
			}}); err != nil {
				return err
			}
		}
		if _, err := in.Next(); err != nil {
			return err
		}
	}
}

// progressRows is the number of rows after which a line is logged.
const progressRows = 1_000_000

// apply sends the matches to the database.
func (g *giver) apply(ctx context.Context, matches iter.Seq2[match, error]) error {
	var batch []sqldb.Result
	bytes, done := 0, int64(0)
	send := func() error {
		stored, updated, err := g.results.Apply(ctx, g.sealed.Crawl, g.sealed.Round, batch)
		g.stored, g.updated = g.stored+stored, g.updated+updated
		before := done
		done, batch, bytes = done+int64(len(batch)), batch[:0], 0
		if err == nil && done/progressRows > before/progressRows {
			g.Log.Info("outcomes are given back", "round", g.sealed.Round, "rows", done, "of", g.matched)
		}
		return err
	}
	for m, err := range matches {
		if err != nil {
			return err
		}
		batch, bytes = append(batch, m.Result), bytes+len(m.URL)
		if g.results.Full(len(batch), bytes) {
			if err := send(); err != nil {
				return err
			}
		}
	}
	return send()
}

package fetch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/records"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// ReparseInput is what a fetch task of a reparse reads: responses that are stored.
type ReparseInput struct {
	Task stages.Task
	Plan *manifest.Plan
	// From is the result of the fetch task that stored the responses; nil: the rows of
	// the plan say where they lie.
	From *manifest.Result
	// Archive holds the WARC files.
	Archive store.Bucket
}

// Names of what a reparse counts beside what a fetch task does.
const (
	countReparsed = "reparse.pages"    // documents parsed again
	countWithheld = "reparse.withheld" // noarchive: no copy is kept, so their rows are those of the crawl that fetched
)

// CountDamaged is the count, in the result of a reparse, of documents that could not be
// read or parsed again: their rows are those of the crawl that fetched.
const CountDamaged = "reparse.damaged"

// Reparse does the work of a fetch task without a request: it reads the responses
// that a crawl stored, or that WARC files of others hold, parses them again and
// returns the result, a function of its input, of the config and of the parser. So it
// keeps no checkpoint, and whoever comes may do it again. The error may wrap
// stages.ErrPermanent.
func Reparse(ctx context.Context, env *stages.Env, in *ReparseInput, cfg Config, parser document.Parser) (*manifest.Result, error) {
	canon, err := urlkey.New(cfg.StripParams)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", in.Task, err, stages.ErrPermanent)
	}
	r := &reparse{
		env: env, in: in, limits: cfg.Replay(parser), longest: cfg.Longest(), parser: parser, canon: canon, out: segments.New(env.Scratch, env.Format),
		archive: records.NewArchive(in.Archive, records.StoredLimit(cfg.Longest())),
	}
	defer r.archive.Close()
	defer r.out.Abort()
	if in.From != nil {
		err = r.again(ctx)
	} else {
		err = r.foreign(ctx)
	}
	if err == nil {
		err = r.finish(ctx)
	}
	switch {
	case errors.Is(err, records.ErrNoFile):
		err = fmt.Errorf("%w: the responses are parsed from it: restore it (from cold storage, or a copy), then run this again: %w", err, stages.ErrPermanent)
	case errors.Is(err, store.ErrNotFound):
		err = fmt.Errorf("%w: what is known of the responses is read from it: restore it, then run this again: %w", err, stages.ErrPermanent)
	}
	if fullDisk(err) {
		err = fmt.Errorf("the scratch directory %s has no room left: make some, or set TMPDIR to another file system: %w: %w", env.Scratch, err, stages.ErrInterrupted)
	}
	if err != nil {
		r.count(-r.urls) // the next attempt begins anew
		return nil, fmt.Errorf("%s: %w", in.Task, err)
	}
	env.Log.Info("parsed again", "pages", r.out.Counts()[countReparsed], "withheld", r.out.Counts()[countWithheld],
		"damaged", r.out.Counts()[CountDamaged], "ranges_read", r.archive.Ranges())
	return r.result(), nil
}

// reparse is one run.
type reparse struct {
	env     *stages.Env
	in      *ReparseInput
	limits  wire.Limits
	longest int64 // of any payload, bytes
	parser  document.Parser
	canon   *urlkey.Canonicalizer
	archive *records.Archive
	out     *segments.Segment
	urls    int64 // that progress was told of
}

// count tells progress of URLs whose rows are made.
func (r *reparse) count(n int64) {
	r.urls += n
	r.env.Progress.Add(stages.CountURLs, n)
}

// Files of a reparse have names of their own, in the place of those of an epoch that
// no attempt at fetching has.
const reparseEpoch = 0

// finish stores what was made.
func (r *reparse) finish(ctx context.Context) error {
	if err := r.out.Close(r.in.Task, r.in.Plan.ID, reparseEpoch, 0); err != nil {
		return err
	}
	return r.out.Upload(ctx, r.env.Bucket)
}

// remade reports whether a file of the source's result is replaced by the reparse's own;
// the others count as they are, where they lie.
func remade(f manifest.File) bool {
	switch f.Dataset {
	case stages.FilePages, stages.FileText, stages.FileLinks:
		return true
	case stages.FileCaptures:
		return f.Subset == schema.SubsetWARC
	}
	return false
}

// result lists what counts.
func (r *reparse) result() *manifest.Result {
	t := r.in.Task
	out := &manifest.Result{Task: t.String(), Stage: string(t.Stage), Partition: t.Partition, Plan: r.in.Plan.ID}
	counts := r.out.Counts()
	if r.in.From != nil {
		out.Files = slices.DeleteFunc(slices.Clone(r.in.From.Files), remade)
		for _, c := range r.in.From.Counts {
			if c.Name != "pages" && c.Name != "links" {
				counts[c.Name] = c.N // of what is as it was
			}
		}
	}
	out.Files = append(out.Files, r.out.Files()...)
	for name, n := range counts { // sorted below
		out.Counts = append(out.Counts, manifest.Count{Name: name, N: n})
	}
	slices.SortFunc(out.Counts, func(a, b manifest.Count) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func isHTTPS(url string) bool { return strings.HasPrefix(url, "https:") }

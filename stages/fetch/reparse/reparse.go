// Package reparse does the work of a fetch task but sends no requests. It reads responses that are
// stored as WARC and parses them with the current parser.
//
// The input is the result of the fetch task that stored the responses, or a plan with the places of
// records in an external archive (see response.ReplayForeign). A reparse writes the same kinds of rows as a fetch task. The
// result depends only on stored data, so a reparse needs no checkpoint, lease or epoch. Rows of
// fetches, requests, robots.txt and unplanned sitemaps stay as the fetch task wrote them. A
// document that cannot be read again (noarchive, damage) keeps its rows and their older
// parser_version. Package reparse imports packages stages, formats, wire, records, response and
// segments.
package reparse

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/takedown"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/records"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// Input is the input of a reparse task.
type Input struct {
	Task stages.Task
	Plan *manifest.Plan
	// From is the result of the fetch task that stored the responses. It is nil for an external
	// archive. The rows of the plan then give the places of the responses.
	From *manifest.Result
	// Texts is the published part of the dataset text of these responses. A page that cannot be parsed again gets its
	// text from there if `prune` deleted the texts of the segments. Empty: it gets its text from the segments.
	Texts string
	// Withhold tells that pages that say noarchive, and cannot be parsed again, keep no words (document.Withhold).
	Withhold bool
	// Archive holds the WARC files.
	Archive store.Bucket
	// Gone recognizes URLs that were taken down. No row names such a URL. A nil Gone recognizes none.
	Gone *takedown.Guard
}

// Counts in the result of a reparse, in addition to those of a fetch task.
const (
	CountReparsed = "reparse.pages"    // number of documents that were parsed again
	CountWithheld = "reparse.withheld" // number of documents that keep their rows because noarchive left no stored copy
	CountDamaged  = "reparse.damaged"  // number of documents that keep their rows because they cannot be read or parsed again
	CountDiffers  = "reparse.differs"  // number of records of other archives whose digest is not that of their bytes; their documents are parsed
)

// Run reads the stored responses, parses them and returns the result. The result depends only on
// the last four arguments. The limits are those of the crawl that fetched the responses. The query
// parameters in stripParams are removed from canonical URLs. The error may wrap stages.ErrPermanent
// or stages.ErrInterrupted.
func Run(ctx context.Context, env *stages.Env, in *Input, limits response.Limits, stripParams []string, parser document.Parser) (*manifest.Result, error) {
	canon, err := urlkey.New(stripParams)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", in.Task, err, stages.ErrPermanent)
	}
	r := &run{
		env: env, in: in, limits: limits.Replay(parser), longest: limits.Longest(), parser: parser, canon: canon, out: segments.New(env.Scratch),
		archive: records.NewArchive(in.Archive, records.StoredLimit(limits.Longest())),
	}
	defer r.archive.Close()
	defer r.out.Abort()
	if in.From != nil {
		err = r.runStored(ctx)
	} else {
		err = r.runExternal(ctx)
	}
	if err == nil {
		err = r.finish(ctx)
	}
	switch {
	case errors.Is(err, records.ErrNoFile):
		err = fmt.Errorf("%w: it holds responses to parse: restore it from cold storage or a copy, then run this command again: %w", err, stages.ErrPermanent)
	case errors.Is(err, store.ErrNotFound):
		err = fmt.Errorf("%w: it holds rows about the responses: restore it, then run this command again: %w", err, stages.ErrPermanent)
	}
	if err := segments.ScratchError(err, env.Scratch); err != nil {
		r.count(-r.urls) // the next attempt counts from 0
		return nil, fmt.Errorf("%s: %w", in.Task, err)
	}
	env.Log.Info("parsed again", "pages", r.out.Counts()[CountReparsed], "withheld", r.out.Counts()[CountWithheld],
		"damaged", r.out.Counts()[CountDamaged], "digest_differs", r.out.Counts()[CountDiffers], "ranges_read", r.archive.Ranges())
	return r.result(), nil
}

// run is the reparse of one partition.
type run struct {
	env     *stages.Env
	in      *Input
	limits  wire.Limits
	longest int64 // length of the longest payload to read, in bytes
	parser  document.Parser
	canon   *urlkey.Canonicalizer
	archive *records.Archive
	out     *segments.Segment
	urls    int64 // number of URLs counted in the progress so far
}

// count adds finished URLs to the progress.
func (r *run) count(n int64) {
	r.urls += n
	r.env.Progress.Add(stages.CountURLs, n)
}

// epoch is the epoch in the names of a reparse's files. Fetch attempts have epochs from 1.
const epoch = 0

// finish uploads the new files.
func (r *run) finish(ctx context.Context) error {
	if err := r.out.Close(r.in.Task, r.in.Plan.ID, epoch, 0); err != nil {
		return err
	}
	return r.out.Upload(ctx, r.env.Bucket)
}

// remade reports whether the reparse writes a new version of a file in the source's result. The new
// result lists the other files under their old keys.
func remade(f manifest.File) bool {
	switch f.Dataset {
	case stages.FilePages, stages.FileText, stages.FileLinkSets:
		return true
	case stages.FileCaptures:
		return f.Subset == schema.SubsetWARC
	}
	return false
}

// result lists the new files, and the source's files that the reparse does not replace.
func (r *run) result() *manifest.Result {
	t := r.in.Task
	out := &manifest.Result{Task: t.String(), Stage: string(t.Stage), Partition: t.Partition, Plan: r.in.Plan.ID}
	counts := r.out.Counts()
	if r.in.From != nil {
		out.Files = slices.DeleteFunc(slices.Clone(r.in.From.Files), remade)
		for _, c := range r.in.From.Counts {
			if c.Name != "pages" && c.Name != "links" {
				counts[c.Name] = c.N // the source's rows remain, so their count remains too
			}
		}
	}
	out.Files = append(out.Files, r.out.Files()...)
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		out.Counts = append(out.Counts, manifest.Count{Name: name, N: counts[name]})
	}
	return out
}

func isHTTPS(url string) bool { return strings.HasPrefix(url, "https:") }

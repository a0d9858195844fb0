package source

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlfilter"
	"crawlbatch.io/crawlbatch/formats/urlstate"
	"crawlbatch.io/crawlbatch/planner/source/listed"
)

// HistoryName names the source that History returns. Errors show this name.
const HistoryName = "history"

// History returns the source of what sealed rounds know about listed URLs, and about no others.
// rounds must be sorted, oldest first. No entry is due. If a URL has several entries, the first has
// its newest state.
//
// History reads the columns that a plan needs, and decodes only pages with the URLs. If few URLs are
// listed, it first asks the URL filters of the rounds, and then reads the row groups and pages that can
// hold the SURTs of these URLs. It adds the answers of the filters to answers.
func History(b store.Bucket, rounds []*manifest.Sealed, answers *FilterAnswers) Known {
	return &history{bucket: b, rounds: rounds, answers: answers}
}

// FilterAnswers counts what the URL filters of earlier rounds answered about listed URLs. A URL counts
// once for each file that has a filter.
type FilterAnswers struct {
	Absent   int64 // the filter ruled out that the file has the URL
	Found    int64 // the filter did not, and the file has the URL
	NotFound int64 // the filter did not, but the file lacks the URL: a false positive, or a URL in the skips dataset
}

type history struct {
	bucket  store.Bucket
	rounds  []*manifest.Sealed
	answers *FilterAnswers
	about   *listed.Set
}

func (h *history) Name() string { return HistoryName }

func (h *history) Tell(about *listed.Set) { h.about = about }

func (h *history) Entries(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if h.about.Empty() {
			return
		}
		for _, part := range urlstate.After(h.rounds).Parts() {
			ok, err := h.partEntries(ctx, part, yield)
			if err != nil {
				yield(Entry{}, fmt.Errorf("source %q: %w", HistoryName, err))
			}
			if !ok || err != nil {
				return
			}
		}
	}
}

// knownState holds those columns of urls that a plan needs.
type knownState struct {
	URL           string      `parquet:"url"`
	LastFetched   schema.Time `parquet:"last_fetched,optional,timestamp(microsecond)"`
	Fetches       int32       `parquet:"fetches"`
	ContentDigest string      `parquet:"content_digest,optional"`
	ETag          string      `parquet:"etag,optional"`
	LastModified  string      `parquet:"last_modified,optional"`
	ContentAt     schema.Time `parquet:"content_at,optional,timestamp(microsecond)"`
	WARCFilename  string      `parquet:"warc_filename,optional"`
	WARCRecordOff int32       `parquet:"warc_record_offset,optional"`
	WARCRecordLen int32       `parquet:"warc_record_length,optional"`
	schema.Form

	// If a source lists the URL, the newest listing is in the new plan. If not, only the URL's row of
	// an own round can plan it (OwnFrontier), which has the listings too.
	ListedFirstSource string `parquet:"listed_first_source,optional"`
	ListedFirstAt     string `parquet:"listed_first_at,optional"`
	ListedFirstRound  string `parquet:"listed_first_round,optional"`
}

// partEntries yields the entries of one file. ok is false if yield returned false.
func (h *history) partEntries(ctx context.Context, part urlstate.Part, yield func(Entry, error) bool) (ok bool, err error) {
	if part.Rows == 0 {
		return true, nil
	}
	opts := []table.ReaderOption{table.FirstIs(h.about.MayHold)}
	var perhaps, found int64 // listed URLs that the filter does not rule out, and those of them that the file has
	if urls, few := h.about.InBucket(part.Bucket, part.Buckets); few {
		var surts []string
		surts, perhaps, err = h.surtsIn(ctx, part, urls)
		if err != nil || len(surts) == 0 {
			return err == nil, err
		}
		opts = append(opts, table.StringsIn("url_surtkey", surts))
	}
	defer func() {
		if perhaps > 0 && ok {
			h.answers.Found += found
			h.answers.NotFound += perhaps - found
		}
	}()
	for row, err := range table.Concat[knownState](ctx, h.bucket, []string{part.Key}, opts...) {
		if err != nil {
			return false, err
		}
		found++
		if !yield(row.entry(), nil) {
			return false, nil
		}
	}
	return true, nil
}

// surtsIn returns the sorted SURTs of listed URLs that a file may hold, according to its URL filter, and
// the number of these URLs, or 0 if the file has no filter.
func (h *history) surtsIn(ctx context.Context, part urlstate.Part, urls []listed.URL) (surts []string, perhaps int64, err error) {
	var filter *urlfilter.Filter
	if part.Filter != nil && len(urls) > 0 {
		filter, err = urlfilter.Open(ctx, h.bucket, part.Filter.Key)
		if err != nil && !errors.Is(err, store.ErrNotFound) { // without its filter, the file may hold any URL
			return nil, 0, err
		}
	}
	for _, u := range urls {
		if filter == nil || filter.MayHold(u.URL) {
			surts = append(surts, u.SURT)
		}
	}
	if filter != nil {
		perhaps = int64(len(surts))
		h.answers.Absent += int64(len(urls)) - perhaps
	}
	return slices.Compact(surts), perhaps, nil
}

func (r *knownState) entry() Entry {
	e := Entry{
		URL: r.URL, File: HistoryName, History: true, Fetches: r.Fetches, FetchedAt: r.LastFetched,
		ContentDigest: r.ContentDigest, ETag: r.ETag, LastModified: r.LastModified,
		Content: Content{At: r.ContentAt, Filename: r.WARCFilename, Offset: r.WARCRecordOff, Length: r.WARCRecordLen},
		Form:    r.Form,
	}
	if r.ListedFirstRound != "" {
		e.Listing = &schema.Listing{ListedFirstSource: r.ListedFirstSource, ListedFirstAt: r.ListedFirstAt, ListedFirstRound: r.ListedFirstRound}
	}
	return e
}

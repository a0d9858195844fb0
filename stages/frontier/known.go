package frontier

import (
	"context"
	"iter"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

// earlier holds the columns of a URL's state after the last round that traps are learned from.
type earlier struct {
	SURT        string            `parquet:"url_surtkey"`
	URL         string            `parquet:"url"`
	Domain      string            `parquet:"domain"`
	State       schema.URLState   `parquet:"state"`
	FirstSeen   string            `parquet:"first_seen"`
	FirstSource string            `parquet:"first_source,optional"`
	LastPlanned string            `parquet:"last_planned,optional"`
	RedirectTo  string            `parquet:"redirect_to,optional"`
	Change      schema.Change     `parquet:"change,optional"`
	TextDigest  string            `parquet:"text_digest,optional"`
	SimHash     int64             `parquet:"simhash,optional"`
	TitleHash   int64             `parquet:"title_hash,optional"`
	WordCount   int32             `parquet:"word_count,optional"`
	TextShape   int64             `parquet:"text_shape,optional"`
	LinkSketch  schema.LinkSketch `parquet:"link_sketch,optional"`
}

// answer holds the columns of a row of fetches that say what became of a URL.
type answer struct {
	SURT           string         `parquet:"url_surtkey"`
	URL            string         `parquet:"url"`
	Outcome        schema.Outcome `parquet:"outcome"`
	HTTPStatus     int16          `parquet:"http_status,optional"`
	RedirectTarget string         `parquet:"redirect_target,optional"`
	FinalURL       string         `parquet:"final_url,optional"`
}

// known is what the crawl knows about a URL after the round, apart from the decision of the frontier.
type known struct {
	surt, url   string
	state       schema.URLState // "" for a URL that is only a link's target, or that was requested without a plan
	firstSource string
	redirectTo  string
	planned     bool
	answered    bool      // the round planned it
	fresh       bool      // … for the first time
	rounds      [2]string // rounds that found it first and planned it last, such as 2026-11.0
	linked      bool      // a followed link of the round leads to it
	gone        bool      // its last answer was a soft 404
	content
}

// waits reports whether links or the crawl's earlier rounds found the URL, and no round has planned it.
func (k *known) waits() bool {
	return !k.planned && k.firstSource != "" && (k.state == schema.StateFound || k.state == schema.StateSkipped)
}

func (k *known) add(i *item) {
	switch row := i.row.(type) {
	case *earlier:
		*k = known{surt: k.surt, url: k.url, state: row.State, firstSource: row.FirstSource, redirectTo: row.RedirectTo, planned: row.LastPlanned != "", rounds: [2]string{row.FirstSeen, row.LastPlanned}, gone: row.Change == schema.ChangeGone}
		if row.State == schema.StateFetched && !k.gone {
			k.content = content{
				Digest: row.TextDigest, Links: row.LinkSketch, SimHash: row.SimHash, Title: row.TitleHash, Shape: row.TextShape, Words: row.WordCount,
			}
		}
	case *answer:
		k.answered, k.fresh = true, !k.planned
		o := outcome{URL: row.URL, Outcome: row.Outcome, FinalURL: row.FinalURL}
		k.state, k.planned, k.redirectTo = schema.StateAfter(row.Outcome, row.HTTPStatus, moved(&o)), true, ""
		if k.state == schema.StateRedirected {
			if k.redirectTo = row.RedirectTarget; moved(&o) {
				k.redirectTo = row.FinalURL
			}
		}
		if row.Outcome != schema.NotModified || k.state != schema.StateFetched {
			k.content = content{}
		}
	case *page:
		if k.answered && k.state != schema.StateFetched { // such as a page of a service that blocks
			return
		}
		k.state, k.content, k.gone = schema.StateFetched, content{}, row.PageHint == schema.HintSoft404
		if words, shape := row.evidence(); words > 0 {
			k.content = content{
				Digest: row.TextDigest, Links: row.LinkSketch, SimHash: row.SimHash, Title: schema.TitleHash(row.Title), Shape: shape, Words: words,
			}
		}
	case *schema.Inlink:
		k.linked = row.Followed
	}
}

// knownURLs yields what the crawl knows about the URLs of the bucket, in the order of URLs. links is
// whether the targets of the round's links are among them.
func (i *inputs) knownURLs(ctx context.Context, links bool) iter.Seq2[*known, error] {
	return func(yield func(*known, error) bool) {
		in := &inputs{env: i.env, in: i.in, cfg: i.cfg, bucket: i.bucket, prior: i.prior}
		defer in.Close() // its inputs are only read
		for _, add := range []func(context.Context) error{in.addEarlier, in.addAnswers, in.addPages} {
			if err := add(ctx); err != nil {
				yield(nil, err)
				return
			}
		}
		if links {
			if err := in.addInlinks(ctx); err != nil {
				yield(nil, err)
				return
			}
		}
		var k *known
		for item, err := range table.Merge(ctx, itemKey, in.streams...) {
			if err != nil {
				yield(nil, err)
				return
			}
			if k == nil || item.surt != k.surt || item.url != k.url {
				if k != nil && !yield(k, nil) {
					return
				}
				k = &known{surt: item.surt, url: item.url}
			}
			k.add(&item)
		}
		if k != nil {
			yield(k, nil)
		}
	}
}

func (i *inputs) addEarlier(ctx context.Context) error {
	for _, key := range i.prior.Keys() {
		if err := addRows(ctx, i, []string{key}, func(r *earlier) (item, bool) {
			return item{surt: r.SURT, url: r.URL, row: r}, i.owns(r.Domain)
		}); err != nil {
			return err
		}
	}
	return nil
}

func (i *inputs) addAnswers(ctx context.Context) error {
	return addFiles(ctx, i, i.partitionKeys(stages.FileFetches, ""), func(a *answer) (surt, url string) { return a.SURT, a.URL })
}

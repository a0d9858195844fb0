package reducecheck

import (
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlstate"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
	"crawlbatch.io/crawlbatch/stages"
)

// capturedRow holds the columns of a URL's state that tell its last capture, and the change at its last
// answer.
type capturedRow struct {
	SURT           string        `parquet:"url_surtkey"`
	URL            string        `parquet:"url"`
	ContentDigest  string        `parquet:"content_digest,optional"`
	Change         schema.Change `parquet:"change,optional"`
	ChangeDistance *int32        `parquet:"change_distance,optional"`
	TitleChanged   *bool         `parquet:"title_changed,optional"`
	LinksAdded     *int32        `parquet:"links_added,optional"`
	LinksRemoved   *int32        `parquet:"links_removed,optional"`
	CapturedIn     string        `parquet:"captured_in,optional"`
	CaptureDigest  string        `parquet:"capture_digest,optional"`
	TextDigest     string        `parquet:"text_digest,optional"`
	SimHash        int64         `parquet:"simhash,optional"`
	TitleHash      int64         `parquet:"title_hash,optional"`
	WordCount      int32         `parquet:"word_count,optional"`

	LinkSketch schema.LinkSketch `parquet:"link_sketch,optional"`
}

// changedRow holds the columns of a published page that say what it contains and how it has changed.
type changedRow struct {
	SURT           string          `parquet:"url_surtkey"`
	URL            string          `parquet:"url"`
	ContentDigest  string          `parquet:"content_digest,optional"`
	TextDigest     string          `parquet:"text_digest,optional"`
	SimHash        int64           `parquet:"simhash"`
	Title          string          `parquet:"title,optional"`
	WordCount      int32           `parquet:"word_count"`
	PageHint       schema.PageHint `parquet:"page_hint,optional"`
	Change         schema.Change   `parquet:"change,optional"`
	ChangeDistance *int32          `parquet:"change_distance,optional"`
	TitleChanged   *bool           `parquet:"title_changed,optional"`
	LinksAdded     *int32          `parquet:"links_added,optional"`
	LinksRemoved   *int32          `parquet:"links_removed,optional"`
	Outlinks       int32           `parquet:"outlinks"`
}

// sourceRow holds the columns of a link that the sketch of its page needs.
type sourceRow struct {
	SURT   string          `parquet:"source_surtkey"`
	URL    string          `parquet:"source"`
	Target string          `parquet:"target"`
	Kind   schema.LinkKind `parquet:"kind"`
}

// changeFact is one table's row about one URL. One of the pointers is set, or targets has the target of a link.
type changeFact struct {
	surt, url    string
	earlier, now *capturedRow
	page         *changedRow
	key          string // key of the file with the page
	targets      []string
}

// ChangesFollow compares the columns about changes in pages and urls with the pages themselves and with the
// states of earlier rounds. It does not use the code of the stages. It merges the sorted tables of one
// bucket at a time, so memory holds the open parts.
func ChangesFollow(ctx context.Context, a *audit.Audit, r *audit.Round) error {
	a.Count(changesFollow, 0)
	if !r.Complete(stages.Merge) || !r.Complete(stages.Frontier) || !r.Complete(stages.Publish) {
		return nil // the tables are not complete yet
	}
	if r.Forgot { // of a reparse: pages may lack the URL that redirected to them
		a.Note("round %d, %s: not checked, because a takedown removed fetches of the round that it parses again", r.Number, changesFollow.Name)
		return nil
	}
	for bucket := range r.Plan.Buckets {
		if !a.Share.Has(bucket) {
			continue
		}
		if err := a.Skip(checkChanges(ctx, a, r, bucket), changesFollow, r); err != nil {
			return err
		}
	}
	return nil
}

// checkChanges checks the pages of one bucket.
func checkChanges(ctx context.Context, a *audit.Audit, r *audit.Round, bucket int) error {
	chain := urlstate.After(r.Earlier).Chain(bucket, r.Plan.Buckets)
	if chain.Cut() {
		a.NotePruned(r.Number, changesFollow)
		return nil
	}
	states, err := bucketKeys(ctx, r, stages.Frontier, stages.FileURLs, bucket)
	pages, err2 := partitionKeys(ctx, r, stages.Publish, stages.FilePages, bucket)
	links, err3 := partitionKeys(ctx, r, stages.Merge, stages.FileLinks, bucket)
	if err := cmp.Or(err, err2, err3); err != nil {
		return err
	}
	in := slices.Concat(
		convertObjects(ctx, a, chain.Keys(), func(_ string, row *capturedRow) changeFact {
			return changeFact{surt: row.SURT, url: row.URL, earlier: row}
		}),
		convertObjects(ctx, a, states, func(_ string, row *capturedRow) changeFact {
			return changeFact{surt: row.SURT, url: row.URL, now: row}
		}),
		convertObjects(ctx, a, pages, func(key string, row *changedRow) changeFact {
			return changeFact{surt: row.SURT, url: row.URL, page: row, key: key}
		}),
		convertObjects(ctx, a, links, func(_ string, row *sourceRow) changeFact {
			f := changeFact{surt: row.SURT, url: row.URL}
			if row.Kind != schema.KindRedirect {
				f.targets = []string{row.Target}
			}
			return f
		}))
	var all changeFact // the newest row of each table about the current URL
	judge := func() {
		if all.page != nil {
			a.Count(changesFollow, 1)
			all.judge(a, r, bucket)
		}
	}
	key := func(k table.Key, f *changeFact) table.Key { return k.Text(f.surt).Text(f.url) }
	for f, err := range merged(ctx, key, in...) {
		if err != nil {
			return err
		}
		if f.surt != all.surt || f.url != all.url {
			judge()
			all = changeFact{surt: f.surt, url: f.url}
		}
		all.earlier, all.now = cmp.Or(f.earlier, all.earlier), cmp.Or(f.now, all.now)
		if f.page != nil {
			all.page, all.key = f.page, f.key
		}
		all.targets = append(all.targets, f.targets...)
	}
	judge()
	return nil
}

// judge reports how the columns of a page and of its URL's state contradict the page and the last capture.
func (f *changeFact) judge(a *audit.Audit, r *audit.Round, bucket int) {
	wrong := func(key, format string, args ...any) {
		a.Wrong(changesFollow, r.Number, audit.URL(key, f.url), format, args...)
	}
	p, n := f.page, f.now
	urls := layout.Table(stages.FileURLs, r.Crawl, r.Number, bucket)
	if n == nil {
		wrong(urls, "it has a page, but no row in urls")
		return
	}
	want := f.wanted()
	const columns = "its columns change, change_distance, title_changed, links_added and links_removed are %s; its last capture gives %s"
	if got := (changed{p.Change, p.ChangeDistance, p.TitleChanged, p.LinksAdded, p.LinksRemoved}); got.String() != want.String() {
		wrong(f.key, columns, &got, &want)
	}
	if got := (changed{n.Change, n.ChangeDistance, n.TitleChanged, n.LinksAdded, n.LinksRemoved}); got.String() != want.String() {
		wrong(urls, columns, &got, &want)
	}
	was := f.earlier
	if p.PageHint != schema.HintSoft404 {
		was = &capturedRow{ContentDigest: p.ContentDigest, CapturedIn: nameOf(r), TextDigest: p.TextDigest, SimHash: p.SimHash, TitleHash: hashOf(p.Title), LinkSketch: n.LinkSketch}
		if p.PageHint == "" {
			was.WordCount = p.WordCount
		}
		if n.LinkSketch != "" && len(f.targets) == int(p.Outlinks) { // after a takedown, links may lack rows
			was.LinkSketch = schema.SketchLinks(slices.Values(f.targets))
		}
	}
	if wanted, got := captureText(was), captureText(n); got != wanted {
		wrong(urls, "its last capture is %s; its row says %s", wanted, got)
	}
}

// wanted returns what the columns about the page's change must be.
func (f *changeFact) wanted() changed {
	known := f.earlier != nil && f.earlier.CapturedIn != ""
	if f.page.PageHint == schema.HintSoft404 {
		if known {
			return changed{change: schema.ChangeGone}
		}
		return changed{}
	}
	if !known {
		switch {
		case f.earlier == nil || f.earlier.ContentDigest == "":
			return changed{change: schema.ChangeNew}
		case f.earlier.ContentDigest == f.page.ContentDigest:
			return changed{change: schema.ChangeNone, added: new(int32), removed: new(int32)}
		}
		return changed{}
	}
	c := changed{change: schema.ChangeText}
	c.added, c.removed = f.now.LinkSketch.Compare(f.earlier.LinkSketch)
	if f.page.TextDigest == f.earlier.TextDigest {
		c.change = schema.ChangeCosmetic
	}
	if f.page.ContentDigest == f.earlier.digest() {
		c.change, c.added, c.removed = schema.ChangeNone, new(int32), new(int32)
	}
	distance := int32(0)
	for differ := uint64(f.page.SimHash ^ f.earlier.SimHash); differ != 0; differ >>= 1 {
		distance += int32(differ & 1)
	}
	c.distance, c.title = &distance, new(hashOf(f.page.Title) != f.earlier.TitleHash)
	return c
}

// digest returns the payload digest of the last capture.
func (r *capturedRow) digest() string { return cmp.Or(r.CaptureDigest, r.ContentDigest) }

// hashOf returns the hash of a title, as the column title_hash has it.
func hashOf(title string) int64 {
	if title == "" {
		return 0
	}
	sum := sha1.Sum([]byte(title))
	n, _ := strconv.ParseUint(hex.EncodeToString(sum[:8]), 16, 64) // cannot fail: 16 hexadecimal digits
	return int64(n)
}

// changed holds the columns about a change.
type changed struct {
	change         schema.Change
	distance       *int32
	title          *bool
	added, removed *int32
}

func (c *changed) String() string {
	return strings.Join([]string{cmp.Or(string(c.change), "null"), textOf(c.distance), textOf(c.title), textOf(c.added), textOf(c.removed)}, ", ")
}

// textOf returns the text of a column.
func textOf[T any](value *T) string {
	if value == nil {
		return "null"
	}
	return fmt.Sprint(*value)
}

// captureText returns the facts about a last capture as one text.
func captureText(r *capturedRow) string {
	if r == nil || r.CapturedIn == "" {
		return "unknown"
	}
	return fmt.Sprintf("of %s, payload %s, text %q, SimHash %d, title_hash %d, word_count %d, link_sketch %q", r.CapturedIn, r.digest(), r.TextDigest, r.SimHash, r.TitleHash, r.WordCount, r.LinkSketch)
}

package reducecheck

import (
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/schema"
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
	CapturedIn     string        `parquet:"captured_in,optional"`
	CaptureDigest  string        `parquet:"capture_digest,optional"`
	TextDigest     string        `parquet:"text_digest,optional"`
	SimHash        int64         `parquet:"simhash,optional"`
	TitleHash      int64         `parquet:"title_hash,optional"`
}

// changedRow holds the columns of a published page that say what it contains and how it has changed.
type changedRow struct {
	SURT           string          `parquet:"url_surtkey"`
	URL            string          `parquet:"url"`
	ContentDigest  string          `parquet:"content_digest,optional"`
	TextDigest     string          `parquet:"text_digest,optional"`
	SimHash        int64           `parquet:"simhash"`
	Title          string          `parquet:"title,optional"`
	PageHint       schema.PageHint `parquet:"page_hint,optional"`
	Change         schema.Change   `parquet:"change,optional"`
	ChangeDistance *int32          `parquet:"change_distance,optional"`
	TitleChanged   *bool           `parquet:"title_changed,optional"`
}

// changeFact is one table's row about one URL. One of the pointers is set.
type changeFact struct {
	surt, url    string
	earlier, now *capturedRow
	page         *changedRow
	key          string // key of the file with the page
}

// ChangesFollow compares the columns about changes in pages and urls with the pages themselves and with the
// states of earlier rounds. It does not use the code of the stages. It merges the sorted tables of one
// bucket at a time, so memory holds the open parts. Rounds that were planned before format 12 have no
// such columns.
func ChangesFollow(ctx context.Context, a *audit.Audit, r *audit.Round) error {
	a.Count(changesFollow, 0)
	if r.Plan.Format < 12 || !r.Complete(stages.Merge) || !r.Complete(stages.Frontier) || !r.Complete(stages.Publish) {
		return nil // the tables lack the columns, or are not complete yet
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
	if err := cmp.Or(err, err2); err != nil {
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
		}))
	var all changeFact // the newest row of each table about the current URL
	judge := func() {
		if all.page != nil {
			a.Count(changesFollow, 1)
			all.judge(a, r, bucket)
		}
	}
	compare := func(a, b *changeFact) int { return schema.CompareURLs(a.surt, a.url, b.surt, b.url) }
	for f, err := range merged(ctx, compare, in...) {
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
	}
	judge()
	return nil
}

// judge reports how the columns of a page and of its URL's state contradict the page and the last capture.
func (f *changeFact) judge(a *audit.Audit, r *audit.Round, bucket int) {
	want := f.wanted()
	wrong := func(key, format string, args ...any) {
		a.Wrong(changesFollow, r.Number, audit.URL(key, f.url), format, args...)
	}
	p := f.page
	if got := changeText(p.Change, p.ChangeDistance, p.TitleChanged); got != want {
		wrong(f.key, "its columns change, change_distance and title_changed are %s; its last capture gives %s", got, want)
	}
	urls := layout.Table(stages.FileURLs, r.Crawl, r.Number, bucket)
	if f.now == nil {
		wrong(urls, "it has a page, but no row in urls")
		return
	}
	if got := changeText(f.now.Change, f.now.ChangeDistance, f.now.TitleChanged); got != want {
		wrong(urls, "its columns change, change_distance and title_changed are %s; its last capture gives %s", got, want)
	}
	was := f.earlier
	if p.PageHint != schema.HintSoft404 {
		was = &capturedRow{ContentDigest: p.ContentDigest, CapturedIn: nameOf(r), TextDigest: p.TextDigest, SimHash: p.SimHash, TitleHash: hashOf(p.Title)}
	}
	if wanted, got := captureText(was), captureText(f.now); got != wanted {
		wrong(urls, "its last capture is %s; its row says %s", wanted, got)
	}
}

// wanted returns what the columns about the page's change must be, as changeText returns them.
func (f *changeFact) wanted() string {
	known := f.earlier != nil && f.earlier.CapturedIn != ""
	if f.page.PageHint == schema.HintSoft404 {
		if known {
			return changeText(schema.ChangeGone, nil, nil)
		}
		return changeText("", nil, nil)
	}
	if !known {
		switch {
		case f.earlier == nil || f.earlier.ContentDigest == "":
			return changeText(schema.ChangeNew, nil, nil)
		case f.earlier.ContentDigest == f.page.ContentDigest:
			return changeText(schema.ChangeNone, nil, nil)
		}
		return changeText("", nil, nil)
	}
	change := schema.ChangeText
	if f.page.TextDigest == f.earlier.TextDigest {
		change = schema.ChangeCosmetic
	}
	if f.page.ContentDigest == f.earlier.digest() {
		change = schema.ChangeNone
	}
	distance := int32(0)
	for differ := uint64(f.page.SimHash ^ f.earlier.SimHash); differ != 0; differ >>= 1 {
		distance += int32(differ & 1)
	}
	title := hashOf(f.page.Title) != f.earlier.TitleHash
	return changeText(change, &distance, &title)
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

// changeText returns the three columns about a change as one text.
func changeText(c schema.Change, distance *int32, title *bool) string {
	bits, differs := "null", "null"
	if distance != nil {
		bits = strconv.Itoa(int(*distance))
	}
	if title != nil {
		differs = strconv.FormatBool(*title)
	}
	return cmp.Or(string(c), "null") + ", " + bits + ", " + differs
}

// captureText returns the facts about a last capture as one text.
func captureText(r *capturedRow) string {
	if r == nil || r.CapturedIn == "" {
		return "unknown"
	}
	return fmt.Sprintf("of %s, payload %s, text %q, SimHash %d, title_hash %d", r.CapturedIn, r.digest(), r.TextDigest, r.SimHash, r.TitleHash)
}

package rewrite

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
)

// adjustments returns what the rows of a file need besides the rules of their columns: adjust changes a
// row, insert are rows to add, and before compares them with the file's rows.
func adjustments[T any](r *Rewriter, f *manifest.File) (adjust func(*T) bool, insert []T, before func(a, b *T) bool) {
	crawl, round, part := roundOf(f.Key)
	var typed any
	switch {
	case f.Dataset == stages.FileFetches:
		gone := r.droppedRows(f)
		typed = func(row *schema.Fetch) bool {
			n, _ := slices.BinarySearch(gone, row.PlannedRow)
			row.PlannedRow -= int32(n)
			return r.unpoint(&row.WARCFilename, &row.WARCRecordOff, &row.WARCRecordLen) || n > 0
		}
	case f.Dataset == stages.FileCaptures:
		typed = func(row *schema.Capture) bool {
			return r.unpoint(&row.PayloadFilename, &row.PayloadRecordOff, &row.PayloadRecordLen)
		}
	case f.Dataset == stages.FileRequests:
		typed = func(row *schema.Request) bool {
			return r.unpoint(&row.RobotsFile, &row.RobotsOffset, &row.RobotsLength)
		}
	case f.Dataset == stages.FileRobots:
		typed = func(row *schema.RobotsFile) bool { return r.expire(row) }
	case f.Dataset == stages.FileURLs || f.Dataset == stages.FileURLsBase:
		typed = func(row *schema.URLRecord) bool {
			return r.unpoint(&row.WARCFilename, &row.WARCRecordOff, &row.WARCRecordLen)
		}
	case f.Dataset == stages.FilePages && kindOf(f) != stages.FilePages:
		typed = func(row *schema.WorkingPage) bool {
			return r.unpoint(&row.WARCFilename, &row.WARCRecordOffset, &row.WARCRecordLength)
		}
	case r.Clusters == nil:
	case f.Dataset == stages.FileDuplicates:
		typed = func(row *schema.Duplicate) bool { return r.Clusters.duplicate(r.Matcher, row) }
	case f.Dataset == stages.FileVerdicts:
		typed = func(row *schema.Verdict) bool { return r.Clusters.duplicate(r.Matcher, &row.Duplicate) }
	case f.Dataset == stages.FilePages && kindOf(f) == stages.FilePages:
		typed = func(row *schema.Page) bool {
			moved := r.Clusters.page(r.Matcher, &row.PageColumns)
			return r.unpoint(&row.WARCFilename, &row.WARCRecordOffset, &row.WARCRecordLength) || moved
		}
	case f.Dataset == stages.FileRepresentatives:
		rows, _ := any(r.Clusters.added(crawl, round, part)).([]T)
		less := func(a, b *schema.Representative) bool {
			return schema.CompareURLs(a.SURT, a.URL, b.SURT, b.URL) < 0
		}
		before, _ = any(less).(func(a, b *T) bool)
		return nil, rows, before
	}
	adjust, _ = typed.(func(*T) bool)
	return adjust, nil, nil
}

// unpoint clears a pointer to a record that became a tombstone.
func (r *Rewriter) unpoint(file *string, offset, length *int32) bool {
	if _, gone := r.Removed[*file][int64(*offset)]; !gone || *file == "" {
		return false
	}
	*file, *offset, *length = "", 0, 0
	return true
}

// expire edits the row of a robots.txt that redirects to a record that became a tombstone. The text is that of the
// record, so it goes. The row expires, because rules without a text would allow everything: the next round requests
// the robots.txt again.
func (r *Rewriter) expire(row *schema.RobotsFile) bool {
	if !r.unpoint(&row.WARCFile, &row.WARCOffset, &row.WARCLength) {
		return false
	}
	row.Body, row.Until = nil, 0
	return true
}

// droppedRows returns the positions of the rows that went from the plan file of a file's partition.
func (r *Rewriter) droppedRows(f *manifest.File) []int32 {
	if r.DroppedRows == nil {
		return nil
	}
	return r.DroppedRows(roundOf(f.Key))
}

var roundKey = regexp.MustCompile(`(?:^|/)crawl=([^/]+)/(?:[a-z]+=[^/]+/)?round=(\d+)/`)
var partKey = regexp.MustCompile(`part-(\d+)`)

// roundOf returns the crawl, the round and the partition or part in the key of a file.
func roundOf(key string) (crawl string, round, part int) {
	if m := roundKey.FindStringSubmatch(key); m != nil {
		crawl = m[1]
		round, _ = strconv.Atoi(m[2])
	}
	if m := partKey.FindStringSubmatch(strings.TrimPrefix(key, layout.CrawlDir(crawl))); m != nil {
		part, _ = strconv.Atoi(m[1])
	}
	return crawl, round, part
}

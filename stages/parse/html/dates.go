package html

import (
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/sitemap"
	"crawlbatch.io/crawlbatch/stages/parse/fold"
)

// statedDate is a date that a page states, with the rank of its source.
type statedDate struct {
	at   schema.Time
	rank uint8
}

// These are the ranks of the sources of dates, the most reliable first. Last-Modified is not a
// source and has a column of its own, because most servers generate the page anew for each
// response.
const (
	byFeed     uint8 = iota // date that the feed itself states
	byArticle               // Open Graph: article:published_time
	byJSONLD                // JSON-LD: datePublished
	byItemprop              // microdata: itemprop=datePublished
	byMeta                  // other meta elements: dc.date, pubdate …
	byCreated               // JSON-LD: dateCreated or uploadDate, perhaps of a video on the page
	byTime                  // a time element
	byURL                   // the path of the URL: /2026/11/21/
)

// dateSources maps each rank to a name in the column published_source.
var dateSources = [...]string{byFeed: "feed", byArticle: "open_graph", byJSONLD: "json_ld", byItemprop: "microdata",
	byMeta: "meta", byCreated: "json_ld", byTime: "time", byURL: "url"}

// source returns the name of the date's source, or "" if there is no date.
func (d statedDate) source() string {
	if d.at == 0 {
		return ""
	}
	return dateSources[d.rank]
}

// keepBest keeps the date from the best source. If two sources are equally good, the first date
// stays. Malformed dates are ignored.
func (d *statedDate) keepBest(value string, rank uint8) {
	if value == "" || d.rank != 0 && d.rank <= rank {
		return
	}
	if t, ok := sitemap.ParseTime(fold.Cut(value, 64)); ok && schema.TimeOf(t) != 0 { // some pages have 1970-01-01T00:00:00Z in place of a missing date
		*d = statedDate{schema.TimeOf(t), rank}
	}
}

// setBytes is like keepBest, but takes bytes of the document, which it folds and cuts.
func (d *statedDate) setBytes(value []byte, rank uint8) {
	if len(value) != 0 && (d.rank == 0 || d.rank > rank) {
		d.keepBest(fold.Bytes(fold.Prefix(value, 256), 64), rank)
	}
}

// ldDates sets the dates that JSON-LD states.
func (m *meta) ldDates() {
	for d := range m.ld.Dates {
		m.published.keepBest(d.Published, byJSONLD)
		m.modified.keepBest(d.Modified, byJSONLD)
		m.published.keepBest(d.Created, byCreated)
	}
}

// dateOfPath returns the date in a URL's path, in the form 2026-11-21. The date may be a folder, as
// in /2026/11/21/page, or the beginning of a name, as in /2026-11-21-page. The folder /2026/11/21/
// itself is a list of pages and has no date.
func dateOfPath(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if len(s) == 4 && i+3 < len(segments) && digits(s, 4) && digits(segments[i+1], 2) && digits(segments[i+2], 2) && segments[i+3] != "" {
			return s + "-" + segments[i+1] + "-" + segments[i+2]
		}
		if len(s) > 11 && digits(s[:4], 4) && s[4] == '-' && digits(s[5:7], 2) && s[7] == '-' && digits(s[8:10], 2) && s[10] == '-' {
			return s[:10]
		}
	}
	return ""
}

func digits(s string, n int) bool { return len(s) == n && strings.Trim(s, "0123456789") == "" }

package schema

import (
	"fmt"
	"strconv"
	"strings"

	"crawlbatch.io/crawlbatch/formats/extsort"
)

// PlannedRow is a row of a plan's file of a partition, sorted by host, then priority (highest first),
// then URL.
type PlannedRow struct {
	PlannedURL
	Listing
}

// PlannedURL is a planned URL without its listing.
type PlannedURL struct {
	URL           string `parquet:"url,delta" doc:"canonical URL"`
	SURT          string `parquet:"url_surtkey,delta" doc:"SURT key"`
	Host          string `parquet:"host,dict" doc:"host name, with its port unless 80 or 443"`
	Domain        string `parquet:"domain,dict" doc:"registered domain"`
	Priority      int32  `parquet:"priority" doc:"priority from 0 to 1000; higher is sooner"`
	Depth         int32  `parquet:"depth" doc:"links from the nearest source URL"`
	ContentDigest string `parquet:"content_digest,optional" doc:"digest of the last content, for the column changed"`
	ETag          string `parquet:"etag,optional" doc:"ETag of the last content, for a conditional request"`
	LastModified  string `parquet:"last_modified,optional" doc:"Last-Modified of the last content, for a conditional request"`
	Fetches       int32  `parquet:"fetches" doc:"number of earlier fetches"`
	ContentAt     Time   `parquet:"content_at,optional,timestamp(microsecond)" doc:"when the last content was captured"`
	WARCFilename  string `parquet:"warc_filename,optional,dict" doc:"key of the WARC file with the last content"`
	WARCRecordOff int32  `parquet:"warc_record_offset,optional" doc:"offset of the record in the WARC file, bytes"`
	WARCRecordLen int32  `parquet:"warc_record_length,optional" doc:"length of the record in the WARC file, bytes"`

	PayloadFilename  string `parquet:"payload_warc_filename,optional,dict" doc:"for a revisit in an external archive: key of the WARC file with the payload"`
	PayloadRecordOff int32  `parquet:"payload_warc_record_offset,optional" doc:"for a revisit in an external archive: offset of the record with the payload, bytes"`
	PayloadRecordLen int32  `parquet:"payload_warc_record_length,optional" doc:"for a revisit in an external archive: length of the record with the payload, bytes"`

	Form

	PlannedFor DueReason `parquet:"planned_for,optional,dict" doc:"why a known URL was due: its column due_reason in urls; null for a URL that was due at once"`
}

// WorkingColumns holds the columns of a page that later stages need, and published pages lack.
//
// The terms are the most frequent ones of the page's main content. A reduce task weighs terms by
// the number of pages that contain them. The most frequent term comes first. Package stages/parse/text
// defines terms, and the order of equally frequent ones.
type WorkingColumns struct {
	Terms  []string `parquet:"terms,list" doc:"up to 128 words and pairs of neighbouring words, lower case, without stop words"`
	Counts []int32  `parquet:"term_counts,list" doc:"number of occurrences of each entry of terms"`

	LinkSketch LinkSketch `parquet:"link_sketch,optional" doc:"number and odd sketch of the distinct targets of the page's links; null if the links are not complete"`
}

// WorkingPage is a page with its WorkingColumns. It is the row type of the fetch stage's segments and
// of the merge stage's working files. Of a published page, the column topics holds the terms with the
// highest weights (package formats/topics), and links_added and links_removed follow from the sketch.
//
// WorkingPage repeats the pointer fields of Page. In an embedded struct, the Parquet library would
// read null as a pointer to zero.
type WorkingPage struct {
	PageColumns
	TDMReserved   *bool    `parquet:"tdm_reservation,optional" doc:"whether the rights of text and data mining are reserved (TDMRep); null: not stated"`
	LinkDensity   *float64 `parquet:"link_density,optional" doc:"share of the visible text that is inside links, 0 to 1; null if there is no text, or the document is not HTML"`
	StopWordRatio *float64 `parquet:"stopword_ratio,optional" doc:"share of function words (the, of …) among the words of the main text, 0 to 1; null if no function words are known for the language"`
	TextRatio     *float64 `parquet:"text_ratio,optional" doc:"bytes of visible text per byte of the document, both as UTF-8; null if the document is not HTML"`
	Changed       *bool    `parquet:"changed,optional" doc:"whether the content differs from the last fetch; null for the first fetch"`
	Focus         *float64 `parquet:"focus,optional" doc:"score of the page by the weighted terms of frontier.focus: title, description and the terms of the main text; null without a model"`
	WorkingColumns
}

// Working returns the working row of a page.
func Working(p *Page, t WorkingColumns) WorkingPage {
	return WorkingPage{PageColumns: p.PageColumns, TDMReserved: p.TDMReserved, LinkDensity: p.LinkDensity, StopWordRatio: p.StopWordRatio,
		TextRatio: p.TextRatio, Changed: p.Changed, WorkingColumns: t}
}

// Page returns the page of a working row.
func (w *WorkingPage) Page() Page {
	return Page{PageColumns: w.PageColumns, TDMReserved: w.TDMReserved, LinkDensity: w.LinkDensity, StopWordRatio: w.StopWordRatio,
		TextRatio: w.TextRatio, Changed: w.Changed, Focus: w.Focus}
}

// WorkingText is a text in a segment. MainLines replaces Main if the main content consists
// of lines of Full in their order, so segments hold most texts only once.
type WorkingText struct {
	Text
	MainLines string `parquet:"main_lines,optional" doc:"lines of full that are the main content, from 0, as in 3-7 9; null if main has the main content"`
}

// NewWorkingText returns the working row of a text.
func NewWorkingText(t *Text) WorkingText {
	w := WorkingText{Text: *t}
	if t.Main == "" {
		return w
	}
	var ranges []byte
	first, next := -1, 0 // first line of the current range, and number of the next line of full
	add := func() {
		if first < 0 {
			return
		}
		if ranges = strconv.AppendInt(ranges, int64(first), 10); next-1 > first {
			ranges = strconv.AppendInt(append(ranges, '-'), int64(next-1), 10)
		}
		ranges = append(ranges, ' ')
	}
	full, more := t.Full, true
	for line := range strings.SplitSeq(t.Main, "\n") {
		for found := false; !found; {
			if !more {
				return w
			}
			var l string
			l, full, more = strings.Cut(full, "\n")
			if found = l == line; !found {
				add()
				first = -1
			} else if first < 0 {
				first = next
			}
			next++
		}
	}
	add()
	w.Main, w.MainLines = "", string(ranges[:len(ranges)-1])
	return w
}

// Whole returns the text of a working row. The error means that MainLines names no lines of Full.
func (w *WorkingText) Whole() (Text, error) {
	t := w.Text
	if w.MainLines == "" {
		return t, nil
	}
	main := make([]byte, 0, len(t.Full))
	full, more, next := t.Full, true, 0
	for r := range strings.SplitSeq(w.MainLines, " ") {
		a, b, ranged := strings.Cut(r, "-")
		first, err := strconv.Atoi(a)
		last := first
		if ranged && err == nil {
			last, err = strconv.Atoi(b)
		}
		if err != nil || first < next || last < first {
			return t, fmt.Errorf("main_lines %q is not a list of lines", w.MainLines)
		}
		for ; next <= last; next++ {
			if !more {
				return t, fmt.Errorf("main_lines %q names line %d of a text of %d lines", w.MainLines, last, next)
			}
			var l string
			if l, full, more = strings.Cut(full, "\n"); next >= first {
				main = append(append(main, l...), '\n')
			}
		}
	}
	t.Main = string(main[:len(main)-1])
	return t, nil
}

// Refused is a row of a plan's refused.parquet: a source line or known URL that the plan refused.
type Refused struct {
	URL    string     `parquet:"url,delta" doc:"canonical URL, or the bounded text of the line"`
	SURT   string     `parquet:"url_surtkey,optional,delta" doc:"SURT key; null if the text is not a URL"`
	Domain string     `parquet:"domain,optional,dict" doc:"registered domain; null if the text is not a URL"`
	Reason SkipReason `parquet:"reason,dict" doc:"why the URL was not planned"`
	Detail string     `parquet:"detail,optional" doc:"rule, limit or pattern that decided"`
	Source string     `parquet:"source,dict" doc:"source file"`
	Line   int64      `parquet:"line,optional" doc:"line or row of the source, from 1"`
	Depth  int32      `parquet:"depth" doc:"links from the nearest source URL"`

	Form
	Bucket  int32 `parquet:"bucket" doc:"reduce bucket of the domain; 0 if the text is not a URL"`
	Listing       // set if the reason is a budget or plan.skip_within
}

// OptOut is a row of a plan's opt-out.parquet: an entry of the opt-out list when the plan was made.
type OptOut struct {
	Entry string `parquet:"entry" doc:"host, domain or pattern, as the list has it"`
}

// RobotsFile is a row of the file "robots" of a fetch segment. It holds the robots.txt of one origin,
// which this round requested or took from the previous round. The task's next attempt starts with
// the newest row of each origin. The next round starts with the rows that have not expired.
type RobotsFile struct {
	Origin  string  `parquet:"origin" doc:"scheme, name and port, as http://example.org"`
	Host    string  `parquet:"host,dict" doc:"host whose delay applies to the request"`
	Rules   bool    `parquet:"rules" doc:"whether there is a robots.txt; without one, everything is allowed, unless the column outcome forbids everything"`
	Body    []byte  `parquet:"body,optional" doc:"text of robots.txt, up to the limit"`
	Digest  string  `parquet:"digest,optional" doc:"SHA-1 of the payload, base 32"`
	Until   Time    `parquet:"until,timestamp(microsecond)" doc:"when robots.txt is requested again"`
	Outcome Outcome `parquet:"outcome,optional,dict" doc:"outcome of the origin's URLs if robots.txt could not be fetched"`
	Failure string  `parquet:"failure,optional" doc:"why robots.txt could not be fetched"`
	Detail  string  `parquet:"failure_detail,optional" doc:"details of the failure"`

	FetchedAt  Time   `parquet:"fetched_at,optional,timestamp(microsecond)" doc:"when the stored robots.txt was requested"`
	WARCFile   string `parquet:"warc_filename,optional,dict" doc:"key of the WARC file with the response, possibly from an earlier round"`
	WARCOffset int32  `parquet:"warc_record_offset,optional" doc:"offset of the record in the WARC file, bytes"`
	WARCLength int32  `parquet:"warc_record_length,optional" doc:"length of the record in the WARC file, bytes"`
}

// Sitemap is a row of the file "sitemaps" of a fetch segment: the state of a sitemap that robots.txt
// or a sitemap index names. The task's next attempt and the crawl's next round start with the newest
// row of each sitemap. The working file "sitemaps" of a merge task holds the sitemaps that the round
// requested. It has one row for each URL, sorted by SURT key, then URL.
type Sitemap struct {
	SURT      string  `parquet:"url_surtkey,delta" doc:"SURT key of url"`
	URL       string  `parquet:"url,delta" doc:"canonical URL of the last or next request"`
	Host      string  `parquet:"host,dict" doc:"host of url"`
	Domain    string  `parquet:"domain,dict" doc:"registered domain of url"`
	Named     string  `parquet:"named,optional" doc:"canonical URL that robots.txt or an index names, if it redirects to url; else null"`
	Sent      string  `parquet:"sent,optional" doc:"url as robots.txt, an index or a redirect names it, and as it is asked for; null: url itself"`
	Outcome   Outcome `parquet:"outcome,optional,dict" doc:"outcome of the sitemap, as of a planned URL; null if there is none yet"`
	Earlier   bool    `parquet:"earlier" doc:"whether the outcome comes from an earlier round of the crawl"`
	Planned   bool    `parquet:"planned" doc:"whether a round of the crawl planned the URL; no round then requests it as a sitemap"`
	Redirects int32   `parquet:"redirects" doc:"number of followed redirects"`
	Tries     int32   `parquet:"tries" doc:"number of requests for url"`
	Entries   int64   `parquet:"entries" doc:"number of entries that were taken from the sitemap"`
	Bytes     int64   `parquet:"bytes" doc:"length of the decoded body, bytes"`

	HTTPStatus    int16   `parquet:"http_status,optional" doc:"status of the last response"`
	FetchedAt     Time    `parquet:"fetched_at,optional,timestamp(microsecond)" doc:"when the last request was sent"`
	ContentDigest string  `parquet:"content_digest,optional" doc:"SHA-1 of the payload, base 32"`
	ETag          string  `parquet:"etag,optional" doc:"ETag of the response"`
	LastModified  string  `parquet:"last_modified,optional" doc:"Last-Modified of the response"`
	Truncated     string  `parquet:"content_truncated,optional,dict" doc:"reason why the body is incomplete"`
	Revisit       Revisit `parquet:"revisit,optional,dict" doc:"kind of revisit if the record has no payload of its own"`
	WARCFilename  string  `parquet:"warc_filename,optional,dict" doc:"key of the WARC file with the response"`
	WARCRecordOff int32   `parquet:"warc_record_offset,optional" doc:"offset of the record in the WARC file, bytes"`
	WARCRecordLen int32   `parquet:"warc_record_length,optional" doc:"length of the record in the WARC file, bytes"`
}

// CompareURLs compares two URLs in the order of tables that are sorted by SURT key, then URL.
func CompareURLs(surt, url, otherSURT, otherURL string) int {
	if c := strings.Compare(surt, otherSURT); c != 0 {
		return c
	}
	return strings.Compare(url, otherURL)
}

// HostEdge is a row of the working file of host edges of a merge task, sorted by source, then
// target. All pages of a host are in one partition, so one file has all rows of a source host.
type HostEdge struct {
	Source string `parquet:"source,dict" doc:"host that links"`
	Target string `parquet:"target,dict" doc:"other host to which the links lead"`
	Links  int64  `parquet:"links" doc:"number of distinct pairs of source page and target page"`
}

// Inlink is a row of a rank task's working file: a URL, and the links from the round's pages to
// this URL. The rows are sorted by SURT key, then URL.
type Inlink struct {
	SURT        string   `parquet:"url_surtkey,delta" doc:"SURT key of the target"`
	URL         string   `parquet:"url,delta" doc:"canonical URL of the target"`
	Inlinks     int64    `parquet:"inlinks" doc:"number of distinct pages that link to the URL, by links of followed kinds"`
	InlinkHosts int64    `parquet:"inlink_hosts" doc:"number of distinct hosts of the pages in inlinks"`
	Followed    bool     `parquet:"followed" doc:"whether any link is of a followed kind and not nofollow"`
	SourceDepth int32    `parquet:"source_depth" doc:"least depth of the sources whose links are followed; least depth of all sources if no link is followed"`
	LastMod     Time     `parquet:"lastmod,optional,timestamp(microsecond)" doc:"when the target changed last, as the sitemaps and feeds of its host say"`
	Weight      int32    `parquet:"sitemap_weight,optional" doc:"100 * (sitemap_priority - 0.5), from the sitemaps of the target's host; if they differ, the value farthest from 0"`
	SourceFocus float64  `parquet:"source_focus,optional" doc:"highest focus of the pages that link to the URL by links of followed kinds, at least 0"`
	FirstSource string   `parquet:"first_source" doc:"source with the least depth, then the least URL"`
	Anchors     []string `parquet:"anchors,list" doc:"most frequent anchor texts, at most 5"`
	Form
}

// TargetLinks is a row of the working file "targets" of a merge task: the sums over all links from
// one partition's pages to one target. Rows are sorted by bucket, then SURT key, then URL. All pages
// of a host are in one partition, so a sum over several partitions counts no host twice. Anchors
// holds up to 256 anchor texts, and not 5 as in other rows of type Inlink.
type TargetLinks struct {
	Bucket int32 `parquet:"target_bucket,delta" doc:"reduce bucket of the target's domain"`
	Inlink
	AnchorCounts []int32 `parquet:"anchor_counts,list" doc:"number of links with each entry of anchors"`
}

// TargetKey appends the key of a row: bucket, SURT key and URL.
func TargetKey(k extsort.Key, t *TargetLinks) extsort.Key {
	return k.Int(int64(t.Bucket)).Text(t.SURT).Text(t.URL)
}

// Redirect is a row of the working file "redirects" of a merge task: a redirect that the fetcher did
// not follow. Most such redirects lead to another domain. Rows are sorted by RedirectKey.
type Redirect struct {
	Bucket int32  `parquet:"target_bucket,delta" doc:"reduce bucket of the target's domain"`
	SURT   string `parquet:"url_surtkey,delta" doc:"SURT key of the target"`
	URL    string `parquet:"url,delta" doc:"canonical URL of the target"`
	Form
	Source string `parquet:"source" doc:"canonical URL of the page that redirects"`
	Depth  int32  `parquet:"depth" doc:"depth of the source"`
}

// RedirectKey appends the key of a redirect: bucket, target, and the source's depth and URL.
func RedirectKey(k extsort.Key, r *Redirect) extsort.Key {
	return k.Int(int64(r.Bucket)).Text(r.SURT).Text(r.URL).Int(int64(r.Depth)).Text(r.Source)
}

// ClassMember is a row of the two working files of a digest task, "classes" and "exact": a page of
// the round, or a sealed representative, with its class. Dedup treats the pages of a class as one.
// The file "classes" holds the pages with long texts: pages with the same fingerprint form a class.
// Its rows are sorted by fingerprint as an unsigned number, then by page, the last page first. The
// file "exact" holds the pages with short texts that equal the text of another page: pages with the
// same text form a class. Its rows are sorted by class, then by page.
type ClassMember struct {
	Class       int64 `parquet:"class,delta" doc:"number of the class within the file exact, from 1; 0 in the file classes"`
	Fingerprint int64 `parquet:"simhash" doc:"64-bit SimHash of the text"`
	Page        int64 `parquet:"page" doc:"number of the page: the index of its file among the files that dedup reads, times 2^32, plus its row among the rows with text"`
}

// ClassPair is a row of the working file "pairs" of a similar task: two classes whose fingerprints
// are near. The rows are sorted by both columns. The number of a class is the place of its
// fingerprint, from 0, among the sorted fingerprints of the files "classes" of all digest tasks.
type ClassPair struct {
	Low  int64 `parquet:"low,delta" doc:"number of the class with the lower fingerprint"`
	High int64 `parquet:"high" doc:"number of the class with the higher fingerprint"`
}

// Verdict is a row of the run "verdicts", which the task of stage cluster writes: what dedup has to
// write about a page of this round in a cluster. Rows are sorted by bucket, SURT key and URL.
type Verdict struct {
	Bucket     int32 `parquet:"bucket,delta" doc:"reduce bucket of the page"`
	Represents bool  `parquet:"represents" doc:"the page is the representative, and will be sealed"`
	Row        bool  `parquet:"row" doc:"the page has a row of duplicates"`
	Duplicate
}

// Representative is a row of a dedup task's working file, sorted by SURT key, then URL: a page of
// the round that represents itself. Its text duplicates neither a representative of an earlier
// round nor a better page of this round. Later rounds read the file too.
type Representative struct {
	SURT         string `parquet:"url_surtkey,delta" doc:"SURT key"`
	URL          string `parquet:"url,delta" doc:"canonical URL of the document"`
	CanonicalURL string `parquet:"canonical_url,optional" doc:"canonical URL that the page declares"`
	WordCount    int32  `parquet:"word_count" doc:"words of the main text"`
	TextDigest   string `parquet:"text_digest" doc:"SHA-1 of the normalised main text, base 32"`
	SimHash      int64  `parquet:"simhash" doc:"64-bit SimHash of the main text"`
}

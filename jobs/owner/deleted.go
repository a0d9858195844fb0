package owner

import (
	"context"
	"fmt"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
)

// Deleted counts responses that the tables list, although `prune` deleted their WARC files.
type Deleted struct {
	Crawl      string `json:"crawl"` // crawl of the WARC files
	Responses  int64  `json:"responses"`
	Bytes      int64  `json:"bytes"`                // compressed size of the WARC records
	At         string `json:"at"`                   // when the newest deletion had ended; if it has not, when it began; RFC 3339 in UTC
	Unfinished bool   `json:"unfinished,omitempty"` // some of the WARC files may still exist
}

// pruning says what was pruned of a crawl, and when.
type pruning struct {
	*ledger.Pruned // nil: nothing
	at             string
}

// pruningOf returns what was pruned of a crawl. It reads each crawl's ledger once.
func (t *tally) pruningOf(ctx context.Context, b store.Bucket, crawl string) (p pruning, err error) {
	p, known := t.pruned[crawl]
	if known || crawl == "" {
		return p, nil
	}
	l, err := ledger.Load(ctx, b, crawl)
	if err != nil {
		return p, err
	}
	if p.Pruned, err = l.AssumePruned(ctx, b); err != nil {
		return p, err
	}
	if p.Pruned != nil {
		p.at = p.Entry.At
		if !p.Unfinished {
			p.at = l.Of(manifest.EntryPruned).At
		}
	}
	if t.pruned == nil {
		t.pruned = map[string]pruning{}
	}
	t.pruned[strings.Clone(crawl)] = p
	return p, nil
}

// deleted reports whether `prune` deleted the WARC file of a response. If so, it adds the response to the summary.
func (t *tally) deleted(ctx context.Context, b store.Bucket, c *capture) (bool, error) {
	if t.external {
		return false, nil // this store may have pruned a month of the same name
	}
	crawl := layout.CrawlOf(c.File) // for a reparse, the month that it parses again
	p, err := t.pruningOf(ctx, b, crawl)
	if err != nil || p.Pruned == nil || !p.Has(c.File) {
		return false, err
	}
	all := &t.Stored.Deleted
	if n := len(*all); n == 0 || (*all)[n-1].Crawl != crawl { // the answer goes through one crawl after the other
		*all = append(*all, Deleted{Crawl: strings.Clone(crawl), At: p.at, Unfinished: p.Unfinished})
	}
	d := &(*all)[len(*all)-1]
	d.Responses, d.Bytes = d.Responses+1, d.Bytes+int64(c.Length)
	return true, nil
}

// when says when the responses were deleted. A file that stayed for a while was deleted later than the others, and
// the ledger knows only the newest deletion.
func (d *Deleted) when() string {
	if d.Unfinished {
		return "since " + ledger.Moment(d.At)
	}
	day, _, _ := strings.Cut(d.At, "T")
	return "on " + day + " at the latest"
}

// line describes the deletion for the operator.
func (d *Deleted) line() string {
	text := fmt.Sprintf("%s: %s, %d bytes, by their age, %s", d.Crawl, responses(d.Responses), d.Bytes, d.when())
	if d.Unfinished {
		text += ", not finished: some may still be stored"
	}
	return text
}

// sentences tell the owner which responses were deleted, and how many are left.
func (s *Stored) sentences() string {
	var b strings.Builder
	for i := range s.Deleted {
		d, begun := &s.Deleted[i], "have deleted"
		if d.Unfinished {
			begun = "are deleting"
		}
		fmt.Fprintf(&b, "We %s %s of the crawl %s by their age, %s.\n", begun, responses(d.Responses), d.Crawl, d.when())
	}
	if left := s.Documents + s.Diagnostics + s.RobotsFiles; left > 0 && len(s.Deleted) > 0 {
		fmt.Fprintf(&b, "We still store %s.\n", responses(left))
	}
	return b.String()
}

// responses writes a number of responses.
func responses(n int64) string {
	if n == 1 {
		return "1 response"
	}
	return fmt.Sprintf("%d responses", n)
}

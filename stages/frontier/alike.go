package frontier

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
)

// What tells a space that is made up as it is asked for: its URLs are alike, and so
// are its pages. One of the two says nothing, articles have numbers and sites have
// copies.
const (
	alikePercent  = 95        // of the pages of a pattern have the text of the one before
	alikeDistance = 3         // bits between fingerprints of the same text
	alikeWords    = 20        // texts of fewer words have the same text or none
	fewWords      = 10        // and of fewer than these tell nothing: pages made by scripts, galleries
	maxPatterns   = 50_000    // of one host that are counted
	maxNames      = 32        // of a query's parameters that tell patterns apart
	patternNumber = "0"       // stands for what varies in a pattern
	idLetters     = "abcdef-" // beside digits, in identifiers
	idLength      = 8         // and they are at least so long
)

// sampled is what is read of a page to compare it with its neighbours.
type sampled struct {
	URL        string `parquet:"url"`
	TextDigest string `parquet:"text_digest,optional"`
	SimHash    int64  `parquet:"simhash"`
	WordCount  int32  `parquet:"word_count"`
}

// sample counts the pages of one pattern.
type sample struct {
	last        sampled
	pages, same int
}

// alike are the patterns of URLs, each behind its host, whose pages are all the same,
// with the words for it.
type alike map[string]string

// learn reads the round's pages of the bucket. Pages of a host lie side by side, so
// the patterns of one host are in memory at a time, and those that are kept are at
// most one for every SimilarPages pages.
func (i *inputs) learn(ctx context.Context) (alike, error) {
	found := alike{}
	if i.cfg.SimilarPages <= 0 {
		return found, nil
	}
	host, patterns := "", map[string]*sample{}
	settle := func() {
		for p, s := range patterns { // into a map: no order shows
			if s.pages >= i.cfg.SimilarPages && 100*s.same >= alikePercent*(s.pages-1) {
				found[host+p] = fmt.Sprintf("%d of %d pages at %s%s are the same", s.same+1, s.pages, host, p)
			}
		}
		clear(patterns)
	}
	for row, err := range table.Concat[sampled](ctx, i.env.Bucket, i.partitionKeys(stages.FilePages, "")) {
		if err != nil {
			return nil, fmt.Errorf("read pages: %w", err)
		}
		h, p := pattern(row.URL)
		if h != host {
			settle()
			host = h
		}
		s := patterns[p]
		if s == nil {
			if len(patterns) >= maxPatterns {
				continue
			}
			s = &sample{}
			patterns[p] = s
		} else if row.like(&s.last) {
			s.same++
		}
		s.pages++
		s.last = row
	}
	settle()
	return found, nil
}

// like tells whether two pages have the same text, or nearly.
func (a *sampled) like(b *sampled) bool {
	switch {
	case a.WordCount < fewWords || b.WordCount < fewWords:
		return false
	case a.TextDigest == b.TextDigest:
		return true
	}
	return a.WordCount >= alikeWords && b.WordCount >= alikeWords && bits.OnesCount64(uint64(a.SimHash)^uint64(b.SimHash)) <= alikeDistance
}

// trap tells why a URL is taken for one of a space without end; "" if it is not.
func (a alike) trap(k *urlkey.Key) string {
	if len(a) == 0 {
		return ""
	}
	host, p := pattern(k.URL)
	return a[host+p]
}

// pattern is a URL's host, and its path and query without what varies from page to
// page of a kind: numbers, identifiers, values of parameters.
func pattern(url string) (host, p string) {
	_, rest, _ := strings.Cut(url, "://")
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		return rest, ""
	}
	host, rest = rest[:end], rest[end:]
	path, query, has := strings.Cut(rest, "?")
	var b strings.Builder
	for s := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		b.WriteByte('/')
		if identifier(s) {
			s = patternNumber
		}
		digits := false
		for n := range len(s) {
			digit := s[n] >= '0' && s[n] <= '9'
			if !digit {
				b.WriteByte(s[n])
			} else if !digits {
				b.WriteString(patternNumber)
			}
			digits = digit
		}
	}
	if has {
		var names []string
		for f := range strings.SplitSeq(query, "&") {
			name, _, _ := strings.Cut(f, "=")
			if len(names) < maxNames && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		b.WriteString("?" + strings.Join(names, "&"))
	}
	return host, b.String()
}

// identifier tells whether a path segment looks like a session's or an object's: hexadecimal
// or UUID, with a digit at least.
func identifier(s string) bool {
	return len(s) >= idLength && strings.Trim(strings.ToLower(s), "0123456789"+idLetters) == "" && strings.ContainsAny(s, "0123456789")
}

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

// A site with endless URLs is recognised only if both its URLs and its pages are alike. Alike URLs
// alone prove nothing, because articles have numbers. Alike pages alone prove nothing, because
// sites have copies.
const (
	alikePercent  = 95        // a pattern is a trap only if at least this percentage of its pages resemble the page before
	alikeDistance = 3         // texts are nearly the same if their fingerprints differ in at most this number of bits
	alikeWords    = 20        // texts with fewer words are alike only if they are equal
	fewWords      = 10        // texts with fewer words are never alike, because galleries and pages made by scripts have such texts
	maxPatterns   = 50_000    // largest number of patterns of one host that are counted
	maxNames      = 32        // largest number of query parameters that distinguish patterns
	patternNumber = "0"       // replaces each part that varies
	idLetters     = "abcdef-" // characters of identifiers, in addition to digits
	idLength      = 8         // least length of an identifier, in characters
)

// sampled holds the columns of a page that are compared with the columns of the previous page.
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

// alike maps a host and a pattern of URLs to the reason why such URLs are a trap. The reason is
// that nearly all pages of the pattern have the same text.
type alike map[string]string

// learn reads the round's pages of the bucket. The pages of a host are adjacent, so memory holds
// the patterns of only one host at a time. Memory also holds the traps of all hosts. Traps are few,
// because each trap takes at least SimilarPages pages.
func (i *inputs) learn(ctx context.Context) (alike, error) {
	found := alike{}
	if i.cfg.SimilarPages <= 0 {
		return found, nil
	}
	host, patterns := "", map[string]*sample{}
	endHost := func() {
		for p, s := range patterns { // the order of the patterns does not matter, because found is a map
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
			endHost()
			host = h
		}
		s := patterns[p]
		if s == nil {
			if len(patterns) >= maxPatterns {
				continue
			}
			s = &sample{}
			patterns[p] = s
		} else if row.resembles(&s.last) {
			s.same++
		}
		s.pages++
		s.last = row
	}
	endHost()
	return found, nil
}

// resembles reports whether two pages have the same or nearly the same text.
func (a *sampled) resembles(b *sampled) bool {
	switch {
	case a.WordCount < fewWords || b.WordCount < fewWords:
		return false
	case a.TextDigest == b.TextDigest:
		return true
	}
	return a.WordCount >= alikeWords && b.WordCount >= alikeWords && bits.OnesCount64(uint64(a.SimHash)^uint64(b.SimHash)) <= alikeDistance
}

// trap returns why a URL counts as a trap, or "" if the URL is no trap.
func (a alike) trap(k *urlkey.Key) string {
	if len(a) == 0 {
		return ""
	}
	host, p := pattern(k.URL)
	return a[host+p]
}

// pattern returns a URL's host, and its path and query with numbers, identifiers and parameter
// values replaced. Numbers, identifiers and values vary between pages of one kind.
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

// identifier reports whether a path segment looks like the ID of a session or an object. An ID is
// hexadecimal or a UUID, and has at least one digit.
func identifier(s string) bool {
	return len(s) >= idLength && strings.Trim(strings.ToLower(s), "0123456789"+idLetters) == "" && strings.ContainsAny(s, "0123456789")
}

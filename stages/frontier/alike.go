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
// alone prove nothing: the URLs of articles may differ only in a number. Alike pages alone prove
// nothing: sites have copies of pages.
const (
	alikePercent  = 95        // a pattern is a trap only if at least this percentage of its pages resemble the page before
	alikeDistance = 3         // texts are nearly the same if their fingerprints differ in at most this number of bits
	alikeWords    = 20        // texts with fewer words are alike only if they are equal
	fewWords      = 10        // texts with fewer words are never alike, because galleries and pages made by scripts have such texts
	maxPatterns   = 50_000    // bounds the number of patterns of adjacent hosts
	maxNames      = 32        // bounds the number of query parameters in a pattern
	patternNumber = "0"       // replaces each number and identifier
	idLetters     = "abcdef-" // characters of identifiers, in addition to digits
	idLength      = 8         // least length of an identifier, in characters
)

// sampled holds the columns of a page that are compared with the columns of the previous page.
type sampled struct {
	SURT       string `parquet:"url_surtkey"`
	URL        string `parquet:"url"`
	TextDigest string `parquet:"text_digest,optional"`
	SimHash    int64  `parquet:"simhash"`
	WordCount  int32  `parquet:"word_count"`
}

// sample counts the pages of one pattern.
type sample struct {
	last  sampled // newest page
	pages int     // number of pages
	same  int     // number of pages that resemble the page before
}

// alike holds the patterns whose pages nearly all have the same text. It maps a host and a pattern to
// the reason that the skips dataset states.
type alike map[string]string

// learn finds such patterns in the round's pages of the bucket. The pages of hosts that differ only in
// "www." are adjacent and interleaved, because SURTs lack "www.". So memory holds the patterns of these
// hosts at a time, and the traps of all hosts. Traps are few, because each has at least SimilarPages
// pages.
func (i *inputs) learn(ctx context.Context) (alike, error) {
	found := alike{}
	if i.cfg.SimilarPages <= 0 {
		return found, nil
	}
	type place struct{ host, pattern string }
	hosts, patterns := "", map[place]*sample{}
	end := func() {
		for p, s := range patterns { // the order of the patterns does not matter, because found is a map
			if s.pages >= i.cfg.SimilarPages && 100*s.same >= alikePercent*(s.pages-1) {
				found[p.host+p.pattern] = fmt.Sprintf("%d of %d pages at %s%s are the same", s.same+1, s.pages, p.host, p.pattern)
			}
		}
		clear(patterns)
	}
	for row, err := range table.Concat[sampled](ctx, i.env.Bucket, i.partitionKeys(stages.FilePages, "")) {
		if err != nil {
			return nil, fmt.Errorf("read pages: %w", err)
		}
		var p place
		p.host, p.pattern = pattern(row.URL)
		if adjacent := hostOf(row.SURT); adjacent != hosts {
			end()
			hosts = adjacent
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
	end()
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

// trap returns why the pattern of a URL is a trap, or "" if it is none.
func (a alike) trap(k *urlkey.Key) string {
	if len(a) == 0 {
		return ""
	}
	host, p := pattern(k.URL)
	return a[host+p]
}

// pattern returns a URL's host and its pattern: the path with "0" in place of numbers and identifiers,
// and the names of the query parameters without their values.
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

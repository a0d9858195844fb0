package frontier

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
)

const (
	allTerms    = 128    // a page with as many terms may have more words than its terms tell
	mostNumbers = 3      // a page with more numbers may consist of them: tables of rates, results of games
	numbers     = "Zyyy" // entry of scripts for words that are numbers
)

// wordScripts are the scripts of which each word that means something is a term, however rare.
var wordScripts = []string{numbers, "Latn", "Grek", "Cyrl", "Arab", "Hebr", "Armn", "Geor", "Deva"}

// likeness holds the columns of a page that say what its words are like.
type likeness struct {
	WordCount   int32    `parquet:"word_count"`
	Scripts     []string `parquet:"scripts,list"`
	ScriptWords []int32  `parquet:"script_words,list"`
	Terms       []string `parquet:"terms,list"`
}

// evidence returns the columns word_count and text_shape of the urls dataset. Both are 0 for a page that
// the server seems to send instead of content.
func (p *page) evidence() (words int32, shape int64) {
	if p.PageHint != "" {
		return 0, 0
	}
	return p.WordCount, p.shape(p.Title)
}

// shape returns a hash of a page's title and terms, without digits. The pages of a calendar without events
// have few shapes, which differ only in the names of months and days of the week. The shape is 0
// if it would leave out much of the page.
func (l *likeness) shape(title string) int64 {
	if len(l.Terms) == 0 || len(l.Terms) >= allTerms {
		return 0
	}
	for i, script := range l.Scripts {
		if !slices.Contains(wordScripts, script) || script == numbers && i < len(l.ScriptWords) && l.ScriptWords[i] > mostNumbers {
			return 0
		}
	}
	words := slices.DeleteFunc(slices.Clone(l.Terms), func(t string) bool { return strings.ContainsAny(t, "0123456789") })
	slices.Sort(words)
	words = append(words, strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, title))
	return schema.TitleHash(strings.Join(words, "\n"))
}

// content holds what the crawl knows about the last capture of a URL. A URL without a capture that
// counts as content has no words.
type content struct {
	Digest  string
	Links   schema.LinkSketch
	SimHash int64
	Title   int64
	Shape   int64
	Words   int32
}

// says reports whether there is enough text to compare. Galleries and pages made by scripts have few words.
func (c *content) says() bool { return c.Digest != "" && c.Words >= fewWords }

// resembles reports whether two pages have the same title, and the same or nearly the same text.
func (c *content) resembles(o *content) bool {
	switch {
	case !c.says() || !o.says() || c.Title != o.Title || min(c.Words, o.Words) < alikeWords:
		return false // a photo may have no text but its licence
	case c.Digest == o.Digest:
		return true
	}
	return max(c.Words, o.Words) <= longWords && bits.OnesCount64(uint64(c.SimHash)^uint64(o.SimHash)) <= alikeDistance
}

// The results of comparing two pages.
const (
	unclear = iota
	different
	same
)

// compare says whether two pages are the same document. Their links must be the same too, because photos may
// share the text around them. Links with the number of a session are an exception: of those, next
// to none is the same.
func (c *content) compare(o *content) int {
	if c.Digest == "" || o.Digest == "" {
		return unclear
	}
	if c.Digest != o.Digest || c.Title != o.Title {
		return different
	}
	if !c.says() {
		return unclear
	}
	added, removed := c.Links.Compare(o.Links)
	if added == nil {
		return unclear
	}
	if *added == 0 && *removed == 0 {
		return same
	}
	count, _, _ := strings.Cut(string(c.Links), ":")
	n, _ := strconv.Atoi(count)
	if n >= ownLinks && 100*max(*added, *removed) >= int32(ownPercent*n) {
		return same
	}
	return different
}

const (
	ownLinks   = 5  // pages with fewer links may be photos with links to their neighbours
	ownPercent = 65 // least percentage of links that differ on two pages with the numbers of two sessions; the difference is an estimate
)

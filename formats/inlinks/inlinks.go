// Package inlinks adds up the links to each target: first the links of one partition's pages, then
// the sums of all partitions.
//
// A sum does not depend on how the pages are divided into partitions, as long as all pages of a host
// are in one partition. Each column of a sum is a count, a least or greatest value, or a set of the
// least elements. The anchor texts are such a set: the MaxAnchors texts with the least hashes. A text
// that is in the total of all partitions was also in each partition's sum, so its count is exact. A
// link on every page of a site has many sources but one anchor text, so few targets have more than
// MaxAnchors texts.
//
// Package inlinks imports packages schema and urlkey.
package inlinks

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
)

const (
	MaxAnchors   = 256 // number of distinct anchor texts of a target that are counted
	shownAnchors = 5   // number of anchor texts in the final row
)

// Weightier returns the weight (schema.Inlink.Weight) that is farther from 0, or the positive one if
// both are equally far.
func Weightier(a, b int32) int32 {
	if cmp.Or(cmp.Compare(max(a, -a), max(b, -b)), cmp.Compare(a, b)) < 0 {
		return b
	}
	return a
}

// Weight returns the weight (schema.Inlink.Weight) of a sitemap_priority: 0 if the priority is null or
// 0.5, which is the default of the sitemap protocol.
func Weight(priority *float64) int32 {
	if priority == nil {
		return 0
	}
	return int32(math.Round(100 * (min(max(*priority, 0), 1) - 0.5))) // parse stores no NaN
}

// Add adds the links of other pages to a sum. The two rows must have the same target, and each host
// must have all its pages in only one of them.
func Add(sum, row *schema.TargetLinks) {
	Source(&sum.Inlink, row.Followed, row.SourceDepth, row.FirstSource)
	sum.Inlinks += row.Inlinks
	sum.InlinkHosts += row.InlinkHosts
	sum.LastMod = max(sum.LastMod, row.LastMod)
	sum.Weight = Weightier(sum.Weight, row.Weight)
	sum.SourceFocus = max(sum.SourceFocus, row.SourceFocus)
	sum.Form.Offer(row.Form)
	var all Anchors
	for _, r := range []*schema.TargetLinks{sum, row} {
		for i, text := range r.Anchors {
			all.Add(text, r.AnchorCounts[i])
		}
	}
	sum.Anchors, sum.AnchorCounts = all.Kept()
}

// Source sets the columns followed, source_depth and first_source of a row to the given source if it
// ranks before the row's source. Sources whose links are followed rank first. Of two such sources, or
// of two others, the one with the smaller depth ranks first, then the one with the lower URL.
func Source(row *schema.Inlink, followed bool, depth int32, source string) {
	if source == "" || row.Followed && !followed {
		return
	}
	if row.FirstSource == "" || followed && !row.Followed || depth < row.SourceDepth || depth == row.SourceDepth && source < row.FirstSource {
		row.Followed, row.SourceDepth, row.FirstSource = followed, depth, source
	}
}

// Finish returns the final row of a sum, with the most frequent anchor texts.
func Finish(sum *schema.TargetLinks) schema.Inlink {
	row := sum.Inlink
	order := make([]int, len(sum.Anchors))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(sum.AnchorCounts[b], sum.AnchorCounts[a]), strings.Compare(sum.Anchors[a], sum.Anchors[b]))
	})
	row.Anchors = make([]string, min(shownAnchors, len(order)))
	for i := range row.Anchors {
		row.Anchors[i] = sum.Anchors[order[i]]
	}
	return row
}

// Anchors counts the anchor texts of one target. The zero value is empty.
type Anchors struct {
	texts []anchor
	index map[string]int // index of each text in texts; nil while there are few texts
	limit anchor         // text with the greatest hash that was kept when texts were dropped last
	full  bool           // a text has been dropped
}

type anchor struct {
	hash  uint64
	text  string
	count int32
}

func compareAnchors(a, b anchor) int {
	return cmp.Or(cmp.Compare(a.hash, b.hash), strings.Compare(a.text, b.text))
}

const fewAnchors = 8 // up to this number, comparing texts is faster than a map

// Add counts n links with an anchor text. It ignores links without text. If the text is new, Add
// copies it and returns about the number of bytes that it takes, otherwise 0.
func (a *Anchors) Add(text string, n int32) (grown int) {
	if text == "" {
		return 0
	}
	if i := a.find(text); i >= 0 {
		a.texts[i].count += n
		return 0
	}
	added := anchor{urlkey.Hash(text), text, n}
	if a.full && compareAnchors(added, a.limit) > 0 {
		return 0
	}
	added.text = strings.Clone(text)
	a.texts = append(a.texts, added)
	if a.index != nil {
		a.index[added.text] = len(a.texts) - 1
	}
	if len(a.texts) >= 2*MaxAnchors {
		a.prune()
		return 0
	}
	if a.index == nil && len(a.texts) > fewAnchors {
		a.reindex()
	}
	return anchorBytes + len(text)
}

// anchorBytes is the estimated memory that an anchor text takes in texts and index, besides its own
// bytes.
const anchorBytes = 96

func (a *Anchors) find(text string) int {
	if a.index != nil {
		if i, ok := a.index[text]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(a.texts, func(b anchor) bool { return b.text == text })
}

func (a *Anchors) reindex() {
	a.index = make(map[string]int, len(a.texts))
	for i := range a.texts {
		a.index[a.texts[i].text] = i
	}
}

// prune keeps only the MaxAnchors texts with the least hashes.
func (a *Anchors) prune() {
	slices.SortFunc(a.texts, compareAnchors)
	if len(a.texts) > MaxAnchors {
		clear(a.texts[MaxAnchors:])
		a.texts = a.texts[:MaxAnchors]
		a.full, a.limit = true, a.texts[MaxAnchors-1]
	}
	if a.index != nil {
		a.reindex()
	}
}

// Kept returns the MaxAnchors texts with the least hashes in the order of their hashes, and their
// counts.
func (a *Anchors) Kept() (texts []string, counts []int32) {
	a.prune()
	for i := range a.texts {
		texts, counts = append(texts, a.texts[i].text), append(counts, a.texts[i].count)
	}
	return texts, counts
}

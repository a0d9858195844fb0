package html

import "crawlbatch.io/crawlbatch/formats/schema"

// class is how much a page would lose with a link where it has more links than are
// kept: pages begin with ten thousand images, and their canonical URL must not be lost.
type class uint8

// The classes. Of canonical and refresh links a page has one each; the first few are
// looked at, however many links are kept.
const (
	classCanonical class = iota
	classRefresh
	classDeclared // hreflang, feeds: what the page says of itself
	classHyperlink
	classEmbedded // what it is made of
	classes
)

// maxOwn is how many canonical and how many refresh links are looked at.
const maxOwn = 16

func classOf(k schema.LinkKind) class {
	switch k {
	case schema.KindCanonical:
		return classCanonical
	case schema.KindRefresh:
		return classRefresh
	case schema.KindHreflang, schema.KindFeed:
		return classDeclared
	case schema.KindA, schema.KindArea, schema.KindIframe, schema.KindFrame, schema.KindForm, schema.KindSitemap,
		schema.KindSitemapIndex, schema.KindRedirect:
		return classHyperlink
	}
	return classEmbedded
}

// most is how many links of a class are collected.
func (c class) most(max int) int {
	if c <= classRefresh {
		return maxOwn
	}
	return max
}

// allowed is how many links of each class are kept, the first ones of each: all, where
// they are not more than max. Else canonical and refresh links come first, then a
// tenth of max for what the page declares, then hyperlinks, then the rest of what it
// declares, and what it embeds has the room that is left.
func allowed(met [classes]int, max int) (n [classes]int) {
	give := func(c class, most int) {
		g := min(met[c]-n[c], most, max)
		n[c] += g
		max -= g
	}
	tenth := (max + 9) / 10
	give(classCanonical, max)
	give(classRefresh, max)
	give(classDeclared, tenth)
	give(classHyperlink, max)
	give(classDeclared, max)
	give(classEmbedded, max)
	return n
}

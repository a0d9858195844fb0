package html

import "crawlbatch.io/crawlbatch/formats/schema"

// linkClass is the priority of a link. If a page has more links than may be kept, the least important
// links are dropped, so that ten thousand images cannot displace the canonical URL.
type linkClass uint8

// The classes, the most important first. A page has one canonical and one refresh link. The reader
// nevertheless collects up to maxOwn links of each of these two classes, even beyond the limit for
// all links.
const (
	classCanonical linkClass = iota
	classRefresh
	classDeclared // hreflang, feeds
	classHyperlink
	classEmbedded // images, scripts, styles
	classes
)

// maxOwn bounds the number of canonical links that the reader collects, and the number of refresh links.
const maxOwn = 16

func classOf(k schema.LinkKind) linkClass {
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

// maxCollected returns the largest number of links of a class that the reader collects.
func (c linkClass) maxCollected(max int) int {
	if c <= classRefresh {
		return maxOwn
	}
	return max
}

// linksPerClass returns the number of links of each class that the reader keeps. collected has the
// number of collected links of each class, and max bounds the kept links of all classes together. The
// reader prefers links in this order: canonical and refresh links, declared links up to a tenth of max,
// hyperlinks, the other declared links, embedded links.
func linksPerClass(collected [classes]int, max int) (n [classes]int) {
	give := func(c linkClass, most int) {
		g := min(collected[c]-n[c], most, max)
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

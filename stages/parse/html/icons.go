package html

import (
	"bytes"

	"crawlbatch.io/crawlbatch/stages/parse/fold"
)

// maxIcons bounds the number of icons of each rank that are read.
const maxIcons = 8

// icons holds the page's icons by rank: rel=icon (shortcut or not), apple-touch-icon,
// apple-touch-icon-precomposed. A mask-icon is left out, because it has no colours, and so is
// /favicon.ico, because browsers request it without a link.
type icons [3][]span

func (c *icons) reset() {
	for i := range c {
		c[i] = c[i][:0]
	}
}

// iconRels are the rel keywords of links to icons, the best first.
var iconRels = [...]string{"icon", "apple-touch-icon", "apple-touch-icon-precomposed"}

// addIcon keeps the reference of an icon, even if its link is dropped.
func (l *linkList) addIcon(rank int, href []byte) {
	href = bytes.TrimFunc(href, fold.IsSpace)
	if len(l.icons[rank]) < maxIcons && len(href) <= maxHref && !bytes.HasPrefix(href, dataScheme) {
		l.icons[rank] = append(l.icons[rank], l.keep(href))
	}
}

// favicon returns the first canonical URL among the icons, the best first.
func (l *linkList) favicon(r *resolver) string {
	for _, refs := range l.icons {
		for _, ref := range refs {
			if t := r.target(l.str(ref), false).url; t != "" {
				return t
			}
		}
	}
	return ""
}

package html

import (
	"bytes"

	"crawlbatch.io/crawlbatch/stages/parse/fold"
)

// maxIcons bounds the number of icons that the reader keeps for each rank.
const maxIcons = 8

// icons holds the page's icons by rank: rel=icon (shortcut or not), apple-touch-icon,
// apple-touch-icon-precomposed. The list omits mask-icon, which has no colours, and /favicon.ico,
// which needs no link.
type icons [3][]span

func (c *icons) reset() {
	for i := range c {
		c[i] = c[i][:0]
	}
}

// iconRels lists the values of rel that link to icons, the best first.
var iconRels = [...]string{"icon", "apple-touch-icon", "apple-touch-icon-precomposed"}

// addIcon keeps the reference of an icon, even if the page has too many links.
func (l *linkList) addIcon(rank int, href []byte) {
	href = bytes.TrimFunc(href, fold.IsSpace)
	if len(l.icons[rank]) < maxIcons && len(href) <= maxHref && !bytes.HasPrefix(href, dataScheme) {
		l.icons[rank] = append(l.icons[rank], l.keep(href))
	}
}

// favicon returns the canonical URL of the best icon that has one.
func (l *linkList) favicon(r *resolver) string {
	for _, refs := range l.icons {
		for _, ref := range refs {
			if t := r.resolveLink(l.str(ref), false).url; t != "" {
				return t
			}
		}
	}
	return ""
}

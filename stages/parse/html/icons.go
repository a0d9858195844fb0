package html

import (
	"bytes"

	"crawlbatch.io/crawlbatch/stages/parse/fold"
)

// maxIcons is how many icons of each sort are looked at.
const maxIcons = 8

// icons are the icons that a page names, by how well each stands for the page in a
// list: rel=icon (shortcut or not), apple-touch-icon, apple-touch-icon-precomposed.
// A mask-icon has no colours, and /favicon.ico is what browsers guess where a page
// names none: neither is taken.
type icons [3][]span

func (c *icons) reset() {
	for i := range c {
		c[i] = c[i][:0]
	}
}

// iconRank is the place of a rel keyword among icons; false if it names none.
func iconRank(keyword []byte) (rank int, ok bool) {
	switch string(keyword) {
	case "icon":
		return 0, true
	case "apple-touch-icon":
		return 1, true
	case "apple-touch-icon-precomposed":
		return 2, true
	}
	return 0, false
}

// addIcon keeps the reference of an icon, whatever becomes of its link.
func (l *linkList) addIcon(rank int, href []byte) {
	href = bytes.TrimFunc(href, fold.IsSpace)
	if len(l.icons[rank]) < maxIcons && len(href) <= maxHref && !bytes.HasPrefix(href, dataScheme) {
		l.icons[rank] = append(l.icons[rank], l.keep(href))
	}
}

// favicon is the canonical URL of the best icon that has one.
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

// Package pagehint names what a page of few words looks like, where it answers instead of
// content: an error page, a wall, a parked domain, a default page.
package pagehint

import (
	"strings"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages/parse/text"
)

// A page that answers instead of content says little. These bound, in words of the
// main text and bytes of all visible text, what may still be one.
const (
	fewWords   = 120
	veryFew    = 40
	shortBytes = 6 << 10
)

// Of names what a page of few words looks like; the first that fits:
//
//   - default_page: its title or headline is that of a server's first page.
//   - blocked: its title or headline is that of a wall.
//   - soft_404: its title or headline, or a part of the title between dashes and bars,
//     says nothing but that there is no such page, in one of the languages known; or a
//     text of very few words says that the page asked for is not there.
//   - parked: its text offers the domain (or, see parkedElsewhere, a service that sells
//     domains fills the page).
//   - under_construction: its title or headline says nothing else.
func Of(r *document.Parsed, heading string) schema.PageHint {
	hint := saidHint(r, heading)
	if hint == "" && parkedElsewhere(r) {
		return schema.HintParked
	}
	return hint
}

// saidHint is what the words of a page say.
func saidHint(r *document.Parsed, heading string) schema.PageHint {
	words := r.Page.WordCount
	if words > fewWords || len(r.Text.Full) > shortBytes {
		return ""
	}
	title, heading := normalOf(r.Page.Title), normalOf(heading)
	full := normalOf(r.Text.Full)
	either := func(says func(string) bool) bool { return says(title) || says(heading) }
	switch {
	case either(isDefaultPage):
		return schema.HintDefault
	case either(isWall):
		return schema.HintBlocked
	case either(isNotFound), words <= veryFew && saysNotFound(full):
		return schema.HintSoft404
	case offersDomain(normalLines(r.Text.Full)), isDomainOffer(title):
		return schema.HintParked
	case words <= veryFew && either(isConstruction):
		return schema.HintConstruction
	}
	return ""
}

// parkedElsewhere reports whether a page of very few words and links has its content from
// a service that fills parked domains.
func parkedElsewhere(r *document.Parsed) bool {
	if r.Page.WordCount > veryFew || len(r.Links) > veryFew || parkingServices[r.Page.HostRegisteredDomain] {
		return false
	}
	for i := range r.Links {
		l := &r.Links[i]
		switch l.Kind {
		case schema.KindScript, schema.KindIframe, schema.KindFrame, schema.KindRefresh:
			if p, err := urlkey.Split(l.Target); err == nil && parkingServices[p.RegisteredDomain] {
				return true
			}
		}
	}
	return false
}

func normalLines(s string) (lines []string) {
	for line := range strings.SplitSeq(s, "\n") {
		lines = append(lines, normalOf(line))
	}
	return lines
}

func normalOf(s string) string {
	if s == "" {
		return ""
	}
	var n text.Normal
	n.Of(s)
	return string(n.Bytes)
}

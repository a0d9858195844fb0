// Package pagehint recognises short pages that servers send instead of content: error pages,
// access walls, parked domains, default pages, and pages whose content scripts make.
package pagehint

import (
	"strings"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages/parse/text"
)

// Only a short page can have a hint. These constants bound the words of its main text and the bytes
// of its visible text.
const (
	fewWords   = 120
	veryFew    = 40
	fewLinks   = 10
	shortBytes = 6 << 10
)

// Hint returns the first hint that fits a parsed page, or "" if none fits. heading is the page's
// headline, doc the document in UTF-8.
//
//   - default_page: the title or headline is the title of a server's default page.
//   - blocked: the title or headline is the title of an access wall, such as a test for robots.
//   - soft_404: the title or headline says only, in a known language, that the page does not exist.
//     A part of the title between dashes and bars, or a text of very few words, may also say this.
//   - parked: the text offers the domain for sale, or a service for unused domains fills the page
//     (see filledByParking).
//   - under_construction: the title or headline says only that the page is under construction.
//   - scripts: the page has little text, and scripts make its content (see needsScripts).
func Hint(r *document.Parsed, heading string, doc []byte) schema.PageHint {
	hint := ofText(r, heading)
	switch {
	case hint != "":
		return hint
	case filledByParking(r):
		return schema.HintParked
	case needsScripts(r, doc):
		return schema.HintScripts
	}
	return ""
}

// OnlyRefuses reports whether a page with the hint blocked is surely no content: its title and its headline, if it has
// both, are those of an access wall, and it has very few words and links. A page about an album called "Forbidden" has
// more.
func OnlyRefuses(r *document.Parsed, heading string) bool {
	title, heading := normalOf(r.Page.Title), normalOf(heading)
	return (title == "" || isWall(title)) && (heading == "" || isWall(heading)) && r.Page.WordCount <= veryFew && r.Page.Outlinks <= fewLinks
}

// ofText returns the hint that follows from the texts of a page.
func ofText(r *document.Parsed, heading string) schema.PageHint {
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
	case either(isNotFound), words <= veryFew && contains(full, notFoundSentences):
		return schema.HintSoft404
	case offersDomain(normalLines(r.Text.Full)), isDomainOffer(title):
		return schema.HintParked
	case words <= veryFew && either(isConstruction):
		return schema.HintConstruction
	}
	return ""
}

// filledByParking reports whether a page has very few words and links, and loads its content from a
// service for unused domains.
func filledByParking(r *document.Parsed) bool {
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
	n.Normalize(s)
	return string(n.Bytes)
}

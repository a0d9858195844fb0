package parse

import (
	"math"
	"strings"

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

// signals computes what the text, its markup and its length tell of a page's quality.
// doc is the document as UTF-8; the normal form of its main text has been counted.
func (s *state) signals(r *Result, doc []byte) {
	pg := &r.Page
	if v, ok := s.html.out.LinkDensity(); ok {
		pg.LinkDensity = share(v)
	}
	if len(doc) > 0 {
		pg.TextRatio = share(float64(len(r.Text.Full)) / float64(len(doc)))
	}
	pg.PageHint = s.pageHint(r)
}

// share rounds a ratio to four digits.
func share(v float64) *float64 {
	v = math.Round(v*1e4) / 1e4
	return &v
}

// A declared language is doubted where a text of so many words has so few of its stop
// words, and given up for one with so many more.
const (
	doubtWords = 50
	doubtRatio = 0.1
	doubtGain  = 0.15
)

// language decides on the language of the text whose normal form is at hand, and leaves
// its words counted in that language. A declaration counts (see text.Language), unless
// the text has hardly any of its function words and those of the language that is
// detected: templates are copied with their lang attribute.
func (s *state) language(declared, sample string) string {
	lang := text.Language(declared, sample)
	n := s.terms.Count(&s.normal, lang)
	has, known := s.terms.StopRatio()
	if declared == "" || lang != declared || !known || n < doubtWords || has >= doubtRatio {
		return lang
	}
	guess := text.Detect(sample)
	if guess == "" || guess == lang {
		return lang
	}
	s.terms.Count(&s.normal, guess)
	if would, ok := s.terms.StopRatio(); ok && would >= has+doubtGain {
		return guess
	}
	s.terms.Count(&s.normal, lang)
	return lang
}

// counts takes the numbers of words, by script and of stop words, and the terms.
func (s *state) counts(p *Parser, r *Result) {
	pg := &r.Page
	pg.WordCount = s.terms.Words()
	if by := s.terms.Scripts(); len(by) > 0 {
		pg.Scripts, pg.ScriptWords = make([]string, len(by)), make([]int32, len(by))
		for i, c := range by {
			pg.Scripts[i], pg.ScriptWords[i] = c.Script, c.Words
		}
	}
	if v, ok := s.terms.StopRatio(); ok {
		pg.StopWordRatio = share(v)
	}
	top := s.terms.Top(p.cfg.Terms)
	if len(top) == 0 {
		return
	}
	r.Terms = schema.TermCounts{Terms: make([]string, len(top)), Counts: make([]int32, len(top))}
	for i, t := range top {
		r.Terms.Terms[i], r.Terms.Counts[i] = t.Text, t.Count
	}
	n := min(len(top), p.cfg.Topics)
	pg.Topics = r.Terms.Terms[:n:n]
}

// pageHint names what a page of few words looks like; the first that fits:
//
//   - default_page: its title or headline is that of a server's first page.
//   - blocked: its title or headline is that of a wall.
//   - soft_404: its title or headline, or a part of the title between dashes and bars,
//     says nothing but that there is no such page, in one of the languages known; or a
//     text of very few words says that the page asked for is not there.
//   - parked: its text offers the domain (or, see parkedElsewhere, a service that sells
//     domains fills the page).
//   - under_construction: its title or headline says nothing else.
func (s *state) pageHint(r *Result) schema.PageHint {
	words := r.Page.WordCount
	if words > fewWords || len(r.Text.Full) > shortBytes {
		return ""
	}
	title, heading := normalOf(s.html.meta.title), normalOf(s.html.out.Heading())
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
func parkedElsewhere(r *Result) bool {
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

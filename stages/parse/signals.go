package parse

import (
	"math"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages/parse/text"
)

// roundRatio rounds a ratio to four digits.
func roundRatio(v float64) *float64 {
	v = math.Round(v*1e4) / 1e4
	return &v
}

// The parser doubts a declared language if the text has at least doubtWords words and the share of
// this language's stop words among them is below doubtRatio. The detected language then replaces the
// declared language if its share of stop words is greater by at least doubtGain.
const (
	doubtWords = 50
	doubtRatio = 0.1
	doubtGain  = 0.15
)

// decideLanguage decides the language of the text in s.normal, and counts the words in this
// language. It normally chooses the declared language (see text.Language). It chooses the detected
// language only if the text has hardly any function words of the declared language but many of the
// detected language. Some sites declare a wrong language, because their authors copied a template
// with its attribute lang.
func (s *state) decideLanguage(declared, sample string) string {
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

// writeCounts writes the number of words, the words of each script, the number of stop words, and
// the terms.
func (s *state) writeCounts(p *Parser, r *Result) {
	pg := &r.Page
	pg.WordCount = s.terms.Words()
	if by := s.terms.Scripts(); len(by) > 0 {
		pg.Scripts, pg.ScriptWords = make([]string, len(by)), make([]int32, len(by))
		for i, c := range by {
			pg.Scripts[i], pg.ScriptWords[i] = c.Script, c.Words
		}
	}
	if v, ok := s.terms.StopRatio(); ok {
		pg.StopWordRatio = roundRatio(v)
	}
	top := s.terms.Top(p.cfg.Terms)
	if len(top) == 0 {
		return
	}
	r.Terms = schema.WorkingColumns{Terms: make([]string, len(top)), Counts: make([]int32, len(top))}
	for i, t := range top {
		r.Terms.Terms[i], r.Terms.Counts[i] = t.Text, t.Count
	}
	n := min(len(top), p.cfg.Topics)
	pg.Topics = r.Terms.Terms[:n:n]
}

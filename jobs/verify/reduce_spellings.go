package verify

import (
	"context"
	"iter"
	"slices"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
)

const spellingsCheck = "no spelling is forgotten"

// said are the spellings of one URL, by who gives them. In tables of format 1 there
// are none.
type said struct {
	known   schema.Spellings // by urls of the rounds before
	own     schema.Spellings // of these, by rounds of the same crawl: its plan had them
	planned schema.Spellings
	linked  schema.Spellings // by its own domain, in this round
}

// earlierRow is a row of urls of a round before.
type earlierRow struct {
	spellings schema.Spellings
	own       bool // of the same crawl
}

func (s *said) know(r *earlierRow) {
	s.known = r.spellings
	if r.own {
		s.own = r.spellings
	}
}

// ownSpelling is the spelling of a link's target where it counts: a stranger's does not.
func ownSpelling(domain, source, spelling string) string {
	if spelling == "" {
		return ""
	}
	if k, err := urlkey.KeyOf(source); err != nil || k.Domain != domain {
		return ""
	}
	return spelling
}

// speltInPlan are the planned URLs of a bucket that have spellings. Close it.
func (a *audit) speltInPlan(ctx context.Context, r *round, bucket int) (_ *table.Sorter[urlRow], err error) {
	s, err := table.NewSorter(a.Scratch, func(x, y *urlRow) int {
		return compareFacts(&fact{surt: x.SURT, url: x.URL}, &fact{surt: y.SURT, url: y.URL})
	}, sortMemory)
	if err != nil {
		return nil, err
	}
	for _, p := range r.plan.Partitions {
		if p.Bucket != bucket || p.File.Rows == 0 {
			continue
		}
		for row, err := range concat[urlRow](ctx, a, []string{p.File.Key}) {
			if err == nil && len(row.Spellings) > 0 {
				err = s.Add(&row)
			}
			if err != nil {
				s.Close()
				return nil, err
			}
		}
	}
	return s, nil
}

func speltFacts(ctx context.Context, s *table.Sorter[urlRow]) iter.Seq2[fact, error] {
	return func(yield func(fact, error) bool) {
		for row, err := range s.Sorted(ctx) {
			if !yield(fact{surt: row.SURT, url: row.URL, planned: row.Spellings}, err) || err != nil {
				return
			}
		}
	}
}

// checkSpellings checks that urls has all spellings that were given, and that the plan
// had those that its crawl knew.
func (c *urlChecker) checkSpellings() {
	s := &c.said
	all := s.known.Union(s.planned).Union(s.linked)
	if len(all) == 0 {
		return
	}
	c.spelt++
	now := s.known
	if c.state != nil {
		now = c.state.Spellings
	}
	if lacks := missing(now, all); lacks != "" {
		c.report(spellingsCheck, stages.FileURLs, "a source, its own domain or a round before spells it %s, and its row does not say so", lacks)
	}
	if c.outcome == nil || !slices.Contains(c.r.plan.Sources, source.FrontierName) {
		return
	}
	if s.own.Overflow() {
		c.reportIn(c.key, spellingsCheck, "it was planned, although the rounds before knew more than %d spellings of it", schema.MaxSpellings)
	} else if lacks := missing(s.planned, s.own); lacks != "" {
		c.reportIn(c.key, spellingsCheck, "it was planned without its spelling %s, which the rounds before knew: robots.txt was not asked for it", lacks)
	}
}

// missing is a spelling of all that now lacks; "" if there is none.
func missing(now, all schema.Spellings) string {
	for _, s := range all {
		if !slices.Equal(now, now.Add(s)) {
			return s
		}
	}
	return ""
}

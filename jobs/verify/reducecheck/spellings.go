package reducecheck

import (
	"context"
	"slices"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
)

// spellingsBySource holds the spellings of one URL, by source.
type spellingsBySource struct {
	known   schema.Spellings // spellings in urls of earlier rounds
	own     schema.Spellings // those known spellings that come from rounds of the same crawl; the plan must list them
	planned schema.Spellings
	linked  schema.Spellings // spellings in this round's links from the URL's own domain
}

// earlierRow is a URL's row in the urls dataset of an earlier round.
type earlierRow struct {
	spellings schema.Spellings
	own       bool // true: the earlier round belongs to the same crawl
	state     schema.URLState
}

func (s *spellingsBySource) know(r *earlierRow) {
	s.known = r.spellings
	if r.own {
		s.own = r.spellings
	}
}

// ownSpelling returns the spelling of a link's target, or "" if the link is on another domain.
// Spellings from other domains do not count.
func ownSpelling(domain, source, spelling string) string {
	if spelling == "" {
		return ""
	}
	if k, err := urlkey.KeyOf(source); err != nil || k.Domain != domain {
		return ""
	}
	return spelling
}

// spelledInPlan sorts the planned URLs of a bucket that have spellings. The caller closes the
// sorter.
func spelledInPlan(ctx context.Context, a *audit.Audit, r *audit.Round, bucket int) (*table.Sorter[urlRow], error) {
	var keys []string
	for _, p := range r.Plan.Partitions {
		if p.Bucket == bucket && p.File.Rows > 0 {
			keys = append(keys, p.File.Key)
		}
	}
	return audit.SortRows(ctx, a, keys, urlRowKey, func(row *urlRow) bool { return len(row.Spellings) > 0 })
}

// checkSpellings checks that the urls dataset lists all spellings of the URL. It also checks that
// the plan listed all spellings from earlier rounds.
func (c *urlChecker) checkSpellings() {
	s := &c.said
	all := s.known.Union(s.planned).Union(s.linked)
	if len(all) == 0 {
		return
	}
	c.spelled++
	now := s.known
	if c.state != nil {
		now = c.state.Spellings
	}
	if lacks := missingSpelling(now, all); lacks != "" {
		c.wrong(spellingsKept, stages.FileURLs, "a source, its own domain or an earlier round spells it %s, but its row does not list this spelling", lacks)
	}
	if c.outcome == nil || !slices.Contains(c.r.Plan.Sources, source.FrontierName) {
		return
	}
	if s.own.Overflow() {
		c.wrongIn(c.key, spellingsKept, "it was planned, although earlier rounds knew more than %d spellings of it", schema.MaxSpellings)
	} else if lacks := missingSpelling(s.planned, s.own); lacks != "" {
		c.wrongIn(c.key, spellingsKept, "it was planned without its spelling %s, which earlier rounds knew, so robots.txt was not checked for this spelling", lacks)
	}
}

// missingSpelling returns a spelling of all that now lacks, or "" if it lacks none.
func missingSpelling(now, all schema.Spellings) string {
	for _, s := range all {
		if !slices.Equal(now, now.Add(s)) {
			return s
		}
	}
	return ""
}

func urlRowKey(k table.Key, u *urlRow) table.Key { return k.Text(u.SURT).Text(u.URL) }

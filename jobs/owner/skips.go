package owner

import (
	"cmp"
	"fmt"
	"io"
	"slices"
)

const (
	mostReasons = 50      // reasons that skips tells apart
	mostSkips   = 100_000 // rows that skips keeps
)

// skips groups the URLs that got no request by reason.
type skips struct {
	most        int // rows to print
	total, kept int64
	groups      []*skipGroup
	byReason    map[string]*skipGroup
}

// skipGroup holds the first URLs without a request for one reason.
type skipGroup struct {
	reason string
	total  int64
	rows   []*Row
}

// reason says why the URL of a row got no request.
func (r *Row) reason() string {
	switch {
	case r.RobotsRule != "" && r.URL != r.PlannedURL:
		return r.Outcome + " after a redirect (robots.txt: " + r.RobotsRule + ")"
	case r.RobotsRule != "":
		return r.Outcome + " (robots.txt: " + r.RobotsRule + ")"
	case r.Error != "":
		return r.Outcome + " (" + r.Error + ")"
	}
	return r.Outcome
}

func (s *skips) add(r *Row) {
	reason := r.reason()
	g := s.byReason[reason]
	if g == nil && len(s.groups) >= mostReasons {
		reason = "another reason"
		g = s.byReason[reason]
	}
	if g == nil {
		if s.byReason == nil {
			s.byReason = map[string]*skipGroup{}
		}
		g = &skipGroup{reason: reason}
		s.byReason[reason], s.groups = g, append(s.groups, g)
	}
	s.total++
	g.total++
	if len(g.rows) < s.most && s.kept < mostSkips {
		s.kept++
		g.rows = append(g.rows, r)
	}
}

// print writes the reasons, that of most URLs first, each with some of its URLs.
func (s *skips) print(w io.Writer, command string) {
	if s.total == 0 {
		return
	}
	slices.SortStableFunc(s.groups, func(a, b *skipGroup) int {
		return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(a.reason, b.reason))
	})
	urls := "URLs"
	if s.total == 1 {
		urls = "URL"
	}
	fmt.Fprintf(w, "\n%d %s without a request, by reason (all of them: %s -o csv):\n", s.total, urls, command)
	each := max(min(s.most, 1), s.most/len(s.groups))
	for _, g := range s.groups {
		fmt.Fprintf(w, "%d %s\n", g.total, shown(g.reason))
		rows := g.rows[:min(len(g.rows), each)]
		for _, r := range rows {
			from := ""
			if r.URL != r.PlannedURL {
				from = shown(r.PlannedURL) + " → "
			}
			fmt.Fprintf(w, "  %s  %s%s\n", r.Time, from, shown(r.URL))
		}
		if more := g.total - int64(len(rows)); more > 0 && len(rows) > 0 {
			fmt.Fprintf(w, "  and %d more\n", more)
		}
	}
}

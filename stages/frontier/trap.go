package frontier

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// trap returns why the form of a URL makes it a trap, or "" if the URL is none.
func (c *Config) trap(k *urlkey.Key) string {
	if len(k.URL) > c.MaxLength {
		return fmt.Sprintf("%d octets", len(k.URL))
	}
	_, rest, _ := strings.Cut(k.URL, "://")
	path := rest[strings.IndexByte(rest, '/'):]
	path, _, _ = strings.Cut(path, "?")
	var room [64]string
	segments := room[:0]
	for s := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		segments = append(segments, s)
		if len(segments) > c.MaxSegments {
			return fmt.Sprintf("more than %d path segments", c.MaxSegments)
		}
	}
	for period := 1; period <= 3; period++ {
		same := 0 // number of segments in a row that equal the segment period positions before them
		for i := period; i < len(segments); i++ {
			if segments[i] != segments[i-period] {
				same = 0
				continue
			}
			if same++; same >= period*c.MaxRepeats {
				return fmt.Sprintf("path repeats %q", strings.Join(segments[i-period+1:i+1], "/"))
			}
		}
	}
	return ""
}

// trap returns why a URL is a trap, or "" if it is none. The target of a redirect is the page that a site
// chose itself, so it may have any parameters.
func (d *decider) trap(g *group, k *urlkey.Key) string {
	if d.cfg.Except != nil && d.cfg.Except(k.URL) {
		return ""
	}
	return cmp.Or(d.cfg.trap(k), d.traps.refuses(k.URL, g.needed || g.redirect != nil))
}

// reviewTrap decides again about a URL that was found or skipped, and that no round has planned. It reports
// whether it has written a row.
func (d *decider) reviewTrap(g *group) (done bool, err error) {
	p := g.prior
	if p == nil || p.State != schema.StateFound && p.State != schema.StateSkipped || p.FirstSource == "" || p.LastPlanned != "" || p.LastFetched != 0 || p.ListedLastRound != "" || d.foreign(p) {
		return false, nil
	}
	if o, _ := g.requested(); o != nil || slices.ContainsFunc(g.refused, func(r *schema.Refused) bool { return r.ListedLastRound != "" }) {
		return false, nil // a source lists it
	}
	k, err := urlkey.KeyOf(g.url)
	if err != nil {
		return false, err
	}
	why := d.traps.refuses(k.URL, g.needed || g.redirect != nil)
	switch {
	case p.State == schema.StateFound && why != "":
		if err := d.skip(schema.Skip{SURT: k.SURT, URL: k.URL, Reason: schema.SkipTrap, Detail: why, Source: p.FirstSource, Depth: p.Depth}); err != nil {
			return false, err
		}
		r := d.record(g, &k, p.Depth)
		r.State = schema.StateSkipped
		return true, d.url(r)
	case p.State == schema.StateSkipped && why == "":
		depth := p.Depth
		if nearest, _, followed := g.nearest(); followed {
			depth = min(depth, nearest)
		}
		return true, d.writeFound(g, &k, depth, p.FirstSource)
	}
	return false, nil
}

package frontier

import (
	"strings"

	"crawlbatch.io/crawlbatch/formats/recrawl"
	"crawlbatch.io/crawlbatch/formats/schema"
)

const (
	// window is the largest number of URLs of a host that decideAll collects before it decides about the first.
	window = 512

	// depthClasses is the number of classes of pages by depth. The last class has all greater depths.
	depthClasses = 4
)

// peers holds what the known pages of a host tell about the rates of change of its pages. They count in the
// order of the merge, so the result does not depend on the number of buckets.
type peers struct {
	host    string
	changed bool                        // pages were added since rules were computed
	all     recrawl.Peers               // the pages of the host
	byDepth [depthClasses]recrawl.Peers // the same, by their depth
	rules   [depthClasses]recrawl.Rule  // rules for the pages of each class
}

// hostOf returns the part of a SURT that names the host and port.
func hostOf(surt string) string {
	host, _, _ := strings.Cut(surt, ")")
	return host
}

func depthClass(r *schema.URLRecord) int { return int(min(max(r.Depth, 0), depthClasses-1)) }

// begin starts with another host, of which nothing is known.
func (p *peers) begin(c *Config, host string) {
	*p = peers{host: host, changed: true}
}

// add adds a page that was known before the round, with its history after the round.
func (p *peers) add(c *Config, g *group) {
	if g.prior == nil || g.prior.LastFetched == 0 {
		return
	}
	h := c.history(g.prior)
	if o := g.outcome; o != nil {
		if compared, changed := compare(g.prior, o, schema.StateAfter(o.Outcome, o.HTTPStatus, moved(o)), g.form.Sent); compared {
			h = recrawl.Observe(h, answered(o).Sub(g.prior.LastFetched).Milliseconds(), changed)
		}
	}
	p.all.Add(h)
	p.byDepth[depthClass(g.prior)].Add(h)
	p.changed = true
}

// settle computes the rules.
func (p *peers) settle(c *Config) {
	if !p.changed {
		return
	}
	p.changed = false
	host := c.rule().Among(&p.all)
	for class := range p.rules {
		p.rules[class] = host.Among(&p.byDepth[class])
	}
}

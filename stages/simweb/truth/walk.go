package truth

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"encoding/base32"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages/simweb"
	"crawlbatch.io/crawlbatch/stages/simweb/faults"
)

// crawl is the state of a crawl between two rounds.
type crawl struct {
	web       *simweb.Web
	cfg       Config
	canonical func(url string) (string, bool)
	seen      map[string]bool // URLs that were planned, and URLs of pages that were fetched
	domains   map[string]bool // domains that have been planned
	hosts     map[int]bool    // hosts that were asked for robots.txt; false until their sitemaps were fetched
	standing  []pageInRound   // representatives of earlier rounds
	rounds    int             // number of completed rounds
}

// linkSummary summarises the links of a round to one target.
type linkSummary struct {
	followed bool  // whether at least one link is followed
	depth    int32 // lowest depth of the pages with a followed link to the target, or with any link if none is followed
}

// round computes one round.
func (c *crawl) round(plan []Planned) (*Round, error) {
	planned := make(map[string]bool, len(plan))
	for _, p := range plan {
		planned[p.URL], c.seen[p.URL] = true, true
	}
	r := new(Round)
	targets := make(map[string]linkSummary)
	for _, p := range plan {
		f, page, links, unanswered, err := c.fetch(p, planned)
		if err != nil {
			return nil, err
		}
		r.Fetches = append(r.Fetches, f)
		if f.RedirectTarget != "" {
			l := Link{Source: f.FinalURL, Target: f.RedirectTarget, Kind: schema.KindRedirect}
			r.Redirects = append(r.Redirects, l)
			c.find(targets, l, p.Depth)
		}
		if unanswered != "" {
			c.find(targets, Link{Source: f.FinalURL, Target: unanswered, Kind: schema.KindRedirect}, p.Depth)
		}
		if page != nil {
			c.seen[page.URL] = true
			r.Pages = append(r.Pages, *page)
			r.Links = append(r.Links, links...)
			for _, l := range links {
				c.find(targets, l, p.Depth)
			}
		}
	}
	for host, done := range c.hosts { // the order of the map does not matter, because each target keeps the lowest depth
		if done || !c.cfg.Sitemaps {
			continue
		}
		c.hosts[host] = true
		c.web.NamedSitemap(host, func(url string) bool {
			c.find(targets, Link{Target: url, Kind: schema.KindSitemap}, 0)
			return true
		})
	}
	slices.SortFunc(r.Pages, func(a, b Page) int { return cmp.Compare(a.URL, b.URL) })
	slices.SortStableFunc(r.Links, func(a, b Link) int { return cmp.Compare(a.Source, b.Source) })
	slices.SortFunc(r.Redirects, func(a, b Link) int { return cmp.Compare(a.Source, b.Source) })
	r.Clusters = c.clusterPages(r.Pages)
	c.rounds++
	if err := c.updateFrontier(r, targets); err != nil {
		return nil, err
	}
	return r, nil
}

// find adds the target of a link to targets, if the link is of a followed kind.
func (c *crawl) find(targets map[string]linkSummary, l Link, depth int32) {
	if !slices.Contains(schema.DefaultFollowed, l.Kind) {
		return
	}
	t, seen := targets[l.Target]
	switch {
	case !seen, !l.Nofollow && !t.followed:
		targets[l.Target] = linkSummary{followed: !l.Nofollow, depth: depth}
	case t.followed == !l.Nofollow:
		t.depth = min(t.depth, depth)
		targets[l.Target] = t
	}
}

// updateFrontier plans or skips the targets of a round.
func (c *crawl) updateFrontier(r *Round, targets map[string]linkSummary) error {
	for url, t := range targets { // the order of the map does not matter: the targets are sorted below
		if c.seen[url] {
			continue
		}
		key, err := urlkey.KeyOf(url)
		if err != nil {
			return fmt.Errorf("simweb: target of a link: %w", err)
		}
		depth := t.depth + 1
		switch {
		case !t.followed:
			r.Skips = append(r.Skips, Skip{url, schema.SkipNofollow, depth})
		case !c.domains[key.Domain]:
			r.Skips = append(r.Skips, Skip{url, schema.SkipOutOfScope, depth})
		case depth > c.cfg.MaxDepth:
			r.Skips = append(r.Skips, Skip{url, schema.SkipDepth, depth})
		default:
			r.Next = append(r.Next, Planned{url, depth})
		}
	}
	slices.SortFunc(r.Next, func(a, b Planned) int { return cmp.Compare(a.URL, b.URL) })
	slices.SortFunc(r.Skips, func(a, b Skip) int { return cmp.Compare(a.URL, b.URL) })
	for _, p := range r.Next {
		key, err := urlkey.KeyOf(p.URL)
		if err != nil {
			return fmt.Errorf("simweb: planned URL: %w", err)
		}
		c.domains[key.Domain] = true
	}
	return nil
}

// fetch follows a planned URL to its outcome. A redirect chain may break off at a URL that was not
// requested or gave no response. unanswered is that URL, or "".
func (c *crawl) fetch(p Planned, planned map[string]bool) (f Fetch, page *Page, links []Link, unanswered string, err error) {
	key, err := urlkey.KeyOf(p.URL)
	if err != nil {
		return f, nil, nil, "", fmt.Errorf("simweb: planned URL: %w", err)
	}
	f = Fetch{URL: p.URL, Host: key.Host, Domain: key.Domain, Depth: p.Depth}
	chain := []string{p.URL}
	for url := p.URL; ; {
		host, path, exists := c.web.Locate(url)
		if !exists { // the server responds to unknown hosts with 421
			f.Outcome, f.HTTPStatus, f.FinalURL = schema.HTTP4xx, http.StatusMisdirectedRequest, url
			if len(chain) == 1 {
				f.RobotsAllowed = new(true)
			}
			return f, nil, nil, unanswered, nil
		}
		if outcome := c.robots(&f, host, path, len(chain) == 1); outcome != "" {
			f.Outcome = outcome
			if len(chain) > 1 {
				unanswered = url
			}
			return f, nil, nil, unanswered, nil
		}
		a := c.web.Look(host, path)
		if a.Fault != nil && f.Fault == "" {
			f.Fault = a.Fault.Name
		}
		if !a.Redirects() {
			page, links = c.setOutcome(&f, p, url, host, a)
			if len(chain) > 1 && f.FinalURL != url {
				unanswered = url
			}
			return f, page, links, unanswered, nil
		}
		f.HTTPStatus, f.FinalURL = int16(a.Status), url
		target, outcome := c.followRedirect(a, key.Domain, chain, planned)
		if outcome != "" {
			f.Outcome = outcome
			if outcome == schema.Redirected {
				f.RedirectTarget = target
			}
			return f, nil, nil, unanswered, nil
		}
		f.Redirects++
		chain = append(chain, target)
		url = target
	}
}

// robots applies robots.txt to a URL. The outcome is "" if the URL is allowed.
func (c *crawl) robots(f *Fetch, host int, path string, first bool) schema.Outcome {
	if c.web.Profile(host) == simweb.RobotsUnreachable {
		return schema.RobotsUnreachable
	}
	if _, asked := c.hosts[host]; !asked {
		c.hosts[host] = false
	}
	allowed, rule := c.web.Verdict(host, path)
	if first {
		f.RobotsAllowed, f.RobotsRule = new(allowed), rule
	}
	if !allowed {
		return schema.RobotsDenied
	}
	return ""
}

// followRedirect returns the target of a redirect that the crawl follows, or else the outcome.
func (c *crawl) followRedirect(a simweb.Response, domain string, chain []string, planned map[string]bool) (target string, outcome schema.Outcome) {
	if a.Target == "" {
		return "", schema.ProtocolError
	}
	target, _ = c.canonical(a.Target)
	key, err := urlkey.KeyOf(target)
	switch {
	case err != nil:
		return "", schema.ProtocolError
	case slices.Contains(chain, target):
		return "", schema.RedirectLimit
	case key.Domain != domain, planned[target]:
		return target, schema.Redirected
	case len(chain) > maxRedirects:
		return "", schema.RedirectLimit
	}
	return target, ""
}

// setOutcome sets the outcome of a response that is not a redirect. It returns the response's page
// and links.
func (c *crawl) setOutcome(f *Fetch, p Planned, url string, host int, a simweb.Response) (*Page, []Link) {
	f.FinalURL, f.HTTPStatus = url, int16(a.Status)
	part := faults.WholePage
	switch {
	case a.Fault != nil:
		f.Outcome, f.HTTPStatus, f.Truncated, part = a.Fault.Outcome, int16(a.Fault.Status), a.Fault.Truncated, a.Fault.Page
		if f.HTTPStatus == 0 {
			f.FinalURL = ""
		}
		if f.Truncated == schema.TruncatedLength && max(int64(len(a.Body)), a.Fault.Bomb) <= MaxBody {
			f.Truncated = ""
		}
	case a.Status >= 500:
		f.Outcome, part = schema.HTTP5xx, faults.NoPage
	case a.Status >= 400:
		f.Outcome, part = schema.HTTP4xx, faults.NoPage
	case a.Document == nil:
		f.Outcome, part = schema.MIMEFiltered, faults.NoPage
	default:
		f.Outcome = schema.OK
	}
	if part == faults.NoPage {
		return nil, nil
	}
	page := &Page{URL: url, PlannedURL: p.URL, Depth: p.Depth, Indexable: true, TextKnown: part != faults.OtherPage}
	if a.Fault == nil {
		_, path, _ := c.web.Locate(url)
		page.ETag = c.web.ETag(host, simweb.Untracked(path))
	}
	if part == faults.EmptyPage || part == faults.OtherPage || a.Document == nil {
		return page, nil
	}
	return page, c.read(page, a.Document, part, a.XRobots)
}

// read fills the page from a document, and returns the document's links.
func (c *crawl) read(page *Page, doc *simweb.Document, part faults.Part, xRobots string) []Link {
	page.Title, page.Description, page.Keywords, page.Author = doc.Title, doc.Description, doc.Keywords, doc.Author
	page.Language = doc.Language
	page.CanonicalURL = doc.Canonical
	page.Robots = cmp.Or(doc.Robots, xRobots)
	page.Indexable = page.Robots != "noindex"
	page.Main = string(doc.Main)
	page.WordCount = int32(len(bytes.Fields(doc.Main)))
	page.SimHash = simweb.Fingerprint(doc.Main)
	page.TextDigest = textDigest(doc.Main)
	all := doc.Links
	if part == faults.MainPage {
		all = all[:doc.MainLinks]
	}
	var links []Link
	for _, l := range all {
		target, ok := c.recordedTarget(l)
		if !ok {
			continue
		}
		links = append(links, Link{Source: page.URL, Target: target, Anchor: l.Anchor, Rel: l.Rel, Kind: l.Kind,
			Nofollow: l.Nofollow, Position: l.Position, Hreflang: l.Hreflang, Ordinal: int32(len(links))})
	}
	page.Outlinks = int32(len(links))
	return links
}

// recordedTarget returns the target of a link as the crawl records it. Tracking parameters stay
// unless the crawl removes them.
func (c *crawl) recordedTarget(l simweb.Link) (target string, ok bool) {
	if l.Track == "" {
		return l.Target, true
	}
	sep := "?"
	if strings.Contains(l.Target, "?") {
		sep = "&"
	}
	return c.canonical(l.Target + sep + l.Track)
}

func textDigest(main []byte) string {
	sum := sha1.Sum(bytes.ToLower(bytes.Join(bytes.Fields(main), []byte(" "))))
	return base32.StdEncoding.EncodeToString(sum[:])
}

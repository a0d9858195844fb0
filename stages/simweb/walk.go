package simweb

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
)

// crawl is the state of a walk between rounds.
type crawl struct {
	web       *Web
	cfg       TruthConfig
	canonical func(url string) (string, bool)
	known     map[string]bool // planned before, or answered as a final URL
	hosts     map[string]bool // that were planned
	domains   map[string]bool
	standing  []earlier // pages of earlier rounds that stand for themselves or others
	rounds    int       // walked
}

// found is what the links of a round say of one target.
type found struct {
	followed bool  // by some link
	depth    int32 // least depth of a page that follows it; of any where none does
}

// round walks one round.
func (c *crawl) round(plan []Planned) (*Round, error) {
	planned := make(map[string]bool, len(plan))
	for _, p := range plan {
		planned[p.URL], c.known[p.URL] = true, true
	}
	r := new(Round)
	targets := make(map[string]found)
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
			c.known[page.URL] = true
			r.Pages = append(r.Pages, *page)
			r.Links = append(r.Links, links...)
			for _, l := range links {
				c.find(targets, l, p.Depth)
			}
		}
	}
	slices.SortFunc(r.Pages, func(a, b Page) int { return cmp.Compare(a.URL, b.URL) })
	slices.SortStableFunc(r.Links, func(a, b Link) int { return cmp.Compare(a.Source, b.Source) })
	slices.SortFunc(r.Redirects, func(a, b Link) int { return cmp.Compare(a.Source, b.Source) })
	r.Clusters = c.cluster(r.Pages)
	c.rounds++
	if err := c.frontier(r, targets); err != nil {
		return nil, err
	}
	return r, nil
}

// find notes the target of a link of a followed kind.
func (c *crawl) find(targets map[string]found, l Link, depth int32) {
	if !followed(c.cfg.Kinds, l.Kind) {
		return
	}
	t, seen := targets[l.Target]
	switch {
	case !seen, !l.Nofollow && !t.followed:
		targets[l.Target] = found{followed: !l.Nofollow, depth: depth}
	case t.followed == !l.Nofollow:
		t.depth = min(t.depth, depth)
		targets[l.Target] = t
	}
}

// frontier decides about the targets of a round.
func (c *crawl) frontier(r *Round, targets map[string]found) error {
	for url, t := range targets { // sorted below
		if c.known[url] {
			continue
		}
		key, err := urlkey.KeyOf(url)
		if err != nil {
			return fmt.Errorf("simweb: target of a link: %w", err)
		}
		inScope := false
		switch c.cfg.Follow {
		case FollowAny:
			inScope = true
		case FollowHost:
			inScope = c.hosts[key.Host]
		case FollowDomain:
			inScope = c.domains[key.Domain]
		}
		depth := t.depth + 1
		switch {
		case !t.followed:
			r.Skips = append(r.Skips, Skip{url, schema.SkipNofollow, depth})
		case !inScope:
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
		c.hosts[key.Host], c.domains[key.Domain] = true, true
	}
	return nil
}

// fetch follows a planned URL to its outcome. unanswered is a redirect hop that was
// not asked for, or gave no answer.
func (c *crawl) fetch(p Planned, planned map[string]bool) (f Fetch, page *Page, links []Link, unanswered string, err error) {
	key, err := urlkey.KeyOf(p.URL)
	if err != nil {
		return f, nil, nil, "", fmt.Errorf("simweb: planned URL: %w", err)
	}
	f = Fetch{URL: p.URL, Host: key.Host, Domain: key.Domain, Depth: p.Depth}
	chain := []string{p.URL}
	for url := p.URL; ; {
		host, path, exists := c.web.locate(url)
		if !exists { // the server's word for a host that it does not have
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
		a := c.web.look(host, path)
		if a.fault != nil && f.Fault == "" {
			f.Fault = a.fault.Name
		}
		if !a.redirects() {
			page, links = c.settle(&f, p, url, host, a)
			if len(chain) > 1 && f.FinalURL != url {
				unanswered = url
			}
			return f, page, links, unanswered, nil
		}
		f.HTTPStatus, f.FinalURL = int16(a.status), url
		target, outcome := c.hop(a, key.Domain, chain, planned)
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

// robots asks for the verdict on a URL; the outcome is "" where it is allowed.
func (c *crawl) robots(f *Fetch, host int, path string, first bool) schema.Outcome {
	if c.web.Profile(host) == RobotsUnreachable {
		return schema.RobotsUnreachable
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

// hop decides about a redirect: the outcome that it ends in, or "" and where it goes on.
func (c *crawl) hop(a answer, domain string, chain []string, planned map[string]bool) (target string, outcome schema.Outcome) {
	if a.to.host < 0 && a.to.path == "" {
		return "", schema.ProtocolError
	}
	target, _ = c.canonical(c.web.urlOf(a.to))
	key, err := urlkey.KeyOf(target)
	switch {
	case err != nil:
		return "", schema.ProtocolError
	case slices.Contains(chain, target):
		return "", schema.RedirectLimit
	case key.Domain != domain, planned[target]:
		return target, schema.Redirected
	case len(chain) > c.cfg.MaxRedirects:
		return "", schema.RedirectLimit
	}
	return target, ""
}

// settle gives the outcome of an answer that is no redirect, and its page.
func (c *crawl) settle(f *Fetch, p Planned, url string, host int, a answer) (*Page, []Link) {
	f.FinalURL, f.HTTPStatus = url, int16(a.status)
	part, xRobots := WholePage, a.xRobots
	switch {
	case a.fault != nil:
		f.Outcome, f.HTTPStatus, f.Truncated, part = a.fault.Outcome, int16(a.fault.Status), a.fault.Truncated, a.fault.Page
		if f.HTTPStatus == 0 {
			f.FinalURL = ""
		}
		if f.Truncated == schema.TruncatedLength && c.size(a) <= c.cfg.MaxBody {
			f.Truncated = ""
		}
	case a.status >= 500:
		f.Outcome, part = schema.HTTP5xx, NoPage
	case a.status >= 400:
		f.Outcome, part = schema.HTTP4xx, NoPage
	case a.doc == nil:
		f.Outcome, part = schema.MIMEFiltered, NoPage
	default:
		f.Outcome = schema.OK
	}
	if part == NoPage {
		return nil, nil
	}
	page := &Page{URL: url, PlannedURL: p.URL, Depth: p.Depth, Indexable: true, TextKnown: part != OtherPage}
	if a.fault == nil {
		_, path, _ := c.web.locate(url)
		page.ETag = c.web.etag(host, untracked(path))
	}
	if part == EmptyPage || a.doc == nil {
		return page, nil
	}
	return page, c.read(page, a.doc, part, xRobots)
}

// size is the length of a faulty document once decoded.
func (c *crawl) size(a answer) int64 {
	if a.fault.Name == "gzip-bomb" {
		return int64(len(a.doc.html)) + 64<<20
	}
	return int64(len(a.body))
}

// read fills in what a document says.
func (c *crawl) read(page *Page, doc *document, part Part, xRobots string) []Link {
	if part == OtherPage {
		return nil
	}
	page.Title, page.Description, page.Keywords, page.Author = doc.title, doc.description, doc.keywords, doc.author
	page.Language = doc.lang.iso
	page.CanonicalURL = doc.canonical
	page.Robots = cmp.Or(doc.robots, xRobots)
	page.Indexable = page.Robots != "noindex"
	page.Main = string(doc.main)
	page.WordCount = int32(len(bytes.Fields(doc.main)))
	page.SimHash = fingerprint(doc.main)
	page.TextDigest = textDigest(doc.main)
	n := len(doc.links)
	if part == MainPage {
		n = doc.mainLinks
	}
	var links []Link
	for i, l := range doc.recorded(n, c.canonical) {
		links = append(links, Link{Source: page.URL, Target: l.target, Anchor: l.anchor, Rel: l.rel, Kind: l.kind,
			Nofollow: l.nofollow, Position: l.position, Hreflang: l.hreflang, Ordinal: int32(i)})
	}
	page.Outlinks = int32(len(links))
	return links
}

func textDigest(main []byte) string {
	sum := sha1.Sum(bytes.ToLower(bytes.Join(bytes.Fields(main), []byte(" "))))
	return base32.StdEncoding.EncodeToString(sum[:])
}

// locate finds the host of a canonical URL; ok is false where the web has none.
func (w *Web) locate(url string) (host int, path string, ok bool) {
	rest, found := strings.CutPrefix(url, "http://")
	i := strings.IndexByte(rest, '/')
	if !found || i < 0 {
		return 0, "", false
	}
	host, ok = w.HostIndex(rest[:i])
	return host, rest[i:], ok
}

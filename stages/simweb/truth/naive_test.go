package truth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/publicsuffix"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// naive is a short crawler over net/http, net/url and x/net/html that shares no code with package
// truth. Tests compare its results with Truth.
type naive struct {
	t      *testing.T
	client *http.Client
	robots map[string]func(path string) (allowed bool, rule string) // robots rules by host; nil for an unreachable robots.txt

	unanswered string // URL at which a redirect chain broke off, because it was not requested or did not answer; "" if none
	strip      *regexp.Regexp
}

func newNaive(t *testing.T, addr string) *naive {
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	return &naive{
		t: t,
		client: &http.Client{
			Transport:     &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 4},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Timeout:       20 * time.Second,
		},
		robots: map[string]func(string) (bool, string){},
		strip:  regexp.MustCompile(`^(utm_.*|fbclid|gclid)$`),
	}
}

func (n *naive) get(u string) (*http.Response, []byte, error) {
	resp, err := n.client.Get(u)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, body, err
}

// canonical resolves ref with net/url and returns it as the web writes URLs.
func (n *naive) canonical(base, ref string) (string, bool) {
	b, err := url.Parse(base)
	if err != nil {
		return "", false
	}
	u, err := b.Parse(strings.TrimSpace(ref))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return "", false
	}
	u.Host = strings.TrimSuffix(strings.ToLower(u.Host), ":80")
	if u.Fragment, u.RawFragment = "", ""; u.Path == "" {
		u.Path = "/"
	}
	var kept []string
	for _, p := range strings.Split(u.RawQuery, "&") {
		if name, _, _ := strings.Cut(p, "="); p != "" && !n.strip.MatchString(name) {
			kept = append(kept, strings.ReplaceAll(p, " ", "%20"))
		}
	}
	slices.Sort(kept)
	u.RawQuery, u.ForceQuery = strings.Join(kept, "&"), false
	return u.String(), true
}

func hostOf(u string) string { return strings.SplitN(u, "/", 4)[2] }

func domainOf(u string) string {
	d, err := publicsuffix.EffectiveTLDPlusOne(hostOf(u))
	if err != nil {
		return hostOf(u)
	}
	return d
}

// askRobots requests the robots.txt of a URL's host and returns its decision about the URL. It
// returns ok=false if the robots.txt is unreachable.
func (n *naive) askRobots(u string) (allowed bool, rule string, ok bool) {
	host := hostOf(u)
	verdict, asked := n.robots[host]
	if !asked {
		verdict = n.readRobots(host)
		n.robots[host] = verdict
	}
	if verdict == nil {
		return false, "", false
	}
	allowed, rule = verdict(strings.TrimPrefix(u, "http://"+host))
	return allowed, rule, true
}

func (n *naive) readRobots(host string) func(string) (bool, string) {
	u := "http://" + host + "/robots.txt"
	resp, body, err := n.get(u)
	if err == nil && resp.StatusCode == 301 {
		u, _ = n.canonical(u, resp.Header.Get("Location"))
		resp, body, err = n.get(u)
	}
	switch {
	case err != nil || resp.StatusCode >= 500:
		return nil
	case resp.StatusCode >= 400:
		return func(string) (bool, string) { return true, "" }
	}
	type rule struct {
		line    string
		allow   bool
		length  int
		pattern *regexp.Regexp
	}
	var rules []rule
	ours := false
	for _, line := range strings.Split(strings.ReplaceAll(string(body), "\r", ""), "\n") {
		name, value, found := strings.Cut(strings.TrimPrefix(line, "\ufeff"), ":")
		value = strings.TrimSpace(value)
		switch name = strings.ToLower(name); {
		case found && name == "user-agent":
			ours = value == "*"
		case ours && value != "" && (name == "allow" || name == "disallow"):
			p := regexp.QuoteMeta(strings.ReplaceAll(value, "é", "%C3%A9"))
			p = strings.ReplaceAll(p, `\*`, `.*`)
			p = regexp.MustCompile(`\\\$$`).ReplaceAllString(p, "$")
			rules = append(rules, rule{line, name == "allow", len(value), regexp.MustCompile("^" + p)})
		}
	}
	return func(path string) (bool, string) {
		best := rule{allow: true}
		for _, r := range rules {
			if r.length > best.length && r.pattern.MatchString(path) {
				best = r
			}
		}
		return best.allow, best.line
	}
}

// outcome fetches a planned URL, follows its redirects and returns the result.
func (n *naive) outcome(p Planned, planned map[string]bool) (f Fetch, page *Page, links []Link) {
	f = Fetch{URL: p.URL, Host: hostOf(p.URL), Domain: domainOf(p.URL), Depth: p.Depth}
	chain := []string{p.URL}
	n.unanswered = ""
	for {
		u := chain[len(chain)-1]
		if f.FinalURL = ""; len(chain) > 1 {
			f.FinalURL, n.unanswered = chain[len(chain)-2], u
		}
		allowed, rule, ok := n.askRobots(u)
		if ok && len(chain) == 1 {
			f.RobotsAllowed, f.RobotsRule = &allowed, rule
		}
		if !ok || !allowed {
			f.Outcome = schema.RobotsDenied
			if !ok {
				f.Outcome = schema.RobotsUnreachable
			}
			return f, nil, nil
		}
		resp, body, err := n.get(u)
		for try := 0; err == nil && try < 3 && (resp.StatusCode >= 500 || resp.StatusCode == 429); try++ {
			resp, body, err = n.get(u)
		}
		if err != nil {
			f.Outcome = schema.ConnectError
			return f, nil, nil
		}
		f.FinalURL, f.HTTPStatus, n.unanswered = u, int16(resp.StatusCode), ""
		switch s := resp.StatusCode; {
		case s == 429:
			f.Outcome = schema.RateLimited
		case s >= 500:
			f.Outcome = schema.HTTP5xx
		case s >= 400:
			f.Outcome = schema.HTTP4xx
		case s >= 300:
			target, ok := n.canonical(u, resp.Header.Get("Location"))
			switch {
			case !ok || resp.Header.Get("Location") == "":
				f.Outcome = schema.ProtocolError
			case slices.Contains(chain, target) || len(chain) > 5:
				f.Outcome = schema.RedirectLimit
			case domainOf(target) != f.Domain || planned[target]:
				f.Outcome, f.RedirectTarget = schema.Redirected, target
			default:
				f.Redirects++
				chain = append(chain, target)
				continue
			}
		default:
			sniffed := cmp.Or(resp.Header.Get("Content-Type"), http.DetectContentType(body))
			if !strings.HasPrefix(sniffed, "text/html") {
				f.Outcome = schema.MIMEFiltered
				return f, nil, nil
			}
			f.Outcome = schema.OK
			if len(body) > 5<<20 {
				body, f.Truncated = body[:5<<20], schema.TruncatedLength
			}
			page, links = n.read(u, resp, body)
			page.PlannedURL, page.Depth = p.URL, p.Depth
		}
		return f, page, links
	}
}

// rounds crawls several rounds, like Truth.
func (n *naive) rounds(seeds []string, rounds int, maxDepth int32) ([]Round, error) {
	var out []Round
	known, domains := map[string]bool{}, map[string]bool{}
	var plan []Planned
	for _, s := range seeds {
		plan = append(plan, Planned{URL: s})
	}
	for range rounds {
		planned := map[string]bool{}
		for _, p := range plan {
			planned[p.URL], known[p.URL], domains[domainOf(p.URL)] = true, true, true
		}
		var r Round
		follow, never := map[string]int32{}, map[string]int32{}
		note := func(into map[string]int32, u string, depth int32) {
			if d, ok := into[u]; !ok || depth < d {
				into[u] = depth
			}
		}
		for _, p := range plan {
			f, page, links := n.outcome(p, planned)
			r.Fetches = append(r.Fetches, f)
			if n.unanswered != "" {
				note(follow, n.unanswered, p.Depth+1)
			}
			if f.RedirectTarget != "" {
				r.Redirects = append(r.Redirects, Link{Source: f.FinalURL, Target: f.RedirectTarget, Kind: schema.KindRedirect})
				note(follow, f.RedirectTarget, p.Depth+1)
			}
			if page == nil {
				continue
			}
			known[page.URL] = true
			r.Pages, r.Links = append(r.Pages, *page), append(r.Links, links...)
			for _, l := range links {
				if !slices.Contains(schema.DefaultFollowed, l.Kind) {
					continue
				}
				if l.Nofollow {
					note(never, l.Target, p.Depth+1)
				} else {
					note(follow, l.Target, p.Depth+1)
				}
			}
		}
		for u, d := range follow {
			delete(never, u)
			switch {
			case known[u]:
			case !domains[domainOf(u)]:
				r.Skips = append(r.Skips, Skip{u, schema.SkipOutOfScope, d})
			case d > maxDepth:
				r.Skips = append(r.Skips, Skip{u, schema.SkipDepth, d})
			default:
				r.Next = append(r.Next, Planned{u, d})
			}
		}
		for u, d := range never {
			if !known[u] {
				r.Skips = append(r.Skips, Skip{u, schema.SkipNofollow, d})
			}
		}
		slices.SortFunc(r.Pages, func(a, b Page) int { return cmp.Compare(a.URL, b.URL) })
		slices.SortStableFunc(r.Links, func(a, b Link) int { return cmp.Compare(a.Source, b.Source) })
		slices.SortFunc(r.Redirects, func(a, b Link) int { return cmp.Compare(a.Source, b.Source) })
		slices.SortFunc(r.Next, func(a, b Planned) int { return cmp.Compare(a.URL, b.URL) })
		slices.SortFunc(r.Skips, func(a, b Skip) int { return cmp.Compare(a.URL, b.URL) })
		out = append(out, r)
		plan = r.Next
	}
	if len(plan) == 0 {
		return out, errors.New("nothing is left for a further round: the test is too small")
	}
	return out, nil
}

// summary counts the outcomes of a round, for messages.
func summary(r *Round) string {
	n := map[schema.Outcome]int{}
	for _, f := range r.Fetches {
		n[f.Outcome]++
	}
	s := ""
	for _, o := range schema.Outcomes {
		if n[o] > 0 {
			s += string(o) + " " + strconv.Itoa(n[o]) + ", "
		}
	}
	return fmt.Sprintf("%s%d pages, %d links, %d clusters, %d next, %d skips", s, len(r.Pages), len(r.Links), len(r.Clusters), len(r.Next), len(r.Skips))
}

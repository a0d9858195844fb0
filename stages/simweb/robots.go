package simweb

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RobotsProfile is the kind of /robots.txt that a host has.
type RobotsProfile uint8

const (
	RobotsAllow       RobotsProfile = iota // a file that denies nothing
	RobotsNone                             // no file; the response is 404
	RobotsRules                            // rules that deny pages by prefix, wildcard and end anchor ($), and one that allows an exception
	RobotsDelay                            // like RobotsRules, with a Crawl-delay
	RobotsMoved                            // a redirect to a file like that of RobotsRules
	RobotsOdd                              // a file with a byte order mark, CRLF, meaningless lines and a group for another agent
	RobotsDenyAll                          // a file with Disallow: /
	RobotsUnreachable                      // no file; the response is always 503
)

// robotsBlock lists the profiles of consecutive hosts, in an order that the web's seed changes.
var robotsBlock = [...]RobotsProfile{
	RobotsAllow, RobotsRules, RobotsNone, RobotsDelay, RobotsRules, RobotsAllow, RobotsMoved, RobotsNone, RobotsAllow, RobotsOdd,
	RobotsDenyAll, RobotsNone, RobotsRules, RobotsDelay, RobotsUnreachable, RobotsAllow, RobotsRules, RobotsNone, RobotsAllow, RobotsOdd,
}

// BannedAgent is the product token to which RobotsOdd hosts deny every URL. All other agents share one
// group of rules on these hosts.
const BannedAgent = "simweb-banned"

// robotsMoved is the path of the rules on RobotsMoved hosts.
const robotsMoved = "/robots-moved.txt"

// Profile returns the profile of host i. The first host always allows everything.
func (w *Web) Profile(i int) RobotsProfile {
	if !w.cfg.Robots {
		return RobotsAllow
	}
	const n = len(robotsBlock)
	block := i / n
	k := w.root.named("robots").at(block)
	if block == 0 { // the first host keeps the first profile
		a := []int{1, 3, 7, 9, 11, 13, 17, 19}[k.below(8)] // coprime to n
		return robotsBlock[i%n*a%n]
	}
	return robotsBlock[permute(k, i%n, n)]
}

// These lines of robots.txt affect pages.
const (
	ruleDenyAll = "Disallow: /"
	rulePrivate = "Disallow: /private/"
	ruleOpen    = "Allow: /private/open-"
	ruleDrafts  = "Disallow: /*/drafts/"
	ruleCGI     = "Disallow: /*.cgi$"
	ruleCafe    = "disallow: /café/"
)

// robotsText returns the content of the robots.txt of host i.
func (w *Web) robotsText(i int) string {
	sitemap := "\nSitemap: http://" + w.Host(i) + "/sitemap.xml\n"
	rules := "# " + w.Host(i) + "\nUser-agent: *\n" + rulePrivate + "\n" + ruleOpen + "\n" + ruleDrafts + "\n" + ruleCGI + "\n"
	switch w.Profile(i) {
	case RobotsRules, RobotsMoved:
		return rules + sitemap
	case RobotsDelay:
		if w.cfg.CrawlDelay > 0 {
			seconds := strconv.FormatFloat(w.cfg.CrawlDelay.Seconds(), 'f', -1, 64)
			rules += "Crawl-delay: " + seconds + "\n"
		}
		return rules + sitemap
	case RobotsOdd:
		text := "\ufeffThis line means nothing\nUser-Agent: " + BannedAgent + "/2.0\nDisallow: /\n\nuser-agent: *\n" +
			ruleCafe + "\nDisallow:\nNoindex: /news/\n" + sitemap
		return strings.ReplaceAll(text, "\n", "\r\n")
	case RobotsDenyAll:
		return "User-agent: *\n" + ruleDenyAll + "\n"
	}
	return "User-agent: *\nDisallow:\n" + sitemap
}

// robotsResponse returns the response of host i at one of its robots paths.
func (w *Web) robotsResponse(i int, path string) (r Response, ok bool) {
	profile := w.Profile(i)
	text := func() Response {
		return Response{Status: http.StatusOK, MIME: "text/plain; charset=utf-8", Body: []byte(w.robotsText(i))}
	}
	switch {
	case path == robotsMoved && profile == RobotsMoved:
		return text(), true
	case path != "/robots.txt":
		return Response{}, false
	case profile == RobotsNone:
		return statusPage(http.StatusNotFound), true
	case profile == RobotsUnreachable:
		return statusPage(http.StatusServiceUnavailable), true
	case profile == RobotsMoved:
		r := statusPage(http.StatusMovedPermanently)
		r.Location, r.Target = robotsMoved, w.urlAt(i, robotsMoved)
		return r, true
	}
	return text(), true
}

// IsRobots reports whether host i serves a robots.txt at path.
func (w *Web) IsRobots(i int, path string) bool {
	_, ok := w.robotsResponse(i, path)
	return ok
}

// Verdict reports whether host i's robots.txt allows a path with its query. rule is the line of
// robots.txt that decides this, or "". Verdict parses no robots.txt, because the Web made the rules. If
// the robots.txt is unreachable, every path is denied.
func (w *Web) Verdict(i int, path string) (allowed bool, rule string) {
	switch w.Profile(i) {
	case RobotsUnreachable:
		return false, ""
	case RobotsDenyAll:
		return false, ruleDenyAll
	case RobotsOdd:
		if strings.HasPrefix(path, "/caf%C3%A9/") {
			return false, ruleCafe
		}
	case RobotsRules, RobotsDelay, RobotsMoved:
		switch {
		case strings.HasPrefix(path, "/private/open-"):
			return true, ruleOpen
		case strings.HasPrefix(path, "/private/"):
			return false, rulePrivate
		case strings.Contains(path[1:], "/drafts/"):
			return false, ruleDrafts
		case strings.HasSuffix(path, ".cgi"):
			return false, ruleCGI
		}
	}
	return true, ""
}

// CrawlDelay returns the Crawl-delay in host i's robots.txt, or 0.
func (w *Web) CrawlDelay(i int) time.Duration {
	if w.Profile(i) == RobotsDelay {
		return w.cfg.CrawlDelay
	}
	return 0
}

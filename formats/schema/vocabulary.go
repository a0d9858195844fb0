package schema

import (
	"net/http"
	"strings"
)

// Outcome is the result for one planned URL. Every planned URL gets exactly one outcome.
type Outcome string

// The outcomes, in the order in which reports list them.
const (
	OK                Outcome = "ok"                 // a document was stored, perhaps truncated
	NotModified       Outcome = "not_modified"       // the server answered 304
	Redirected        Outcome = "redirected"         // the URL redirects; the frontier decides about the target
	RobotsDenied      Outcome = "robots_denied"      // robots.txt forbids the URL; the row holds the rule
	RobotsUnreachable Outcome = "robots_unreachable" // robots.txt could not be fetched, so the URL was not requested
	HTTP4xx           Outcome = "http_4xx"           // the server answered with a 4xx status other than 402 and 429
	HTTP5xx           Outcome = "http_5xx"           // the server answered with a 5xx status, after all retries
	RateLimited       Outcome = "rate_limited"       // status 429, or 503 with Retry-After, after all retries
	Blocked           Outcome = "blocked"            // a service in front of the site refused the request, or the page says that it does; the row has its name
	PaymentRequired   Outcome = "payment_required"   // status 402; the row has the price, if the server states one
	DNSError          Outcome = "dns_error"          // the host's name does not resolve
	ConnectError      Outcome = "connect_error"      // the connection was refused or reset, or the host was unreachable
	TLSError          Outcome = "tls_error"          // no TLS session, because of the certificate or the protocol
	Timeout           Outcome = "timeout"            // no response in time after all retries
	ProtocolError     Outcome = "protocol_error"     // the response cannot be read as HTTP, even leniently
	RedirectLimit     Outcome = "redirect_limit"     // more redirects than allowed, or a loop
	MIMEFiltered      Outcome = "mime_filtered"      // the media type is not stored; fetches has the detected type
	AddressBlocked    Outcome = "address_blocked"    // the address guard refused the connection
	HostSuspended     Outcome = "host_suspended"     // the host's breaker stayed open until the window closed
	Deferred          Outcome = "deferred"           // the fetch window closed before the URL's turn; the URL is due in the next round
	Stopped           Outcome = "stopped"            // the URL's domain was stopped while the crawl ran
	InternalError     Outcome = "internal_error"     // crawlbatch itself has a fault
)

// Outcomes lists all outcomes in report order.
var Outcomes = []Outcome{OK, NotModified, Redirected, RobotsDenied, RobotsUnreachable, HTTP4xx, HTTP5xx,
	RateLimited, Blocked, PaymentRequired, DNSError, ConnectError, TLSError, Timeout, ProtocolError, RedirectLimit, MIMEFiltered,
	AddressBlocked, HostSuspended, Deferred, Stopped, InternalError}

// Failed reports whether the outcome is a failure of the server, the network or the crawler.
func (o Outcome) Failed() bool {
	switch o {
	case HTTP4xx, HTTP5xx, RateLimited, Blocked, PaymentRequired, DNSError, ConnectError, TLSError, Timeout, ProtocolError, RedirectLimit, InternalError,
		HostSuspended, AddressBlocked, RobotsUnreachable:
		return true
	}
	return false
}

// SkipReason is the reason why a URL that was found is not planned.
type SkipReason string

// The skip reasons.
const (
	SkipNotURL     SkipReason = "not_url"      // the source line is not an absolute URL
	SkipBadRecord  SkipReason = "bad_record"   // the record of a list or of an external WARC file is unreadable or holds no content
	SkipScheme     SkipReason = "bad_scheme"   // the scheme is neither http nor https
	SkipTooLong    SkipReason = "too_long"     // the canonical URL is too long
	SkipOutOfScope SkipReason = "out_of_scope" // frontier.follow, scope.include or scope.exclude rules the URL out
	SkipFiltered   SkipReason = "filtered"     // a rule of plan.filter refuses the URL, or the result of plan.rewrite is not a URL
	SkipTrap       SkipReason = "trap"         // the URL looks like part of a trap: a calendar, a session, a parameter that changes nothing, a loop of path segments
	SkipDepth      SkipReason = "depth"        // the URL is more than plan.max_depth links from a source
	SkipBudget     SkipReason = "budget"       // the budget of the domain, the round or the crawl is used up
	SkipRobots     SkipReason = "robots"       // robots.txt denied the URL in an earlier fetch
	SkipNofollow   SkipReason = "nofollow"     // all links to the URL say nofollow, or their pages do
	SkipStopped    SkipReason = "stopped"      // the URL's domain is stopped
	SkipDuplicate  SkipReason = "duplicate"    // an earlier line of the source has the same canonical URL
	SkipRecent     SkipReason = "recent"       // the URL was fetched within plan.skip_within
	SkipFocus      SkipReason = "focus"        // the URL's score is below frontier.focus.threshold
	SkipOptOut     SkipReason = "opt_out"      // plan.opt_out names the URL, its host or its domain
)

// SkipReasons lists all skip reasons.
var SkipReasons = []SkipReason{SkipNotURL, SkipBadRecord, SkipScheme, SkipTooLong, SkipOutOfScope, SkipFiltered, SkipTrap, SkipDepth,
	SkipBudget, SkipRobots, SkipNofollow, SkipStopped, SkipDuplicate, SkipRecent, SkipOptOut, SkipFocus}

// URLState is the state of a known URL.
type URLState string

// The states of a URL.
const (
	StateFound      URLState = "found"      // known and due; not planned since it was found
	StateFetched    URLState = "fetched"    // fetched, and due again at next_due
	StateRedirected URLState = "redirected" // answers with a redirect to another URL
	StateDeferred   URLState = "deferred"   // planned but not requested in time, and still due
	StateDenied     URLState = "denied"     // forbidden by robots.txt
	StateFailed     URLState = "failed"     // failed for now, and due again at next_due
	StateGone       URLState = "gone"       // answered with 404 or 410
	StateSkipped    URLState = "skipped"    // found, but not planned as long as it looks like part of a trap
)

// URLStates lists all states.
var URLStates = []URLState{StateFound, StateFetched, StateRedirected, StateDeferred, StateDenied, StateFailed, StateGone, StateSkipped}

// DueReason says why a URL is fetched again at the time at which it is due.
type DueReason string

// The reasons of a due time.
const (
	DueFirst     DueReason = "first"     // no two fetches could be compared yet: frontier.recrawl.first
	DueRate      DueReason = "rate"      // the estimated rate of change makes a fetch worth its cost
	DueSteady    DueReason = "steady"    // the content has been the same for so long that the interval grows faster than by the rate
	DueMin       DueReason = "min"       // the interval would be less than frontier.recrawl.min
	DueMax       DueReason = "max"       // the interval would be more than frontier.recrawl.max
	DueAnnounced DueReason = "announced" // a sitemap or feed of the host announced a change
	DueRetry     DueReason = "retry"     // the last fetch failed, or the network cut the page: frontier.recrawl.retry_after
)

// DueReasons lists all reasons of due times.
var DueReasons = []DueReason{DueFirst, DueRate, DueSteady, DueMin, DueMax, DueAnnounced, DueRetry}

// StateAfter returns the state of a planned URL after an outcome with the given HTTP status. moved
// means that the document came from the target of a redirect.
func StateAfter(o Outcome, status int16, moved bool) URLState {
	switch {
	case o == Redirected, moved && (o == OK || o == NotModified):
		return StateRedirected
	case o == OK, o == NotModified:
		return StateFetched
	case o == RobotsDenied:
		return StateDenied
	case o == Deferred, o == HostSuspended, o == Stopped:
		return StateDeferred
	case o == HTTP4xx && (status == http.StatusNotFound || status == http.StatusGone):
		return StateGone
	}
	return StateFailed
}

// LinkKind is the element or mechanism from which a link comes.
type LinkKind string

// The kinds of links, most of them named after the HTML element. The config key frontier.kinds
// decides which kinds the crawl follows.
const (
	KindA         LinkKind = "a"
	KindArea      LinkKind = "area"
	KindIframe    LinkKind = "iframe"
	KindFrame     LinkKind = "frame"
	KindForm      LinkKind = "form"
	KindImg       LinkKind = "img"
	KindScript    LinkKind = "script"
	KindMedia     LinkKind = "media"
	KindLink      LinkKind = "link" // other <link> elements: icon, stylesheet, next, prev …
	KindCanonical LinkKind = "canonical"
	KindHreflang  LinkKind = "hreflang"
	KindFeed      LinkKind = "feed"
	KindRefresh   LinkKind = "refresh" // meta refresh, Refresh header
	KindHeader    LinkKind = "header"  // Link header
	KindRedirect  LinkKind = "redirect"
	KindSitemap   LinkKind = "sitemap" // page that a sitemap or a feed lists

	KindSitemapIndex LinkKind = "sitemapindex" // sitemap that a sitemap index lists
)

// LinkKinds lists every kind.
var LinkKinds = []LinkKind{KindA, KindArea, KindIframe, KindFrame, KindForm, KindImg, KindScript, KindMedia, KindLink,
	KindCanonical, KindHreflang, KindFeed, KindRefresh, KindHeader, KindRedirect, KindSitemap, KindSitemapIndex}

// DefaultFollowed lists the kinds of links whose targets may be planned. The config key
// frontier.kinds replaces the list.
var DefaultFollowed = []LinkKind{KindA, KindArea, KindIframe, KindFrame, KindCanonical, KindHreflang, KindRefresh,
	KindRedirect, KindSitemap, KindSitemapIndex}

// DuplicateKind is the relation of a page to its cluster.
type DuplicateKind string

// The duplicate kinds.
const (
	DupRepresentative DuplicateKind = "representative" // the page that represents its cluster
	DupExact          DuplicateKind = "exact"          // page with the same normalised text as the representative
	DupNear           DuplicateKind = "near"           // page within the Hamming limit of a member of the cluster
)

// PageHint is the kind of a page that a server seems to send instead of content, such as an error
// page. A page gets a hint only if it has typical phrases and little other text. Many pages without
// content get no hint.
type PageHint string

// The hints.
const (
	HintSoft404      PageHint = "soft_404"           // page that says "not found", with a 2xx status
	HintParked       PageHint = "parked"             // page that offers the domain for sale or says that the domain expired
	HintDefault      PageHint = "default_page"       // page that a server shows before anything is installed
	HintConstruction PageHint = "under_construction" // page that announces a future site
	HintBlocked      PageHint = "blocked"            // page that denies access or checks for robots
	HintScripts      PageHint = "scripts"            // page with little text, whose content scripts make in a browser
)

// OfOtherName reports whether a value of a column certificate says that the certificate is for other hosts: the
// server probably does not know this host.
func OfOtherName(certificate string) bool {
	return strings.HasSuffix(certificate, "other_name")
}

// Purpose is the reason why a request was sent.
type Purpose string

// The purposes of requests.
const (
	ForPage     Purpose = "page"
	ForRedirect Purpose = "redirect" // the request follows a redirect
	ForRobots   Purpose = "robots"
	ForSitemap  Purpose = "sitemap"
	ForProbe    Purpose = "probe" // the request tests a host that its breaker has suspended
)

// The subsets of captures, as Common Crawl names them.
const (
	SubsetWARC        = "warc"
	SubsetDiagnostics = "crawldiagnostics"
	SubsetRobots      = "robotstxt"
)

// Subsets lists the subsets of captures in the order in which the merge stage writes their parts.
var Subsets = []string{SubsetWARC, SubsetDiagnostics, SubsetRobots}

// Revisit is the reason why a capture's record has no payload. It is empty if the record has a
// payload.
type Revisit string

// The kinds of revisit, named after the profiles of WARC's revisit records.
const (
	RevisitIdentical   Revisit = "identical_payload" // an earlier record holds the same bytes
	RevisitNotModified Revisit = "not_modified"      // the server answered 304
)

// The reasons why a body was cut (content_truncated), named as in Common Crawl and WARC.
// TruncatedUnspecified marks a document that says noarchive: none of its bytes are kept.
const (
	TruncatedLength     = "length"
	TruncatedTime       = "time"
	TruncatedDisconnect = "disconnect"

	TruncatedUnspecified = "unspecified"
)

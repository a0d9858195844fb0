package schema

import "net/http"

// Outcome is what became of one planned URL; every planned URL ends in exactly one.
type Outcome string

// The outcomes, in the order in which reports list them.
const (
	OK                Outcome = "ok"                 // a document was stored; it may be truncated
	NotModified       Outcome = "not_modified"       // the server answered 304
	Redirected        Outcome = "redirected"         // the frontier decides about the target
	RobotsDenied      Outcome = "robots_denied"      // robots.txt forbids it; the rule is in the row
	RobotsUnreachable Outcome = "robots_unreachable" // robots.txt could not be fetched, so the URL was not requested
	HTTP4xx           Outcome = "http_4xx"           // a 4xx response other than 429
	HTTP5xx           Outcome = "http_5xx"           // a 5xx response after all retries
	RateLimited       Outcome = "rate_limited"       // 429, or 503 with Retry-After, after all retries
	DNSError          Outcome = "dns_error"          // the host's name does not resolve
	ConnectError      Outcome = "connect_error"      // no connection: refused, reset, unreachable
	TLSError          Outcome = "tls_error"          // no TLS session: certificate, protocol
	Timeout           Outcome = "timeout"            // no response in time after all retries
	ProtocolError     Outcome = "protocol_error"     // the answer cannot be read as HTTP, even leniently
	RedirectLimit     Outcome = "redirect_limit"     // more redirects than allowed, or a loop
	MIMEFiltered      Outcome = "mime_filtered"      // a media type that is not stored; fetches has the detected type
	AddressBlocked    Outcome = "address_blocked"    // the address guard refused the connection
	HostSuspended     Outcome = "host_suspended"     // the host's breaker was open until the window closed
	Deferred          Outcome = "deferred"           // the window closed first; due in the next round
	Stopped           Outcome = "stopped"            // its domain was stopped while the crawl ran
	InternalError     Outcome = "internal_error"     // a fault of this program
)

// Outcomes lists all outcomes in report order.
var Outcomes = []Outcome{OK, NotModified, Redirected, RobotsDenied, RobotsUnreachable, HTTP4xx, HTTP5xx,
	RateLimited, DNSError, ConnectError, TLSError, Timeout, ProtocolError, RedirectLimit, MIMEFiltered,
	AddressBlocked, HostSuspended, Deferred, Stopped, InternalError}

// SkipReason is why a URL that was found is not planned.
type SkipReason string

// The skip reasons.
const (
	SkipNotURL     SkipReason = "not_url"      // a source line that is not an absolute URL
	SkipBadRecord  SkipReason = "bad_record"   // a record of an external WARC file that cannot be read or holds no content
	SkipScheme     SkipReason = "bad_scheme"   // neither http nor https
	SkipTooLong    SkipReason = "too_long"     // the canonical form is too long
	SkipOutOfScope SkipReason = "out_of_scope" // frontier.follow or scope.exclude/include keeps it out
	SkipFiltered   SkipReason = "filtered"     // a suffix or type that is never fetched
	SkipTrap       SkipReason = "trap"         // repeats itself: a calendar, a session, a loop of segments
	SkipDepth      SkipReason = "depth"        // deeper than plan.max_depth
	SkipBudget     SkipReason = "budget"       // does not fit into the budget of its domain, the round or the crawl
	SkipRobots     SkipReason = "robots"       // robots.txt denied it before
	SkipNofollow   SkipReason = "nofollow"     // each link to it is nofollow, by itself or by its page
	SkipStopped    SkipReason = "stopped"      // its domain is stopped
	SkipDuplicate  SkipReason = "duplicate"    // the source has the same canonical URL already
	SkipSpellings  SkipReason = "spellings"    // it has more spellings (of its own domain and the sources) than are checked against robots.txt
)

// SkipReasons lists all skip reasons.
var SkipReasons = []SkipReason{SkipNotURL, SkipBadRecord, SkipScheme, SkipTooLong, SkipOutOfScope, SkipFiltered, SkipTrap, SkipDepth,
	SkipBudget, SkipRobots, SkipNofollow, SkipStopped, SkipDuplicate, SkipSpellings}

// URLState is the state of a known URL.
type URLState string

// The states of a URL.
const (
	StateFound      URLState = "found"      // known, never fetched, due
	StateFetched    URLState = "fetched"    // fetched; next_due says when again
	StateRedirected URLState = "redirected" // answers with a redirect to another URL
	StateDeferred   URLState = "deferred"   // planned, not reached; due
	StateDenied     URLState = "denied"     // robots.txt forbids it
	StateFailed     URLState = "failed"     // failed for now; next_due says when again
	StateGone       URLState = "gone"       // 404 or 410
	StateSkipped    URLState = "skipped"    // never planned: it is in skips, or no followed link names it; its row keeps its spellings
)

// URLStates lists all states.
var URLStates = []URLState{StateFound, StateFetched, StateRedirected, StateDeferred, StateDenied, StateFailed, StateGone, StateSkipped}

// StateAfter is the state of a planned URL after an outcome. moved says that another URL answered.
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

// LinkKind is the element or mechanism that a link comes from.
type LinkKind string

// The kinds of links. Which kinds are followed is config.
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
	KindSitemap   LinkKind = "sitemap" // an entry of a sitemap or of a feed: a page

	KindSitemapIndex LinkKind = "sitemapindex" // an entry of a sitemap index: another sitemap
)

// LinkKinds lists every kind.
var LinkKinds = []LinkKind{KindA, KindArea, KindIframe, KindFrame, KindForm, KindImg, KindScript, KindMedia, KindLink,
	KindCanonical, KindHreflang, KindFeed, KindRefresh, KindHeader, KindRedirect, KindSitemap, KindSitemapIndex}

// DefaultFollowed lists the kinds of links that the crawl follows, so that their targets may be
// planned, unless config (frontier.kinds) names others.
var DefaultFollowed = []LinkKind{KindA, KindArea, KindIframe, KindFrame, KindCanonical, KindHreflang, KindRefresh,
	KindRedirect, KindSitemap, KindSitemapIndex}

// DuplicateKind is how a page belongs to its cluster.
type DuplicateKind string

// The duplicate kinds.
const (
	DupRepresentative DuplicateKind = "representative" // the page that represents its cluster
	DupExact          DuplicateKind = "exact"          // the same normalised text as the representative
	DupNear           DuplicateKind = "near"           // within the Hamming limit of a member of the cluster
)

// PageHint is the kind of page that a server seems to send instead of content. It is given only if
// the page has typical phrases and little other text, so many such pages have no hint.
type PageHint string

// The hints.
const (
	HintSoft404      PageHint = "soft_404"           // says that there is no such page, with a status of success
	HintParked       PageHint = "parked"             // offers the domain for sale, or says that it expired
	HintDefault      PageHint = "default_page"       // what a server shows before anything is installed
	HintConstruction PageHint = "under_construction" // announces a site to come
	HintBlocked      PageHint = "blocked"            // a wall: checks for robots, access denied
)

// Purpose is why a request was sent.
type Purpose string

// The purposes of requests.
const (
	ForPage     Purpose = "page"
	ForRedirect Purpose = "redirect" // a redirect's next hop
	ForRobots   Purpose = "robots"
	ForSitemap  Purpose = "sitemap"
	ForProbe    Purpose = "probe" // a breaker tests a suspended host
)

// The subsets of captures, as Common Crawl names them.
const (
	SubsetWARC        = "warc"
	SubsetDiagnostics = "crawldiagnostics"
	SubsetRobots      = "robotstxt"
)

// Subsets lists the subsets of captures in the order of their parts.
var Subsets = []string{SubsetWARC, SubsetDiagnostics, SubsetRobots}

// Revisit says why a capture's record has no payload. It is empty if the record has one.
type Revisit string

// The kinds of revisit, as WARC's profiles have them.
const (
	RevisitIdentical   Revisit = "identical_payload" // an earlier record holds the same bytes
	RevisitNotModified Revisit = "not_modified"      // the server answered 304
)

// Why a body was cut (content_truncated), as Common Crawl and WARC name it.
// TruncatedUnspecified marks a document that says noarchive: it was read, but none of it is kept.
const (
	TruncatedLength     = "length"
	TruncatedTime       = "time"
	TruncatedDisconnect = "disconnect"

	TruncatedUnspecified = "unspecified"
)

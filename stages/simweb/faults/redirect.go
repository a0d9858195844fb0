package faults

import "crawlbatch.io/crawlbatch/formats/schema"

// Destination says where a redirect leads.
type Destination uint8

// The destinations of redirects. No link names a landing page, so results do not depend on the
// order of fetching.
const (
	Landing Destination = iota // the landing page on the same host
	Sibling                    // the landing page on another host of the domain, if there is one
	Denied                     // a landing page that robots.txt denies on some hosts
	Away                       // a page of another domain, if there is one
	Outside                    // a host that the web does not have
	Self                       // the fault's first URL, which makes a loop
	Nowhere                    // no page: the Location is missing, invalid or not http
)

// Redirect describes where a redirect leads and how its Location is written.
type Redirect struct {
	To   Destination
	Hops int // number of redirects in a chain after the first
	// Query is appended to the target. If Written is not empty, the Location has Written in place
	// of Query.
	Query, Written string
	// Prefix and Suffix surround the target in the Location. If To is Nowhere, Prefix is the whole
	// Location.
	Prefix, Suffix string
	Full           bool // whether the Location has the whole URL, not just the path
}

var redirectFaults = []Fault{
	redirect("redirect-301", 301, "moved permanently, a path", Redirect{}),
	redirect("redirect-302", 302, "found, a path", Redirect{}),
	redirect("redirect-303", 303, "see other, a path", Redirect{}),
	redirect("redirect-307", 307, "temporary redirect, a path", Redirect{}),
	redirect("redirect-308", 308, "permanent redirect, a path", Redirect{}),
	redirect("redirect-relative", 302, "a Location relative to the directory", Redirect{Prefix: "../.."}),
	redirect("redirect-fragment", 301, "a Location with a fragment", Redirect{Full: true, Suffix: "#part-2"}),
	redirect("redirect-tracked", 302, "a Location with a tracking parameter", Redirect{Query: "?utm_source=redirect"}),
	redirect("redirect-percent", 302, "a Location with a percent sign that escapes nothing", Redirect{Query: "?full=100%"}),
	redirect("redirect-space", 302, "a Location with spaces in and around it",
		Redirect{Query: "?q=two%20words", Written: "?q=two words", Prefix: "  ", Suffix: " "}),
	onHost(redirect("redirect-host", 301, "to another host of the domain, if it has one", Redirect{To: Sibling, Full: true})),
	onHost(redirect("redirect-denied", 302, "to a path that robots.txt denies on some hosts", Redirect{To: Denied})),
	onHost(withOutcome(redirect(Planned, 301, "to a page that every link to this one is followed by", Redirect{}), schema.Redirected, 0)),
	onHost(withOutcome(redirect("redirect-away", 302, "to a page of another domain, if there is one", Redirect{To: Away, Full: true}), schema.Redirected, 0)),
	withOutcome(redirect("redirect-outside", 301, "to a host that this web does not have", Redirect{To: Outside, Full: true}), schema.Redirected, 0),
	withOutcome(redirect("redirect-self", 302, "to itself", Redirect{To: Self}), schema.RedirectLimit, 0),
	withOutcome(redirect("redirect-loop", 302, "to a URL that leads back", Redirect{To: Self, Hops: 1}), schema.RedirectLimit, 1),
	redirectChain("redirect-chain-3", 3),
	redirectChain("redirect-chain-5", 5),
	withOutcome(redirectChain("redirect-chain-9", 9), schema.RedirectLimit, 5),
	withoutBody(withOutcome(redirect("redirect-nowhere", 302, "302 without a Location or a body", Redirect{To: Nowhere}), schema.ProtocolError, 0)),
	withOutcome(redirect("redirect-invalid", 302, "a Location that is not a URL", Redirect{To: Nowhere, Prefix: "http://[bad/"}), schema.ProtocolError, 0),
	withOutcome(redirect("redirect-ftp", 302, "to a URL of another scheme", Redirect{To: Nowhere, Prefix: "ftp://files.example/"}), schema.ProtocolError, 0),
	{Name: "meta-refresh", About: "a page with a meta refresh, which is a link to follow, not a redirect", Class: Quick,
		Outcome: schema.OK, Status: 200, Page: WholePage, Refresh: true},
}

// redirect returns a fault that redirects to a page.
func redirect(name string, code int, about string, r Redirect) Fault {
	return Fault{Name: name, About: about, Class: Quick, Outcome: schema.OK, Status: 200, Redirects: 1 + r.Hops, Page: WholePage,
		Code: code, Redirect: &r}
}

// redirectChain returns a fault that redirects n times.
func redirectChain(name string, n int) Fault {
	return redirect(name, 302, "a chain of redirects on one host", Redirect{Hops: n - 1})
}

// withOutcome returns a copy of the redirect f whose chain ends in an outcome, not in a page. The
// crawler first follows the given number of redirects.
func withOutcome(f Fault, outcome schema.Outcome, followed int) Fault {
	f.Outcome, f.Status, f.Redirects, f.Page = outcome, f.Code, followed, NoPage
	return f
}

func withoutBody(f Fault) Fault {
	f.alter = func(r *Response) { r.NoPage, r.Body = true, nil }
	return f
}

func onHost(f Fault) Fault {
	f.Host = true
	return f
}

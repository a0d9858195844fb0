package simweb

import (
	"net/http"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// statusFaults answer with a status.
var statusFaults = []Fault{
	{Name: "not-found", About: "404", Class: Quick, Outcome: schema.HTTP4xx, Status: 404, code: 404},
	{Name: "gone", About: "410", Class: Quick, Outcome: schema.HTTP4xx, Status: 410, code: 410},
	{Name: "forbidden", About: "403", Class: Quick, Outcome: schema.HTTP4xx, Status: 403, code: 403},
	{Name: "unauthorized", About: "401 with a challenge", Class: Quick, Outcome: schema.HTTP4xx, Status: 401, code: 401,
		header: []string{"WWW-Authenticate", `Basic realm="members"`}},
	{Name: "server-error", About: "500, always", Class: Retried, Outcome: schema.HTTP5xx, Status: 500, code: 500},
	{Name: "bad-gateway", About: "502, always", Class: Retried, Outcome: schema.HTTP5xx, Status: 502, code: 502},
	{Name: "unavailable", About: "503 without Retry-After, always", Class: Retried, Outcome: schema.HTTP5xx, Status: 503, code: 503},
	{Name: "server-error-once", About: "500 to the first request, then the page", Class: Retried, Outcome: schema.OK, Status: 200,
		Page: WholePage, first: 500},
	{Name: "unavailable-once", About: "503 with Retry-After to the first request, then the page", Class: Retried,
		Outcome: schema.OK, Status: 200, Page: WholePage, first: 503},
	{Name: "rate-limited", About: "429 with Retry-After, always", Class: Retried, Outcome: schema.RateLimited, Status: 429, code: 429},
	{Name: "rate-limited-once", About: "429 with Retry-After to the first request, then the page", Class: Retried,
		Outcome: schema.OK, Status: 200, Page: WholePage, first: 429},
	page("soft-404", "200 for a page that says it is not there, in the same words everywhere", func(_ visit, a *answer) {
		a.doc = softNotFound()
		a.body = a.doc.html
	}),
}

// softNotFound is the page of soft 404s. It is long enough for its copies to be
// duplicates of one another.
func softNotFound() *document {
	const (
		heading = "Page not found"
		words   = "We are sorry, but the page that you are looking for is not here. It may have been moved, renamed or " +
			"removed, or it may never have existed at all. Please check the address for mistakes, go back to the page that " +
			"you came from, or begin anew at the front page of this site, where you will find all that we have to offer."
	)
	d := &document{title: heading, lang: languages[0], main: []byte(heading + "\n" + words)}
	d.html = []byte("<!doctype html>\n<html lang=\"en\">\n<head><title>" + heading + "</title></head>\n<body><main><h1>" + heading +
		"</h1>\n<p>" + words + "</p></main>\n")
	d.mainEnd = len(d.html)
	d.html = append(d.html, "</body>\n</html>\n"...)
	return d
}

// redirectFaults lead on. Where they lead to a page, it is one that nothing else
// names, so that no order of fetching changes what becomes of them.
var redirectFaults = []Fault{
	landing("redirect-301", 301, "moved permanently, a path"),
	landing("redirect-302", 302, "found, a path"),
	landing("redirect-303", 303, "see other, a path"),
	landing("redirect-307", 307, "temporary redirect, a path"),
	landing("redirect-308", 308, "permanent redirect, a path"),
	{Name: "redirect-relative", About: "a Location relative to the directory", Class: Quick, Outcome: schema.OK, Status: 200,
		Redirects: 1, Page: WholePage, code: 302, redirect: func(v visit) hop {
			p := landingPath("redirect-relative", v.num)
			return hop{"../.." + p, place{v.host, p}}
		}},
	{Name: "redirect-fragment", About: "a Location with a fragment", Class: Quick, Outcome: schema.OK, Status: 200, Redirects: 1,
		Page: WholePage, code: 301, redirect: func(v visit) hop {
			p := landingPath("redirect-fragment", v.num)
			return hop{v.w.at(v.host, p) + "#part-2", place{v.host, p}}
		}},
	{Name: "redirect-tracked", About: "a Location with a tracking parameter", Class: Quick, Outcome: schema.OK, Status: 200,
		Redirects: 1, Page: WholePage, code: 302, redirect: func(v visit) hop {
			p := landingPath("redirect-tracked", v.num)
			return hop{p + "?utm_source=redirect", place{v.host, p + "?utm_source=redirect"}}
		}},
	{Name: "redirect-percent", About: "a Location with a percent sign that escapes nothing", Class: Quick, Outcome: schema.OK,
		Status: 200, Redirects: 1, Page: WholePage, code: 302, redirect: func(v visit) hop {
			p := landingPath("redirect-percent", v.num) + "?full=100%"
			return hop{p, place{v.host, p}}
		}},
	{Name: "redirect-space", About: "a Location with spaces in and around it", Class: Quick, Outcome: schema.OK, Status: 200,
		Redirects: 1, Page: WholePage, code: 302, redirect: func(v visit) hop {
			p := landingPath("redirect-space", v.num)
			return hop{"  " + p + "?q=two words ", place{v.host, p + "?q=two%20words"}}
		}},
	{Name: "redirect-host", About: "to another host of the domain, if it has one", Class: Quick, Outcome: schema.OK, Status: 200,
		Redirects: 1, Page: WholePage, Host: true, code: 301, redirect: func(v visit) hop {
			to := place{v.w.sibling(v.host), landingPath("redirect-host", v.num)}
			return hop{v.w.urlOf(to), to}
		}},
	{Name: "redirect-denied", About: "to a path that robots.txt denies on some hosts", Class: Quick, Outcome: schema.OK, Status: 200,
		Redirects: 1, Page: WholePage, Host: true, code: 302, redirect: func(v visit) hop {
			p := deniedLandingPath("redirect-denied", v.num)
			return hop{p, place{v.host, p}}
		}},
	{Name: faultPlanned, About: "to a page that every link to this one is followed by", Class: Quick, Outcome: schema.Redirected,
		Status: 301, Host: true, code: 301, redirect: func(v visit) hop {
			p := landingPath(faultPlanned, v.num)
			return hop{p, place{v.host, p}}
		}},
	{Name: "redirect-away", About: "to a page of another domain, if there is one", Class: Quick, Outcome: schema.Redirected, Status: 302,
		Host: true, code: 302, redirect: func(v visit) hop {
			k := v.w.pageKey(v.host, v.num).named("away")
			to := v.w.outside(k)
			if h, ok := v.w.stranger(k, v.host); ok {
				to = place{h, "/"}
				if p := k.at(1).below(v.w.Pages(h)); v.w.role(h, p) != roleFault {
					to.path = v.w.path(h, p)
				}
			}
			return hop{v.w.urlOf(to), to}
		}},
	{Name: "redirect-outside", About: "to a host that this web does not have", Class: Quick, Outcome: schema.Redirected, Status: 301,
		code: 301, redirect: func(v visit) hop {
			to := v.w.outside(v.w.pageKey(v.host, v.num).named("outside"))
			return hop{to.path, to}
		}},
	{Name: "redirect-self", About: "to itself", Class: Quick, Outcome: schema.RedirectLimit, Status: 302, code: 302,
		redirect: func(v visit) hop {
			p := faultPath("redirect-self", v.num)
			return hop{p, place{v.host, p}}
		}},
	{Name: "redirect-loop", About: "to a URL that leads back", Class: Quick, Outcome: schema.RedirectLimit, Status: 302, Redirects: 1,
		code: 302, hops: 1, redirect: func(v visit) hop {
			p := faultPath("redirect-loop", v.num)
			if v.hop == 0 {
				p = hopPath("redirect-loop", v.num, 1)
			}
			return hop{p, place{v.host, p}}
		}},
	chain("redirect-chain-3", 3, schema.OK, 200, 3, WholePage),
	chain("redirect-chain-5", 5, schema.OK, 200, 5, WholePage),
	chain("redirect-chain-9", 9, schema.RedirectLimit, 302, 5, NoPage),
	{Name: "redirect-nowhere", About: "302 without a Location", Class: Quick, Outcome: schema.ProtocolError, Status: 302, code: 302,
		redirect: func(visit) hop { return hop{"", place{host: -1}} }},
	{Name: "redirect-invalid", About: "a Location that is no URL", Class: Quick, Outcome: schema.ProtocolError, Status: 302, code: 302,
		redirect: func(visit) hop { return hop{"http://[bad/", place{host: -1}} }},
	{Name: "redirect-ftp", About: "to a URL of another scheme", Class: Quick, Outcome: schema.ProtocolError, Status: 302, code: 302,
		redirect: func(visit) hop { return hop{"ftp://files.example/", place{host: -1}} }},
	{Name: "meta-refresh", About: "a page with a meta refresh, which is a link to follow, not a redirect", Class: Quick,
		Outcome: schema.OK, Status: 200, Page: WholePage,
		refresh: func(v visit) place { return place{v.host, landingPath("meta-refresh", v.num)} }},
}

// landing is a redirect to a path of the same host.
func landing(name string, code int, about string) Fault {
	return Fault{Name: name, About: about, Class: Quick, Outcome: schema.OK, Status: http.StatusOK, Redirects: 1, Page: WholePage,
		code: code, redirect: func(v visit) hop {
			p := landingPath(name, v.num)
			return hop{p, place{v.host, p}}
		}}
}

// chain is a redirect of n hops.
func chain(name string, n int, outcome schema.Outcome, status, redirects int, page Part) Fault {
	return Fault{Name: name, About: "a chain of redirects on one host", Class: Quick, Outcome: outcome, Status: status,
		Redirects: redirects, Page: page, code: http.StatusFound, hops: n - 1, redirect: func(v visit) hop {
			p := landingPath(name, v.num)
			if v.hop < n-1 {
				p = hopPath(name, v.num, v.hop+1)
			}
			return hop{p, place{v.host, p}}
		}}
}

package faults

import "crawlbatch.io/crawlbatch/formats/schema"

// statusFaults respond with a status other than 200.
var statusFaults = []Fault{
	status("not-found", 404, Quick, schema.HTTP4xx, "404"),
	status("gone", 410, Quick, schema.HTTP4xx, "410"),
	status("forbidden", 403, Quick, schema.HTTP4xx, "403"),
	status("unauthorized", 401, Quick, schema.HTTP4xx, "401 with a challenge", "WWW-Authenticate", `Basic realm="members"`),
	status("server-error", 500, Retried, schema.HTTP5xx, "500, always"),
	status("bad-gateway", 502, Retried, schema.HTTP5xx, "502, always"),
	status("unavailable", 503, Retried, schema.HTTP5xx, "503 without Retry-After, always"),
	failsOnce("server-error-once", 500, "500 to the first request, then the page"),
	failsOnce("unavailable-once", 503, "503 with Retry-After to the first request, then the page"),
	status("rate-limited", 429, Retried, schema.RateLimited, "429 with Retry-After, always"),
	failsOnce("rate-limited-once", 429, "429 with Retry-After to the first request, then the page"),
	page("soft-404", "200 for a page that says it is not there, in the same words everywhere", softNotFound),
}

func status(name string, code int, class Class, outcome schema.Outcome, about string, header ...string) Fault {
	return Fault{Name: name, About: about, Class: class, Outcome: outcome, Status: code, Code: code, Header: header}
}

// failsOnce returns a fault whose first request fails. Later requests get the page.
func failsOnce(name string, code int, about string) Fault {
	f := page(name, about, nil)
	f.Class, f.First = Retried, code
	return f
}

// softNotFound replaces the page with one that says "not found". Its text is long enough that all
// such pages are duplicates of one another.
func softNotFound(r *Response) {
	const (
		heading = "Page not found"
		words   = "We are sorry, but the page that you are looking for is not here. It may have been moved, renamed or " +
			"removed, or it may never have existed at all. Please check the address for mistakes, go back to the page that " +
			"you came from, or begin anew at the front page of this site, where you will find all that we have to offer."
		html = "<!doctype html>\n<html lang=\"en\">\n<head><title>" + heading + "</title></head>\n<body><main><h1>" + heading +
			"</h1>\n<p>" + words + "</p></main>\n"
	)
	r.Text = &Text{heading, heading + "\n" + words}
	r.Body, r.MainEnd = []byte(html+"</body>\n</html>\n"), len(html)
}

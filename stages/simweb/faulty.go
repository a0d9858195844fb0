package simweb

import (
	"cmp"

	"crawlbatch.io/crawlbatch/stages/simweb/faults"
)

// FaultURL returns a URL of a fault on a host. num distinguishes the URLs of the same fault.
func (w *Web) FaultURL(host int, name string, num int) string {
	return w.urlAt(host, faultPath(name, num))
}

// faultResponse returns the response of a fault at a path. hop is the path's number in the fault's
// chain of redirects.
func (w *Web) faultResponse(f *faults.Fault, host, num, hop int, path string) Response {
	r := Response{Status: 200}
	switch {
	case f.Code != 0:
		r = statusPage(f.Code)
	case f.HasPage():
		var refresh *place
		if f.Refresh {
			refresh = &place{host, landingPath(f.Name, num)}
		}
		r = documentResponse(w.makeDocument(host, num, "fault:"+f.Name, path, refresh))
	}
	if f.Redirect != nil {
		r.Location, r.Target = w.redirectTo(f, host, num, hop)
	}
	r.Fault = f
	altered := r.toFaults(w)
	f.Alter(&altered)
	r.MIME, r.Body, r.MainEnd = altered.MIME, altered.Body, altered.MainEnd
	if altered.NoPage {
		r.Document = nil
	}
	if t := altered.Text; t != nil {
		r.Document = &Document{Title: t.Title, Language: languages[0].iso, Main: []byte(t.Main)}
	}
	return r
}

// toFaults converts the response to a faults.Response.
func (r *Response) toFaults(w *Web) faults.Response {
	return faults.Response{MIME: r.MIME, Body: r.Body, MainEnd: r.MainEnd, LargeBody: w.cfg.LargeBody}
}

// redirectTo returns the Location of a redirect and the URL to which it leads.
func (w *Web) redirectTo(f *faults.Fault, host, num, hop int) (location, target string) {
	r := f.Redirect
	to := place{host, landingPath(f.Name, num)}
	switch {
	case r.To == faults.Nowhere:
		return r.Prefix, ""
	case hop < r.Hops:
		to.path = hopPath(f.Name, num, hop+1)
	case r.To == faults.Self:
		to.path = faultPath(f.Name, num)
	case r.To == faults.Sibling:
		to.host = w.sibling(host)
	case r.To == faults.Denied:
		to.path = "/private" + to.path
	case r.To == faults.Outside:
		to = w.unknownHome(w.pageKey(host, num).named("outside"))
	case r.To == faults.Away:
		to = w.otherDomain(host, num)
	}
	location = to.path
	if r.Full {
		location = w.urlOf(to)
	}
	return r.Prefix + location + cmp.Or(r.Written, r.Query) + r.Suffix, w.urlOf(to) + r.Query
}

// otherDomain returns a page of another domain, or a page outside the web if there is no other
// domain.
func (w *Web) otherDomain(host, num int) place {
	k := w.pageKey(host, num).named("away")
	h, ok := w.stranger(k, host)
	if !ok {
		return w.unknownHome(k)
	}
	if p := k.at(1).below(w.Pages(h)); w.role(h, p) != roleFault {
		return place{h, w.path(h, p)}
	}
	return place{h, "/"}
}

package simweb

import (
	"strconv"
	"strings"

	"crawlbatch.io/crawlbatch/stages/simweb/faults"
)

// role is the kind of a page of the graph.
type role uint8

const (
	rolePage  role = iota // the page has its own text
	roleShort             // the page has its own text, with fewer than 50 words
	roleExact             // the page has the text of another page
	roleNear              // the page has the text of another page, with a few words changed
	roleChain             // the page has the text of the previous page, with a few words changed
	roleFault             // the page has a fault
)

// Each block of chainBlock pages contains one chain of near copies: chainLen pages from page
// chainAt of the block. The first page of a chain is an ordinary page.
const (
	chainBlock = 16
	chainAt    = 8
	chainLen   = 4
)

// role returns the role of a page, 0 ≤ page < Pages(host).
func (w *Web) role(host, page int) role {
	if page == 0 {
		return rolePage
	}
	block := page / chainBlock
	if off := page%chainBlock - chainAt; off >= 0 && off < chainLen && block*chainBlock+chainAt+chainLen <= w.Pages(host) &&
		w.hostKey(host).named("chain").at(block).unit() < w.cfg.ChainShare {
		if off == 0 {
			return rolePage
		}
		return roleChain
	}
	u := w.pageKey(host, page).named("role").unit()
	for _, r := range [...]struct {
		share float64
		role  role
	}{{w.cfg.FaultShare, roleFault}, {w.cfg.ExactShare, roleExact}, {w.cfg.NearShare, roleNear}, {w.cfg.ShortShare, roleShort}} {
		if u < r.share {
			return r.role
		}
		u -= r.share
	}
	return rolePage
}

// faultOf returns the fault of a page with roleFault.
func (w *Web) faultOf(host, page int) *faults.Fault {
	return w.faults[w.pageKey(host, page).named("fault").below(len(w.faults))]
}

// copySource returns the page from which a copy takes its text: the first ordinary page among 16
// random pages of any host, or else the home page.
func (w *Web) copySource(host, page int) (int, int) {
	k := w.pageKey(host, page).named("base")
	for try := range 16 {
		h := host
		if k.at(3*try).below(2) == 0 {
			h = k.at(3*try + 1).below(w.cfg.Hosts)
		}
		if p := k.at(3*try + 2).below(w.Pages(h)); w.role(h, p) == rolePage && (h != host || p != page) {
			return h, p
		}
	}
	return host, 0
}

// fanout is the number of children of a page in the tree of its host.
const fanout = 8

// children calls f with each child of a page in the tree. If a child has a fault, it also calls f with
// this child's children, because crawlers may not see the child's links.
func (w *Web) children(host, page int, f func(child int)) {
	n := w.Pages(host)
	for c := page*fanout + 1; c <= page*fanout+fanout && c < n; c++ {
		f(c)
		if w.role(host, c) == roleFault {
			w.children(host, c, f)
		}
	}
}

var sections = [...]string{"news", "blog", "shop", "docs", "people", "lab"}

// path returns the path of a page, with its query. It is the inverse of pageOf.
func (w *Web) path(host, page int) string {
	if page == 0 {
		return "/"
	}
	if w.role(host, page) == roleFault {
		return faultPath(w.faultOf(host, page).Name, page)
	}
	k := w.pageKey(host, page).named("path")
	section := sections[k.at(0).below(len(sections))]
	id := strconv.Itoa(page)
	slug := func() string { return string(appendWord(nil, k.at(1), false)) + "-" + id }
	switch u := k.at(2).below(100); {
	case u < 50:
		return "/" + section + "/" + slug() + ".html"
	case u < 65:
		return "/" + section + "/2026/" + slug()
	case u < 75:
		return "/item?cat=" + section + "&id=" + id
	case u < 81:
		return "/private/" + slug() + ".html"
	case u < 84:
		return "/private/open-" + slug() + ".html"
	case u < 89:
		return "/" + section + "/drafts/" + slug() + ".html"
	case u < 93:
		return "/app/" + slug() + ".cgi"
	case u < 95:
		return "/app/" + slug() + ".cgi.html"
	}
	return "/caf%C3%A9/" + slug() + ".html"
}

// pageOf returns the page with the given path, if the host has one.
func (w *Web) pageOf(host int, path string) (page int, ok bool) {
	if path == "/" {
		return 0, true
	}
	digits := path
	if _, query, found := strings.Cut(path, "?"); found {
		digits = query
	} else {
		digits = strings.TrimSuffix(strings.TrimSuffix(digits, ".html"), ".cgi")
	}
	digits = digits[strings.LastIndexAny(digits, "-=")+1:]
	page, err := strconv.Atoi(digits)
	if err != nil || page < 1 || page >= w.Pages(host) || w.path(host, page) != path {
		return 0, false
	}
	return page, true
}

// URL returns the canonical URL of a page.
func (w *Web) URL(host, page int) string { return w.urlAt(host, w.path(host, page)) }

// urlAt makes the URL of a path on host.
func (w *Web) urlAt(host int, path string) string { return "http://" + w.Host(host) + path }

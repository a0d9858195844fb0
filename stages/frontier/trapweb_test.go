package frontier

import (
	"crypto/sha1"
	"fmt"
	"hash/fnv"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages/parse"
)

// site is a synthetic web of one host, a.com. It returns the document at a path and query, or "302 URL", or "" for a
// page that does not exist.
type site func(path string, query map[string]string) string

// simulation crawls a site for some rounds, with the frontier and the parser, but without the other stages.
type simulation struct {
	site    site
	cfg     Config
	rounds  int
	budget  int // largest number of URLs that a round fetches
	buckets int
	known   map[string]schema.URLRecord
	fetched map[string]bool
	skips   map[string]schema.Skip // of the last round that has one
}

var parser = func() *parse.Parser {
	c, err := urlkey.New(nil)
	if err != nil {
		panic(err)
	}
	p, err := parse.New(parse.Config{Canonicalizer: c})
	if err != nil {
		panic(err)
	}
	return p
}()

func htmlPage(title, main string, links ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<html lang=en><title>%s</title><main><p>%s</p></main><nav>", title, main)
	for _, l := range links {
		fmt.Fprintf(&b, "<a href=%q>on</a> ", strings.ReplaceAll(l, "&", "&amp;"))
	}
	return b.String()
}

// get returns the site's answer to a request.
func (s *simulation) get(url string) string {
	path, query, _ := strings.Cut(strings.TrimPrefix(url, "http://a.com"), "?")
	q := map[string]string{}
	for f := range strings.SplitSeq(query, "&") {
		if name, value, ok := strings.Cut(f, "="); ok {
			q[name] = value
		}
	}
	return s.site(path, q)
}

func (s *simulation) run(t *testing.T) *simulation {
	t.Helper()
	s.known, s.fetched, s.skips = map[string]schema.URLRecord{}, map[string]bool{}, map[string]schema.Skip{}
	todo := []string{"http://a.com/"}
	for range s.rounds {
		if len(todo) == 0 {
			break
		}
		s.round(t, todo)
		todo = todo[:0]
		for _, url := range slices.Sorted(maps.Keys(s.known)) {
			if s.known[url].State == schema.StateFound {
				todo = append(todo, url)
			}
		}
		slices.SortStableFunc(todo, func(a, b string) int { return int(s.known[a].Depth - s.known[b].Depth) })
		if s.budget > 0 {
			todo = todo[:min(len(todo), s.budget)]
		}
	}
	return s
}

// round fetches some URLs and decides about the URLs that their pages link to.
func (s *simulation) round(t *testing.T, todo []string) {
	w := world{buckets: max(s.buckets, 1)}
	inlinks := map[string]*schema.Inlink{}
	for _, url := range slices.Sorted(slices.Values(todo)) {
		s.fetched[url] = true
		depth := s.known[url].Depth
		f := fetch(t, url, schema.OK, func(f *schema.Fetch) { f.Depth = depth })
		body := s.get(url)
		to, moved := strings.CutPrefix(body, "302 ")
		switch {
		case body == "":
			f.Outcome, f.HTTPStatus, f.ContentDigest, f.ETag = schema.HTTP4xx, 404, "", ""
		case moved:
			f.FinalURL, f.Redirects = to, 1
			f.ContentDigest = ""
			url = to
			if s.fetched[url] {
				break
			}
			s.fetched[url] = true
			body = s.get(to)
			fallthrough
		default:
			d := document.Document{URL: url, ContentType: "text/html", Body: []byte(body), Header: func(string) []string { return nil }}
			r := parser.Parse(&d)
			k := key(t, url)
			columns := schema.URLColumns{SURT: k.SURT, URL: k.URL}
			r.Complete(&document.Capture{URLColumns: columns, CaptureColumns: schema.CaptureColumns{FetchStatus: 200, FetchTime: at, ContentDigest: fmt.Sprintf("%x", sha1.Sum([]byte(body)))}})
			w.pages = append(w.pages, schema.WorkingPage{PageColumns: r.Page.PageColumns, WorkingColumns: r.Terms})
			for _, l := range r.Links {
				if l.Kind != schema.KindA {
					continue
				}
				if inlinks[l.Target] == nil {
					in := link(t, l.Target, func(in *schema.Inlink) { in.FirstSource, in.SourceDepth = url, depth })
					inlinks[l.Target] = &in
				}
				inlinks[l.Target].SourceDepth = min(inlinks[l.Target].SourceDepth, depth)
			}
		}
		w.fetches = append(w.fetches, f)
	}
	for _, l := range inlinks {
		w.inlinks = append(w.inlinks, *l)
	}
	b := bucket(t)
	urls, skips, _ := run(t, b, s.cfg, w, seal(t, b, "2026-11", 0, w.buckets, slices.Collect(maps.Values(s.known))...))
	for _, u := range urls {
		s.known[u.URL] = u
	}
	for _, k := range skips {
		s.skips[k.URL] = k
	}
}

const intro = "Welcome to the pages of the society of friends of windmills and watermills in the county. "

// words makes some words that depend on a number.
func words(seed string, n int) string {
	h := fnv.New64a()
	h.Write([]byte(seed))
	x := h.Sum64()
	var b strings.Builder
	for range n {
		x = x*6364136223846793005 + 1442695040888963407
		fmt.Fprintf(&b, "%s%s%s ", syllable(x>>40), syllable(x>>48), syllable(x>>56))
	}
	return b.String()
}

func syllable(x uint64) string { return string("bdfghklmnprstvz"[x%15]) + string("aeiou"[x/15%5]) }

func dayOf(n int) time.Time { return time.Date(1970, 1, 1+n, 0, 0, 0, 0, time.UTC) }
func dayPath(n int) string  { return dayOf(n).Format("/2006/01/02") }
func parseDay(s string) (int, bool) {
	d, err := time.Parse("/2006/01/02", s)
	return int(d.Unix() / 86400), err == nil
}

// numberAfter returns the number after a prefix of a path.
func numberAfter(path, prefix string) (int, bool) {
	s, ok := strings.CutPrefix(path, prefix)
	n, err := strconv.Atoi(s)
	return n, ok && err == nil
}

// webs are sites with the URLs of all their real content. Others are traps, of which a crawl may fetch at most the given
// number of URLs.
func webs() map[string]struct {
	site site
	real []string
	most int
} {
	type web = struct {
		site site
		real []string
		most int
	}
	all := map[string]web{}
	list := func(n int, format string) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf("http://a.com"+format, i))
		}
		return out
	}
	add := func(name string, most int, real []string, s site) { all[name] = web{s, real, most} }

	// A calendar has pages for all days. Some days near the crawl have events.
	calendar := func(url func(day int) string, of func(path string, q map[string]string) (int, bool)) site {
		return func(path string, q map[string]string) string {
			if n, ok := numberAfter(path, "/event/"); ok {
				return htmlPage("Event "+words(fmt.Sprint(n), 2), words(fmt.Sprint("event", n), 40))
			}
			n, ok := of(path, q)
			if !ok {
				if path != "/" {
					return ""
				}
				return htmlPage("Home", intro+words("home", 30), url(0))
			}
			links, main := []string{url(n - 1), url(n + 1), url(n - 28), url(n + 31)}, "There are no events of the society on this day, please look at another day of the calendar."
			if n%9 == 4 && n > -60 && n < 60 {
				links, main = append(links, fmt.Sprintf("/event/%d", n+60)), "Event of the day: "+words(fmt.Sprint(n), 12)
			}
			return htmlPage("Events on "+dayOf(n).Format("Monday 2 January 2006"), dayOf(n).Format("Monday 2 January 2006")+" "+main, links...)
		}
	}
	var events []string
	for n := -59; n < 60; n++ {
		if n%9 == 4 {
			events = append(events, fmt.Sprintf("http://a.com/event/%d", n+60))
		}
	}
	add("calendar in paths", 800, events, calendar(func(n int) string { return "/calendar" + dayPath(n) }, func(path string, _ map[string]string) (int, bool) {
		day, ok := strings.CutPrefix(path, "/calendar")
		if !ok {
			return 0, false
		}
		return parseDay(day)
	}))
	add("calendar in queries", 800, events, calendar(func(n int) string { return "/cal?day=" + dayOf(n).Format("2006-01-02") }, func(path string, q map[string]string) (int, bool) {
		if path != "/cal" {
			return 0, false
		}
		return parseDay("/" + strings.ReplaceAll(q["day"], "-", "/"))
	}))

	// A newspaper has an index and three articles for each of 1,000 days.
	var articles []string
	for n := range 1000 {
		articles = append(articles, "http://a.com"+dayPath(-n))
		for i := range 3 {
			articles = append(articles, fmt.Sprintf("http://a.com%s/%s", dayPath(-n), strings.ReplaceAll(strings.TrimSpace(words(fmt.Sprint(n, i), 3)), " ", "-")))
		}
	}
	add("newspaper", 0, articles, func(path string, _ map[string]string) string {
		if path == "/" {
			return htmlPage("Home", intro, dayPath(0))
		}
		if n, ok := parseDay(path); ok {
			if n > 0 || n <= -1000 {
				return ""
			}
			links, titles := []string{dayPath(n - 1), dayPath(n - 10), dayPath(n - 100)}, ""
			for i := range 3 {
				title := strings.TrimSpace(words(fmt.Sprint(-n, i), 3))
				titles += title + ". "
				links = append(links, dayPath(n)+"/"+strings.ReplaceAll(title, " ", "-"))
			}
			return htmlPage("The Windmill Gazette", "Articles of the day in the Windmill Gazette, the newspaper for friends of mills. "+titles, links...)
		}
		return htmlPage("The Windmill Gazette", words(path, 80))
	})
	// The same, but the text names no article: only the links differ.
	add("newspaper with silent indexes", 0, articles, func(path string, q map[string]string) string {
		n, ok := parseDay(path)
		if !ok {
			return all["newspaper"].site(path, q)
		}
		if n > 0 || n <= -1000 {
			return ""
		}
		links := []string{dayPath(n - 1), dayPath(n - 10), dayPath(n - 100)}
		for i := range 3 {
			links = append(links, dayPath(n)+"/"+strings.ReplaceAll(strings.TrimSpace(words(fmt.Sprint(-n, i), 3)), " ", "-"))
		}
		return htmlPage("The Windmill Gazette", "Articles of the day in the Windmill Gazette, the newspaper for friends of mills.", links...)
	})
	daily := func(title, main func(n int) string) site {
		return func(path string, _ map[string]string) string {
			n, ok := parseDay(strings.TrimPrefix(path, "/daily"))
			if path == "/" {
				n, ok = 0, true
			}
			if !ok || n > 0 || n <= -1000 {
				return ""
			}
			return htmlPage(title(n), main(n), "/daily"+dayPath(n-1), "/daily"+dayPath(n-10), "/daily"+dayPath(n-100))
		}
	}
	var dailies []string
	for n := 1; n < 1000; n++ {
		dailies = append(dailies, "http://a.com/daily"+dayPath(-n))
	}
	add("photo of the day", 0, dailies, daily(func(n int) string { return "Photo of the day: " + words(fmt.Sprint(n), 3) }, func(int) string { return intro + "This is the photo of the day." }))
	add("rates of the day", 0, dailies, daily(func(n int) string { return "Rates of " + dayOf(n).Format("2 January 2006") }, func(n int) string {
		rates := "Rates of the day at the exchange of mills, for one sack of flour: "
		for i, name := range []string{"wheat", "rye", "oats", "barley", "maize"} {
			rates += fmt.Sprintf("%s %d.%d ", name, (n*n+7*i*n)%89+100, (n*n*3+i)%97+10)
		}
		return rates
	}))

	// A diary has entries for 400 days, and empty pages for all days of the future. It leads to nothing else.
	var entries []string
	for n := range 400 {
		entries = append(entries, "http://a.com/diary"+dayPath(-n))
	}
	add("diary", 900, entries, func(path string, _ map[string]string) string {
		n, ok := parseDay(strings.TrimPrefix(path, "/diary"))
		switch {
		case path == "/":
			return htmlPage("Diary", intro, "/diary"+dayPath(0))
		case !ok || n <= -400:
			return ""
		}
		text := "There is no entry in the diary of the society on this day, please look at another day."
		if n <= 0 {
			text = "The diary of the society says on this day, which was a good one for all friends of mills: " + words(fmt.Sprint(n), 4)
		}
		return htmlPage("Diary of "+dayOf(n).Format("2 January 2006"), text, "/diary"+dayPath(n-1), "/diary"+dayPath(n-20), "/diary"+dayPath(n+1), "/diary"+dayPath(n+30))
	})

	// A shop has lists with sessions, orders and carts. Its products differ in their titles and in some words.
	products := list(400, "/product?id=%d")
	shop := func(extra func(q map[string]string, link string) []string) site {
		return func(path string, q map[string]string) string {
			var links []string
			add := func(link string) { links = append(links, extra(q, link)...) }
			switch {
			case path == "/":
				add("/list?page=0")
				return htmlPage("Shop", intro+"See our list of flour.", links...)
			case path == "/list":
				n, _ := strconv.Atoi(q["page"])
				if n < 0 || n >= 20 {
					return ""
				}
				names := ""
				for i := range 20 {
					names += words(fmt.Sprint("product", n*20+i), 2)
					add(fmt.Sprintf("/product?id=%d", n*20+i))
				}
				if n < 19 {
					add(fmt.Sprintf("/list?page=%d", n+1))
				}
				return htmlPage("List of flour", "All our flour from old mills in the county: "+names, links...)
			case path == "/product":
				n, err := strconv.Atoi(q["id"])
				if err != nil || n < 0 || n >= 400 {
					return ""
				}
				add("/list?page=0")
				add("/")
				for i := range 3 {
					add(fmt.Sprintf("/product?id=%d", (n+i*i+1)%400))
				}
				return htmlPage("Flour", "Buy this flour of an old mill in the county. We send it to you within three days. "+words(fmt.Sprint("product", n), 2), links...)
			}
			return ""
		}
	}
	sep := func(link string) string {
		if strings.Contains(link, "?") {
			return link + "&"
		}
		return link + "?"
	}
	add("shop", 0, products, shop(func(_ map[string]string, link string) []string { return []string{link} }))
	add("shop with carts", 900, products, shop(func(q map[string]string, link string) []string {
		out := []string{link}
		if id := q["id"]; id != "" {
			for n := range 10 {
				out = append(out, fmt.Sprintf("/product?add=%s%d&id=%s", id, n, id))
			}
		}
		return out
	}))
	sessions := 0
	add("shop with sessions", 3300, products, shop(func(q map[string]string, link string) []string {
		sessions++
		sid := q["sid"]
		if sid == "" || sessions%9 == 0 {
			sid = fmt.Sprintf("%08x", uint32(sessions)*2654435761)
		}
		return []string{sep(link) + "sid=" + sid}
	}))
	nth := 0
	add("session in paths", 1100, list(200, "/page-%d"), func(path string, _ map[string]string) string {
		nth++
		parts := strings.Split(path, "/")
		session, name := fmt.Sprintf("%08x1", uint32(nth)*2654435761), "page-0"
		if len(parts) == 4 {
			name = parts[3]
			if nth%3 > 0 {
				session = parts[2]
			}
		}
		n, _ := numberAfter(name, "page-")
		var links []string
		for i := range 6 {
			links = append(links, fmt.Sprintf("/s/%s/page-%d", session, (n*5+i)%200))
		}
		return htmlPage("Page "+name, words(name, 60), links...)
	})

	// Forums have threads of some pages. Some of their numbers look like years.
	var posts []string
	for n := 1900; n < 2300; n++ {
		for p := range 5 {
			posts = append(posts, fmt.Sprintf("http://a.com/thread/%d/%d", n, p+1))
		}
	}
	forum := func(first, last int) site {
		return func(path string, _ map[string]string) string {
			var n, p int
			if c, _ := fmt.Sscanf(path, "/thread/%d/%d", &n, &p); c < 2 {
				var links []string
				for n := first; n < last; n++ {
					links = append(links, fmt.Sprintf("/thread/%d/1", n))
				}
				return htmlPage("Forum", intro, links...)
			}
			if p < 1 || p > 5 {
				return ""
			}
			return htmlPage("Forum", "You read a thread of the forum of the friends of mills. "+words(fmt.Sprint(n, p), 15), fmt.Sprintf("/thread/%d/%d", n, p%5+1))
		}
	}
	add("forum", 0, posts, forum(1900, 2300))
	var years []string
	for n := 1962; n < 1979; n++ {
		for p := range 5 {
			years = append(years, fmt.Sprintf("http://a.com/thread/%d/%d", n, p+1))
		}
	}
	add("forum with numbers like years", 0, years, forum(1962, 1979))

	// Galleries have pages of photos with little text, or with the same text.
	gallery := func(title func(n int) string, caption string) site {
		return func(_ string, q map[string]string) string {
			n, _ := strconv.Atoi(q["photo"])
			if n < 0 || n >= 600 {
				return ""
			}
			return htmlPage(title(n), caption+fmt.Sprintf("<img src=/photo%d.jpg>", n), "/", fmt.Sprintf("/show?photo=%d", n+1), fmt.Sprintf("/show?photo=%d", n+20), fmt.Sprintf("/show?photo=%d", n+100))
		}
	}
	add("gallery", 0, list(600, "/show?photo=%d")[1:], gallery(func(int) string { return "Photos" }, "Our mill"))
	add("gallery with titles", 0, list(600, "/show?photo=%d")[1:], gallery(func(n int) string { return words(fmt.Sprint(n), 2) }, intro))

	numbered := func(of int, prefix string, doc func(n int, links []string) string) site {
		return func(path string, _ map[string]string) string {
			n, ok := numberAfter(path, prefix)
			if path == "/" {
				n, ok = 0, true
			}
			if !ok || n < 0 || n >= of {
				return ""
			}
			return doc(n, []string{fmt.Sprint(prefix, n+1), fmt.Sprint(prefix, n+10), fmt.Sprint(prefix, n+100)})
		}
	}
	add("equal text, distinct titles", 0, list(900, "/item/%d")[1:], numbered(900, "/item/", func(n int, links []string) string {
		return htmlPage("Mill of "+words(fmt.Sprint(n), 2), intro+"This page describes one of the mills of the county.", links...)
	}))
	add("little text", 0, list(600, "/t/%d")[1:], numbered(600, "/t/", func(n int, links []string) string { return htmlPage("Mill", fmt.Sprint("Mill number ", n), links...) }))
	add("no text", 0, list(600, "/n/%d")[1:], numbered(600, "/n/", func(n int, links []string) string { return htmlPage("", "", links...) }))
	var docs []string
	for v := range 60 {
		for p := range 10 {
			docs = append(docs, fmt.Sprintf("http://a.com/docs/v1.%d/page-%d", v, p))
		}
	}
	add("docs with versions", 0, docs, func(path string, _ map[string]string) string {
		var v, p int
		if path == "/" {
			return htmlPage("Manuals", intro, "/docs/v1.0/page-0")
		}
		fmt.Sscanf(path, "/docs/v1.%d/page-%d", &v, &p)
		if v >= 60 || p >= 10 {
			return ""
		}
		return htmlPage(fmt.Sprint("Manual of mills, page ", p), words(fmt.Sprint(p), 60)+words(fmt.Sprint(p, v/4), 20), fmt.Sprintf("/docs/v1.%d/page-%d", v+1, p), fmt.Sprintf("/docs/v1.%d/page-%d", v+7, p), fmt.Sprintf("/docs/v1.%d/page-%d", v, p+1))
	})
	// The pages of a list have the same text and title, but lead to new pages.
	add("silent list", 0, list(300, "/a/"+"mill-of-number-%d"), func(path string, q map[string]string) string {
		n, _ := strconv.Atoi(q["page"])
		if strings.HasPrefix(path, "/a/") {
			return htmlPage(path, words(path, 50))
		}
		if n >= 100 {
			return ""
		}
		links := []string{fmt.Sprintf("/news?page=%d", n+1), fmt.Sprintf("/news?page=%d", n+10)}
		for i := range 3 {
			links = append(links, fmt.Sprintf("/a/mill-of-number-%d", 3*n+i))
		}
		return htmlPage("News", intro, links...)
	})
	return all
}

func TestTrapsEndAndContentStays(t *testing.T) {
	for name, w := range webs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &simulation{site: w.site, cfg: Default(), rounds: 40, budget: 400}
			s.cfg.MaxDepth = 1000
			s.run(t)
			lost := 0
			pages := map[string]bool{} // fetched URLs without the numbers of sessions
			for url := range s.fetched {
				pages[regexp.MustCompile("[?&]sid=[0-9a-f]*|/s/[0-9a-f]+").ReplaceAllString(url, "")] = true
			}
			for _, url := range w.real {
				if !pages[url] {
					if lost++; lost < 4 {
						t.Logf("%s %+v", url, s.skips[url].Detail)
					}
				}
			}
			t.Logf("%d URLs fetched, %d of %d real lost, %d skips", len(s.fetched), lost, len(w.real), len(s.skips))
			if lost > 0 {
				t.Errorf("%d of %d pages with content were lost", lost, len(w.real))
			}
			if w.most > 0 && len(s.fetched) > w.most {
				t.Errorf("%d URLs were fetched, want at most %d", len(s.fetched), w.most)
			}
		})
	}
}

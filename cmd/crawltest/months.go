package crawltest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// Web serves a web of a few hosts and returns its address. A crawl stores the pages of this web in
// every way that a reparse must read.
func Web(t *testing.T) (addr string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(answer))
	t.Cleanup(server.Close)
	return server.Listener.Addr().(*net.TCPAddr).String()
}

// Filler returns text that makes a page so long that a crawl stores the page only once for all its
// URLs.
func Filler(seed string) string {
	var b strings.Builder
	for i := range 80 {
		fmt.Fprintf(&b, "<p>The %s paragraph number %d tells of rivers, of mountains and of what %s people say there.</p>\n", seed, i, seed)
	}
	return b.String()
}

// Page returns a page with a title, further elements of its head, and links, which spaces separate.
func Page(title, head, links string) string {
	var anchors strings.Builder
	for l := range strings.FieldsSeq(links) {
		fmt.Fprintf(&anchors, `<a href="%s">to %[1]s</a> `, l)
	}
	return fmt.Sprintf("<!DOCTYPE html><html lang=en><head><title>%[1]s</title>%[2]s</head><body><main><h1>%[1]s</h1>%[3]s</main><nav>%[4]s</nav></body></html>",
		title, head, Filler(title), anchors.String())
}

func answer(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	send := func(page string) { _, _ = w.Write([]byte(page)) }
	switch r.Host + r.URL.Path {
	case "a.test/robots.txt":
		h.Set("Content-Type", "text/plain")
		send("User-agent: *\nContent-Signal: ai-train=no\nDisallow: /private\n")
	case "a.test/":
		send(Page("home", `<link rel=canonical href="/">`, "/etag /gzip /chunked /hop /away /withheld /header-withheld /twin /private /missing /feed /latin /empty /error /changes /map /map-gzip /map-endless http://elsewhere.example/"))
	case "a.test/etag":
		h.Set("ETag", `"one"`)
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		send(Page("etag", "", "/deep"))
	case "a.test/map", "a.test/map-gzip", "a.test/map-endless":
		// These sitemaps are longer than the limit for documents. /map-endless is even longer than the
		// limit for sitemaps.
		h.Set("Content-Type", "application/xml")
		parts := map[string]int{"/map": 60 << 10, "/map-gzip": 80 << 10, "/map-endless": 400 << 10}[r.URL.Path]
		var m strings.Builder
		m.WriteString(`<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`)
		for _, path := range []string{"etag", "gzip", "chunked", "landed", "deep", "deep2"} {
			fmt.Fprintf(&m, "<url><loc>http://a.test/%s</loc><!-- %s --></url>", path, strings.Repeat(path+" ", parts/6/(len(path)+1)))
		}
		m.WriteString("</urlset>")
		if r.URL.Path == "/map" {
			send(m.String())
			return
		}
		h.Set("Content-Encoding", "gzip")
		zw := gzip.NewWriter(w)
		_, _ = zw.Write([]byte(m.String()))
		_ = zw.Close()
	case "a.test/gzip":
		var z bytes.Buffer
		zw := gzip.NewWriter(&z)
		_, _ = zw.Write([]byte(Page("compressed", `<meta name=description content="was gzip">`, "/deep http://b.test/")))
		_ = zw.Close()
		h.Set("Content-Encoding", "gzip")
		send(z.String())
	case "a.test/chunked":
		send(Page("in chunks", "", "/twin2"))
		w.(http.Flusher).Flush()
		send("<p>and more</p>")
	case "a.test/hop":
		http.Redirect(w, r, "/hop2", http.StatusFound)
	case "a.test/hop2":
		http.Redirect(w, r, "/landed?x=1", http.StatusMovedPermanently)
	case "a.test/landed":
		send(Page("landed", "", "/deep"))
	case "a.test/away":
		http.Redirect(w, r, "http://b.test/", http.StatusFound)
	case "a.test/withheld":
		send(Page("no copy", `<meta name=robots content=noarchive>`, "/deep2"))
	case "a.test/header-withheld":
		h.Set("X-Robots-Tag", "noarchive")
		send(Page("no copy either", "", "/deep2 /deep"))
	case "a.test/twin", "a.test/twin2":
		// Two URLs return the same body, but each URL sends a Link header of its own.
		h.Set("Link", fmt.Sprintf(`<http://a.test%s?alternate>; rel="alternate"; hreflang="de"`, r.URL.Path))
		send(Page("twin", "", "/deep"))
	case "a.test/feed":
		h.Set("Content-Type", "application/rss+xml")
		send(`<?xml version="1.0"?><rss version="2.0"><channel><title>news</title><item><title>first</title><link>http://a.test/deep</link></item></channel></rss>`)
	case "a.test/latin":
		h.Set("Content-Type", "text/html; charset=iso-8859-1")
		send("<title>caf\xe9</title><p>" + strings.Repeat("na\xefve d\xe9j\xe0 vu ", 100))
	case "a.test/empty":
	case "a.test/changes":
		send(Page("it is "+time.Now().String(), "", "/deep"))
	case "a.test/error":
		w.WriteHeader(http.StatusInternalServerError)
	case "a.test/deep", "a.test/deep2", "b.test/":
		h.Set("Set-Cookie", "k=v")
		send(Page(r.Host+r.URL.Path, `<meta property="og:title" content="deep">`, "/ /leaf http://a.test/"))
	default:
		http.NotFound(w, r)
	}
}

// Config is the config of a fast crawl whose limits some documents of Web exceed.
const Config = `
politeness: {delay: 2ms, per_address_delay: 1ms}
fetch:
  max_body: 20KiB
  max_sitemap: 100KiB
  retries: {server_error: 0, robots: 0}
  pauses: {rate_limited: 10ms, server_error: 10ms, timeout: 10ms, dns: 10ms, breaker: 10ms}
plan: {partition_urls: 10}
`

// LaterClock is a clock that is some months ahead, so that all known URLs are due again.
type LaterClock struct{ stages.SystemClock }

// Now implements stages.Clock.
func (LaterClock) Now() time.Time { return time.Now().AddDate(0, 3, 0) }

// CrawlTwice crawls the web in two months and returns the store. In the second month, some
// responses have status 304, and others have unchanged content.
func CrawlTwice(t *testing.T, run func(t *testing.T, args ...string) string) string {
	t.Helper()
	addr := Web(t)
	dir := t.TempDir()
	store, seeds, conf := filepath.Join(dir, "store"), filepath.Join(dir, "urls.txt"), filepath.Join(dir, "c.yaml")
	Write(t, seeds, "http://a.test/\nhttp://b.test/\nhttp://a.test/twin\nhttp://gone.test/\n")
	Write(t, conf, Config)
	run(t, "plan", "--month", "2026-10", "--source", seeds, "--config", conf, "--connect-to", "::"+addr, "--store", store)
	run(t, "run", "--month", "2026-10", "--rounds", "2", "--store", store)

	PlanLater(t, store, "2026-11")
	run(t, "run", "--month", "2026-11", "--rounds", "2", "--store", store)
	return store
}

// PlanLater plans a month from the frontier of earlier months, at a time when all URLs are due.
func PlanLater(t *testing.T, store, month string) {
	t.Helper()
	b := OpenDir(t, store)
	_, cfg, err := roundstate.OpenCrawl(t.Context(), b, "2026-10", os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := jobs.Plan(t.Context(), jobs.PlanRequest{
		Bucket: b, Crawl: month, Frontier: true, Config: cfg, Clock: LaterClock{}, Version: usage.StampedVersion(), Scratch: t.TempDir(), Lookup: os.LookupEnv,
	}); err != nil {
		t.Fatal(err)
	}
}

//go:build lab

package lab

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/storetest/versitygw"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/jobstest/namesearch"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
)

// goneWeb is a web with a domain and a URL that are taken down: gone.test, and http://stay.test/secret. All
// other hosts refer to them in every way. It counts the requests to them.
type goneWeb struct {
	mu    sync.Mutex
	asked map[string]int // by host and path
}

const (
	goneDomain = "gone.test"
	goneURL    = "http://stay.test/secret"
)

// ServeHTTP implements http.Handler.
func (w *goneWeb) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.asked[r.Host+r.URL.Path]++
	w.mu.Unlock()
	h := rw.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	send := func(title, text, head, links string) {
		page := crawltest.Page(title, head, links)
		_, _ = rw.Write([]byte(strings.Replace(page, crawltest.Filler(title), crawltest.Filler(text), 1)))
	}
	plain := func(mime, text string) {
		h.Set("Content-Type", mime)
		_, _ = rw.Write([]byte(text))
	}
	sitemap := func(urls string) {
		var b strings.Builder
		for u := range strings.FieldsSeq(urls) {
			fmt.Fprintf(&b, "<url><loc>%s</loc></url>", u)
		}
		plain("application/xml", `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`+b.String()+"</urlset>")
	}
	const about = `<link rel=canonical href="http://gone.test/canon"><meta property="og:url" content="http://gone.test/og"><meta property="og:image" content="http://gone.test/og.png">` +
		`<link rel=alternate hreflang=de href="http://gone.test/de"><link rel=icon href="http://gone.test/icon.png"><meta name="twitter:image" content="http://gone.test/t.png">` +
		`<meta name=tdm-policy content="http://gone.test/tdm"><script type="application/ld+json">{"@type":"Article","headline":"x","url":"http://gone.test/ld","breadcrumb":{"itemListElement":[{"name":"b","item":"http://gone.test/crumb"}]}}</script>`
	switch r.Host + r.URL.Path {
	case "stay.test/robots.txt":
		plain("text/plain", "User-agent: *\nDisallow: /never\nSitemap: http://stay.test/sitemap.xml\nSitemap: http://gone.test/sitemap.xml\n")
	case "moved.test/robots.txt":
		http.Redirect(rw, r, "http://gone.test/robots.txt", http.StatusFound)
	case "moved.test/":
		send("moved", "a host whose robots.txt is elsewhere", "", "/private")
	case "gone.test/robots.txt", "www.gone.test/robots.txt":
		plain("text/plain", "User-agent: *\nDisallow: /private\nSitemap: http://gone.test/sitemap.xml\n")
	case "stay.test/sitemap.xml":
		sitemap("http://stay.test/listed http://stay.test/secret http://stay.test/a http://gone.test/foreign")
	case "gone.test/sitemap.xml":
		sitemap("http://gone.test/mapped http://gone.test/x http://stay.test/foreign")
	case "stay.test/":
		send("stay", "home", "", "/a /secret /secret-twin /to-gone /hop /canon /mention /etag /same /twin /never /listed http://gone.test/ http://www.gone.test/x?b=2&a=1 http://gone.test/a%7Eb http://gone.test:8081/port http://other.test/")
	case "stay.test/to-gone":
		http.Redirect(rw, r, "http://gone.test/landing", http.StatusFound)
	case "stay.test/hop":
		http.Redirect(rw, r, "/secret", http.StatusFound)
	case "stay.test/secret", "stay.test/secret-twin": // stored once, under the first of them
		send("secret", "a secret", `<link rel=canonical href="/secret">`, "/found-by-secret /a")
	case "stay.test/canon":
		send("canon", "canon", about, "/secret")
	case "stay.test/mention":
		send("they write to gone.test", "of http://gone.test/x and http://stay.test/secret", "", "/a")
	case "stay.test/a", "gone.test/dup", "other.test/dup", "www.gone.test/dup2":
		send("article "+r.Host, "the same article", "", "/ http://gone.test/dup http://www.gone.test/dup2 http://other.test/dup")
	case "gone.test/etag", "stay.test/etag":
		h.Set("ETag", `"one"`)
		if r.Header.Get("If-None-Match") != "" {
			rw.WriteHeader(http.StatusNotModified)
			return
		}
		send("etag", "etag of "+r.Host, "", "/")
	case "gone.test/same", "stay.test/same":
		send("same", "the same each month on "+r.Host, "", "/")
	case "gone.test/twin", "stay.test/twin", "other.test/twin": // stored once
		send("twin", "a twin", "", "http://stay.test/ http://gone.test/twin http://other.test/twin")
	case "gone.test/", "www.gone.test/":
		send("gone", "home of gone", "", "/private /landing /dup /etag /same /twin /back /missing /error /changes http://www.gone.test/dup2 http://stay.test/found-by-gone http://other.test/dup")
	case "gone.test/back":
		http.Redirect(rw, r, "http://other.test/from-gone", http.StatusFound)
	case "gone.test/changes":
		send("changes", "at "+time.Now().String(), "", "/")
	case "gone.test/error", "other.test/error":
		rw.WriteHeader(http.StatusInternalServerError)
	case "gone.test:8081/port", "gone.test/broken":
		if c, _, err := rw.(http.Hijacker).Hijack(); err == nil {
			_ = c.Close() // its error names the host
		}
	case "gone.test/landing", "gone.test/x", "www.gone.test/x", "gone.test/mapped", "gone.test/a~b", "gone.test/canon", "gone.test/de",
		"stay.test/found-by-gone", "stay.test/found-by-secret", "stay.test/listed", "other.test/from-gone":
		send(r.URL.Path, "page "+r.Host+r.URL.Path, "", "/")
	case "other.test/":
		send("other", "home of other", "", "/dup /twin /error http://gone.test/x http://gone.test/broken "+goneURL+" http://stay.test/")
	default:
		http.NotFound(rw, r)
	}
}

// goneKey is the environment variable with the secret key of the list of takedowns.
const goneKey = "TAKEDOWN_KEY"

// crawlGone crawls two months, two rounds each, reparses the first and compacts it. It returns the store.
func crawlGone(t *testing.T) (web *goneWeb, addr, dir string) {
	t.Helper()
	t.Setenv(goneKey, "correct horse battery staple, 0123456789")
	web = &goneWeb{asked: map[string]int{}}
	server := httptest.NewServer(web)
	t.Cleanup(server.Close)
	addr = server.Listener.Addr().(*net.TCPAddr).String()
	tmp := t.TempDir()
	dir = filepath.Join(tmp, "store")
	seeds, conf := filepath.Join(tmp, "urls.txt"), filepath.Join(tmp, "c.yaml")
	crawltest.Write(t, seeds, "http://stay.test/\nhttp://stay.test/hop\nhttp://gone.test/\nhttp://gone.test/twin\nhttp://stay.test/twin\nhttp://other.test/twin\nhttp://moved.test/\nHTTP://GONE.test:80/x/../x\nhttp://gone.test/a%7eb\nhttp://other.test/\nftp://gone.test/refused\nhttp://gone.test/?sessionid=1&sid=2&x=[\n")
	crawltest.Write(t, conf, strings.Replace(crawltest.Config, "plan: {partition_urls: 10}", "plan: {partition_urls: 10, bucket_urls: 20}", 1)+"store: {takedown_key: \"${"+goneKey+"}\"}\n")
	mustRun(t, "plan", "--month", "2026-10", "--source", seeds, "--config", conf, "--connect-to", "::"+addr, "--store", dir)
	mustRun(t, "run", "--month", "2026-10", "--rounds", "2", "--store", dir)
	crawltest.PlanLater(t, dir, "2026-11")
	mustRun(t, "run", "--month", "2026-11", "--rounds", "2", "--store", dir)
	mustRun(t, "reparse", "--month", "2026-10", "--as", "2026-10r1", "--store", dir)
	mustRun(t, "compact", "--month", "2026-10", "--store", dir)
	if _, err := store.CreateBytes(t.Context(), crawltest.OpenDir(t, dir), "quarantine/crawl=2026-10/round=0/fetch/part-00000.json", []byte("a damaged object that names gone.test and "+goneURL)); err != nil {
		t.Fatal(err)
	}
	return web, addr, dir
}

// goneNames returns the names of what is taken down, with all URLs and hosts that the store knows, for the
// filters.
func goneNames(t *testing.T, what string, known map[string][]byte) *namesearch.Names {
	t.Helper()
	var names namesearch.Names
	if what == goneURL {
		if err := names.URL(goneURL); err != nil {
			t.Fatal(err)
		}
		return &names
	}
	names.Domain(goneDomain, "www."+goneDomain)
	f := &forgotten{t: t, names: &names}
	for key, body := range known {
		if strings.HasPrefix(key, "tables/urls/") || strings.HasPrefix(key, "tables/skips/") {
			for _, r := range f.rows(key, body) {
				if f.holds(r, "url") {
					names.Probe(r["url"]...)
				}
			}
		}
	}
	return &names
}

func TestWhatIsTakenDownIsNowhere(t *testing.T) { takeDown(t, nil) }

func TestS3WhatIsTakenDownIsNowhere(t *testing.T) { takeDown(t, versitygw.Start(t)) }

// takeDown takes down a domain, and in another copy of the store a URL. It kills the command at random
// instants. Afterwards no object has the name, and everything else is the same.
func takeDown(t *testing.T, server *versitygw.Server) {
	web, addr, dir := crawlGone(t)
	flag := map[string]string{goneDomain: "--domain", goneURL: "--url"}
	for _, what := range []string{goneDomain, goneURL} {
		t.Run(strings.TrimPrefix(flag[what], "--"), func(t *testing.T) {
			args := []string{"takedown", flag[what], what, "--reason", "asked for", "--apply"}
			k := newKilledStore(t, dir, server, 8)
			random := k.random
			left := k.kills // a takedown that ends before it is killed begins again with another copy of the store
			k.kills = 0
			began := time.Now()
			k.killUntilDone(time.Minute, func() {}, args...)
			took := time.Since(began)
			whole := everyObject(t, k.b)
			for k = newKilledStore(t, dir, server, left); ; k = newKilledStore(t, dir, server, left) {
				k.kills, k.random = left, random
				if left <= 3 {
					break // the last of them are judged below
				}
				k.kills -= 3
				k.killUntilDone(took, func() {}, args...)
				if left -= k.killed; k.killed == 0 { // the command is faster now
					took = took * 4 / 5
				}
				sameContent(t, whole, everyObject(t, k.b))
			}
			before := everyObject(t, k.b)
			names := goneNames(t, what, before)
			if places, _ := namesLeft(t, k.b, names); len(places) < 50 {
				t.Fatalf("the store names %s in only %d places: %q", what, len(places), places)
			}
			if _, code, out := k.command(time.Minute, slices.Delete(slices.Clone(args), 5, 6)...); code != exitDone {
				t.Fatalf("a dry run: exit %d\n%s", code, out)
			}
			f := compareForgotten(t, &namesearch.Names{}, before, everyObject(t, k.b)) // nothing is to change
			if t.Failed() || len(f.compared) < 30 {
				t.Fatalf("a dry run changed the store, or the comparison compares little: %v", f.compared)
			}
			said := k.killUntilDone(took, func() {
				if _, code, out := k.command(time.Minute, "status", "--month", "2026-10"); code == exitInternal {
					t.Errorf("status after %d kills: exit %d\n%s", k.killed, code, out)
				}
			}, args...)
			t.Logf("%d kills; at last:\n%s", k.killed, said)
			after := everyObject(t, k.b)
			places, mentions := namesLeft(t, k.b, names)
			if len(places) > 0 {
				t.Errorf("%d places still name %s:\n%s", len(places), what, strings.Join(places, "\n"))
			}
			if mentions == 0 {
				t.Error("no text of another page mentions it any more")
			}
			f = compareForgotten(t, names, before, after)
			t.Logf("the same: %v\nwent with what they refer to: %v", f.compared, f.dropped)
			k.clean("2026-10", "2026-11", "2026-10r1")

			// Again, and of something that is not there.
			_, code, out := k.command(time.Minute, args...)
			if code != exitDone {
				t.Errorf("a second takedown: exit %d\n%s", code, out)
			}
			if f := compareForgotten(t, &namesearch.Names{}, after, everyObject(t, k.b)); len(f.dropped) > 0 {
				t.Errorf("a second takedown dropped %v", f.dropped)
			}
			if _, code, out := k.command(time.Minute, "takedown", "--url", "http://nowhere.test/", "--reason", "none", "--apply"); code != exitDone {
				t.Errorf("a takedown of an unknown URL: exit %d\n%s", code, out)
			}
			k.clean("2026-10", "2026-11", "2026-10r1")
			k.crawlOn(web, addr, what, names)
			if what == goneDomain {
				k.forgetAll("stay.test", "other.test", "moved.test")
			}
		})
	}
}

// sameContent compares two copies of a store after the same takedown, of which one was killed. Documents hold
// times.
func sameContent(t *testing.T, a, b map[string][]byte) {
	t.Helper()
	for key, body := range a {
		if strings.HasSuffix(key, ".json") || strings.Contains(key, "/manifests/") {
			continue
		}
		if other, ok := b[key]; !ok || !bytes.Equal(body, other) {
			t.Errorf("%s is another than after a takedown that was not killed", key)
		}
	}
	for key := range b {
		if _, ok := a[key]; !ok && !ofTakedown.MatchString(key) {
			t.Errorf("%s is left over", key)
		}
	}
}

// forgetAll takes down the last domains of the store. Tables without rows are left.
func (k *killedStore) forgetAll(domains ...string) {
	k.t.Helper()
	var names namesearch.Names
	for _, d := range domains {
		if _, code, out := k.command(time.Minute, "takedown", "--domain", d, "--reason", "all of it", "--apply"); code != exitDone {
			k.t.Fatalf("takedown of %s: exit %d\n%s", d, code, out)
		}
		names.Domain(d, "www."+d)
	}
	left, mentions := namesLeft(k.t, k.b, &names)
	if len(left) > 0 || mentions > 0 {
		k.t.Errorf("%d mentions, and %d places still name %q:\n%s", mentions, len(left), domains, strings.Join(left, "\n"))
	}
	for key, body := range everyObject(k.t, k.b) {
		if strings.HasPrefix(key, "tables/pages/") {
			if n := len((&forgotten{t: k.t}).rows(key, body)); n > 0 {
				k.t.Errorf("%s has %d rows", key, n)
			}
		}
	}
	k.clean("2026-10", "2026-11", "2026-10r1", "2026-12", "2026-11r1")
	if _, code, out := k.command(time.Minute, "views", "--all-months"); code != exitDone {
		k.t.Errorf("views of nothing: exit %d\n%s", code, out)
	}
}

// clean verifies crawls.
func (k *killedStore) clean(crawls ...string) {
	k.t.Helper()
	for _, crawl := range crawls {
		if _, code, out := k.command(2*time.Minute, "verify", "--month", crawl); code != exitDone {
			k.t.Errorf("verify %s: exit %d\n%s", crawl, code, out)
		}
	}
}

// crawlOn crawls a third month and reparses the second one. Nothing requests or names what is gone, although
// lists and pages name it.
func (k *killedStore) crawlOn(web *goneWeb, addr, what string, names *namesearch.Names) {
	t := k.t
	t.Helper()
	asked := func() (n int) {
		web.mu.Lock()
		defer web.mu.Unlock()
		for page, times := range web.asked {
			if strings.Contains(page, goneDomain) && what == goneDomain || "http://"+page == what {
				n += times
			}
		}
		return n
	}
	before := asked()
	_, cfg, err := roundstate.OpenCrawl(t.Context(), k.b, "2026-10", os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := jobs.Plan(t.Context(), jobs.PlanRequest{
		Bucket: k.b, Crawl: "2026-12", Frontier: true, Config: cfg, Clock: crawltest.LaterClock{}, Version: version, Scratch: t.TempDir(), Lookup: os.LookupEnv,
	}); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"run", "--month", "2026-12", "--rounds", "2", "--connect-to", "::" + addr},
		{"reparse", "--month", "2026-11", "--as", "2026-11r1"},
	} {
		if _, code, out := k.command(2*time.Minute, args...); code != exitDone {
			t.Errorf("%s: exit %d\n%s", args[0], code, out)
		}
	}
	k.clean("2026-12", "2026-11r1")
	if n := asked() - before; n > 0 {
		t.Errorf("%s was requested %d times again", what, n)
	}
	if left, _ := namesLeft(t, k.b, names); len(left) > 0 {
		t.Errorf("after another month, %d places name %s:\n%s", len(left), what, strings.Join(left, "\n"))
	}
}

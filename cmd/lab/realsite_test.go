//go:build lab

package lab

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
)

// realSites lists packages of HTML documentation in Debian, each under its own host name. People outside
// this project wrote the pages.
var realSites = map[string]string{
	"policy.debian.test": "/usr/share/doc/debian-policy",
	"devref.debian.test": "/usr/share/doc/developers-reference/docs",
	"git.example.test":   "/usr/share/doc/git/html",
}

const (
	realAlias  = "www.debian.test" // host that redirects every request to policy.debian.test
	realDenied = "/howto/"         // the path that robots.txt of git.example.test forbids
)

var realSeeds = []string{
	"http://policy.debian.test/policy.html",
	"http://policy.debian.test/fhs/fhs-3.0.html",
	"http://devref.debian.test/",
	"http://git.example.test/git.html",
	"http://git.example.test/howto/new-command.html",
	"http://git.example.test/technical",
	"http://" + realAlias + "/policy.html",
	"http://" + realAlias + "/perl-policy.html",
}

const nginxConf = `
daemon off; worker_processes 1; pid %[1]s/nginx.pid; error_log %[1]s/error.log;
events {}
http {
	include /etc/nginx/mime.types; default_type application/octet-stream;
	access_log %[1]s/access.log; port_in_redirect off; sendfile off;
	client_body_temp_path %[1]s/a; proxy_temp_path %[1]s/b; fastcgi_temp_path %[1]s/c; uwsgi_temp_path %[1]s/d; scgi_temp_path %[1]s/e;
	gzip on; gzip_types text/plain;
	server { listen 127.0.0.1:%[2]d; server_name %[3]s; return 301 http://policy.debian.test$request_uri; }
%[4]s}
`

// TestRealSite crawls real documentation, served by nginx under several host names, until nothing
// is left. It compares outcomes, pages and links with an independent reading of the files on disk.
func TestRealSite(t *testing.T) {
	port := serveRealSites(t)
	dir := t.TempDir()
	seeds := filepath.Join(dir, "urls.txt")
	conf := filepath.Join(dir, "crawlbatch.yaml")
	storeDir := filepath.Join(dir, "store")
	crawltest.Write(t, seeds, strings.Join(realSeeds, "\n")+"\n")
	crawltest.Write(t, conf, "politeness: {delay: 5ms, per_address_delay: 0s}\n")
	for _, args := range [][]string{
		{"plan", "--month", "2026-11", "--source", seeds, "--connect-to", fmt.Sprintf("::127.0.0.1:%d", port)},
		{"run", "--month", "2026-11", "--rounds", "0"},
	} {
		args = append(args, "--store", storeDir)
		if args[0] == "plan" {
			args = append(args, "--config", conf)
		}
		out := mustRun(t, args...)
		t.Logf("crawlbatch %s\n%s", args[0], out)
	}
	compareRealSites(t, storeDir)
}

// serveRealSites starts nginx on a free loopback port and returns the port.
func serveRealSites(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	dir := t.TempDir()
	var servers strings.Builder
	for _, host := range slices.Sorted(maps.Keys(realSites)) {
		fmt.Fprintf(&servers, "\tserver { listen 127.0.0.1:%d; server_name %s; root %s; index index.html;\n", port, host, realSites[host])
		if host == "git.example.test" {
			fmt.Fprintf(&servers, "\t\tlocation = /robots.txt { default_type text/plain; return 200 \"User-agent: *\\nDisallow: %s\\n\"; }\n", realDenied)
		}
		servers.WriteString("\t}\n")
	}
	crawltest.Write(t, filepath.Join(dir, "nginx.conf"), fmt.Sprintf(nginxConf, dir, port, realAlias, servers.String()))
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	nginx := exec.Command("nginx", "-c", filepath.Join(dir, "nginx.conf"), "-e", filepath.Join(dir, "error.log"))
	var log bytes.Buffer
	nginx.Stderr = &log
	if err := nginx.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		nginx.Process.Signal(os.Interrupt)
		nginx.Wait()
	})
	asks := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for range 200 {
		r, err := asks.Get(fmt.Sprintf("http://127.0.0.1:%d/", port))
		if err == nil {
			r.Body.Close()
			return port
		}
		time.Sleep(25 * time.Millisecond)
	}
	t.Fatalf("nginx does not answer: %s", log.String())
	return 0
}

// answer is the server's expected answer for a URL, derived from the disk.
type answer struct {
	outcome schema.Outcome
	target  string // target of a redirect
	file    string
}

// realAnswer predicts the answer of nginx to a request for a URL.
func realAnswer(u *url.URL) answer {
	if u.Host == realAlias {
		return answer{outcome: schema.Redirected, target: "http://policy.debian.test" + u.RequestURI()}
	}
	root, ok := realSites[u.Host]
	if !ok {
		return answer{}
	}
	if u.Host == "git.example.test" && strings.HasPrefix(u.Path, realDenied) {
		return answer{outcome: schema.RobotsDenied}
	}
	file := filepath.Join(root, filepath.FromSlash(path.Clean(u.Path)))
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return answer{outcome: schema.HTTP4xx}
	case info.IsDir() && !strings.HasSuffix(u.Path, "/"):
		return answer{outcome: schema.Redirected, target: "http://" + u.Host + u.Path + "/"}
	case info.IsDir():
		file = filepath.Join(file, "index.html")
		if _, err := os.Stat(file); err != nil {
			return answer{outcome: schema.HTTP4xx} // nginx answers 403 for a folder without an index page
		}
	}
	switch filepath.Ext(file) {
	case ".html", ".txt", ".xml":
		return answer{outcome: schema.OK, file: file}
	}
	return answer{outcome: schema.MIMEFiltered, file: file}
}

// readPage holds the facts that an independent reader finds in an HTML file.
type readPage struct {
	title    string
	links    []string // targets of a, area, frame and iframe elements, in order
	nofollow []string // targets of the links whose rel forbids following
}

func readDocument(t *testing.T, file, base string) readPage {
	t.Helper()
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var d readPage
	if filepath.Ext(file) != ".html" {
		return d
	}
	at, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	z := html.NewTokenizer(bytes.NewReader(body))
	titled := false
	for {
		switch z.Next() {
		case html.ErrorToken:
			return d
		case html.StartTagToken, html.SelfClosingTagToken:
			tok := z.Token()
			if tok.Data == "title" && !titled {
				titled = true
				if z.Next() == html.TextToken {
					d.title = strings.Join(strings.Fields(html.UnescapeString(string(z.Raw()))), " ")
				}
			}
			key, ok := map[string]string{"a": "href", "area": "href", "frame": "src", "iframe": "src"}[tok.Data]
			if !ok {
				continue
			}
			rel := ""
			for _, a := range tok.Attr {
				if a.Key == "rel" {
					rel = a.Val
				}
			}
			for _, a := range tok.Attr {
				if a.Key != key {
					continue
				}
				target, err := at.Parse(strings.TrimSpace(a.Val))
				if err != nil || target.Scheme != "http" && target.Scheme != "https" {
					continue
				}
				target.Fragment, target.RawFragment, target.User = "", "", nil
				if target.Path == "" {
					target.Path = "/"
				}
				// A canonical URL sorts its parameters by name.
				if target.RawQuery != "" {
					parameters := strings.Split(target.RawQuery, "&")
					slices.SortStableFunc(parameters, func(a, b string) int {
						a, _, _ = strings.Cut(a, "=")
						b, _, _ = strings.Cut(b, "=")
						return strings.Compare(a, b)
					})
					target.RawQuery = strings.Join(parameters, "&")
				}
				d.links = append(d.links, target.String())
				if slices.Contains(strings.Fields(rel), "nofollow") {
					d.nofollow = append(d.nofollow, target.String())
				}
			}
		}
	}
}

// expectedCrawl describes the crawl that must result from the files on disk.
type expectedCrawl struct {
	outcomes map[string]schema.Outcome
	pages    map[string]readPage
	nofollow map[string]bool // targets to which all links are nofollow
}

// walkRealSites crawls the files on disk, round by round.
func walkRealSites(t *testing.T) expectedCrawl {
	t.Helper()
	e := expectedCrawl{outcomes: map[string]schema.Outcome{}, pages: map[string]readPage{}, nofollow: map[string]bool{}}
	next := slices.Clone(realSeeds)
	for len(next) > 0 {
		planned := map[string]bool{}
		for _, u := range next {
			planned[u] = true
		}
		var found []string
		for _, u := range next {
			at, chain := u, answer{}
			for hops := 0; ; hops++ {
				parsed, err := url.Parse(at)
				if err != nil {
					t.Fatal(err)
				}
				chain = realAnswer(parsed)
				if chain.outcome != schema.Redirected || planned[chain.target] || e.outcomes[chain.target] != "" {
					break
				}
				at = chain.target
			}
			e.outcomes[u] = chain.outcome
			if chain.outcome != schema.OK {
				continue
			}
			d := readDocument(t, chain.file, at)
			e.pages[at] = d
			for _, l := range d.links {
				if slices.Contains(d.nofollow, l) {
					e.nofollow[l] = true
				} else {
					found = append(found, l)
				}
			}
		}
		next = next[:0]
		for _, f := range found {
			parsed, err := url.Parse(f)
			if err != nil || realSites[parsed.Host] == "" && parsed.Host != realAlias {
				continue
			}
			delete(e.nofollow, f)
			_, isPage := e.pages[f]
			if e.outcomes[f] == "" && !isPage && !slices.Contains(next, f) {
				next = append(next, f)
			}
		}
	}
	return e
}

func compareRealSites(t *testing.T, dir string) {
	want := walkRealSites(t)
	ctx := context.Background()
	b, err := dirstore.Open(dir, dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := crawltest.SealedFiles(ctx, b, "2026-11")
	if err != nil {
		t.Fatal(err)
	}
	outcomes := map[string]schema.Outcome{}
	for _, f := range crawltest.RowsOf[schema.Fetch](t, b, sealed, "fetches") {
		if outcomes[f.URL] != "" {
			t.Errorf("%s was planned twice", f.URL)
		}
		outcomes[f.URL] = f.Outcome
	}
	if d := cmp.Diff(want.outcomes, outcomes); d != "" {
		t.Errorf("outcomes (- files on disk, + crawl):\n%s", d)
	}
	titles, wantTitles := map[string]string{}, map[string]string{}
	for _, p := range crawltest.RowsOf[schema.Page](t, b, sealed, "pages") {
		titles[p.URL] = p.Title
	}
	links, wantLinks := map[string][]string{}, map[string][]string{}
	for u, d := range want.pages {
		wantTitles[u] = d.title
		if len(d.links) > 0 {
			wantLinks[u] = d.links
		}
	}
	if d := cmp.Diff(wantTitles, titles); d != "" {
		t.Errorf("titles (- files on disk, + crawl):\n%s", d)
	}
	for _, l := range crawltest.RowsOf[schema.Link](t, b, sealed, "links") {
		switch l.Kind {
		case schema.KindA, schema.KindArea, schema.KindFrame, schema.KindIframe:
			links[l.Source] = append(links[l.Source], l.Target)
		}
	}
	if d := cmp.Diff(wantLinks, links); d != "" {
		t.Errorf("links (- files on disk, + crawl):\n%s", d)
	}
	nofollow := map[string]bool{}
	for _, k := range crawltest.RowsOf[schema.Skip](t, b, sealed, "skips") {
		if k.Reason == schema.SkipNofollow && outcomes[k.URL] == "" && titles[k.URL] == "" {
			nofollow[k.URL] = true
		}
	}
	if d := cmp.Diff(want.nofollow, nofollow); d != "" {
		t.Errorf("links not to be followed (- files on disk, + crawl):\n%s", d)
	}
	t.Logf("%d URLs, %d pages, %d pages with links, in %d rounds", len(outcomes), len(titles), len(links), len(sealed))
	if len(titles) < 200 {
		t.Errorf("only %d pages: are the documentation packages completely installed?", len(titles))
	}
}

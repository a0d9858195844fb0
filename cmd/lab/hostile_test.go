//go:build lab

package lab

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/formats/schema"
)

const hostileConfig = `
user_agent: "hostilebot/1.0 (+https://example.org/bot)"
politeness: {delay: 20ms, per_address_delay: 0s}
fetch:
  sitemaps: robots
  slots: 200
  timeout: {connect: 3s, first_byte: 3s, total: 6s}
  checkpoint: {every: 5s, lease: 20s}
  retries: {timeout: 0, server_error: 1, rate_limited: 1}
  pauses: {rate_limited: 100ms, timeout: 100ms, server_error: 100ms, dns: 7s, breaker: 1s}
  window: %v
  resolvers: ["%s"]
  allow_private_networks: %v
  connect_to: [%s]
plan: {max_depth: 3, budgets: {default: 200}}
`

// hostileFault is a way in which a server misbehaves, with the rows that a crawl must record.
type hostileFault struct {
	name   string
	url    string           // the planned URL; "" is http://NAME.test/
	canon  string           // the canonical URL; "" if it equals url
	serve  func(x exchange) // answers requests for pages; nil: the server sends a page without fault
	robots func(x exchange) // answers requests for robots.txt; nil: the server sends 404
	tls    string           // kind of TLS handshake, described in hostileWeb.handshake
	dns    string           // kind of DNS answer, described in hostileWeb.nameAnswer

	// These fields are expected values in the planned URL's row.
	outcome   schema.Outcome
	status    int16
	truncated string
	warning   string // at least one request of the host must have this warning; "": the test does not check warnings
	// certificate is what must be wrong with the certificate, by the page's row.
	certificate string
	failure     string // text that the error must contain
	// page is true if the pages dataset must have a row for the URL. title and links are expected values
	// for this page.
	page  bool
	title string
	links int // expected number of links; -1: any number
	// listed is the expected number of links of the host's /named.xml, which is not planned.
	listed int
}

// hostileRun is a crawl of a hostile web.
type hostileRun struct {
	urls    []string // URLs of the first plan
	rounds  int      // number of rounds; 0 means 1
	private bool     // true: the crawl may connect to private addresses
	rules   []string // rules of connect_to that come before the rules for the web's ports

	mostFail bool // most URLs fail, so that run exits 5
}

// planned returns the planned URLs of faults.
func planned(faults []hostileFault) (urls []string) {
	for i := range faults {
		urls = append(urls, faults[i].planned())
	}
	return urls
}

// runHostile crawls with the real binary. It returns the rows, and the peak of the binary's memory
// in bytes.
func runHostile(t *testing.T, w *hostileWeb, r hostileRun) (rows *hostileRows, peak int64) {
	t.Helper()
	rules := r.rules
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), program)
	_, plain, _ := net.SplitHostPort(w.http)
	_, secure, _ := net.SplitHostPort(w.tls)
	_, refused, _ := net.SplitHostPort(w.refused)
	rules = append(rules, "refused.test:80::"+refused, ":80::"+plain, ":443::"+secure)
	rounds := max(r.rounds, 1)
	source, conf, store := filepath.Join(dir, "urls.txt"), filepath.Join(dir, "c.yaml"), filepath.Join(dir, "store")
	crawltest.Write(t, source, strings.Join(r.urls, "\n"))
	crawltest.Write(t, conf, fmt.Sprintf(hostileConfig, 3*time.Minute, w.dns, r.private, `"`+strings.Join(rules, `", "`)+`"`))
	month := []string{"--month", "2026-11", "--store", store}
	mustRun(t, append([]string{"plan", "--source", source, "--config", conf}, month...)...)
	cmd.Args = append(cmd.Args, append([]string{"run", "--rounds", fmt.Sprint(rounds)}, month...)...)
	cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+w.roots, "SSL_CERT_DIR="+filepath.Dir(w.roots))
	peak, cpu, err := crawltest.PeakOf(cmd)
	var exit *exec.ExitError
	if mostFail := errors.As(err, &exit) && exit.ExitCode() == exitMostFailed; mostFail != r.mostFail || err != nil && !mostFail {
		t.Fatalf("want exit %d: %t; %v", exitMostFailed, r.mostFail, err)
	}
	t.Logf("%d URLs planned first, %d rounds: peak memory %d MiB, CPU %v", len(r.urls), rounds, peak>>20, cpu)
	if len(r.urls) < 10_000 { // verify reads every URL, which takes too long for longer lists
		mustRun(t, append([]string{"verify"}, month...)...)
	}
	b := crawltest.OpenDir(t, store)
	sealed, err := crawltest.SealedFiles(t.Context(), b, "2026-11")
	if err != nil {
		t.Fatal(err)
	}
	rows = &hostileRows{fetches: map[string]schema.Fetch{}, pages: map[string]schema.Page{}, links: map[string]int{},
		warnings: map[string]string{}, skips: crawltest.RowsOf[schema.Skip](t, b, sealed, "skips"), urls: crawltest.RowsOf[schema.URLRecord](t, b, sealed, "urls")}
	for _, f := range crawltest.RowsOf[schema.Fetch](t, b, sealed, "fetches") {
		rows.fetches[f.URL] = f
	}
	for _, p := range crawltest.RowsOf[schema.Page](t, b, sealed, "pages") {
		rows.pages[p.PlannedURL] = p
	}
	for _, l := range crawltest.RowsOf[schema.Link](t, b, sealed, "links") {
		rows.links[l.Source]++
	}
	for _, r := range crawltest.RowsOf[schema.Request](t, b, sealed, "requests") {
		rows.warnings[w.faultName(r.Host)] += r.Warnings + "; "
	}
	return rows, peak
}

// hostileRows holds the rows of a crawl of faults.
type hostileRows struct {
	fetches  map[string]schema.Fetch // row of fetches, by planned URL
	pages    map[string]schema.Page  // row of pages, by planned URL
	links    map[string]int          // number of links, by source URL
	warnings map[string]string       // warnings of requests, by fault
	skips    []schema.Skip
	urls     []schema.URLRecord
}

func (f *hostileFault) planned() string {
	if f.url != "" {
		return f.url
	}
	return "http://" + f.name + ".test/"
}

// check compares the rows with the fault's expectations.
func (f *hostileFault) check(t *testing.T, rows *hostileRows) {
	got, ok := rows.fetches[cmp.Or(f.canon, f.planned())]
	if !ok {
		t.Fatalf("%s has no outcome", f.planned())
	}
	if got.Outcome != f.outcome || got.HTTPStatus != f.status || got.Truncated != f.truncated {
		t.Errorf("%s, status %d, truncated %q (%s); want %s, %d, %q", got.Outcome, got.HTTPStatus, got.Truncated, got.Error, f.outcome, f.status, f.truncated)
	}
	if words := got.Error + ": " + got.ErrorDetail; !strings.Contains(words, f.failure) {
		t.Errorf("error %q, want %q", words, f.failure)
	}
	if strings.Contains(got.Error, ".test") || strings.Contains(got.Error, "127.0.0.1") || strings.Contains(got.Error, "http://") {
		t.Errorf("error %q names details of this URL: errors must be equal for equal causes", got.Error)
	}
	if w := rows.warnings[f.name]; !strings.Contains(w, f.warning) {
		t.Errorf("warnings %q, want %q", w, f.warning)
	}
	page, ok := rows.pages[cmp.Or(f.canon, f.planned())]
	if ok != f.page {
		t.Errorf("there is a page: %v, want %v", ok, f.page)
	}
	if !ok {
		return
	}
	if page.Certificate != f.certificate {
		t.Errorf("certificate %q, want %q", page.Certificate, f.certificate)
	}
	if f.title != "" && page.Title != f.title {
		t.Errorf("title %q, want %q", page.Title, f.title)
	}
	if n := rows.links[page.URL]; f.links >= 0 && n != f.links {
		t.Errorf("%d links, want %d", n, f.links)
	}
	if n := rows.links[f.planned()+"named.xml"]; n != f.listed {
		t.Errorf("%d links of the sitemap that robots.txt names, want %d", n, f.listed)
	}
}

// TestHostile crawls each fault of the table with the real binary and compares the recorded rows
// with the expected rows. One crawl with the memory of one map task fetches all faults, so the test
// also shows that no fault affects the rows of another.
func TestHostile(t *testing.T) {
	t.Parallel()
	faults := hostileFaults()
	names := map[string]bool{}
	for i := range faults {
		if names[faults[i].name] {
			t.Fatalf("two faults are named %s", faults[i].name)
		}
		names[faults[i].name] = true
	}
	if len(faults) < 60 {
		t.Errorf("only %d faults", len(faults))
	}
	w := newHostileWeb(t, faults)
	rows, peak := runHostile(t, w, hostileRun{urls: planned(faults), private: true})
	for i := range faults {
		t.Run(faults[i].name, func(t *testing.T) { faults[i].check(t, rows) })
	}
	if limit := int64(512 << 20); peak > limit {
		t.Errorf("peak memory %d MiB, want at most %d", peak>>20, limit>>20)
	}
}

// TestHostileAddresses crawls names, redirects and forms of URLs that lead to addresses to which a public crawl
// must not connect.
func TestHostileAddresses(t *testing.T) {
	t.Parallel()
	faults := addressFaults()
	w := newHostileWeb(t, faults)
	// One host is public and redirects to hosts that are not public.
	rows, _ := runHostile(t, w, hostileRun{urls: planned(faults), rules: []string{"address-redirect.test:80:" + w.http}, mostFail: true})
	for i := range faults {
		t.Run(faults[i].name, func(t *testing.T) { faults[i].check(t, rows) })
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, n := range w.asked {
		if !strings.HasPrefix(name, "address-redirect.test") {
			t.Errorf("%s was asked %d times", name, n)
		}
	}
}

package simweb

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/simhash"
	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// newWeb makes the default web, or one with another config if change is not nil.
func newWeb(t testing.TB, change func(*Config)) *Web {
	t.Helper()
	cfg := Default()
	if change != nil {
		change(&cfg)
	}
	w, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// eachPage calls f with all pages of the graph.
func eachPage(w *Web, f func(host, page int)) {
	for h := range w.Hosts() {
		for p := range w.Pages(h) {
			f(h, p)
		}
	}
}

func TestSameSeedSameBytes(t *testing.T) {
	a, b, other := newWeb(t, nil), newWeb(t, nil), newWeb(t, func(c *Config) { c.Seed = 2 })
	same, pages := 0, 0
	eachPage(a, func(h, p int) {
		pages++
		path := a.path(h, p)
		if got := b.path(h, p); got != path {
			t.Fatalf("page %d of host %d is at %s and at %s", p, h, path, got)
		}
		first, again := a.Look(h, path), b.Look(h, path)
		if !bytes.Equal(first.Body, again.Body) || first.Status != again.Status || first.Location != again.Location {
			t.Fatalf("%s answers differently in another instance", a.URL(h, p))
		}
		if bytes.Equal(first.Body, other.Look(h, path).Body) {
			same++
		}
	})
	if same > pages/10 {
		t.Errorf("%d of %d pages are the same under another seed", same, pages)
	}
}

// defaultWeb is the digest of all answers of the default web, without coding faults, whose bytes
// depend on library versions. If the generator changes, update the digest; recorded figures and
// seeds of the default web are then obsolete.
const defaultWeb = "75ba6f350854377817d59f496f10826ccd1338fe999ebfc043554a6655ce5675"

func TestDefaultWebIsTheSameOnEveryMachine(t *testing.T) {
	w := newWeb(t, func(c *Config) { c.FaultShare = 0 })
	sum := sha256.New()
	for h := range w.Hosts() {
		for _, path := range []string{"/robots.txt", "/sitemap.xml", "/feed.xml"} {
			sum.Write(w.Look(h, path).Body)
		}
	}
	eachPage(w, func(h, p int) {
		io.WriteString(sum, w.URL(h, p))
		sum.Write(w.Look(h, w.path(h, p)).Body)
	})
	if got := hex.EncodeToString(sum.Sum(nil)); got != defaultWeb {
		t.Errorf("digest of the default web is %s, was %s", got, defaultWeb)
	}
}

func TestNamesAndPathsAreUndone(t *testing.T) {
	w := newWeb(t, func(c *Config) { c.Hosts, c.PagesPerHost, c.PrivateSuffix = 300, 20, "github.io" })
	canonicalizer, err := urlkey.New([]string{"utm_*", "fbclid", "gclid"})
	if err != nil {
		t.Fatal(err)
	}
	private, shared := 0, 0
	seen := map[string]bool{}
	eachPage(w, func(h, p int) {
		u := w.URL(h, p)
		if seen[u] {
			t.Fatalf("two pages have the URL %s", u)
		}
		seen[u] = true
		key, err := canonicalizer.Canonical(u, "")
		if err != nil || key.URL != u || key.Domain != w.Domain(h) || key.Host != w.Host(h) {
			t.Fatalf("%s of domain %s: its key is %+v, %v", u, w.Domain(h), key, err)
		}
		if i, ok := w.HostIndex(strings.ToUpper(w.Host(h)) + ":80"); !ok || i != h {
			t.Fatalf("host %d is found as %d, %v", h, i, ok)
		}
		if w.role(h, p) != roleFault {
			if got, ok := w.pageOf(h, w.path(h, p)); !ok || got != p {
				t.Fatalf("%s is found as page %d, %v", u, got, ok)
			}
		}
	})
	for h := range w.Hosts() {
		if strings.HasSuffix(w.Host(h), ".github.io") {
			private++
		}
		if s := w.sibling(h); s != h {
			shared++
			if w.Domain(s) != w.Domain(h) {
				t.Errorf("hosts %s and %s are siblings of different domains", w.Host(h), w.Host(s))
			}
		}
		if s, ok := w.stranger(key(h), h); !ok || w.Domain(s) == w.Domain(h) {
			t.Errorf("host %s has no stranger: %d, %v", w.Host(h), s, ok)
		}
	}
	if private < 10 || shared < 100 {
		t.Errorf("%d hosts below the private suffix and %d with siblings, want more", private, shared)
	}
	for _, name := range []string{"", "h", "h00001", "h00001.d99999.test", "h1.d00001.test", "x00001.d00001.test", "h00300.d00300.test", "h-0001.d00001.test", w.Host(1) + ":8080"} {
		if i, ok := w.HostIndex(name); ok {
			t.Errorf("%q is taken for host %d", name, i)
		}
	}
	for _, path := range []string{"/x-0.html", "/news/wrong-5.html", "/item?id=99999999", "/news/-1", "/robots", "/fault/gzip", "/fault/no/1", "/fault/gzip/01", "/fault/gzip/1/1", "/land/gzip/-1"} {
		if a := w.Look(3, path); a.Status != 404 {
			t.Errorf("%s answers %d, want 404", path, a.Status)
		}
	}
}

func TestSizesFollowZipf(t *testing.T) {
	w := newWeb(t, func(c *Config) { c.Hosts, c.PagesPerHost = 500, 100 })
	var sizes []int
	sum := 0
	for h := range w.Hosts() {
		sizes = append(sizes, w.Pages(h))
		sum += w.Pages(h)
	}
	slices.Sort(sizes)
	if mean := float64(sum) / 500; math.Abs(mean-100) > 3 {
		t.Errorf("mean size %.1f, want 100", mean)
	}
	if median, most := sizes[250], sizes[499]; most < 5*median {
		t.Errorf("largest host has %d pages, the median one %d: want a long tail", most, median)
	}
}

func TestHugeWebCostsNothing(t *testing.T) {
	w := newWeb(t, func(c *Config) { c.Hosts, c.PagesPerHost = maxHosts, maxPages })
	h := maxHosts - 3
	p := w.Pages(h) - 1
	if a := w.Look(h, w.path(h, p)); a.Status == 404 {
		t.Errorf("%s is not a page of the web", w.URL(h, p))
	}
	if i, ok := w.HostIndex(w.Host(h)); !ok || i != h {
		t.Errorf("host %d is found as %d, %v", h, i, ok)
	}
	if a := w.Look(h, "/sitemap.xml"); !bytes.Contains(a.Body, []byte("<sitemapindex")) {
		t.Errorf("a host of %d pages has no sitemap index", p)
	}
}

// mainOf returns the main text of a page of the graph.
func mainOf(w *Web, h, p int) []byte { return w.makeDocument(h, p, "", w.path(h, p), nil).Main }

func TestCopiesAreWhatTheyClaim(t *testing.T) {
	w := newWeb(t, func(c *Config) { c.PagesPerHost, c.ExactShare, c.NearShare = 60, 0.1, 0.1 })
	n := map[role]int{}
	far := 0
	eachPage(w, func(h, p int) {
		r := w.role(h, p)
		if r == roleFault {
			return
		}
		n[r]++
		text := mainOf(w, h, p)
		words := len(bytes.Fields(text))
		if (r == roleShort) != (words < 50) {
			t.Errorf("%s has role %d and %d words", w.URL(h, p), r, words)
		}
		if r != roleExact && r != roleNear && r != roleChain {
			return
		}
		src := w.source(h, p, "")
		base := mainOf(w, src.host, src.page)
		d := simhash.Distance(Fingerprint(text), Fingerprint(base))
		switch {
		case r == roleExact && !bytes.Equal(text, base):
			t.Errorf("%s is not an exact copy", w.URL(h, p))
		case r == roleNear && (d < 1 || d > NearDistance):
			t.Errorf("%s is a near copy at distance %d", w.URL(h, p), d)
		case r == roleChain:
			before := mainOf(w, h, p-1)
			if d := simhash.Distance(Fingerprint(text), Fingerprint(before)); d < 1 || d > NearDistance {
				t.Errorf("the fingerprint of %s differs in %d bits from that of the page before it in its chain", w.URL(h, p), d)
			}
			if d > NearDistance {
				far++
			}
		}
	})
	for _, r := range []role{rolePage, roleShort, roleExact, roleNear, roleChain} {
		if n[r] < 10 {
			t.Errorf("%d pages of role %d, want more", n[r], r)
		}
	}
	if far == 0 {
		t.Error("no chain has ends farther apart than the limit")
	}
}

func TestUnrelatedPagesAreFarApart(t *testing.T) {
	w := newWeb(t, func(c *Config) { c.ExactShare, c.NearShare, c.ChainShare, c.ShortShare = 0, 0, 0, 0 })
	var prints []uint64
	var urls []string
	eachPage(w, func(h, p int) {
		if w.role(h, p) != roleFault {
			prints = append(prints, Fingerprint(mainOf(w, h, p)))
			urls = append(urls, w.URL(h, p))
		}
	})
	for i := range prints {
		for j := range i {
			if d := simhash.Distance(prints[i], prints[j]); d <= NearDistance {
				t.Errorf("%s and %s are %d apart", urls[i], urls[j], d)
			}
		}
	}
}

func TestTreeReachesEveryPage(t *testing.T) {
	w := newWeb(t, nil)
	for h := range w.Hosts() {
		seen := map[int]bool{0: true}
		for queue := []int{0}; len(queue) > 0; queue = queue[1:] {
			w.children(h, queue[0], func(c int) {
				if !seen[c] {
					seen[c] = true
					if w.role(h, c) != roleFault {
						queue = append(queue, c)
					}
				}
			})
		}
		if len(seen) != w.Pages(h) {
			t.Errorf("%s: %d of %d pages are in the tree", w.Host(h), len(seen), w.Pages(h))
		}
	}
}

func TestTwentyHostsHaveEveryRobotsProfile(t *testing.T) {
	for seed := range uint64(20) {
		w := newWeb(t, func(c *Config) { c.Seed = seed })
		seen := map[RobotsProfile]bool{}
		for h := range 20 {
			seen[w.Profile(h)] = true
		}
		if len(seen) != int(RobotsUnreachable)+1 || w.Profile(0) != RobotsAllow {
			t.Errorf("seed %d: profiles %v, the first %v", seed, seen, w.Profile(0))
		}
	}
}

func TestReferencesResolve(t *testing.T) {
	for _, tc := range []struct{ dir, path, want string }{
		{"/", "/", "./"},
		{"/", "/a", "a"},
		{"/a/b/", "/", "../../"},
		{"/a/b/", "/a/c", "../c"},
		{"/a/b/", "/a/b/c?d", "c?d"},
		{"/a/", "/b/c", "../b/c"},
	} {
		if got := relative(tc.dir, tc.path); got != tc.want {
			t.Errorf("%s from %s is written %q, want %q", tc.path, tc.dir, got, tc.want)
		}
		base, err := url.Parse("http://h.test" + tc.dir)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := base.Parse(tc.want); err != nil || got.RequestURI() != tc.path {
			t.Errorf("%q from %s resolves to %v, %v", tc.want, tc.dir, got, err)
		}
	}
}

func TestConfigErrorsNameTheField(t *testing.T) {
	for _, tc := range []struct {
		field  string
		change func(*Config)
	}{
		{"Hosts", func(c *Config) { c.Hosts = 0 }},
		{"PagesPerHost", func(c *Config) { c.PagesPerHost = -1 }},
		{"NearShare", func(c *Config) { c.NearShare = math.NaN() }},
		{"SeedShare", func(c *Config) { c.SeedShare = 1.5 }},
		{"FaultShare + ", func(c *Config) { c.FaultShare, c.ExactShare = 0.5, 0.5 }},
		{"CrawlDelay", func(c *Config) { c.CrawlDelay = -1 }},
		{"RetryAfter", func(c *Config) { c.RetryAfter = 1500 * time.Millisecond }},
		{"LargeBody", func(c *Config) { c.LargeBody = -1 }},
		{"Faults", func(c *Config) { c.Faults = 0 }},
		{"PrivateSuffix", func(c *Config) { c.PrivateSuffix = "example.github.io" }},
	} {
		cfg := Default()
		tc.change(&cfg)
		if _, err := New(cfg); !errors.Is(err, ErrConfig) || !strings.Contains(fmt.Sprint(err), tc.field) {
			t.Errorf("%s: error %v", tc.field, err)
		}
	}
}

func TestSeedsAndSitemaps(t *testing.T) {
	w := newWeb(t, nil)
	seeds := slices.Collect(w.Seeds())
	total, listed := 0, 0
	for h := range w.Hosts() {
		total += w.Pages(h)
		body := string(w.Look(h, "/sitemap.xml").Body)
		w.SitemapURLs(h, func(u string) bool {
			listed++
			if !strings.Contains(body, "<loc>"+strings.ReplaceAll(u, "&", "&amp;")+"</loc>") {
				t.Errorf("sitemap of %s lacks %s", w.Host(h), u)
			}
			return true
		})
	}
	if share := float64(len(seeds)) / float64(total); share < 0.35 || share > 0.5 {
		t.Errorf("%d of %d pages are seeds", len(seeds), total)
	}
	if listed < total*9/10 {
		t.Errorf("%d of %d pages are in sitemaps", listed, total)
	}
	if dup := slices.Compact(slices.Sorted(slices.Values(seeds))); len(dup) != len(seeds) {
		t.Error("a seed is repeated")
	}
}

func BenchmarkDocument(b *testing.B) {
	w := newWeb(b, func(c *Config) { c.FaultShare = 0 })
	n := w.Pages(1)
	size := 0
	for i := 0; b.Loop(); i++ {
		size += len(w.Look(1, w.path(1, i%n)).Body)
	}
	b.SetBytes(int64(size / b.N))
}

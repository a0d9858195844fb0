package predecessor_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/takedown"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/predecessor"
	"crawlbatch.io/crawlbatch/stages"
)

const secret = "0123456789abcdef"

func emptyStore(t *testing.T) store.Bucket {
	t.Helper()
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// put stores a document whose format is the program's plus delta. The document has a field that this program does not know.
func put(t *testing.T, b store.Bucket, key string, d manifest.Document, delta int) {
	t.Helper()
	body, err := manifest.Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	if delta != 0 {
		text := fmt.Sprintf(`"format_version": %d, "unknown": [1],`, schema.FormatVersion+delta)
		body = []byte(strings.Replace(string(body), fmt.Sprintf(`"format_version": %d,`, schema.FormatVersion), text, 1))
	}
	if _, err := store.CreateBytes(t.Context(), b, key, body); err != nil {
		t.Fatal(err)
	}
}

func TestAnOlderAndANewerStoreAreRefused(t *testing.T) {
	crawl := &manifest.Crawl{Crawl: "2026-11", Config: "plan: {opt_out: list.txt}\n"}
	for name, fill := range map[string]func(b store.Bucket, delta int){
		"head": func(b store.Bucket, delta int) {
			put(t, b, layout.Crawls(), &manifest.Crawls{}, delta)
			put(t, b, layout.CrawlManifest("2026-11"), crawl, delta)
			put(t, b, layout.CrawlManifest("2026-11r2"), &manifest.Crawl{Crawl: "2026-11r2"}, delta)
		},
		"no head": func(b store.Bucket, delta int) { put(t, b, layout.CrawlManifest("2026-11"), crawl, delta) },
		"only a claim": func(b store.Bucket, delta int) {
			put(t, b, layout.Active(), &manifest.Active{}, delta)
			put(t, b, layout.CrawlManifest("2026-11"), crawl, delta)
		},
	} {
		for _, delta := range []int{-1, 0, 1} {
			b := emptyStore(t)
			fill(b, delta)
			err := predecessor.Check(t.Context(), b)
			if delta == 0 {
				if err != nil {
					t.Errorf("%s of this format: %v", name, err)
				}
				continue
			}
			var other *predecessor.Error
			if !errors.As(err, &other) || !errors.Is(err, manifest.ErrFormat) {
				t.Errorf("%s, %+d: %v", name, delta, err)
				continue
			}
			advice := strings.Join(other.Advice(predecessor.Places{Old: "old", Archive: "old/warc", New: "new"}), "\n")
			for _, want := range []string{
				"crawlbatch takedown --from old --apply --store new --config FILE\n", "crawlbatch reparse --warc-store old/warc --as 2026-11r1 --store new --config FILE\n", `"list.txt"`,
			} {
				if !strings.Contains(advice, want) && name != "head" {
					t.Errorf("%s, %+d: the advice lacks %q:\n%s", name, delta, want, advice)
				}
			}
		}
	}
}

func TestAStoreWithoutDocumentsOrWithADamagedOneIsNotRefused(t *testing.T) {
	b := emptyStore(t)
	if err := predecessor.Check(t.Context(), b); err != nil {
		t.Errorf("an empty store: %v", err)
	}
	if _, err := store.CreateBytes(t.Context(), b, layout.Crawls(), []byte("{")); err != nil {
		t.Fatal(err)
	}
	if err := predecessor.Check(t.Context(), b); err != nil {
		t.Errorf("a damaged head: %v", err)
	}
}

func TestCarriedTakedownsAreAddedOnceAndOnlyWithTheirKey(t *testing.T) {
	list := func(b store.Bucket, domains ...string) {
		t.Helper()
		for _, d := range domains {
			key, err := takedown.NewKey(secret)
			if err != nil {
				t.Fatal(err)
			}
			m, err := takedown.New(nil, []string{d})
			if err == nil {
				err = takedown.Append(t.Context(), b, key, m, manifest.Takedown{At: "2026-11-01T00:00:00Z", Reason: "asked"})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	made := emptyStore(t)
	list(made, "a.test", "b.test")
	known, err := takedown.List(t.Context(), made)
	if err != nil {
		t.Fatal(err)
	}
	old, next := emptyStore(t), emptyStore(t)
	put(t, old, layout.Takedowns(), known, -1)
	list(next, "b.test", "c.test")
	w := ledger.Writer{Version: "test", Clock: stages.SystemClock{}}
	if _, _, err := predecessor.Carry(t.Context(), next, old, "another secret key", w, true); !errors.Is(err, takedown.ErrKey) {
		t.Errorf("with another key: %v", err)
	}
	for i, want := range []struct {
		apply bool
		added int
	}{{false, 1}, {true, 1}, {true, 0}} {
		added, total, err := predecessor.Carry(t.Context(), next, old, secret, w, want.apply)
		if added != want.added || total != 2 || err != nil {
			t.Errorf("step %d: added %d of %d, %v", i, added, total, err)
		}
	}
	guard, err := takedown.Open(t.Context(), next, secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"a.test", "www.b.test", "c.test"} {
		if !guard.Host(host) {
			t.Errorf("%s is not on the list", host)
		}
	}
	if n, err := takedown.Count(t.Context(), next); n != 3 || err != nil {
		t.Errorf("the list has %d entries, %v", n, err)
	}
	if added, total, err := predecessor.Carry(t.Context(), next, emptyStore(t), "", w, true); added+total != 0 || err != nil {
		t.Errorf("of a store without a list: %d of %d, %v", added, total, err)
	}
}

func TestStopsInForceOfAllCrawlsAreListed(t *testing.T) {
	b := emptyStore(t)
	put(t, b, layout.CrawlManifest("2026-10"), &manifest.Crawl{Crawl: "2026-10"}, -1)
	put(t, b, layout.CrawlManifest("2026-11"), &manifest.Crawl{Crawl: "2026-11"}, -1)
	stop := func(host, domain string) manifest.Entry {
		return manifest.Entry{What: manifest.EntryStop, Host: host, Domain: domain, By: "me", Reason: "ticket"}
	}
	put(t, b, layout.Ledger("2026-10"), &manifest.Ledger{Crawl: "2026-10", Entries: []manifest.Entry{stop("x.test", ""), stop("", "y.test")}}, -1)
	put(t, b, layout.Ledger("2026-11"), &manifest.Ledger{Crawl: "2026-11", Entries: []manifest.Entry{
		stop("x.test", ""), {What: manifest.EntryResume, Host: "x.test", At: "2026-11-02T00:00:00Z"}, stop("a.test", ""),
	}}, -1)
	stops, err := predecessor.Stops(t.Context(), b)
	var lines []string
	for _, s := range stops {
		lines = append(lines, s.Crawl+" "+s.Line())
	}
	if got := strings.Join(lines, ", "); got != "2026-11 a.test, 2026-10 y.test" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
}

package verify

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/formats/urlfilter"
	"crawlbatch.io/crawlbatch/jobs/verify/reducecheck"
	"crawlbatch.io/crawlbatch/stages"
)

// filterWithout rebuilds the URL filter of bucket 0 of round 0 without the URL lost(urls), and returns
// this URL. It also adds the first URL n more times.
func (d *damagedCrawl) filterWithout(lost func(urls []string) string, n int) string {
	d.t.Helper()
	ctx, key := d.t.Context(), layout.URLFilter(testCrawl, 0, 0)
	var urls []string
	for _, dataset := range []string{stages.FileURLs, stages.FileSkips} {
		rows := tabletest.Read[struct {
			URL string `parquet:"url"`
		}](d.t, d.b, layout.Table(dataset, testCrawl, 0, 0))
		for _, row := range rows {
			urls = append(urls, row.URL)
		}
	}
	gone := lost(urls)
	if err := d.b.Delete(ctx, key); err != nil {
		d.t.Fatal(err)
	}
	w, err := urlfilter.NewWriter(filepath.Join(d.t.TempDir(), "known"))
	if err != nil {
		d.t.Fatal(err)
	}
	defer w.Abort()
	for _, u := range urls {
		if u == gone {
			u = "http://in.its.place.test/"
		}
		if err := w.Add(u); err != nil {
			d.t.Fatal(err)
		}
	}
	for range n {
		if err := w.Add(urls[0]); err != nil {
			d.t.Fatal(err)
		}
	}
	if _, err := w.Finish(ctx, d.b, "", key); err != nil {
		d.t.Fatal(err)
	}
	return gone
}

func TestEveryURLOfBothTablesIsInTheirFilter(t *testing.T) {
	d := copyCrawl(t)
	rows := 0
	for number := range 2 {
		r := d.load(number)
		if err := reducecheck.NoLinkTargetIsLost(t.Context(), d.a, r); err != nil {
			t.Fatal(err)
		}
		if n := len(d.sealed(number).FilesOf(stages.FileURLFilter)); n != r.Plan.Buckets {
			t.Errorf("the seal of round %d lists %d filters of %d buckets", number, n, r.Plan.Buckets)
		}
		distinct := map[string]bool{}
		for _, u := range rowsOf[schema.URLRecord](d, stages.FileURLs, number) {
			distinct[u.URL] = true
		}
		for _, s := range rowsOf[schema.Skip](d, stages.FileSkips, number) {
			distinct[s.URL] = true
		}
		rows += len(distinct)
	}
	d.expectClean(6)
	if got := d.itemsRead(knownCheck); got != int64(rows) {
		t.Errorf("%d URLs were tested, the tables hold %d", got, rows)
	}
}

func TestAFilterThatLacksAURLIsFound(t *testing.T) {
	for name, lost := range map[string]func(urls []string) string{
		"of urls":  func(urls []string) string { return urls[0] },
		"of skips": func(urls []string) string { return urls[len(urls)-1] },
	} {
		t.Run(name, func(t *testing.T) {
			d := copyCrawl(t)
			r := d.load(0)
			gone := d.filterWithout(lost, 0)
			if err := reducecheck.NoLinkTargetIsLost(t.Context(), d.a, r); err != nil {
				t.Fatal(err)
			}
			d.expectViolation(gone, "the URL filter of its bucket does not contain it")
			if n := d.a.Report().Found(); n != 1 {
				t.Errorf("%d violations: %+v", n, d.a.Report().Violations)
			}
		})
	}
}

func TestAFilterOfOtherRowsIsFound(t *testing.T) {
	d := copyCrawl(t)
	r := d.load(0)
	d.filterWithout(func([]string) string { return "" }, 3)
	if err := reducecheck.NoLinkTargetIsLost(t.Context(), d.a, r); err != nil {
		t.Fatal(err)
	}
	d.expectViolation("", "its result says")
}

func TestADamagedFilterIsFound(t *testing.T) {
	d := copyCrawl(t)
	key := layout.URLFilter(testCrawl, 0, 0)
	body := bytes.Clone(d.body(key))
	body[len(body)/2] ^= 1
	d.replace(key, body)
	report := d.audit()
	for _, v := range report.Violations {
		if v.Object == key && v.Check == fileDigests {
			return
		}
	}
	t.Errorf("not found: %+v", report.Violations)
}

func TestALostFilterIsRebuilt(t *testing.T) {
	d := copyCrawl(t)
	key := layout.URLFilter(testCrawl, 0, 0)
	before := bytes.Clone(d.body(key))
	d.delete(key)
	if r := d.audit(); r.Found() != 1 || r.Violations[0].Object != key || !strings.Contains(r.Violations[0].Problem, "--rebuild") {
		t.Errorf("%+v", r.Violations)
	}
	keys, err := d.runner().Rebuild(t.Context(), stages.Task{Stage: stages.Frontier, Crawl: testCrawl})
	if err != nil || len(keys) != 1 || keys[0] != key || manifest.Digest(d.body(key)) != manifest.Digest(before) {
		t.Errorf("rebuilt %v, %v", keys, err)
	}
}

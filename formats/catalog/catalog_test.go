package catalog_test

import (
	"bytes"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/catalog"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
)

// ccIndex is the flat schema of Common Crawl's columnar index.
const ccIndex = `
url_surtkey string, url string, url_host_name string, url_host_tld string, url_host_2nd_last_part string,
url_host_3rd_last_part string, url_host_4th_last_part string, url_host_5th_last_part string,
url_host_registry_suffix string, url_host_registered_domain string, url_host_private_suffix string,
url_host_private_domain string, url_host_name_reversed string, url_protocol string, url_port int, url_path string,
url_query string, fetch_time timestamp, fetch_status smallint, fetch_redirect string, content_digest string,
content_mime_type string, content_mime_detected string, content_charset string, content_languages string,
content_truncated string, warc_filename string, warc_record_offset int, warc_record_length int, warc_segment string`

// beyondCCIndex lists the columns of the captures dataset that follow the columns of cc-index.
const beyondCCIndex = `
sent string, revisit string, payload_warc_filename string, payload_warc_record_offset int, payload_warc_record_length int`

func TestCapturesHaveCommonCrawlsColumnsWithTheirTypesInTheirOrder(t *testing.T) {
	d, err := catalog.Find("captures")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range d.Columns {
		got = append(got, c.Name+" "+c.Type.Hive())
	}
	want := regexp.MustCompile(`\s*,\s*`).Split(strings.TrimSpace(ccIndex+","+beyondCCIndex), -1)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if d.Partitions[0].Name != "crawl" || d.Partitions[1].Name != "subset" {
		t.Errorf("partitions %v", d.Partitions)
	}
}

func TestEveryColumnIsNamedTypedAndDescribedOnce(t *testing.T) {
	name := regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	for _, d := range catalog.Datasets() {
		seen := map[string]bool{}
		for _, c := range append(d.Columns, d.Partitions...) {
			if !name.MatchString(c.Name) || seen[c.Name] || c.Description == "" || len(c.Description) > 255 {
				t.Errorf("%s: column %+v", d.Name, c)
			}
			seen[c.Name] = true
		}
		for _, s := range d.SortedBy {
			if !seen[s] {
				t.Errorf("%s is sorted by %q, which is not a column", d.Name, s)
			}
		}
	}
}

func TestWorkingPagesHaveTheColumnsOfPages(t *testing.T) {
	byName := func(cols []catalog.Column) map[string]catalog.Column {
		m := map[string]catalog.Column{}
		for _, c := range cols {
			m[c.Name] = c
		}
		return m
	}
	want, got := byName(catalog.Columns(reflect.TypeFor[schema.Page]())), byName(catalog.Columns(reflect.TypeFor[schema.WorkingPage]()))
	for _, extra := range []string{"terms", "term_counts", "link_sketch"} {
		if _, ok := got[extra]; !ok {
			t.Errorf("working pages have no column %s", extra)
		}
		delete(got, extra)
	}
	for _, published := range []string{"change", "change_distance", "title_changed", "links_added", "links_removed", "soft_404_family"} { // publish adds them
		if _, ok := want[published]; !ok {
			t.Errorf("pages have no column %s", published)
		}
		delete(want, published)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("columns of pages (-) and of working pages (+):\n%s", d)
	}
	yes, half, third, tenth := true, 0.5, 1.0/3, 0.1
	p := schema.Page{PageColumns: schema.PageColumns{Title: "t"}, TDMReserved: &yes, LinkDensity: &half, StopWordRatio: &third, TextRatio: &tenth, Changed: &yes}
	w := schema.Working(&p, schema.WorkingColumns{})
	if d := cmp.Diff(p, w.Page()); d != "" {
		t.Errorf("a page that was a working row (-want +got):\n%s", d)
	}
}

func TestStableColumnsLeaveOutTimesAndOffsets(t *testing.T) {
	d, err := catalog.Find("captures")
	if err != nil {
		t.Fatal(err)
	}
	stable := map[string]bool{}
	for _, c := range d.Columns {
		stable[c.Name] = c.Stable
	}
	for column, want := range map[string]bool{"url": true, "content_digest": true, "fetch_time": false, "warc_record_offset": false} {
		if got, ok := stable[column]; !ok || got != want {
			t.Errorf("%s: stable %t, want %t", column, got, want)
		}
	}
	if _, err := catalog.Find("captors"); err == nil || !strings.Contains(err.Error(), "captures") {
		t.Errorf("Find of an unknown dataset: %v", err)
	}
}

// sealedRound returns a seal that lists one part of every dataset and one working file.
func sealedRound(crawl string, round int) *manifest.Sealed {
	s := &manifest.Sealed{Crawl: crawl, Round: round}
	for _, d := range catalog.Datasets() {
		key := layout.Table(d.Name, crawl, round, 0)
		if d.Name == "captures" {
			key = layout.Captures(crawl, "warc", round, 0)
		}
		s.Files = append(s.Files, manifest.File{Dataset: d.Name, Key: key})
	}
	s.Files = append(s.Files, manifest.File{Dataset: "pages", Key: layout.Working(crawl, round, "merge", "pages", 0)})
	return s
}

func script(t *testing.T, write func(*bytes.Buffer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestViewsReadThePartsOfSealedRoundsAndNothingElse(t *testing.T) {
	sql := script(t, func(b *bytes.Buffer) error {
		return catalog.DuckDB(b, "./crawl-data", catalog.S3{}, "", []*manifest.Sealed{sealedRound("2026-11", 0)})
	})
	for _, want := range []string{
		"'./crawl-data/tables/captures/crawl=2026-11/subset=warc/round=0/part-00000.parquet'",
		"'./crawl-data/tables/pages/crawl=2026-11/round=0/part-00000.parquet'",
		"VIEW urls_history", "VIEW urls ", "rounds 2026-11.0",
	} {
		if !strings.Contains(sql, want) {
			t.Errorf("no %q in the script", want)
		}
	}
	sql = strings.NewReplacer("SELECT * FROM", "", "SELECT *,", "", "count(*)", "").Replace(sql)
	for _, not := range []string{"round=1", "rank/work", "*", "SECRET"} {
		if strings.Contains(sql, not) {
			t.Errorf("%q in the script", not)
		}
	}
}

func TestViewsOfAnS3StoreNameItsEndpointAndNoSecret(t *testing.T) {
	sql := script(t, func(b *bytes.Buffer) error {
		return catalog.DuckDB(b, "s3://bucket/it's", catalog.S3{Endpoint: "http://127.0.0.1:7070", Region: "eu-west-1"}, "", nil)
	})
	for _, want := range []string{"PROVIDER credential_chain", "SCOPE 's3://bucket/it''s'", "ENDPOINT '127.0.0.1:7070'",
		"URL_STYLE 'path'", "USE_SSL false", "REGION 'eu-west-1'", "no round is sealed yet"} {
		if !strings.Contains(sql, want) {
			t.Errorf("no %q in the script", want)
		}
	}
	var b bytes.Buffer
	if err := catalog.DuckDB(&b, "s3://b", catalog.S3{Endpoint: "http://key:secret@host"}, "", nil); err == nil {
		t.Error("an endpoint with credentials was accepted")
	}
}

// A reparse parses the responses of an earlier crawl a second time, so the newest state of a URL is
// in the crawl, not in the reparse. The views domains_all and page_changes must not count these responses twice.
func TestTheNewestStateOfAURLIsNeverThatOfAReparseBesideCrawls(t *testing.T) {
	const condition = "crawl NOT LIKE '%r%'"
	for name, tc := range map[string]struct {
		sealed []*manifest.Sealed
		want   int
	}{
		"a month":                  {[]*manifest.Sealed{sealedRound("2026-11", 0)}, 3},
		"a month and its reparse":  {[]*manifest.Sealed{sealedRound("2026-11", 0), sealedRound("2026-11r1", 0)}, 3},
		"a reparse":                {[]*manifest.Sealed{sealedRound("2026-11r1", 0)}, 0},
		"a reparse of each of two": {[]*manifest.Sealed{sealedRound("2026-10r1", 0), sealedRound("2026-11r1", 0)}, 0},
	} {
		for dialect, sql := range everyDialect(t, tc.sealed) {
			if got := strings.Count(sql, condition); got != tc.want {
				t.Errorf("%s, %s: the condition occurs %d times, want %d", name, dialect, got, tc.want)
			}
		}
	}
}

func TestMarkdownDocumentsEveryColumn(t *testing.T) {
	page := script(t, func(b *bytes.Buffer) error { return catalog.Markdown(b) })
	for _, d := range catalog.Datasets() {
		_, section, ok := strings.Cut(page, "\n## "+d.Name+"\n")
		if !ok {
			t.Fatalf("no section %s", d.Name)
		}
		section, _, _ = strings.Cut(section, "\n## ")
		for _, c := range d.Columns {
			if !strings.Contains(section, "\n| `"+c.Name+"` | "+c.Type.String()+" |") {
				t.Errorf("%s: no row for %s", d.Name, c.Name)
			}
		}
	}
}

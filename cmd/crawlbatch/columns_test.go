package main

import (
	"encoding/json"
	"testing"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/cmd/demo"
	"crawlbatch.io/crawlbatch/formats/catalog"
	"crawlbatch.io/crawlbatch/formats/store"
)

// nullInTheDemo lists the columns that are null in every row of the demo, with the reason.
var nullInTheDemo = map[string]string{
	"captures.url_host_4th_last_part":     "host names of the synthetic web have three labels at most",
	"captures.url_host_5th_last_part":     "the same",
	"captures.url_port":                   "its hosts are all at port 80",
	"captures.revisit":                    "its pages differ in their heads, and the demo has no month before",
	"captures.payload_warc_filename":      "the same",
	"captures.payload_warc_record_offset": "the same",
	"captures.payload_warc_record_length": "the same",
	"fetches.revisit":                     "the same",
	"fetches.planned_for":                 "the same",
	"urls.change_weight":                  "the same",
	"urls.changed_ms":                     "the same",
	"urls.unchanged_ms":                   "the same",
	"urls.same_ms":                        "the same",
	"pages.change_distance":               "the same",
	"pages.title_changed":                 "the same",
	"pages.links_added":                   "the same",
	"pages.links_removed":                 "the same",
	"urls.links_added":                    "the same",
	"urls.links_removed":                  "the same",
	"urls.change_distance":                "the same",
	"urls.title_changed":                  "the same",
	"urls.capture_digest":                 "the same",
	"fetches.retry_after_ms":              "the demo's web has no faults that wait",
	"requests.dns_ms":                     "connect_to names an address: nothing is looked up",
	"requests.dns_us":                     "the same",
	"requests.certificate":                "it speaks http only",
	"pages.certificate":                   "the same",
	"fetches.blocked_by":                  "no service refuses its requests",
	"fetches.price":                       "nobody wants to be paid",
	"requests.tls_ms":                     "it speaks http only",
	"requests.tls_us":                     "the same",
	"pages.url_host_4th_last_part":        "host names of the synthetic web have three labels at most",
	"pages.url_host_5th_last_part":        "the same",
	"pages.url_port":                      "its hosts are all at port 80",
	"pages.fetch_redirect":                "pages are documents: only captures have redirects",
	"pages.focus":                         "the demo has no frontier.focus",
	"pages.changed":                       "nothing is fetched twice in one month",
	"fetches.redirect_sent":               "its redirects lead to canonical URLs",
	"urls.false_alarms":                   "nothing is fetched twice in one month",
	"stages.error_class":                  "no attempt of the demo fails",
	"stages.error":                        "the same",
	"skips.line":                          "skips are what pages named; lines of sources that were refused are the plan's refused.parquet",
}

// columnsHaveValues checks that the demo has a value in each column of each dataset.
func columnsHaveValues(t *testing.T, b store.Bucket) {
	sealed, err := crawltest.SealedFiles(t.Context(), b, demo.Crawl)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range catalog.Datasets() {
		filled := map[string]bool{}
		for _, row := range crawltest.ReadRows[d.Name](t, b, sealed, d.Name) {
			text, err := catalog.AppendJSON(nil, row)
			if err != nil {
				t.Fatal(err)
			}
			var columns map[string]any
			if err := json.Unmarshal(text, &columns); err != nil {
				t.Fatal(err)
			}
			for name, value := range columns {
				filled[name] = filled[name] || value != nil
			}
		}
		for _, c := range d.Columns {
			reason := nullInTheDemo[d.Name+"."+c.Name]
			switch {
			case !filled[c.Name] && reason == "":
				t.Errorf("%s.%s is null in every row", d.Name, c.Name)
			case filled[c.Name] && reason != "":
				t.Errorf("%s.%s has values: remove it from nullInTheDemo (%s)", d.Name, c.Name, reason)
			}
		}
	}
}

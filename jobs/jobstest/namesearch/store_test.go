package namesearch_test

import (
	"flag"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/jobs/jobstest/namesearch"
)

var (
	storeFlag  = flag.String("store", "", "directory of a store in which TestAStoreHoldsNoName searches")
	domainFlag = flag.String("domain", "", "domains that TestAStoreHoldsNoName searches for, with commas between them")
	urlFlag    = flag.String("url", "", "canonical URL that TestAStoreHoldsNoName searches for")
)

// TestAStoreHoldsNoName searches the store of somebody who wants to know: go test
// ./jobs/jobstest/namesearch -run AStore -store crawl-data -domain d.example.
func TestAStoreHoldsNoName(t *testing.T) {
	if *storeFlag == "" {
		t.Skip("-store names no store: this test searches a store by hand")
	}
	b, err := dirstore.Open(*storeFlag, dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var names namesearch.Names
	if *domainFlag != "" {
		for d := range strings.SplitSeq(*domainFlag, ",") {
			names.Domain(d)
		}
	}
	if *urlFlag != "" {
		if err := names.URL(*urlFlag); err != nil {
			t.Fatal(err)
		}
	}
	hits, objects, err := namesearch.Search(t.Context(), b, &names)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hits {
		t.Error(h)
	}
	t.Logf("%d objects searched", objects)
}

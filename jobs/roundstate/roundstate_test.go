package roundstate

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/stages"
)

func emptyStore(t *testing.T) store.Bucket {
	t.Helper()
	b, err := dirstore.Open(filepath.Join(t.TempDir(), "store"), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func create(t *testing.T, b store.Bucket, key string, d manifest.Document) {
	t.Helper()
	if _, err := manifest.Create(t.Context(), b, key, d); err != nil {
		t.Fatal(err)
	}
}

// reads says which results of a stage a task reads, by the numbers of their tasks.
type reads struct {
	stage stages.Stage
	task  int
	from  stages.Stage
	want  []bool
}

func TestTasksOfManyBucketsGetTheResultsTheyRead(t *testing.T) {
	testReads(t, []reads{
		{stages.Merge, 1, stages.Fetch, []bool{false, true, false}},
		{stages.Digest, 1, stages.Merge, []bool{true, true, true}}, // equal texts may be in any partition
		{stages.Similar, 1, stages.Digest, []bool{true, true}},
		{stages.Cluster, 0, stages.Merge, []bool{true, true, true}},
		{stages.Cluster, 0, stages.Digest, []bool{true, true}},
		{stages.Cluster, 0, stages.Similar, []bool{true, true}},
		{stages.Dedup, 0, stages.Merge, []bool{true, true, false}},
		{stages.Dedup, 1, stages.Cluster, []bool{true}},
		{stages.Rank, 1, stages.Merge, []bool{true, true, true}},
		{stages.Frontier, 1, stages.Merge, []bool{true, true, true}}, // redirects may lead to any partition
		{stages.Frontier, 1, stages.Rank, []bool{true, true}},        // priorities depend on the hosts of all buckets
		{stages.Publish, 2, stages.Merge, []bool{false, false, true}},
		{stages.Publish, 2, stages.Rank, []bool{true, true}}, // the task of bucket 0 writes the hosts of bucket 1
		{stages.Publish, 2, stages.Dedup, []bool{false, true}},
		{stages.Publish, 2, stages.Frontier, []bool{false, true}}, // how pages have changed
	})
}

// testReads makes a round of two buckets, and checks the results that Gather loads.
func testReads(t *testing.T, all []reads) {
	t.Helper()
	b := emptyStore(t)
	create(t, b, layout.CrawlManifest("2026-11"), &manifest.Crawl{Crawl: "2026-11", CreatedAt: "1970-01-01T00:00:08Z"})
	p := &manifest.Plan{ID: "p", Crawl: "2026-11", Round: 1, Buckets: 2, Partitions: []manifest.PlanPartition{
		{Partition: 0, Bucket: 0}, {Partition: 1, Bucket: 0}, {Partition: 2, Bucket: 1},
	}}
	create(t, b, layout.PlanManifest("2026-11", 1, "p"), p)
	ledgertest.Make(t, b, "2026-11")
	for _, s := range []stages.Stage{stages.Fetch, stages.Merge, stages.Digest, stages.Similar, stages.Cluster, stages.Dedup, stages.Rank, stages.Frontier} {
		for n := range s.Tasks(p) {
			of := stages.Task{Stage: s, Crawl: "2026-11", Round: 1, Partition: n}
			create(t, b, ResultKey(of), &manifest.Result{Task: of.String(), Stage: string(of.Stage), Partition: of.Partition, Plan: "p"})
		}
	}
	for _, c := range all {
		frozen, err := Freeze(t.Context(), b, p, c.stage, ledgertest.Writer())
		if err != nil {
			t.Fatal(err)
		}
		in, err := Gather(t.Context(), b, p, stages.Task{Stage: c.stage, Crawl: "2026-11", Round: 1, Partition: c.task}, frozen)
		if err != nil {
			t.Fatal(err)
		}
		var got []bool
		for _, result := range in.Results[c.from] {
			got = append(got, result != nil)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:%d reads of %s %v, want %v", c.stage, c.task, c.from, got, c.want)
		}
		if knows := in.Created == 9_000_000; knows != (c.stage == stages.Frontier) { // known URLs that are due later wait for budgets
			t.Errorf("%s:%d: the crawl was created at %d", c.stage, c.task, in.Created)
		}
	}
}

func TestCrawlsAreFoundWithoutListingAllKeys(t *testing.T) {
	b := emptyStore(t)
	for _, crawl := range []string{"1999-01", "2026-11", "2026-12", "2030-02"} {
		create(t, b, layout.CrawlManifest(crawl), &manifest.Crawl{Crawl: crawl})
	}
	got, err := Crawls(t.Context(), b)
	if want := "1999-01 2026-11 2026-12 2030-02"; err != nil || strings.Join(got, " ") != want {
		t.Errorf("%v, %v, want %s", got, err, want)
	}
}

func TestTheTextOfAnErrorIsBoundedAtACharacter(t *testing.T) {
	b := emptyStore(t)
	of := stages.Task{Stage: stages.Merge, Crawl: "2026-11"}
	a := manifest.Attempt{Task: of.String(), Class: manifest.ClassFailed, Error: strings.Repeat("ü", maxError)}
	if err := CreateAttempt(t.Context(), b, of, &a); err != nil {
		t.Fatal(err)
	}
	if len(a.Error) > maxError || len(a.Error) < maxError-1 || strings.Trim(a.Error, "ü") != "" {
		t.Errorf("bounded to %d bytes", len(a.Error))
	}
}

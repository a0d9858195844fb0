package main

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/cmd/demo"
	"crawlbatch.io/crawlbatch/formats/store/s3store"
	"crawlbatch.io/crawlbatch/formats/store/storetest/versitygw"
)

// TestTwoCrawlsAgreeOnEveryStableColumn crawls the demo's web twice.
func TestTwoCrawlsAgreeOnEveryStableColumn(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	one, two := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")
	mustRun(t, "demo", "--store", one)
	mustRun(t, "demo", "--store", two)
	crawltest.CompareStable(t, crawltest.OpenDir(t, one), crawltest.OpenDir(t, two), crawltest.WithoutStale)
	t.Run("no column is null in every row", func(t *testing.T) { columnsHaveValues(t, crawltest.OpenDir(t, one)) })
	t.Run("reduces made twice are the same bytes", func(t *testing.T) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		crawltest.ReduceAgain(t, one, func(to string) { mustRun(t, "run", "--month", demo.Crawl, "--rounds", "1", "--store", to) })
	})
}

// TestS3CrawlEqualsADirectorysCrawl crawls the demo's web into a real S3 server.
func TestS3CrawlEqualsADirectorysCrawl(t *testing.T) {
	server := versitygw.Start(t)
	endpoint, bucket := server.Endpoint, server.NewBucket(t)
	for _, pair := range server.Env(endpoint) {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
	address, dir := "s3://"+bucket+"/a/prefix", filepath.Join(t.TempDir(), "store")
	mustRun(t, "demo", "--store", address)
	mustRun(t, "demo", "--store", dir)
	b, err := s3store.Open(t.Context(), address, s3store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	crawltest.CompareStable(t, b, crawltest.OpenDir(t, dir), crawltest.WithoutStale)
}

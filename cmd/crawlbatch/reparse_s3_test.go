package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/s3store"
	"crawlbatch.io/crawlbatch/formats/store/storetest/versitygw"
)

// TestS3WARCFilesOfOthersAreReadWithoutAWrite reparses WARC files from one bucket into a store in
// another bucket. The bucket with the WARC files must stay unchanged.
func TestS3WARCFilesOfOthersAreReadWithoutAWrite(t *testing.T) {
	server := versitygw.Start(t)
	for _, pair := range server.Env(server.Endpoint) {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
	own, others := "s3://"+server.NewBucket(t)+"/crawls", "s3://"+server.NewBucket(t)
	local := filepath.Join(t.TempDir(), "archive")
	paths := asCommonCrawl(t, crawltest.CrawlTwice(t, mustRun), local)
	b, err := s3store.Open(t.Context(), others, s3store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var list bytes.Buffer
	z := gzip.NewWriter(&list)
	for key := range strings.FieldsSeq(paths) {
		body, err := os.ReadFile(filepath.Join(local, key))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.CreateBytes(t.Context(), b, key, body); err != nil {
			t.Fatal(err)
		}
		_, _ = z.Write([]byte(others + "/" + key + "\n"))
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	listed := filepath.Join(t.TempDir(), "warc.paths.gz")
	crawltest.Write(t, listed, list.String())
	mustRun(t, "reparse", "--warc-store", others, "--warc-paths", listed, "--as", "2026-11r1", "--store", own)
	mustRun(t, "verify", "--month", "2026-11r1", "--store", own)
	n := 0
	for o, err := range b.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(paths, o.Key+"\n") {
			t.Errorf("%s was written to the bucket of others", o.Key)
		}
		n++
	}
	if n != strings.Count(paths, "\n") {
		t.Errorf("%d objects are left of %d", n, strings.Count(paths, "\n"))
	}
}

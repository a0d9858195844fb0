package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
)

// BenchmarkMapReparse runs the fetch task of a reparse over the 3,000 pages of BenchmarkMap. The
// task reads and inflates records, compares digests, decodes bodies, parses them and writes
// segments. BenchmarkMapReparse reports the CPU time and the number of range reads and other
// requests to the store.
func BenchmarkMapReparse(b *testing.B) {
	addr := benchProcess(b, benchServer)
	for _, x := range []struct{ name, path string }{{"plain", "p"}, {"gzip", "z"}} {
		b.Run(x.name, func(b *testing.B) {
			dir := b.TempDir()
			store := filepath.Join(dir, "store")
			var urls strings.Builder
			for n := range benchPages {
				fmt.Fprintf(&urls, "http://h%d.d%d.test/%s%d\n", n%benchHosts, n%benchHosts, x.path, n)
			}
			for name, text := range map[string]string{"urls.txt": urls.String(), "c.yaml": "politeness: {delay: 0s}\n"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
					b.Fatal(err)
				}
			}
			run := func(args ...string) {
				b.Helper()
				var out, errs bytes.Buffer
				if code := execute(b.Context(), append(args, "--store", store), nil, &out, &errs); code != 0 {
					b.Fatalf("%v: exit %d: %s", args, code, errs.String())
				}
			}
			run("plan", "--month", "2026-11", "--source", filepath.Join(dir, "urls.txt"), "--config", filepath.Join(dir, "c.yaml"), "--connect-to", "::"+addr)
			run("run", "--month", "2026-11", "--rounds", "1")
			for n := 1; b.Loop(); n++ {
				as := fmt.Sprintf("2026-11r%d", n)
				c := newBenchCommon(store)
				o := reparseOptions{runOptions: runOptions{common: c, month: "2026-11"}, as: as}
				if err := o.createCrawl(b.Context()); err != nil {
					b.Fatal(err)
				}
				began := cpu(b)
				run("task", "fetch", "--month", as)
				took := cpu(b) - began
				b.ReportMetric(float64(took.Microseconds())/benchPages, "µs-cpu/page")
				b.ReportMetric(float64(gets(b, store, as))*1000/benchPages, "GETs/1000-pages")
			}
		})
	}
}

func newBenchCommon(store string) *common {
	c := &common{store: store, logFormat: "text", out: new(bytes.Buffer), err: new(bytes.Buffer)}
	_ = c.setup() // setup fails only for an invalid log format
	return c
}

// gets returns the number of reads from the store by the fetch task of a reparse.
func gets(b *testing.B, store, crawl string) int64 {
	b.Helper()
	d, err := dirstore.Open(store, dirstore.Options{})
	if err != nil {
		b.Fatal(err)
	}
	var a manifest.Attempt
	if _, _, err := manifest.Load(context.Background(), d, layout.Attempt(crawl, 0, "fetch", 0, 1), &a); err != nil {
		b.Fatal(err)
	}
	return a.Usage.Gets
}

package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/source"
)

// web returns URLs of many domains, with about n/i URLs of the i-th domain.
func web(domains, n int) []string {
	var out []string
	for d := 1; d <= domains; d++ {
		for i := range max(1, n/d) {
			out = append(out, fmt.Sprintf("https://h%d.d%d.example/page/%d", i%3, d, i))
		}
	}
	return out
}

// comparePlanned compares rows in the order of a partition file.
func comparePlanned(a, b *schema.PlannedURL) int {
	if c := strings.Compare(a.Host, b.Host); c != 0 {
		return c
	}
	if a.Priority != b.Priority {
		return int(b.Priority - a.Priority)
	}
	return strings.Compare(a.URL, b.URL)
}

func shuffled(in []string) []string {
	out := slices.Clone(in)
	for i := range out { // shuffles the URLs, in the same way each time
		j := int(urlkey.Hash(fmt.Sprint(i)) % uint64(i+1))
		out[i], out[j] = out[j], out[i]
	}
	return out
}

func TestPartitions(t *testing.T) {
	cfg := Default()
	cfg.PartitionURLs, cfg.BucketURLs, cfg.Budget = 400, 1500, 300
	m, parts, _ := commitAndRead(t, bucket(t), plan(t, cfg, lines(web(800, 1000)...)))
	if want := int((m.URLs + 1499) / 1500); m.Buckets != want {
		t.Errorf("%d buckets for %d URLs, want %d", m.Buckets, m.URLs, want)
	}
	partitionOf := map[string]int{}
	total := int64(0)
	for i, rows := range parts {
		part := m.Partitions[i]
		total += part.URLs
		hosts, domains, longest := map[string]int{}, map[string]int{}, 0.0
		for _, r := range rows {
			hosts[r.Host]++
			domains[r.Domain]++
			longest = max(longest, float64(hosts[r.Host])*2)
			if q, ok := partitionOf[r.Domain]; ok && q != i {
				t.Errorf("domain %s is in partitions %d and %d", r.Domain, q, i)
			}
			partitionOf[r.Domain] = i
			if b := urlkey.Bucket(r.Domain, m.Buckets); b != part.Bucket {
				t.Errorf("domain %s of bucket %d is in partition %d of bucket %d", r.Domain, b, i, part.Bucket)
			}
			if k, err := urlkey.KeyOf(r.URL); err != nil || k.SURT != r.SURT || k.Host != r.Host || k.Domain != r.Domain {
				t.Errorf("row %+v, keys %+v, %v", r, k, err)
			}
		}
		if part.Partition != i || part.URLs != int64(len(rows)) || part.Hosts != int64(len(hosts)) || part.Domains != int64(len(domains)) {
			t.Errorf("partition %d: %+v of %d rows, %d hosts, %d domains", i, part, len(rows), len(hosts), len(domains))
		}
		if want := max(longest, float64(len(rows))*1.5/200); part.EstimatedSeconds != want {
			t.Errorf("partition %d: %v s estimated, %v s by its rows", i, part.EstimatedSeconds, want)
		}
		if part.URLs > 400 && part.Domains > 1 {
			t.Errorf("partition %d has %d URLs, at most %d are asked for", i, part.URLs, 400)
		}
		if !slices.IsSortedFunc(rows, func(a, b schema.PlannedURL) int { return comparePlanned(&a, &b) }) {
			t.Errorf("partition %d is not sorted", i)
		}
		if i > 0 && part.Bucket < m.Partitions[i-1].Bucket {
			t.Errorf("partition %d of bucket %d comes after one of bucket %d", i, part.Bucket, m.Partitions[i-1].Bucket)
		}
	}
	if total != m.URLs {
		t.Errorf("%d URLs in partitions, %d in all", total, m.URLs)
	}
}

func BenchmarkPlan(b *testing.B) {
	urls := shuffled(web(5000, 20_000))
	cfg := Default()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Make(context.Background(), cfg, Request{Crawl: "2026-11", Sources: []source.Source{lines(urls...)}, Scratch: b.TempDir()}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(urls)), "ns/URL")
}

func TestTheBucketsOfAStoreOnlyDivide(t *testing.T) {
	cfg := Default()
	r, err := cfg.rules()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		urls, known int64
		before      int
		want        int
	}{
		{1, 0, 0, 1}, {5_000_000, 0, 0, 3}, {10, 4_000_000, 3, 3}, {6_000_001, 0, 3, 6}, {13_000_000, 0, 3, 12},
		{10, 30_000_000, 3, 3}, {10, 31_000_000, 3, 6}, {1_000_000, 10_000_000_000, 1, 1024},
	} {
		if n := r.buckets(tc.urls, Request{Known: tc.known, Buckets: tc.before}); n != tc.want {
			t.Errorf("%d URLs, %d known, after %d buckets: %d buckets, want %d", tc.urls, tc.known, tc.before, n, tc.want)
		}
	}
}

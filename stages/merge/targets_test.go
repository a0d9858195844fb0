package merge

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"crawlbatch.io/crawlbatch/formats/inlinks"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
)

// randomLinks makes pages of 12 domains, and links between the pages. Some hosts of a domain have
// SURT keys that differ only in the path, and one domain has many such hosts. Some URLs state a
// port that the name of the host omits.
func randomLinks(seed uint64) []schema.Link {
	r := rand.New(rand.NewPCG(seed, 1))
	page := func(domains, pages int) string {
		d := r.IntN(domains)
		name := []string{"", "www.", "shop."}[r.IntN(3)]
		if d == 3 {
			name = fmt.Sprintf("www%d.", r.IntN(60))
		}
		port := ""
		if d < 2 {
			port = []string{"", ":443", ":8080"}[r.IntN(3)]
		}
		return fmt.Sprintf("http://%sd%d.test%s/%d", name, d, port, r.IntN(pages))
	}
	var links []schema.Link
	for range 6000 {
		l := schema.Link{Source: page(12, 9), Target: page(14, 12), Kind: schema.KindA, Nofollow: r.IntN(6) == 0, LastMod: schema.Time(r.IntN(3)) * 1000}
		if r.IntN(3) > 0 {
			l.Anchor = fmt.Sprint("text ", r.IntN(700)) // some targets get more than MaxAnchors texts
		}
		if r.IntN(5) == 0 {
			l.Target = "http://d0.test/home"
		}
		if r.IntN(9) == 0 {
			l.Kind = schema.KindImg // not followed
		}
		if r.IntN(9) == 0 { // SURT keys omit www., but a suffix and www. before it are two domains
			l.Target = fmt.Sprintf("http://%s%s/%d", []string{"", "www."}[r.IntN(2)], []string{"github.io", "blogspot.com", "gitlab.io"}[r.IntN(3)], r.IntN(9))
		}
		if r.IntN(4) == 0 {
			l.Sent = l.Target + fmt.Sprint("?s=", r.IntN(8))
		}
		links = append(links, l)
	}
	for i := range links {
		k, _ := urlkey.KeyOf(links[i].Source)
		links[i].SourceSURT = k.SURT
	}
	slices.SortStableFunc(links, func(a, b schema.Link) int { return schema.CompareURLs(a.SourceSURT, a.Source, b.SourceSURT, b.Source) })
	return links
}

// sumOf adds links with the given memory, and returns the targets and the host edges.
func sumOf(t *testing.T, links []schema.Link, memory int64) ([]schema.TargetLinks, []schema.HostEdge) {
	t.Helper()
	bucket, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := &merger{
		env:  &stages.Env{Bucket: bucket, Scratch: t.TempDir(), Log: slog.New(slog.DiscardHandler), Progress: stages.NoProgress{}},
		task: stages.Task{Stage: stages.Merge, Crawl: "2026-11"}, plan: &manifest.Plan{Buckets: 5}, counts: map[string]int64{}, ported: map[string]bool{},
	}
	for _, l := range links {
		m.notePort(&linkSet{SourceSURT: l.SourceSURT, Source: l.Source})
	}
	b, err := newTargets(m)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	b.memory = memory
	for i := range links {
		l := &links[i]
		if i == 0 || l.Source != links[i-1].Source {
			if err := b.begin(l.SourceSURT, l.Source, originOfTest(l.Source)); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.add(l, l.Kind == schema.KindA); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	run := m.files[slices.IndexFunc(m.files, func(f manifest.File) bool { return f.Dataset == stages.FileTargets })]
	return tabletest.ReadRun[schema.TargetLinks](t, bucket, run), tabletest.Read[schema.HostEdge](t, bucket, m.workingKey(stages.FileHostEdges))
}

func originOfTest(source string) origin { return origin{depth: int32(len(source) % 4)} }

func hostOf(url string) string {
	k, _ := urlkey.KeyOf(url)
	return k.Host
}

// naiveSums computes the targets and the host edges of links from sets of all their sources.
func naiveSums(links []schema.Link) ([]schema.TargetLinks, []schema.HostEdge) {
	byTarget := map[string][]schema.Link{}
	pairs := map[[2]string]bool{}
	for _, l := range links {
		byTarget[l.Target] = append(byTarget[l.Target], l)
		if l.Kind == schema.KindA && hostOf(l.Source) != hostOf(l.Target) {
			pairs[[2]string{l.Source, l.Target}] = true
		}
	}
	var sums []schema.TargetLinks
	for url, all := range byTarget {
		k, _ := urlkey.KeyOf(url)
		sum := schema.TargetLinks{Bucket: int32(urlkey.Bucket(k.Domain, 5)), Inlink: schema.Inlink{SURT: k.SURT, URL: url}}
		sources, hosts, anchors := map[string]bool{}, map[string]bool{}, map[string]int32{}
		var forms []schema.Form
		for _, l := range all {
			if l.Kind != schema.KindA {
				continue
			}
			of, _ := urlkey.KeyOf(l.Source)
			forms = append(forms, schema.Linked(l.Sent, of.Domain == k.Domain))
			if l.Source != url {
				sources[l.Source], hosts[hostOf(l.Source)] = true, true
			}
			if l.Anchor != "" {
				anchors[l.Anchor]++
			}
			if hostOf(l.Source) == hostOf(url) {
				sum.LastMod = max(sum.LastMod, l.LastMod)
			}
			depth := originOfTest(l.Source).depth
			rank := func(followed bool, depth int32, source string) string {
				return fmt.Sprint(map[bool]int{true: 0, false: 1}[followed], depth, source)
			}
			if sum.FirstSource == "" || rank(!l.Nofollow, depth, l.Source) < rank(sum.Followed, sum.SourceDepth, sum.FirstSource) {
				sum.Followed, sum.SourceDepth, sum.FirstSource = !l.Nofollow, depth, l.Source
			}
		}
		if len(forms) == 0 {
			continue
		}
		sum.Inlinks, sum.InlinkHosts = int64(len(sources)), int64(len(hosts))
		texts := slices.SortedFunc(maps.Keys(anchors), func(a, b string) int { return cmp.Compare(urlkey.Hash(a), urlkey.Hash(b)) })
		for _, text := range texts[:min(len(texts), inlinks.MaxAnchors)] {
			sum.Anchors, sum.AnchorCounts = append(sum.Anchors, text), append(sum.AnchorCounts, anchors[text])
		}
		sum.Form = slices.MinFunc(forms, func(a, b schema.Form) int { // "domain" comes before "stranger"
			return cmp.Or(cmp.Compare(a.SentFrom, b.SentFrom), cmp.Compare(len(a.Sent), len(b.Sent)), cmp.Compare(a.Sent, b.Sent))
		})
		sums = append(sums, sum)
	}
	slices.SortFunc(sums, tabletest.ByKey(schema.TargetKey))
	links2 := map[schema.HostEdge]int64{}
	for p := range pairs {
		links2[schema.HostEdge{Source: hostOf(p[0]), Target: hostOf(p[1])}]++
	}
	var edges []schema.HostEdge
	for e, n := range links2 {
		e.Links = n
		edges = append(edges, e)
	}
	slices.SortFunc(edges, tabletest.ByKey(hostEdgeKey))
	return sums, edges
}

// TestSumsDoNotDependOnMemoryOrPartitions adds up links with several memory limits, so that sums
// are written to disk at different points, and in several partitions. All results must equal those
// of naiveSums.
func TestSumsDoNotDependOnMemoryOrPartitions(t *testing.T) {
	links := randomLinks(3)
	wantSums, wantEdges := naiveSums(links)
	if len(wantSums) < 300 || !slices.ContainsFunc(wantSums, func(s schema.TargetLinks) bool { return len(s.Anchors) == inlinks.MaxAnchors }) {
		t.Fatalf("%d targets, none of them with %d anchor texts", len(wantSums), inlinks.MaxAnchors)
	}
	for _, memory := range []int64{1, 40_000, 300_000, mostTargetMemory} {
		sums, edges := sumOf(t, links, memory)
		if d := gocmp.Diff(wantSums, sums, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("memory %d: %s", memory, d)
		}
		if d := gocmp.Diff(wantEdges, edges); d != "" {
			t.Errorf("memory %d: %s", memory, d)
		}
	}
	total := map[string]*schema.TargetLinks{}
	for part := range 3 {
		own := slices.DeleteFunc(slices.Clone(links), func(l schema.Link) bool {
			k, _ := urlkey.KeyOf(l.Source)
			return urlkey.Bucket(k.Domain, 3) != part
		})
		sums, _ := sumOf(t, own, mostTargetMemory)
		for i := range sums {
			if sum := total[sums[i].URL]; sum != nil {
				inlinks.Add(sum, &sums[i])
			} else {
				total[sums[i].URL] = &sums[i]
			}
		}
	}
	for _, want := range wantSums {
		if d := gocmp.Diff(&want, total[want.URL], cmpopts.EquateEmpty()); d != "" {
			t.Errorf("three partitions: %s", d)
		}
	}
	if len(total) != len(wantSums) {
		t.Errorf("three partitions: %d targets, want %d", len(total), len(wantSums))
	}
}

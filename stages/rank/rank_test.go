package rank

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/inlinks"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
)

// edge is a link between two pages of a test web. Each page is written as "host/page".
type edge struct {
	from, to string
	depth    int32
	nofollow bool
	anchor   string
	lastmod  schema.Time
	sent     string
}

// world writes edges as merge would, with hosts distributed over partitions. world returns the
// input of a bucket's task.
func world(t *testing.T, b store.Bucket, edges []edge, partitions, buckets, bucket int) (*stages.Env, *stages.Input) {
	t.Helper()
	plan := &manifest.Plan{ID: "p", Crawl: "2026-11", Buckets: buckets, Partitions: make([]manifest.PlanPartition, partitions)}
	links := make([][]mergedLink, partitions)
	hostEdges := make([]map[[2]string]int64, partitions)
	hosts := make([]map[string]bool, partitions)
	for i := range partitions {
		hostEdges[i], hosts[i] = map[[2]string]int64{}, map[string]bool{}
	}
	host := func(page string) string { h, _, _ := strings.Cut(page, "/"); return h + ".test" }
	key := func(page string) urlkey.Key {
		_, path, _ := strings.Cut(page, "/")
		k, err := urlkey.KeyOf("http://" + host(page) + "/" + path)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	part := func(h string) int { return int(h[0]) % partitions }
	for _, e := range edges {
		p := part(host(e.from))
		to := key(e.to)
		links[p] = append(links[p], mergedLink{e, to, int32(urlkey.Bucket(to.Domain, buckets)), key(e.from).URL, host(e.from)})
		hosts[p][host(e.from)] = true
		if host(e.from) != host(e.to) {
			hostEdges[p][[2]string{host(e.from), host(e.to)}]++
		}
	}
	var results []*manifest.Result
	for p := range partitions {
		var he []schema.HostEdge
		for k, n := range hostEdges[p] {
			he = append(he, schema.HostEdge{Source: k[0], Target: k[1], Links: n})
		}
		slices.SortFunc(he, func(a, b schema.HostEdge) int {
			return cmp.Or(strings.Compare(a.Source, b.Source), strings.Compare(a.Target, b.Target))
		})
		var hr []schema.Host
		for h := range hosts[p] {
			hr = append(hr, schema.Host{Host: h, Domain: urlkey.Domain(h), Planned: 1})
		}
		slices.SortFunc(hr, func(a, b schema.Host) int { return strings.Compare(a.Host, b.Host) })
		results = append(results, &manifest.Result{Files: []manifest.File{
			tabletest.WriteRun(t, b, stages.FileTargets, layout.Run("2026-11", 0, "merge", stages.FileTargets, p), sumsOf(links[p]), func(s *schema.TargetLinks) int32 { return s.Bucket }),
			tabletest.WriteRun(t, b, stages.FileTerms, layout.Run("2026-11", 0, "merge", stages.FileTerms, p), nil, func(r *schema.TermPages) int32 { return r.Bucket }),
			put(t, b, stages.FileHostEdges, p, he), put(t, b, stages.FileHosts, p, hr),
		}})
	}
	env := &stages.Env{Bucket: b, Scratch: t.TempDir(), Clock: stages.SystemClock{}, Log: slog.New(slog.DiscardHandler), Progress: stages.NoProgress{}}
	return env, &stages.Input{
		Task: stages.Task{Stage: stages.Rank, Crawl: "2026-11", Partition: bucket}, Plan: plan,
		Results: map[stages.Stage][]*manifest.Result{stages.Merge: results},
	}
}

func put[T any](t *testing.T, b store.Bucket, name string, p int, rows []T) manifest.File {
	t.Helper()
	return tabletest.Write(t, b, name, layout.Working("2026-11", 0, "merge", name, p), rows)
}

// mergedLink is a link of a partition, with the keys of its target.
type mergedLink struct {
	edge
	target             urlkey.Key
	bucket             int32
	source, sourceHost string
}

// sumsOf adds up the links of a partition by target, as merge does.
func sumsOf(links []mergedLink) []schema.TargetLinks {
	slices.SortStableFunc(links, func(a, b mergedLink) int {
		return cmp.Or(cmp.Compare(a.bucket, b.bucket), schema.CompareURLs(a.target.SURT, a.target.URL, b.target.SURT, b.target.URL), strings.Compare(a.source, b.source))
	})
	var sums []schema.TargetLinks
	var anchors []inlinks.Anchors
	sources, hosts := map[[2]string]bool{}, map[[2]string]bool{}
	for _, l := range links {
		if url := l.target.URL; len(sums) == 0 || sums[len(sums)-1].URL != url {
			sums, anchors = append(sums, schema.TargetLinks{Bucket: l.bucket, Inlink: schema.Inlink{SURT: l.target.SURT, URL: url}}), append(anchors, inlinks.Anchors{})
		}
		sum := &sums[len(sums)-1]
		if source, host := [2]string{sum.URL, l.source}, [2]string{sum.URL, l.sourceHost}; l.source != sum.URL && !sources[source] {
			sum.Inlinks++
			if !hosts[host] {
				sum.InlinkHosts++
			}
			sources[source], hosts[host] = true, true
		}
		anchors[len(sums)-1].Add(l.anchor, 1)
		sum.LastMod = max(sum.LastMod, l.lastmod)
		sum.Form.Offer(schema.Linked(l.sent, urlkey.Domain(l.sourceHost) == l.target.Domain))
		inlinks.Source(&sum.Inlink, !l.nofollow, l.depth, l.source)
	}
	for i := range sums {
		sums[i].Anchors, sums[i].AnchorCounts = anchors[i].Kept()
	}
	return sums
}

// run executes the tasks of all buckets and returns the rows of the files inlinks and hosts.
func run(t *testing.T, edges []edge, partitions, buckets int) ([]schema.Inlink, []schema.Host, []*manifest.Result) {
	t.Helper()
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var linked []schema.Inlink
	var hosts []schema.Host
	var results []*manifest.Result
	for bucket := range buckets {
		env, in := world(t, b, edges, partitions, buckets, bucket)
		r, err := Run(t.Context(), env, in)
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		if bucket == 0 {
			want = buckets
		}
		if n := len(r.FilesOf(stages.FileHosts)); n != want {
			t.Errorf("bucket %d lists %d parts of hosts, want %d", bucket, n, want)
		}
		for n, f := range r.FilesOf(stages.FileHosts) {
			rows := tabletest.Read[schema.Host](t, b, f.Key)
			for _, h := range rows {
				if own := urlkey.Bucket(h.Domain, buckets); own != n {
					t.Errorf("%q lists %s of bucket %d", f.Key, h.Host, own)
				}
			}
			hosts = append(hosts, rows...)
		}
		linked, results = append(linked, tabletest.Read[schema.Inlink](t, b, r.FilesOf(stages.FileInlinks)[0].Key)...), append(results, r)
	}
	slices.SortFunc(linked, func(a, b schema.Inlink) int { return strings.Compare(a.URL, b.URL) })
	slices.SortFunc(hosts, func(a, b schema.Host) int { return strings.Compare(a.Host, b.Host) })
	return linked, hosts, results
}

func TestInlinksCountDistinctPagesAndHosts(t *testing.T) {
	inlinks, _, _ := run(t, []edge{
		{from: "a/1", to: "b/x", depth: 2, anchor: "one"},
		{from: "a/1", to: "b/x", depth: 2, anchor: "two"},
		{from: "a/2", to: "b/x", depth: 1, anchor: "two", nofollow: true},
		{from: "c/1", to: "b/x", depth: 3, anchor: "two", lastmod: 7_000},
		{from: "c/2", to: "b/x", depth: 3, anchor: "two", lastmod: 5_000},
		{from: "b/x", to: "b/x", depth: 0},
		{from: "a/1", to: "b/n", depth: 2, nofollow: true},
		{from: "a/2", to: "b/n", depth: 1, nofollow: true},
	}, 2, 1)
	want := []schema.Inlink{
		{URL: "http://b.test/n", SURT: "test,b)/n", Inlinks: 2, InlinkHosts: 1, SourceDepth: 1, FirstSource: "http://a.test/2", Anchors: []string{}, Form: schema.Linked("", false)},
		{URL: "http://b.test/x", SURT: "test,b)/x", LastMod: 7_000, Inlinks: 4, InlinkHosts: 2, Followed: true, SourceDepth: 0, FirstSource: "http://b.test/x", Anchors: []string{"two", "one"}, Form: schema.Linked("", true)},
	}
	empty := gocmp.Transformer("nil", func(s []string) string { return strings.Join(s, "|") })
	if d := gocmp.Diff(want, inlinks, empty); d != "" {
		t.Error(d)
	}
}

// A target has the best of the forms of all partitions: those of its own domain come first.
func TestATargetHasOneForm(t *testing.T) {
	all := []edge{
		{from: "a/1", to: "a/y", sent: "y"}, {from: "b/1", to: "a/y"}, {from: "c/1", to: "a/y", sent: "x"},
		{from: "b/1", to: "a/z", sent: "zz"}, {from: "c/1", to: "a/z", sent: "za"}, {from: "b/2", to: "a/z", sent: "zzz"},
	}
	for n, s := range []string{"cc", "g", "a", "c", "f", "b", "e"} {
		all = append(all, edge{from: fmt.Sprintf("a/%d", n), to: "a/x", sent: s, depth: 1}, edge{from: fmt.Sprintf("a/%d", n), to: "a/w", sent: s}, edge{from: fmt.Sprintf("a/%d", n), to: "a/w"})
	}
	for partitions := range 4 {
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		inlinks, _, _ := run(t, all, partitions+1, 1)
		var got []string
		for _, l := range inlinks {
			got = append(got, fmt.Sprintln(l.URL, l.Sent, l.SentFrom, l.Inlinks))
		}
		want := []string{"http://a.test/w  domain 7\n", "http://a.test/x a domain 7\n", "http://a.test/y y domain 3\n", "http://a.test/z za stranger 3\n"}
		if d := gocmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	}
}

// TestPageRankOfAHandGraph ranks the graph a → b, a → c, b → c, c → a, and d without links. The
// test compares the ranks with the solution of PageRank's linear system.
func TestPageRankOfAHandGraph(t *testing.T) {
	_, hosts, _ := run(t, []edge{{from: "a/1", to: "b/1"}, {from: "a/1", to: "c/1"}, {from: "b/1", to: "c/1"}, {from: "c/1", to: "a/1"}, {from: "c/2", to: "d/1"}}, 1, 1)
	got := map[string]float64{}
	var sum float64
	for _, h := range hosts {
		got[h.Host] = h.Rank
		sum += h.Rank
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Errorf("ranks sum to %v", sum)
	}
	const damping = 0.85
	// In equilibrium, the rank of a host is the teleport's share plus the shares from the hosts
	// that link to it.
	tele := (1-damping)/4 + damping*got["d.test"]/4
	for host, want := range map[string]float64{
		"a.test": tele + damping*got["c.test"]/2,
		"b.test": tele + damping*got["a.test"]/2,
		"c.test": tele + damping*(got["a.test"]/2+got["b.test"]),
		"d.test": tele + damping*got["c.test"]/2,
	} {
		if math.Abs(got[host]-want) > 2e-6 {
			t.Errorf("%s: rank %v, equilibrium %v", host, got[host], want)
		}
	}
}

func randomEdges(seed uint64) []edge {
	r := rand.New(rand.NewPCG(seed, 1))
	var edges []edge
	for range 3000 {
		edges = append(edges, edge{
			from: fmt.Sprintf("%c%d/%d", 'a'+r.IntN(20), r.IntN(5), r.IntN(10)), to: fmt.Sprintf("%c%d/%d", 'a'+r.IntN(26), r.IntN(5), r.IntN(10)),
			depth: int32(r.IntN(4)), nofollow: r.IntN(5) == 0, anchor: fmt.Sprint("t", r.IntN(9)),
		})
	}
	return edges
}

func TestPartitionsAndBucketsDoNotChangeTheRows(t *testing.T) {
	edges := randomEdges(7)
	inlinks, hosts, results := run(t, edges, 1, 1)
	for _, shape := range [][2]int{{4, 1}, {1, 3}, {5, 4}} {
		i, h, r := run(t, edges, shape[0], shape[1])
		if d := gocmp.Diff(results[0].FilesOf(stages.FileWebGraph), r[0].FilesOf(stages.FileWebGraph)); d != "" || len(r[0].FilesOf(stages.FileWebGraph)) != 5 {
			t.Errorf("%v: web graphs: %s", shape, d)
		}
		if d := gocmp.Diff(inlinks, i); d != "" {
			t.Errorf("%v: inlinks: %s", shape, d)
		}
		if d := gocmp.Diff(hosts, h); d != "" {
			t.Errorf("%v: hosts: %s", shape, d)
		}
	}
	if len(inlinks) < 500 || len(hosts) < 100 {
		t.Errorf("only %d inlinks and %d hosts", len(inlinks), len(hosts))
	}
}

func TestTheSameInputsGiveTheSameBytes(t *testing.T) {
	edges := randomEdges(8)
	_, _, first := run(t, edges, 3, 2)
	_, _, second := run(t, edges, 3, 2)
	if d := gocmp.Diff(first, second); d != "" {
		t.Error(d)
	}
}

func TestLinkedHostsHaveAHarmonicCentrality(t *testing.T) {
	_, hosts, _ := run(t, randomEdges(9), 3, 4)
	for _, h := range hosts {
		if h.InlinkHosts > 0 && h.Harmonic < 1 || h.Harmonic > 150 {
			t.Errorf("%s has the harmonic centrality %v", h.Host, h.Harmonic)
		}
	}
}

// TestHostsOfADomainCountUpToALimit counts the links to a target from many hosts of one domain and
// from two hosts of other domains.
func TestHostsOfADomainCountUpToALimit(t *testing.T) {
	var edges []edge
	for n := range sourceHosts + 50 {
		edges = append(edges, edge{from: fmt.Sprintf("h%03d.spam/1", n), to: "target/1"}, edge{from: fmt.Sprintf("h%03d.spam/1", n), to: "hub.spam/1"})
	}
	edges = append(edges, edge{from: "x/1", to: "target/1"}, edge{from: "y/1", to: "target/1"})
	for _, shape := range [][2]int{{1, 1}, {3, 2}} {
		_, hosts, _ := run(t, edges, shape[0], shape[1])
		for _, h := range hosts {
			switch {
			case h.Host == "target.test" && h.InlinkHosts != sourceHosts+2, h.Host == "hub.spam.test" && h.InlinkHosts != sourceHosts+50:
				t.Errorf("%v: %d hosts link to %s", shape, h.InlinkHosts, h.Host)
			case strings.HasPrefix(h.Host, "h") && h.Host != "hub.spam.test" && h.OutlinkHosts != 2:
				t.Errorf("%v: %s links to %d hosts", shape, h.Host, h.OutlinkHosts)
			}
		}
	}
}

// The domain of a host is that of its planned URLs, so both are in one bucket.
func TestDomainsOfHostsWithPorts(t *testing.T) {
	for _, url := range []string{"http://www.a.example:8080/", "http://[2001:db8::1]/", "http://[2001:db8::1]:8080/", "http://10.0.0.1:81/"} {
		k, err := urlkey.KeyOf(url)
		if err != nil {
			t.Fatal(err)
		}
		if got := domainOf(k.Host); got != k.Domain {
			t.Errorf("%s: %q, want %q", url, got, k.Domain)
		}
	}
}

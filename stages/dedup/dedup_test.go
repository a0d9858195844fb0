package dedup

import (
	stdcmp "cmp"
	"crypto/sha1"
	"encoding/base32"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
)

// page describes a page. Zero fields stand for ordinary values.
type page struct {
	url         string
	text        string // text of the page; "" means no text
	fingerprint uint64
	words       int32 // number of words; 0 means 100
	canonical   string
}

func (p page) row(t testing.TB) schema.Page {
	t.Helper()
	key, err := urlkey.KeyOf(p.url)
	if err != nil {
		t.Fatal(err)
	}
	r := schema.Page{PageColumns: schema.PageColumns{CanonicalURL: p.canonical, SimHash: int64(p.fingerprint), WordCount: p.words}}
	r.SURT, r.URL = key.SURT, key.URL
	if p.words == 0 {
		r.WordCount = 100
	}
	if p.text != "" {
		sum := sha1.Sum([]byte(p.text))
		r.TextDigest = base32.StdEncoding.EncodeToString(sum[:])
	}
	return r
}

func bySURT(a, b schema.Page) int {
	if c := strings.Compare(a.SURT, b.SURT); c != 0 {
		return c
	}
	return strings.Compare(a.URL, b.URL)
}

// put writes pages as the stage merge does. If narrow is set, put writes only the columns that
// dedup reads.
func put(t testing.TB, b store.Bucket, name, key string, pages []page, narrow bool) manifest.File {
	t.Helper()
	var rows []schema.Page
	for _, p := range pages {
		rows = append(rows, p.row(t))
	}
	slices.SortFunc(rows, bySURT)
	if !narrow {
		return tabletest.Write(t, b, name, key, rows)
	}
	var few []schema.Representative
	for _, r := range rows {
		few = append(few, representative(r))
	}
	return tabletest.Write(t, b, name, key, few)
}

func representative(r schema.Page) schema.Representative {
	return schema.Representative{SURT: r.SURT, URL: r.URL, CanonicalURL: r.CanonicalURL, WordCount: r.WordCount,
		TextDigest: r.TextDigest, SimHash: r.SimHash}
}

// world is a round and the sealed rounds before it. The bucket of partition i is i modulo the
// number of buckets.
type world struct {
	sealed     [][]page // pages of each sealed round
	partitions [][]page
	buckets    int
	narrow     bool
	// sealedCrawl is the crawl of the sealed rounds; "" stands for the crawl of the round.
	sealedCrawl string
}

// run executes the stage on the world w and returns the rows of each bucket and all
// representatives.
func (w world) run(t testing.TB, cfg Config) ([][]schema.Duplicate, []schema.Representative, *manifest.Result) {
	t.Helper()
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	in := &stages.Input{
		Task:    stages.Task{Stage: stages.Dedup, Crawl: "2026-11", Round: len(w.sealed)},
		Plan:    &manifest.Plan{Buckets: w.buckets},
		Results: map[stages.Stage][]*manifest.Result{},
	}
	for round, pages := range w.sealed {
		half := len(pages) / 2
		in.Earlier = append(in.Earlier, &manifest.Sealed{Crawl: stdcmp.Or(w.sealedCrawl, "2026-11"), Round: round, Files: []manifest.File{
			put(t, b, stages.FileRepresentatives, layout.Working("2026-11", round, "dedup", "representatives", 0), pages[:half], true),
			put(t, b, stages.FileRepresentatives, layout.Working("2026-11", round, "dedup", "representatives", 1), pages[half:], true),
		}})
	}
	for i, pages := range w.partitions {
		in.Plan.Partitions = append(in.Plan.Partitions, manifest.PlanPartition{Partition: i, Bucket: i % w.buckets})
		in.Results[stages.Merge] = append(in.Results[stages.Merge], &manifest.Result{Files: []manifest.File{
			put(t, b, stages.FilePages, layout.Working("2026-11", len(w.sealed), "merge", "pages", i), pages, w.narrow),
		}})
	}
	task := func(stage stages.Stage, n int) *manifest.Result {
		env := &stages.Env{Bucket: b, Scratch: t.TempDir(), Clock: stages.SystemClock{}, Log: slog.New(slog.DiscardHandler), Progress: stages.NoProgress{}}
		in.Task.Stage, in.Task.Partition = stage, n
		r, err := Run(t.Context(), env, in, cfg)
		if err != nil {
			t.Fatal(in.Task, err)
		}
		left, err := os.ReadDir(env.Scratch)
		if err != nil || len(left) > 0 {
			t.Errorf("%s left in scratch space: %v, %v", in.Task, left, err)
		}
		return r
	}
	tasks := 0
	for _, stage := range []stages.Stage{stages.Digest, stages.Similar, stages.Cluster, stages.Dedup} {
		for n := range stage.Tasks(in.Plan) {
			tasks++
			in.Results[stage] = append(in.Results[stage], task(stage, n))
		}
	}
	if want := 3*w.buckets + 1; w.buckets > 1 && tasks != want || w.buckets == 1 && tasks != 1 {
		t.Fatalf("%d tasks, want %d", tasks, want)
	}
	r := &manifest.Result{}
	totals := map[string]int64{}
	for _, of := range in.Results[stages.Dedup] {
		r.Files = append(r.Files, of.Files...)
		for _, c := range of.Counts {
			totals[c.Name] += c.N
		}
	}
	r.Counts = manifest.SortedCounts(totals)
	var rows [][]schema.Duplicate
	for bucket, f := range r.FilesOf(stages.FileDuplicates) {
		if want := layout.Table("duplicates", "2026-11", len(w.sealed), bucket); f.Key != want {
			t.Errorf("part %d is %q, want %q", bucket, f.Key, want)
		}
		rows = append(rows, tabletest.Read[schema.Duplicate](t, b, f.Key))
	}
	if len(rows) != w.buckets {
		t.Fatalf("%d parts for %d buckets", len(rows), w.buckets)
	}
	return rows, tabletest.ReadFiles[schema.Representative](t, b, r.FilesOf(stages.FileRepresentatives)), r
}

var defaults = Config{MaxDistance: 3, MinWords: 50}

func TestClusters(t *testing.T) {
	const f = 0x0123456789abcdef
	rep, exact, near := schema.DupRepresentative, schema.DupExact, schema.DupNear
	tests := []struct {
		name   string
		cfg    Config
		sealed [][]page
		pages  []page
		want   []schema.Duplicate // rows without SURT; RepresentativeRound is relative to this round (-1 is the round before)
	}{
		{name: "nothing"},
		{name: "pages that are not alike", pages: []page{{url: "http://a.test/1", text: "x", fingerprint: f}, {url: "http://a.test/2", text: "y", fingerprint: f ^ 0xf}}},
		{
			name:  "a copy: the shorter URL stands",
			pages: []page{{url: "http://a.test/long", text: "x", fingerprint: f}, {url: "http://b.test/s", text: "x", fingerprint: f}},
			want: []schema.Duplicate{
				{URL: "http://a.test/long", Representative: "http://b.test/s", Kind: exact, Via: "http://b.test/s", ClusterSize: 2},
				{URL: "http://b.test/s", Representative: "http://b.test/s", Kind: rep, ClusterSize: 2},
			},
		},
		{
			name:  "a near copy: among URLs of a length the least stands",
			pages: []page{{url: "http://b.test/1", text: "x", fingerprint: f}, {url: "http://a.test/2", text: "y", fingerprint: f ^ 7}},
			want: []schema.Duplicate{
				{URL: "http://a.test/2", Representative: "http://a.test/2", Kind: rep, ClusterSize: 2},
				{URL: "http://b.test/1", Representative: "http://a.test/2", Kind: near, Distance: 3, Via: "http://a.test/2", ClusterSize: 2},
			},
		},
		{
			name: "one that names another as canonical does not stand",
			pages: []page{
				{url: "http://a.test/1", text: "x", fingerprint: f, canonical: "http://a.test/1.html"},
				{url: "http://a.test/1.html", text: "x", fingerprint: f, canonical: "http://a.test/1.html"},
			},
			want: []schema.Duplicate{
				{URL: "http://a.test/1", Representative: "http://a.test/1.html", Kind: exact, Via: "http://a.test/1.html", ClusterSize: 2},
				{URL: "http://a.test/1.html", Representative: "http://a.test/1.html", Kind: rep, ClusterSize: 2},
			},
		},
		{
			name: "a chain: the distance exceeds the limit, the way leads back",
			pages: []page{
				{url: "http://a.test/1", text: "1", fingerprint: f}, {url: "http://a.test/22", text: "2", fingerprint: f ^ 7},
				{url: "http://a.test/333", text: "3", fingerprint: f ^ 0o77}, {url: "http://a.test/333-copy", text: "3", fingerprint: f ^ 0o77},
			},
			want: []schema.Duplicate{
				{URL: "http://a.test/1", Representative: "http://a.test/1", Kind: rep, ClusterSize: 4},
				{URL: "http://a.test/22", Representative: "http://a.test/1", Kind: near, Distance: 3, Via: "http://a.test/1", ClusterSize: 4},
				{URL: "http://a.test/333", Representative: "http://a.test/1", Kind: near, Distance: 6, Via: "http://a.test/22", ClusterSize: 4},
				{URL: "http://a.test/333-copy", Representative: "http://a.test/1", Kind: near, Distance: 6, Via: "http://a.test/22", ClusterSize: 4},
			},
		},
		{
			name: "short texts are compared whole only",
			pages: []page{
				{url: "http://a.test/1", text: "x", fingerprint: f, words: 49}, {url: "http://a.test/2", text: "y", fingerprint: f, words: 49},
				{url: "http://a.test/3", text: "y", fingerprint: f, words: 49}, {url: "http://a.test/4", text: "z", fingerprint: f},
			},
			want: []schema.Duplicate{
				{URL: "http://a.test/2", Representative: "http://a.test/2", Kind: rep, ClusterSize: 2},
				{URL: "http://a.test/3", Representative: "http://a.test/2", Kind: exact, Via: "http://a.test/2", ClusterSize: 2},
			},
		},
		{
			name: "no text is like no other",
			cfg:  Config{MaxDistance: 3},
			pages: []page{
				{url: "http://a.test/1"}, {url: "http://a.test/2"}, {url: "http://a.test/3", text: "x"}, {url: "http://a.test/4", text: "x"},
			},
			want: []schema.Duplicate{
				{URL: "http://a.test/3", Representative: "http://a.test/3", Kind: rep, ClusterSize: 2},
				{URL: "http://a.test/4", Representative: "http://a.test/3", Kind: exact, Via: "http://a.test/3", ClusterSize: 2},
			},
		},
		{
			name: "distance 0: equal fingerprints are near",
			cfg:  Config{MaxDistance: 0, MinWords: 50},
			pages: []page{
				{url: "http://a.test/1", text: "x", fingerprint: f}, {url: "http://a.test/2", text: "y", fingerprint: f}, {url: "http://a.test/3", text: "z", fingerprint: f ^ 1},
			},
			want: []schema.Duplicate{
				{URL: "http://a.test/1", Representative: "http://a.test/1", Kind: rep, ClusterSize: 2},
				{URL: "http://a.test/2", Representative: "http://a.test/1", Kind: near, Via: "http://a.test/1", ClusterSize: 2},
			},
		},
		{
			name:   "a sealed representative stands, whatever its URL",
			sealed: [][]page{{{url: "http://z.test/a-very-long-one", text: "x", fingerprint: f}}},
			pages:  []page{{url: "http://a.test/1", text: "y", fingerprint: f ^ 1}, {url: "http://a.test/2", text: "x", fingerprint: f}},
			want: []schema.Duplicate{
				{URL: "http://a.test/1", Representative: "http://z.test/a-very-long-one", Kind: near, Distance: 1, Via: "http://z.test/a-very-long-one", ClusterSize: 2, RepresentativeRound: -1},
				{URL: "http://a.test/2", Representative: "http://z.test/a-very-long-one", Kind: exact, Via: "http://z.test/a-very-long-one", ClusterSize: 2, RepresentativeRound: -1},
			},
		},
		{
			name: "the oldest of two stands, and what is alike to the other alone belongs too",
			sealed: [][]page{
				{{url: "http://z.test/oldest", text: "x", fingerprint: f}},
				{{url: "http://z.test/new", text: "y", fingerprint: f ^ 0o77}},
			},
			pages: []page{{url: "http://a.test/1", text: "u", fingerprint: f ^ 7}, {url: "http://a.test/2", text: "v", fingerprint: f ^ 0o177}},
			want: []schema.Duplicate{
				{URL: "http://a.test/1", Representative: "http://z.test/oldest", Kind: near, Distance: 3, Via: "http://z.test/oldest", ClusterSize: 2, RepresentativeRound: -2},
				{URL: "http://a.test/2", Representative: "http://z.test/oldest", Kind: near, Distance: 7, Via: "http://z.test/new", ClusterSize: 2, RepresentativeRound: -2},
			},
		},
		{
			name:   "sealed representatives are not compared with one another",
			sealed: [][]page{{{url: "http://z.test/1", text: "x", fingerprint: f}, {url: "http://z.test/2", text: "y", fingerprint: f ^ 1}}},
			pages:  []page{{url: "http://a.test/1", text: "u", fingerprint: f ^ 0xff}},
		},
		{
			name:   "a page fetched again stands for its copies, and alone needs no row",
			sealed: [][]page{{{url: "http://a.test/long", text: "x", fingerprint: f}, {url: "http://b.test/", text: "y", fingerprint: ^uint64(f)}}},
			pages: []page{
				{url: "http://a.test/long", text: "x2", fingerprint: f ^ 1}, {url: "http://a.test/s", text: "x2", fingerprint: f ^ 1},
				{url: "http://b.test/", text: "y", fingerprint: ^uint64(f)},
			},
			want: []schema.Duplicate{
				{URL: "http://a.test/long", Representative: "http://a.test/long", Kind: rep, Distance: 1, ClusterSize: 2, RepresentativeRound: -1},
				{URL: "http://a.test/s", Representative: "http://a.test/long", Kind: near, Distance: 1, Via: "http://a.test/long", ClusterSize: 2, RepresentativeRound: -1},
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := tt.cfg
			if cfg == (Config{}) {
				cfg = defaults
			}
			rows, _, _ := world{sealed: tt.sealed, partitions: [][]page{tt.pages}, buckets: 1}.run(t, cfg)
			for i := range tt.want {
				tt.want[i].SURT = page{url: tt.want[i].URL}.row(t).SURT
				tt.want[i].RepresentativeCrawl = "2026-11"
				tt.want[i].RepresentativeRound += int32(len(tt.sealed)) // the table counts rounds from this round
			}
			if diff := cmp.Diff(tt.want, rows[0]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// randomWorld distributes pages over rounds and partitions. The pages share few texts, and some of
// the texts have similar fingerprints.
func randomWorld(seed uint64, partitions, buckets int) world {
	r := rand.New(rand.NewPCG(seed, 1))
	texts := make([]page, 60)
	for i := range texts {
		texts[i] = page{text: fmt.Sprint("text ", i), fingerprint: uint64(r.IntN(5)) * 0x1111_0000_0000_1111, words: 30 + int32(r.IntN(60))}
		for range r.IntN(12) {
			texts[i].fingerprint ^= 1 << r.IntN(16)
		}
	}
	some := func(n, paths int) []page {
		taken := map[string]bool{}
		var pages []page
		for range n {
			p := texts[r.IntN(len(texts))]
			p.url = fmt.Sprintf("http://%c.test/%d", 'a'+r.IntN(5), r.IntN(paths))
			if taken[p.url] {
				continue
			}
			taken[p.url] = true
			if r.IntN(4) == 0 {
				p.canonical = "http://a.test/0"
			}
			if r.IntN(10) == 0 {
				p.text = ""
			}
			pages = append(pages, p)
		}
		return pages
	}
	w := world{narrow: true, buckets: buckets, partitions: make([][]page, partitions)}
	for range r.IntN(3) {
		w.sealed = append(w.sealed, slices.DeleteFunc(some(10, 1000), func(p page) bool { return p.text == "" }))
	}
	pages := some(1+r.IntN(60), 300)
	for _, p := range pages {
		host := p.url[len("http://")]
		at := int(host-'a') % partitions
		w.partitions[at] = append(w.partitions[at], p)
	}
	return w
}

// byTheBook computes the rows of w by comparing all pairs of pages. The rows have no Via.
func byTheBook(t testing.TB, w world, cfg Config) ([]schema.Duplicate, []schema.Representative) {
	type node struct {
		page
		row   schema.Page
		round int
	}
	var nodes []node
	add := func(round int, pages []page) {
		for _, p := range pages {
			if n := (node{p, p.row(t), round}); p.text != "" {
				nodes = append(nodes, n)
			}
		}
	}
	for round, pages := range w.sealed {
		add(round, pages)
	}
	now := len(w.sealed)
	for _, pages := range w.partitions {
		add(now, pages)
	}
	component := make([]int, len(nodes))
	for i := range component {
		component[i] = i
	}
	for changed := true; changed; {
		changed = false
		for i, a := range nodes {
			for j, b := range nodes {
				long := int(a.row.WordCount) >= cfg.MinWords && int(b.row.WordCount) >= cfg.MinWords
				alike := a.text == b.text || long && distance(a.row, b.row) <= cfg.MaxDistance
				if alike && (a.round == now || b.round == now) && component[i] != component[j] {
					component[i], component[j] = min(component[i], component[j]), min(component[i], component[j])
					changed = true
				}
			}
		}
	}
	better := func(a, b node) bool {
		if a.round != b.round {
			return a.round < b.round
		}
		other := func(n node) bool { return n.canonical != "" && n.canonical != n.url }
		if other(a) != other(b) {
			return other(b)
		}
		if len(a.url) != len(b.url) {
			return len(a.url) < len(b.url)
		}
		return a.url < b.url
	}
	var rows []schema.Duplicate
	var representatives []schema.Representative
	for i, n := range nodes {
		if n.round != now {
			continue
		}
		best, size, total := n, int32(0), 0
		for j, m := range nodes {
			if component[j] != component[i] {
				continue
			}
			total++
			if m.round == now {
				size++
			}
			if better(m, best) {
				best = m
			}
		}
		if best.round == now && best.url == n.url {
			representatives = append(representatives, representative(n.row))
		}
		if total == 1 || size == 1 && best.url == n.url {
			continue
		}
		d := schema.Duplicate{
			SURT: n.row.SURT, URL: n.url, Representative: best.url, Kind: schema.DupNear, Distance: int32(distance(n.row, best.row)),
			RepresentativeCrawl: "2026-11", RepresentativeRound: int32(best.round), ClusterSize: size,
		}
		switch {
		case n.url == best.url:
			d.Kind = schema.DupRepresentative
		case n.text == best.text:
			d.Kind = schema.DupExact
		}
		rows = append(rows, d)
	}
	slices.SortFunc(rows, func(a, b schema.Duplicate) int { return strings.Compare(a.URL, b.URL) })
	slices.SortFunc(representatives, byURL)
	return rows, representatives
}

func byURL(a, b schema.Representative) int { return strings.Compare(a.URL, b.URL) }

// checkVia checks that Via leads from each row's page to its representative. checkVia then clears
// Via, because the rows of byTheBook have no Via.
func checkVia(t testing.TB, w world, cfg Config, rows []schema.Duplicate) {
	t.Helper()
	now := map[string]schema.Page{}
	sealed := map[string][]schema.Page{}
	for _, pages := range w.sealed {
		for _, p := range pages {
			sealed[p.url] = append(sealed[p.url], p.row(t))
		}
	}
	for _, pages := range w.partitions {
		for _, p := range pages {
			now[p.url] = p.row(t)
		}
	}
	for _, d := range rows {
		at := d
		for steps := 0; at.Kind != schema.DupRepresentative; steps++ {
			from := now[at.URL]
			alike := false
			for _, to := range append(slices.Clone(sealed[at.Via]), now[at.Via]) {
				long := int(from.WordCount) >= cfg.MinWords && int(to.WordCount) >= cfg.MinWords
				alike = alike || to.TextDigest != "" && (to.TextDigest == from.TextDigest || long && distance(from, to) <= cfg.MaxDistance)
			}
			if !alike {
				t.Errorf("%s has the via %q, but the two pages are not alike", at.URL, at.Via)
			}
			if at.Via == at.Representative || sealed[at.Via] != nil {
				break
			}
			j := slices.IndexFunc(rows, func(r schema.Duplicate) bool { return r.URL == at.Via })
			if j < 0 || steps > len(rows) {
				t.Fatalf("the column via leads from %s not to %s but to %q", d.URL, d.Representative, at.Via)
			}
			at = rows[j]
		}
	}
	for i := range rows {
		rows[i].Via = ""
	}
}

func distance(a, b schema.Page) int {
	n := 0
	for x := a.SimHash ^ b.SimHash; x != 0; x &= x - 1 {
		n++
	}
	return n
}

func TestClustersAreTheComponentsOfAllPairs(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	kinds := map[schema.DuplicateKind]int{}
	for seed := range uint64(40) {
		cfg := Config{MaxDistance: int(seed % 5), MinWords: 50}
		w := randomWorld(seed, 3, 2)
		parts, representatives, result := w.run(t, cfg)
		rows := slices.Concat(parts...)
		for _, d := range rows {
			kinds[d.Kind]++
		}
		for bucket, part := range parts {
			if !slices.IsSortedFunc(part, func(a, b schema.Duplicate) int { return strings.Compare(a.SURT, b.SURT) }) {
				t.Errorf("seed %d: part %d is not sorted", seed, bucket)
			}
			for _, d := range part {
				if int(d.URL[len("http://")]-'a')%3%2 != bucket {
					t.Errorf("seed %d: %s is in part %d", seed, d.URL, bucket)
				}
			}
		}
		slices.SortFunc(rows, func(a, b schema.Duplicate) int { return strings.Compare(a.URL, b.URL) })
		checkVia(t, w, cfg, rows)
		slices.SortFunc(representatives, byURL)
		wantRows, wantRepresentatives := byTheBook(t, w, cfg)
		if diff := cmp.Diff(wantRows, rows); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
		if diff := cmp.Diff(wantRepresentatives, representatives); diff != "" {
			t.Fatalf("seed %d, representatives (-want +got):\n%s", seed, diff)
		}
		if got := result.Count("exact") + result.Count("near"); got > int64(len(rows)) {
			t.Errorf("seed %d: %d duplicates are counted of %d rows", seed, got, len(rows))
		}
	}
	if len(kinds) != 3 {
		t.Errorf("the random worlds have only these kinds of duplicates: %v", kinds)
	}
}

func TestRowsDoNotDependOnPartitions(t *testing.T) {
	for seed := range uint64(8) {
		one, _, _ := randomWorld(seed, 1, 1).run(t, defaults)
		five, _, _ := randomWorld(seed, 5, 3).run(t, defaults)
		all := slices.Concat(five...)
		slices.SortFunc(all, func(a, b schema.Duplicate) int { return strings.Compare(a.SURT, b.SURT) })
		if diff := cmp.Diff(one[0], all, cmp.Transformer("nil", func(d []schema.Duplicate) []schema.Duplicate { return append([]schema.Duplicate{}, d...) })); diff != "" {
			t.Errorf("seed %d (-1 partition +5):\n%s", seed, diff)
		}
	}
}

func TestTheSameInputsGiveTheSameBytes(t *testing.T) {
	_, _, a := randomWorld(4, 3, 2).run(t, defaults)
	_, _, b := randomWorld(4, 3, 2).run(t, defaults)
	if diff := cmp.Diff(a, b); diff != "" { // the comparison includes the files' digests
		t.Error(diff)
	}
}

func TestOldRoundsAreForgotten(t *testing.T) {
	for _, tt := range []struct {
		months int
		crawl  string // crawl of the sealed round
		found  bool
	}{
		{12, "2025-11", true}, {12, "2025-10", false}, {0, "1999-01", true}, {1, "2026-10r3", true}, {1, "2026-09", false}, {1, "2026-11", true},
	} {
		w := world{sealedCrawl: tt.crawl, sealed: [][]page{{{url: "http://z.test/", text: "x", fingerprint: 1}}}, partitions: [][]page{{{url: "http://a.test/", text: "x", fingerprint: 1}}}, buckets: 1}
		rows, representatives, result := w.run(t, Config{MaxDistance: 3, MinWords: 50, Months: tt.months})
		if found := len(rows[0]) == 1 && len(representatives) == 0 && result.Count("sealed") == 1; found != tt.found {
			t.Errorf("%d months, %s: %d rows, %d representatives, %d sealed ones read", tt.months, tt.crawl, len(rows[0]), len(representatives), result.Count("sealed"))
		}
	}
}

func TestBadInputIsPermanent(t *testing.T) {
	env := &stages.Env{Progress: stages.NoProgress{}}
	if _, err := Run(t.Context(), env, &stages.Input{Plan: &manifest.Plan{}}, Config{MaxDistance: 8}); !errors.Is(err, stages.ErrPermanent) {
		t.Errorf("distance 8: %v", err)
	}
	for _, digest := range []string{"x", strings.Repeat("A", 31), strings.Repeat("A", 40), strings.Repeat("1", 32), strings.Repeat("A", 31) + "="} {
		if _, err := digestOf(digest); !errors.Is(err, stages.ErrPermanent) {
			t.Errorf("digest %q: %v", digest, err)
		}
	}
}

// crowdedWorld returns a world with thousands of pages. If the seed is even, all fingerprints are
// near one point. If it is odd, the fingerprints form chains. Some pages are sealed.
func crowdedWorld(seed uint64) world {
	r := rand.New(rand.NewPCG(seed, 2))
	w := world{narrow: true, buckets: 2, sealed: make([][]page, 2), partitions: make([][]page, 3)}
	f := uint64(0)
	for i := range 6000 {
		switch {
		case i%40 == 0:
			f = r.Uint64()
		case seed%2 == 0: // one ball
			f = 0x0123456789abcdef
			for range r.IntN(6) {
				f ^= 1 << r.IntN(64)
			}
		default: // a chain
			for range r.IntN(4) {
				f ^= 1 << r.IntN(64)
			}
		}
		p := page{url: fmt.Sprintf("http://h%d.test/%d", r.IntN(50), i), text: fmt.Sprint(f, " ", r.IntN(2)), fingerprint: f, words: 45 + int32(f%16)}
		if at := r.IntN(8); at < 2 {
			w.sealed[at] = append(w.sealed[at], p)
		} else {
			w.partitions[at%3] = append(w.partitions[at%3], p)
		}
	}
	return w
}

// TestRowsStay compares all rows and counts with a stored digest. Audits of stored rounds compute the
// rows again with this code, so a change of the rows needs a new schema.FormatVersion.
func TestRowsStay(t *testing.T) {
	defer func(memory int64) { sortMemory = memory }(sortMemory)
	h := fnv.New64a()
	for seed := range uint64(12) {
		w := randomWorld(seed, 3, 2)
		if seed >= 8 {
			w = crowdedWorld(seed)
			sortMemory = 64 << 10 // all sorters spill
		}
		rows, representatives, result := w.run(t, Config{MaxDistance: 1 + int(seed)%4, MinWords: 50})
		fmt.Fprint(h, rows, representatives, result.Counts)
	}
	if got, want := h.Sum64(), uint64(0xb3bf6fb1ad540742); got != want {
		t.Errorf("the rows have the digest %#x, want %#x", got, want)
	}
}

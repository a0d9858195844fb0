package dedup

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages/simweb"
	"crawlbatch.io/crawlbatch/stages/simweb/truth"
)

// TestClustersOfASyntheticWeb clusters the pages of two rounds of the synthetic web and compares
// the result with the clusters that the synthetic web knows.
func TestClustersOfASyntheticWeb(t *testing.T) {
	cfg := simweb.Default()
	cfg.Hosts, cfg.PagesPerHost = 12, 60
	cfg.ExactShare, cfg.NearShare, cfg.ChainShare = 0.1, 0.1, 0.5
	web, err := simweb.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	correct, err := truth.Compute(web, truth.Default())
	if err != nil {
		t.Fatal(err)
	}
	// row holds the columns of duplicates that package truth computes.
	type row struct {
		URL, Representative string
		Kind                schema.DuplicateKind
		Distance, Round     int32
		ClusterSize         int32
	}
	var sealed [][]page
	earlier := 0
	for round, r := range correct.Rounds {
		w := world{sealed: sealed, partitions: make([][]page, 3), buckets: 2, narrow: true}
		known := map[string]page{}
		for _, p := range r.Pages {
			known[p.URL] = page{url: p.URL, text: p.TextDigest, fingerprint: p.SimHash, words: max(p.WordCount, 1), canonical: p.CanonicalURL}
			w.partitions[len(p.URL)%3] = append(w.partitions[len(p.URL)%3], known[p.URL])
		}
		var want []row
		for _, c := range r.Clusters {
			of := int32(round)
			if c.Earlier >= 0 {
				of = int32(c.Earlier)
				earlier++
			}
			for _, m := range c.Members {
				want = append(want, row{m.URL, c.Representative, m.Kind, m.Distance, of, int32(len(c.Members))})
			}
		}
		slices.SortFunc(want, func(a, b row) int { return strings.Compare(a.URL, b.URL) })
		parts, representatives, _ := w.run(t, defaults)
		var got []row
		for _, d := range slices.Concat(parts...) {
			got = append(got, row{d.URL, d.Representative, d.Kind, d.Distance, d.RepresentativeRound, d.ClusterSize})
		}
		slices.SortFunc(got, func(a, b row) int { return strings.Compare(a.URL, b.URL) })
		if len(want) == 0 {
			t.Errorf("round %d: the web has no duplicates", round)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("round %d (-truth +got):\n%s", round, diff)
		}
		var standing []page
		for _, p := range representatives {
			standing = append(standing, known[p.URL])
		}
		sealed = append(sealed, standing)
	}
	if earlier == 0 {
		t.Error("no page of the second round is alike to one of the first")
	}
}

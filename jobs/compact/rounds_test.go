package compact

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// roundsCopied returns in which datasets the copy that the ledger names has parts of each round.
func roundsCopied(t *testing.T, b store.Bucket) (rounds [][]string) {
	t.Helper()
	l, err := ledger.Load(t.Context(), b, crawl)
	if err != nil {
		t.Fatal(err)
	}
	list, err := roundstate.Compaction(t.Context(), b, l)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list.Rounds {
		rounds = append(rounds, r.Datasets)
	}
	return rounds
}

func TestACopyHasTheRowsOfEveryRound(t *testing.T) {
	const rounds = 4
	b := crawled(t, directory(t), rounds)
	published, _ := opened(t, b)
	f, err := Find(t.Context(), request(t, b))
	if err != nil || f.Rounds != rounds || f.Covered != 0 || slices.ContainsFunc(f.Datasets, func(d Dataset) bool { return d.Rounds != rounds }) {
		t.Fatalf("%+v, %v", f, err)
	}
	if f, err = Run(t.Context(), request(t, b)); err != nil || f.Rounds != rounds || f.Covered != rounds {
		t.Fatalf("%+v, %v", f, err)
	}
	if f, err = Find(t.Context(), request(t, b)); err != nil || f.Covered != rounds || f.Current == "" {
		t.Fatalf("%+v, %v", f, err)
	}
	all := []string{stages.FileCaptures, stages.FileFetches, stages.FileRequests, stages.FileHosts}
	if diff := cmp.Diff([][]string{all, all, all, all}, roundsCopied(t, b)); diff != "" {
		t.Errorf("datasets of the rounds (-want +got):\n%s", diff)
	}
	copied, n := opened(t, b)
	if n != rounds {
		t.Errorf("views read a copy of %d rounds, want %d", n, rounds)
	}
	for round := range rounds {
		want, got := rows[schema.Fetch](t, b, published, round, stages.FileFetches, ""), rows[schema.Fetch](t, b, copied, round, stages.FileFetches, "")
		compare := func(a, b schema.Fetch) int { return schema.CompareURLs(a.SURT, a.URL, b.SURT, b.URL) }
		slices.SortFunc(want, compare)
		slices.SortFunc(got, compare)
		if diff := cmp.Diff(want, got); diff != "" || len(got) != 200 {
			t.Errorf("round %d: %d rows (-published +copied):\n%s", round, len(got), diff)
		}
	}
}

// sealAgain replaces the seal of a round, as a takedown does.
func sealAgain(t *testing.T, b store.Bucket, round int) {
	t.Helper()
	var s manifest.Sealed
	version, _, err := manifest.Load(t.Context(), b, layout.Sealed(crawl, round), &s)
	if err != nil {
		t.Fatal(err)
	}
	s.Counts = append(s.Counts, manifest.Count{Name: "again", N: 1})
	body, err := manifest.Encode(&s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.SwapBytes(t.Context(), b, layout.Sealed(crawl, round), body, version); err != nil {
		t.Fatal(err)
	}
	if _, err := ledgertest.Writer().Append(t.Context(), b, crawl, func(l *ledger.Ledger) ([]manifest.Entry, error) {
		e := *l.Newest(manifest.EntrySealed, round)
		e.N, e.At, e.Digest = 0, "", ""
		e.SHA256 = manifest.ContentDigest(body)
		e.Generation++
		return []manifest.Entry{e}, nil
	}); err != nil {
		t.Fatal(err)
	}
}

// Views read no row of a copy once the seal of a round of it was replaced: the copy has rows that the round has no more.
func TestACopyIsNotReadAfterASealWasReplaced(t *testing.T) {
	b := crawled(t, directory(t), 2)
	if _, err := Run(t.Context(), request(t, b)); err != nil {
		t.Fatal(err)
	}
	sealAgain(t, b, 1)
	if _, n := opened(t, b); n != 0 {
		t.Errorf("views read a copy of %d rounds", n)
	}
	f, err := Find(t.Context(), request(t, b))
	if err != nil || f.Covered != 0 || f.Current == "" {
		t.Errorf("%+v, %v", f, err)
	}
	if f, err = Run(t.Context(), request(t, b)); err != nil || f.Covered != 2 {
		t.Errorf("%+v, %v", f, err)
	}
	if _, n := opened(t, b); n != 2 {
		t.Errorf("views read a new copy of %d rounds, want 2", n)
	}
}

// The seal is replaced while a run copies: its copy is not named, and nothing of it is left.
func TestASealThatIsReplacedDuringACopyEndsIt(t *testing.T) {
	b := crawled(t, directory(t), 1)
	r := request(t, b)
	done := new(atomic.Bool)
	r.Tell = func(Dataset) {
		if !done.Swap(true) {
			sealAgain(t, b, 0)
		}
	}
	if _, err := Run(t.Context(), r); !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), "the seal of a round was replaced meanwhile") {
		t.Errorf("the run says %v", err)
	}
	if left := append(keys(t, b, "compacted/"), keys(t, b, layout.CompactionDir(crawl))...); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
	if f, err := Run(t.Context(), request(t, b)); err != nil || f.Covered != 1 {
		t.Errorf("the next run: %+v, %v", f, err)
	}
}

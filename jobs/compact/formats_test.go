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

// A month began with an old crawlbatch, and newer ones continued it. Parts of format 1 stay where they are published.
func TestARoundOfEveryFormatIsCopiedOrReadFromItsParts(t *testing.T) {
	formats := []int{1, 2, 6, 11, schema.FormatVersion}
	b := crawled(t, directory(t), formats...)
	published, _ := opened(t, b)
	f, err := Find(t.Context(), request(t, b))
	if err != nil || f.Rounds != 5 || f.Copies != 4 || f.Covered != 0 || slices.ContainsFunc(f.Datasets, func(d Dataset) bool { return d.Rounds != 4 }) {
		t.Fatalf("%+v, %v", f, err)
	}
	if f, err = Run(t.Context(), request(t, b)); err != nil || f.Rounds != 5 || f.Copies != 4 || f.Covered != 4 {
		t.Fatalf("%+v, %v", f, err)
	}
	if f, err = Find(t.Context(), request(t, b)); err != nil || f.Covered != 4 || f.Current == "" {
		t.Fatalf("%+v, %v", f, err)
	}
	all := []string{stages.FileCaptures, stages.FileFetches, stages.FileRequests, stages.FileHosts}
	if diff := cmp.Diff([][]string{{}, all, all, all, all}, roundsCopied(t, b)); diff != "" {
		t.Errorf("datasets of the rounds of formats %d (-want +got):\n%s", formats, diff)
	}
	copied, n := opened(t, b)
	if n != 4 {
		t.Errorf("views read a copy of %d rounds, want 4", n)
	}
	for round := range formats {
		want, got := rows[schema.Fetch](t, b, published, round, stages.FileFetches, ""), rows[schema.Fetch](t, b, copied, round, stages.FileFetches, "")
		compare := func(a, b schema.Fetch) int { return schema.CompareURLs(a.SURT, a.URL, b.SURT, b.URL) }
		slices.SortFunc(want, compare)
		slices.SortFunc(got, compare)
		if diff := cmp.Diff(want, got); diff != "" || len(got) != 200 {
			t.Errorf("round %d of format %d: %d rows (-published +copied):\n%s", round, formats[round], len(got), diff)
		}
	}
}

// Nothing of a month of format 1 is copied, and no figure says otherwise.
func TestAMonthOfFormat1HasNothingToCopy(t *testing.T) {
	b := crawled(t, directory(t), 1, 1)
	f, err := Run(t.Context(), request(t, b))
	if err != nil || f.Rounds != 2 || f.Copies != 0 || f.Covered != 0 || len(f.Datasets) != 0 {
		t.Errorf("%+v, %v", f, err)
	}
	if _, n := opened(t, b); n != 0 {
		t.Errorf("views read a copy of %d rounds", n)
	}
}

// Before format 14, a copy had parts for each round. Views read the published parts, say so, and a new run replaces
// the copy.
func TestAListOfAnOlderFormatIsNotRead(t *testing.T) {
	for _, format := range []int{12, 13} {
		b := crawled(t, directory(t), 12, schema.FormatVersion)
		if _, err := Run(t.Context(), request(t, b)); err != nil {
			t.Fatal(err)
		}
		l, err := ledger.Load(t.Context(), b, crawl)
		if err != nil {
			t.Fatal(err)
		}
		list, err := roundstate.Compaction(t.Context(), b, l)
		if err != nil {
			t.Fatal(err)
		}
		// The older list names the parts by round.
		for i := range list.Rounds {
			list.Rounds[i].Files = list.Files
		}
		list.Files = nil
		key := layout.Compaction(crawl, strings.Repeat("0", 64))
		digest := putAs(t, b, key, list, format)
		if _, err := ledgertest.Writer().Append(t.Context(), b, crawl, func(*ledger.Ledger) ([]manifest.Entry, error) {
			return []manifest.Entry{{What: manifest.EntryCompacted, Object: key, SHA256: digest, Format: format}}, nil
		}); err != nil {
			t.Fatal(err)
		}
		if _, n := opened(t, b); n != 0 {
			t.Errorf("views read a copy of format %d", format)
		}
		sealed, err := roundstate.Sealed(t.Context(), b, crawl)
		if err != nil {
			t.Fatal(err)
		}
		_, notes, err := roundstate.WithCompacted(t.Context(), b, sealed)
		if err != nil || len(notes) != 1 || !strings.Contains(notes[0], "`crawlbatch compact --month 2026-11`") {
			t.Errorf("format %d: notes %q, %v", format, notes, err)
		}
		if f, err := Find(t.Context(), request(t, b)); err != nil || f.Covered != 0 || f.Copies != 2 {
			t.Errorf("format %d: %+v, %v", format, f, err)
		}
		f, err := Run(t.Context(), request(t, b))
		if err != nil || f.Covered != 2 || f.Deleted == 0 {
			t.Errorf("format %d: %+v, %v", format, f, err)
		}
		for key := range contents(t, b, layout.CompactedDir(crawl)) {
			if layout.RevisionOf(key, crawl) != f.Current {
				t.Errorf("%q is left over", key)
			}
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
	b := crawled(t, directory(t), 12, schema.FormatVersion)
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
	b := crawled(t, directory(t), schema.FormatVersion)
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

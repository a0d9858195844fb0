package crawltest

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/cmd/demo"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages/publish"
)

// ReduceAgain copies the first round's plan and the results of its fetch stage to a new store, lets run
// execute the reduce stages there, and compares every object with the original byte for byte.
func ReduceAgain(t *testing.T, from string, run func(to string)) {
	t.Helper()
	to := filepath.Join(t.TempDir(), "again")
	round := "crawl=" + demo.Crawl + "/round=0/"
	copied := 0
	for _, key := range KeysBelow(t, from) {
		rest, inRound := strings.CutPrefix(key, round)
		if key == "crawl="+demo.Crawl+"/crawl.json" || inRound && (strings.HasPrefix(rest, "plan-") || strings.HasPrefix(rest, "fetch/")) {
			body, err := os.ReadFile(filepath.Join(from, key))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Dir(filepath.Join(to, key)), 0o755); err != nil {
				t.Fatal(err)
			}
			Write(t, filepath.Join(to, key), string(body))
			copied++
		}
	}
	ledgertest.Make(t, OpenDir(t, to), demo.Crawl)
	run(to)
	made := 0
	if diff := cmp.Diff(SealsOf(t, from, demo.Crawl)[:1], SealsOf(t, to, demo.Crawl)); diff != "" {
		t.Errorf("the seal (-first +second time):\n%s", diff)
	}
	for _, key := range KeysBelow(t, to) {
		if HasCosts(key) {
			continue
		}
		want, err := os.ReadFile(filepath.Join(from, key))
		if err != nil {
			t.Errorf("%s was made only the second time", key)
			continue
		}
		got, err := os.ReadFile(filepath.Join(to, key))
		if err != nil {
			t.Fatal(err)
		}
		if string(want) != string(got) {
			t.Errorf("%s: other bytes the second time", key)
		}
		made++
	}
	if made < copied+20 {
		t.Errorf("only %d objects were made again", made-copied)
	}
}

// HasCosts reports whether an object tells what a round took and cost, as no two runs do: a part of
// stages or runs, and the seal with its manifests, which list the digests of these parts.
func HasCosts(key string) bool {
	return slices.ContainsFunc(publish.Accounts, func(dataset string) bool { return strings.HasPrefix(key, "tables/"+dataset+"/") }) ||
		strings.Contains(key, "/manifests/") || strings.HasSuffix(key, "/sealed.json")
}

// SealsOf returns the seals of a crawl as JSON, with all listed files except the parts of stages and runs.
func SealsOf(t *testing.T, dir, crawl string) (seals []string) {
	t.Helper()
	b := OpenDir(t, dir)
	sealed, err := roundstate.Sealed(t.Context(), b, crawl)
	if err == nil {
		sealed, err = roundstate.WithFiles(t.Context(), b, sealed, roundstate.Selection{
			Dataset: func(dataset string) bool { return !slices.Contains(publish.Accounts, dataset) },
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sealed {
		if len(s.Files) < 10 {
			t.Errorf("the seal of round %d lists %d files", s.Round, len(s.Files))
		}
		for i := range s.Manifests {
			s.Manifests[i].File = manifest.File{Key: path.Dir(s.Manifests[i].Key)}
		}
		body, err := json.MarshalIndent(s, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		seals = append(seals, string(body))
	}
	return seals
}

package roundstate

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/stages"
)

// sealable returns a store with a round that can be sealed. The round has one partition and one
// bucket, and all its tasks have results.
func sealable(t *testing.T) (store.Bucket, *manifest.Plan) {
	t.Helper()
	b := emptyStore(t)
	p := makeCrawl(t, b, "2026-11", "")
	begin(t, b, "2026-11")
	for _, stage := range stages.Order {
		if stage != stages.Fetch {
			if _, err := Freeze(t.Context(), b, p, stage, ledgertest.Writer()); err != nil {
				t.Fatal(stage, err)
			}
		}
		r := &manifest.Result{Task: stages.Task{Stage: stage, Crawl: "2026-11"}.String(), Stage: string(stage), Plan: "p"}
		if dataset := map[stages.Stage]string{stages.Merge: stages.FileLinks, stages.Dedup: stages.FileRepresentatives, stages.Frontier: stages.FileURLs, stages.Publish: stages.FilePages}[stage]; dataset != "" {
			r.Files = []manifest.File{{Dataset: dataset, Key: "tables/" + dataset + "/part-00000.parquet", Bytes: 2 << 20, SHA256: "aa", Blocks: "QUJD"}}
		}
		create(t, b, ResultKey(stages.Task{Stage: stage, Crawl: "2026-11"}), r)
	}
	return b, p
}

func rebuildSeal(t *testing.T, b store.Bucket, p *manifest.Plan) ([]string, error) {
	t.Helper()
	l, err := ledger.Load(t.Context(), b, p.Crawl)
	if err != nil {
		t.Fatal(err)
	}
	return RebuildSeal(t.Context(), b, p, l, ledgertest.Writer())
}

// sealObjects returns the seal and the manifests of a round, by key.
func sealObjects(t *testing.T, b store.Bucket) map[string]string {
	t.Helper()
	all := map[string]string{}
	for o, err := range b.List(t.Context(), layout.RoundDir("2026-11", 0)) {
		if err != nil {
			t.Fatal(err)
		}
		if rest := strings.TrimPrefix(o.Key, layout.RoundDir("2026-11", 0)); rest == "sealed.json" || strings.HasPrefix(rest, layout.FileListDir+"/") {
			body, _, err := b.Get(t.Context(), o.Key, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			all[o.Key] = string(body)
		}
	}
	return all
}

// files returns the keys of the selected files of the round.
func files(t *testing.T, b store.Bucket, want Selection) (keys []string) {
	t.Helper()
	sealed, err := Sealed(t.Context(), b, "2026-11")
	if err == nil {
		sealed, err = WithFiles(t.Context(), b, sealed, want)
	}
	if err != nil || len(sealed) != 1 {
		t.Fatalf("%d rounds, %v", len(sealed), err)
	}
	for _, f := range sealed[0].Files {
		if (f.Blocks != "") != stages.ReadLater(f) {
			t.Errorf("%s has blocks %q", f.Key, f.Blocks)
		}
		keys = append(keys, f.Key)
	}
	return keys
}

func TestAReaderGetsTheFilesThatItAsksFor(t *testing.T) {
	b, p := sealable(t)
	if err := Seal(t.Context(), b, p, ledgertest.Writer(), nil); err != nil {
		t.Fatal(err)
	}
	const links, pages, representatives, urls = "tables/links/part-00000.parquet", "tables/pages/part-00000.parquet", "tables/representatives/part-00000.parquet", "tables/urls/part-00000.parquet"
	task := func(s stages.Stage) Selection {
		return earlierFiles(stages.Task{Stage: s, Crawl: "2026-11", Round: 1}, p)
	}
	for name, test := range map[string]struct {
		want Selection
		keys []string
	}{
		"everything":            {Selection{}, []string{links, pages, representatives, urls}},
		"a bucket of many":      {Selection{Bucket: 6, Buckets: 7}, []string{links, pages, representatives, urls}},
		"a bucket beyond":       {Selection{Bucket: 7, Buckets: 7}, nil},
		"a task of dedup":       {task(stages.Dedup), []string{representatives}},
		"a task of frontier":    {task(stages.Frontier), []string{urls}},
		"a task of rank":        {task(stages.Rank), nil},
		"a task of merge":       {task(stages.Merge), []string{links}},
		"a dataset of no round": {Selection{Dataset: func(d string) bool { return d == "none" }}, nil},
	} {
		if got := files(t, b, test.want); !slices.Equal(got, test.keys) {
			t.Errorf("%s: %q, want %q", name, got, test.keys)
		}
	}
	sealed, err := Sealed(t.Context(), b, "2026-11")
	if err != nil {
		t.Fatal(err)
	}
	listed := &manifest.Sealed{Files: []manifest.File{{Key: links, Bytes: 1}, {Key: pages, Bytes: 2}}} // as in formats before 4
	for name, test := range map[string]struct {
		sealed *manifest.Sealed
		keys   []string
		bytes  int64
	}{"manifests": {sealed[0], []string{links, pages, representatives, urls}, 8 << 20}, "a list": {listed, []string{links, pages}, 3}} {
		var keys []string
		var bytes int64
		err := EachFile(t.Context(), b, test.sealed, func(f manifest.File) { keys, bytes = append(keys, f.Key), bytes+f.Bytes })
		if slices.Sort(keys); err != nil || !slices.Equal(keys, test.keys) || bytes != test.bytes {
			t.Errorf("each file of %s: %q of %d bytes, %v", name, keys, bytes, err)
		}
	}
}

// dying is the bucket of a process that dies just before it creates sealed.json.
type dying struct{ store.Bucket }

var errDied = errors.New("killed")

func (d dying) Create(ctx context.Context, key string, body io.ReaderAt, size int64) (store.Version, error) {
	if strings.HasSuffix(key, "sealed.json") {
		return "", errDied
	}
	return d.Bucket.Create(ctx, key, body, size)
}

func TestASealIsFinishedAfterAKillBetweenManifestsAndHead(t *testing.T) {
	b, p := sealable(t)
	if err := Seal(t.Context(), dying{b}, p, ledgertest.Writer(), nil); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	before := sealObjects(t, b)
	if s, err := SealedRound(t.Context(), b, "2026-11", 0); s != nil || err != nil || len(before) != 1 {
		t.Errorf("%d objects are there, the round is sealed: %t, %v", len(before), s != nil, err)
	}
	// If another version of crawlbatch has made a manifest with other contents, this manifest does no
	// harm, because it has another key.
	other := layout.FileList("2026-11", 0, 0, "ffffffffffffffff")
	if _, err := store.CreateBytes(t.Context(), b, other, []byte("of another version")); err != nil {
		t.Fatal(err)
	}
	if err := Seal(t.Context(), b, p, ledgertest.Writer(), nil); err != nil {
		t.Fatal(err)
	}
	after := sealObjects(t, b)
	for key, body := range before {
		if len(after) != 3 || after[key] != body {
			t.Errorf("%d objects are there, %s changed", len(after), key)
		}
	}
	if got := files(t, b, Selection{}); len(got) != 4 {
		t.Errorf("the seal lists %q", got)
	}
}

func TestTheFirstOfTwoSealsCounts(t *testing.T) {
	b, p := sealable(t)
	first := &manifest.Sealed{Crawl: p.Crawl, Plan: p.ID, Buckets: 1} // the seal of a version that lists other files
	create(t, b, layout.Sealed(p.Crawl, 0), first)
	if err := Seal(t.Context(), b, p, ledgertest.Writer(), nil); err != nil {
		t.Fatal(err)
	}
	if got := files(t, b, Selection{}); got != nil {
		t.Errorf("the seal lists %q", got)
	}
}

func TestADamagedManifestThatNoSealNamesIsToldOf(t *testing.T) {
	b, p := sealable(t)
	if err := Seal(t.Context(), dying{b}, p, ledgertest.Writer(), nil); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	for key, body := range sealObjects(t, b) {
		if err := replace(t.Context(), b, key, []byte(body[1:])); err != nil {
			t.Fatal(err)
		}
		if err := Seal(t.Context(), b, p, ledgertest.Writer(), nil); !errors.Is(err, manifest.ErrCorrupt) || !strings.Contains(err.Error(), key) {
			t.Errorf("sealed: %v", err)
		}
	}
}

func TestALostManifestIsToldOfAndRebuilt(t *testing.T) {
	b, p := sealable(t)
	if err := Seal(t.Context(), b, p, ledgertest.Writer(), nil); err != nil {
		t.Fatal(err)
	}
	whole := sealObjects(t, b)
	var m string
	for key := range whole {
		if !strings.HasSuffix(key, ".json") {
			m = key
		}
	}
	head := layout.Sealed("2026-11", 0)
	for name, test := range map[string]struct {
		harm    func() error
		lost    []string // keys of the objects that Ledger.Losses must report
		changed bool
		made    []string
	}{
		"a lost manifest": {func() error { return b.Delete(t.Context(), m) }, []string{m}, false, []string{m}},
		"a manifest cut":  {func() error { return replace(t.Context(), b, m, []byte("x")) }, []string{m}, true, []string{m}},
		"a changed byte": {func() error {
			return replace(t.Context(), b, m, bytes.Replace([]byte(whole[m]), []byte("urls"), []byte("URLs"), 1))
		}, nil, true, []string{m}},
		"a lost seal":        {func() error { return b.Delete(t.Context(), head) }, []string{head}, false, []string{head}},
		"seal and manifest":  {func() error { return errors.Join(b.Delete(t.Context(), head), b.Delete(t.Context(), m)) }, []string{head}, false, []string{m, head}},
		"nothing is damaged": {func() error { return nil }, nil, false, nil},
	} {
		if err := test.harm(); err != nil {
			t.Fatal(err)
		}
		l, err := ledger.Load(t.Context(), b, "2026-11")
		if err != nil {
			t.Fatal(err)
		}
		var lost []string
		for one, err := range l.Losses(t.Context(), b) {
			if err != nil {
				t.Fatal(err)
			}
			lost = append(lost, one.Object)
		}
		if !slices.Equal(lost, test.lost) {
			t.Errorf("%s: lost are %q, want %q", name, lost, test.lost)
		}
		_, err = Gather(t.Context(), b, p, stages.Task{Stage: stages.Frontier, Crawl: "2026-11", Round: 1}, &manifest.Inputs{})
		var told *ledger.Lost
		if len(test.made) == 0 {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		} else if !errors.As(err, &told) || told.Changed != test.changed || !strings.Contains(err.Error(), "--rebuild") {
			t.Errorf("%s: a task says %v", name, err)
		}
		if made, err := rebuildSeal(t, b, p); err != nil || !slices.Equal(made, test.made) {
			t.Errorf("%s: made %q, %v", name, made, err)
		}
		for key, body := range sealObjects(t, b) {
			if whole[key] != body {
				t.Errorf("%s: %s is not what it was", name, key)
			}
		}
	}
}

func TestAManifestIsNotRebuiltFromChangedResults(t *testing.T) {
	b, p := sealable(t)
	if err := Seal(t.Context(), b, p, ledgertest.Writer(), nil); err != nil {
		t.Fatal(err)
	}
	task := stages.Task{Stage: stages.Publish, Crawl: "2026-11"} // no stage has frozen this result
	body, err := manifest.Encode(&manifest.Result{Task: task.String(), Stage: string(task.Stage), Plan: "p"})
	if err == nil {
		err = replace(t.Context(), b, ResultKey(task), body)
	}
	if err != nil {
		t.Fatal(err)
	}
	before := sealObjects(t, b)
	for key := range before {
		if strings.HasSuffix(key, ".json") {
			continue
		}
		if err := b.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	if made, err := rebuildSeal(t, b, p); !errors.Is(err, stages.ErrPermanent) || len(made) > 0 || len(sealObjects(t, b)) != 1 {
		t.Errorf("made %q, %v", made, err)
	}
}

func TestOfSeveralLostManifestsTheFirstIsNamed(t *testing.T) {
	b, _ := sealable(t)
	s := &manifest.Sealed{Crawl: "2026-11", Buckets: 1}
	for n := range 20 {
		s.Manifests = append(s.Manifests, manifest.FileList{File: manifest.File{Key: layout.FileList("2026-11", 0, n, strings.Repeat("0", 64)), Bytes: 1}, Datasets: []string{"urls"}})
	}
	for range 50 {
		_, err := WithFiles(t.Context(), b, []*manifest.Sealed{s}, Selection{})
		if lost, ok := errors.AsType[*ledger.Lost](err); !ok || !strings.Contains(lost.Error(), s.Manifests[0].Key) {
			t.Fatalf("%v", err)
		}
	}
}

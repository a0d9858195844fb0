package planner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/priority"
	"crawlbatch.io/crawlbatch/formats/recrawl"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/planner/planfile"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/planner/spool"
)

// tasks runs the tasks of a plan in this process, each twice, as if an attempt had been killed before it could
// tell its result.
type tasks struct {
	t   *testing.T
	b   store.Bucket
	n   int
	cfg Config
	req func() Request
	ran map[string]int
}

func (e *tasks) Depot(context.Context, *manifest.Plan) (spool.Depot, error) { return depot{e.b}, nil }
func (e *tasks) Most() int                                                  { return e.n }
func (e *tasks) CanRead(name string) bool                                   { return !strings.HasPrefix(name, "own") }

func (e *tasks) Run(ctx context.Context, _ *manifest.Plan, phase string, shares []json.RawMessage) (results []json.RawMessage, err error) {
	if e.ran[phase] += len(shares); len(shares) > max(e.n, 1) {
		e.t.Errorf("phase %s has %d tasks, at most %d", phase, len(shares), e.n)
	}
	for i, s := range shares {
		var result, again json.RawMessage
		for _, out := range []*json.RawMessage{&result, &again} {
			*out, err = RunShare(ctx, e.cfg, e.req(), depot{e.b}, phase, i, s, func(name string) (source.Source, error) { return source.Files(name, nil) })
			if err != nil {
				return nil, err
			}
		}
		if string(result) != string(again) {
			e.t.Errorf("task %d of phase %s has another result when it runs again", i, phase)
		}
		results = append(results, result)
	}
	return results, nil
}

func (e *tasks) Place(ctx context.Context, _ *manifest.Plan, from []manifest.File, to []*manifest.File) error {
	for i := range from {
		if err := planfile.CopyFile(ctx, e.b, &from[i], to[i].Key); err != nil {
			return err
		}
	}
	return nil
}

type depot struct{ b store.Bucket }

func (d depot) Bucket() store.Bucket { return d.b }

func (d depot) Commit(ctx context.Context, l table.Local, name string) (manifest.File, error) {
	return table.Commit(ctx, d.b, l, "work", "work/"+name)
}

// randomFiles writes files of URLs and returns the names of sources.
func randomFiles(t *testing.T, random *rand.Rand) (names []string) {
	dir := t.TempDir()
	put := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	url := func() string {
		if random.IntN(8) == 0 {
			return []string{"no url", "", "  ", "ftp://x.example/", "http://d1.example/a\rb", "http:///", "http://d2.example/%C3%A4 b"}[random.IntN(7)]
		}
		if random.IntN(2) == 0 {
			return knownURL(random.IntN(knownURLs))
		}
		return fmt.Sprintf("%s://%s.d%d.example/%c%d%s", []string{"http", "HTTP", "https"}[random.IntN(3)], []string{"www", "b", "c"}[random.IntN(3)], random.IntN(60), 'o'+rune(random.IntN(3)), random.IntN(80), []string{"", "#x", "?a=1&utm_source=x"}[random.IntN(3)])
	}
	text := func(end string) string {
		var b strings.Builder
		for range random.IntN(150) {
			b.WriteString(url() + end)
		}
		return b.String() + "http://last.example/" + []string{"", end}[random.IntN(2)]
	}
	for i := range 1 + random.IntN(3) {
		names = append(names, put(fmt.Sprintf("list%d.txt", i), text([]string{"\n", "\r\n"}[random.IntN(2)])))
	}
	var records strings.Builder
	records.WriteString("url,weight\n")
	for range random.IntN(40) {
		fmt.Fprintf(&records, "%q,%d\n", strings.Map(func(r rune) rune {
			if r == '"' || r == '\r' {
				return 'x'
			}
			return r
		}, url()), random.IntN(1100))
	}
	names = append(names, put("a.csv", records.String()+"http://last.example/c,7\n")+"#priority=weight")
	if random.IntN(2) == 0 {
		names = append(names, dir) // the same files again, as one source
	}
	return names
}

// Random files, histories and budgets: the plan in tasks has the bytes of the plan in one process.
func TestAPlanInTasksIsTheSame(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	store := bucket(t)
	sealed := sealHistory(t, store, true, nil)
	ran := map[string]int{}
	webs := 24
	if testing.Short() {
		webs = 8
	}
	for n := range webs {
		cfg := randomBudgets(random)
		cfg.Budget *= 10
		if cfg.Limits.Address = 0; random.IntN(3) == 0 {
			cfg.Limits = Default().Limits
		}
		cfg.PartitionURLs, cfg.BucketURLs, cfg.StripParams = 1+random.IntN(100), 1+random.Int64N(500), []string{"utm_*"}
		if random.IntN(3) == 0 {
			cfg.SkipWithin = time.Second
		}
		cfg.CrawlURLs, cfg.RoundURLs = cfg.CrawlURLs*20, cfg.RoundURLs*10
		names := randomFiles(t, random)
		entries, hosts := randomWeb(random)
		mode := random.IntN(3)
		make1 := func(elsewhere Elsewhere) (*Plan, error) {
			req := request(t)
			for _, name := range names {
				s, err := source.Files(name, nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Sources = append(req.Sources, s)
			}
			own := known(entries...)
			own.name = "own"
			req.Sources, req.Hosts, req.Now, req.Elsewhere = append(req.Sources, own), seen(hosts...), time.UnixMilli(2500), elsewhere
			switch mode {
			case 1:
				req.History = []source.Known{source.History(store, sealed, new(source.FilterAnswers))}
			case 2:
				req.History = []source.Known{source.Frontier(store, "2026-11", sealed, time.UnixMilli(20_000), priority.Weights{}, recrawl.Rule{}, t.TempDir())}
			}
			if mode > 0 {
				req.Buckets, req.Known = sealed[len(sealed)-1].Buckets, knownURLs
			}
			if e, ok := elsewhere.(*tasks); ok {
				e.req = func() Request {
					again := req
					again.Sources, again.Hosts, again.Elsewhere, again.Scratch = nil, nil, nil, t.TempDir()
					return again
				}
			}
			return Make(t.Context(), cfg, req)
		}
		want, err := make1(nil)
		if errors.Is(err, ErrNothing) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, parts := range []int{1, 2, 7} {
			e := &tasks{t: t, b: bucket(t), n: parts, cfg: cfg, ran: ran}
			got, err := make1(e)
			if err != nil {
				t.Fatalf("web %d in %d tasks: %v", n, parts, err)
			}
			if d := cmp.Diff(want.Manifest(), got.Manifest()); d != "" {
				t.Fatalf("web %d, mode %d in %d tasks (-want +got):\n%s", n, mode, parts, d)
			}
			if d := cmp.Diff(want.Counts(), got.Counts(), cmp.AllowUnexported(SourceCount{})); d != "" {
				t.Errorf("web %d in %d tasks: counts %s", n, parts, d)
			}
			if !slices.Equal(want.Slowest(), got.Slowest()) || !slices.Equal(want.OverBudget(), got.OverBudget()) {
				t.Errorf("web %d in %d tasks: %v, %v, want %v, %v", n, parts, got.Slowest(), got.OverBudget(), want.Slowest(), want.OverBudget())
			}
			if err := got.Commit(t.Context(), e.b); err != nil {
				t.Fatal(err)
			}
			for _, f := range planfile.Of(got.Manifest()) {
				content, _, err := e.b.Get(t.Context(), f.Key, 1<<30)
				if sum := manifest.NewSum(); err == nil {
					sum.Write(content)
					if s := sum.File(); s.SHA256 != f.SHA256 {
						t.Errorf("%s has other bytes", f.Key)
					}
				}
				if err != nil {
					t.Error(err)
				}
			}
		}
	}
	for _, phase := range []string{phaseRead, phaseJoin, phaseCut, phaseWrite} {
		if ran[phase] == 0 {
			t.Errorf("phase %s has run no task", phase)
		}
	}
}

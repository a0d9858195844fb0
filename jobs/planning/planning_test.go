package planning

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/planner"
	"crawlbatch.io/crawlbatch/planner/budget"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/planner/source/listed"
	"crawlbatch.io/crawlbatch/stages"
)

// frontier is a source of known URLs.
type frontier []source.Entry

func (frontier) Name() string     { return source.FrontierName }
func (frontier) Tell(*listed.Set) {}
func (f frontier) Entries(context.Context) iter.Seq2[source.Entry, error] {
	return func(yield func(source.Entry, error) bool) {
		for _, e := range f {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func newBucket(t *testing.T) store.Bucket {
	t.Helper()
	b, err := dirstore.Open(filepath.Join(t.TempDir(), "store"), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// objects returns the digests of all objects of a store by key.
func objects(t *testing.T, b store.Bucket) map[string]string {
	t.Helper()
	all := map[string]string{}
	for o, err := range b.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		object, err := b.Open(t.Context(), o.Key)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, io.NewSectionReader(object, 0, object.Size())); err != nil {
			t.Fatal(err)
		}
		all[o.Key] = fmt.Sprintf("%d bytes, %x", object.Size(), sum.Sum(nil))
		object.Close() //nolint:errcheck // only read
	}
	return all
}

// web is what a random plan reads.
type web struct {
	files []string
	known frontier
	hosts []source.Host
	cfg   planner.Config
}

func randomURL(random *rand.Rand) string {
	scheme := []string{"http", "https"}[random.IntN(2)]
	return fmt.Sprintf("%s://h%d.d%d.example/%c/%d", scheme, random.IntN(4), random.IntN(25), 'a'+rune(random.IntN(3)), random.IntN(60))
}

func randomWeb(t *testing.T, random *rand.Rand) *web {
	t.Helper()
	w := &web{cfg: planner.Default()}
	dir := t.TempDir()
	write := func(name string, body []byte) {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, body, 0o644); err != nil {
			t.Fatal(err)
		}
		w.files = append(w.files, path)
	}
	var text, csv, json, packed bytes.Buffer
	csv.WriteString("url,weight\n")
	z := gzip.NewWriter(&packed)
	for range 50 + random.IntN(400) {
		fmt.Fprintln(&text, randomURL(random))
		fmt.Fprintf(&csv, "\"%s\",%d\n", randomURL(random), random.IntN(1001))
		fmt.Fprintf(&json, "{\"url\": %q}\n", randomURL(random))
		fmt.Fprintln(z, randomURL(random))
	}
	text.WriteString("no url\nftp://a.example/\n")
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	write("a.txt", text.Bytes())
	write("b.csv", csv.Bytes())
	w.files[1] += "#priority=weight"
	write("c.jsonl", json.Bytes())
	write("d.txt.gz", packed.Bytes())
	path := filepath.Join(dir, "e.parquet")
	if _, err := table.WriteFile(path, func(yield func(struct {
		URL string `parquet:"url"`
	}, error) bool,
	) {
		for range 200 {
			if !yield(struct {
				URL string `parquet:"url"`
			}{randomURL(random)}, nil) {
				return
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	w.files = append(w.files, path)
	for range random.IntN(200) {
		url := randomURL(random)
		e := source.Entry{URL: url, File: source.FrontierName, Due: random.IntN(2) > 0, Spent: random.IntN(5) == 0, Priority: int32(random.IntN(1001)), Depth: 1, Fetches: 1, ETag: "e"}
		if random.IntN(2) == 0 {
			e.Spellings = schema.Spellings{strings.Replace(url, "/a/", "/%61/", 1)}
		}
		if random.IntN(3) == 0 {
			e.Listing = &schema.Listing{ListedFirstSource: "old.txt", ListedFirstAt: "7", ListedFirstRound: "2026-10.0"}
		}
		w.known = append(w.known, e)
	}
	delay := int64(1000)
	for range random.IntN(40) {
		domain := fmt.Sprintf("d%d.example", random.IntN(25))
		w.hosts = append(w.hosts, source.Host{Host: fmt.Sprintf("h%d.%s", random.IntN(4), domain), Domain: domain, Planned: 3, Requests: 4, DelayMS: &delay, Rank: random.Float64(), Address: fmt.Sprintf("192.0.2.%d", random.IntN(5))})
	}
	cfg := &w.cfg
	cfg.PartitionURLs, cfg.BucketURLs, cfg.Memory, cfg.Workers = 1+random.IntN(200), int64(20+random.IntN(500)), 1<<20, 1+random.IntN(3)
	maybe := func(n int64) int64 { return random.Int64N(2) * (1 + random.Int64N(n)) }
	cfg.Budget, cfg.CrawlURLs, cfg.RoundURLs, cfg.BeforeFormat8 = random.IntN(60), maybe(300), maybe(300), random.IntN(4) == 0
	if random.IntN(2) == 0 {
		cfg.Limits = budget.Limits{Host: maybe(20), HostsPerDomain: maybe(3), Address: maybe(50), Ranked: maybe(90), RateLimited: 0.5, Exploration: 0.1}
		cfg.Limits.Patterns = []budget.Pattern{{Match: "/a/", URLs: 5}}
	}
	return w
}

// plan plans the web and commits the plan.
func (w *web) plan(t *testing.T, b store.Bucket, elsewhere planner.Elsewhere) (*planner.Plan, error) {
	t.Helper()
	req := planner.Request{Crawl: "2026-11", Scratch: t.TempDir(), Version: "v", Elsewhere: elsewhere, History: []source.Known{w.known}}
	var err error
	if req.Sources, _, err = source.OpenAll(t.Context(), w.files, source.Options{}); err != nil {
		t.Fatal(err)
	}
	if len(w.hosts) > 0 {
		req.Hosts = func(yield func(source.Host, error) bool) {
			for _, h := range w.hosts {
				if !yield(h, nil) {
					return
				}
			}
		}
	}
	p, err := planner.Make(t.Context(), w.cfg, req)
	if err == nil {
		err = p.Commit(t.Context(), b)
	}
	return p, err
}

// twice runs each task twice, as happens after a pod was lost.
func twice(t *testing.T, b store.Bucket) Execute {
	return func(ctx context.Context, _ *manifest.Plan, tasks []stages.Task, done func(stages.Task, error)) error {
		for _, task := range slices.Concat(tasks, tasks) {
			done(task, RunTask(ctx, b, t.TempDir(), "v", task))
		}
		return nil
	}
}

func TestAPlanInTasksIsThePlanOfOneProcess(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	spellings, parts := 0, 0
	for range 12 {
		w := randomWeb(t, random)
		one := newBucket(t)
		p, err := w.plan(t, one, nil)
		if errors.Is(err, planner.ErrNothing) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range p.Manifest().Partitions {
			if parts++; part.Spellings != nil {
				spellings++
			}
		}
		want := objects(t, one)
		for _, n := range []int{1, 2, 3, 1000} {
			b := newBucket(t)
			tasks := New(b, n, time.Now(), "v", twice(t, b))
			if _, err := w.plan(t, b, tasks); err != nil {
				t.Fatal(err)
			}
			if err := tasks.Remove(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, objects(t, b)); diff != "" {
				t.Errorf("in %d tasks the plan differs (+ in tasks):\n%s", n, diff)
			}
		}
	}
	if parts < 20 || spellings < 5 {
		t.Errorf("the plans have only %d partitions, and spellings of %d", parts, spellings)
	}
}

func TestTasksOfAPlanThatFailLeaveNoPlan(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	w := randomWeb(t, random)
	damage := func(key string, change func([]byte) []byte) func(store.Bucket, stages.Task) {
		return func(b store.Bucket, task stages.Task) {
			key := layout.StageDir(task.Crawl, task.Round, string(task.Stage)) + key
			body, _, err := b.Get(t.Context(), key, 1<<30)
			if err == nil {
				err = b.Delete(t.Context(), key)
			}
			if body = change(body); err == nil && body != nil {
				_, err = store.CreateBytes(t.Context(), b, key, body)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		phase  string
		damage func(store.Bucket, stages.Task)
		ver    string
		says   string
	}{
		"rows are gone":         {phaseWrite, damage("rows/part-00000.s2", func([]byte) []byte { return nil }), "v", "not found"},
		"rows are cut off":      {phaseWrite, damage("rows/part-00000.s2", func(b []byte) []byte { return b[:len(b)/2] }), "v", "partition 0"},
		"rows are damaged":      {phaseWrite, damage("rows/part-00000.s2", func(b []byte) []byte { b[len(b)/2] ^= 1; return b }), "v", "partition 0"},
		"the plan has ended":    {phaseWrite, damage("inputs.json", func([]byte) []byte { return nil }), "v", "run `crawlbatch plan --month 2026-11` again"},
		"another version":       {phaseWrite, func(store.Bucket, stages.Task) {}, "w", "use one version"},
		"the plan ended, later": {phasePlace, damage("inputs.json", func([]byte) []byte { return nil }), "v", "again"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBucket(t)
			execute := func(ctx context.Context, _ *manifest.Plan, tasks []stages.Task, done func(stages.Task, error)) error {
				if strings.HasSuffix(string(tasks[0].Stage), "-"+c.phase) {
					c.damage(b, tasks[0])
				}
				for _, task := range tasks {
					done(task, RunTask(ctx, b, t.TempDir(), c.ver, task))
				}
				return nil
			}
			tasks := New(b, 2, time.Now(), "v", execute)
			_, err := w.plan(t, b, tasks)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error is %v, it should say %q", err, c.says)
			}
			if err := tasks.Remove(t.Context()); err != nil {
				t.Fatal(err)
			}
			for key := range objects(t, b) {
				if strings.HasSuffix(key, "plan.json") || strings.Contains(key, "planning-") {
					t.Errorf("%s is left", key)
				}
			}
		})
	}
}

func TestAPlanInTasksRemovesWhatAKilledOneLeftADayAgo(t *testing.T) {
	b := newBucket(t)
	w := randomWeb(t, rand.New(rand.NewPCG(2, 0)))
	killed := errors.New("killed")
	stop := func(context.Context, *manifest.Plan, []stages.Task, func(stages.Task, error)) error { return killed }
	now := time.Now()
	for _, at := range []time.Time{now.Add(-25 * time.Hour), now.Add(-23 * time.Hour)} {
		if _, err := w.plan(t, b, New(b, 2, at, "v", stop)); !errors.Is(err, killed) {
			t.Fatal(err)
		}
	}
	tasks := New(b, 2, now, "v", twice(t, b))
	if _, err := w.plan(t, b, tasks); err != nil {
		t.Fatal(err)
	}
	if err := tasks.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	for key := range objects(t, b) {
		if folder := strings.Split(key, "/")[2]; strings.HasPrefix(folder, stages.PlanningPrefix) {
			left[folder] = true
		}
	}
	if len(left) != 1 {
		t.Errorf("%d killed plans are left, want 1, of less than a day ago", len(left))
	}
}

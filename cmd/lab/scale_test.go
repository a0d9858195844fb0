//go:build lab

package lab

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/cmd/demo"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// These environment variables configure the scale suite.
const (
	scaleSwitch = "CRAWLBATCH_SCALE"       // directory of the stores and measurements; enables the suite
	scalePages  = "CRAWLBATCH_SCALE_PAGES" // sizes of the webs to crawl, in pages, separated by spaces
	scaleRows   = "CRAWLBATCH_SCALE_ROWS"  // sizes of the plans whose pages are generated, in URLs
)

// pagesPerPartition is the number of URLs in a partition of a crawl. It does not depend on the size
// of the crawl. A larger crawl therefore has more tasks, not larger tasks.
const pagesPerPartition = 10_000

// bucketPartitions is the number of partitions whose URLs fill a bucket, as with the default config. Tasks
// of publish, and fetch tasks of later rounds, read the files of their whole bucket.
const bucketPartitions = 4

// scaleKills is the number of kills of a crawl.
const scaleKills = 10

// scaleConfig paces a crawl so that the machine limits it, not the delay.
const scaleConfig = `
user_agent: "scalebot/1.0 (+https://example.org/bot)"
politeness: {delay: 10ms, slow_factor: 0}
fetch:
  sitemaps: robots
  connect_to: [%q]
  checkpoint: {every: 5s}
  retries: {robots: 0}
  pauses: {rate_limited: 100ms, server_error: 100ms, timeout: 100ms, dns: 100ms, breaker: 200ms}
plan: {partition_urls: %d, bucket_urls: %d}
`

// TestScale crawls large webs, and runs plan and all reduces on large generated segments. Each task
// is a process of its own, as in a pod, and is measured from outside. A later call with the same
// directory continues where the last call ended. At the end, TestScale prints the cost of each
// stage at each size. It also prints how the cost per URL grew from one size to the next.
func TestScale(t *testing.T) {
	state := os.Getenv(scaleSwitch)
	if state == "" {
		t.Skipf("%s is not set: `make scale` runs this", scaleSwitch)
	}
	for _, kind := range []struct {
		name, sizes string
		run         func(*scaled)
	}{
		{"pages", os.Getenv(scalePages), (*scaled).crawlPages},
		{"rows", os.Getenv(scaleRows), (*scaled).reduceRows},
	} {
		for _, size := range strings.Fields(kind.sizes) {
			n, err := strconv.Atoi(size)
			if err != nil || n < 1 {
				t.Fatalf("the size %q: it must be a positive number", size)
			}
			t.Run(kind.name+"-"+size, func(t *testing.T) { kind.run(openScaled(t, state, kind.name, n)) })
		}
		t.Logf("%s\n%s", kind.name, scaleTable(t, state, kind.name))
	}
}

// scaled is a crawl of one size, in its own directory, with its measured costs.
type scaled struct {
	*chaos
	dir    string
	size   int
	config string
	done   []measured
	file   *os.File          // file of the measurements, one JSON object per line
	merged func(n int) error // called after the merge task of a partition; nil in a crawl

	guard   sync.Mutex      // guards done, until, killed, removed and the order of lines in file
	until   time.Duration   // running time of tasks until the next kill
	removed []manifest.File // removed files, which count as part of the store
}

// measured holds the costs of one process, or the size of the store at the end of a stage.
type measured struct {
	Step   string // name of the task, or of the step if it has no task
	Stage  string
	CPU    time.Duration
	Peak   int64 // peak resident memory, bytes
	Killed bool
	// After the step, the store has Objects objects with Bytes bytes. Zero: they were not counted.
	Objects, Bytes int64
	URLs           int64 // number of URLs that the step planned
}

// openScaled opens the directory of one size, and reads the measurements of earlier calls.
func openScaled(t *testing.T, state, kind string, size int) *scaled {
	t.Helper()
	dir := filepath.Join(state, fmt.Sprintf("%s-%d", kind, size))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	seed := uint64(1)
	if text := os.Getenv(chaosSeed); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", chaosSeed, err)
		}
	}
	s := &scaled{dir: dir, size: size, config: filepath.Join(dir, "c.yaml"), done: readMeasured(t, dir),
		chaos: &chaos{t: t, random: rand.New(rand.NewPCG(seed, uint64(size))), store: filepath.Join(dir, "store")}}
	for _, m := range s.done {
		if m.Killed {
			s.nextKill()
			s.killed++
		}
	}
	s.nextKill()
	var err error
	if s.file, err = os.OpenFile(filepath.Join(dir, "measured.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.file.Close() })
	return s
}

func readMeasured(t *testing.T, dir string) (all []measured) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "measured.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var m measured
		if json.Unmarshal(lines.Bytes(), &m) == nil { // a kill of the suite may have cut the last line
			all = append(all, m)
		}
	}
	return all
}

// nextKill draws the running time until the next kill. Its mean is so long that ten kills spread over more
// than half of a crawl.
func (s *scaled) nextKill() {
	s.until = s.randomDuration(0, max(4*time.Second, time.Duration(s.size)*250*time.Microsecond))
}

// crawlPages crawls two rounds of a web with about s.size pages, and verifies the crawl.
func (s *scaled) crawlPages() {
	s.web = webOf(s.t, max(2, s.size/50), 50)
	seeds := filepath.Join(s.dir, "urls.txt")
	if err := s.web.WriteSeeds(s.t.Context(), seeds, true); err != nil {
		s.t.Fatal(err)
	}
	// The port may differ from that of the last call. Tasks therefore get their config as a flag.
	crawltest.Write(s.t, s.config, fmt.Sprintf(scaleConfig, "::"+s.serve("127.0.0.1:0"), pagesPerPartition, bucketPartitions*pagesPerPartition))
	for round := range 2 {
		p := s.plan(round, seeds)
		s.stages(p, stages.Order)
		s.seal(round)
	}
	s.step("verify", "verify", true, "--one-clock")
	s.t.Logf("%d kills", s.killed)
}

// reduceRows plans s.size URLs and generates the rows that their fetch tasks would have recorded.
// It then runs all reduces and plans the next round from the frontier.
func (s *scaled) reduceRows() {
	source := filepath.Join(s.dir, "urls.txt")
	if !s.has("urls") {
		s.writeURLs(source)
		s.note(measured{Step: "urls"})
	}
	crawltest.Write(s.t, s.config, fmt.Sprintf(scaleConfig, "::127.0.0.1:9", 500_000, bucketPartitions*500_000))
	p := s.plan(0, source)
	s.generate(p)
	s.merged = func(n int) error { return s.removeRead(p, n) }
	s.stages(p, stages.Order[1:])
	s.seal(0)
	s.plan(1, "frontier")
}

// has reports whether the given step has ended.
func (s *scaled) has(step string) bool {
	s.guard.Lock()
	defer s.guard.Unlock()
	return slices.ContainsFunc(s.done, func(m measured) bool { return m.Step == step && !m.Killed })
}

// note stores a measurement.
func (s *scaled) note(m measured) {
	line, err := json.Marshal(m)
	s.guard.Lock()
	defer s.guard.Unlock()
	if err == nil {
		_, err = s.file.Write(append(line, '\n'))
	}
	if err != nil {
		s.t.Error(err)
		return
	}
	s.done = append(s.done, m)
}

// plan plans a round and returns the plan.
func (s *scaled) plan(round int, source string) *manifest.Plan {
	name := "plan"
	if round > 0 {
		name, source = "next plan", "frontier"
	}
	s.step(fmt.Sprintf("plan.%d", round), name, false, "--source", source, "--config", s.config)
	p, _, err := roundstate.FindPlan(s.t.Context(), crawltest.OpenDir(s.t, s.store), demo.Crawl, round)
	if err != nil {
		s.t.Fatal(err)
	}
	s.weigh(name, round, p.URLs)
	return p
}

// stages runs all tasks of some stages. Fetch tasks mostly wait for their hosts, so four of them run at a
// time. Tasks of other stages run one at a time in a crawl, so that a kill has one victim, and else one on each core.
func (s *scaled) stages(p *manifest.Plan, order []stages.Stage) {
	for _, stage := range order {
		var tasks errgroup.Group
		tasks.SetLimit(1)
		switch {
		case stage == stages.Fetch:
			tasks.SetLimit(4)
		case s.web == nil:
			tasks.SetLimit(runtime.NumCPU())
		}
		for n := range stage.Tasks(p) {
			t := stages.Task{Stage: stage, Crawl: demo.Crawl, Round: p.Round, Partition: n}
			tasks.Go(func() error {
				err := s.attempt(t.String(), string(stage), true, "--round", strconv.Itoa(p.Round), "--partition", strconv.Itoa(n), "--config", s.config)
				if err == nil && stage == stages.Merge && s.merged != nil {
					err = s.merged(n)
				}
				return err
			})
		}
		if err := tasks.Wait(); err != nil {
			s.t.Fatal(err)
		}
		s.weigh(string(stage), p.Round, 0)
	}
}

// seal seals a round whose tasks all have results.
func (s *scaled) seal(round int) {
	s.step(fmt.Sprintf("seal.%d", round), "seal", false, "--rounds", strconv.Itoa(round+1))
	s.weigh("seal", round, 0)
}

// step runs a command until it succeeds, and fails the test if it fails.
func (s *scaled) step(step, name string, killable bool, args ...string) {
	s.t.Helper()
	if err := s.attempt(step, name, killable, args...); err != nil {
		s.t.Fatal(err)
	}
}

// attempt runs a command until it succeeds. If the command has succeeded in an earlier call, attempt does
// nothing. If killable is true, attempt may kill the command's process and then start it again. Several
// goroutines may call it at the same time.
func (s *scaled) attempt(step, name string, killable bool, args ...string) error {
	command := name
	switch {
	case s.has(step):
		return nil
	case name == "next plan":
		command = "plan"
	case name == "seal":
		command = "run"
	case stages.Stage(name).Valid():
		command, args = "task", append([]string{name}, args...)
	}
	for {
		p := s.start(command, args...)
		m := measured{Step: step, Stage: name}
		for p.outlives(10 * time.Millisecond) {
			m.Peak = max(m.Peak, crawltest.HighWater(p.cmd.Process.Pid))
			s.guard.Lock()
			if s.until -= 10 * time.Millisecond; s.until <= 0 && killable && s.web != nil && s.killed < scaleKills {
				s.kill(p)
				m.Killed = true
				s.nextKill()
			}
			s.guard.Unlock()
		}
		code, out := p.wait()
		if m.Killed = m.Killed && code != 0; code != 0 && !m.Killed {
			return fmt.Errorf("%s: exit %d\n%s", step, code, out)
		}
		m.CPU = p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
		s.note(m)
		if !m.Killed {
			return nil
		}
	}
}

// weigh measures the number and the size of the store's objects after a stage.
func (s *scaled) weigh(stage string, round int, urls int64) {
	m := measured{Step: fmt.Sprintf("store after %s.%d", stage, round), Stage: stage, URLs: urls}
	if s.has(m.Step) {
		return
	}
	for o, err := range crawltest.OpenDir(s.t, s.store).List(s.t.Context(), "") {
		if err != nil {
			s.t.Fatal(err)
		}
		m.Objects, m.Bytes = m.Objects+1, m.Bytes+o.Size
	}
	for _, f := range s.removed {
		m.Objects, m.Bytes = m.Objects+1, m.Bytes+f.Bytes
	}
	s.note(m)
}

// stageCost is the cost of one stage at one size.
type stageCost struct {
	cpu            time.Duration
	peak           int64
	tasks          int
	objects, bytes int64
	reads, writes  int64 // requests to the store: GET, and all others
}

// costs adds up the measurements of one size by stage. urls is the number of URLs that were planned
// from sources and crawled.
func costs(t *testing.T, dir, kind string) (by map[string]stageCost, urls int64) {
	t.Helper()
	by = map[string]stageCost{}
	var objects, bytes int64
	for _, m := range readMeasured(t, dir) {
		c := by[m.Stage]
		c.cpu, c.peak = c.cpu+m.CPU, max(c.peak, m.Peak)
		if m.Peak > 0 && !m.Killed {
			c.tasks++
		}
		if m.Objects > 0 {
			c.objects, c.bytes = c.objects+m.Objects-objects, c.bytes+m.Bytes-bytes
			objects, bytes = m.Objects, m.Bytes
		}
		by[m.Stage] = c
		if m.Stage == "plan" || kind == "pages" { // a crawl of the kind rows plans its second round, but does not run it
			urls += m.URLs
		}
	}
	for stage, u := range requestsOf(t, crawltest.OpenDir(t, filepath.Join(dir, "store"))) {
		c := by[stage]
		c.reads, c.writes = u.Gets, u.Puts+u.Lists+u.Deletes
		by[stage] = c
	}
	return by, urls
}

// requestsOf counts the requests to the store by stage, from the records of attempts. Killed
// attempts leave no record, and plan, seal and verify record none.
func requestsOf(t *testing.T, b store.Bucket) map[string]manifest.Usage {
	t.Helper()
	by := map[string]manifest.Usage{}
	for o, err := range b.List(t.Context(), "crawl="+demo.Crawl+"/") {
		if err != nil {
			t.Fatal(err)
		}
		at := strings.Split(o.Key, "/")
		if len(at) != 5 || at[3] != "attempts" || !strings.Contains(at[4], "-e") {
			continue // also records that an attempt began
		}
		var a manifest.Attempt
		if _, _, err := manifest.Load(t.Context(), b, o.Key, &a); err != nil {
			t.Fatal(err)
		}
		if a.Usage != nil {
			by[at[2]] = by[at[2]].Add(*a.Usage)
		}
	}
	return by
}

// scaleTable renders the costs of all sizes in the directory, the smallest size first.
func scaleTable(t *testing.T, state, kind string) string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(state, kind+"-*"))
	if err != nil {
		t.Fatal(err)
	}
	size := func(dir string) int {
		n, _ := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), kind+"-"))
		return n
	}
	slices.SortFunc(dirs, func(a, b string) int { return cmp.Compare(size(a), size(b)) })
	var out strings.Builder
	var before map[string]stageCost
	var urlsBefore int64
	for _, dir := range dirs {
		by, urls := costs(t, dir, kind)
		fmt.Fprintf(&out, "\n%s, %d URLs; × is the growth a URL (of the peak: at all) since the size above\n", filepath.Base(dir), urls)
		fmt.Fprintf(&out, "%-10s %5s %9s %8s %5s %6s %5s %8s %5s %8s %5s %8s %5s %9s %5s\n",
			"stage", "tasks", "CPU s", "ms/URL", "×", "peak", "×", "objects", "×", "GET", "×", "PUT …", "×", "MiB", "×")
		for _, stage := range []string{"plan", "fetch", "merge", "digest", "similar", "cluster", "dedup", "rank", "frontier", "publish", "seal", "next plan", "verify"} {
			c, ok := by[stage]
			if !ok {
				continue
			}
			o := before[stage]
			per := func(now, old float64) string {
				if old == 0 || now == 0 {
					return ""
				}
				return fmt.Sprintf("%.2f", now/old/float64(urls)*float64(urlsBefore))
			}
			peak := ""
			if o.peak > 0 && c.peak > 0 {
				peak = fmt.Sprintf("%.2f", float64(c.peak)/float64(o.peak))
			}
			fmt.Fprintf(&out, "%-10s %5d %9.1f %8.4f %5s %5dM %5s %8d %5s %8d %5s %8d %5s %9.1f %5s\n", stage, c.tasks,
				c.cpu.Seconds(), c.cpu.Seconds()*1000/float64(urls), per(c.cpu.Seconds(), o.cpu.Seconds()), c.peak>>20, peak,
				c.objects, per(float64(c.objects), float64(o.objects)), c.reads, per(float64(c.reads), float64(o.reads)), c.writes, per(float64(c.writes), float64(o.writes)),
				float64(c.bytes)/(1<<20), per(float64(c.bytes), float64(o.bytes)))
		}
		before, urlsBefore = by, urls
	}
	return out.String()
}

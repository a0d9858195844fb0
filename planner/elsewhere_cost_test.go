package planner

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/planner/source"
)

type apart struct {
	tasks
	dir   string
	total time.Duration
	most  time.Duration
	peak  int64
}

func (e *apart) Run(ctx context.Context, _ *manifest.Plan, phase string, shares []json.RawMessage) (results []json.RawMessage, err error) {
	for i, s := range shares {
		os.WriteFile(e.dir+"/share", s, 0o600)
		cmd := exec.Command(os.Args[0], "-test.run=^TestCostInTasks$")
		cmd.Env = append(os.Environ(), "CRAWLBATCH_COST_PHASE="+phase, "CRAWLBATCH_COST_I="+strconv.Itoa(i), "CRAWLBATCH_COST_DIR="+e.dir, "GOMEMLIMIT=450MiB")
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w: %s", err, out)
		}
		cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		rss := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss >> 10
		e.t.Logf("%s-%d: %.2f s, %d MiB", phase, i, cpu.Seconds(), rss)
		e.total, e.most, e.peak = e.total+cpu, max(e.most, cpu), max(e.peak, rss)
		r, err := os.ReadFile(e.dir + "/result")
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}

// TestCostInTasks prints the CPU time and memory of a plan of the file CRAWLBATCH_COST_FILE, and of each of its tasks
// in a process of its own, at most CRAWLBATCH_COST_N at a phase.
func TestCostInTasks(t *testing.T) {
	file := os.Getenv("CRAWLBATCH_COST_FILE")
	if file == "" {
		t.Skip("CRAWLBATCH_COST_FILE is not set")
	}
	if dir := os.Getenv("CRAWLBATCH_COST_DIR"); dir != "" {
		b, err := dirstore.Open(dir+"/store", dirstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		share, _ := os.ReadFile(dir + "/share")
		i, _ := strconv.Atoi(os.Getenv("CRAWLBATCH_COST_I"))
		r, err := RunShare(t.Context(), Default(), Request{Crawl: "2026-11", Scratch: t.TempDir(), Version: "test"}, depot{b}, os.Getenv("CRAWLBATCH_COST_PHASE"), i, share, func(name string) (source.Source, error) { return source.Files(name, nil) })
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/result", r, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	dir := t.TempDir()
	b, err := dirstore.Open(dir+"/store", dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n, _ := strconv.Atoi(os.Getenv("CRAWLBATCH_COST_N"))
	s, err := source.Files(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	req := request(t, s)
	e := &apart{tasks: tasks{t: t, b: b, n: n}, dir: dir}
	if n > 0 {
		req.Elsewhere = e
	}
	p, err := Make(t.Context(), Default(), req)
	if err == nil {
		err = p.Commit(t.Context(), b)
	}
	if err != nil {
		t.Fatal(err)
	}
	var ru syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &ru)
	own := time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
	t.Logf("%s, %d URLs, %d partitions: driver %.2f s, %d MiB; tasks %.2f s, most %.2f s, %d MiB", p.Manifest().ID, p.Manifest().URLs, len(p.Manifest().Partitions), own.Seconds(), ru.Maxrss>>10, e.total.Seconds(), e.most.Seconds(), e.peak)
}

package main

import (
	"cmp"
	"os"
	"runtime"
	"runtime/debug"
	"sync"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/formats/extsort/runfiles"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/limits"
)

// fetchMemory is the soft memory limit, in bytes, of a process with one fetch task. Such a task, with 200
// slots and bodies of up to 5 MiB, has about 250 MiB of live data and should fit into 512 MiB. Near the
// limit, Go collects garbage before the heap has doubled.
const fetchMemory = 400 << 20

// planMemory is the soft memory limit, in bytes, of a process that plans. A plan sorts in 384 MiB and has
// a filter of 64 MiB. Near the limit, Go collects garbage before the heap has doubled.
const planMemory = 800 << 20

// verifyMemory returns the soft memory limit, in bytes, of a process that audits a crawl. Each of
// the parallel checks recomputes a result with up to 150 MiB of rows. If parallel is 0, the process
// runs one check per CPU at the same time.
func verifyMemory(parallel int) int64 {
	return 100<<20 + int64(cmp.Or(parallel, runtime.GOMAXPROCS(0)))*150<<20
}

// auditGrowth is the growth of the heap after which an audit collects garbage, in percent of the
// live data. Because an audit allocates much and keeps little, Go's default of 100 % would cost a
// tenth more CPU. A larger value would change nothing, because the heap's soft limit then decides.
const auditGrowth = 400

// boundAudit bounds the memory of a process that audits a crawl with parallel checks.
func boundAudit(parallel int) {
	if boundMemory(verifyMemory(parallel)) {
		debug.SetGCPercent(auditGrowth)
	}
}

// boundMemory sets a soft limit of the heap, unless GOMEMLIMIT or GOGC is set. If the process may take less, that is the
// limit. boundMemory reports whether it has set the limit.
func boundMemory(bytes int64) bool {
	l, _ := readLimits() // a command that runs tasks reports the error
	for _, name := range []string{"GOMEMLIMIT", "GOGC"} {
		if os.Getenv(name) != "" {
			return false
		}
	}
	debug.SetMemoryLimit(min(bytes, l.Memory))
	return true
}

// readLimits reads the limits of this process once.
var readLimits = sync.OnceValues(limits.Read)

// shares divides the limits of this process among its tasks: fetch tasks and tasks of other stages that run at a time.
func shares(cfg *config.Config, fetchTasks, tasks int) (limits.Shares, error) {
	l, err := readLimits()
	if err != nil {
		return limits.Shares{}, err
	}
	s, err := l.Divide(limits.Wants{
		FetchTasks: fetchTasks, Slots: cfg.Fetch.Slots, MaxBody: int64(cfg.Fetch.MaxBody), Tasks: tasks, Parsers: runtime.GOMAXPROCS(0),
	})
	if err != nil {
		return s, usage.Error(err)
	}
	return s, nil
}

// obey is shares for a process that now runs these tasks. It logs what is less than wanted.
func (c *common) obey(cfg *config.Config, fetchTasks, tasks int) (limits.Shares, error) {
	s, err := shares(cfg, fetchTasks, tasks)
	if err != nil {
		return s, err
	}
	for _, line := range s.Lowered {
		c.log.Warn(line)
	}
	if s.Runs != runfiles.Max {
		runfiles.Max = s.Runs
	}
	return s, nil
}

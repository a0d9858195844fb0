package main

import (
	"cmp"
	"os"
	"runtime"
	"runtime/debug"
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

// boundMemory sets a soft limit of the heap, unless GOMEMLIMIT or GOGC is set. It reports whether it
// has set the limit.
func boundMemory(bytes int64) bool {
	for _, name := range []string{"GOMEMLIMIT", "GOGC"} {
		if os.Getenv(name) != "" {
			return false
		}
	}
	debug.SetMemoryLimit(bytes)
	return true
}

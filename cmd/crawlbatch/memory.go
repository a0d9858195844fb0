package main

import (
	"cmp"
	"os"
	"runtime"
	"runtime/debug"
)

// fetchMemory is the heap size, in bytes, above which a process with one fetch task collects
// garbage more often than Go's default, which lets the heap double. A fetch task of 200 slots
// with 5 MiB each has about 250 MiB of live data and should fit into 512 MiB.
const fetchMemory = 400 << 20

// verifyMemory is fetchMemory for a process that audits a crawl. Each of the parallel checks
// recomputes a result with up to 150 MiB of rows. If parallel is 0, each CPU makes one check.
func verifyMemory(parallel int) int64 {
	return 100<<20 + int64(cmp.Or(parallel, runtime.GOMAXPROCS(0)))*150<<20
}

// boundMemory sets a soft limit of the heap, unless GOMEMLIMIT or GOGC is set.
func boundMemory(bytes int64) {
	for _, name := range []string{"GOMEMLIMIT", "GOGC"} {
		if os.Getenv(name) != "" {
			return
		}
	}
	debug.SetMemoryLimit(bytes)
}

package main

import (
	"os"
	"runtime/debug"
)

// fetchMemory is the heap size, in bytes, above which a process with one fetch task collects
// garbage more often than Go's default, which lets the heap double. A fetch task of 200 slots
// with 5 MiB each has about 250 MiB of live data and should fit into 512 MiB.
const fetchMemory = 400 << 20

// verifyMemory is the same limit as fetchMemory, for a process that audits a crawl. Each CPU
// recomputes a reduce task, which holds up to 150 MiB of rows.
const verifyMemory = 400 << 20

// boundMemory sets a soft limit of the heap, unless GOMEMLIMIT or GOGC is set.
func boundMemory(bytes int64) {
	for _, name := range []string{"GOMEMLIMIT", "GOGC"} {
		if os.Getenv(name) != "" {
			return
		}
	}
	debug.SetMemoryLimit(bytes)
}

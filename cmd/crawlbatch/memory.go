package main

import (
	"os"
	"runtime/debug"
)

// fetchMemory is from how many bytes on a process that runs one fetch task collects
// garbage sooner than Go does by itself, which is at twice what lives: 512 MiB are to
// be enough for one, and what lives of 200 slots with 5 MiB each is about 250 MiB.
const fetchMemory = 400 << 20

// boundMemory tells the runtime of that, unless GOMEMLIMIT or GOGC say something else.
// It is no limit: what does not fit is had all the same.
func boundMemory(bytes int64) {
	for _, name := range []string{"GOMEMLIMIT", "GOGC"} {
		if os.Getenv(name) != "" {
			return
		}
	}
	debug.SetMemoryLimit(bytes)
}

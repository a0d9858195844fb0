package worker

import (
	"sync"
	"syscall"
	"time"
)

// CPU divides the CPU time of this process among the number of attempts that run now in it. All
// Runners of a process share one CPU. Attempts that run at the same time get equal shares.
type CPU struct {
	mu      sync.Mutex
	used    func() time.Duration // CPU time of the process; nil: what getrusage returns
	last    time.Duration        // CPU time of the process when it was last divided
	running int                  // attempts that run
	each    time.Duration        // sum of the shares of an attempt that has run from the start
}

// share begins an attempt. soFar returns the attempt's share of the CPU time until now, and stop
// ends the attempt. If c is nil, the share is all CPU time of the process.
func (c *CPU) share() (soFar func() time.Duration, stop func()) {
	if c == nil {
		c = &CPU{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.divide()
	c.running++
	began := c.each
	soFar = func() time.Duration {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.divide()
		return c.each - began
	}
	return soFar, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.divide()
		c.running--
	}
}

// divide divides the CPU time since the last call among the running attempts. The caller holds the
// mutex.
func (c *CPU) divide() {
	used := c.used
	if used == nil {
		used = processCPU
	}
	now := used()
	if c.running > 0 {
		c.each += (now - c.last) / time.Duration(c.running)
	}
	c.last = now
}

// processCPU returns the CPU time of this process, user and system.
func processCPU() time.Duration {
	u := processUsage()
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peakMemory returns the largest resident memory that this process has had, in bytes.
func peakMemory() int64 { return processUsage().Maxrss << 10 }

// processUsage returns the resource usage of this process, or zero if getrusage fails.
func processUsage() (u syscall.Rusage) {
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u
}

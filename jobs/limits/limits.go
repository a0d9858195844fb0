// Package limits reads how much memory and how many open files this process may have, and divides both among tasks.
//
// Read takes the memory limit from the process's cgroup, from GOMEMLIMIT or from the machine, and the limit of open files
// from RLIMIT_NOFILE. Divide takes these Limits and what the flags and the config want, and returns the Shares of tasks:
// how many run at a time, and the slots, bodies, parsers and sorted files of each. With ample limits, the shares are what
// is wanted. If less than the least remains, Divide returns an error that says how much is needed. Divide reads nothing,
// so the same limits give the same shares. The package imports no other package of crawlbatch.
package limits

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"golang.org/x/sys/unix"
)

// Source says where a memory limit comes from.
type Source string

// The sources of a memory limit.
const (
	FromCgroup  Source = "the cgroup"
	FromEnv     Source = "GOMEMLIMIT"
	FromMachine Source = "the machine"
)

// Limits are the limits of a process.
type Limits struct {
	Memory int64  // memory that Go may use before it collects garbage at any cost (GOMEMLIMIT), in bytes
	From   Source // where Memory comes from
	Files  int64  // largest number of open files, sockets included
}

// Soft returns the part of a limit of memory that Go may use, in bytes. The kernel counts more for the process: the pages
// of the program, buffers of sockets, page tables.
func Soft(limit int64) int64 { return limit - limit/8 }

// hard returns the limit whose Soft is the given number of bytes.
func hard(soft int64) int64 { return (soft*8 + 6) / 7 }

// Read returns the limits of this process, and makes Go obey the memory limit. Unless GOMAXPROCS is set, it also lowers
// the number of threads that run Go code to what the memory allows: a container without a limit of CPU otherwise takes all
// CPUs of a large machine, and each takes memory. Go's runtime has raised the soft limit of open files to the hard one.
func Read() (Limits, error) {
	l := Limits{Memory: math.MaxInt64, From: FromMachine}
	limit, err := memlimit.FromCgroup()
	if err == nil {
		l.From = FromCgroup
	} else {
		// The program also runs where no cgroup can be read, such as in a sandbox.
		limit, err = memlimit.FromSystem()
	}
	if err == nil {
		l.Memory = Soft(int64(min(limit, math.MaxInt64)))
	}
	// A cgroup may allow more than the machine has.
	if machine, err := memlimit.FromSystem(); err == nil && Soft(int64(machine)) < l.Memory {
		l.Memory, l.From = Soft(int64(machine)), FromMachine
	}
	if set := debug.SetMemoryLimit(-1); os.Getenv("GOMEMLIMIT") != "" && set < l.Memory { // a negative limit only reads
		l.Memory, l.From = set, FromEnv
	} else if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(l.Memory)
	}
	if procs := runtime.GOMAXPROCS(0); os.Getenv("GOMAXPROCS") == "" && threads(procs, l.Memory) < procs {
		runtime.GOMAXPROCS(threads(procs, l.Memory))
	}
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return l, fmt.Errorf("read the limit of open files: %w", err)
	}
	l.Files = int64(min(files.Cur, math.MaxInt64))
	return l, nil
}

// The bounds of threads.
const (
	threadMemory = 112 * mib // for each thread, in bytes: its caches, and a document of 5 MiB that it parses; the Soft of 128 MiB
	leastThreads = 2
)

// threads returns how many of the machine's CPUs run Go code at the same time in the given memory.
func threads(cpus int, memory int64) int {
	return min(cpus, int(max(memory/threadMemory, leastThreads)))
}

// Wants are the wishes of flags and config.
type Wants struct {
	FetchTasks int   // fetch tasks at a time; 0: the process runs none
	Slots      int   // concurrent fetches of a fetch task
	MaxBody    int64 // limit of a body, in bytes
	Tasks      int   // tasks of other stages at a time; 0: the process runs none
	Parsers    int   // documents that are parsed at the same time
}

// Shares are what tasks get. The zero value limits nothing.
type Shares struct {
	FetchTasks int
	Slots      int           // of a fetch task
	Idle       int           // idle connections that a fetch task keeps
	Bodies     int64         // memory of the bodies of a fetch task, in bytes
	Parsing    chan struct{} // a semaphore for all fetch tasks: a goroutine that parses or compresses holds one of its slots
	Tasks      int
	TaskMemory int64    // memory of this process for each task of another stage, in bytes
	Runs       int      // sorted scratch files of a sorter
	Lowered    []string // what is less than wanted, for people: one line for each limit; empty with ample limits
}

const mib = 1 << 20

// The parts of the memory, in bytes unless they are counts or factors. The peaks of fetching 360 pages of 5 MiB are in jobs/README.md.
const (
	processMemory = 64 * mib  // of the process itself
	fetchMemory   = 64 * mib  // of a fetch task without its slots and bodies: the row groups of its segments, and robots.txt rules
	slotMemory    = 320 << 10 // of a slot: the part of a body that does not count as Bodies, and the connection
	mostBodies    = 64 * mib  // of the bodies of a fetch task
	leastBodies   = 2         // bodies in flight for which a task needs memory
	parseFactor   = 8         // multiple of a document's length that its parser, its rows and its WARC record take
	largeBody     = 16 * mib  // few documents are longer, even if the config allows it
	reduceMemory  = 320 * mib // of a task of another stage: four sorters, and buffers
	leastReduce   = 192 * mib // with smaller sorters
)

// The parts of the open files.
const (
	processFiles    = 80   // the program, its logs, and the connections to the store
	fetchFiles      = 40   // of a fetch task: the files of a segment, and those of the checkpoint before it
	slotFiles       = 6    // of a slot: it dials up to six addresses of a host at the same time (RFC 8305)
	reduceFiles     = 1024 // of a task of another stage with mostRuns: eight merges of tables and four sorters
	someReduceFiles = 128  // for which a task begins
	mostRuns        = 128
	leastRuns       = 8
	leastIdle       = 256 // idle connections with ample files
)

// leastSlots is the least number of slots of a fetch task, unless the config has fewer.
const leastSlots = 8

// ErrTooLow means that a limit is too low for this process. The error says what to do.
var ErrTooLow = errors.New("a limit of this process is too low")

// Divide divides the limits. The error wraps ErrTooLow.
func (l Limits) Divide(w Wants) (Shares, error) {
	memory, files := w.least()
	switch {
	case l.Memory < memory:
		return Shares{}, fmt.Errorf("%w: %s, but at least %s is needed: %s", ErrTooLow, l.memory(), l.size(memory), l.raiseMemory(memory))
	case l.Files < files:
		return Shares{}, fmt.Errorf("%w: it may open %d files (ulimit -Hn), but at least %d are needed: %s", ErrTooLow, l.Files, files, raiseFiles(files))
	}
	s := l.divide(w)
	// Each limit alone shows what it lowers.
	memory, files = w.most()
	if less := (Limits{Memory: l.Memory, Files: math.MaxInt32}).divide(w).less(w); less != "" {
		s.Lowered = append(s.Lowered, fmt.Sprintf("%s, so crawlbatch %s: for more, %s", l.memory(), less, l.raiseMemory(memory)))
	}
	if less := (Limits{Memory: math.MaxInt64, Files: l.Files}).divide(w).less(w); less != "" {
		s.Lowered = append(s.Lowered, fmt.Sprintf("this process may open %d files (ulimit -Hn), so crawlbatch %s: for more, %s", l.Files, less, raiseFiles(files)))
	}
	return s, nil
}

// least returns the memory in bytes and the open files that are needed in any case.
func (w *Wants) least() (memory, files int64) {
	if w.FetchTasks > 0 {
		memory = processMemory + w.parse() + fetchMemory + leastBodies*w.body() + leastSlots*slotMemory
		files = processFiles + fetchFiles + leastSlots*(slotFiles+1)
	}
	if w.Tasks > 0 {
		memory, files = max(memory, processMemory+leastReduce), max(files, processFiles+reduceFiles*leastRuns/mostRuns)
	}
	return memory, files
}

// most returns the memory in bytes and the open files with which nothing is lowered.
func (w *Wants) most() (memory, files int64) {
	tasks, slots := int64(w.FetchTasks), int64(w.Slots)
	if tasks > 0 {
		memory = processMemory + int64(w.Parsers)*w.parse() + tasks*(fetchMemory+slots*slotMemory+mostBodies)
		files = processFiles + tasks*(fetchFiles+slots*(slotFiles+1))
	}
	tasks = int64(w.Tasks)
	return max(memory, processMemory+tasks*reduceMemory), max(files, processFiles+tasks*someReduceFiles)
}

func (w *Wants) body() int64  { return min(w.MaxBody, largeBody) }
func (w *Wants) parse() int64 { return parseFactor * w.body() }

// divide divides limits that are not lower than the least.
func (l Limits) divide(w Wants) Shares {
	s := Shares{FetchTasks: w.FetchTasks, Slots: w.Slots, Tasks: w.Tasks, Runs: mostRuns}
	if w.FetchTasks > 0 {
		l.divideFetch(&w, &s)
	}
	if w.Tasks > 0 {
		files := l.Files - processFiles
		s.Tasks = clamp(min((l.Memory-processMemory)/reduceMemory, files/someReduceFiles), 1, w.Tasks)
		s.TaskMemory = l.Memory / int64(s.Tasks)
		s.Runs = clamp(min(files/int64(s.Tasks), reduceFiles)*mostRuns/reduceFiles, leastRuns, mostRuns)
	}
	return s
}

// divideFetch sets the shares of fetch tasks. A further task begins only if each then has half of its slots and bodies.
func (l Limits) divideFetch(w *Wants, s *Shares) {
	slots := int64(w.Slots)
	parsers := clamp(l.Memory/4/w.parse(), 1, w.Parsers)
	memory, files := l.Memory-processMemory-int64(parsers)*w.parse(), l.Files-processFiles
	half := (slots+1)/2*slotMemory + mostBodies/2
	some := min(slots, 2*leastSlots) * (slotFiles + 1)
	s.FetchTasks = clamp(min(memory/(fetchMemory+half), files/(fetchFiles+some)), 1, w.FetchTasks)
	tasks := int64(s.FetchTasks)
	memory, files = memory/tasks-fetchMemory, files/tasks-fetchFiles // of a task
	fit := min((memory-mostBodies/2)/slotMemory, files/(slotFiles+1))
	s.Slots = min(clamp(fit, leastSlots, w.Slots), w.Slots)
	s.Idle = clamp(files-int64(s.Slots)*slotFiles, s.Slots, max(leastIdle, 2*s.Slots))
	s.Bodies = min(memory-int64(s.Slots)*slotMemory, mostBodies)
	free := (memory - int64(s.Slots)*slotMemory - s.Bodies) * tasks
	s.Parsing = make(chan struct{}, clamp(int64(parsers)+free/w.parse(), 1, w.Parsers))
}

// clamp returns n, but at least least, and at most most unless that is less than least.
func clamp(n int64, least, most int) int { return int(max(min(n, int64(most)), int64(least))) }

// less says what is less than wanted; "" if that is little.
func (s Shares) less(w Wants) string {
	var less []string
	if s.FetchTasks < w.FetchTasks || s.Slots < w.Slots {
		less = append(less, fmt.Sprintf("fetches with %s at a time of %s, not %d of %d", count(s.FetchTasks, "task"), count(s.Slots, "slot"), w.FetchTasks, w.Slots))
	} else if w.FetchTasks > 0 && s.Bodies < mostBodies/2 {
		less = append(less, fmt.Sprintf("has %d MiB in each fetch task for bodies in flight, not %d", s.Bodies/mib, int64(mostBodies/mib)))
	}
	if s.Tasks < w.Tasks {
		less = append(less, fmt.Sprintf("runs %s of other stages at a time, not %d", count(s.Tasks, "task"), w.Tasks))
	}
	return strings.Join(less, ", and ")
}

func count(n int, what string) string {
	if n > 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// memory names the memory limit.
func (l Limits) memory() string {
	if l.From == FromEnv {
		return "GOMEMLIMIT is " + l.size(l.Memory)
	}
	return string(l.From) + " allows " + l.size(l.Memory) + " of memory"
}

// size writes a limit for Go as the limit that a user sets, in MiB.
func (l Limits) size(soft int64) string {
	if l.From != FromEnv {
		soft = hard(soft)
	}
	return fmt.Sprintf("%d MiB", (soft+mib-1)/mib)
}

func (l Limits) raiseMemory(to int64) string {
	switch size := l.size(to); l.From {
	case FromEnv:
		return "set GOMEMLIMIT to " + strings.Replace(size, " ", "", 1)
	case FromCgroup:
		return "raise the limit to " + size + " (MemoryMax= in systemd, --memory or resources.limits.memory of a container)"
	default:
		return "take a machine with " + size
	}
}

func raiseFiles(to int64) string {
	return fmt.Sprintf("raise the limit to %d (ulimit -n %[1]d as root, LimitNOFILE=%[1]d in systemd, --ulimit nofile=%[1]d of a container)", to)
}

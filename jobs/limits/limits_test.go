package limits

import (
	"errors"
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

// wants are the wishes of `crawlbatch run` with the default config on two CPUs.
var wants = Wants{FetchTasks: 4, Slots: 200, MaxBody: 5 * mib, Tasks: 2, Parsers: 2}

func TestAmpleLimitsLowerNothing(t *testing.T) {
	memory, files := wants.most()
	for _, l := range []Limits{{memory, FromCgroup, files}, {math.MaxInt64, FromMachine, math.MaxInt64}} {
		s, err := l.Divide(wants)
		if err != nil || len(s.Lowered) > 0 {
			t.Fatalf("%+v: %v, %v", l, err, s.Lowered)
		}
		if s.FetchTasks != 4 || s.Slots != 200 || s.Bodies != mostBodies || cap(s.Parsing) != 2 || s.Tasks != 2 {
			t.Errorf("%+v: shares %+v", l, s)
		}
	}
	s, _ := Limits{math.MaxInt64, FromMachine, math.MaxInt64}.Divide(wants)
	if s.Idle != 400 || s.Runs != mostRuns {
		t.Errorf("without limits: %d idle connections, %d runs", s.Idle, s.Runs)
	}
}

func TestLowLimitsLowerTasksAndSlots(t *testing.T) {
	for _, c := range []struct {
		memory     int64 // of the cgroup, in MiB
		files      int64
		fetchTasks int
		slots      int
		bodies     int64 // in MiB
		tasks      int
		runs       int
		says       string
	}{
		{memory: 300, files: 20_000, fetchTasks: 1, slots: 200, bodies: 32, tasks: 1, runs: 128, says: "the cgroup allows 300 MiB of memory"},
		{memory: 512, files: 20_000, fetchTasks: 2, slots: 179, bodies: 32, tasks: 1, runs: 128, says: "2 tasks at a time of 179 slots, not 4 of 200"},
		{memory: 1024, files: 20_000, fetchTasks: 4, slots: 200, bodies: 61, tasks: 2, runs: 128},
		{memory: 9000, files: 176, fetchTasks: 1, slots: 8, bodies: 64, tasks: 1, runs: 12, says: "1 task at a time of 8 slots, not 4 of 200"},
		{memory: 9000, files: 256, fetchTasks: 1, slots: 19, bodies: 64, tasks: 1, runs: 22, says: "ulimit -n 5840"},
		{memory: 9000, files: 1024, fetchTasks: 4, slots: 28, bodies: 64, tasks: 2, runs: 59, says: "4 tasks at a time of 28 slots, not 4 of 200"},
		{memory: 9000, files: 8192, fetchTasks: 4, slots: 200, bodies: 64, tasks: 2, runs: 128},
	} {
		l := Limits{Soft(c.memory * mib), FromCgroup, c.files}
		s, err := l.Divide(wants)
		if err != nil {
			t.Errorf("%d MiB, %d files: %v", c.memory, c.files, err)
			continue
		}
		if s.FetchTasks != c.fetchTasks || s.Slots != c.slots || s.Bodies/mib != c.bodies || s.Tasks != c.tasks || s.Runs != c.runs {
			t.Errorf("%d MiB, %d files: %+v", c.memory, c.files, s)
		}
		if said := strings.Join(s.Lowered, "\n"); !strings.Contains(said, c.says) || (c.says == "") != (said == "") {
			t.Errorf("%d MiB, %d files: it says %q", c.memory, c.files, said)
		}
	}
}

// Whatever the limits are, the shares fit into them.
func TestSharesNeverExceedTheLimits(t *testing.T) {
	for _, w := range []Wants{wants, {FetchTasks: 1, Slots: 10_000, MaxBody: 5 * mib, Parsers: 64}, {FetchTasks: 64, Slots: 1, MaxBody: 1 << 30, Tasks: 64, Parsers: 64}, {Tasks: 16}} {
		least, leastFiles := w.least()
		for memory := least; memory < 40<<30; memory += memory / 7 {
			for files := leastFiles; files < 1<<20; files += files / 7 {
				s, err := Limits{memory, FromMachine, files}.Divide(w)
				if err != nil {
					t.Fatalf("%+v: %d bytes, %d files: %v", w, memory, files, err)
				}
				tasks, slots := int64(s.FetchTasks), int64(s.Slots)
				taken := processMemory + int64(cap(s.Parsing))*w.parse() + tasks*(fetchMemory+slots*slotMemory+s.Bodies)
				open := processFiles + tasks*(fetchFiles+slots*slotFiles+int64(s.Idle))
				if tasks > 0 && (taken > memory || open > files || s.Slots < min(leastSlots, w.Slots) || s.Bodies < leastBodies*w.body()) {
					t.Fatalf("%+v: %d bytes, %d files: %+v takes %d bytes, %d files", w, memory, files, s, taken, open)
				}
				if open := processFiles + int64(s.Tasks)*int64(s.Runs)*reduceFiles/mostRuns; open > files {
					t.Fatalf("%+v: %d files: %+v takes %d", w, files, s, open)
				}
			}
		}
	}
}

func TestTooLowLimitsAreRefusedWithWhatIsNeeded(t *testing.T) {
	for _, c := range []struct {
		limits Limits
		says   []string
	}{
		{Limits{Soft(100 * mib), FromCgroup, 1024}, []string{"the cgroup allows 100 MiB of memory", "at least 293 MiB", "MemoryMax="}},
		{Limits{100 * mib, FromEnv, 1024}, []string{"GOMEMLIMIT is 100 MiB", "set GOMEMLIMIT to 256MiB"}},
		{Limits{Soft(200 * mib), FromMachine, 1024}, []string{"the machine allows 200 MiB", "take a machine with 293 MiB"}},
		{Limits{Soft(8 << 30), FromMachine, 64}, []string{"may open 64 files (ulimit -Hn)", "at least 176", "ulimit -n 176", "LimitNOFILE=176"}},
	} {
		_, err := c.limits.Divide(wants)
		if !errors.Is(err, ErrTooLow) {
			t.Errorf("%+v: %v", c.limits, err)
			continue
		}
		for _, s := range c.says {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%+v: %q does not say %q", c.limits, err, s)
			}
		}
	}
}

// A container on a machine of 64 CPUs uses as many of them as fit into its memory.
func TestThreadsFollowFromTheMemory(t *testing.T) {
	for _, c := range []struct {
		cpus   int
		memory int64 // of the cgroup, in MiB
		want   int
	}{{64, 128, 2}, {64, 512, 4}, {64, 1152, 9}, {64, 16 << 10, 64}, {1, 128, 1}, {4, 1152, 4}} {
		if got := threads(c.cpus, Soft(c.memory*mib)); got != c.want {
			t.Errorf("%d CPUs and %d MiB: %d threads, want %d", c.cpus, c.memory, got, c.want)
		}
	}
	before := runtime.GOMAXPROCS(64)
	limit := debug.SetMemoryLimit(-1)
	defer func() {
		runtime.GOMAXPROCS(before)
		debug.SetMemoryLimit(limit)
	}()
	t.Setenv("GOMEMLIMIT", "448MiB")
	debug.SetMemoryLimit(448 * mib) // as Go's runtime does at the start
	for _, c := range []struct {
		env  string
		want int
	}{{"64", 64}, {"", 4}} {
		t.Setenv("GOMAXPROCS", c.env)
		if _, err := Read(); err != nil || runtime.GOMAXPROCS(0) != c.want {
			t.Errorf("GOMAXPROCS=%q: %d threads, want %d, %v", c.env, runtime.GOMAXPROCS(0), c.want, err)
		}
	}
}

// A process reads what it was given, and Go obeys it.
func TestReadTakesTheSmallerMemory(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	t.Setenv("GOMEMLIMIT", "")
	l, err := Read()
	if err != nil || l.Memory <= 0 || l.Files < 16 {
		t.Fatalf("%+v, %v", l, err)
	}
	if got := debug.SetMemoryLimit(-1); got != l.Memory {
		t.Errorf("Go's limit is %d, not %d", got, l.Memory)
	}
	t.Setenv("GOMEMLIMIT", "64MiB")
	debug.SetMemoryLimit(64 * mib) // as Go's runtime does at the start
	if l, err := Read(); err != nil || l.Memory != 64*mib || l.From != FromEnv {
		t.Errorf("with GOMEMLIMIT=64MiB: %+v, %v", l, err)
	}
}

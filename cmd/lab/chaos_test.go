//go:build lab

package lab

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/cmd/demo"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/store/s3store"
	"crawlbatch.io/crawlbatch/formats/store/storetest/versitygw"
	"crawlbatch.io/crawlbatch/stages/simweb/truth"
)

// TestChaos crawls the synthetic web while processes are killed or suspended, disks are full, the store
// fails, or somebody changes it. After each crawl, TestChaos checks the complete store.
func TestChaos(t *testing.T) {
	r := newChaosRun(t)
	for n, scenario := range []struct {
		name string
		run  func(*testing.T, *chaosRun, uint64)
	}{
		{"the process is killed, directory", killsInADirectory},
		{"two processes at a time are killed, S3", killsInS3},
		{"two processes at a time, directory", twiceInADirectory},
		{"the store fails, S3", failingS3},
		{"the store fails, directory", failingDirectory},
		{"the disk is full", fullDisks},
		{"a paused process wakes up, S3", pausedInS3},
		{"lock files are removed, directory", locksRemoved},
		{"older checkpoints are put back, directory", oldCheckpoints},
		{"two drivers plan, directory", driversInADirectory},
		{"two drivers plan, S3", driversInS3},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			t.Parallel()
			scenario.run(t, r, uint64(n+1)*1000)
		})
	}
}

// s3 starts an S3 server. It returns the server and the address of a store in the server.
func s3(t *testing.T) (*versitygw.Server, string) {
	t.Helper()
	server := versitygw.Start(t)
	return server, "s3://" + server.NewBucket(t) + "/crawls"
}

// openS3 opens the directory in which an S3 server keeps a store.
func openS3(t *testing.T, server *versitygw.Server, address string) store.Bucket {
	t.Helper()
	dir := filepath.Join(server.Dir, strings.TrimPrefix(address, s3store.Scheme))
	b, err := dirstore.Open(dir, dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// killsInADirectory kills the only crawling process at random instants.
func killsInADirectory(t *testing.T, r *chaosRun, salt uint64) {
	for killed := 0; killed < r.kills; salt++ {
		c := r.crawl(t, filepath.Join(t.TempDir(), "store"), salt, chaosDelay)
		b := crawltest.OpenDir(t, c.store)
		seen := newSeenProgress(c, b)
		for done := false; !done; {
			p := c.run()
			seen.wait(p)
			if killed < r.kills && p.outlives(c.randomDuration(10*time.Millisecond, 3500*time.Millisecond)) {
				c.kill(p)
				seen.died()
				killed++
				continue
			}
			code, out := p.wait()
			if done = code == 0; !done {
				t.Fatalf("run: exit %d\n%s", code, out)
			}
		}
		c.check(r, b, nil)
	}
}

// seenProgress follows the checkpoints of a crawl, so that the suite kills no process before its partitions
// make progress. After three deaths without progress, the crawl would enter serial mode and blame URLs. It
// is not enough to wait a fixed time, which may be too short for a checkpoint on a busy machine.
type seenProgress struct {
	c *chaos
	b store.Bucket

	mu         sync.Mutex
	partitions map[string]*seenPartition // progress of each partition, by the key of its checkpoint
}

type seenPartition struct {
	recorded uint64 // number of recorded URLs at the last death
	deaths   int    // number of deaths in a row without progress
}

func newSeenProgress(c *chaos, b store.Bucket) *seenProgress {
	return &seenProgress{c: c, b: b, partitions: map[string]*seenPartition{}}
}

// recorded returns the number of URLs that a checkpoint records, and whether the partition is unfinished.
func (s *seenProgress) recorded(key string) (n uint64, more bool) {
	var d manifest.Checkpoint
	_, _, err := manifest.Load(s.c.t.Context(), s.b, key, &d)
	rows, failed := d.RecordedRows()
	if err = errors.Join(err, failed); err != nil {
		s.c.t.Error(err)
		return 0, false
	}
	return rows.GetCardinality(), !d.Complete
}

// died counts a death of a process of the crawl.
func (s *seenProgress) died() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for o, err := range s.b.List(s.c.t.Context(), layout.CrawlDir(demo.Crawl)) {
		if err != nil {
			s.c.t.Error(err)
			return
		}
		if path.Base(o.Key) != "checkpoint.json" {
			continue
		}
		at := s.partitions[o.Key]
		if at == nil {
			at = &seenPartition{}
			s.partitions[o.Key] = at
		}
		n, more := s.recorded(o.Key)
		if at.deaths++; n > at.recorded || !more {
			*at = seenPartition{recorded: n}
		}
	}
}

// wait waits until each partition with two deaths in a row has made progress, or until the process has
// ended.
func (s *seenProgress) wait(p *process) {
	for s.stalled() && p.outlives(50*time.Millisecond) {
	}
}

// stalled reports whether a partition has two deaths in a row and has made no progress since.
func (s *seenProgress) stalled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, at := range s.partitions {
		if at.deaths < 2 {
			continue
		}
		n, more := s.recorded(key)
		if n <= at.recorded && more {
			return true
		}
		*at = seenPartition{recorded: n}
	}
	return false
}

// killsInS3 kills two processes that crawl together. Both processes attempt each task: one attempt works,
// and the other stands by.
func killsInS3(t *testing.T, r *chaosRun, salt uint64) {
	for killed := 0; killed < r.kills; salt++ {
		server, address := s3(t)
		c := r.crawl(t, address, salt, chaosDelay, server.Env(server.Endpoint)...)
		b := openS3(t, server, address)
		c.objects = b
		seen := newSeenProgress(c, b)
		var wg sync.WaitGroup
		var mu sync.Mutex
		for range 2 {
			wg.Go(func() {
				for {
					p := c.run()
					seen.wait(p)
					mu.Lock()
					more := killed < r.kills
					mu.Unlock()
					if more && p.outlives(c.randomDuration(100*time.Millisecond, 9*time.Second)) {
						c.kill(p)
						seen.died()
						mu.Lock()
						killed++
						mu.Unlock()
						continue
					}
					if code, out := p.wait(); code != 0 {
						t.Errorf("run: exit %d\n%s", code, out)
					}
					return
				}
			})
		}
		wg.Wait()
		c.check(r, b, nil)
	}
}

// twiceInADirectory runs two processes that crawl together.
func twiceInADirectory(t *testing.T, r *chaosRun, salt uint64) {
	c := r.crawl(t, filepath.Join(t.TempDir(), "store"), salt, chaosDelay)
	one, two := c.run(), c.run()
	for _, p := range []*process{one, two} {
		if code, out := p.wait(); code != 0 {
			t.Errorf("run: exit %d\n%s", code, out)
		}
	}
	c.check(r, crawltest.OpenDir(t, c.store), nil)
}

// pausedInS3 suspends a process for longer than its lease, several times, while another
// process waits to take over.
func pausedInS3(t *testing.T, r *chaosRun, salt uint64) {
	server, address := s3(t)
	c := r.crawl(t, address, salt, chaosDelay, server.Env(server.Endpoint)...)
	var wakings []time.Time
	processes := []*process{c.run(), c.run()}
	// The test suspends the processes only eight times, because some hosts ask for a long pause. With more
	// suspensions, no process might run long enough to request these hosts again.
	for n := range 8 {
		p := processes[n%2]
		if !p.outlives(c.randomDuration(2*time.Second, 6*time.Second)) {
			break
		}
		from := time.Now()
		if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		time.Sleep(c.randomDuration(chaosLease*5/4, 3*chaosLease))
		wakings = append(wakings, time.Now())
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
		c.blows = append(c.blows, blow{from: from, to: time.Now()})
	}
	for _, p := range processes {
		if code, out := p.wait(); code != 0 {
			t.Errorf("run: exit %d\n%s", code, out)
		}
	}
	if len(wakings) < 2 {
		t.Errorf("paused only %d times", len(wakings))
	}
	c.check(r, openS3(t, server, address), func(v truth.Violation) bool {
		// After a suspension, one request per slot may come too soon, because the task checked the delay
		// before the suspension and sends the request after it. Later requests keep the delay, because only
		// the new holder of the lease sends them.
		for _, at := range wakings {
			if late := v.Entry.Time.Sub(at); v.Kind == truth.TooSoon && late > -chaosSlack && late < chaosDelay+chaosSlack {
				return true
			}
		}
		return false
	})
}

// fullDisks fills the file systems of the scratch directory and of the store, again and
// again.
func fullDisks(t *testing.T, r *chaosRun, salt uint64) {
	scratch, disk := tmpfs(t, 12<<20), tmpfs(t, 48<<20)
	c := r.crawl(t, filepath.Join(disk, "store"), salt, chaosDelay, "TMPDIR="+scratch)
	p := c.run()
	for n := 0; ; n++ {
		calm := c.randomDuration(500*time.Millisecond, 3*time.Second)
		if n == 10 {
			calm = time.Hour // after 10 disturbances, the test lets the run end
		}
		if !p.outlives(calm) {
			code, out := p.wait()
			if code == 0 {
				break
			}
			if code != exitInterrupted {
				t.Fatalf("run: exit %d\n%s", code, out)
			}
			p = c.run() // again, as the command's message advises
			continue
		}
		dir := scratch
		if n%2 == 1 {
			dir = disk
		}
		from := time.Now()
		empty := fill(t, dir)
		p.outlives(c.randomDuration(500*time.Millisecond, 4*time.Second))
		empty()
		c.blows = append(c.blows, blow{from: from, to: time.Now()})
	}
	c.check(r, crawltest.OpenDir(t, c.store), nil)
}

// tmpfs mounts a small file system.
func tmpfs(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Skipf("no small file system can be mounted here, which takes root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill fills the file system of dir. The caller calls empty to make room again.
func fill(t *testing.T, dir string) (empty func()) {
	t.Helper()
	name := filepath.Join(dir, "filler")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 64<<10)
	for err == nil {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	_ = f.Close()
	return func() {
		if err := os.Remove(name); err != nil {
			t.Error(err)
		}
	}
}

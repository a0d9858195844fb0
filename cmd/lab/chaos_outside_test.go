//go:build lab

package lab

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/cmd/demo"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages/simweb/truth"
)

// The scenarios in this file change the store from outside while a crawl runs, or between its runs.

// recordBlow records a blow, which is a disturbance of the crawl.
func (c *chaos) recordBlow(b blow) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blows = append(c.blows, b)
}

// chance returns true with a probability of 1 in n.
func (c *chaos) chance(n int) bool { return c.randomBelow(n) == 0 }

// randomBelow draws a number from 0 to n-1.
func (c *chaos) randomBelow(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.random.IntN(n)
}

// removeLocks removes the lock files of a directory store, or the whole folder with the lock files.
func (c *chaos) removeLocks() {
	own := filepath.Join(c.store, store.Reserved)
	b := blow{from: time.Now()}
	if c.chance(2) {
		_ = os.RemoveAll(own) // may fail, if a process writes a file into the folder at the same time
	} else {
		locks, _ := filepath.Glob(filepath.Join(own, "locks", "*"))
		for _, name := range locks {
			_ = os.Remove(name) // the process that holds the lock may have removed the file
		}
	}
	b.to = time.Now()
	c.recordBlow(b)
}

// allRecorded reports whether each unfinished partition recorded an outcome in one of its last two
// attempts. Before each blow, the suite waits until this is so. Otherwise, after three attempts that record
// nothing, the crawl would enter serial mode, and further blows would quarantine URLs.
func (c *chaos) allRecorded() bool {
	k := &copies{c.store, map[string][]state{}}
	k.copyChanged(c.t)
	for _, had := range k.of {
		if d := had[len(had)-1].doc; !d.Complete && d.Stalled > 1 {
			return false
		}
	}
	return true
}

// untilDone runs the crawl until a run succeeds, and calls disturb with each run. A run may fail because
// disturb kills it, or because the test has removed a file.
func (c *chaos) untilDone(disturb func(*process)) {
	for {
		p := c.run()
		disturb(p)
		switch code, out := p.wait(); code {
		case 0:
			return
		case -1: // the process was killed
		case exitInterrupted:
			if !strings.Contains(out, "somebody removed") {
				c.t.Errorf("run: exit %d\n%s", code, out)
				return
			}
		default:
			c.t.Errorf("run: exit %d\n%s", code, out)
			return
		}
	}
}

// locksRemoved removes lock files at random instants, while two processes crawl together and
// one of them is killed now and then.
func locksRemoved(t *testing.T, r *chaosRun, salt uint64) {
	for removed := 0; removed < r.kills; salt++ {
		c := r.crawl(t, filepath.Join(t.TempDir(), "store"), salt, chaosDelay)
		var left atomic.Int32
		left.Store(2)
		work := func(first time.Duration, mortal bool) {
			defer left.Add(-1)
			time.Sleep(first)
			c.untilDone(func(p *process) {
				alive := mortal && p.outlives(c.randomDuration(2*time.Second, 8*time.Second))
				for alive && !c.allRecorded() {
					alive = p.outlives(50 * time.Millisecond)
				}
				if alive {
					c.kill(p)
				}
			})
		}
		var wg sync.WaitGroup
		wg.Go(func() { work(0, false) })
		wg.Go(func() { work(c.randomDuration(0, 2*time.Second), true) })
		here := 0
		// After each removal, the crawl waits for an extra delay before each host's next request.
		// The loop therefore pauses after every 5 removals, so that attempts make progress.
		for ; left.Load() == 2; here++ {
			time.Sleep(c.randomDuration(20*time.Millisecond, 1500*time.Millisecond))
			if here%5 == 4 {
				time.Sleep(5 * time.Second)
			}
			for left.Load() == 2 && !c.allRecorded() {
				time.Sleep(50 * time.Millisecond)
			}
			c.removeLocks()
		}
		wg.Wait()
		removed += here
		t.Logf("lock files were removed %d times", here)
		c.check(r, crawltest.OpenDir(t, c.store), nil)
	}
}

// copies holds earlier states of the checkpoints of a directory store.
type copies struct {
	root string
	of   map[string][]state // states of each checkpoint, oldest first, by key
}

type state struct {
	seen time.Time
	body []byte
	doc  manifest.Checkpoint
}

// copyChanged copies each checkpoint that has changed since the previous call.
func (k *copies) copyChanged(t *testing.T) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(k.root, "crawl="+demo.Crawl, "round=*", "fetch", "part-*", "checkpoint.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		key, err := filepath.Rel(k.root, name)
		if err != nil {
			t.Fatal(err)
		}
		s := state{seen: time.Now()}
		if s.body, err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
		if had := k.of[key]; len(had) > 0 && bytes.Equal(had[len(had)-1].body, s.body) {
			continue
		}
		if err := manifest.Decode(key, s.body, &s.doc); err != nil {
			t.Fatal(err)
		}
		k.of[key] = append(k.of[key], s)
	}
}

// copyUntilEnd copies checkpoints for the duration d, and then until allRecorded returns true, but not
// longer than the process runs. It reports whether the process still runs.
func (k *copies) copyUntilEnd(c *chaos, p *process, d time.Duration) bool {
	t := c.t
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end) || !c.allRecorded(); {
		if !p.outlives(30 * time.Millisecond) {
			return false
		}
		k.copyChanged(t)
	}
	return true
}

// put writes a checkpoint in the same way as a user who restores a copy.
func (k *copies) put(t *testing.T, key string, body []byte) {
	t.Helper()
	name := filepath.Join(k.root, key)
	crawltest.Write(t, name+".copy", string(body))
	if err := os.Rename(name+".copy", name); err != nil {
		t.Fatal(err)
	}
}

// choose draws an unfinished partition and an older state of its checkpoint. ok is false if no partition
// has an older state. Half of the drawn states are among the last four, because for these the store may have
// no object that proves that a later checkpoint existed.
func (k *copies) choose(c *chaos) (key string, older int, ok bool) {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(k.of)) {
		if had := k.of[key]; len(had) > 1 && !had[len(had)-1].doc.Complete {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return "", 0, false
	}
	key = keys[c.randomBelow(len(keys))]
	last := len(k.of[key]) - 1
	if c.chance(2) {
		return key, max(0, last-1-c.randomBelow(4)), true
	}
	return key, c.randomBelow(last), true
}

// segmentsBetween counts the segments that only the newer of two checkpoints lists.
func segmentsBetween(older, newer *manifest.Checkpoint) (n int) {
	for _, f := range newer.Files {
		if f.Dataset == "fetches" && !slices.ContainsFunc(older.Files, func(o manifest.File) bool { return o.Key == f.Key }) {
			n++
		}
	}
	return n
}

// oldCheckpoints kills a crawl at random instants and puts an older copy of a checkpoint back. The
// next attempt may refuse the old copy, but must not change anything in that case. It may accept a
// copy that lacks at most one segment, because a crash may also lose one segment.
func oldCheckpoints(t *testing.T, r *chaosRun, salt uint64) {
	refused, taken := 0, 0
	for n := 0; n < r.kills; salt++ {
		c := r.crawl(t, filepath.Join(t.TempDir(), "store"), salt, chaosDelay)
		k := &copies{c.store, map[string][]state{}}
		for {
			p := c.run()
			if n >= r.kills || !k.copyUntilEnd(c, p, c.randomDuration(1500*time.Millisecond, 3500*time.Millisecond)) {
				if code, out := p.wait(); code != 0 {
					t.Fatalf("run: exit %d\n%s", code, out)
				}
				break
			}
			c.kill(p)
			k.copyChanged(t)
			if key, older, ok := k.choose(c); ok {
				n++
				if c.putBack(k, key, older) {
					taken++
				} else {
					refused++
				}
			}
		}
		c.check(r, crawltest.OpenDir(t, c.store), nil)
	}
	t.Logf("%d older checkpoints were put back: %d were refused or not reached, %d lacked nothing that left a trace", refused+taken, refused, taken)
	if refused == 0 {
		t.Error("no older checkpoint was refused")
	}
}

// putBack puts an older checkpoint back and makes an attempt. It reports whether the attempt took the
// partition with this checkpoint. If the attempt refused it, putBack restores the newest checkpoint.
func (c *chaos) putBack(k *copies, key string, older int) (taken bool) {
	t := c.t
	t.Helper()
	had := k.of[key]
	old, last := had[older], had[len(had)-1]
	killed := time.Now()
	k.put(t, key, old.body)
	var round, partition int
	if _, err := fmt.Sscanf(strings.TrimPrefix(key, layout.CrawlDir(demo.Crawl)), "round=%d/fetch/part-%05d", &round, &partition); err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	p := c.start("task", "fetch", "--round", strconv.Itoa(round), "--partition", strconv.Itoa(partition))
	ended := !k.copyUntilEnd(c, p, c.randomDuration(1500*time.Millisecond, 3*time.Second))
	if !ended {
		c.kill(p)
	}
	now, err := os.ReadFile(filepath.Join(k.root, key))
	if err != nil {
		t.Fatal(err)
	}
	changed := !bytes.Equal(now, old.body)
	what := fmt.Sprintf("%s, put back from %v to %v", key, last.doc.Position(), old.doc.Position())
	code, out := p.wait()
	switch {
	case ended && code == exitPermanent:
		if !strings.Contains(out, key) || !strings.Contains(out, "put back") {
			t.Errorf("%s: the refusal does not name the object and the cause:\n%s", what, out)
		}
		if changed {
			t.Errorf("%s: the attempt refused the checkpoint, but changed the store", what)
		}
	case ended && (code != 0 || !changed):
		t.Fatalf("%s: task: exit %d, the checkpoint changed: %t\n%s", what, code, changed, out)
	}
	if !changed {
		k.put(t, key, last.body)
		k.copyChanged(t)
		return false
	}
	if n := segmentsBetween(&old.doc, &last.doc); n > 1 {
		t.Errorf("%s: the attempt took the partition, although the checkpoint lacks %d segments", what, n)
	}
	// The crawl may repeat requests for URLs whose outcomes were recorded after the older
	// checkpoint.
	hosts := map[string]bool{}
	for _, s := range had {
		for _, h := range s.doc.Hosts {
			hosts[h.Host] = true
		}
	}
	b := blow{from: old.seen, to: killed, hosts: hosts, committed: map[string]bool{}}
	for _, u := range c.addCommitted(b.committed, key, &old.doc) {
		hosts[u.Host] = true // needed too, because a checkpoint may list only some hosts of its partition
	}
	c.recordBlow(b)
	k.of[key] = slices.Clone(had[:older+1]) // forget the later states, because the attempt continues from the older one
	k.copyChanged(t)
	return true
}

// TestTwoRunsKeepTheirPaceWhileTheStoresOwnFolderIsRemoved crawls with two processes in one
// directory. Meanwhile the test removes the directory's .tmp again and again. Each removal frees
// every lock.
func TestTwoRunsKeepTheirPaceWhileTheStoresOwnFolderIsRemoved(t *testing.T) {
	r := &chaosRun{listen: "127.0.0.1", seed: uint64(time.Now().UnixNano()) % 1_000_000}
	t.Logf("%s=%d", chaosSeed, r.seed)
	c := r.plan(t, chaosPlan{
		store: filepath.Join(t.TempDir(), "store"), web: webOf(t, 8, 16),
		config: fmt.Sprintf(chaosConfig, chaosDelay, chaosEvery, chaosLease),
	})
	var wg sync.WaitGroup
	var left atomic.Int32
	for range 2 {
		left.Add(1)
		wg.Go(func() {
			defer left.Add(-1)
			c.untilDone(func(*process) {})
		})
	}
	removed := 0
	// The loop ends after 10 removals, because hosts wait for an extra delay after each removal.
	for ; removed < 10 && left.Load() == 2; removed++ {
		time.Sleep(c.randomDuration(100*time.Millisecond, 900*time.Millisecond))
		_ = os.RemoveAll(filepath.Join(c.store, store.Reserved)) // may fail, if a process writes a file into the folder at the same time
	}
	wg.Wait()
	if removed < 5 {
		t.Errorf("the folder was removed only %d times", removed)
	}
	if code, out := c.start("verify", "--one-clock").wait(); code != 0 {
		t.Errorf("verify: exit %d\n%s", code, out)
	}
	entries := c.stop()
	t.Logf("%d removals, %d requests", removed, len(entries))
	for _, v := range truth.CheckLog(c.web, entries, c.pace) {
		t.Errorf("the server saw: %s", v)
	}
}

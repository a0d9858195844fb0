//go:build lab

package lab

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/s3store"
	"crawlbatch.io/crawlbatch/formats/store/storetest/versitygw"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
)

// killedStore is a store whose commands a test kills.
type killedStore struct {
	t       *testing.T
	random  *rand.Rand
	address string
	b       store.Bucket
	kills   int // number of kills that the test makes
	killed  int
	limit   time.Duration    // of a command that is not killed
	byCPU   bool             // limits are of CPU time, which a busy machine does not change; to the second
	used    *os.ProcessState // of the last command
}

// newKilledStore returns a store with the objects of the directory dir. If server is not nil, the store is
// in a new bucket. kills is the number of kills unless CRAWLBATCH_CHAOS_KILLS says another.
func newKilledStore(t *testing.T, dir string, server *versitygw.Server, kills int) *killedStore {
	t.Helper()
	seed := uint64(time.Now().UnixNano()) % 1_000_000
	for name, set := range map[string]func(int){chaosSeed: func(n int) { seed = uint64(n) }, chaosKills: func(n int) { kills = n }} {
		if text := os.Getenv(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			set(n)
		}
	}
	t.Logf("%s=%d %s=%d", chaosSeed, seed, chaosKills, kills)
	k := &killedStore{t: t, random: rand.New(rand.NewPCG(seed, 0)), kills: kills, limit: time.Minute}
	if server == nil {
		k.address = filepath.Join(t.TempDir(), "store")
		if err := linkStore(dir, k.address); err != nil {
			t.Fatal(err)
		}
		k.b = crawltest.OpenDir(t, k.address)
		return k
	}
	crawltest.Setenv(t, server.Env(server.Endpoint))
	k.address = "s3://" + server.NewBucket(t) + "/crawls"
	b, err := s3store.Open(t.Context(), k.address, s3store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range storedKeys(dir) {
		body, err := fs.ReadFile(os.DirFS(dir), key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.CreateBytes(t.Context(), b, key, body); err != nil {
			t.Fatal(err)
		}
	}
	k.b = b
	return k
}

// command runs a command on the store. If it takes longer than limit, command kills it. The code of a killed command
// is -1.
func (k *killedStore) command(limit time.Duration, args ...string) (killed bool, code int, out string) {
	k.t.Helper()
	cmd := exec.Command("crawlbatch", append(args, "--store", k.address)...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	if k.byCPU {
		seconds := uint64(limit/time.Second) + 1
		if err := unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_CPU, &unix.Rlimit{Cur: seconds, Max: seconds}, nil); err != nil {
			k.t.Fatal(err)
		}
		limit = time.Hour
	}
	timer := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	timer.Stop()
	k.used = cmd.ProcessState
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return true, -1, said.String()
	}
	if err != nil && cmd.ProcessState.ExitCode() < 0 {
		k.t.Fatal(err)
	}
	return false, cmd.ProcessState.ExitCode(), said.String()
}

// killAndRepeat runs a command until it has been killed at k.kills random instants, and then to its end.
// took is the time that the command takes. After each kill it calls after.
func (k *killedStore) killAndRepeat(took time.Duration, after func(), args ...string) (out string) {
	k.t.Helper()
	for k.killed < k.kills {
		killed, code, out := k.command(time.Duration(k.random.Int64N(int64(took))), args...)
		if !killed && code != exitDone {
			k.t.Fatalf("crawlbatch %s, after %d kills: exit %d\n%s", strings.Join(args, " "), k.killed, code, out)
		}
		if killed {
			k.killed++
			after()
		} else {
			took = took*4/5 + 20*time.Millisecond // less is left to do
		}
	}
	_, code, out := k.command(k.limit, args...)
	if code != exitDone {
		k.t.Fatalf("crawlbatch %s, at last: exit %d\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

// killUntilDone runs a command until it ends by itself, and kills it at random instants until then, at most
// k.kills times.
func (k *killedStore) killUntilDone(took time.Duration, after func(), args ...string) (out string) {
	k.t.Helper()
	for {
		limit := k.limit
		if k.killed < k.kills {
			limit = time.Duration(k.random.Int64N(int64(took)))
		}
		killed, code, out := k.command(limit, args...)
		if !killed && code != exitDone {
			k.t.Fatalf("crawlbatch %s, after %d kills: exit %d\n%s", strings.Join(args, " "), k.killed, code, out)
		}
		if !killed {
			return out
		}
		k.killed++
		after()
	}
}

func TestCompactIsKilledAtRandomInstants(t *testing.T) { killCompact(t, nil) }

func TestS3CompactIsKilledAtRandomInstants(t *testing.T) { killCompact(t, versitygw.Start(t)) }

func killCompact(t *testing.T, server *versitygw.Server) {
	const month = "2026-10"
	k := newKilledStore(t, crawltest.CrawlTwice(t, mustRun), server, 12)
	published := crawltest.ContentOf(t, k.b, "tables/")
	began := time.Now()
	args := []string{"compact", "--month", month}
	if _, code, out := k.command(time.Minute, args...); code != exitDone {
		t.Fatalf("exit %d\n%s", code, out)
	}
	took := time.Since(began)
	check := func() {
		t.Helper()
		if diff := cmp.Diff(published, crawltest.ContentOf(t, k.b, "tables/")); diff != "" {
			t.Fatalf("after %d kills, published parts changed:\n%s", k.killed, diff)
		}
		if copied, err := openCopied(t.Context(), k.b, month); err != nil || copied != 2 {
			t.Fatalf("after %d kills, views read a copy of %d rounds of 2: %v", k.killed, copied, err)
		}
	}
	k.killAndRepeat(took, check, args...)
	check()
	if _, code, out := k.command(time.Minute, "verify", "--month", month); code != exitDone {
		t.Errorf("verify: exit %d\n%s", code, out)
	}
	// A drop finds the copy that is read, and may find copies of killed runs, which stay for a day.
	k.killed = 0
	k.killAndRepeat(took/2, func() {
		if _, err := openCopied(t.Context(), k.b, month); err != nil {
			t.Fatalf("after %d kills of a drop: %v", k.killed, err)
		}
	}, append(args, "--drop")...)
	if copied, err := openCopied(t.Context(), k.b, month); err != nil || copied != 0 {
		t.Errorf("after a drop, views read the copies of %d rounds: %v", copied, err)
	}
	if diff := cmp.Diff(published, crawltest.ContentOf(t, k.b, "tables/")); diff != "" {
		t.Errorf("published parts changed:\n%s", diff)
	}
}

// openCopied opens every file that views read, and returns of how many rounds they read the copy.
func openCopied(ctx context.Context, b store.Bucket, crawl string) (copied int, err error) {
	sealed, err := crawltest.SealedFiles(ctx, b, crawl)
	if err != nil {
		return 0, err
	}
	sealed, notes, err := roundstate.WithCompacted(ctx, b, sealed)
	if err != nil {
		return 0, err
	}
	if len(notes) > 0 {
		return 0, fmt.Errorf("%q", notes)
	}
	for _, s := range sealed {
		if !slices.ContainsFunc(s.Files, func(f manifest.File) bool { return strings.HasPrefix(f.Key, "tables/fetches/") }) {
			copied++
		}
		for _, f := range s.Files {
			o, err := b.Open(ctx, f.Key)
			if err != nil {
				return 0, err
			}
			if err := o.Close(); err != nil {
				return 0, err
			}
		}
	}
	return copied, nil
}

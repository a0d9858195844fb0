package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/room"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/k8s"
	"crawlbatch.io/crawlbatch/stages"
)

// The kubelet asks a pod to end as soon as its scratch files exceed the limit. If the pod then ended as one that is
// interrupted for another reason, Kubernetes would repeat it for ever, without a failure.
func TestATaskWhoseScratchFilesExceedTheLimitFails(t *testing.T) {
	dir := t.TempDir()
	store, seeds, conf := filepath.Join(dir, "store"), filepath.Join(dir, "urls.txt"), filepath.Join(dir, "c.yaml")
	crawltest.Write(t, seeds, "http://a.test/\nhttp://a.test/b\nhttp://a.test/c\n")
	crawltest.Write(t, conf, "user_agent: roombot/1.0 (+https://example.org/bot)\npoliteness: {delay: 20s}\nfetch: {slots: 1, max_body: 1MiB}\n")
	mustRun(t, "plan", "--month", "2026-11", "--source", seeds, "--config", conf, "--connect-to", "::"+crawltest.Web(t), "--store", store)
	const limit = 8 << 20
	for n, c := range []struct {
		what         string
		limit, files int // in bytes; the files appear while the task fetches
		signal       bool
		exit         int
		says         string // in the termination message
		class        string // of the attempt
	}{
		{"asked to end, below the limit", limit, 1 << 20, true, exitInterrupted, "interrupted", manifest.ClassInterrupted},
		{"asked to end, above the limit", limit, 2 * limit, true, exitInternal, "more than the 8 MiB that CRAWLBATCH_SCRATCH allows: raise kubernetes.resources.fetch.scratch", manifest.ClassDiskFull},
		{"above the limit", limit, 2 * limit, false, exitInternal, "more than the 8 MiB", manifest.ClassDiskFull},
		{"a limit that is too low to begin", 512 << 10, 0, false, exitInternal, "1 MiB of scratch space are needed", manifest.ClassDiskFull},
	} {
		t.Run(c.what, func(t *testing.T) {
			temp, log := t.TempDir(), filepath.Join(t.TempDir(), "termination")
			cmd := exec.Command("crawlbatch", "task", "fetch", "--month", "2026-11", "--round", "0", "--store", store, "--termination-log", log)
			cmd.Env = append(os.Environ(), "TMPDIR="+temp, fmt.Sprintf("%s=%d", room.Variable, c.limit), room.Remedy+"=kubernetes.resources.fetch.scratch", k8s.PodName+"=pod")
			var said bytes.Buffer
			cmd.Stderr = &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			kill := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
			defer kill.Stop()
			if c.files > 0 {
				for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
					if begun, _ := filepath.Glob(filepath.Join(temp, "*", "task-*", "*")); len(begun) > 0 {
						break
					}
				}
				crawltest.Write(t, filepath.Join(temp, "files"), strings.Repeat("x", c.files))
			}
			if c.signal {
				if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
			}
			_ = cmd.Wait()
			message, err := os.ReadFile(log)
			if err != nil || cmd.ProcessState.ExitCode() != c.exit || !strings.Contains(string(message), c.says) {
				t.Errorf("exit %d, want %d; it says %q, want %q (%v)\n%s", cmd.ProcessState.ExitCode(), c.exit, message, c.says, err, &said)
			}
			var attempt manifest.Attempt
			if _, _, err := manifest.Load(t.Context(), crawltest.OpenDir(t, store), layout.Attempt("2026-11", 0, "fetch", 0, n+1), &attempt); err != nil || attempt.Class != c.class {
				t.Errorf("the attempt is recorded as %+v, %v, want the class %s", attempt, err, c.class)
			}
		})
	}
}

func TestOnlyTheOwnLimitOfScratchSpaceCountsAsAFailure(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv(room.Variable, "1048576")
	own := room.Need(2 << 20)
	for _, c := range []struct {
		err  error
		want int
	}{
		{fmt.Errorf("fetch: %w", own), exitInternal},
		{errors.Join(own, stages.ErrInterrupted), exitInternal},
		{fmt.Errorf("1 of 2 tasks failed: %w: %w", own, jobs.ErrTasksFailed), exitTasksFailed},
		{fmt.Errorf("write: %w", syscall.ENOSPC), exitInterrupted},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%v: exit %d, want %d", c.err, got, c.want)
		}
	}
}

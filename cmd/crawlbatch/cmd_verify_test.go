package main

import (
	"bufio"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
)

// The quarantine is killed while it waits for the reader of its output.
func TestAKilledQuarantineIsRunAgain(t *testing.T) {
	dir := t.TempDir()
	address, urls := filepath.Join(dir, "store"), filepath.Join(dir, "urls.txt")
	crawltest.Write(t, urls, "http://a.test/\n")
	if _, said, code := runCommandLine(t, "plan", "--month", "2026-11", "--source", urls, "--store", address, "--connect-to", "::127.0.0.1:1"); code != exitDone {
		t.Fatal(said)
	}
	b, all := crawltest.OpenDir(t, address), 400
	long := strings.Repeat("x", 200)
	for n := range all {
		if _, err := store.CreateBytes(t.Context(), b, fmt.Sprintf("crawl=2026-11/%s-%d", long, n), []byte("stray")); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"verify", "--month", "2026-11", "--quarantine", "--yes", "--store", address}
	killed := exec.Command("crawlbatch", args...)
	out, err := killed.StdoutPipe()
	if err == nil {
		err = killed.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Error(err)
	}
	_ = killed.Process.Kill()
	_ = killed.Wait()
	if a, _, err := ledger.LoadActive(t.Context(), b, "2026-11"); err != nil || a.Done {
		t.Fatalf("the killed quarantine holds nothing: %+v, %v", a, err)
	}
	if left := len(crawltest.ContentOf(t, b, "crawl=2026-11/"+long)); left == 0 || left == all {
		t.Fatalf("%d of %d strays are left after the kill", left, all)
	}
	if _, said, code := runCommandLine(t, args...); code != exitDone {
		t.Fatal(said)
	}
	if left, moved := len(crawltest.ContentOf(t, b, "crawl=2026-11/"+long)), len(crawltest.ContentOf(t, b, "quarantine/")); left > 0 || moved != all {
		t.Errorf("%d strays are left, %d are in quarantine", left, moved)
	}
	if a, _, err := ledger.LoadActive(t.Context(), b, "2026-11"); err != nil || !a.Done {
		t.Errorf("the store is still held: %+v, %v", a, err)
	}
}

package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
)

func TestPruneKeepsWhatTheNewestMonthFroze(t *testing.T) {
	dir := t.TempDir()
	store, file, urls := filepath.Join(dir, "store"), filepath.Join(dir, "c.yaml"), filepath.Join(dir, "urls.txt")
	t.Setenv("FOLLOW", "none") // `prune` needs no variable that holds a secret, but the config must be valid
	t.Setenv("PROXY", "http://127.0.0.1:1")
	crawltest.Write(t, file, "retention: {working_data_days: 0, raw: 0, metadata: 0}\nfrontier: {follow: \"${FOLLOW}\"}\nfetch: {proxy: \"${PROXY}\"}\n")
	crawltest.Write(t, urls, "http://a.test/\n")
	retention := func(file string) [3]int {
		t.Helper()
		c := &common{store: store, config: file, out: io.Discard, err: io.Discard}
		_, cfg, err := c.openRetention(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return [3]int{cfg.Retention.WorkingDays, cfg.Retention.Raw, cfg.Retention.Metadata}
	}
	if got := retention(""); got != [3]int{35, 12, 18} {
		t.Errorf("in an empty store: %v", got)
	}
	if _, said, code := runCommandLine(t, "plan", "--month", "2025-11", "--source", urls, "--store", store, "--config", file, "--connect-to", "::127.0.0.1:1"); code != exitDone {
		t.Fatal(said)
	}
	if err := os.Unsetenv("PROXY"); err != nil {
		t.Fatal(err)
	}
	if got := retention(""); got != [3]int{0, 0, 0} {
		t.Errorf("without --config: %v", got)
	}
	crawltest.Write(t, file, "retention: {working_data_days: 7, raw: 15, metadata: 20}\n")
	if got := retention(file); got != [3]int{7, 15, 20} {
		t.Errorf("with --config: %v", got)
	}
}

package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/stages/simweb"
)

// TestASIGHUPReloadsPolitenessInARunningTask crawls two hosts. A SIGHUP with a broken file must change
// nothing. A SIGHUP with a file that stops one host and speeds up the other must take effect within seconds.
func TestASIGHUPReloadsPolitenessInARunningTask(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	cfg := simweb.Default()
	cfg.Hosts, cfg.PagesPerHost, cfg.FaultShare, cfg.SeedShare, cfg.Robots = 2, 150, 0, 1, false
	web, err := simweb.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	record := simweb.NewLog(nil)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = simweb.NewServer(web, record).Serve(t.Context(), ln) }()

	dir := t.TempDir()
	var seeds strings.Builder
	for u := range web.Seeds() {
		seeds.WriteString(u + "\n")
	}
	file := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file("urls.txt", seeds.String())
	file("c.yaml", "politeness: {delay: 500ms}\n")
	flags := []string{"--month", "2026-11", "--config", "c.yaml", "--connect-to", "::" + ln.Addr().String()}
	plan := exec.Command("crawlbatch", append([]string{"plan", "--source", "urls.txt"}, flags...)...)
	plan.Dir = dir
	if out, err := plan.CombinedOutput(); err != nil {
		t.Fatalf("plan: %v\n%s", err, out)
	}
	run := exec.Command("crawlbatch", append([]string{"run"}, flags...)...)
	var stdout, stderr bytes.Buffer
	run.Dir, run.Stdout, run.Stderr = dir, &stdout, &stderr
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	t.Cleanup(func() { _ = run.Process.Kill() })

	seen := func(n int) {
		t.Helper()
		for range 600 {
			if len(record.Entries()) >= n {
				return
			}
			select {
			case err := <-ended:
				t.Fatalf("run ended: %v\n%s", err, stderr.String())
			case <-time.After(50 * time.Millisecond):
			}
		}
		t.Fatalf("%d requests in 30s, want %d", len(record.Entries()), n)
	}
	hangup := func(text string) time.Time {
		t.Helper()
		file("c.yaml", text)
		if err := run.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		return time.Now()
	}
	seen(6)
	hangup("politeness: {delay: soon}\n")
	seen(10)
	at := hangup(fmt.Sprintf("politeness:\n  delay: 10ms\n  domains:\n    %s: {stop: asked by the owner}\n", web.Host(0)))
	select {
	case err := <-ended:
		if err != nil {
			t.Fatalf("run: %v\n%s", err, stderr.String())
		}
	case <-time.After(60 * time.Second):
		t.Fatalf("run still runs a minute after the reload\n%s", stderr.String())
	}
	const soon = 3 * time.Second
	last, hurried := map[string]time.Time{}, 0
	for _, e := range record.Entries() {
		gap := e.Time.Sub(last[e.Host])
		if before, ok := last[e.Host]; ok && e.Time.Before(at) && gap < 490*time.Millisecond {
			t.Errorf("%s%s came %v after the request before at %v, before the reload", e.Host, e.Path, gap, before)
		}
		if e.Time.After(at.Add(soon)) && e.Host == web.Host(0) {
			t.Errorf("%s%s was asked for %v after its host was stopped", e.Host, e.Path, e.Time.Sub(at))
		}
		if e.Time.After(at) && gap < 450*time.Millisecond {
			hurried++
		}
		last[e.Host] = e.Time
	}
	if hurried < 20 {
		t.Errorf("%d requests came faster than before, the last %v after the reload", hurried, last[web.Host(1)].Sub(at))
	}
	if out := stdout.String(); !strings.Contains(out, "stopped") {
		t.Errorf("no URL ended as stopped:\n%s", out)
	}
	if !strings.Contains(stderr.String(), worker.StillInForce) {
		t.Errorf("the log does not report the broken file:\n%s", stderr.String())
	}
}

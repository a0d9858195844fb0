package main

import (
	"bytes"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/formats/schema"
)

func TestVersionSaysHowTheBinaryWasBuilt(t *testing.T) {
	var out bytes.Buffer
	err := usage.PrintVersion(&out, version, &debug.BuildInfo{Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123abc"}, {Key: "vcs.time", Value: "2026-11-22T06:00:00Z"}, {Key: "vcs.modified", Value: "true"},
	}})
	if want := "\ncommit: 0123abc, 2026-11-22T06:00:00Z, with uncommitted changes\n"; err != nil || !strings.Contains(out.String(), want) {
		t.Errorf("%v\n%s", err, out.String())
	}
	out.Reset()
	err = usage.PrintVersion(&out, "v1.2.3", &debug.BuildInfo{Main: debug.Module{Path: "crawlbatch.io/crawlbatch", Version: "v1.2.3", Sum: "h1:abc="}})
	if want := "crawlbatch v1.2.3\nmodule: crawlbatch.io/crawlbatch@v1.2.3 h1:abc=\n"; err != nil || !strings.HasPrefix(out.String(), want) {
		t.Errorf("%v\n%s", err, out.String())
	}
	short, _, code := runCommandLine(t, "--version")
	long, _, code2 := runCommandLine(t, "version")
	if code != 0 || code2 != 0 || !strings.HasPrefix(long, short) || short != "crawlbatch "+version+"\n" || version == "" {
		t.Errorf("--version (exit %d): %sversion (exit %d): %s", code, short, code2, long)
	}
	if !strings.Contains(long, fmt.Sprintf("\nformat of stored data: %d\n", schema.FormatVersion)) || !strings.Contains(long, "\nbuilt with: go1.") {
		t.Errorf("version: %s", long)
	}
}

func TestShellsCompleteStagesDialectsAndFlags(t *testing.T) {
	for line, want := range map[string][]string{
		"task f":                      {"fetch", "frontier"},
		"retry --stage ":              {"fetch", "merge", "digest", "similar", "cluster", "dedup", "rank", "frontier", "publish"},
		"k8s render --stage ":         {"fetch", "merge", "digest", "similar", "cluster", "dedup", "rank", "frontier", "publish"},
		"views --dialect ":            {"duckdb", "athena", "trino", "spark", "markdown"},
		"run --executor ":             {"local", "kubernetes"},
		"verify --output ":            {"table", "json"},
		"status --log-format ":        {"text", "json"},
		"views --all-m":               {"--all-months\tevery crawl of the store, reparses included"},
		"simweb --fault-classes quic": {"quick", "retried", "slow"},
	} {
		words := strings.Split(line, " ")
		out, _, code := runCommandLine(t, append([]string{"__complete"}, words...)...)
		got := strings.Split(strings.TrimSpace(out), "\n")
		got = got[:len(got)-1] // the last line is a directive for the shell
		if code != 0 || !slices.Equal(got, want) {
			t.Errorf("%q completes to %q (exit %d), want %q", line, got, code, want)
		}
	}
	help, _, _ := runCommandLine(t, "--help")
	completion, _, _ := runCommandLine(t, "completion", "--help")
	if !strings.Contains(help, "\n  completion ") {
		t.Errorf("completion is not in the help:\n%s", help)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script, _, code := runCommandLine(t, "completion", shell)
		if code != 0 || len(script) < 1000 || !strings.Contains(completion, "\n  "+shell+" ") {
			t.Errorf("%s: exit %d, %d bytes of script", shell, code, len(script))
		}
	}
}

func TestWhoeverWaitsForS3IsTold(t *testing.T) {
	var said bytes.Buffer
	c := &common{err: &said}
	c.stillTrying("bucket.example:9000", time.Date(2026, 11, 22, 14, 3, 12, 0, time.UTC))
	if want := "crawlbatch: bucket.example:9000 does not answer: still trying until 14:03:12\n"; said.String() != want {
		t.Errorf("%q, want %q", said.String(), want)
	}
}

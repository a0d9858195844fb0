package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
)

// TestTheFullFileSystemIsNamed lets commands run out of room in the store, and then in the scratch directory.
func TestTheFullFileSystemIsNamed(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	small := func() string {
		dir := t.TempDir()
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=16m"); err != nil {
			t.Skipf("no small file system can be mounted here, which takes root: %v", err)
		}
		t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
		return dir
	}
	// fill leaves some room on a file system, and returns a function that makes all room again.
	fill := func(dir string, left int) func() {
		name := filepath.Join(dir, "filler")
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		size, block := int64(0), make([]byte, 4<<10)
		for ; err == nil; size += int64(len(block)) {
			_, err = f.Write(block)
		}
		if !errors.Is(err, syscall.ENOSPC) || f.Truncate(size-int64(left)) != nil {
			t.Fatal(err)
		}
		return func() { os.Remove(name) }
	}
	disk, temp, dir := small(), small(), t.TempDir()
	addr, store, seeds, conf := crawltest.Web(t), filepath.Join(disk, "store"), filepath.Join(dir, "urls.txt"), filepath.Join(dir, "c.yaml")
	crawltest.Write(t, seeds, "http://a.test/\nhttp://b.test/\n")
	crawltest.Write(t, conf, crawltest.Config)
	t.Setenv("TMPDIR", temp)
	mustRun(t, "plan", "--month", "2026-11", "--source", seeds, "--config", conf, "--connect-to", "::"+addr, "--store", store)
	mustRun(t, "run", "--month", "2026-11", "--rounds", "1", "--store", store)
	many := filepath.Join(dir, "many.txt")
	var lines strings.Builder
	for n := range 200_000 {
		fmt.Fprintf(&lines, "http://h%d.test/%x\n", n%5000, n*7919)
	}
	crawltest.Write(t, many, lines.String())
	for n, args := range [][]string{
		{"reparse", "--month", "2026-11", "--as", "2026-11r%d", "--store", store},
		{"plan", "--month", "2027-0%d", "--source", many, "--connect-to", "::" + addr, "--store", store},
	} {
		for i, tc := range []struct {
			full, says, not string
			left            int
		}{{temp, "the scratch directory " + temp, "store is full", 4 << 10}, {disk, "store is full", "scratch", 64 << 10}} {
			empty := fill(tc.full, tc.left)
			given := slices.Clone(args)
			for k, a := range args {
				given[k] = strings.Replace(a, "%d", fmt.Sprint(1+2*n+i), 1)
			}
			ctx, stop := context.WithTimeout(t.Context(), 5*time.Second) // a task waits for room
			var said bytes.Buffer
			code := execute(ctx, given, strings.NewReader(""), &said, &said)
			stop()
			if !strings.Contains(said.String(), tc.says) || strings.Contains(said.String(), tc.not) {
				t.Errorf("%q: exit %d, %s\nwant %q", given, code, &said, tc.says)
			}
			empty()
		}
	}
}

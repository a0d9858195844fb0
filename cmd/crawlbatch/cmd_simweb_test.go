package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/stages/simweb"
)

// fifo makes a named pipe. At the end of the test, it opens the pipe, so that readers and writers that still
// wait for the other side end.
func fifo(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "seeds")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil {
			_ = f.Close()
		}
	})
	return name
}

// inTime fails the test if f hangs.
func inTime(t *testing.T, f func() error) error {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- f() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(patience):
		t.Fatal("it hangs")
		return nil
	}
}

func TestSeedsGoIntoAPipe(t *testing.T) {
	cfg := simweb.Default()
	cfg.Hosts = 5000 // the seeds do not fit into a pipe's buffer
	web, err := simweb.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	for u := range web.Seeds() {
		fmt.Fprintln(&want, u)
	}
	for name, take := range map[string]int64{"all": int64(want.Len()), "the head": 10} {
		seeds := fifo(t)
		got := make(chan []byte, 1)
		go func() {
			f, err := os.Open(seeds)
			if err != nil {
				got <- nil
				return
			}
			defer f.Close()
			text, _ := io.ReadAll(io.LimitReader(f, take))
			got <- text
		}()
		if err := inTime(t, func() error { return web.WriteSeeds(t.Context(), seeds, false) }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if text := <-got; !bytes.Equal(text, want.Bytes()[:take]) {
			t.Errorf("%s: the reader got %d bytes, want %d", name, len(text), take)
		}
		if info, err := os.Stat(seeds); err != nil || info.Mode().IsRegular() {
			t.Errorf("%s: the pipe was replaced: %v", name, err)
		}
	}
}

func TestSimwebEndsThoughNobodyReadsItsSeeds(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var out bytes.Buffer
	name := fifo(t)
	code := 0
	_ = inTime(t, func() error {
		code = execute(ctx, []string{"simweb", "--hosts", "2", "--listen", "127.0.0.1:0", "--seeds", name}, nil, &out, &out)
		return nil
	})
	if code != exitDone || out.Len() != 0 {
		t.Errorf("exit %d, %s", code, out.String())
	}
}

package room

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// scratch sets TMPDIR to a directory with files of the given sizes, and the limit in bytes.
func scratch(t *testing.T, limit string, sizes ...int) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv(Variable, limit)
	t.Setenv(Remedy, "kubernetes.resources.merge.scratch")
	for i, n := range sizes {
		name := filepath.Join(dir, "task", strings.Repeat("x", i+1))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(strings.Repeat("r", n)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFreeSpaceIsAtMostWhatTheLimitLeaves(t *testing.T) {
	dir := scratch(t, "1048576", 300<<10, 300<<10)
	if free, err := Free(dir); err != nil || free < 400<<10 || free > 448<<10 {
		t.Errorf("%d bytes of 1 MiB are free after files of 600 KiB, %v", free, err)
	}
	if err := Need(0); err != nil {
		t.Error(err)
	}
	if err := Need(64 << 10); err != nil {
		t.Error(err)
	}
	err := Need(2 << 20)
	if !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), "2 MiB of scratch space are needed") || !strings.HasSuffix(err.Error(), "raise kubernetes.resources.merge.scratch") {
		t.Errorf("2 MiB more: %v", err)
	}
	t.Setenv(Variable, "262144")
	if free, err := Free(dir); err != nil || free != 0 {
		t.Errorf("%d bytes are free beyond the limit, %v", free, err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if used(link) != used(dir) {
		t.Errorf("%d bytes are used in a directory, %d through a link", used(dir), used(link))
	}
	t.Setenv(Variable, "")
	if free, err := Free(dir); err != nil || free < 1<<20 || Need(1<<60) != nil {
		t.Errorf("without a limit %d bytes are free, %v", free, err)
	}
}

func TestFilesBeyondTheLimitAreAFullDisk(t *testing.T) {
	dir := scratch(t, "1048576", 3<<20)
	err := Need(0)
	if !errors.Is(err, ErrLimit) || !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	for _, part := range []string{dir, " MiB, more than the 1 MiB that CRAWLBATCH_SCRATCH allows", "raise kubernetes.resources.merge.scratch"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
}

func TestAnUnreadableLimitIsReported(t *testing.T) {
	for text, wrong := range map[string]bool{"": false, "1": false, "4Gi": true, "0": false, "-1": true} {
		t.Setenv(Variable, text)
		if err := Check(); (err != nil) != wrong {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestWatchTellsOnceWhenTheFilesExceedTheLimit(t *testing.T) {
	dir := scratch(t, "1048576", 1<<10)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	told := make(chan error, 2)
	go Watch(ctx, func(err error) { told <- err })
	select {
	case err := <-told:
		t.Fatalf("below the limit: %v", err)
	case <-time.After(10 * time.Millisecond):
	}
	if err := os.WriteFile(filepath.Join(dir, "more"), make([]byte, 2<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := <-told; !errors.Is(err, ErrLimit) {
		t.Errorf("%v", err)
	}
	t.Setenv(Variable, "")
	Watch(t.Context(), func(err error) { t.Errorf("without a limit: %v", err) })
}

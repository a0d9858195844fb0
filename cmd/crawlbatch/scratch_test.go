package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestScratchOfDeadProcessesIsRemovedAndThatOfLivingOnesIsNot(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dead := filepath.Join(os.TempDir(), scratchPrefix+"dead")
	if err := os.Mkdir(dead, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dead, scratchLock), "")
	write(t, filepath.Join(dead, "segment"), "rows")
	one, removeOne, err := newScratch()
	if err != nil {
		t.Fatal(err)
	}
	two, removeTwo, err := newScratch()
	if err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{dead: false, one: true, two: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %t", dir, err, want)
		}
	}
	removeOne()
	removeOne()
	removeTwo()
	if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
		t.Errorf("%d directories are left", len(left))
	}
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "absent"))
	if _, _, err := newScratch(); exitCode(err) != exitUsage {
		t.Errorf("without a TMPDIR: %v", err)
	}
}

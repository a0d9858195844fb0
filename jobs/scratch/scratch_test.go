package scratch

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestScratchOfDeadProcessesIsRemovedAndThatOfLivingOnesIsNot(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dead := filepath.Join(os.TempDir(), prefix+"dead")
	if err := os.Mkdir(dead, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dead, lockName), []byte(""), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dead, "segment"), []byte("rows"), 0o644); err != nil {
		t.Fatal(err)
	}
	one, removeOne, err := New()
	if err != nil {
		t.Fatal(err)
	}
	two, removeTwo, err := New()
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
	if _, _, err := New(); !errors.Is(err, ErrUnavailable) {
		t.Errorf("without a TMPDIR: %v", err)
	}
}

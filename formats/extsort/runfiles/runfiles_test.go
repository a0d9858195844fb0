package runfiles

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestRowsAreMergedFewTimes adds files of one row each, and counts how many rows are written again.
func TestRowsAreMergedFewTimes(t *testing.T) {
	dir := t.TempDir()
	create := func() *os.File {
		file, err := os.CreateTemp(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	var f Files
	const n = 10_000
	rows, written := map[*os.File][2]int{}, 0 // the rows of a file: the first, and after the last
	for i := range n {
		if err := f.Compact(func(files []*os.File) (*os.File, error) {
			first, next := rows[files[0]][0], rows[files[0]][0]
			for _, file := range files {
				if rows[file][0] != next {
					t.Fatalf("row %d follows row %d", rows[file][0], next-1)
				}
				next = rows[file][1]
			}
			merged := create()
			rows[merged] = [2]int{first, next}
			written += next - first
			return merged, nil
		}); err != nil {
			t.Fatal(err)
		}
		file := create()
		rows[file] = [2]int{i, i + 1}
		if f.Add(file); len(f.All) > Max {
			t.Fatalf("%d files", len(f.All))
		}
	}
	next := 0
	for _, file := range f.All {
		if rows[file][0] != next {
			t.Fatalf("row %d follows row %d", rows[file][0], next-1)
		}
		next = rows[file][1]
	}
	if next != n {
		t.Errorf("%d rows, want %d", next, n)
	}
	if most := 3 * n; written > most {
		t.Errorf("%d rows were merged %d times, at most %d expected", n, written, most)
	}
	left, err := filepath.Glob(dir + "/*")
	if err != nil || len(left) != len(f.All) {
		t.Errorf("%d files in the directory, want %d: %v", len(left), len(f.All), err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if left, err = filepath.Glob(dir + "/*"); err != nil || len(left) > 0 {
		t.Errorf("after Close, %d files are left: %v", len(left), err)
	}
}

func TestAFailedMergeKeepsTheFiles(t *testing.T) {
	var f Files
	for range Max {
		file, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		f.Add(file)
	}
	full := errors.New("disk full")
	if err := f.Compact(func([]*os.File) (*os.File, error) { return nil, full }); err != full || len(f.All) != Max {
		t.Errorf("%d files: %v", len(f.All), err)
	}
	if err := f.Close(); err != nil || len(f.All) > 0 {
		t.Errorf("%d files: %v", len(f.All), err)
	}
}

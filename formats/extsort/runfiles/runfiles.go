// Package runfiles keeps the sorted scratch files of a sorter, and chooses which of them to merge when they are too many.
//
// It merges the files of one size, as size-tiered compaction of log-structured merge trees does. Sorting a row therefore
// merges it log(n) times with n files. If each merge took all files, it would be n / Max times.
package runfiles

import (
	"errors"
	"os"
)

// Max is the largest number of files, at least 8. It bounds open files and the buffers of their readers. A process that
// may open few files lowers it before it sorts.
var Max = 128

// Files are sorted files. The rows of a file were added before the rows of the next one.
type Files struct {
	All    []*os.File
	merged []int // how often the rows of each file were merged; it never grows from one file to the next
}

// Add adds a file.
func (f *Files) Add(file *os.File) { f.add(file, 0) }

func (f *Files) add(file *os.File, merged int) {
	f.All, f.merged = append(f.All, file), append(f.merged, merged)
}

// Compact does nothing if there are less than Max files. Otherwise it replaces the newest files by the file that merge
// returns, and removes them. The argument of merge are these files, in their order.
func (f *Files) Compact(merge func(files []*os.File) (*os.File, error)) error {
	if len(f.All) < Max {
		return nil
	}
	least := Max / 4 // number of files that the merge takes at least
	from := len(f.All) - 1
	for from > 0 && (f.merged[from-1] == f.merged[from] || len(f.All)-from < least) {
		from--
	}
	file, err := merge(f.All[from:])
	if err != nil {
		return err
	}
	merged := f.merged[from] + 1
	err = f.remove(from)
	f.add(file, merged)
	return err
}

// Close closes and removes all files.
func (f *Files) Close() error { return f.remove(0) }

func (f *Files) remove(from int) (err error) {
	for _, file := range f.All[from:] {
		err = errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	f.All, f.merged = f.All[:from], f.merged[:from]
	return err
}

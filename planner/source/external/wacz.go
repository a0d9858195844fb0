package external

import (
	"archive/zip"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
)

// maxDirectory bounds how many bytes of a zip archive are read for its directory. An entry has about a
// hundred bytes and takes a few hundred in memory.
const maxDirectory = 16 << 20

// errDirectory means that the directory of a zip archive is longer than maxDirectory.
var errDirectory = fmt.Errorf("its directory is longer than %d MiB", maxDirectory>>20)

// member is a WARC file inside a WACZ file. Its bytes stand in the WACZ file as they are, so a record can be
// read alone there.
type member struct {
	name         string
	offset, size int64
}

// members returns the WARC files in a WACZ file (WACZ 1.1.1, a zip archive whose WARC files are stored without
// compression), in the order of their offsets. Each text of broken says why a member, or the whole file, is
// not read. The error is one of in.
func members(in io.ReaderAt, size int64) (found []member, broken []string, err error) {
	directory := &bounded{in: in, left: maxDirectory}
	z, err := zip.NewReader(directory, size)
	if directory.err != nil {
		return nil, nil, directory.err
	}
	if err != nil {
		return nil, []string{fmt.Sprintf("it is a WACZ file that cannot be read (%v): get it again, or unpack it", err)}, nil
	}
	directory.left = 1 << 62 // DataOffset reads 30 bytes of each member that counts
	for _, f := range z.File {
		name := fmt.Sprintf("%.200q", f.Name)
		switch {
		case hasEnding(f.Name, ".wacz"):
			broken = append(broken, name+" in it is a WACZ file of its own: unpack it")
			continue
		case Refused(f.Name) != "":
			broken = append(broken, fmt.Sprintf("of %s in it: %s", name, Refused(f.Name)))
			continue
		case !isReadable(f.Name):
			continue // an index, a list of pages, a log
		case f.Method != zip.Store || f.Flags&1 != 0:
			broken = append(broken, name+" in it is compressed again or encrypted, so that no record can be read alone: unpack it")
			continue
		}
		at, err := f.DataOffset()
		if directory.err != nil {
			return nil, nil, directory.err
		}
		if length := int64(f.CompressedSize64); err != nil || length < 0 || length > size-at {
			broken = append(broken, name+" in it lies beyond its end: get it again")
		} else {
			found = append(found, member{f.Name, at, length})
		}
	}
	slices.SortStableFunc(found, func(a, b member) int { return cmp.Compare(a.offset, b.offset) })
	end := int64(0)
	found = slices.DeleteFunc(found, func(m member) bool {
		if m.offset < end { // a hostile archive may name the same bytes thousands of times
			broken = append(broken, fmt.Sprintf("%.200q in it overlaps another file", m.name))
			return true
		}
		end = m.offset + m.size
		return false
	})
	if len(found) == 0 && len(broken) == 0 {
		broken = []string{"it is a zip archive without a WARC file"}
	}
	return found, broken, nil
}

// bounded reads at most left bytes of a file, and keeps the error of the file, to tell it from faults in the
// file's content.
type bounded struct {
	in   io.ReaderAt
	left int64
	err  error
}

// ReadAt implements io.ReaderAt.
func (b *bounded) ReadAt(p []byte, off int64) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, errDirectory
	}
	n, err := b.in.ReadAt(p, off)
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}

package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Files returns the source that a name describes: a file, a directory, a pattern of file names, or
// "-" for stdin, perhaps with options (see ErrOption). A directory stands for all files below it
// whose names do not start with "." or "_". It may hold symbolic links to files, as a volume of
// Kubernetes does. Errors wrap ErrMissing, ErrOption or ErrWhere.
func Files(name string, stdin io.Reader) (Source, error) {
	path, how, err := splitName(name)
	if err != nil {
		return nil, fmt.Errorf("source %q: %w", name, err)
	}
	if path == "-" {
		return &files{name: name, how: how, in: standardInput{stdin}}, nil
	}
	paths, err := expand(path)
	if err == nil && len(paths) == 0 {
		err = ErrMissing
	}
	if err != nil {
		return nil, fmt.Errorf("source %q: %w", name, err)
	}
	return &files{name: name, how: how, in: disk(paths)}, nil
}

// expand returns the sorted list of files that name describes.
func expand(name string) ([]string, error) {
	info, err := os.Stat(name)
	switch {
	case err == nil && !info.IsDir():
		return []string{name}, nil
	case err != nil && strings.ContainsAny(name, "*?["):
		paths, err := filepath.Glob(name)
		if err != nil {
			return nil, fmt.Errorf("%w (%w)", ErrMissing, err)
		}
		paths = slices.DeleteFunc(paths, func(p string) bool {
			info, err := os.Stat(p)
			return err == nil && info.IsDir()
		})
		slices.Sort(paths)
		return paths, nil
	case err != nil:
		return nil, fmt.Errorf("%w (%w)", ErrMissing, err)
	}
	var paths []string
	err = filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := path != name && isHidden(d.Name())
		if hidden && d.IsDir() {
			return filepath.SkipDir
		}
		regular := d.Type().IsRegular()
		if !hidden && d.Type()&fs.ModeSymlink != 0 {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			regular = info.Mode().IsRegular()
		}
		if !hidden && regular {
			paths = append(paths, path)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrUnreadable, err)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%w (the directory has no files, or only some whose names or folders begin with . or _)", ErrMissing)
	}
	slices.Sort(paths)
	return paths, nil
}

// isHidden reports whether a source that is a directory leaves out the files whose path has this
// element.
func isHidden(element string) bool { return element[0] == '.' || element[0] == '_' }

// place is where the files of a source are.
type place interface {
	// names yields the names of the files, in the order in which they are read. An error ends the
	// sequence.
	names(ctx context.Context) iter.Seq2[string, error]
	// open opens a file. The context ctx must not end before the file is closed.
	open(ctx context.Context, name string) (*file, error)
}

// file is an open file. Its medium is a disk, a pipe or a bucket.
type file struct {
	name   string      // name for entries and errors
	stream io.Reader   // the content from its start
	at     io.ReaderAt // the content by ranges, or nil
	size   int64
	close  func() error

	failed error // first error of the medium, which does not mean that the content is damaged
}

// Read implements io.Reader.
func (f *file) Read(p []byte) (int, error) {
	n, err := f.stream.Read(p)
	f.note(err)
	return n, err
}

// ReadAt implements io.ReaderAt.
func (f *file) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.at.ReadAt(p, off)
	f.note(err)
	return n, err
}

// isParquet reports whether a file that can be read by ranges begins as Parquet does.
func (f *file) isParquet() bool {
	var magic [4]byte
	if f.at == nil {
		return false
	}
	n, _ := f.ReadAt(magic[:], 0)
	return n == 4 && string(magic[:]) == "PAR1"
}

func (f *file) note(err error) {
	if err != nil && !errors.Is(err, io.EOF) && f.failed == nil {
		f.failed = err
	}
}

// disk is a list of local files.
type disk []string

func (d disk) names(context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, path := range d {
			if !yield(path, nil) {
				return
			}
		}
	}
}

func (d disk) open(_ context.Context, name string) (*file, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrUnreadable, err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w (%w)", ErrUnreadable, err), f.Close())
	}
	opened := &file{name: name, stream: f, size: info.Size(), close: f.Close}
	if info.Mode().IsRegular() {
		opened.at = f
	}
	return opened, nil
}

// standardInput is the standard input, as one file.
type standardInput struct{ in io.Reader }

func (s standardInput) names(ctx context.Context) iter.Seq2[string, error] {
	return disk{"stdin"}.names(ctx)
}

func (s standardInput) open(context.Context, string) (*file, error) {
	return &file{name: "stdin", stream: s.in, close: func() error { return nil }}, nil
}

// files is a source that reads its entries from files.
type files struct {
	name string
	how  reading
	in   place
}

func (f *files) Name() string { return f.name }

func (f *files) Entries(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		n := 0
		count := func(e Entry) bool {
			n++
			return yield(e, nil)
		}
		for name, err := range f.in.names(ctx) {
			more := err == nil
			if more {
				more, err = f.read(ctx, name, count)
			}
			if err != nil {
				yield(Entry{}, fmt.Errorf("source %q: %w", cmp.Or(name, f.name), err))
			}
			if err != nil || !more {
				return
			}
		}
		if n == 0 {
			yield(Entry{}, f.empty())
		}
	}
}

// empty returns the error for a source without an entry.
func (f *files) empty() error {
	if len(f.how.where) > 0 {
		return fmt.Errorf("source %q: %w: %w", f.name, ErrNoMatch, ErrEmpty)
	}
	return fmt.Errorf("source %q: %w", f.name, ErrEmpty)
}

// read reads one file. It returns false if yield asked to stop.
func (f *files) read(ctx context.Context, name string, yield func(Entry) bool) (more bool, err error) {
	in, err := f.in.open(ctx, name)
	if err != nil {
		return false, err
	}
	defer in.close() //nolint:errcheck // the file was only read, so an error of close does not matter
	more, err = readFile(ctx, in, &f.how, yield)
	if in.failed != nil && err != nil {
		err = mediumError(in.failed)
	}
	return more, err
}

// readFile reads the entries of a file in the format that its first bytes or its name show.
func readFile(ctx context.Context, in *file, how *reading, yield func(Entry) bool) (more bool, err error) {
	if in.isParquet() {
		return readParquet(ctx, in, how, yield)
	}
	plain, stop, err := decompress(in)
	if err != nil {
		return false, err
	}
	defer stop()
	switch how.formatOf(in.name) {
	case formatCSV:
		return readCSV(ctx, plain, ',', in.name, how, yield)
	case formatTSV:
		return readCSV(ctx, plain, '\t', in.name, how, yield)
	case formatJSON:
		return readJSON(ctx, plain, in.name, how, yield)
	}
	if how.hasColumns() {
		return false, fmt.Errorf("it is read as text, which has no columns: add format=csv, format=tsv or format=json: %w", ErrOption)
	}
	return readText(ctx, plain, in.name, yield)
}

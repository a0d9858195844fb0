package source

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// Files returns the source that the argument name describes: a file, a directory, a pattern of file
// names, or "-" for stdin. A directory stands for all files below it whose names do not start with
// "." or "_". The first bytes of a file decide whether Files reads Parquet, gzip or text. Errors
// wrap ErrMissing.
func Files(name string, stdin io.Reader) (Source, error) {
	if name == "-" {
		return &files{name: name, paths: []string{name}, stdin: stdin}, nil
	}
	paths, err := expand(name)
	if err != nil {
		return nil, fmt.Errorf("source %q: %w", name, err)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("source %q: %w", name, ErrMissing)
	}
	return &files{name: name, paths: paths}, nil
}

// expand returns the sorted list of files that the argument name describes.
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
		hidden := path != name && (d.Name()[0] == '.' || d.Name()[0] == '_')
		if hidden && d.IsDir() {
			return filepath.SkipDir
		}
		if !hidden && d.Type().IsRegular() {
			paths = append(paths, path)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrUnreadable, err)
	}
	slices.Sort(paths)
	return paths, nil
}

type files struct {
	name  string
	paths []string
	stdin io.Reader // if not nil, read instead of paths
}

func (f *files) Name() string { return f.name }

func (f *files) Entries(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		n := 0
		count := func(e Entry) bool {
			n++
			return yield(e, nil)
		}
		for _, path := range f.paths {
			more, err := f.read(ctx, path, count)
			if err != nil {
				yield(Entry{}, fmt.Errorf("source %q: %w", path, err))
			}
			if err != nil || !more {
				return
			}
		}
		if n == 0 {
			yield(Entry{}, fmt.Errorf("source %q: %w", f.name, ErrEmpty))
		}
	}
}

// read reads one file, or standard input. It returns false if yield asked to stop.
func (f *files) read(ctx context.Context, path string, yield func(Entry) bool) (more bool, err error) {
	if f.stdin != nil {
		return readText(ctx, f.stdin, "stdin", yield)
	}
	file, err := os.Open(path)
	if err != nil {
		return false, fmt.Errorf("%w (%w)", ErrUnreadable, err)
	}
	defer file.Close() // the file was only read, so an error of Close does not matter
	var magic [4]byte
	if n, _ := file.ReadAt(magic[:], 0); n == 4 && string(magic[:]) == "PAR1" {
		return readParquet(ctx, file, path, yield)
	}
	return readText(ctx, file, path, yield)
}

// readText reads lines, perhaps compressed with gzip. It skips blank lines.
func readText(ctx context.Context, r io.Reader, name string, yield func(Entry) bool) (more bool, err error) {
	in := bufio.NewReaderSize(r, 256<<10)
	if magic, _ := in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(in)
		if err != nil {
			return false, fmt.Errorf("%w (%w)", ErrUnreadable, err)
		}
		in = bufio.NewReaderSize(z, 256<<10)
	}
	switch bom, _ := in.Peek(3); {
	case bytes.Equal(bom, []byte("\xef\xbb\xbf")):
		if _, err := in.Discard(3); err != nil {
			return false, err
		}
	case bytes.HasPrefix(bom, []byte("\xff\xfe")), bytes.HasPrefix(bom, []byte("\xfe\xff")):
		return false, fmt.Errorf("%w (it is UTF-16: convert it with iconv)", ErrUnreadable)
	}
	var line []byte
	for n := int64(1); ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		line, err = readLine(in, line[:0])
		if err != nil && err != io.EOF {
			return false, fmt.Errorf("line %d: %w (%w)", n, ErrUnreadable, err)
		}
		if !blank(line) && !yield(Entry{URL: string(line), File: name, Line: n, Due: true, Listed: true, Priority: DefaultPriority}) {
			return false, nil
		}
		if err == io.EOF {
			return true, nil
		}
	}
}

// readLine appends at most MaxURL bytes of the next line to buf, without the line end. It drops the
// rest of a longer line.
func readLine(in *bufio.Reader, buf []byte) ([]byte, error) {
	for {
		part, err := in.ReadSlice('\n')
		buf = append(buf, part[:min(len(part), MaxURL+2-len(buf))]...)
		if err == bufio.ErrBufferFull {
			continue
		}
		buf = bytes.TrimSuffix(buf, []byte("\n"))
		buf = bytes.TrimSuffix(buf, []byte("\r"))
		return buf[:min(len(buf), MaxURL)], err
	}
}

func blank[T string | []byte](s T) bool {
	return strings.Trim(string(s), " \t\r") == ""
}

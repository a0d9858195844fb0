package source

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
)

// Divided is a source that several processes can read, each a part.
type Divided interface {
	Source
	// Slices divides the source into about n slices of equal size, in the order of the entries. It
	// returns none if only one process can read the source, such as standard input.
	Slices(ctx context.Context, n int) ([]Slice, error)
	// Part returns the source of the entries of a slice. It may have none.
	Part(s Slice) *Part
	// Empty returns the error for a source in which no slice has an entry.
	Empty() error
}

// Slice is a part of a file: some row groups of Parquet, some lines of a text that is not compressed, or the
// whole of any other file.
type Slice struct {
	File     string
	Size     int64  // size of the file, in bytes
	Version  string // version of the file: the ETag of an object, or the time when a local file changed
	From, To int64  // row groups, or lines that begin in this range of bytes; To is exclusive, 0 for the whole file
	Bytes    int64  // size of the slice
	Lines    bool   // the slice holds lines
}

// Slices implements Divided.
func (f *files) Slices(ctx context.Context, n int) (slices []Slice, err error) {
	if _, piped := f.in.(standardInput); piped {
		return nil, nil
	}
	whole, total := []Slice{}, int64(0)
	for name, err := range f.in.names(ctx) {
		if err != nil {
			return nil, fmt.Errorf("source %q: %w", f.name, err)
		}
		if _, local := f.in.(disk); local {
			if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
				return nil, nil
			}
		}
		s := Slice{File: name}
		if _, err = f.read(ctx, name, s.measure, nil); err != nil {
			return nil, fmt.Errorf("source %q: %w", name, err)
		}
		whole, total = append(whole, s), total+s.Bytes
	}
	each := max(total/int64(n), 1)
	for _, s := range whole {
		count := max(min((s.Bytes+each-1)/each, s.To), 1)
		for i := range count {
			part := s
			part.From, part.To, part.Bytes = s.To*i/count, s.To*(i+1)/count, s.Bytes/count
			slices = append(slices, part)
		}
	}
	return slices, nil
}

// measure sets the size of a file, and To to its number of row groups or bytes if it can be divided.
func (s *Slice) measure(_ context.Context, in *file, how *reading, _ func(Entry) bool) (bool, error) {
	var err error
	if s.Version, err = in.contentVersion(); err != nil {
		return false, err
	}
	s.Size, s.Bytes = in.size, in.size
	if in.isParquet() {
		pq, err := openParquet(in)
		if err != nil {
			return false, fmt.Errorf("%w (%w)", ErrUnreadable, err)
		}
		s.To = int64(len(pq.RowGroups()))
		return true, nil
	}
	magic, err := bufio.NewReader(io.NewSectionReader(in, 0, in.size)).Peek(4)
	if err == nil && !isGzip(magic) && !isZstd(magic) && how.formatOf(in.name) == formatText && !how.hasColumns() {
		s.To, s.Lines = in.size, true
	}
	return true, nil
}

// Part implements Divided.
func (f *files) Part(s Slice) *Part { return &Part{files: f, slice: s} }

// Part is the source of the entries of a slice. The numbers of lines begin with 1 in each slice.
type Part struct {
	*files
	slice Slice
	lines int64
}

// Lines returns the number of lines of a slice of lines, after Entries has read all.
func (p *Part) Lines() int64 { return p.lines }

// Entries implements Source.
func (p *Part) Entries(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if _, err := p.read(ctx, p.slice.File, p.readSlice, func(e Entry) bool { return yield(e, nil) }); err != nil {
			yield(Entry{}, fmt.Errorf("source %q: %w", p.slice.File, err))
		}
	}
}

func (p *Part) readSlice(ctx context.Context, in *file, how *reading, yield func(Entry) bool) (more bool, err error) {
	s := &p.slice
	version, err := in.contentVersion()
	if err != nil {
		return false, err
	}
	switch {
	case in.size != s.Size, version != s.Version:
		return false, ErrChanged
	case s.To == 0:
		return readFile(ctx, in, how, yield)
	case !s.Lines:
		return readParquet(ctx, in, how, int(s.From), int(s.To), yield)
	}
	begin, err := lineStart(in, s.From)
	if err != nil {
		return false, err
	}
	end, err := lineStart(in, s.To)
	if err != nil {
		return false, err
	}
	if _, err := in.stream.(io.Seeker).Seek(begin, io.SeekStart); err != nil { // files that can be read by ranges can seek
		return false, err
	}
	counted := &lineCounter{in: io.LimitReader(in, end-begin)}
	plain, stop := bufio.NewReaderSize(counted, bufferBytes), func() {}
	if begin == 0 {
		if plain, stop, err = decompress(counted); err != nil {
			return false, err
		}
	}
	defer stop()
	more, err = readText(ctx, plain, in.name, yield)
	p.lines = counted.n
	return more, err
}

// lineStart returns the place of the first line that begins at the place at or later.
func lineStart(in *file, at int64) (int64, error) {
	if at == 0 {
		return 0, nil
	}
	buf := make([]byte, 64<<10)
	for at--; at < in.size; {
		n, err := in.ReadAt(buf[:min(int64(len(buf)), in.size-at)], at)
		if i := bytes.IndexByte(buf[:n], '\n'); i >= 0 {
			return at + int64(i) + 1, nil
		}
		at += int64(n)
		if err != nil && !errors.Is(err, io.EOF) || n == 0 {
			return 0, fmt.Errorf("%w (%w)", ErrUnreadable, errors.Join(err, io.ErrUnexpectedEOF))
		}
	}
	return in.size, nil
}

// lineCounter counts the ends of lines.
type lineCounter struct {
	in io.Reader
	n  int64
}

// Read implements io.Reader.
func (c *lineCounter) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.n += int64(bytes.Count(p[:n], []byte("\n")))
	return n, err
}

package entry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"crawlbatch.io/crawlbatch/formats/extsort"
	"crawlbatch.io/crawlbatch/planner/pack"
	"crawlbatch.io/crawlbatch/planner/slowest"
)

// List is a scratch file of records. The records are ordered by group, and the groups by
// hash.
type List struct {
	File   *os.File
	Groups []pack.Group
	// Addresses holds the hash of each group's address, or 0. If no round has observed hosts,
	// Addresses is nil.
	Addresses []uint64
	Slowest   slowest.List
	Observed  int64 // number of hosts that an earlier round requested
	Reach     Reach
}

// Reach says how requests would reach the hosts of a list, as far as the names of the hosts show.
type Reach struct {
	Refused int64  // number of URLs at hosts to which crawlbatch does not connect, because their addresses are not public
	Example string // one of these hosts: that with the most URLs
	Names   int64  // number of hosts whose names the system's resolver looks up

	most int64 // number of URLs of Example
}

// Refuse counts the URLs of a host to which crawlbatch does not connect.
func (r *Reach) Refuse(host string, urls int64) {
	r.Refused += urls
	if urls > r.most || urls == r.most && host < r.Example {
		r.Example, r.most = host, urls
	}
}

// ListWriter writes the records of a List.
type ListWriter struct {
	*extsort.Writer
	key, rest []byte
}

// NewListWriter returns a ListWriter of the scratch file of a List. Its method Begin begins a group, which can be read
// without the group before.
func NewListWriter(file io.Writer) *ListWriter { return &ListWriter{Writer: extsort.NewWriter(file)} }

// Write writes a record of the current group.
func (w *ListWriter) Write(r *Record) error {
	w.key, w.rest = ByDomain.appendKey(w.key[:0], r), appendRest(w.rest[:0], r)
	return w.Writer.Write(w.key, w.rest)
}

// Close writes the end of the list.
func (w *ListWriter) Close() error { return w.Flush() }

// Close removes the scratch file.
func (l *List) Close() error {
	return errors.Join(l.File.Close(), os.Remove(l.File.Name()))
}

// All returns the indices of all groups.
func (l *List) All() iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for i := range l.Groups {
			if !yield(int32(i)) {
				return
			}
		}
	}
}

// Read calls the function visit with the records of the given groups. The indices must be in
// ascending order. A record is valid until the function visit returns.
func (l *List) Read(ctx context.Context, indices iter.Seq[int32], visit func(*Record) error) error {
	var u Record
	var buf []byte
	return l.read(ctx, indices, func(key, rest []byte) (err error) {
		if buf, err = ByDomain.decode(buf, key, rest, &u); err == nil {
			err = visit(&u)
		}
		return err
	})
}

func (l *List) read(ctx context.Context, indices iter.Seq[int32], visit func(key, rest []byte) error) error {
	file := io.NewSectionReader(l.File, 0, 1<<62)
	in := extsort.NewReader(file)
	next := int32(0) // index of the group that starts at the reader's position
	for i := range indices {
		if err := l.skipTo(file, in, next, i); err != nil {
			return err
		}
		next = i + 1
		for n := range l.Groups[i].URLs {
			if n%1024 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			switch err := in.Next(); {
			case err == io.EOF:
				return fmt.Errorf("read scratch file: %w", extsort.ErrScratch)
			case err != nil:
				return err
			}
			if err := visit(in.Key, in.Rest); err != nil {
				return err
			}
		}
	}
	return nil
}

// skipTo moves the reader forward in the list's file. from and to are indices of groups.
func (l *List) skipTo(file *io.SectionReader, in *extsort.Reader, from, to int32) error {
	off := l.Groups[to].Off
	if from == to || in.Skip(off-l.Groups[from].Off) {
		return nil
	}
	in.Reset()
	_, err := file.Seek(off, io.SeekStart)
	return err
}

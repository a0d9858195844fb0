package rewrite

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/warc"
)

// mostRevisit bounds the gzip member of a revisit, which holds only the head of a response, in bytes.
const mostRevisit = 16 << 20

// warc replaces the records of a target by tombstones. Revisits of others that refer to a target no
// longer say where their payload was. The rest of the file stays as it is, damage included.
func (r *Rewriter) warc(ctx context.Context, f *manifest.File) (_ *Rewritten, err error) {
	obj, err := r.Bucket.Open(ctx, f.Key)
	if err != nil {
		return nil, err
	}
	defer obj.Close() // nolint:errcheck // nothing was written
	out := &Rewritten{Removed: map[int64]struct{}{}}
	var w *copier
	defer func() {
		if w != nil {
			w.abort()
		}
	}()
	in := warc.NewReader(io.NewSectionReader(obj, 0, obj.Size()), warc.ReaderOptions{})
	for {
		e, err := in.Next()
		if err == io.EOF {
			break
		}
		var damage *warc.DamageError
		if errors.As(err, &damage) {
			continue
		}
		if err != nil {
			return nil, err
		}
		target := r.Matcher.URL(e.TargetURI())
		revisit := !target && e.Type == warc.Revisit && r.Matcher.URL(strings.Trim(e.Header.Get(warc.FieldRefersToURI), "<>"))
		if !target && !revisit || e.Tombstone() {
			continue
		}
		id, offset := e.ID(), e.Offset
		date, err := e.Date()
		if err != nil {
			return nil, fmt.Errorf("record at byte %d: %w", offset, err)
		}
		s, err := e.Finish()
		if err != nil {
			return nil, fmt.Errorf("record at byte %d names a target, but cannot be read: %w", offset, err)
		}
		if s.Length == 0 {
			return nil, fmt.Errorf("record at byte %d shares its gzip member with others: %w", offset, warc.ErrInvalid)
		}
		if w == nil {
			if w, err = newCopier(r.path(), obj); err != nil {
				return nil, err
			}
		}
		if target {
			err = w.replace(s.Extent, func(to io.Writer) error { return warc.WriteTombstone(to, id, date, s.Length) })
			out.Tombstones++
			out.Removed[offset] = struct{}{}
		} else {
			err = w.replace(s.Extent, func(to io.Writer) error { return withoutPayload(to, obj, s.Extent) })
			out.Cleared++
		}
		if err != nil {
			return nil, fmt.Errorf("record at byte %d: %w", offset, err)
		}
	}
	if w == nil {
		return nil, nil
	}
	l, err := w.finish(f.Rows)
	if err != nil {
		return nil, err
	}
	if l.Bytes != f.Bytes {
		return nil, fmt.Errorf("%d bytes became %d, so offsets would be wrong", f.Bytes, l.Bytes)
	}
	return described(out, f, l), nil
}

func withoutPayload(to io.Writer, in io.ReaderAt, at warc.Extent) error {
	if at.Length > mostRevisit {
		return fmt.Errorf("a revisit of %d bytes: %w", at.Length, warc.ErrInvalid)
	}
	member := make([]byte, at.Length)
	if _, err := in.ReadAt(member, at.Offset); err != nil && err != io.EOF {
		return err
	}
	member, err := warc.RewriteRevisit(member)
	if err == nil {
		_, err = to.Write(member)
	}
	return err
}

// described completes the result of a file that is not a table.
func described(out *Rewritten, f *manifest.File, l table.Local) *Rewritten {
	out.File = l.File(f.Dataset, f.Key)
	out.File.Subset, out.Path = f.Subset, l.Path
	if f.Blocks == "" {
		out.File.Blocks = ""
	}
	return out
}

// copier copies a file and replaces some ranges of it, in their order.
type copier struct {
	in   io.ReaderAt
	size int64
	at   int64
	file *os.File
	buf  *bufio.Writer
	sum  *manifest.Sum
}

type sizedReader interface {
	io.ReaderAt
	Size() int64
}

func newCopier(path string, in sizedReader) (*copier, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("create scratch file: %w", err)
	}
	c := &copier{in: in, size: in.Size(), file: file, sum: manifest.NewSum()}
	c.buf = bufio.NewWriterSize(io.MultiWriter(file, c.sum), 256<<10)
	return c, nil
}

// replace copies what lies before the range, and writes its new content.
func (c *copier) replace(at warc.Extent, write func(io.Writer) error) error {
	if at.Offset < c.at {
		return fmt.Errorf("it overlaps the record before it: %w", warc.ErrInvalid)
	}
	if _, err := io.Copy(c.buf, io.NewSectionReader(c.in, c.at, at.Offset-c.at)); err != nil {
		return err
	}
	c.at = at.Offset + at.Length
	return write(c.buf)
}

func (c *copier) finish(rows int64) (table.Local, error) {
	_, err := io.Copy(c.buf, io.NewSectionReader(c.in, c.at, c.size-c.at))
	if err == nil {
		err = c.buf.Flush()
	}
	path := c.file.Name()
	if err = errors.Join(err, c.file.Close()); err != nil {
		return table.Local{}, fmt.Errorf("write scratch file: %w", err)
	}
	c.file = nil
	return table.LocalOf(path, rows, c.sum), nil
}

func (c *copier) abort() {
	if c.file != nil {
		_ = c.file.Close()
		_ = os.Remove(c.file.Name())
	}
}

// lines rewrites a text file. edit returns the new line, or false if the line goes. wrap compresses what
// is written, or is nil.
func (r *Rewriter) lines(f *manifest.File, in io.Reader, wrap func(io.Writer) io.WriteCloser, edit func(line []byte) ([]byte, bool)) (*Rewritten, error) {
	file, err := os.Create(r.path())
	if err != nil {
		return nil, fmt.Errorf("create scratch file: %w", err)
	}
	defer file.Close() // nolint:errcheck // closed before, or an error is returned
	sum, out := manifest.NewSum(), &Rewritten{}
	var to io.Writer = io.MultiWriter(file, sum)
	var compressed io.WriteCloser
	if wrap != nil {
		compressed = wrap(to)
		to = compressed
	}
	buf := bufio.NewWriterSize(to, 64<<10)
	for line, err := range linesOf(in) {
		if err != nil {
			return nil, err
		}
		edited, stays := edit(line)
		if !stays {
			out.Dropped++
			continue
		}
		if !bytes.Equal(edited, line) {
			out.Cleared++
		}
		if _, err = buf.Write(edited); err == nil {
			err = buf.WriteByte('\n')
		}
		if err != nil {
			return nil, fmt.Errorf("write scratch file: %w", err)
		}
	}
	err = buf.Flush()
	if compressed != nil && err == nil {
		err = compressed.Close()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("write scratch file: %w", err)
	}
	if out.Dropped+out.Cleared == 0 {
		return nil, os.Remove(r.path())
	}
	return described(out, f, table.LocalOf(r.path(), f.Rows-out.Dropped, sum)), nil
}

// linesOf yields the lines of a text without their ends. A line is valid until the next one.
func linesOf(in io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		s := bufio.NewScanner(in)
		s.Buffer(make([]byte, 64<<10), mostLine)
		for s.Scan() {
			if !yield(s.Bytes(), nil) {
				return
			}
		}
		if err := s.Err(); err != nil {
			yield(nil, err)
		}
	}
}

// mostLine bounds a line of an index or a graph, in bytes: a URL, its SURT and some numbers.
const mostLine = 4 << 20

// index removes the lines of a target from a CDXJ index. Redirects of others to it lose their target.
func (r *Rewriter) index(ctx context.Context, f *manifest.File) (*Rewritten, error) {
	obj, err := r.Bucket.Open(ctx, f.Key)
	if err != nil {
		return nil, err
	}
	defer obj.Close() // nolint:errcheck // nothing was written
	return r.lines(f, io.NewSectionReader(obj, 0, obj.Size()), nil, func(line []byte) ([]byte, bool) {
		_, fields, _ := bytes.Cut(line, []byte(" {"))
		var capture struct {
			URL      string `json:"url"`
			Redirect string `json:"redirect"`
		}
		if err := json.Unmarshal(append([]byte("{"), fields...), &capture); err != nil || len(fields) == 0 {
			return line, !r.Matcher.Mentions(line)
		}
		if r.Matcher.URL(capture.URL) {
			return nil, false
		}
		if r.Matcher.URL(capture.Redirect) {
			line = withoutRedirect(line)
		}
		return line, true
	})
}

// withoutRedirect removes the field redirect from a line's JSON, which has no white space outside texts
// and whose first field is another one.
func withoutRedirect(line []byte) []byte {
	const field = `,"redirect":"`
	start := bytes.LastIndex(line, []byte(field))
	if start < 0 {
		return line
	}
	for end, escaped := start+len(field), false; end < len(line); end++ {
		if line[end] == '"' && !escaped {
			return append(bytes.Clone(line[:start]), line[end+1:]...)
		}
		escaped = line[end] == '\\' && !escaped
	}
	return line
}

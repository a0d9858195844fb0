package rewrite

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
)

// RemovedVertex is the name of a vertex of a web graph whose name was taken down. The vertex keeps its
// number, so that the numbers in other files stay right. No host has this name (RFC 6761, section 6.4).
const RemovedVertex = "invalid.removed"

// graph rewrites a file of a web graph: vertices lose their names, edges and ranks of these vertices go.
func (r *Rewriter) graph(ctx context.Context, f *manifest.File) (*Rewritten, error) {
	in, err := r.openText(ctx, f.Key)
	if err != nil {
		return nil, err
	}
	defer in.Close() // nolint:errcheck // nothing was written
	compress := func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }
	switch {
	case strings.HasSuffix(f.Key, "-vertices.txt.gz"):
		return r.lines(f, in, compress, func(line []byte) ([]byte, bool) {
			number, rest, _ := bytes.Cut(line, []byte("\t"))
			name, rest, more := bytes.Cut(rest, []byte("\t"))
			if !r.Matcher.ReversedHost(string(name)) {
				return line, true
			}
			line = append(append(bytes.Clone(number), '\t'), RemovedVertex...)
			if more {
				line = append(append(line, '\t'), rest...)
			}
			return line, true
		})
	case strings.HasSuffix(f.Key, "-edges.txt.gz"):
		removed, err := r.removedVertices(ctx, strings.TrimSuffix(f.Key, "-edges.txt.gz")+"-vertices.txt.gz")
		if err != nil {
			return nil, err
		}
		return r.lines(f, in, compress, func(line []byte) ([]byte, bool) {
			from, to, _ := bytes.Cut(line, []byte("\t"))
			_, fromGone := removed[string(from)]
			_, toGone := removed[string(to)]
			return line, !fromGone && !toGone
		})
	}
	return r.lines(f, in, compress, func(line []byte) ([]byte, bool) {
		for field := range bytes.SplitSeq(line, []byte("\t")) {
			if _, err := strconv.ParseFloat(string(field), 64); err != nil && r.Matcher.ReversedHost(string(field)) {
				return nil, false
			}
		}
		return line, true
	})
}

// removedVertices returns the numbers of the vertices that go. It takes some 50 bytes of memory for each.
func (r *Rewriter) removedVertices(ctx context.Context, key string) (map[string]struct{}, error) {
	in, err := r.openText(ctx, key)
	if err != nil {
		return nil, err
	}
	defer in.Close() // nolint:errcheck // nothing was written
	removed := map[string]struct{}{}
	for line, err := range linesOf(in) {
		if err != nil {
			return nil, fmt.Errorf("read %q: %w", key, err)
		}
		number, rest, _ := bytes.Cut(line, []byte("\t"))
		name, _, _ := bytes.Cut(rest, []byte("\t"))
		if string(name) == RemovedVertex || r.Matcher.ReversedHost(string(name)) {
			removed[string(number)] = struct{}{}
		}
	}
	return removed, nil
}

// gzipText is the text of a gzipped object.
type gzipText struct {
	*gzip.Reader
	obj store.Object
}

func (t gzipText) Close() error { return t.obj.Close() }

func (r *Rewriter) openText(ctx context.Context, key string) (io.ReadCloser, error) {
	obj, err := r.Bucket.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(io.NewSectionReader(obj, 0, obj.Size()))
	if err != nil {
		_ = obj.Close()
		return nil, fmt.Errorf("open %q: %w: %w", key, table.ErrCorrupt, err)
	}
	return gzipText{z, obj}, nil
}

package rewrite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/parquet-go/parquet-go"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/takedown"
)

// The text that is searched at a time, and the part of it that is searched again with the text after it.
const (
	searched = 1 << 20
	overlap  = 8 << 10
)

// Mentions reports whether an object of any kind names a target: as text, in gzip members, or in a column
// of a Parquet file. readable is false if the object is of another binary kind or is damaged, so that it
// may name one all the same.
func Mentions(ctx context.Context, b store.Bucket, key string, m *takedown.Matcher) (named, readable bool, err error) {
	obj, err := b.Open(ctx, key)
	if err != nil {
		return false, false, err
	}
	defer obj.Close() // nolint:errcheck // it was only read
	whole := io.NewSectionReader(obj, 0, obj.Size())
	var magic [4]byte
	n, err := whole.ReadAt(magic[:], 0)
	if err != nil && err != io.EOF {
		return false, false, fmt.Errorf("read %q: %w", key, err)
	}
	binary := false
	named, err = searchText(whole, m, &binary)
	if err != nil || named {
		return named, true, err
	}
	switch {
	case strings.HasSuffix(key, ".run"): // several Parquet files, one after another
		return false, false, nil
	case n == 4 && string(magic[:]) == "PAR1":
		named, err = searchParquet(obj, obj.Size(), m)
	case n >= 2 && magic[0] == 0x1f && magic[1] == 0x8b:
		named, err = searchGzip(io.NewSectionReader(obj, 0, obj.Size()), m)
	default:
		return false, !binary, nil
	}
	return named, err == nil, nil // damage means only that nobody can tell
}

// searchText searches a text. binary becomes true if the text has a NUL byte.
func searchText(r io.Reader, m *takedown.Matcher, binary *bool) (bool, error) {
	buf := make([]byte, searched+overlap)
	kept := 0
	for {
		n, err := io.ReadFull(r, buf[kept:])
		text := buf[:kept+n]
		if m.Mentions(text) {
			return true, nil
		}
		for _, c := range text[kept:] {
			*binary = *binary || c == 0
		}
		switch {
		case err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF):
			return false, nil
		case err != nil:
			return false, err
		}
		kept = copy(buf, text[len(text)-overlap:])
	}
}

// searchGzip searches what the members of a gzip file hold.
func searchGzip(r io.Reader, m *takedown.Matcher) (bool, error) {
	z, err := gzip.NewReader(bufio.NewReader(r))
	if err != nil {
		return false, err
	}
	checked := &gzipErrors{r: z}
	binary := false
	named, err := searchText(checked, m, &binary)
	return named, errors.Join(err, checked.err)
}

// gzipErrors keeps the errors of a damaged gzip file, which may end like a short one.
type gzipErrors struct {
	r   io.Reader
	err error
}

func (g *gzipErrors) Read(p []byte) (int, error) {
	n, err := g.r.Read(p)
	if err != nil && err != io.EOF {
		g.err = err
	}
	return n, err
}

// searchParquet searches the texts of all columns of a Parquet file.
func searchParquet(r io.ReaderAt, size int64, m *takedown.Matcher) (named bool, err error) {
	defer func() {
		if p := recover(); p != nil { // the library panics on some damaged files
			err = fmt.Errorf("read Parquet: %v", p)
		}
	}()
	f, err := parquet.OpenFile(r, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return false, err
	}
	values := make([]parquet.Value, 256)
	for _, g := range f.RowGroups() {
		for _, c := range g.ColumnChunks() {
			if c.Type().Kind() != parquet.ByteArray {
				continue
			}
			if named, err := searchColumn(c, values, m); err != nil || named {
				return named, err
			}
		}
	}
	return false, nil
}

func searchColumn(c parquet.ColumnChunk, values []parquet.Value, m *takedown.Matcher) (bool, error) {
	pages := c.Pages()
	defer pages.Close() // nolint:errcheck // they were only read
	for {
		p, err := pages.ReadPage()
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		for in := p.Values(); ; {
			n, err := in.ReadValues(values)
			for _, v := range values[:n] {
				if !v.IsNull() && m.Mentions(v.ByteArray()) {
					parquet.Release(p)
					return true, nil
				}
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				return false, err
			}
		}
		parquet.Release(p)
	}
}

package fetchcheck

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/zeebo/xxh3"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
)

// index is the CDXJ file beside a WARC file. It takes 32 bytes of memory for each line.
type index struct {
	key     string
	entries []indexEntry // lines of the index, ordered by offset
}

// indexEntry is a line of an index.
type indexEntry struct {
	offset, length int64
	hash           uint64 // hash of URL and digest
	captured       bool   // true: a row of captures names the record
}

// indexLine is the JSON object in a line of an index.
type indexLine struct {
	URL      string `json:"url"`
	Digest   string `json:"digest"`
	Length   string `json:"length"`
	Offset   string `json:"offset"`
	Filename string `json:"filename"`
}

func hashOf(url, digest string) uint64 { return xxh3.HashString(url + "\x00" + digest) }

// maxIndexLine bounds a line of an index, in bytes.
const maxIndexLine = 1 << 20

// loadIndex reads the index beside a WARC file. It returns nil if the index is unreadable.
func (c *archive) loadIndex(ctx context.Context, warcKey string, size int64) (*index, error) {
	x := &index{key: layout.CDXJ(warcKey)}
	if c.Broken(x.key) {
		return nil, nil
	}
	obj, err := c.Bucket.Open(ctx, x.key)
	if err != nil {
		return nil, c.Fault(err, indexesMatch, c.round.Number, x.key)
	}
	problem, err := x.read(io.NewSectionReader(obj, 0, obj.Size()), warcKey, size)
	if err = errors.Join(err, obj.Close()); err != nil {
		return nil, err
	}
	if problem != "" {
		c.Wrong(indexesMatch, c.round.Number, audit.At{Object: x.key}, "%s", problem)
		return nil, nil
	}
	slices.SortFunc(x.entries, func(a, b indexEntry) int { return cmp.Compare(a.offset, b.offset) })
	return x, nil
}

// read reads the lines of the index, which must be in byte order.
func (x *index) read(r io.Reader, warcKey string, size int64) (problem string, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxIndexLine)
	var last []byte
	for n := 1; lines.Scan(); n++ {
		line := lines.Bytes()
		if bytes.Compare(line, last) < 0 {
			return fmt.Sprintf("line %d is not in the order of bytes, so a binary search does not find it", n), nil
		}
		last = append(last[:0], line...)
		parts := bytes.SplitN(line, []byte(" "), 3)
		var l indexLine
		if len(parts) < 3 || json.Unmarshal(parts[2], &l) != nil {
			return fmt.Sprintf("line %d is not CDXJ", n), nil
		}
		offset, err1 := strconv.ParseInt(l.Offset, 10, 64)
		length, err2 := strconv.ParseInt(l.Length, 10, 64)
		switch {
		case err1 != nil || err2 != nil || offset < 0 || length <= 0 || offset > size-length:
			return fmt.Sprintf("line %d: %q bytes at %q are not within the WARC file of %d bytes", n, l.Length, l.Offset, size), nil
		case l.Filename != warcKey:
			return fmt.Sprintf("line %d names the file %q", n, l.Filename), nil
		}
		x.entries = append(x.entries, indexEntry{offset: offset, length: length, hash: hashOf(l.URL, l.Digest)})
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Sprintf("a line has more than %d bytes", maxIndexLine), nil
	}
	return "", lines.Err()
}

// compare compares a capture with its line of the index.
func (x *index) compare(c *archive, m *recordRef) {
	i, ok := slices.BinarySearchFunc(x.entries, int64(m.Offset), func(e indexEntry, offset int64) int { return cmp.Compare(e.offset, offset) })
	if !ok {
		c.wrong(indexesMatch, x.key, m, "no line names the record of the capture")
		return
	}
	e := &x.entries[i]
	e.captured = true
	if e.length != int64(m.Length) || e.hash != hashOf(cmp.Or(m.Sent, m.URL), m.Digest) {
		c.wrong(indexesMatch, x.key, m, "the line at this offset has %d bytes or another URL or digest; the capture has %d bytes with digest %s", e.length, m.Length, m.Digest)
	}
}

// checkUnnamed checks the index lines whose records no capture names. A crash may have lost the
// capture's row, but a record must begin at the line's offset.
func (x *index) checkUnnamed(ctx context.Context, c *archive) error {
	for i := range x.entries {
		e := &x.entries[i]
		if e.captured || !c.Sampled(fmt.Sprintf("%s@%d", c.key, e.offset)) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		c.reader.Reset(io.NewSectionReader(&c.window, e.offset, e.length), e.offset)
		_, err := c.reader.Next()
		if c.window.err != nil {
			return c.window.err
		}
		if err != nil {
			c.Wrong(indexesMatch, c.round.Number, audit.At{Object: x.key, Row: fmt.Sprint("offset ", e.offset)}, "a line points to bytes that are not a record: %v", err)
		}
	}
	return nil
}

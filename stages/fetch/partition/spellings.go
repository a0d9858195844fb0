package partition

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// spellings holds URLs that are known in several spellings but are not planned. A redirect may lead
// to such a URL. All URLs are in the partition's domains. The records are in a scratch file, sorted
// by host and URL and divided into blocks. Memory holds only the offsets of the blocks. A nil
// *spellings is empty.
type spellings struct {
	file   *os.File
	blocks []int64 // offset of each block of records; one more element holds the file's length
}

// spellingsBlock is the number of records that are read together.
const spellingsBlock = 16

// loadSpellings copies the spellings of a partition into the scratch directory. It returns nil if
// the plan has no spellings.
func loadSpellings(ctx context.Context, b store.Bucket, f *manifest.File, scratch string) (_ *spellings, err error) {
	if f == nil {
		return nil, nil
	}
	r, err := table.Open[schema.PlannedURL](ctx, b, f.Key)
	if err != nil {
		return nil, err
	}
	defer r.Close() //nolint:errcheck // read only
	file, err := os.Create(filepath.Join(scratch, "spelled"))
	if err != nil {
		return nil, fmt.Errorf("create scratch file: %w", err)
	}
	s := &spellings{file: file}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	w := bufio.NewWriterSize(file, 256<<10)
	var rows, off int64
	var last schema.PlannedURL
	var rec, head []byte
	for row, err := range r.All(ctx) {
		if err != nil {
			return nil, err
		}
		if rows > 0 && compareSpellings(&last, row.Host, row.URL) >= 0 {
			return nil, fmt.Errorf("row %d of %q is not sorted by host and URL: %w", rows, f.Key, table.ErrCorrupt)
		}
		if last = row; rows%spellingsBlock == 0 {
			s.blocks = append(s.blocks, off)
		}
		rec = spellingCodec.Append(rec[:0], &row)
		head = binary.AppendUvarint(head[:0], uint64(len(rec)))
		for _, part := range [][]byte{head, rec} {
			if _, err := w.Write(part); err != nil {
				return nil, fmt.Errorf("write spellings to scratch: %w", err)
			}
		}
		rows, off = rows+1, off+int64(len(head)+len(rec))
	}
	if err := w.Flush(); err != nil {
		return nil, fmt.Errorf("write spellings to scratch: %w", err)
	}
	if rows != f.Rows {
		return nil, fmt.Errorf("%q has %d rows, but the plan says %d: %w", f.Key, rows, f.Rows, table.ErrCorrupt)
	}
	s.blocks = append(s.blocks, off)
	return s, nil
}

func compareSpellings(r *schema.PlannedURL, host, url string) int {
	return cmp.Or(strings.Compare(r.Host, host), strings.Compare(r.URL, url))
}

// lookUp returns the spellings of a URL that is not planned.
func (s *spellings) lookUp(k urlkey.Key) (schema.Spellings, error) {
	if s == nil || len(s.blocks) < 2 {
		return nil, nil
	}
	var err error
	after := sort.Search(len(s.blocks)-1, func(i int) bool { // number of the first block that begins after the URL
		first := 0
		err = cmp.Or(err, s.read(i, func(r *schema.PlannedURL) bool {
			first = compareSpellings(r, k.Host, k.URL)
			return false
		}))
		return first > 0
	})
	var found schema.Spellings
	if err == nil && after > 0 {
		err = s.read(after-1, func(r *schema.PlannedURL) bool {
			order := compareSpellings(r, k.Host, k.URL)
			if order == 0 {
				found = r.Spellings
			}
			return order < 0
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read spellings from scratch: %w", err)
	}
	return found, nil
}

// read calls yield for the records of a block until yield returns false.
func (s *spellings) read(block int, yield func(*schema.PlannedURL) bool) error {
	buf := make([]byte, s.blocks[block+1]-s.blocks[block])
	if _, err := s.file.ReadAt(buf, s.blocks[block]); err != nil {
		return err
	}
	for in := bytes.NewReader(buf); in.Len() > 0; {
		n, err := binary.ReadUvarint(in)
		if err != nil || n > uint64(in.Len()) {
			return table.ErrScratch
		}
		rec := make([]byte, n)
		if _, err := io.ReadFull(in, rec); err != nil {
			return err
		}
		var row schema.PlannedURL
		if err := spellingCodec.Decode(string(rec), &row); err != nil || !yield(&row) {
			return err
		}
	}
	return nil
}

// Close removes the scratch file.
func (s *spellings) Close() error {
	if s == nil {
		return nil
	}
	return errors.Join(s.file.Close(), os.Remove(s.file.Name()))
}

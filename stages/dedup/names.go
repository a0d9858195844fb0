package dedup

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"crawlbatch.io/crawlbatch/formats/store"
)

// names holds the URLs of the clustered pages in a scratch file. Clusters span all sources,
// so any URL may be needed at any time.
type names struct {
	file   *os.File
	offset []int64 // offset of each page's URL in the file; set only for pages in clusters
	length []uint32
	buf    []byte
}

// collectNames reads the sources again, and writes the URLs of the wanted pages to the file.
func collectNames(ctx context.Context, b store.Bucket, scratch string, p *pages, wanted func(page uint32) bool) (_ *names, err error) {
	n := &names{offset: make([]int64, p.count()), length: p.urlLength}
	if n.file, err = os.Create(filepath.Join(scratch, "names")); err != nil {
		return nil, fmt.Errorf("create scratch file: %w", err)
	}
	defer func() {
		if err != nil {
			n.close()
		}
	}()
	out := bufio.NewWriterSize(n.file, 256<<10)
	end := int64(0)
	for i := range p.sources {
		s := &p.sources[i]
		page := s.first
		for r, err := range s.rows(ctx, b) {
			if err != nil {
				return nil, err
			}
			if wanted(page) {
				n.offset[page] = end
				end += int64(len(r.URL))
				if _, err := out.WriteString(r.URL); err != nil {
					return nil, fmt.Errorf("write scratch file: %w", err)
				}
			}
			page++
		}
	}
	if err := out.Flush(); err != nil {
		return nil, fmt.Errorf("write scratch file: %w", err)
	}
	return n, nil
}

// url gives the URL of a wanted page. The bytes are valid until the next call.
func (n *names) url(page uint32) ([]byte, error) {
	if size := int(n.length[page]); cap(n.buf) < size {
		n.buf = make([]byte, 2*size)
	}
	buf := n.buf[:n.length[page]]
	if _, err := n.file.ReadAt(buf, n.offset[page]); err != nil {
		return nil, fmt.Errorf("read scratch file: %w", err)
	}
	return buf, nil
}

// close removes the scratch file. close ignores errors, because the scratch directory is removed
// later.
func (n *names) close() {
	_ = n.file.Close()
	_ = os.Remove(n.file.Name())
}

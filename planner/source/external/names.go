package external

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"

	"crawlbatch.io/crawlbatch/formats/store"
)

// maxName is the length of the longest accepted name in a list of WARC files, in bytes.
const maxName = 4 << 10

// ReadNames reads names of WARC files, one per line, plain or gzip, as in Common Crawl's
// warc.paths.gz. A name is a key of the store, or begins with the store's address. The returned
// keys are sorted and without duplicates. Errors begin with the list's name.
func ReadNames(name string, in io.Reader, address string) ([]string, error) {
	br := bufio.NewReader(in)
	lines := bufio.NewScanner(br)
	if magic, _ := br.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(br)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		lines = bufio.NewScanner(z)
	}
	lines.Buffer(nil, maxName)
	var keys []string
	n := 1
	for ; lines.Scan(); n++ {
		key := strings.TrimSpace(lines.Text())
		if key == "" {
			continue
		}
		key = strings.TrimPrefix(key, strings.TrimSuffix(address, "/")+"/")
		if err := store.CheckKey(key); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w: give the names of files in --warc-store", name, n, err)
		}
		keys = append(keys, key)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("%s, line %d: it is longer than %d bytes, so it names no file of --warc-store", name, n, maxName)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	slices.Sort(keys)
	return slices.Compact(keys), nil
}

// Names lists the keys of a store whose names are those of web archives, sorted: .warc, .warc.gz and .wacz in
// any letter case, and those that Refused names, which WARC then refuses.
func Names(ctx context.Context, b store.Bucket) ([]string, error) {
	var keys []string
	for o, err := range b.List(ctx, "") {
		if err != nil {
			return nil, err
		}
		if isReadable(o.Key) || Refused(o.Key) != "" {
			keys = append(keys, o.Key)
		}
	}
	return keys, nil
}

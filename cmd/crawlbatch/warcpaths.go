package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"

	"crawlbatch.io/crawlbatch/formats/store"
)

// maxPath bounds a line of a list of paths, in bytes.
const maxPath = 4 << 10

// readPaths reads names of WARC files, one a line, from a file or, for -, from stdin;
// gzip or not, as Common Crawl's warc.paths.gz. A name may be a key of the store, or
// begin with the store's address. Each counts once, and their order does not.
func readPaths(name string, stdin io.Reader, address string) ([]string, error) {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, usagef("--warc-paths: %v", err)
		}
		defer f.Close() // it was only read
		in = f
	}
	br := bufio.NewReader(in)
	lines := bufio.NewScanner(br)
	if magic, _ := br.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(br)
		if err != nil {
			return nil, usagef("--warc-paths %s: %v", name, err)
		}
		lines = bufio.NewScanner(z)
	}
	lines.Buffer(nil, maxPath)
	var keys []string
	n := 1
	for ; lines.Scan(); n++ {
		key := strings.TrimSpace(lines.Text())
		if key == "" {
			continue
		}
		key = strings.TrimPrefix(key, strings.TrimSuffix(address, "/")+"/")
		if err := store.CheckKey(key); err != nil {
			return nil, usagef("--warc-paths %s, line %d: %v: give the names of files in --warc-store", name, n, err)
		}
		keys = append(keys, key)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, usagef("--warc-paths %s, line %d: it is longer than %d bytes, so it names no file of --warc-store", name, n, maxPath)
	} else if err != nil {
		return nil, usagef("--warc-paths %s: %v", name, err)
	}
	slices.Sort(keys)
	return slices.Compact(keys), nil
}

package warc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Header holds the header fields of a record, in order.
type Header []Field

// Get returns the value of the first field with the given name, in any letter case, or "".
func (h Header) Get(name string) string {
	for _, f := range h {
		if strings.EqualFold(f.Name, name) {
			return f.Value
		}
	}
	return ""
}

// uri is like Get but removes angle brackets around the value. Record IDs have angle brackets, and so
// have the target URIs that wget 1.14 to 1.19 wrote.
func (h Header) uri(name string) string {
	v := h.Get(name)
	if len(v) >= 2 && v[0] == '<' && v[len(v)-1] == '>' {
		return v[1 : len(v)-1]
	}
	return v
}

// dateLayouts are the layouts of W3C-DTF that WARC 1.1 allows, and as the last one that of ARC files,
// which some WARC files have. With a layout that ends in seconds, package time also accepts fractions.
var dateLayouts = []string{
	time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02", "2006-01", "2006", "20060102150405",
}

// parseDate parses a WARC-Date.
func parseDate(s string) (time.Time, error) {
	for _, layout := range dateLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%s %q is not a date", FieldDate, s)
}

// The reasons why a record cannot be read.
var (
	errNoVersion    = errors.New(`no line "WARC/…" where a record should begin`)
	errHeaderLarge  = errors.New("the header is larger than allowed")
	errNoLength     = errors.New("the header has no usable Content-Length")
	errHeaderShort  = errors.New("the data end within the header")
	errMemberEnd    = errors.New("the gzip member ends within the record")
	errMemberHeader = errors.New("no gzip member begins here")
)

// readHeader reads the header of a record: the version line and the fields up to the blank line, at
// most limit bytes. It accepts lines that end in LF alone, and folded fields (WARC 1.0). It skips
// blank lines before the version line, and lines without a colon.
func readHeader(br *bufio.Reader, limit int) (version string, h Header, err error) {
	left := limit
	for version == "" {
		line, err := readLine(br, &left)
		if err != nil {
			return "", nil, err
		}
		if len(line) == 0 {
			continue
		}
		if !bytes.HasPrefix(line, []byte("WARC/")) {
			return "", nil, errNoVersion
		}
		version = string(bytes.TrimSpace(line))
	}
	var value []byte // value of the last field, which folded lines continue
	for {
		line, err := readLine(br, &left)
		if err != nil {
			if err == io.EOF {
				err = errHeaderShort
			}
			return "", nil, err
		}
		if folded := len(line) > 0 && (line[0] == ' ' || line[0] == '\t'); folded && len(h) > 0 {
			value = append(append(value, ' '), bytes.TrimSpace(line)...)
			continue
		}
		if len(h) > 0 {
			h[len(h)-1].Value = string(value)
		}
		if len(line) == 0 {
			return version, h, nil
		}
		if name, rest, ok := bytes.Cut(line, []byte(":")); ok {
			h = append(h, Field{Name: string(bytes.TrimSpace(name))})
			value = append(value[:0], bytes.TrimSpace(rest)...)
		}
	}
}

// readLine reads a line and returns it without its line end. It subtracts the line's size from
// *left. The line is valid until the next read.
func readLine(br *bufio.Reader, left *int) ([]byte, error) {
	var long []byte
	for {
		part, err := br.ReadSlice('\n')
		*left -= len(part)
		if *left < 0 {
			return nil, errHeaderLarge
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, part...)
			continue
		}
		if err == io.EOF {
			if len(long)+len(part) == 0 {
				return nil, io.EOF
			}
			return nil, errHeaderShort
		}
		if err != nil {
			return nil, err
		}
		if long != nil {
			part = append(long, part...)
		}
		return bytes.TrimRight(part, "\r\n"), nil
	}
}

// contentLength returns the length of the record's block, in bytes.
func (h Header) contentLength() (int64, error) {
	n, err := strconv.ParseInt(h.Get(FieldContentLength), 10, 64)
	if err != nil || n < 0 {
		return 0, errNoLength
	}
	return n, nil
}

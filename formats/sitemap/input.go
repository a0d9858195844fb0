package sitemap

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/net/html/charset"
)

// maxLayers is the largest number of times that a file may be gzipped: as a .gz file, as a content
// coding, and once more by mistake.
const maxLayers = 3

// decodedInput is a decompressed file, decoded to UTF-8 if its charset is known.
type decodedInput struct {
	*bufio.Reader
	charset string
	layers  []*limited
}

// cut reports whether a part of the file was not read, because of a limit or because the compressed
// data are damaged or incomplete.
func (i *decodedInput) cut() bool {
	return slices.ContainsFunc(i.layers, func(l *limited) bool { return l.cut })
}

func open(r io.Reader, lim Limits) (*decodedInput, error) {
	in := &decodedInput{}
	br := bufio.NewReaderSize(r, headLen)
	for range maxLayers {
		if magic, _ := br.Peek(2); len(magic) < 2 || magic[0] != 0x1F || magic[1] != 0x8B {
			break
		}
		gz, err := gzip.NewReader(br)
		if err != nil {
			return nil, fmt.Errorf("gzip: %w: %w", err, ErrUnknown)
		}
		br = in.limit(gz, lim.Bytes)
	}
	if len(in.layers) == 0 {
		br = in.limit(br, lim.Bytes)
	}
	head, _ := br.Peek(1024)
	decoded, name := decode(br, head, lim.Charset)
	in.charset = name
	in.Reader = bufio.NewReaderSize(decoded, MaxLoc+2)
	if mark, _ := in.Peek(len(bom)); bytes.Equal(mark, bom) {
		_, _ = in.Discard(len(bom)) // cannot fail, because Peek has already read the bytes
	}
	return in, nil
}

func (i *decodedInput) limit(r io.Reader, bytes int64) *bufio.Reader {
	l := &limited{r: r, left: bytes}
	i.layers = append(i.layers, l)
	return bufio.NewReaderSize(l, headLen)
}

// limited is a reader that ends at a limit, and where the gzip data of r are damaged.
type limited struct {
	r    io.Reader
	left int64 // number of bytes up to the limit
	cut  bool  // the caller read up to the limit, or to damaged data
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		l.cut = true
		return 0, io.EOF
	}
	if int64(len(p)) > l.left {
		p = p[:l.left]
	}
	n, err := l.r.Read(p)
	l.left -= int64(n)
	if err != nil && err != io.EOF && isDamage(err) { // the data before the damaged part are kept
		l.cut, err = true, io.EOF
	}
	return n, err
}

// isDamage reports whether err means that gzip data are damaged or incomplete.
func isDamage(err error) bool {
	var corrupt flate.CorruptInputError
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) || errors.As(err, &corrupt)
}

var bom = []byte("\xEF\xBB\xBF")

// decode decodes r to UTF-8 and returns the name of its charset. A byte order mark overrides the XML
// declaration, and both override contentType, the charset from the Content-Type. UTF-8 stays
// unchanged, even if it is malformed.
func decode(r io.Reader, head []byte, contentType string) (io.Reader, string) {
	label := contentType
	switch {
	case bytes.HasPrefix(head, []byte{0xFE, 0xFF}) || bytes.HasPrefix(head, []byte{0, '<'}):
		label = "utf-16be"
	case bytes.HasPrefix(head, []byte{0xFF, 0xFE}) || bytes.HasPrefix(head, []byte{'<', 0}):
		label = "utf-16le"
	case bytes.HasPrefix(head, bom):
		label = "utf-8"
	default:
		if l := declared(head); l != "" {
			label = l
		}
		if strings.HasPrefix(strings.ToLower(strings.TrimSpace(label)), "utf-16") {
			label = "utf-8" // a file in UTF-16 would have matched a case above
		}
	}
	e, name := charset.Lookup(label)
	if e == nil || name == "utf-8" || name == "replacement" {
		return r, "utf-8"
	}
	return e.NewDecoder().Reader(r), name
}

// declared returns the encoding of an XML declaration, or "" if there is none.
func declared(head []byte) string {
	i := bytes.Index(head, []byte("<?xml"))
	if i < 0 {
		return ""
	}
	decl := head[i:]
	if j := bytes.Index(decl, []byte("?>")); j >= 0 {
		decl = decl[:j]
	}
	_, rest, ok := bytes.Cut(decl, []byte("encoding"))
	if !ok {
		return ""
	}
	rest = bytes.TrimLeft(rest, " \t\r\n=")
	if len(rest) == 0 || rest[0] != '"' && rest[0] != '\'' {
		return ""
	}
	label, _, ok := bytes.Cut(rest[1:], rest[:1])
	if !ok {
		return ""
	}
	return string(label)
}

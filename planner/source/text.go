package source

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"crawlbatch.io/crawlbatch/formats/urltext"
)

const (
	// bufferBytes is the size of the buffers before and after decompression.
	bufferBytes = 256 << 10
	// mostWindow is the largest zstd window, in bytes. It is the limit of the command zstd. The
	// window is the memory that a hostile file can claim.
	mostWindow = 128 << 20
)

// The magic bytes of files that a user may give by mistake.
var unreadable = []struct{ magic, advice string }{
	{"PAR1", "it is Parquet, which standard input and pipes cannot give: name the file"},
	{"\xfd7zXZ\x00", "it is compressed with xz: decompress it, or compress it with gzip or zstd"},
	{"BZh91AY&SY", "it is compressed with bzip2: decompress it, or compress it with gzip or zstd"},
	{"PK\x03\x04", "it is a zip archive: unpack it"},
	{"h\x00t\x00t\x00p\x00", utf16Advice},
	{"\x00h\x00t\x00t\x00p", utf16Advice},
}

const (
	utf16Advice = "it is UTF-16: convert it with iconv"
	crAdvice    = `its lines end with a carriage return (CR) only: convert them with tr '\r' '\n'`
)

// decompress returns the plain content of a stream, which may be compressed with gzip or zstd, in
// one or more members. The caller must call stop at the end.
func decompress(r io.Reader) (plain *bufio.Reader, stop func(), err error) {
	plain, stop = bufio.NewReaderSize(r, bufferBytes), func() {}
	magic, _ := plain.Peek(10) // an error comes back with the next read
	for _, u := range unreadable {
		if strings.HasPrefix(string(magic), u.magic) {
			return nil, nil, fmt.Errorf("%w (%s)", ErrUnreadable, u.advice)
		}
	}
	packed := isGzip(magic) || isZstd(magic)
	switch {
	case isGzip(magic):
		z, err := gzip.NewReader(plain)
		if err != nil {
			return nil, nil, fmt.Errorf("%w (%w)", ErrUnreadable, err)
		}
		plain = bufio.NewReaderSize(members{&gzipMembers{member: z, packed: plain}}, bufferBytes)
	case isZstd(magic):
		z, err := zstd.NewReader(plain, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(mostWindow))
		if err != nil {
			return nil, nil, fmt.Errorf("%w (%w)", ErrUnreadable, err)
		}
		plain, stop = bufio.NewReaderSize(members{z}, bufferBytes), z.Close
	}
	why := ""
	switch head, _ := plain.Peek(10); {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		_, err = plain.Discard(3)
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		why = utf16Advice
	case packed && (isGzip(head) || isZstd(head)):
		why = "it is compressed twice: decompress it once"
	case packed && bytes.HasPrefix(head, []byte("PAR1")):
		why = "it is compressed Parquet: decompress it"
	}
	if head, _ := plain.Peek(bufferBytes); why == "" && onlyCR(head) {
		why = crAdvice
	}
	if why != "" {
		stop()
		return nil, nil, fmt.Errorf("%w (%s)", ErrUnreadable, why)
	}
	return plain, stop, err
}

// onlyCR reports whether lines of a file with these first bytes end with CR alone, as those of old
// programs for the Macintosh. Such a file would otherwise be one line, or a header without records.
func onlyCR(head []byte) bool {
	return bytes.IndexByte(head, '\n') < 0 && bytes.IndexByte(bytes.TrimRight(head, " \t\r"), '\r') >= 0
}

// gzipMembers reads the members of a gzip file one after the other. As gzip(1) does, it ignores zero
// bytes after the last member, with which archives and tapes fill a block.
type gzipMembers struct {
	member *gzip.Reader
	packed *bufio.Reader
	err    error // what ended the file
}

// Read implements io.Reader.
func (g *gzipMembers) Read(p []byte) (n int, err error) {
	for n == 0 && g.err == nil {
		g.member.Multistream(false)
		if n, err = g.member.Read(p); err == io.EOF {
			err = g.next()
		}
		g.err = err
	}
	return n, g.err
}

// next moves to the next member. It returns io.EOF if only zero bytes follow.
func (g *gzipMembers) next() error {
	padded := false
	for {
		b, err := g.packed.ReadByte()
		switch {
		case err != nil:
			return err
		case b == 0:
			padded = true
		case padded || b != 0x1f:
			return gzip.ErrHeader
		default:
			return errors.Join(g.packed.UnreadByte(), g.member.Reset(g.packed))
		}
	}
}

// members reads compressed content. Its errors say what is wrong with the end of a file.
type members struct{ io.Reader }

// Read implements io.Reader.
func (m members) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	switch {
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, zstd.ErrMagicMismatch): // the first header was good
		err = fmt.Errorf("after the compressed content follows something else: cut it off (%w)", err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = fmt.Errorf("the compressed content breaks off: is the file complete? (%w)", err)
	}
	return n, err
}

func isGzip(magic []byte) bool { return bytes.HasPrefix(magic, []byte{0x1f, 0x8b}) }

// isZstd reports whether a file with these first bytes is compressed with zstd. The first frame may
// be a skippable one (RFC 8878, section 3.1.2).
func isZstd(magic []byte) bool {
	return len(magic) >= 4 && (string(magic[:4]) == "\x28\xb5\x2f\xfd" || magic[0]&0xf0 == 0x50 && string(magic[1:4]) == "\x2a\x4d\x18")
}

// strayCR is the reason to refuse a line of text that holds a carriage return. Without it, a file whose
// lines end with CR alone would be one URL, because URLs lose their line ends.
const strayCR = "the line holds a carriage return (CR): end each line with LF or with CR and LF"

// urlOf returns the URL in a line or a field, with a function of package urltext. A text of MaxURL bytes or more
// stays as it is, so that the planner refuses it: its end is missing, and with it perhaps the end of the URL.
func urlOf(text []byte, take func([]byte) (url, why string)) (url, why string) {
	if len(text) < MaxURL {
		url, why = take(text)
	} else {
		url = string(text[:MaxURL])
	}
	return url[:min(len(url), MaxURL)], why // escapes may have made it longer
}

// readText reads one URL per line, as package urltext does. It skips blank lines.
func readText(ctx context.Context, in *bufio.Reader, name string, yield func(Entry) bool) (more bool, err error) {
	var line []byte
	for n := int64(1); ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		line, err = readLine(in, line[:0])
		if err != nil && err != io.EOF {
			return false, fmt.Errorf("line %d: %w (%w)", n, ErrUnreadable, err)
		}
		if !blank(line) {
			e := Entry{File: name, Line: n, Due: true, Listed: true, Priority: DefaultPriority}
			e.URL, e.Broken = urlOf(line, urltext.Line)
			if bytes.IndexByte(line, '\r') >= 0 && bytes.IndexByte(bytes.Trim(line, " \t\r"), '\r') >= 0 {
				e.Broken = strayCR
			}
			if !yield(e) {
				return false, nil
			}
		}
		if err == io.EOF {
			return true, nil
		}
	}
}

// readLine appends at most MaxURL bytes of the next line to buf, without the line end. It drops the
// rest of a longer line.
func readLine(in *bufio.Reader, buf []byte) ([]byte, error) {
	for {
		part, err := in.ReadSlice('\n')
		buf = append(buf, part[:min(len(part), MaxURL+2-len(buf))]...)
		if err == bufio.ErrBufferFull {
			continue
		}
		buf = bytes.TrimSuffix(buf, []byte("\n"))
		buf = bytes.TrimSuffix(buf, []byte("\r"))
		return buf[:min(len(buf), MaxURL)], err
	}
}

func blank[T string | []byte](s T) bool {
	for i := range len(s) {
		if s[i] != ' ' && s[i] != '\t' && s[i] != '\r' {
			return false
		}
	}
	return true
}

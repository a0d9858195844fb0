package warc

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
)

// source reads the file and counts its bytes, so that offsets are exact. It keeps the first error of
// the underlying reader, to tell it from faults in the content of the file.
type source struct {
	in   io.Reader
	br   *bufio.Reader // buffered reader over the source's own Read
	read int64         // offset of the first byte that br has not read
	base int64         // offset of the first byte of in
	err  error         // error of in, except io.EOF
}

func newSource() *source {
	s := &source{}
	s.br = bufio.NewReaderSize(s, 64<<10)
	return s
}

func (s *source) reset(in io.Reader, base int64) {
	s.in, s.read, s.base, s.err = in, base, base, nil
	s.br.Reset(s)
}

// Read implements io.Reader for br.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.in.Read(p)
	s.read += int64(n)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// offset returns the offset of the next byte of br.
func (s *source) offset() int64 { return s.read - int64(s.br.Buffered()) }

// seek moves to an offset. It returns false if in cannot seek.
func (s *source) seek(offset int64) bool {
	seeker, ok := s.in.(io.Seeker)
	if !ok {
		return false
	}
	if _, err := seeker.Seek(offset-s.base, io.SeekStart); err != nil {
		return false
	}
	s.read = offset
	s.br.Reset(s)
	return true
}

// gzipMagic is the beginning of every gzip member that uses deflate (RFC 1952, section 2.3.1).
var gzipMagic = []byte{0x1f, 0x8b, 0x08}

// rereadAllowance bounds the work after damage: up to the offset of a damaged record, the Reader may
// have read as many bytes again as the offset, plus rereadAllowance.
const rereadAllowance = 64 << 20

// resync moves to the probable beginning of the record after a damaged record.
func (r *Reader) resync(offset int64, cause error) {
	if r.plain {
		r.resyncPlain()
		return
	}
	if errors.Is(cause, errMemberEnd) || errors.Is(cause, errHeaderShort) {
		return // the damaged member was read to its end, so the next member follows
	}
	if window, _ := r.src.br.Peek(probeSize); errors.Is(cause, gzip.ErrChecksum) && (len(window) == 0 || r.recordInMember(window)) {
		return // the member seems complete, although its checksum is wrong
	}
	// After a damaged member, the Reader may have read the next members as content of that member.
	behind := r.src.offset() - offset
	if behind > 1 && r.reread+behind <= offset+rereadAllowance && r.src.seek(offset+1) {
		r.reread += behind
	}
	r.resyncGzip()
}

// probeSize is the number of bytes that resync examines at a time. The first line of a record must be
// within so many bytes of a gzip member.
const probeSize = 4 << 10

// resyncGzip moves to the next gzip member whose content begins like a record.
func (r *Reader) resyncGzip() {
	br := r.src.br
	for {
		window, err := br.Peek(probeSize)
		i := bytes.Index(window, gzipMagic)
		switch {
		case i == 0 && r.recordInMember(window):
			return
		case i == 0:
			_, _ = br.Discard(1)
		case i > 0:
			_, _ = br.Discard(i) // the next window then begins with the magic number
		case err != nil:
			_, _ = br.Discard(len(window))
			return
		default: // a magic number may begin in the last bytes
			_, _ = br.Discard(len(window) - len(gzipMagic) + 1)
		}
	}
}

// recordInMember reports whether the gzip member at the start of window begins with the version
// line of a record. The window may end within the member.
func (r *Reader) recordInMember(window []byte) bool {
	if err := r.probe.Reset(bytes.NewReader(window)); err != nil {
		return false
	}
	begin := make([]byte, 16)
	n, _ := io.ReadFull(&r.probe, begin)
	return bytes.HasPrefix(bytes.TrimLeft(begin[:n], "\r\n"), []byte("WARC/"))
}

// resyncPlain moves to the next version line of a plain file.
func (r *Reader) resyncPlain() {
	br := r.src.br
	if startsRecord(br) {
		return
	}
	for {
		line, err := br.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
		if len(line) > 0 && line[len(line)-1] == '\n' && startsRecord(br) {
			return
		}
	}
}

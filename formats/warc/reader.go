package warc

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/gzip"
)

// ReaderOptions configure a Reader. The zero value is valid.
type ReaderOptions struct {
	// Check makes Finish verify block and payload digests, which takes up to four hashes.
	Check bool
}

// maxHeader is the size of the largest accepted record header, in bytes.
const maxHeader = 256 << 10

// DamageError describes a stretch of a file without a whole record. Reading can continue after a
// DamageError.
type DamageError struct {
	Extent       // position of the skipped stretch
	Err    error // cause of the damage
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("warc: no whole record in the %d bytes at offset %d: %v", e.Length, e.Offset, e.Err)
}

func (e *DamageError) Unwrap() error { return e.Err }

// Reader reads the records of a plain or gzip WARC file one after the other, as a stream. It is not
// safe for concurrent use.
type Reader struct {
	opt     ReaderOptions
	src     *source
	plain   bool
	begun   bool // true: the Reader knows whether the file is plain
	member  gzip.Reader
	content *bufio.Reader // decompressed content of the member; in a plain file, the file itself

	memberOffset int64
	inMember     bool // another record follows in the current gzip member
	current      *Entry
	scratch      []byte
	probe        gzip.Reader
	reread       int64 // number of bytes read again after damage
	err          error // error after which nothing can be read
}

// NewReader returns a Reader of the WARC file in r. If r can seek, the Reader also finds records
// that follow a damaged gzip member, even if that member seemed to contain them.
func NewReader(r io.Reader, opt ReaderOptions) *Reader {
	rd := &Reader{opt: opt, scratch: make([]byte, 32<<10)}
	rd.Reset(r, 0)
	return rd
}

// Reset makes the Reader read a WARC file from another io.Reader, whose first byte is at offset
// base of the file.
func (r *Reader) Reset(in io.Reader, base int64) {
	if r.src == nil {
		r.src = newSource()
	}
	r.src.reset(in, base)
	r.plain, r.begun, r.inMember = false, false, false
	r.current, r.reread, r.err = nil, 0, nil
}

// ReadAt opens the record at e in a WARC file. The length of the extent may be 0 if it is unknown.
// If the length is wrong, Finish reports it as a problem.
func ReadAt(in io.ReaderAt, e Extent, opt ReaderOptions) (*Entry, error) {
	return NewReader(nil, opt).ReadAt(in, e)
}

// ReadAt resets the Reader to the record at e in a WARC file, as the function ReadAt does.
func (r *Reader) ReadAt(in io.ReaderAt, e Extent) (*Entry, error) {
	length := e.Length
	if length <= 0 {
		length = 1<<63 - 1 - e.Offset
	}
	r.Reset(io.NewSectionReader(in, e.Offset, length), e.Offset)
	entry, err := r.Next()
	if err == io.EOF {
		err = &DamageError{Extent: e, Err: io.ErrUnexpectedEOF}
	}
	if err != nil {
		return nil, err
	}
	entry.want = e.Length
	return entry, nil
}

// Next returns the next record, or io.EOF after the last record. After a *DamageError, the caller
// may call Next again. All errors except *DamageError come from the underlying reader and are
// final. Next first finishes the previous record and returns the error of that Finish.
func (r *Reader) Next() (*Entry, error) {
	if r.err != nil {
		return nil, r.err
	}
	if e := r.current; e != nil && !e.finished {
		if _, err := e.Finish(); err != nil {
			return nil, err
		}
	}
	r.current = nil
	offset, err := r.begin()
	if err == io.EOF {
		r.err = io.EOF
		return nil, io.EOF
	}
	if err != nil {
		return nil, r.fail(offset, err)
	}
	e := &Entry{Offset: offset, reader: r, summary: Summary{Block: Unchecked, Payload: Unchecked}}
	if e.Version, e.Header, err = readHeader(r.content, maxHeader); err != nil {
		if err == io.EOF { // the member holds only blank lines
			err = errMemberEnd
		}
		return nil, r.fail(offset, err)
	}
	if e.Length, err = e.Header.contentLength(); err != nil {
		return nil, r.fail(offset, err)
	}
	e.left = e.Length
	e.Type = Type(e.Header.Get(FieldType))
	if r.opt.Check {
		e.check = newChecker(e)
	}
	r.current = e
	return e, nil
}

// begin moves to the next record and returns its offset.
func (r *Reader) begin() (int64, error) {
	if r.inMember {
		return r.memberOffset, nil
	}
	if _, err := r.src.br.Peek(1); err != nil {
		if err != io.EOF {
			r.src.err = err
		}
		return r.src.offset(), err
	}
	if !r.begun {
		r.plain, r.begun = looksPlain(r.src.br), true
	}
	if r.plain {
		r.content = r.src.br
		_, err := skipBlankLines(r.content)
		return r.src.offset(), err
	}
	r.memberOffset = r.src.offset()
	if err := r.member.Reset(r.src.br); err != nil {
		return r.memberOffset, fmt.Errorf("%w: %w", errMemberHeader, unexpected(err))
	}
	r.member.Multistream(false)
	if r.content == nil || r.content == r.src.br {
		r.content = bufio.NewReaderSize(&r.member, 32<<10)
	} else {
		r.content.Reset(&r.member)
	}
	return r.memberOffset, nil
}

// looksPlain reports whether a file with the beginning in br is not gzip, even if its first record
// is damaged.
func looksPlain(br *bufio.Reader) bool {
	window, _ := br.Peek(probeSize)
	if bytes.HasPrefix(window, gzipMagic[:2]) {
		return false
	}
	return bytes.HasPrefix(bytes.TrimLeft(window, "\r\n"), []byte("WARC/")) || !bytes.Contains(window, gzipMagic)
}

// fail returns the DamageError of the record at offset and moves to the next record. An error of
// the underlying reader is final.
func (r *Reader) fail(offset int64, cause error) error {
	r.inMember = false
	if r.src.err == nil {
		r.resync(offset, cause)
	}
	if r.src.err != nil {
		r.err = fmt.Errorf("warc: read at offset %d: %w", r.src.offset(), r.src.err)
		return r.err
	}
	return &DamageError{Extent: Extent{Offset: offset, Length: r.src.offset() - offset}, Err: cause}
}

// unexpected turns io.EOF into io.ErrUnexpectedEOF.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Entry is a record that is being read. Read returns the record's block.
type Entry struct {
	// Offset is the offset of the record in the file, in bytes. In a gzip file, Offset is the start
	// of the record's gzip member.
	Offset int64
	// Version is the record's first line, such as "WARC/1.1".
	Version string
	Type    Type
	Header  Header
	// Length is the length of the block that the header states, in bytes.
	Length int64

	reader   *Reader
	left     int64 // number of unread bytes of the block
	want     int64 // expected length of the extent, in bytes; 0 if unknown
	check    *checker
	finished bool
	summary  Summary
	err      error
}

// Summary describes a record after it has been read to its end.
type Summary struct {
	// Extent is the position of the record. The length of Extent is 0 if the record shares a gzip
	// member with other records and cannot be read alone.
	Extent
	// Block and Payload are the verdicts on the digests, if ReaderOptions.Check is set.
	Block, Payload Verdict
	// StartLine is the first line of the HTTP message in the block, cut to 1 KiB. It is set only
	// with ReaderOptions.Check.
	StartLine string
	// Problems are faults that did not prevent reading of the record.
	Problems []string
}

// ID returns the record's URI, without angle brackets.
func (e *Entry) ID() string { return e.Header.uri(FieldRecordID) }

// TargetURI returns the requested URI, without angle brackets.
func (e *Entry) TargetURI() string { return e.Header.uri(FieldTargetURI) }

// Date returns the record's WARC-Date in UTC.
func (e *Entry) Date() (time.Time, error) { return parseDate(e.Header.Get(FieldDate)) }

// Read reads the block up to io.EOF. It returns a *DamageError if the block ends too early or
// cannot be decompressed.
func (e *Entry) Read(p []byte) (int, error) {
	if e.err != nil {
		return 0, e.err
	}
	if e.left == 0 || e.finished {
		return 0, io.EOF
	}
	if int64(len(p)) > e.left {
		p = p[:e.left]
	}
	n, err := e.reader.content.Read(p)
	e.left -= int64(n)
	if e.check != nil {
		e.check.add(p[:n])
	}
	if err != nil && e.left > 0 {
		switch {
		case err == io.EOF && e.reader.plain:
			err = io.ErrUnexpectedEOF
		case err == io.EOF:
			err = errMemberEnd
		}
		e.err = e.reader.fail(e.Offset, err)
		e.finished = true
		return n, e.err
	}
	return n, nil
}

// Finish reads the rest of the record and returns its Summary. Further calls return the same
// Summary. A *DamageError means that the record is incomplete.
func (e *Entry) Finish() (Summary, error) {
	if e.finished {
		return e.summary, e.err
	}
	for e.left > 0 {
		if _, err := e.Read(e.reader.scratch); err != nil {
			return e.summary, e.err
		}
	}
	e.finished = true
	if e.check != nil {
		e.check.finish(&e.summary)
	}
	if err := e.reader.end(e); err != nil {
		e.err = e.reader.fail(e.Offset, err)
		return e.summary, e.err
	}
	if e.Type == "" {
		e.problem("no %s", FieldType)
	}
	if _, err := e.Date(); err != nil {
		e.problem("%v", err)
	}
	if e.want > 0 && e.summary.Length != e.want {
		e.problem("the record is %d bytes long, not %d", e.summary.Length, e.want)
	}
	return e.summary, nil
}

func (e *Entry) problem(format string, args ...any) {
	e.summary.Problems = append(e.summary.Problems, fmt.Sprintf(format, args...))
}

// end reads the bytes between the block of e and the next record, and sets the extent of e.
func (r *Reader) end(e *Entry) error {
	e.summary.Extent.Offset = e.Offset
	blank, err := skipBlankLines(r.content)
	if err != nil && err != io.EOF {
		return err
	}
	atEnd := err == io.EOF
	if blank != 2 && (!r.plain || !atEnd || blank < 2) {
		e.problem("%d line ends after the block, not 2", blank)
	}
	r.inMember = false
	switch {
	case atEnd:
	case startsRecord(r.content):
		if !r.plain {
			r.inMember = true
			e.problem("the gzip member holds several records")
			return nil
		}
	case r.plain:
		e.problem("bytes after the block: Content-Length may be too small")
		r.resync(e.Offset, nil)
	default:
		e.problem("bytes after the block: Content-Length may be too small")
		for err == nil {
			_, err = r.content.Discard(r.content.Size())
		}
		if err != io.EOF {
			return err
		}
	}
	e.summary.Extent.Length = r.src.offset() - e.Offset
	return nil
}

// skipBlankLines skips blank lines and returns their number.
func skipBlankLines(br *bufio.Reader) (int, error) {
	for n := 0; ; {
		c, err := br.ReadByte()
		if err != nil {
			return n, err
		}
		switch c {
		case '\n':
			n++
		case '\r':
		default:
			return n, br.UnreadByte()
		}
	}
}

// startsRecord reports whether br continues with the beginning of a record.
func startsRecord(br *bufio.Reader) bool {
	b, _ := br.Peek(len("WARC/"))
	return string(b) == "WARC/"
}

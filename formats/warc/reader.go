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
	// Check makes Entry.Finish check the digests of block and payload. This takes up to five hashes of each
	// record, and memory for the part of the block that the caller has read before.
	Check bool
}

// maxHeader is the size of the largest accepted record header, in bytes.
const maxHeader = 256 << 10

// DamageError describes a stretch of a file that cannot be read as records. After a DamageError, the
// Reader can read the records that follow.
type DamageError struct {
	Extent       // position of the skipped stretch
	Err    error // cause of the damage
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("warc: no whole record in the %d bytes at offset %d: %v", e.Length, e.Offset, e.Err)
}

func (e *DamageError) Unwrap() error { return e.Err }

// Reader reads the records of a plain or gzip WARC file one after the other. Only one goroutine may
// use a Reader.
type Reader struct {
	opt     ReaderOptions
	src     *source
	plain   bool
	begun   bool          // the first record was looked for, so plain is set
	member  gzip.Reader   // current gzip member
	content *bufio.Reader // decompressed content of the member; for a plain file, the file itself

	memberOffset int64 // offset of the current gzip member
	inMember     bool  // another record follows in the current gzip member
	current      *Entry
	scratch      []byte      // buffer for the bytes that Finish skips
	probe        gzip.Reader // see recordInMember
	reread       int64       // number of bytes that were read again after damage
	err          error       // error after which nothing can be read
}

// NewReader returns a Reader of the WARC file in r. To decompress a damaged gzip member, the Reader
// may have read records after it. If r is an io.Seeker, the Reader goes back and finds them.
func NewReader(r io.Reader, opt ReaderOptions) *Reader {
	rd := &Reader{opt: opt, scratch: make([]byte, 32<<10)}
	rd.Reset(r, 0)
	return rd
}

// Reset makes the Reader read from another io.Reader. The first byte of in is at offset base of a WARC
// file.
func (r *Reader) Reset(in io.Reader, base int64) {
	if r.src == nil {
		r.src = newSource()
	}
	r.src.reset(in, base)
	r.plain, r.begun, r.inMember = false, false, false
	r.current, r.reread, r.err = nil, 0, nil
}

// ReadAt opens the record at extent e of a WARC file. The length of e may be 0, which means unknown.
// If the length is wrong, Entry.Finish reports a problem.
func ReadAt(in io.ReaderAt, e Extent, opt ReaderOptions) (*Entry, error) {
	return NewReader(nil, opt).ReadAt(in, e)
}

// ReadAt is like the function ReadAt, but resets and uses this Reader.
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

// Next returns the next record, or io.EOF after the last record. First it calls Finish of the
// previous record, and returns an error of this call. After a *DamageError, the caller may call Next
// again. Any other error comes from the underlying reader and is final.
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
	e := &Entry{Offset: offset, shared: r.inMember, reader: r, summary: Summary{Block: Unchecked, Payload: Unchecked}}
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

// looksPlain reports whether a file seems to be plain, without gzip members. br holds the beginning
// of the file, whose first record may be damaged.
func looksPlain(br *bufio.Reader) bool {
	window, _ := br.Peek(probeSize)
	if bytes.HasPrefix(window, gzipMagic[:2]) {
		return false
	}
	return bytes.HasPrefix(bytes.TrimLeft(window, "\r\n"), []byte("WARC/")) || !bytes.Contains(window, gzipMagic)
}

// fail moves to the next record, and returns the DamageError of the record at offset. If the
// underlying reader has failed, fail returns its error.
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

// Entry is the record that a Reader currently reads. Its method Read reads the block.
type Entry struct {
	// Offset is the offset of the record in the file, in bytes. In a gzip file, Offset is the start
	// of the record's gzip member.
	Offset int64
	// Version is the record's first line, such as "WARC/1.1".
	Version string
	Type    Type
	Header  Header
	// Length is the length of the block according to the header, in bytes.
	Length int64

	shared   bool // the record follows another one in its gzip member
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
	// Extent is the position of the record. Its length is 0 if the record shares a gzip member with
	// other records, because such a record cannot be read alone.
	Extent
	// Block and Payload are the verdicts on the digests, if ReaderOptions.Check is set.
	Block, Payload Verdict
	// Reading is the reading of the HTTP message that the payload digest fits, if it does not fit the
	// entity body. Otherwise it is "".
	Reading Reading
	// StartLine is the first line of the HTTP message in the block, cut to 1 KiB. It is set only
	// with ReaderOptions.Check.
	StartLine string
	// Problems are faults of the record, which could be read nevertheless.
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
	n, err := e.read(p)
	if e.check != nil {
		e.check.taken = append(e.check.taken, p[:n]...)
	}
	return n, err
}

// unread reads the rest of a block.
type unread struct{ e *Entry }

func (r unread) Read(p []byte) (int, error) {
	if r.e.err != nil {
		return 0, r.e.err
	}
	if r.e.left == 0 {
		return 0, io.EOF
	}
	return r.e.read(p)
}

// read reads at least a byte of the block, of which some is left.
func (e *Entry) read(p []byte) (int, error) {
	if int64(len(p)) > e.left {
		p = p[:e.left]
	}
	n, err := e.reader.content.Read(p)
	e.left -= int64(n)
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
	if e.check != nil {
		if e.check.readAll(io.MultiReader(bytes.NewReader(e.check.taken), unread{e})) == nil {
			e.check.finish(&e.summary)
		}
		e.check = nil
	}
	for e.left > 0 && e.err == nil {
		_, _ = e.read(e.reader.scratch)
	}
	if e.err != nil {
		return e.summary, e.err
	}
	e.finished = true
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

// end reads the bytes between the block of e and the next record. It sets the extent of e and adds
// problems.
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
	if !e.shared {
		e.summary.Extent.Length = r.src.offset() - e.Offset
	}
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

// startsRecord reports whether the next bytes of br begin a record.
func startsRecord(br *bufio.Reader) bool {
	b, _ := br.Peek(len("WARC/"))
	return string(b) == "WARC/"
}

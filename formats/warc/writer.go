package warc

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/klauspost/compress/gzip"
)

// version is the first line of every record of a Writer.
const version = "WARC/1.1\r\n"

// dateFormat is W3C-DTF with milliseconds (WARC 1.1, section 5.4).
const dateFormat = "2006-01-02T15:04:05.000Z"

// Writer writes records, each as its own gzip member, to an io.Writer. A Writer does not buffer:
// when Write returns, the io.Writer has all bytes of the record. Only one goroutine may use a
// Writer at a time. A Writer needs no Close.
type Writer struct {
	out        countingWriter
	end        int64 // offset of the end of the last whole record
	warcinfoID string
	header     []byte // buffer for the header of a record, reused
	err        error  // error of the first write that failed
}

// compressors is a pool of gzip writers, each of which takes over 1 MiB. The pool stays small,
// because a process writes few records at a time, even with many open files. The compression level
// is the fastest, because every page is written but few are read.
var compressors = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // NewWriterLevel cannot fail, because the level is valid
	return z
}}

// NewWriter returns a Writer that writes a WARC file to w. Offsets in the file count from the first
// byte that the Writer writes.
func NewWriter(w io.Writer) *Writer { return &Writer{out: countingWriter{w: w}} }

// NewID returns a random record ID, "urn:uuid:…". Records that refer to each other, such as request
// and response, need IDs before the first Write.
func NewID() string { return uuid.New().URN() }

// Write writes one record and returns its extent. If rec.ID is empty, Write sets it.
//
// Write returns ErrInvalid for a record that WARC cannot represent. The caller may then write other
// records. Other errors come from the underlying writer and are final: the file may end with part
// of a record, after the last returned extent.
func (w *Writer) Write(rec *Record) (Extent, error) {
	if w.err != nil {
		return Extent{}, w.err
	}
	if err := rec.check(); err != nil {
		return Extent{}, err
	}
	if rec.ID == "" {
		rec.ID = NewID()
	}
	if err := w.makeHeader(rec); err != nil {
		return Extent{}, err
	}

	begin := w.end
	if err := w.writeMember(rec); err != nil {
		w.err = fmt.Errorf("warc: write %s of %q at %d: %w", rec.Type, rec.TargetURI, begin, err)
		return Extent{}, w.err
	}
	if rec.Type == Warcinfo {
		w.warcinfoID = rec.ID
	}
	w.end = w.out.n
	return Extent{Offset: begin, Length: w.end - begin}, nil
}

// writeMember writes w.header, the block and the blank lines that end a record as one
// gzip member.
func (w *Writer) writeMember(rec *Record) error {
	z := compressors.Get().(*gzip.Writer)
	z.Reset(&w.out)
	defer func() {
		z.Reset(io.Discard) // the pooled gzip writer must not refer to the file
		compressors.Put(z)
	}()
	if _, err := z.Write(w.header); err != nil {
		return err
	}
	for _, part := range rec.Block {
		if _, err := z.Write(part); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(z, "\r\n\r\n"); err != nil {
		return err
	}
	return z.Close()
}

// makeHeader sets w.header to the record's header with the blank line at its end.
func (w *Writer) makeHeader(rec *Record) error {
	length := 0
	for _, part := range rec.Block {
		length += len(part)
	}
	h := headerWriter{b: append(w.header[:0], version...)}
	h.add(FieldType, string(rec.Type))
	h.addURI(FieldRecordID, rec.ID)
	h.add(FieldDate, rec.Date.UTC().Truncate(time.Millisecond).Format(dateFormat))
	h.addSome(FieldTargetURI, rec.TargetURI)
	h.addSome(FieldFilename, rec.Filename)
	if rec.Type != Warcinfo && w.warcinfoID != "" {
		h.addURI(FieldWarcinfoID, w.warcinfoID)
	}
	for _, id := range rec.ConcurrentTo {
		h.addURI(FieldConcurrentTo, id)
	}
	if rec.IPAddress.IsValid() {
		h.add(FieldIPAddress, rec.IPAddress.Unmap().WithZone("").String())
	}
	for _, p := range rec.Protocols {
		h.addSome(FieldProtocol, p)
	}
	h.addSome(FieldCipherSuite, rec.CipherSuite)
	h.addSome(FieldProfile, rec.Profile)
	if rec.RefersTo != "" {
		h.addURI(FieldRefersTo, rec.RefersTo)
	}
	h.addSome(FieldRefersToURI, rec.RefersToURI)
	if !rec.RefersToDate.IsZero() {
		h.add(FieldRefersToDate, rec.RefersToDate.UTC().Truncate(time.Millisecond).Format(dateFormat))
	}
	h.addSome(FieldIdentifiedType, rec.IdentifiedType)
	h.addSome(FieldTruncated, string(rec.Truncated))
	h.add(FieldBlockDigest, string(DigestOf(rec.Block...)))
	h.addSome(FieldPayloadDigest, string(rec.PayloadDigest))
	h.addSome(FieldContentType, contentTypes[rec.Type])
	h.add(FieldContentLength, strconv.Itoa(length))
	w.header = append(h.b, "\r\n"...)
	return h.err
}

// headerWriter appends fields to a header and keeps the first error.
type headerWriter struct {
	b   []byte
	err error
}

func (h *headerWriter) add(name, value string) {
	// A line break or a NUL in a URL from the web must not begin another field.
	if i := strings.IndexAny(value, "\r\n\x00"); i >= 0 && h.err == nil {
		h.err = fmt.Errorf("%w: %s %q has a control character at byte %d", ErrInvalid, name, value, i)
	}
	h.b = append(h.b, name...)
	h.b = append(h.b, ": "...)
	h.b = append(h.b, value...)
	h.b = append(h.b, "\r\n"...)
}

// addSome adds a field unless its value is empty.
func (h *headerWriter) addSome(name, value string) {
	if value != "" {
		h.add(name, value)
	}
}

// addURI adds a field with the URI in angle brackets.
func (h *headerWriter) addURI(name, uri string) {
	h.add(name, "<"+uri+">")
}

// countingWriter is a writer that counts the bytes that w accepted.
type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

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

// Writer writes records to an io.Writer, each as a gzip member. It does not buffer: when Write
// returns, the io.Writer has all bytes of the record. A Writer therefore needs no Close. Only one
// goroutine may use a Writer at a time.
type Writer struct {
	out        countingWriter
	end        int64  // offset of the end of the last whole record
	warcinfoID string // ID of the last warcinfo record; later records refer to it
	header     []byte // buffer for the header of a record
	err        error  // error of the first write that failed
}

// compressors is a pool of gzip writers. Each of them takes over 1 MiB. A process writes few records
// at a time, even if it has many files open, so the pool stays small. The compression level is the
// fastest, because every page is written but few are read.
var compressors = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // fails only if the level is invalid
	return z
}}

// NewWriter returns a Writer that writes a WARC file to w. The first byte that it writes has the
// offset 0.
func NewWriter(w io.Writer) *Writer { return &Writer{out: countingWriter{w: w}} }

// NewID returns a random record ID, "urn:uuid:…". Records that refer to each other, such as a request
// and its response, need IDs before the first of them is written.
func NewID() string { return uuid.New().URN() }

// Write writes one record and returns its extent. If rec.ID is empty, Write sets it.
//
// If the record is not valid, the error wraps ErrInvalid, and the caller may write other records.
// Other errors come from the underlying writer and are final: the file may then end with part of a
// record, after the last returned extent.
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
		z.Reset(io.Discard) // a gzip writer in the pool must not keep w alive
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
	// A value may come from the web. A line break in it would begin another field.
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

// countingWriter writes to w and counts the bytes.
type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

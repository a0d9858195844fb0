// Package warc reads and writes WARC 1.1 files (ISO 28500:2017), the archive
// format in which every response is kept as it was on the wire, and the CDXJ
// index beside each of them.
//
// In: records, their blocks given as byte slices or readers. Out: one gzip
// member a record, with the offset and length of each, so that any record can
// be read alone. The reader takes files of anybody: WARC 1.0 and 1.1, plain or
// gzip, and goes on behind what is broken, which it reports with its offset.
// Whatever a file holds, it neither panics nor takes memory beyond its bounds.
//
// The package imports the standard library and a gzip implementation, nothing
// of crawlbatch.
package warc

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"strings"
	"time"
)

// MaxFileSize bounds a WARC file: offsets are INT32 in Common Crawl's cc-index
// schema. Whoever writes begins a new file before a record would end behind it.
const MaxFileSize = math.MaxInt32

// Type is what a record is (WARC 1.1, section 6).
type Type string

// The record types that crawlbatch writes or expects to read.
const (
	Warcinfo   Type = "warcinfo"
	Response   Type = "response"
	Request    Type = "request"
	Revisit    Type = "revisit"
	Resource   Type = "resource"
	Metadata   Type = "metadata"
	Conversion Type = "conversion"
)

// Names of header fields (WARC 1.1, section 5; WARC-Protocol and
// WARC-Cipher-Suite are the IIPC's registered extensions).
const (
	FieldType           = "WARC-Type"
	FieldRecordID       = "WARC-Record-ID"
	FieldDate           = "WARC-Date"
	FieldContentLength  = "Content-Length"
	FieldContentType    = "Content-Type"
	FieldConcurrentTo   = "WARC-Concurrent-To"
	FieldBlockDigest    = "WARC-Block-Digest"
	FieldPayloadDigest  = "WARC-Payload-Digest"
	FieldIPAddress      = "WARC-IP-Address"
	FieldRefersTo       = "WARC-Refers-To"
	FieldRefersToURI    = "WARC-Refers-To-Target-URI"
	FieldRefersToDate   = "WARC-Refers-To-Date"
	FieldTargetURI      = "WARC-Target-URI"
	FieldTruncated      = "WARC-Truncated"
	FieldWarcinfoID     = "WARC-Warcinfo-ID"
	FieldFilename       = "WARC-Filename"
	FieldProfile        = "WARC-Profile"
	FieldIdentifiedType = "WARC-Identified-Payload-Type"
	FieldProtocol       = "WARC-Protocol"
	FieldCipherSuite    = "WARC-Cipher-Suite"
)

// Content types of blocks.
const (
	ContentTypeRequest  = "application/http; msgtype=request"
	ContentTypeResponse = "application/http; msgtype=response"
	ContentTypeFields   = "application/warc-fields"
)

// Profiles of revisit records (WARC 1.1, section 6.7).
const (
	ProfileIdenticalPayload = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
	ProfileNotModified      = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
)

// Truncation is why a block ends before its response did (WARC 1.1, section
// 5.13). The empty Truncation means it is whole.
type Truncation string

// The reasons for which a response is cut.
const (
	TruncatedLength      Truncation = "length"
	TruncatedTime        Truncation = "time"
	TruncatedDisconnect  Truncation = "disconnect"
	TruncatedUnspecified Truncation = "unspecified"
)

// ErrInvalid marks a record that the writer refuses because what it would
// write would not be a WARC record. Nothing was written.
var ErrInvalid = errors.New("not a valid WARC record")

// Field is one line of a WARC header, or of a block of application/warc-fields.
type Field struct {
	Name, Value string
}

// Extent is where a record's gzip member (or, in a plain file, the record
// itself with the blank lines that end it) lies in its file, in bytes.
type Extent struct {
	Offset int64 `json:"offset"`
	Length int64 `json:"length"`
}

// Record is a record to write. Its block is the concatenation of Block and then
// of BlockReader; neither is copied.
type Record struct {
	Type Type
	// ID is the record's URI, "urn:uuid:…" without angle brackets. When it is
	// empty the Writer gives the record one and sets it here.
	ID string
	// Date is when the capture began, written in UTC with milliseconds.
	Date time.Time
	// TargetURI is the URI that was asked for; required but for warcinfo and metadata.
	TargetURI string
	// ContentType is the block's; empty means the one that goes with Type.
	ContentType string

	Block [][]byte
	// BlockReader, if any, is read twice from its start: for the digest, then to be written.
	BlockReader io.ReadSeeker

	// PayloadDigest is of the entity body that the block holds, without chunk
	// framing, content codings still on. When it is empty and Payload is not
	// nil, the Writer digests the concatenation of Payload and sets it here.
	PayloadDigest Digest
	Payload       [][]byte

	// IPAddress is the server's, if the record was fetched from one.
	IPAddress netip.Addr
	// ConcurrentTo holds the IDs of the records of the same exchange.
	ConcurrentTo []string
	Truncated    Truncation
	// IdentifiedType is the media type found by looking at the payload.
	IdentifiedType string
	// Protocols are the layers that carried the exchange: "http/1.1", "tls/1.3".
	Protocols []string
	// CipherSuite is the TLS suite's name in IANA's registry.
	CipherSuite string

	// Profile and what is referred to, for revisit records.
	Profile      string
	RefersTo     string
	RefersToURI  string
	RefersToDate time.Time

	// Filename is that of the file that a warcinfo record describes.
	Filename string
	// Extra fields are written last, in order.
	Extra []Field
}

// Fields is a block of application/warc-fields, as warcinfo and metadata records have.
func Fields(fields ...Field) []byte {
	var b []byte
	for _, f := range fields {
		b = append(b, f.Name...)
		b = append(b, ": "...)
		// A line break would begin another field.
		b = append(b, lineBreaks.Replace(f.Value)...)
		b = append(b, "\r\n"...)
	}
	return b
}

var lineBreaks = strings.NewReplacer("\r\n", " ", "\r", " ", "\n", " ")

// defaultContentType is what a record of type t holds when nothing else is said.
func defaultContentType(t Type) string {
	switch t {
	case Response, Revisit:
		return ContentTypeResponse
	case Request:
		return ContentTypeRequest
	case Warcinfo, Metadata:
		return ContentTypeFields
	}
	return ""
}

// check refuses what WARC 1.1 has no place for.
func (rec *Record) check() error {
	switch {
	case rec.Type == "":
		return fmt.Errorf("%w: it has no type", ErrInvalid)
	case rec.Date.IsZero():
		return fmt.Errorf("%w: %s of %q has no date", ErrInvalid, rec.Type, rec.TargetURI)
	case rec.Date.UTC().Year() < 1 || rec.Date.UTC().Year() > 9999:
		return fmt.Errorf("%w: the year of %s is not one of four digits", ErrInvalid, rec.Date)
	case rec.TargetURI == "" && rec.Type != Warcinfo && rec.Type != Metadata:
		return fmt.Errorf("%w: %s without a target URI", ErrInvalid, rec.Type)
	case rec.Type == Revisit && rec.Profile == "":
		return fmt.Errorf("%w: revisit of %q without a profile", ErrInvalid, rec.TargetURI)
	}
	return nil
}

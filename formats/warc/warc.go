// Package warc reads and writes WARC 1.1 files (ISO 28500:2017) and the CDXJ index of each file. A
// WARC file keeps every response as the server sent it.
//
// A Writer takes records and writes each as a gzip member, so that any record can be read alone if
// its offset and length are known. A Reader accepts the files of any writer: WARC 1.0 and 1.1, plain
// or gzip. It reports damage with its offset and continues with the next record. No content of a
// file makes the Reader panic or exceed its memory bounds.
//
// Package warc imports the standard library, a gzip implementation, UUIDs and packages http1 and mediatype.
package warc

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// Type is the type of a record (WARC 1.1, section 6).
type Type string

// The record types that crawlbatch writes or expects to read.
const (
	Warcinfo Type = "warcinfo"
	Response Type = "response"
	Request  Type = "request"
	Revisit  Type = "revisit"
	Resource Type = "resource"
	Metadata Type = "metadata"
	// Continuation is a later segment of a record that is divided among files (section 7).
	Continuation Type = "continuation"
)

// The names of header fields (WARC 1.1, section 5). WARC-Protocol and WARC-Cipher-Suite are
// registered extensions of the IIPC.
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
	FieldSegmentNumber  = "WARC-Segment-Number"
	FieldTruncated      = "WARC-Truncated"
	FieldWarcinfoID     = "WARC-Warcinfo-ID"
	FieldFilename       = "WARC-Filename"
	FieldProfile        = "WARC-Profile"
	FieldIdentifiedType = "WARC-Identified-Payload-Type"
	FieldProtocol       = "WARC-Protocol"
	FieldCipherSuite    = "WARC-Cipher-Suite"
)

// The content types of blocks.
const (
	ContentTypeRequest  = "application/http; msgtype=request"
	ContentTypeResponse = "application/http; msgtype=response"
	ContentTypeFields   = "application/warc-fields"
)

// The profiles of revisit records (WARC 1.1, section 6.7).
const (
	ProfileIdenticalPayload = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
	ProfileNotModified      = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
)

// Truncation is the reason why a block is shorter than its response (WARC 1.1, section 5.13).
// Truncation is "" for a whole block.
type Truncation string

// The reasons for truncation.
const (
	TruncatedLength      Truncation = "length"
	TruncatedTime        Truncation = "time"
	TruncatedDisconnect  Truncation = "disconnect"
	TruncatedUnspecified Truncation = "unspecified"
)

// ErrInvalid means that a record is not valid in WARC 1.1, so the Writer wrote nothing.
var ErrInvalid = errors.New("not a valid WARC record")

// Field is one line of a WARC header, or of a block of application/warc-fields.
type Field struct {
	Name, Value string
}

// Extent is the offset and length of a record in its file, in bytes. In a gzip file, it covers the
// record's gzip member. In a plain file, it covers the record and the blank lines after it.
type Extent struct {
	Offset int64 `json:"offset"`
	Length int64 `json:"length"`
}

// Record is a WARC record to write.
type Record struct {
	Type Type
	// ID is the record's URI, "urn:uuid:…" without angle brackets. If ID is empty, the Writer sets it.
	ID string
	// Date is the time when the capture began. The Writer cuts it to milliseconds.
	Date time.Time
	// TargetURI is the requested URI. Only warcinfo and metadata records may have no TargetURI.
	TargetURI string
	// Block holds the parts of the block, one after another.
	Block [][]byte
	// PayloadDigest is the digest of the block's entity body, with content codings but without
	// chunk framing. It is "" if the record has no payload digest.
	PayloadDigest Digest

	// IPAddress is the address of the server, or the zero Addr.
	IPAddress netip.Addr
	// ConcurrentTo lists the IDs of the other records of the same exchange.
	ConcurrentTo []string
	Truncated    Truncation
	// IdentifiedType is the media type detected in the payload.
	IdentifiedType string
	// Protocols are the protocols of the exchange, such as "http/1.1" and "tls/1.3".
	Protocols []string
	// CipherSuite is the name of the TLS cipher suite in IANA's registry.
	CipherSuite string

	// Profile and the RefersTo fields describe a revisit: its kind, and the record with its payload.
	Profile      string
	RefersTo     string
	RefersToURI  string
	RefersToDate time.Time

	// Filename is the name of the file that a warcinfo record describes.
	Filename string
}

// Fields returns a block of application/warc-fields, for warcinfo and metadata records.
func Fields(fields ...Field) []byte {
	var b []byte
	for _, f := range fields {
		b = append(b, f.Name...)
		b = append(b, ": "...)
		// A line break in a value would begin another field.
		b = append(b, lineBreaks.Replace(f.Value)...)
		b = append(b, "\r\n"...)
	}
	return b
}

var lineBreaks = strings.NewReplacer("\r\n", " ", "\r", " ", "\n", " ")

// contentTypes holds the content types of the blocks that a Writer writes, by record type.
var contentTypes = map[Type]string{
	Response: ContentTypeResponse, Revisit: ContentTypeResponse, Request: ContentTypeRequest,
	Warcinfo: ContentTypeFields, Metadata: ContentTypeFields,
}

// check returns an error that wraps ErrInvalid for a record that WARC 1.1 does not allow.
func (rec *Record) check() error {
	switch {
	case rec.Type == "":
		return fmt.Errorf("%w: it has no type", ErrInvalid)
	case rec.Date.IsZero():
		return fmt.Errorf("%w: %s of %q has no date", ErrInvalid, rec.Type, rec.TargetURI)
	case rec.Date.UTC().Year() < 1 || rec.Date.UTC().Year() > 9999:
		return fmt.Errorf("%w: the year of %s does not have four digits", ErrInvalid, rec.Date)
	case rec.TargetURI == "" && rec.Type != Warcinfo && rec.Type != Metadata:
		return fmt.Errorf("%w: %s without a target URI", ErrInvalid, rec.Type)
	case rec.Type == Revisit && rec.Profile == "":
		return fmt.Errorf("%w: revisit of %q without a profile", ErrInvalid, rec.TargetURI)
	}
	return nil
}

package warc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
)

// FieldRemoved is a field of our own. It says that a takedown removed what a record held.
const FieldRemoved = "WARC-Removed"

// The values of FieldRemoved.
const (
	// RemovedRecord marks a tombstone. It has the place, the length, the ID and the date of the record
	// that was removed, but neither its URL nor its content.
	RemovedRecord = "record"
	// RemovedPayload marks a revisit whose payload was removed. The revisit no longer says where the
	// payload was.
	RemovedPayload = "payload"
)

// ErrLength means that a record does not fit into the given length.
var ErrLength = errors.New("the record does not fit into this length")

// Tombstone reports whether the record only says that another record was removed.
func (e *Entry) Tombstone() bool { return e.Header.Tombstone() }

// Tombstone reports whether a header is that of a tombstone.
func (h Header) Tombstone() bool { return h.Get(FieldRemoved) == RemovedRecord }

// PayloadRemoved reports whether a header is that of a revisit whose payload was removed.
func (h Header) PayloadRemoved() bool { return h.Get(FieldRemoved) == RemovedPayload }

const (
	memberHeader  = 10        // length of a gzip header without optional fields (RFC 1952, section 2.3)
	memberTrailer = 8         // CRC-32 and length
	storedHeader  = 5         // header of a stored block of deflate (RFC 1951, section 3.2.4)
	storedMost    = 1<<16 - 1 // most content of a stored block
	flagExtra     = 1 << 2
	flagComment   = 1 << 4
	// longestComment is the length of the longest comment of a member. Some readers refuse longer ones.
	longestComment = 200
	longestExtra   = 1<<16 - 1
)

// tombstoneText begins the block of every tombstone that has room for it.
const tombstoneText = "This record was removed on request. The rest of the block keeps the length of the record.\r\n"

// WriteTombstone writes a tombstone in place of a record whose gzip member has the given length, in
// bytes. It writes exactly so many bytes: one gzip member with a metadata record that has the given ID
// and date, which are those of the removed record. The same arguments give the same bytes. If the
// length is too small for such a record, the error wraps ErrLength, and nothing is written.
func WriteTombstone(w io.Writer, id string, date time.Time, length int64) error {
	content := length - memberHeader - memberTrailer
	blocks := (content + storedHeader + storedMost - 1) / (storedHeader + storedMost)
	content -= blocks * storedHeader
	head, block, slack := tombstoneHead(id, date, content)
	if block < 0 {
		return fmt.Errorf("tombstone for %s of %d bytes: %w", id, length, ErrLength)
	}
	content -= slack
	header := [memberHeader]byte{0x1f, 0x8b, 8, 9: 0xff}
	m := &storedMember{w: w, left: content, blocks: blocks}
	if slack == 1 {
		header[3] = flagComment
		m.raw(header[:])
		m.raw([]byte{0})
	} else {
		m.raw(header[:])
	}
	m.write([]byte(head))
	m.write([]byte(tombstoneText[:min(block, int64(len(tombstoneText)))]))
	for block -= int64(len(tombstoneText)); block > 0; block -= int64(len(padding)) {
		m.write(padding[:min(block, int64(len(padding)))])
	}
	m.write([]byte("\r\n\r\n"))
	m.raw(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, m.crc), uint32(content)))
	if m.err != nil {
		return fmt.Errorf("tombstone for %s: %w", id, m.err)
	}
	return nil
}

// padding fills blocks of tombstones. It is text, so that viewers show it as blank lines.
var padding = bytes.Repeat([]byte(strings.Repeat(" ", 63)+"\n"), 512)

// tombstoneHead returns the header of a tombstone whose record has the given length, and the length of
// its block. No length of a block may fit, because it adds digits to the header: then slack is 1, and
// the record is one byte shorter. If even an empty block does not fit, block is negative.
func tombstoneHead(id string, date time.Time, content int64) (head string, block, slack int64) {
	start := version + FieldType + ": " + string(Metadata) + "\r\n" + FieldRecordID + ": <" + id + ">\r\n" +
		FieldDate + ": " + date.UTC().Truncate(time.Millisecond).Format(dateFormat) + "\r\n" +
		FieldRemoved + ": " + RemovedRecord + "\r\n"
	textual := start + FieldContentType + ": text/plain\r\n"
	for _, start := range []string{textual, start} {
		for slack = range int64(2) {
			for digits := int64(1); digits < 20; digits++ {
				block = content - slack - int64(len(start)) - int64(len(FieldContentLength+": \r\n\r\n\r\n\r\n")) - digits
				if block >= 0 && int64(len(strconv.FormatInt(block, 10))) == digits {
					return start + FieldContentLength + ": " + strconv.FormatInt(block, 10) + "\r\n\r\n", block, slack
				}
			}
		}
	}
	return "", -1, 0
}

// storedMember writes the stored blocks of a gzip member and computes the checksum of their content.
type storedMember struct {
	w      io.Writer
	left   int64 // content that no block has begun yet, in bytes
	blocks int64 // number of blocks that have not begun yet; they hold left
	room   int   // content that the current block still takes, in bytes
	crc    uint32
	err    error
}

func (m *storedMember) raw(p []byte) {
	if m.err == nil {
		_, m.err = m.w.Write(p)
	}
}

func (m *storedMember) write(p []byte) {
	m.crc = crc32.Update(m.crc, crc32.IEEETable, p)
	for len(p) > 0 {
		if m.room == 0 {
			m.blocks--
			m.room = int(min(m.left-m.blocks, storedMost)) // the later blocks hold a byte at least
			m.left -= int64(m.room)
			var final byte
			if m.blocks == 0 {
				final = 1
			}
			n := uint16(m.room)
			m.raw([]byte{final, byte(n), byte(n >> 8), byte(^n), byte(^n >> 8)})
		}
		n := min(m.room, len(p))
		m.raw(p[:n])
		m.room -= n
		p = p[n:]
	}
}

// RewriteRevisit returns the gzip member of a revisit as a member of the same length with the same
// record, except that it says that its payload was removed and no longer refers to the record that had
// it. The member must hold one record, and fit into memory: a revisit holds only the head of a
// response. If it holds something else, the error says what. The same member gives the same bytes.
func RewriteRevisit(member []byte) ([]byte, error) {
	e, err := ReadAt(bytes.NewReader(member), Extent{Length: int64(len(member))}, ReaderOptions{})
	if err != nil {
		return nil, err
	}
	if e.Type != Revisit {
		return nil, fmt.Errorf("rewrite %s %s: %w: it is not a revisit", e.Type, e.ID(), ErrInvalid)
	}
	version := e.Version
	var block bytes.Buffer // e.Length may claim too much, so the buffer grows with the data
	if _, err := block.ReadFrom(e); err != nil {
		return nil, err
	}
	s, err := e.Finish()
	if err != nil {
		return nil, err
	}
	if s.Length != int64(len(member)) {
		return nil, fmt.Errorf("rewrite revisit %s: %w: it shares its gzip member", e.ID(), ErrInvalid)
	}
	var record bytes.Buffer
	record.WriteString(version + "\r\n")
	for _, f := range e.Header {
		if !strings.EqualFold(f.Name, FieldRefersTo) && !strings.EqualFold(f.Name, FieldRefersToURI) &&
			!strings.EqualFold(f.Name, FieldRefersToDate) && !strings.EqualFold(f.Name, FieldRemoved) {
			record.WriteString(f.Name + ": " + f.Value + "\r\n")
		}
	}
	record.WriteString(FieldRemoved + ": " + RemovedPayload + "\r\n\r\n")
	record.Write(block.Bytes())
	record.WriteString("\r\n\r\n")
	for _, level := range []int{gzip.BestSpeed, gzip.BestCompression} {
		out, err := memberOf(record.Bytes(), level, len(member))
		if !errors.Is(err, ErrLength) {
			return out, err
		}
	}
	return nil, fmt.Errorf("rewrite revisit %s into %d bytes: %w", e.ID(), len(member), ErrLength)
}

// memberOf compresses content into a gzip member of exactly length bytes. Optional fields of the
// member's header fill what is left.
func memberOf(content []byte, level, length int) ([]byte, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, level)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(content); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	left := length - out.Len()
	switch {
	case left < 0 || left > longestExtra+2:
		return nil, ErrLength
	case left == 0:
		return out.Bytes(), nil
	}
	b := out.Bytes()
	m := append(make([]byte, 0, length), b[:memberHeader]...)
	if left <= longestComment {
		m[3] |= flagComment
		m = append(append(m, bytes.Repeat([]byte(" "), left-1)...), 0)
	} else {
		// The extra field has one subfield (RFC 1952, section 2.3.1.1).
		m[3] |= flagExtra
		m = binary.LittleEndian.AppendUint16(m, uint16(left-2))
		m = append(m, 'c', 'b')
		m = binary.LittleEndian.AppendUint16(m, uint16(left-6))
		m = append(m, make([]byte, left-6)...)
	}
	return append(m, b[memberHeader:]...), nil
}

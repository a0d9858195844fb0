package records

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"crawlbatch.io/crawlbatch/formats/warc"
)

// ErrDamaged means that the bytes at a Place are not a whole record.
var ErrDamaged = errors.New("the record is damaged")

// Record is a decoded record. It is valid until the Decoder decodes the next one.
type Record struct {
	Type   warc.Type
	URL    string // value of the field WARC-Target-URI
	Date   time.Time
	Header warc.Header
	Block  []byte
	Cut    bool // whether Block is incomplete, because the record's block is longer than the limit

	// Digests holds the verdicts on the record's digests. It is zero unless Decoder.Check is set and the
	// record was read to its end.
	Digests warc.Summary
}

// BlockLimit returns how many bytes of a response's block to read if its body has at most maxBody
// bytes. The 2 MiB that it adds are for the head and the chunk framing.
func BlockLimit(maxBody int64) int64 { return maxBody + 2<<20 }

// StoredLimit returns how many compressed bytes of a response's record to read if its body has at
// most maxBody bytes. Incompressible data grows slightly when it is compressed.
func StoredLimit(maxBody int64) int64 { return BlockLimit(maxBody) + maxBody/16 + 2<<20 }

// Decoder decodes records. The zero value is ready for use, by one goroutine at a time.
type Decoder struct {
	// Check makes Record check the digests of records. Set it before the first record.
	Check bool

	reader *warc.Reader
	in     bytes.Reader
	block  []byte
}

// keptBlock is the largest buffer that is reused for the next record, in bytes.
const keptBlock = 4 << 20

// Record decodes a record, but at most limit bytes of its block. Its error wraps ErrDamaged.
func (d *Decoder) Record(raw *Raw, limit int64) (*Record, error) {
	if raw.Err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, raw.Err)
	}
	if d.reader == nil {
		d.reader = warc.NewReader(nil, warc.ReaderOptions{Check: d.Check})
	}
	d.in.Reset(raw.Bytes)
	d.reader.Reset(&d.in, raw.Offset)
	e, err := d.reader.Next()
	if err != nil {
		return nil, damagedError(raw, err)
	}
	r := &Record{Type: e.Type, URL: e.TargetURI(), Header: e.Header}
	if r.Date, err = e.Date(); err != nil {
		return nil, damagedError(raw, err)
	}
	if cap(d.block) > keptBlock {
		d.block = nil
	}
	// The buffer grows with the data, because the header may claim too large a length.
	buf := bytes.NewBuffer(d.block[:0])
	_, err = buf.ReadFrom(io.LimitReader(e, min(e.Length, limit)))
	if d.block = buf.Bytes(); err != nil && !raw.Cut {
		return nil, damagedError(raw, err)
	}
	r.Block, r.Cut = d.block, int64(len(d.block)) < e.Length
	if r.Cut {
		return r, nil
	}
	// The checksum is at the end of the gzip member.
	s, err := e.Finish()
	switch {
	case raw.Cut:
	case err != nil:
		return nil, damagedError(raw, err)
	case s.Length != raw.Length:
		return nil, damagedError(raw, fmt.Errorf("the record is %d bytes long, not %d", s.Length, raw.Length))
	case d.Check:
		r.Digests = s
	}
	return r, nil
}

func damagedError(raw *Raw, err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: %d bytes at %d of %q: %w", ErrDamaged, raw.Length, raw.Offset, raw.File, err)
}

package warc

import (
	"errors"
	"io"
	"iter"
	"time"
)

// Finding describes a record, or a damaged stretch of the file.
type Finding struct {
	Extent
	Type      Type      `json:"type,omitempty"`
	ID        string    `json:"id,omitempty"`
	Date      time.Time `json:"date,omitzero"`
	TargetURI string    `json:"target_uri,omitempty"`
	// ContentLength is the length of the block in bytes.
	ContentLength int64   `json:"content_length"`
	StartLine     string  `json:"start_line,omitempty"`
	Truncated     string  `json:"truncated,omitempty"`
	Block         Verdict `json:"block_digest,omitempty"`
	Payload       Verdict `json:"payload_digest,omitempty"`
	// Problems are faults of the record, which could be read nevertheless.
	Problems []string `json:"problems,omitempty"`
	// Damage says why a stretch of the file cannot be read as records. It is "" for a record.
	Damage string `json:"damage,omitempty"`
}

// Sound reports whether the record is whole and no digest differs.
func (f Finding) Sound() bool {
	return f.Damage == "" && f.Block != Differs && f.Payload != Differs
}

// Inspect reads a WARC file, checks the digests of every record, and yields a finding for each record
// and damaged stretch. If reading the file fails, the error ends the sequence.
func Inspect(in io.Reader) iter.Seq2[Finding, error] {
	return func(yield func(Finding, error) bool) {
		r := NewReader(in, ReaderOptions{Check: true})
		for {
			f, err := inspectNext(r)
			if err == io.EOF {
				return
			}
			if !yield(f, err) || err != nil {
				return
			}
		}
	}
}

func inspectNext(r *Reader) (Finding, error) {
	var f Finding
	e, err := r.Next()
	if err == nil {
		f.Type, f.ID, f.TargetURI = e.Type, e.ID(), e.TargetURI()
		f.ContentLength, f.Truncated = e.Length, e.Header.Get(FieldTruncated)
		f.Date, _ = e.Date() // Finish reports a bad date as a problem
		var s Summary
		if s, err = e.Finish(); err == nil {
			f.Extent, f.StartLine, f.Problems = s.Extent, s.StartLine, s.Problems
			f.Block, f.Payload = s.Block, s.Payload
			return f, nil
		}
	}
	if damage, ok := errors.AsType[*DamageError](err); ok {
		f.Extent, f.Damage = damage.Extent, damage.Err.Error()
		return f, nil
	}
	return f, err
}

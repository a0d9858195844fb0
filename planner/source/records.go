package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/urltext"
)

// ErrColumn means that a file lacks a column, or that the column has the wrong type.
var ErrColumn = errors.New("correct the names after # (#column=NAME names the column of the URLs)")

const (
	// maxRecord is the length of the longest record of CSV or JSON lines, in bytes.
	maxRecord = 4 << 20
	// maxFields is the largest number of fields in a record of CSV.
	maxFields = 10_000
	// maxShown bounds the texts and names of hostile files in errors and refusals, in bytes.
	maxShown = 200
)

// lacks returns the error for a column that a file does not have.
func lacks(column string, have []string) error {
	more := ""
	if len(have) > 30 {
		have, more = have[:30], ", …"
	}
	shown := make([]string, len(have))
	for i, name := range have {
		shown[i] = fmt.Sprintf("%.60q", name)
	}
	return fmt.Errorf("it has no column %.60q, its columns are %s: %w", column, strings.Join(shown, ", ")+more, ErrColumn)
}

// entry returns the entry of a record. get(i) returns the value of the i-th column of r.names(). ok is
// false if the record has no URL or the filter leaves the record out.
func (r *reading) entry(get func(i int) (value, error)) (e Entry, ok bool, err error) {
	for i := range r.where {
		v, err := get(1 + i)
		if err != nil || !r.where[i].holds(v) {
			return e, false, err
		}
	}
	v, err := get(0)
	if err != nil || v.kind == null || v.kind == text && blank(v.text) {
		return e, false, err
	}
	e = Entry{Due: true, Listed: true, Priority: DefaultPriority}
	e.URL, e.Broken = urlOf(v.text, urltext.Field)
	switch {
	case v.kind != text:
		e.Broken = fmt.Sprintf("column %.60q holds no text", r.url())
	case e.Broken != "":
		e.Broken = fmt.Sprintf("column %.60q: %s", r.url(), e.Broken)
	}
	if r.priority == "" {
		return e, true, nil
	}
	p, err := get(1 + len(r.where))
	if p.kind == text && !blank(p.text) {
		p, _ = number(bytes.TrimSpace(p.text))
	}
	switch {
	case p.kind == null || p.kind == text:
	case p.kind == integer && p.n >= 0 && p.n <= 1000:
		e.Priority = int32(p.n)
	default:
		e.Broken = fmt.Sprintf("column %.60q holds no whole number from 0 to 1000", r.priority)
	}
	return e, true, err
}

// records reads records from a stream into a buffer that grows to the longest record.
type records struct {
	in         io.Reader
	buf        []byte
	start, end int   // the bytes of buf that are not consumed
	err        error // error that ended the stream, io.EOF at its end
	line       int64 // number of the first unread line, from 0
}

// rest returns the bytes that are not consumed. They stay valid until the next fill.
func (r *records) rest() []byte { return r.buf[r.start:r.end] }

// fill reads more bytes. It returns false at the end of the stream, after an error, and if maxRecord
// bytes are unread.
func (r *records) fill() bool {
	if r.err != nil || r.end-r.start >= maxRecord {
		return false
	}
	if r.end == len(r.buf) {
		to := r.buf
		if r.end-r.start > len(r.buf)/2 || len(r.buf) == 0 {
			to = make([]byte, min(max(2*len(r.buf), bufferBytes), 2*maxRecord))
		}
		r.start, r.end = 0, copy(to, r.rest())
		r.buf = to
	}
	var n int
	n, r.err = r.in.Read(r.buf[r.end:])
	r.end += n
	return n > 0 || r.err == nil
}

// failed returns the error that ended the stream before its end.
func (r *records) failed() error {
	if r.err == nil || r.err == io.EOF {
		return nil
	}
	return fmt.Errorf("line %d: %w (%w)", r.line+1, ErrUnreadable, r.err)
}

// consume drops the first n unread bytes, which end with a line.
func (r *records) consume(n int) {
	r.line += int64(bytes.Count(r.rest()[:n], []byte("\n")))
	r.start += n
}

// lineEnd returns the number of bytes in the first unread line, with its end. whole is false if the
// line is longer than maxRecord or the stream failed.
func (r *records) lineEnd() (n int, whole bool) {
	for from := 0; ; {
		if i := bytes.IndexByte(r.rest()[from:], '\n'); i >= 0 {
			n = from + i + 1
			return n, n <= maxRecord
		}
		from = len(r.rest())
		if !r.fill() {
			return from, r.err == io.EOF && from <= maxRecord
		}
	}
}

// dropLine drops the first unread line, of any length.
func (r *records) dropLine() {
	for ended := false; !ended; {
		n, _ := r.lineEnd()
		ended = bytes.HasSuffix(r.rest()[:n], []byte("\n")) || r.err != nil
		r.consume(n)
	}
}

// broken returns an Entry that refuses the record at which the unread bytes begin.
func (r *records) broken(name, why string) Entry {
	for len(r.rest()) < maxShown && r.fill() {
		continue // fills the buffer, so that the shown text does not depend on the sizes of reads
	}
	shown := r.rest()[:min(r.end-r.start, maxShown)]
	if i := bytes.IndexByte(shown, '\n'); i >= 0 {
		shown = shown[:i]
	}
	return Entry{URL: string(shown), File: name, Line: r.line + 1, Due: true, Listed: true, Broken: why}
}

// readJSON reads one JSON object per line. It skips blank lines, and objects in which the URL is
// null or missing. A column that no object of the file has is an error.
func readJSON(ctx context.Context, in io.Reader, name string, how *reading, yield func(Entry) bool) (more bool, err error) {
	r := records{in: in}
	names := how.names()
	seen := make([]bool, len(names))
	var first []string // keys of the first object
	row := map[string]json.RawMessage{}
	get := func(i int) (value, error) { return jsonValue(row[names[i]]), nil }
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		size, whole := r.lineEnd()
		if err := r.failed(); err != nil {
			return false, err
		}
		if size == 0 {
			break
		}
		line := bytes.TrimSpace(r.rest()[:size])
		why := ""
		clear(row)
		switch {
		case !whole:
			why = fmt.Sprintf("the line is longer than %d bytes", maxRecord)
		case len(line) == 0:
			r.consume(size)
			continue
		case n == 0 && line[0] == '[':
			return false, fmt.Errorf("line 1: %w (it is one JSON array: write one object per line, as jq -c '.[]' does)", ErrUnreadable)
		default:
			if err := json.Unmarshal(line, &row); err != nil || row == nil {
				row, why = map[string]json.RawMessage{}, "the line is no JSON object"
			}
		}
		e, ok := Entry{}, false
		if why == "" {
			if first == nil {
				first = slices.Sorted(maps.Keys(row))
			}
			for i, name := range names {
				if _, has := row[name]; has {
					seen[i] = true
				}
			}
			e, ok, err = how.entry(get)
			why, e.File, e.Line = e.Broken, name, r.line+1
		}
		if why != "" {
			e, ok = r.broken(name, why), true
		}
		if err != nil || ok && !yield(e) {
			return false, err
		}
		r.dropLine()
	}
	if i := slices.Index(seen, false); i >= 0 && first != nil {
		return false, lacks(names[i], first)
	}
	return true, nil
}

// jsonValue returns the value of a field. A missing field is null.
func jsonValue(raw json.RawMessage) value {
	if len(raw) == 0 {
		return value{}
	}
	switch raw[0] {
	case '"':
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return value{kind: other}
		}
		return textOf(s)
	case 'n':
		return value{}
	case 't', 'f':
		return value{kind: text, text: raw}
	case '{', '[':
		return value{kind: other}
	}
	if n, ok := number([]byte(raw)); ok {
		return n
	}
	return value{kind: other} // the number is too large
}

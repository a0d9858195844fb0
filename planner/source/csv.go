package source

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// csvReader reads records of CSV (RFC 4180), with any separator. A field that begins with a double
// quote ends at the next double quote that is not doubled, and may hold separators and line ends.
// Other double quotes stand for themselves. All records have as many fields as the first.
type csvReader struct {
	records
	sep    byte
	fields []csvField // fields of the record at the start of the unread bytes
	size   int        // bytes of that record, with its line end
	width  int        // number of fields of the first record, or 0
}

// csvField is the place of a field in the unread bytes, without its quotes.
type csvField struct {
	from, to int
	quoted   bool
}

// field returns the value of a field of the record.
func (c *csvReader) field(i int) []byte {
	f := c.fields[i]
	b := c.rest()[f.from:f.to]
	if f.quoted && bytes.Contains(b, []byte(`""`)) {
		return bytes.ReplaceAll(b, []byte(`""`), []byte(`"`))
	}
	return b
}

// scan finds the next record that is not blank. why says why the record is malformed, or is "" for a
// well-formed record. At the end of the stream, scan returns io.EOF.
func (c *csvReader) scan() (why string, err error) {
	for {
		c.fields = c.fields[:0]
		why = c.scanRecord()
		if err := c.failed(); err != nil && (why != "" || c.size == len(c.rest())) {
			return "", err
		}
		if why != "" {
			return why, nil
		}
		if c.size == 0 {
			return "", io.EOF
		}
		if len(c.fields) > 1 || c.fields[0].quoted || !blank(c.field(0)) {
			break
		}
		c.consume(c.size)
	}
	if c.width == 0 {
		c.width = len(c.fields)
	}
	if len(c.fields) != c.width {
		return fmt.Sprintf("the record has %d fields, the first record %d", len(c.fields), c.width), nil
	}
	return "", nil
}

// byteAt returns byte i of the unread bytes. It returns -1 after the end of the stream, and after
// maxRecord bytes.
func (c *csvReader) byteAt(i int) int {
	if i >= maxRecord {
		return -1
	}
	for i >= c.end-c.start {
		if !c.fill() {
			return -1
		}
	}
	return int(c.buf[c.start+i])
}

// scanRecord finds the fields and the size of the record at the start of the unread bytes.
func (c *csvReader) scanRecord() (why string) {
	for i := 0; ; i++ {
		f := csvField{from: i}
		if c.byteAt(i) == '"' {
			f = csvField{from: i + 1, quoted: true}
			if f.to = c.closingQuote(i + 1); f.to < 0 {
				return c.endless("a quoted field does not end")
			}
			if i = f.to + 1; c.byteAt(i) == '\r' && c.byteAt(i+1) == '\n' {
				i++
			}
		} else {
			i = c.fieldEnd(i)
			if f.to = i; c.byteAt(i) != int(c.sep) && i > f.from && c.byteAt(i-1) == '\r' {
				f.to--
			}
		}
		if c.fields = append(c.fields, f); len(c.fields) > maxFields {
			return fmt.Sprintf("the record has more than %d fields", maxFields)
		}
		switch c.byteAt(i) {
		case int(c.sep):
		case '\n':
			c.size = i + 1
			return ""
		case -1:
			c.size = i
			return c.endless("")
		default:
			return "text follows the closing quote of a field"
		}
	}
}

// endless returns an error text for a record whose end was not found: either the record is too long,
// or the stream has ended, and the text is why.
func (c *csvReader) endless(why string) string {
	if len(c.rest()) >= maxRecord {
		return fmt.Sprintf("the record is longer than %d bytes", maxRecord)
	}
	return why
}

// closingQuote returns the place of the quote that closes a field, or -1.
func (c *csvReader) closingQuote(i int) int {
	for ; ; i++ {
		switch c.byteAt(i) {
		case -1:
			return -1
		case '"':
			if c.byteAt(i+1) != '"' {
				return i
			}
			i++
		}
	}
}

// fieldEnd returns the place where an unquoted field ends: at a separator, a line end or the end of
// the stream.
func (c *csvReader) fieldEnd(i int) int {
	for c.byteAt(i) >= 0 {
		rest := c.rest()[:min(len(c.rest()), maxRecord)]
		for ; i < len(rest); i++ {
			if rest[i] == c.sep || rest[i] == '\n' {
				return i
			}
		}
	}
	return i
}

// readCSV reads the records of a CSV file. A malformed record is refused, and reading continues with
// the line after the first line of the record, because a stray quote may have joined many lines.
func readCSV(ctx context.Context, in io.Reader, sep byte, name string, how *reading, yield func(Entry) bool) (more bool, err error) {
	c := &csvReader{records: records{in: in}, sep: sep}
	why, err := c.scan()
	for err == nil && why != "" && len(c.rest()) >= maxRecord { // too long for a header
		if !yield(c.broken(name, why)) {
			return false, nil
		}
		c.dropLine()
		why, err = c.scan()
	}
	if err == io.EOF {
		return true, nil
	}
	if err == nil && why != "" {
		err = fmt.Errorf("line %d: %w (%s)", c.line+1, ErrUnreadable, why)
	}
	if err != nil {
		return false, err
	}
	places, header, err := c.locate(how)
	if err != nil {
		return false, err
	}
	if header {
		c.consume(c.size)
	}
	get := func(i int) (value, error) { return value{kind: text, text: c.field(places[i])}, nil }
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		why, err := c.scan()
		if err != nil {
			if err == io.EOF {
				return true, nil
			}
			return false, err
		}
		e, ok := Entry{}, false
		if why == "" {
			if e, ok, err = how.entry(get); err != nil {
				return false, err
			}
			e.File, e.Line = name, c.line+1
		} else {
			e, ok = c.broken(name, why), true
		}
		if ok && !yield(e) {
			return false, nil
		}
		if why == "" {
			c.consume(c.size)
		} else {
			c.dropLine()
		}
	}
}

// locate finds the columns in the first record. The record is a header if it holds the name of the
// URL's column. A column may also be given by its number from 1, and then the file has no header.
// If no column is given and there is no header, the URL is the only field that begins with http.
func (c *csvReader) locate(how *reading) (places []int, header bool, err error) {
	var first []string
	for i := range c.fields {
		first = append(first, string(c.field(i)))
	}
	for _, column := range how.names() {
		at := findColumn(first, column)
		if len(places) == 0 {
			header = at >= 0
		}
		if !header {
			at = numbered(first, column)
			if len(places) == 0 && how.column == "" {
				at = onlyURL(first)
			}
		}
		if at < 0 {
			return nil, false, lacks(column, first)
		}
		places = append(places, at)
	}
	return places, header, nil
}

// findColumn finds a name in a header. Case and outer spaces do not matter.
func findColumn(header []string, name string) int {
	if i := slices.Index(header, name); i >= 0 {
		return i
	}
	return slices.IndexFunc(header, func(s string) bool { return strings.EqualFold(strings.TrimSpace(s), name) })
}

// numbered returns the index of a column that is given by its number, or -1.
func numbered(first []string, number string) int {
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(first) {
		return -1
	}
	return n - 1
}

// onlyURL returns the index of the only field that begins as a URL, or -1.
func onlyURL(first []string) int {
	found := -1
	for i, s := range first {
		if !strings.HasPrefix(s, "http://") && !strings.HasPrefix(s, "https://") {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}

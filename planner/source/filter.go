package source

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// ErrWhere means that the condition of a source is wrong.
var ErrWhere = errors.New("a condition is comparisons COLUMN = VALUE joined by AND; also !=, <, <=, >, >=, IN (VALUE, …) and LIKE 'abc%'; a VALUE is a number, true, false or a text in single quotes")

// filter is the value of the option where. A record must meet all conditions.
type filter []condition

// condition compares a column with literals. IN has one or more literals. Every other operator has
// one literal.
type condition struct {
	column string
	op     string // "=", "!=", "<", "<=", ">", ">=", "IN" or "LIKE"
	values []value
	at     int // position of the column in the expression, in characters from 1
}

// kind is the kind of a value.
type kind int

const (
	null    kind = iota
	text         // also for booleans: "true" and "false"
	integer      // also for times: microseconds since 1970, UTC
	real
	other // value that no condition and no URL can use
)

// value is a value of a record or a literal. The text of a record is valid until the next record.
type value struct {
	kind kind
	text []byte
	n    int64
	f    float64
}

func textOf(s string) value { return value{kind: text, text: []byte(s)} }

// number returns the number that a text holds.
func number[T string | []byte](s T) (value, bool) {
	if n, err := strconv.ParseInt(string(s), 10, 64); err == nil {
		return value{kind: integer, n: n}, true
	}
	f, err := strconv.ParseFloat(string(s), 64)
	return value{kind: real, f: f}, err == nil
}

// compare compares a value with a literal. Texts compare by bytes. If the literal is a number, a
// text is compared as the number that it holds, because CSV has no types. ok is false if the two
// cannot be compared, as with null in SQL.
func compare(v, literal value) (c int, ok bool) {
	if v.kind == text && literal.kind != text {
		if v, ok = number(v.text); !ok {
			return 0, false
		}
	}
	switch {
	case v.kind == null || v.kind == other || v.kind != text && literal.kind == text:
		return 0, false
	case v.kind == text:
		return bytes.Compare(v.text, literal.text), true
	case v.kind == integer && literal.kind == integer:
		return cmp.Compare(v.n, literal.n), true
	}
	a, b := v.float(), literal.float()
	return cmp.Compare(a, b), !math.IsNaN(a) && !math.IsNaN(b)
}

func (v value) float() float64 {
	if v.kind == integer {
		return float64(v.n)
	}
	return v.f
}

// holds reports whether a value meets the condition. As in SQL, null meets no condition.
func (c *condition) holds(v value) bool {
	if c.op == "LIKE" {
		return v.kind == text && like(c.values[0].text, v.text)
	}
	return slices.ContainsFunc(c.values, func(literal value) bool {
		order, ok := compare(v, literal)
		return ok && meets(c.op, order)
	})
}

// meets reports whether op holds for two values whose comparison gave order: below 0, 0 or above 0.
func meets(op string, order int) bool {
	switch op {
	case "!=":
		return order != 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	case ">=":
		return order >= 0
	}
	return order == 0
}

// mayHold reports whether a value in a range may meet the condition. The range has the bounds least
// and most, inclusive.
func (c *condition) mayHold(least, most value) bool {
	if c.op == "LIKE" {
		prefix := c.values[0].text
		if i := bytes.IndexAny(prefix, "%_"); i >= 0 {
			prefix = prefix[:i]
		}
		return least.kind != text || most.kind != text ||
			bytes.Compare(most.text, prefix) >= 0 && (bytes.Compare(least.text, prefix) <= 0 || bytes.HasPrefix(least.text, prefix))
	}
	return slices.ContainsFunc(c.values, func(literal value) bool {
		low, ok1 := compare(least, literal)
		high, ok2 := compare(most, literal)
		switch {
		case !ok1 || !ok2:
			return true
		case c.op == "<" || c.op == "<=":
			return meets(c.op, low)
		case c.op == ">" || c.op == ">=":
			return meets(c.op, high)
		}
		return c.op == "!=" || low <= 0 && high >= 0
	})
}

// like reports whether a text matches an SQL pattern. In the pattern, % stands for any characters
// and _ for one character. The time is at most the product of the lengths.
func like(pattern, s []byte) bool {
	star, retry := -1, 0 // place after the last %, and the place in s at which the rest of the pattern was last tried
	p := 0
	for i := 0; i < len(s); {
		switch {
		case p < len(pattern) && pattern[p] == '%':
			p++
			star, retry = p, i
		case p < len(pattern) && pattern[p] == '_':
			_, n := utf8.DecodeRune(s[i:])
			p, i = p+1, i+n
		case p < len(pattern) && pattern[p] == s[i]:
			p, i = p+1, i+1
		case star >= 0:
			_, n := utf8.DecodeRune(s[retry:])
			retry += n
			p, i = star, retry
		default:
			return false
		}
	}
	return len(bytes.Trim(pattern[p:], "%")) == 0
}

// token matches the next token of an expression: a text, a quoted name, a number, a word, or an
// operator.
var token = regexp.MustCompile(`^(?:'(?:[^']|'')*'|"(?:[^"]|"")*"|[-+]?[0-9.][0-9A-Za-z.+-]*|[\pL_][\pL\pN_.]*|!=|<>|<=|>=|[=<>(),])`)

// filterParser parses an expression from left to right.
type filterParser struct {
	text string // the whole expression
	rest string // the text from the current token on
	tok  string // the current token, "" at the end
	err  error
}

// parseFilter parses the text of the option where. Errors name the position in characters.
func parseFilter(expression string) (filter, error) {
	p := &filterParser{text: expression, rest: expression}
	var f filter
	for p.next(0); p.err == nil; p.next(len(p.tok)) {
		f = append(f, p.condition())
		if p.err != nil || p.tok == "" {
			break
		}
		if !strings.EqualFold(p.tok, "AND") {
			p.fail("want AND or the end")
		}
	}
	return f, p.err
}

// next skips n bytes of rest, and moves to the token after these bytes.
func (p *filterParser) next(n int) {
	if p.err != nil {
		return
	}
	p.rest = strings.TrimLeft(p.rest[n:], " \t\r\n")
	if p.tok = token.FindString(p.rest); p.tok == "" && p.rest != "" {
		p.fail("no word, number or text in closed quotes begins")
	}
}

// position returns the position of the current token, in characters from 1.
func (p *filterParser) position() int {
	return utf8.RuneCountInString(p.text[:len(p.text)-len(p.rest)]) + 1
}

func (p *filterParser) fail(why string) {
	if p.err == nil {
		p.err = fmt.Errorf("where, character %d: %s: %w", p.position(), why, ErrWhere)
	}
}

// take returns the current token and moves to the next.
func (p *filterParser) take() string {
	tok := p.tok
	p.next(len(tok))
	return tok
}

// condition parses COLUMN OPERATOR VALUE.
func (p *filterParser) condition() condition {
	c := condition{at: p.position()}
	switch first, _ := utf8.DecodeRuneInString(p.tok); {
	case first == '"':
		quoted := p.take()
		c.column = strings.ReplaceAll(quoted[1:len(quoted)-1], `""`, `"`)
	case p.tok != "" && !strings.ContainsRune("'(),=<>!+-.0123456789", first):
		c.column = p.take()
	default:
		p.fail("want the name of a column")
		return c
	}
	switch c.op = strings.ToUpper(p.tok); c.op {
	case "<>":
		c.op = "!="
	case "=", "!=", "<", "<=", ">", ">=", "LIKE", "IN":
	default:
		p.fail("want =, !=, <, <=, >, >=, IN or LIKE")
		return c
	}
	if p.take(); c.op != "IN" {
		c.values = []value{p.value(c.op)}
		return c
	}
	if p.tok != "(" {
		p.fail("want ( after IN")
	}
	for p.err == nil && p.take() != ")" {
		c.values = append(c.values, p.value(c.op))
		if p.tok != "," && p.tok != ")" {
			p.fail("want , or )")
		}
	}
	return c
}

// value parses a literal.
func (p *filterParser) value(op string) value {
	if strings.HasPrefix(p.tok, "'") {
		quoted := p.take()
		return textOf(strings.ReplaceAll(quoted[1:len(quoted)-1], "''", "'"))
	}
	word := strings.ToLower(p.tok)
	n, ok := number(p.tok)
	switch {
	case p.err != nil:
	case op == "LIKE":
		p.fail("want a text in single quotes after LIKE")
	case word == "true" || word == "false":
		p.take()
		return textOf(word)
	case !ok || math.IsNaN(n.float()) || math.IsInf(n.float(), 0):
		p.fail("want a number, true, false or a text in single quotes")
	}
	p.take()
	return n
}

// typed checks and converts the condition's values for a column of a Parquet file, which stores
// types. Errors describe the column's values with want. For a column of times, texts become times.
func (c condition) typed(column kind, times bool, want string) (condition, error) {
	c.values = slices.Clone(c.values)
	for i, v := range c.values {
		ok := (v.kind == text) == (column == text || times) && (c.op != "LIKE" || column == text)
		if ok && times {
			var at time.Time
			at, ok = parseTime(string(v.text))
			c.values[i] = value{kind: integer, n: at.UnixMicro()}
		}
		if !ok {
			return c, fmt.Errorf("where, character %d: column %.60q holds %s: %w", c.at, c.column, want, ErrWhere)
		}
	}
	return c, nil
}

// parseTime reads a date, or a date with a time, in UTC if it names no zone.
func parseTime(s string) (t time.Time, ok bool) {
	for _, layout := range []string{time.DateOnly, time.DateTime, time.RFC3339} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return t, false
}

package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// screen emulates a terminal, including the rows that have scrolled away. It knows the control sequences
// that this program uses, and records all other sequences in s.odd. Like most terminals, screen folds
// lines again when the width changes.
type screen struct {
	width, height int
	rows          []screenRow
	top           int // first visible row
	row, col      int // position of the cursor
	full          bool
	odd           []string // unknown control sequences
	wrapped       []string // rows that were written beyond the right edge
	pending       string   // an unfinished control sequence
}

type screenRow struct {
	text []rune
	soft bool // the line continues in the next row
}

func newScreen(width, height int) *screen {
	return &screen{width: width, height: height, rows: make([]screenRow, 1)}
}

func (s *screen) write(p []byte) {
	text := s.pending + string(p)
	s.pending = ""
	for len(text) > 0 {
		switch {
		case text[0] == '\x1b':
			n := sequence(text)
			if n == 0 {
				s.pending = text
				return
			}
			s.control(text[:n])
			text = text[n:]
			continue
		case !utf8.FullRuneInString(text):
			s.pending = text
			return
		}
		r, n := utf8.DecodeRuneInString(text)
		text = text[n:]
		switch {
		case r == '\r':
			s.col, s.full = 0, false
		case r == '\n':
			s.down()
		case r < ' ':
			s.odd = append(s.odd, strconv.QuoteRune(r))
		default:
			s.put(r)
		}
	}
}

// sequence returns the length of the control sequence at the start of text, or 0 if the sequence is
// incomplete.
func sequence(text string) int {
	if len(text) < 2 {
		return 0
	}
	if text[1] != '[' {
		return 2
	}
	for i := 2; i < len(text); i++ {
		if text[i] >= '@' && text[i] <= '~' {
			return i + 1
		}
	}
	return 0
}

func (s *screen) control(seq string) {
	n := 1
	if len(seq) > 3 {
		n, _ = strconv.Atoi(seq[2 : len(seq)-1])
	}
	switch {
	case strings.HasPrefix(seq, "\x1b[") && seq[len(seq)-1] == 'A':
		s.row, s.full = max(s.row-n, s.top), false
	case seq == "\x1b[K":
		row := &s.rows[s.row]
		row.text = row.text[:min(s.col, len(row.text))]
	case seq == "\x1b[J":
		s.rows = s.rows[:s.row+1]
		last := &s.rows[s.row]
		last.text, last.soft = last.text[:min(s.col, len(last.text))], false
	default:
		s.odd = append(s.odd, strconv.Quote(seq))
	}
}

func (s *screen) put(r rune) {
	if s.full {
		line := ""
		for i := s.row; i == s.row || i >= 0 && s.rows[i].soft; i-- {
			line = string(s.rows[i].text) + line
		}
		s.wrapped = append(s.wrapped, line)
		s.rows[s.row].soft = true
		s.down()
		s.col = 0
	}
	row := &s.rows[s.row]
	for len(row.text) <= s.col {
		row.text = append(row.text, ' ')
	}
	row.text[s.col] = r
	if s.col++; s.col == s.width {
		s.col, s.full = s.width-1, true
	}
}

func (s *screen) down() {
	s.full = false
	if s.row++; s.row == len(s.rows) {
		s.rows = append(s.rows, screenRow{})
	}
	s.top = max(s.top, s.row-s.height+1)
}

// resize folds all rows to the new width.
func (s *screen) resize(width, height int) {
	var rows []screenRow
	row, col := 0, 0
	for i := 0; i < len(s.rows); {
		var line []rune
		at := -1
		for first := true; first || s.rows[i-1].soft; first = false {
			if i == s.row {
				at = len(line) + s.col
			}
			line = append(line, s.rows[i].text...)
			i++
		}
		if at >= 0 {
			row, col = len(rows)+at/width, at%width
		}
		for len(line) > width {
			rows = append(rows, screenRow{line[:width:width], true})
			line = line[width:]
		}
		rows = append(rows, screenRow{line, false})
	}
	s.width, s.height, s.rows, s.row, s.col, s.full = width, height, rows, min(row, len(rows)-1), col, false
	s.top = max(0, len(rows)-height)
}

// text returns everything shown so far, from the top.
func (s *screen) text() string {
	var out strings.Builder
	for _, r := range s.rows {
		out.WriteString(strings.TrimRight(string(r.text), " "))
		if !r.soft {
			out.WriteByte('\n')
		}
	}
	return out.String()
}

func TestScreenShowsWhatTerminalsShow(t *testing.T) {
	for _, c := range []struct {
		name, wrote, want string
		wraps, odd        int
	}{
		{"lines", "one\r\ntwo\r\n", "one\ntwo\n\n", 0, 0},
		{"redrawn", "one\r\ntwo\r\n\r\x1b[2A\x1b[Jthree\r\n", "three\n\n", 0, 0},
		{"up no further than the top", "one\r\n\x1b[9A\x1b[Jtwo", "two\n", 0, 0},
		{"over the edge", "abcdefghijkl", "abcdefghijkl\n", 1, 0},
		{"up to the edge", "abcdefghij\r\n", "abcdefghij\n\n", 0, 0},
		{"a colour", "\x1b[31mred", "red\n", 0, 1},
		{"a bell", "\a", "\n", 0, 1},
	} {
		s := newScreen(10, 4)
		for _, b := range []byte(c.wrote) { // the screen must accept a text in pieces of any size
			s.write([]byte{b})
		}
		if s.text() != c.want || len(s.wrapped) != c.wraps || len(s.odd) != c.odd {
			t.Errorf("%s: %q, wrapped %q, odd %q", c.name, s.text(), s.wrapped, s.odd)
		}
	}
	s := newScreen(20, 4)
	s.write([]byte("0123456789abcdef\r\nx\r\n"))
	s.resize(8, 4)
	s.write([]byte("\r\x1b[3A\x1b[Jy\r\n")) // the narrower terminal has folded the two rows into three rows
	if got := s.text(); got != "y\n\n" {
		t.Errorf("after a resize: %q", got)
	}
	if !slices.Equal(s.odd, nil) {
		t.Error(fmt.Sprint(s.odd))
	}
}

package show

import (
	"io"
	"os"
	"strings"

	"github.com/mattn/go-runewidth"
	"golang.org/x/term"

	"crawlbatch.io/crawlbatch/formats/visible"
)

// Fold breaks one line into rows of at most width cells, and indents all rows but the first. Fold
// never breaks a word or a command in backquotes, even if the row becomes too long, so that people
// can copy words and commands.
func Fold(text string, width int) []string {
	if width <= 0 || cells(text) <= width {
		return []string{text}
	}
	lead := text[:len(text)-len(strings.TrimLeft(text, " "))]
	var rows []string
	row := lead
	for i, word := range words(text) {
		switch {
		case i == 0:
			row += word
		case cells(row)+1+cells(word) <= width:
			row += " " + word
		default:
			rows, row = append(rows, row), lead+"  "+word
		}
	}
	return append(rows, row)
}

// cut breaks a row into rows of at most width cells, even within a word.
func cut(row string, width int) []string {
	var rows []string
	for cells(row) > width {
		head := runewidth.Truncate(row, width, "")
		if head == "" {
			break // a row has no room for even one character
		}
		rows, row = append(rows, head), row[len(head):]
	}
	return append(rows, row)
}

// words splits a text at spaces, but not within backquotes.
func words(text string) []string {
	quoted := false
	return strings.FieldsFunc(text, func(r rune) bool {
		if r == '`' {
			quoted = !quoted
		}
		return r == ' ' && !quoted
	})
}

func cells(s string) int { return runewidth.StringWidth(s) }

// Folding returns a writer that folds lines to the current width of the terminal w. If w is not a
// terminal, it returns w.
func Folding(w io.Writer) io.Writer {
	if f := File(w); f != nil && term.IsTerminal(int(f.Fd())) {
		return &folding{w, f}
	}
	return w
}

type folding struct {
	to   io.Writer // a visible.Writer, or the file itself
	file *os.File
}

func (f *folding) Write(p []byte) (int, error) {
	width := Width(f.file, 0)
	var out strings.Builder
	for line := range strings.Lines(string(p)) {
		text, end := strings.CutSuffix(line, "\n")
		out.WriteString(strings.Join(Fold(text, width), "\n"))
		if end {
			out.WriteByte('\n')
		}
	}
	_, err := io.WriteString(f.to, out.String())
	return len(p), err
}

// File returns the file that w writes to, or nil if w is not a file.
func File(w io.Writer) *os.File {
	switch w := visible.Raw(w).(type) {
	case *folding:
		return w.file
	case *os.File:
		return w
	}
	return nil
}

package show

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"crawlbatch.io/crawlbatch/formats/visible"
)

// Size returns the width and height of the terminal behind w. ok is false if w is not a terminal, or
// if the terminal can probably only show lines: TERM is dumb or unset, or the size is unknown.
func Size(w io.Writer) (width, height int, ok bool) {
	f := File(w)
	if f == nil || !term.IsTerminal(int(f.Fd())) {
		return 0, 0, false
	}
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil || width < 1 || height < 1 {
		return 0, 0, false
	}
	return width, height, os.Getenv("TERM") != "dumb" && os.Getenv("TERM") != ""
}

// Width returns the width of w's terminal in cells, or the given value if w is not a terminal.
func Width(w io.Writer, otherwise int) int {
	if width, _, _ := Size(w); width > 0 {
		return width
	}
	return otherwise
}

// Block is the last part of a terminal's output, and is redrawn in place. Only one goroutine may
// use a Block.
type Block struct {
	W     io.Writer
	Size  func() (width, height int)
	Away  func() bool // reports whether another process has the terminal, as after Ctrl-Z and `bg`; nil: never
	drawn []string    // rows of the block on the terminal; the cursor is below them
}

// newBlock returns a block at the end of the terminal w.
func newBlock(w io.Writer) *Block {
	f := File(w)
	if f != nil {
		w = f // rows are folded and visible already, and the block moves the cursor
	}
	return &Block{W: w, Away: away(f), Size: func() (int, int) {
		width, height, ok := Size(w)
		if !ok {
			return StatusWidth, 24 // the terminal was closed
		}
		return width, height
	}}
}

// away returns a function that reports whether another process group has the terminal f. It also reports
// true once after this process was stopped and continued: what the shell wrote meanwhile must stay.
func away(f *os.File) func() bool {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, unix.SIGCONT)
	return func() bool {
		select {
		case <-continued:
			return true
		default:
		}
		if f == nil {
			return false
		}
		group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
		return err == nil && group != unix.Getpgrp()
	}
}

// maxBlock limits the width of a block's rows, in cells. A terminal reports a new width a moment too
// late. If it folded rows in this moment, the block's height would be wrong. Rows that are narrower
// than both the old and the new width are never folded.
const maxBlock = 99

// rows folds the block's lines to the current width of the terminal. It also returns the number of
// rows for which the terminal has room.
func (b *Block) rows(block []string) (rows []string, most int) {
	width, height := b.Size()
	room := min(width-1, maxBlock)
	for _, l := range block {
		for _, row := range Fold(visible.Text(l), room) {
			rows = append(rows, cut(row, room)...)
		}
	}
	return rows, max(height-1, 1)
}

// fit drops rows for which the terminal has no room. It keeps the first row, which names the stage,
// and the last rows, with the newest facts and the commands to copy.
func fit(rows []string, most int) []string {
	over := len(rows) - most
	if over <= 0 {
		return rows
	}
	if most < 3 {
		return rows[over:]
	}
	short := []string{rows[0], fmt.Sprintf("(%d lines left out)", over+1)}
	return append(short, rows[over+2:]...)
}

// Draw writes lines that stay above the block, then redraws the block. It shortens a block that is
// higher than the terminal.
func (b *Block) Draw(stay, block []string) error {
	width, _ := b.Size()
	rows, most := b.rows(block)
	rows = fit(rows, most)
	if b.Away != nil && b.Away() {
		b.drawn, rows = nil, nil // the old block stays above what others wrote
	}
	if len(stay) == 0 && len(rows) > 0 && len(rows) == len(b.drawn) && b.height(width) == len(rows) {
		return b.redraw(rows)
	}
	var out bytes.Buffer
	if up := b.height(width); up > 0 {
		fmt.Fprintf(&out, "\r\x1b[%dA\x1b[J", up)
	}
	for _, l := range stay {
		for _, text := range strings.Split(l, "\n") {
			for _, row := range Fold(visible.Text(text), width-1) {
				out.WriteString(row + "\n")
			}
		}
	}
	for _, row := range rows {
		out.WriteString(row + "\n")
	}
	if b.drawn = rows; out.Len() == 0 {
		return nil
	}
	_, err := b.W.Write(out.Bytes())
	return err
}

// redraw writes those rows that differ from the drawn ones, in one write.
func (b *Block) redraw(rows []string) error {
	var out bytes.Buffer
	at := len(rows) // the row of the cursor
	for i, row := range rows {
		if row == b.drawn[i] {
			continue
		}
		out.WriteByte('\r')
		switch {
		case i < at: // only at first: from then on, the cursor is above the rest
			fmt.Fprintf(&out, "\x1b[%dA", at-i)
		case i > at:
			out.WriteString(strings.Repeat("\n", i-at))
		}
		out.WriteString(row + "\x1b[K\n")
		at = i + 1
	}
	if b.drawn = rows; out.Len() == 0 {
		return nil
	}
	out.WriteString(strings.Repeat("\n", len(rows)-at))
	_, err := b.W.Write(out.Bytes())
	return err
}

// height returns the number of rows that the drawn block takes now. The number grows when the
// terminal becomes narrower, because the terminal then folds rows.
func (b *Block) height(width int) int {
	n := 0
	for _, row := range b.drawn {
		n += max(1, (cells(row)+width-1)/width)
	}
	return n
}

// LogOutput writes a log to Plain, or above the block that a Progress redraws.
type LogOutput struct {
	Plain io.Writer

	mu    sync.Mutex
	above *Progress // writes the log above its block; nil: the log goes to Plain
}

// Above sends the log to the lines above p, or to Plain if p is nil. If l is nil, Above does
// nothing.
func (l *LogOutput) Above(p *Progress) {
	if l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.above = p
	}
}

// Write implements io.Writer.
func (l *LogOutput) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.above != nil {
		return l.above.Write(p)
	}
	return l.Plain.Write(p)
}

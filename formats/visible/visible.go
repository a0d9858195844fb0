// Package visible makes text from the web visible, so that it cannot command a terminal or forge what a
// command says.
//
// Its input is text that others wrote: URLs, headers, titles, errors that quote them. Its output has no
// character that a terminal obeys or does not show: each becomes the escape that JSON has for it, such as
// \u001b. A JSON text with such characters stays the same JSON. The package imports only the standard library.
package visible

import (
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns a text on one line, of which each character is visible or a space.
func Text(s string) string { return escaped(s, shown) }

// shown reports whether a terminal shows a character. It does not show controls, the separators of lines
// and paragraphs, marks that change the direction of text, other format characters, such as those of no
// width, and characters that Unicode does not define. A byte that is not UTF-8 may be a control.
func shown(r rune, size int) bool { return unicode.IsGraphic(r) && (r != utf8.RuneError || size > 1) }

// shownOrLayout also lets the layout of a command's own output through.
func shownOrLayout(r rune, size int) bool { return r == '\n' || r == '\t' || shown(r, size) }

// escaped returns s with an escape in place of each character that is not kept.
func escaped(s string, keep func(r rune, size int) bool) string {
	plain := 0 // octets at the beginning that stay
	for plain < len(s) {
		r, size := utf8.DecodeRuneInString(s[plain:])
		if !keep(r, size) {
			break
		}
		plain += size
	}
	if plain == len(s) {
		return s
	}
	var b strings.Builder
	b.WriteString(s[:plain])
	for plain < len(s) {
		r, size := utf8.DecodeRuneInString(s[plain:])
		if keep(r, size) {
			b.WriteString(s[plain : plain+size])
		} else {
			for _, unit := range utf16.AppendRune(nil, r) {
				const digits = "0123456789abcdef"
				b.WriteString(`\u`)
				for shift := 12; shift >= 0; shift -= 4 {
					b.WriteByte(digits[unit>>shift&15])
				}
			}
		}
		plain += size
	}
	return b.String()
}

// Writer escapes what a command writes to its standard streams, as Text does, but keeps line ends and
// tabs.
type Writer struct {
	W io.Writer

	mu   sync.Mutex
	rest []byte // the beginning of a character whose end was not written yet
}

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := append(w.rest, p...)
	end := len(text)
	for i := end - 1; i >= max(0, end-utf8.UTFMax); i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				end = i
			}
			break
		}
	}
	w.rest = append([]byte(nil), text[end:]...)
	if _, err := io.WriteString(w.W, escaped(string(text[:end]), shownOrLayout)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Raw returns the stream behind w, for what is no text from the web: the frames of a display, and SQL.
func Raw(w io.Writer) io.Writer {
	if v, ok := w.(*Writer); ok {
		return v.W
	}
	return w
}

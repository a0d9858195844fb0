package schema

import (
	"strings"
	"testing"
)

func TestASegmentHoldsTheMainContentOnce(t *testing.T) {
	for _, c := range []struct{ full, main, lines string }{
		{"menu\ntitle\none\ntwo\nfoot", "title\none\ntwo", "1-3"},
		{"a\nb\nc\nd", "a\nc\nd", "0 2-3"},
		{"a\nb", "a\nb", "0-1"},
		{"same\nsame\nsame", "same\nsame", "0-1"},
		{"a\n\nb", "\nb", "1-2"},
		{"a", "", ""},
		{"", "", ""},
		{"a\nb", "b\na", ""},        // another order
		{"a b\nc", "a\nc", ""},      // part of a line
		{"a", "a\n", ""},            // a line that full lacks
		{"", "only main", ""},       // an extractor of its own
		{"a\nb\n", "a\nb\n", "0-2"}, // an empty last line
	} {
		text := Text{URL: "http://a.test/", Main: c.main, Full: c.full, Language: "eng"}
		w := NewWorkingText(&text)
		if w.MainLines != c.lines || (w.Main == "") != (c.lines != "" || c.main == "") {
			t.Errorf("%q in %q: lines %q and main %q, want lines %q", c.main, c.full, w.MainLines, w.Main, c.lines)
		}
		if got, err := w.Whole(); got != text || err != nil {
			t.Errorf("%q in %q: read back as %q, %v", c.main, c.full, got.Main, err)
		}
	}
	for _, lines := range []string{"x", "1-x", "-1", "2-1", "1 1", "1 0", "0-3", "3", " ", "0  1", "99999999999999999999"} {
		w := WorkingText{Text: Text{Full: "a\nb\nc"}, MainLines: lines}
		if got, err := w.Whole(); err == nil {
			t.Errorf("lines %q of three: main content %q and no error", lines, got.Main)
		}
	}
}

func FuzzMainLines(f *testing.F) {
	f.Add("a\nb\nc", "a\nc", "0 2")
	f.Fuzz(func(t *testing.T, full, main, lines string) {
		text := Text{Main: main, Full: full}
		w := NewWorkingText(&text)
		if got, err := w.Whole(); got != text || err != nil {
			t.Errorf("read back as %q, %v", got.Main, err)
		}
		w = WorkingText{Text: Text{Full: full}, MainLines: lines}
		if got, err := w.Whole(); err == nil && len(got.Main) > len(full) {
			t.Errorf("%d bytes of main content in %d bytes, %d lines", len(got.Main), len(full), strings.Count(full, "\n"))
		}
	})
}

package visible_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"crawlbatch.io/crawlbatch/formats/visible"
)

func TestWhatATerminalObeysOrHidesIsEscaped(t *testing.T) {
	for in, want := range map[string]string{
		"":                               "",
		"plain, naïve 日本語 👍":             "plain, naïve 日本語 👍",
		"\x1b]0;x\a\r\n\t\x7f":           `\u001b]0;x\u0007\u000d\u000a\u0009\u007f`,
		"C1 \u009b2J":                    `C1 \u009b2J`,
		"byte \x9b, end \xe2\x80":        `byte \ufffd, end \ufffd\ufffd`,
		"a\u202ecba\u2066\u2069\u200e":   `a\u202ecba\u2066\u2069\u200e`,
		"\u061c\u200b\ufeff\u00ad\u2028": `\u061c\u200b\ufeff\u00ad\u2028`,
		"tag \U000e0041, \ue000":         `tag \udb40\udc41, \ue000`,
		"a replacement \ufffd stays":     "a replacement \ufffd stays",
	} {
		if got := visible.Text(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

// FuzzVisible writes a text and its JSON in two pieces each.
func FuzzVisible(f *testing.F) {
	for _, s := range []string{"\x1b[2J\u009b\u202e", "日本\U000e0041", "\x9b\xe2\x80", "{\"a\":\"\u2028\x7f\"}\n\t"} {
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, s string, cut int) {
		written := func(s string) string {
			var out bytes.Buffer
			w, at := &visible.Writer{W: &out}, 0
			if len(s) > 0 {
				at = int(uint(cut) % uint(len(s)))
			}
			for _, piece := range []string{s[:at], s[at:]} {
				if n, err := w.Write([]byte(piece)); n != len(piece) || err != nil {
					t.Fatal(n, err)
				}
			}
			return out.String()
		}
		for _, text := range []string{visible.Text(s), written(s)} {
			for _, r := range strings.NewReplacer("\n", "", "\t", "").Replace(text) {
				if !unicode.IsGraphic(r) {
					t.Fatalf("%q has %U", text, r)
				}
			}
		}
		if strings.ContainsAny(visible.Text(s), "\n\t") || visible.Text(visible.Text(s)) != visible.Text(s) {
			t.Errorf("%q becomes %q", s, visible.Text(s))
		}
		body, err := json.Marshal(map[string]string{s: s})
		if err != nil || !utf8.ValidString(s) {
			return
		}
		var back map[string]string
		if err := json.Unmarshal([]byte(written(string(body))), &back); err != nil || back[s] != s {
			t.Errorf("%s became %s: %v", body, written(string(body)), err)
		}
	})
}

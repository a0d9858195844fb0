package takedown

import (
	"math/rand/v2"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// TestNoMentionIsSkippedForItsLabels compares Mentions with a search that looks at every name in the text.
func TestNoMentionIsSkippedForItsLabels(t *testing.T) {
	plain, err := urlkey.New([]string{"utm_*"})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	for name, targets := range map[string]struct{ urls, domains []string }{
		"domain":      {domains: []string{"gone.test"}},
		"www":         {domains: []string{"www.gone.test"}},
		"long":        {domains: []string{"a.longest-label.example"}},
		"two domains": {domains: []string{"gone.test", "example.org"}},
		"URL":         {urls: []string{"http://www.gone.test:8080/a?b=1"}},
		"both":        {urls: []string{"https://gone.test/a"}, domains: []string{"example.org"}},
	} {
		m, err := New(targets.urls, targets.domains, plain)
		if err != nil {
			t.Fatal(err)
		}
		if m.labels == nil {
			t.Fatalf("%s: no labels", name)
		}
		found := 0
		for range 2_000 {
			var b strings.Builder
			b.WriteString(strings.Repeat(pick("x", "\u00e9", " ", ".", ","), random.IntN(3)*2040+random.IntN(30)))
			for range random.IntN(6) {
				b.WriteString(pick(" ", "http://", "%2F", "%252F", `\/`, `\u002f`, `\n`, ",", ".", "www.", "www,", "\uff47", "\u212a", "&amp;", `"`, "x", ""))
				b.WriteString(pick("gone.test", "test.gone", "test,gone", "GONE.TEST", "org,example)/a", "example.org", "org.example", "example,longest-label,a", "a.longest-label.example",
					"\uff47one.test", "gone", "test,gone,www:8080)/a?b=1", "test,gone:8080)/a?b=1", "gone\uff0etest", "g\u00f6ne.test", "7f.1"))
				b.WriteString(pick("/a?b=1", "/a", ")/a", ":8080/a?b=1&utm_x=2", ":8080/a?b=1", "%3A8080%2Fa%3Fb%3D1", ".uk", " ", "", "."))
			}
			b.WriteString(strings.Repeat(pick("y", "\u00df", " "), random.IntN(2)*4090+random.IntN(10)))
			text := []byte(b.String())
			want := mentions(m, text)
			if got := m.Mentions(text); got != want {
				t.Fatalf("%s: Mentions(%q) = %v, want %v", name, strings.TrimSpace(b.String()), got, want)
			}
			if want {
				found++
			}
		}
		if found < 20 || found > 1_950 {
			t.Errorf("%s: %d of 2,000 texts mention it: the test shows little", name, found)
		}
	}
}

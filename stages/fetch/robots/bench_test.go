package robots

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkVerdict judges a typical URL with 40 typical rules.
func BenchmarkVerdict(b *testing.B) {
	var file strings.Builder
	file.WriteString("User-agent: *\n")
	for i := range 30 {
		fmt.Fprintf(&file, "Disallow: /private-%d/\n", i)
	}
	for i := range 8 {
		fmt.Fprintf(&file, "Disallow: /*/print-%d$\n", i)
	}
	file.WriteString("Disallow: /*?sort=\nAllow: /news/\n")
	g := Parse([]byte(file.String())).GroupFor("bot")
	url := "https://www.example.com/news/2026/11/some-story.html?page=2"
	b.ReportAllocs()
	for b.Loop() {
		if !g.Verdict(url).Allowed {
			b.Fatal("denied")
		}
	}
}

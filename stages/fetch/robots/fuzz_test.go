package robots

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// matchSlowly defines a match as simply as possible. It keeps the set of positions in path that the
// pattern can reach so far, and updates it with each octet of the pattern.
func matchSlowly(text, path string) bool {
	at := map[int]bool{0: true}
	for i := 0; i < len(text); i++ {
		next := map[int]bool{}
		for p := range at {
			switch {
			case text[i] == '$' && i == len(text)-1:
				if p == len(path) {
					return true
				}
			case text[i] == '*':
				for q := p; q <= len(path); q++ {
					next[q] = true
				}
			case p < len(path) && path[p] == text[i]:
				next[p+1] = true
			}
		}
		at = next
	}
	return len(at) > 0
}

func FuzzMatchEqualsDefinition(f *testing.F) {
	for _, s := range [][2]string{
		{"/a*b$", "/aXbYb"}, {"*", "/"}, {"$", "/"}, {"/ab*ba$", "/aba"}, {"**a*$", "/a"}, {"/*$*$", "/x$y"}, {"", "/"}, {"*$", "/"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, text, path string) {
		if len(text) > 64 || len(path) > 64 {
			return
		}
		p := compile(text)
		if got, want := p.match(path), matchSlowly(p.text, path); got != want {
			t.Errorf("%q matches %q: got %t, want %t", p.text, path, got, want)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("User-agent: *\nDisallow: /a*b$\nCrawl-delay: 1\nSitemap: http://h/s\n"), "bot", "http://h/axb")
	f.Add([]byte("\xEF\xBB\r\x00:#\nallow /index.html"), "", "//h;x")
	f.Fuzz(func(t *testing.T, body []byte, agent, url string) {
		file := Parse(body)
		g := file.GroupFor(agent)
		v := googleVerdict(g, url)
		if (v.Rule == "") != (v.Line == 0) || !v.Allowed && v.Rule == "" {
			t.Errorf("verdict without its reason: %+v", v)
		}
		if !utf8.ValidString(v.Rule) {
			t.Errorf("rule %q is not valid UTF-8", v.Rule)
		}
		if d, _ := g.Delay(); d < 0 {
			t.Errorf("delay %v", d)
		}
		stored, err := g.AppendBinary(nil)
		var again Group
		if err == nil {
			err = again.UnmarshalBinary(stored)
		}
		d, has := g.Delay()
		d2, has2 := again.Delay()
		if err != nil || googleVerdict(&again, url) != v || again.Verdict(url) != g.Verdict(url) || d != d2 || has != has2 || again.Signals(url).String() != g.Signals(url).String() {
			t.Errorf("stored and read: %+v (%v), before it %+v", googleVerdict(&again, url), err, v)
		}
		for _, s := range file.Sitemaps("https://h/robots.txt") {
			if !strings.HasPrefix(strings.ToLower(s), "http") {
				t.Errorf("sitemap %q is not absolute", s)
			}
		}
		if p := pathOf(url); p[0] != '/' {
			t.Errorf("path %q of %q", p, url)
		}
	})
}

func FuzzUnmarshalGroup(f *testing.F) {
	b, _ := Parse([]byte("User-agent: *\nAllow: /a/index.html\nDisallow: /*b$\nCrawl-delay: 1\nContent-Signal: /a ai-train=no\n")).GroupFor("x").AppendBinary(nil)
	f.Add(b)
	f.Add([]byte{1, 1, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, b []byte) {
		var g Group
		if err := g.UnmarshalBinary(b); err != nil && len(g.rules)+len(g.signals) > 0 {
			t.Error("a group that could not be decoded still has rules")
		}
		g.Verdict("http://h/a")
	})
}

// BenchmarkHostileFiles parses files of MaxBytes that are slow to parse. Their times should differ
// only by a small factor.
func BenchmarkHostileFiles(b *testing.B) {
	path := "http://h/" + strings.Repeat("a", 2000)
	fill := func(s string) []byte { return []byte(strings.Repeat(s, MaxBytes/len(s))) }
	for _, bm := range []struct {
		name string
		body []byte
	}{
		{"agents", fill("User-agent: a\n")},
		{"agents and delays", fill("User-agent: b\nCrawl-delay: 1\n")},
		{"stars", append([]byte("User-agent: *\nDisallow: "), fill("*a")...)},
		{"rules of stars", append([]byte("User-agent: *\n"), fill("Disallow: /*a*a*a*a*a*a*a*ab\n")...)},
		{"empty lines", fill("\r")},
		{"sitemaps", fill("Sitemap: http://h/s\n")},
		{"one line", fill("x")},
		{"escapes", append([]byte("User-agent: *\n"), fill("Disallow: /*%7e%7e%7e%7e%2a%2a%61*\n")...)},
	} {
		b.Run(bm.name, func(b *testing.B) {
			for b.Loop() {
				Parse(bm.body).GroupFor("bot").Verdict(path)
			}
		})
	}
}

package scope

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// randomText returns a text of up to n of the pieces. Few pieces make texts that often begin alike.
func randomText(random *rand.Rand, n int, pieces ...string) string {
	var b strings.Builder
	for range random.IntN(n + 1) {
		b.WriteString(pieces[random.IntN(len(pieces))])
	}
	return b.String()
}

// randomURL returns a URL of few hosts, some with ports, and few paths, some with a URL inside.
func randomURL(random *rand.Rand) string {
	hosts := []string{"a.b", "b", "c.a.b", "b.a", "a..b", "a.b.", "a.b:80", "b:80", "a.:80", "[::1]", "[::1]:80", "a:b.c"}
	return []string{"http", "https"}[random.IntN(2)] + "://" + hosts[random.IntN(len(hosts))] + "/" + randomText(random, 5, "a", "b", "/", "http://", "a.b/")
}

// randomPattern returns a part of a URL with some stars, or a random text.
func randomPattern(random *rand.Rand) string {
	if random.IntN(5) == 0 {
		return []string{"b", ":80"}[random.IntN(2)] + randomText(random, 6, "a", "b", ".", "/", ":80", "://", "*", "]")
	}
	text := randomURL(random)
	if random.IntN(3) > 0 {
		_, text, _ = strings.Cut(text, "://")
	}
	switch random.IntN(5) {
	case 0:
		text, _, _ = strings.Cut(text, "/")
	case 1, 2:
		text = text[:random.IntN(len(text)+1)] + "*"
	case 3:
		for range 1 + random.IntN(3) {
			i := random.IntN(len(text) + 1)
			text = text[:i] + "*" + text[min(len(text), i+random.IntN(3)):]
		}
	}
	return text + strings.Repeat("x", max(0, 1-len(text))) // no pattern is empty
}

// The patterns of a scope give the answers that a comparison with each of them, in their order, gives.
func TestTheFirstPatternThatMatchesDecides(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	refused := 0
	for range 3000 {
		patterns := make([]string, 1+random.IntN(12))
		for i := range patterns {
			patterns[i] = randomPattern(random)
		}
		exclude, err := New(nil, patterns, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		include, err := New(patterns, nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			url, want := randomURL(random), ""
			for _, text := range patterns {
				if p := newPattern(text); p.match(url) {
					want = text
					refused++
					break
				}
			}
			if ok, why := exclude.Allows(url, ""); ok != (want == "") || why != want {
				t.Fatalf("exclude %q, URL %q: %v, %q, want %q", patterns, url, ok, why, want)
			}
			if ok, _ := include.Allows(url, ""); ok != (want != "") {
				t.Fatalf("include %q, URL %q: %v, want %q", patterns, url, ok, want)
			}
		}
	}
	if refused < 6000 || refused > 54_000 {
		t.Errorf("patterns match %d of 60,000 URLs", refused)
	}
}

// A scope compares a URL with patterns one by one only if they have a star before their end, and not with those
// that name another host.
func TestManyPatternsAreLookedUp(t *testing.T) {
	var x index
	for i := range 10_000 {
		for _, text := range []string{"h%d.example", "shop.example/%d", "http://shop.example/%d", "shop.example/%d/*", "https://shop.example/%d*", "*.h%d.example", "h%d.example/*/a"} {
			if text[0] != '*' || i < 3 {
				x.add(newPattern(fmt.Sprintf(text, i)))
			}
		}
	}
	for host, want := range map[string]site{"": {nil, make([]int, 3)}, "shop.example": {make([]int, 5), nil}, "h7.example": {nil, make([]int, 1)}} {
		s := x.sites[host]
		if len(s.lengths) != len(want.lengths) || len(s.others) != len(want.others) {
			t.Errorf("host %q: %d lengths and %d patterns one by one, want %d and %d", host, len(s.lengths), len(s.others), len(want.lengths), len(want.others))
		}
	}
	for url, want := range map[string]string{
		"http://www.h9999.example:80/": "h9999.example", "http://shop.example/9999": "shop.example/9999", "http://shop.example/9999/x": "shop.example/9999/*",
		"https://shop.example/9999x": "https://shop.example/9*", "http://a.h2.example": "h2.example", "http://shop.example/9999x": "",
	} {
		if p := x.first(url); p == nil && want != "" || p != nil && p.text != want {
			t.Errorf("URL %q: %v, want %q", url, p, want)
		}
	}
}

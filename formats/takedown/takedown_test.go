package takedown_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/takedown"
	"crawlbatch.io/crawlbatch/formats/urlkey"
)

func matcher(t testing.TB, urls, domains []string) *takedown.Matcher {
	t.Helper()
	c, err := urlkey.NewWithRules([]string{"utm_*"}, urlkey.Rules{HTTPS: []string{"*"}, IndexFiles: true})
	if err != nil {
		t.Fatal(err)
	}
	m, err := takedown.New(urls, domains, c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// forms is what a matcher of a name must say about strings in the form of each method.
type forms struct {
	is func(*takedown.Matcher, string) bool
	// yes and no are strings that are and are not the target.
	yes, no []string
}

func check(t *testing.T, m *takedown.Matcher, all map[string]forms) {
	t.Helper()
	for method, f := range all {
		for _, s := range f.yes {
			if !f.is(m, s) {
				t.Errorf("%s(%q) is false", method, s)
			}
		}
		for _, s := range f.no {
			if f.is(m, s) {
				t.Errorf("%s(%q) is true", method, s)
			}
		}
	}
}

func mentions(m *takedown.Matcher, s string) bool { return m.Mentions([]byte(s)) }

func TestADomainIsFoundInEveryForm(t *testing.T) {
	check(t, matcher(t, nil, []string{"Gone.example.", "bücher.example", "192.0.2.7", "[2001:DB8::7]"}), map[string]forms{
		"URL": {(*takedown.Matcher).URL, []string{
			"http://gone.example/", "https://gone.example/a?b", "http://www.gone.example/", "http://a.b.gone.example:8080/x", "HTTP://GONE.EXAMPLE/", "http://gone.example./",
			"http://gone.example", "http://%67one.example/", "http://user:pw@gone.example/", "  http://gone.example/x#y", "http:\\\\gone.example\\x", "http://ｇone.example/",
			"http://xn--bcher-kva.example/", "http://BÜCHER.example/x", "http://192.0.2.7/", "http://192.0.2.7:81/x", "http://0xC0000207/", "http://[2001:db8::7]/", "http://[2001:db8:0::7]:81/",
		}, []string{
			"", "http://notgone.example/", "http://gone.example.org/", "http://example/gone.example", "http://other.example/?u=http://gone.example/", "gone.example", "//gone.example/",
			"http://192.0.2.70/", "http://[2001:db8::70]/", "http://", "ftp://gone.example/", "http://gone/",
		}},
		"Host": {(*takedown.Matcher).Host, []string{
			"gone.example", "gone.example:8080", "www.gone.example", "GONE.example", "gone.example.", "bücher.example", "www.xn--bcher-kva.example", "192.0.2.7", "192.0.2.7:81", "[2001:db8::7]", "[2001:db8::7]:81",
		}, []string{"", "example", "notgone.example", "gone.example.org", "gone", ".", ":", "[2001:db8::70]"}},
		"Domain": {(*takedown.Matcher).Domain, []string{"gone.example", "192.0.2.7"}, []string{"", "example", "other.example"}},
		"SURT key": {mentions, []string{
			"example,gone)/", "example,gone)/a?b", "example,gone,a,b:8080)/x", "example,xn--bcher-kva)/", "7,2,0,192)/", "7,2,0,192:81)/x", "2001:db8::7)/", "2001:db8::7:81)/", "example,gone",
		}, []string{"", "example)/", "example,gon)/", "example,gonee)/", "org,example,gone)/", "70,2,0,192)/"}},
		"ReversedHost": {(*takedown.Matcher).ReversedHost, []string{"example.gone", "example.gone.www", "example.gone.a:8080", "192.0.2.7", "[2001:db8::7]", "example.xn--bcher-kva"},
			[]string{"", "example", "example.gonee", "gone.example", "org.example.gone"}},
		"Mentions": {mentions, []string{
			"gone.example", "see gone.example.", "(www.gone.example)", "<a href=http://gone.example/x>", "http%3A%2F%2Fgone.example%2Fx", "http%253a%252f%252fgone.example", `"http:\/\/gone.example"`, `a\ngone.example`,
			`\u002Fgone.example`, "GONE.EXAMPLE", "me@gone.example", "example,gone)/x", "example.gone.www", "a\x00gone.example\x00", "a,b,gone.example,c", "1\texample.gone\t5", "bücher.example", "www.xn--bcher-kva.example",
			"http://192.0.2.7/", "http://[2001:DB8::7]/", "2001:db8::7)/", "x.gone.example:8080", "a_gone.example.gone.example",
		}, []string{
			"", "gone", "gone example", "notgone.example", "gone.example.org", "gone.examples", "example.goner", "org,example,gone)/", "192.0.2.70", "gone-.example", "-gone.example",
		}},
	})
}

func TestAURLIsFoundInEveryForm(t *testing.T) {
	check(t, matcher(t, []string{"http://kept.example/~a/gone?y=2&x=1&utm_source=z", "http://kept.example:8080/p", "https://kept.example/d/index.html"}, nil), map[string]forms{
		"URL": {(*takedown.Matcher).URL, []string{
			"http://kept.example/~a/gone?x=1&y=2", "https://kept.example/~a/gone?x=1&y=2", "http://kept.example/%7Ea/gone?x=1&y=2", "http://kept.example/%7ea/./gone?y=2&x=1#f", "HTTP://KEPT.example:80/~a/gone?x=1&y=2",
			"https://kept.example:443/~a/gone?x=1&y=2", "http://kept.example:443/~a/gone?x=1&y=2", "http://kept.example./~a/gone?x=1&y=2", "http://kept.example:8080/p", "https://kept.example:8080/p", "http://kept.example/~a/gone?utm_medium=b&x=1&y=2",
			"http://kept.example/d/index.html", "https://kept.example/d/",
		}, []string{
			"", "http://kept.example/~a/gone", "http://kept.example/~A/gone?x=1&y=2", "http://kept.example/~a/gone?x=1&y=3", "http://www.kept.example/~a/gone?x=1&y=2", "http://kept.example/p", "http://kept.example:8081/p", "http://kept.example/",
			"http://other.example/~a/gone?x=1&y=2", "http://kept.example/~a/gone/?x=1&y=2",
		}},
		"Host":         {(*takedown.Matcher).Host, nil, []string{"kept.example", "kept.example:8080"}},
		"SURT key":     {mentions, []string{"example,kept)/~a/gone?x=1&y=2", "example,kept:8080)/p", "example,kept:443)/~a/gone?x=1&y=2"}, []string{"example,kept)/", "example,kept)/p", "example,kept"}},
		"ReversedHost": {(*takedown.Matcher).ReversedHost, nil, []string{"example.kept"}},
		"Mentions": {mentions, []string{
			"see http://kept.example/~a/gone?x=1&y=2.", "kept.example/%7Ea/gone?y=2&x=1", `<a href="https://kept.example/~a/gone?x=1&amp;y=2">`, `"http:\/\/kept.example\/~a\/gone?x=1\u0026y=2"`, "example,kept)/~a/gone?x=1&y=2 2026",
			"(http://kept.example:8080/p)", "u=http%3A%2F%2Fkept.example%2F~a%2Fgone%3Fx%3D1%26y%3D2&v=1", "\x00http://KEPT.example/~a/gone?x=1&y=2\x00", "via http://kept.example:8080/p, then", "q=http://kept.example:8080/p&r=2",
		}, []string{"", "kept.example", "http://kept.example/~a/gone", "http://kept.example:8080/pp", "example,kept)/", "http://kept.example/~a/gone?x=1&y=22"}},
	})
}

func TestOtherDomainsAreKeptBesideWWW(t *testing.T) {
	check(t, matcher(t, nil, []string{"www.kept.example"}), map[string]forms{
		"Host":         {(*takedown.Matcher).Host, []string{"www.kept.example", "a.www.kept.example"}, []string{"kept.example", "a.kept.example"}},
		"URL":          {(*takedown.Matcher).URL, []string{"http://www.kept.example/"}, []string{"http://kept.example/", "http://a.kept.example/"}},
		"SURT key":     {mentions, []string{"example,kept)/", "example,kept,www,a)/"}, []string{"example,kept,a)/"}},
		"ReversedHost": {(*takedown.Matcher).ReversedHost, []string{"example.kept.www"}, []string{"example.kept"}},
	})
}

func TestANameOfOneLabelIsFound(t *testing.T) {
	check(t, matcher(t, []string{"http://intranet/gone"}, nil), map[string]forms{
		"URL":      {(*takedown.Matcher).URL, []string{"http://intranet:80/gone"}, []string{"http://intranet/", "http://a.intranet/gone"}},
		"Mentions": {mentions, []string{"http://intranet/gone"}, []string{"intranet", "http://intranets/gone"}},
	})
}

func TestABadTargetIsRefused(t *testing.T) {
	for _, c := range []struct{ urls, domains []string }{
		{nil, []string{""}}, {nil, []string{"com"}}, {nil, []string{"co.uk"}}, {nil, []string{"test"}}, {nil, []string{"localhost."}}, {nil, []string{"http://a.example/"}}, {nil, []string{"a.example/b"}}, {nil, []string{"a b"}}, {nil, []string{"a.example:81"}},
		{[]string{""}, nil}, {[]string{"a.example"}, nil}, {[]string{"ftp://a.example/"}, nil}, {[]string{"https://a.example:81/x/../robots.txt"}, nil}, {[]string{"http://"}, nil},
	} {
		if _, err := takedown.New(c.urls, c.domains); !errors.Is(err, takedown.ErrTarget) {
			t.Errorf("URLs %q and domains %q: %v", c.urls, c.domains, err)
		}
	}
	if m, err := takedown.New(nil, nil); err != nil || !m.Empty() || m.URL("http://a.example/") || m.Mentions([]byte("a.example")) {
		t.Errorf("without targets: %v", err)
	}
}

func FuzzMatcher(f *testing.F) {
	m := matcher(f, []string{"http://kept.example/gone?x=1"}, []string{"gone.example", "bücher.example", "[2001:db8::7]", "www.kept.example"})
	for _, s := range []string{"http://gone.example/", "example,gone)/", "http://kept.example/gone?x=1", "http%3A%2F%2Fkept.example%2Fgone", "\\u002f,\xff.gone.example:80)", "[2001:db8::7]:1", "ü.example,,..,"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m.Host(s)
		m.ReversedHost(s)
		text := m.Mentions([]byte(s))
		c, err := urlkey.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		k, err := c.Canonical(s, "")
		if err != nil {
			return
		}
		if is := m.URL(s); is != m.URL(k.URL) {
			t.Fatalf("URL(%q) is %t, of its canonical form %q %t", s, is, k.URL, !is)
		} else if is && !m.Mentions([]byte(k.URL)) {
			t.Fatalf("URL(%q) is true, Mentions of it (%t) or of its canonical form is false", s, text)
		}
		if m.Host(k.Host) && !m.URL(k.URL) {
			t.Fatalf("Host(%q) is true, URL(%q) false", k.Host, k.URL)
		}
		if !strings.Contains(k.Host, "]") && m.Host(k.Host) && !m.ReversedHost(reversed(k.Host)) {
			t.Fatalf("Host(%q) is true, ReversedHost(%q) false", k.Host, reversed(k.Host))
		}
	})
}

// reversed is the reversed name of a host as the web graph has it.
func reversed(host string) string {
	name, port, _ := strings.Cut(host, ":")
	out := ""
	for l := range strings.SplitSeq(name, ".") {
		out = "." + l + out
	}
	if port != "" {
		port = ":" + port
	}
	return out[1:] + port
}

// BenchmarkMatcher asks about URLs of hosts that no target names, with a list of many targets.
func BenchmarkMatcher(b *testing.B) {
	var urls, domains []string
	for i := range 10_000 {
		urls = append(urls, fmt.Sprintf("http://kept%d.example/gone", i))
		domains = append(domains, fmt.Sprintf("gone%d.example", i))
	}
	m, err := takedown.New(urls, domains)
	if err != nil {
		b.Fatal(err)
	}
	text := []byte(strings.Repeat("A page about other things, with a link to http://other.example/page?x=1 and more. ", 100))
	b.Run("URL", func(b *testing.B) {
		for b.Loop() {
			m.URL("http://www.other.example/page?x=1")
		}
	})
	b.Run("Mentions", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			m.Mentions(text)
		}
	})
}

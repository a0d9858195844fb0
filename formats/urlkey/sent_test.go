package urlkey

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestSent(t *testing.T) {
	c := canonicalizer(t, defaults...)
	for _, tc := range []struct{ name, raw, base, url, sent string }{
		{"canonical", "https://example.com/a?b=1", "", "https://example.com/a?b=1", ""},
		{"unreserved escape in the path", "http://a.test/%7Ejoe/a", "", "http://a.test/~joe/a", "http://a.test/%7Ejoe/a"},
		{"its hex digits in lower case", "http://a.test/%7ejoe/a", "", "http://a.test/~joe/a", "http://a.test/%7ejoe/a"},
		{"reserved escape in lower case only", "http://a.test/%2f?%2f", "", "http://a.test/%2F?%2F", "http://a.test/%2f?%2f"},
		{"escaped letters of the query", "http://a.test/?%61=%62", "", "http://a.test/?a=b", "http://a.test/?%61=%62"},
		{"empty query", "http://a.test/q?", "", "http://a.test/q", "http://a.test/q?"},
		{"a base with an empty query", "#x", "http://a.test/q?", "http://a.test/q", "http://a.test/q?"},
		{"value that is absent or empty", "http://a.test/q?OpenView&Count=5", "", "http://a.test/q?Count=5&OpenView", "http://a.test/q?OpenView&Count=5"},
		{"order of parameters", "http://a.test/q?z=1&a=2", "", "http://a.test/q?a=2&z=1", "http://a.test/q?z=1&a=2"},
		{"order and a tracking parameter", "http://a.test/q?z=1&utm_x=3&a=2", "", "http://a.test/q?a=2&z=1", "http://a.test/q?z=1&utm_x=3&a=2"},
		{"tracking parameter alone", "http://a.test/q?utm_x=3&a=2", "", "http://a.test/q?a=2", "http://a.test/q?utm_x=3&a=2"},
		{"tracking parameter with an escaped name", "http://a.test/q?%75tm_x=3", "", "http://a.test/q", "http://a.test/q?%75tm_x=3"},
		{"empty parameters", "http://a.test/q?&b&&a&", "", "http://a.test/q?a&b", "http://a.test/q?&b&&a&"},
		{"empty query, fragment, credentials", "http://u:p@a.test/%41?#x", "", "http://a.test/A", "http://a.test/%41?"},
		{"host and port", "HTTP://A.Test:80/%7e", "", "http://a.test/~", "http://a.test/%7e"},
		{"dot segments", "http://a.test/x/../%7E/./%2e%2E/%41", "", "http://a.test/A", "http://a.test/%41"},
		{"not ASCII", "http://a.test/é?é", "", "http://a.test/%C3%A9?%C3%A9", ""},
		{"IDN", "http://Bücher.example/%7e", "", "http://xn--bcher-kva.example/~", "http://xn--bcher-kva.example/%7e"},
		{"relative", "%7Ea", "http://a.test/x/y", "http://a.test/x/~a", "http://a.test/x/%7Ea"},
		{"relative to a base that is not canonical", "a", "http://a.test/%7Ejoe/", "http://a.test/~joe/a", "http://a.test/%7Ejoe/a"},
		{"relative query", "?b&a", "http://a.test/x", "http://a.test/x?a&b", "http://a.test/x?b&a"},
		{"stray percent signs", "http://a.test/%%34%31", "", "http://a.test/%%341", "http://a.test/%%34%31"},
		{"stray percent sign before a dropped parameter", "http://a.test/?x=%&utm_a&%41", "", "http://a.test/?A&x=%", "http://a.test/?x=%&utm_a&%41"},
		{"parameters of one name", "http://a.test/?b=2&a=9&b=1", "", "http://a.test/?a=9&b=2&b=1", "http://a.test/?b=2&a=9&b=1"},
		{"escaped ampersand", "http://a.test/?b=%26a&a=%26", "", "http://a.test/?a=%26&b=%26a", "http://a.test/?b=%26a&a=%26"},
		{"star and dollar stay as they are", "http://a.test/*%2A$%24", "", "http://a.test/*%2A$%24", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k, sent, err := c.Sent(tc.raw, tc.base)
			if err != nil || k.URL != tc.url || sent != tc.sent {
				t.Errorf("Sent(%q, %q) = %q, %q, %v; want %q, %q", tc.raw, tc.base, k.URL, sent, err, tc.url, tc.sent)
			}
		})
	}
	root := "http://a.test/"
	long := root + strings.Repeat("%41", MaxLength-len(root))
	if k, s, err := c.Sent(long, ""); err != nil || s != long || k.URL != root+strings.Repeat("A", MaxLength-len(root)) {
		t.Errorf("%d octets to send: %d, %d octets, %v", len(long), len(k.URL), len(s), err)
	}
	if k, s, err := c.Sent(long+long[len(root):], ""); !errors.Is(err, ErrTooLong) {
		t.Errorf("a URL of more than %d octets: %d, %d octets, %v", MaxLength, len(k.URL), len(s), err)
	}
	if k, s, err := c.Sent(root+"?utm_x="+strings.Repeat("x", maxSent), ""); err != nil || s != "" || k.URL != root {
		t.Errorf("a tracking parameter of more than %d octets: %q, %d octets, %v", maxSent, k.URL, len(s), err)
	}
}

// FuzzSent checks the promises in the comment of Sent.
func FuzzSent(f *testing.F) {
	for i, s := range seeds {
		f.Add(s, seeds[len(seeds)-1-i])
		f.Add(s, "https://example.org/%7edir/page.html?x=1")
	}
	f.Add("http://a/?x=%&utm_a&%41&&b=%%34", "")
	f.Add("http://a/?%&%4&utm_=1&%31&%41&%e9=%7e", "")
	c := canonicalizer(f, defaults...)
	f.Fuzz(func(t *testing.T, raw, base string) {
		want, err := c.Canonical(raw, base)
		if err != nil {
			if _, _, serr := c.Sent(raw, base); serr == nil {
				t.Fatalf("Sent(%q, %q) succeeds, Canonical: %v", raw, base, err)
			}
			return
		}
		k, s, err := c.Sent(raw, base)
		if err != nil || k != want {
			t.Fatalf("Sent(%q, %q) = %+v, %v; want %+v", raw, base, k, err, want)
		}
		if _, again, err := c.Sent(k.URL, ""); again != "" || err != nil {
			t.Fatalf("the canonical URL %q is sent as %q, %v", k.URL, again, err)
		}
		if s == "" {
			return
		}
		if s == k.URL || len(s) > maxSent {
			t.Fatalf("Sent(%q, %q): %q is sent for %q", raw, base, s, k.URL)
		}
		of, again, err := c.Sent(s, "")
		if err != nil || of != k || again != s {
			t.Fatalf("Sent(%q) = %+v, %q, %v; want %+v and itself", s, of, again, err, k)
		}
	})
}

func BenchmarkSent(b *testing.B) {
	c := canonicalizer(b, defaults...)
	for _, bm := range []struct{ name, raw, base string }{
		{"clean", "https://www.example.com/news/2026/11/some-story.html", ""},
		{"query", "https://www.example.com/search?b=2&a=1&utm_source=x", ""},
		{"relative", "../2026/11/some-story.html", "https://www.example.com/news/index.html"},
		{"whole parser", "https://www.example.com/caf\u00e9/%7euser", ""},
	} {
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := c.Sent(bm.raw, bm.base); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Domains must tell the same as Domain, for hosts that it remembers and for those that take their places.
func TestDomainsAreRemembered(t *testing.T) {
	var hosts []string
	for i := range 3 * domainHosts {
		hosts = append(hosts, fmt.Sprintf("www.h%d.%s", i%(2*domainHosts), []string{"example.com", "co.uk", "github.io"}[i%3]))
	}
	var d Domains
	for _, host := range append(hosts, "", "[::1]", "127.0.0.1", "localhost", "com", "co.uk", "a.co.uk", "a.co.uk") {
		if got, want := d.of(host), Domain(host); got != want {
			t.Errorf("domain of %q is %q, want %q", host, got, want)
		}
	}
}

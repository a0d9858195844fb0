package urlkey

import (
	"errors"
	"testing"
)

var seeds = []string{
	"http://example.com", "https://www.example.com/a/b.html?x=1&utm_source=y#z", "http://example.com/%7e%2e/?q=%2f",
	"http://[::1]:80/", "//a/b", "../x", "?", "#", "/a/./b/../c", "a:b", "http:x", "http://a.b./%%34%31", "http://1.2/",
	"https://WWW.Example.com/caf%c3%a9/%7Euser?q=%2e&r=%c3%A9", "http://Bücher.example/ä", "http://example.com:8080/?b&a&&b=1", `http:\\a\b`, "http://xn--a.b/", "./.././x", "http://a/?%4%31",
	"http://a/(abcdefghijklmnopqrstuvwx)/x.aspx?SID=0123456789abcdef0123456789abcdef&z",
}

// FuzzCanonical checks that canonicalizeFast and canonicalizeSlow agree, that a canonical URL is
// its own canonical form, and that keys depend only on the canonical URL.
func FuzzCanonical(f *testing.F) {
	for i, s := range seeds {
		f.Add(s, seeds[len(seeds)-1-i])
		f.Add(s, "https://example.org/dir/page.html?x=1")
		f.Add(s, "")
	}
	c := canonicalizer(f, defaults...)
	f.Fuzz(func(t *testing.T, raw, base string) {
		if len(raw) > maxRaw {
			t.Skip()
		}
		k, err := c.Canonical(raw, base)
		for _, known := range []error{ErrNotURL, ErrScheme, ErrHost, ErrTooLong} {
			if errors.Is(err, known) {
				err = nil
				k = Key{}
			}
		}
		if err != nil {
			t.Fatalf("Canonical(%q, %q): an error that wraps no sentinel: %v", raw, base, err)
		}
		if fast, fastGiven, ok, fastErr := c.canonicalizeFast(trim(raw), base); ok {
			slow, slowGiven, slowErr := c.canonicalizeSlow(trim(raw), base)
			if fastErr == nil && fastGiven != slowGiven {
				t.Fatalf("of %q, %q:\nfast %+v\nslow %+v", raw, base, fastGiven, slowGiven)
			}
			if fast != slow || (fastErr == nil) != (slowErr == nil) {
				t.Fatalf("of %q, %q:\nfast %+v, %v\nslow %+v, %v", raw, base, fast, fastErr, slow, slowErr)
			}
		}
		if u, err := c.URL(raw, base); u != k.URL || (err == nil) != (k.URL != "") {
			t.Fatalf("URL(%q, %q) = %q, %v; want %q", raw, base, u, err, k.URL)
		}
		if k.URL == "" {
			return
		}
		if again, err := c.Canonical(k.URL, base); err != nil || again != k {
			t.Fatalf("Canonical(%q) = %+v\nand again       %+v, %v", raw, k, again, err)
		}
		if of, err := KeyOf(k.URL); err != nil || of != k {
			t.Fatalf("KeyOf(%q) = %+v, %v; want %+v", k.URL, of, err, k)
		}
		if _, err := Split(k.URL); err != nil {
			t.Fatal(err)
		}
		if href, err := WHATWG(k.URL, ""); err != nil || href != k.URL {
			t.Fatalf("the canonical form %q is not the standard's: %q, %v", k.URL, href, err)
		}
	})
}

// FuzzKeyer checks that a Keyer returns the same keys as KeyOf, whatever the URL before was.
func FuzzKeyer(f *testing.F) {
	for _, rest := range []string{"", "/", "/a?b=1", "/A%20b//../c/?z&a#x", ":80/", ":8080/a", ".org/", "/ a", "?x", "@b/"} {
		for _, origin := range []string{"http://example.com", "https://www.example.co.uk", "http://[::1]", "http://192.0.2.1", "http://example.com:443"} {
			f.Add(origin+"/index.html?q", origin+rest, "http://[/")
		}
	}
	f.Fuzz(func(t *testing.T, a, b, c string) {
		var keyer Keyer
		for _, url := range []string{a, b, c, b, a, a} {
			got, err := keyer.KeyOf(url)
			if want, wrong := KeyOf(url); got != want || (err == nil) != (wrong == nil) {
				t.Fatalf("of %q after others of %q, %q, %q: %+v, %v; want %+v, %v", url, a, b, c, got, err, want, wrong)
			}
		}
	})
}

func BenchmarkCanonical(b *testing.B) {
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
				if _, err := c.Canonical(bm.raw, bm.base); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package urlkey

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var defaults = []string{"utm_*", "fbclid", "gclid"}

func canonicalizer(t testing.TB, patterns ...string) *Canonicalizer {
	t.Helper()
	c, err := New(patterns)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCanonicalForm(t *testing.T) {
	c := canonicalizer(t, defaults...)
	const base = "https://example.org/dir/page.html?x=1"
	for _, tc := range []struct{ name, raw, base, want string }{
		{"clean stays", "https://example.com/a/b?c=d", "", "https://example.com/a/b?c=d"},
		{"empty path", "http://example.com", "", "http://example.com/"},
		{"empty path with query", "http://example.com?a", "", "http://example.com/?a"},
		{"scheme and host in lower case, path not", "HTTP://EXAMPLE.com/A", "", "http://example.com/A"},
		{"own port", "https://example.com:443/", "", "https://example.com/"},
		{"port of the other scheme", "http://example.com:443/", "", "http://example.com:443/"},
		{"port with zeros", "http://example.com:0080/", "", "http://example.com/"},
		{"fragment", "http://example.com/#top", "", "http://example.com/"},
		{"fragment that is not ASCII", "http://example.com/a#é", "", "http://example.com/a"},
		{"credentials", "http://user:pass@example.com/", "", "http://example.com/"},
		{"trailing dot", "http://example.com./", "", "http://example.com/"},
		{"dot segments", "http://example.com/a/./b/../c", "", "http://example.com/a/c"},
		{"encoded dot segments", "http://example.com/a/%2e%2E/c", "", "http://example.com/c"},
		{"trailing and doubled slashes stay", "http://example.com/a//b/", "", "http://example.com/a//b/"},
		{"unreserved decoded", "http://example.com/%7euser/%41", "", "http://example.com/~user/A"},
		{"hex in upper case", "http://example.com/%c3%a9?q=%2f", "", "http://example.com/%C3%A9?q=%2F"},
		{"reserved stays encoded", "http://example.com/a%2Fb%3Fc", "", "http://example.com/a%2Fb%3Fc"},
		{"stray percent", "http://example.com/100%?50%25", "", "http://example.com/100%?50%25"},
		{"stray percent is not completed", "http://example.com/%%34%31", "", "http://example.com/%%341"},
		{"stray percent and digit", "http://example.com/%4%31", "", "http://example.com/%4%31"},
		{"not ASCII", "http://example.com/é?é", "", "http://example.com/%C3%A9?%C3%A9"},
		{"IDN", "http://Bücher.example/", "", "http://xn--bcher-kva.example/"},
		{"IPv4 in disguise", "http://0x7f.1/", "", "http://127.0.0.1/"},
		{"a hyphen and a number", "http://a-1.b2/", "", "http://a-1.b2/"},
		{"IPv6", "http://[2001:DB8:0::1]:8080/", "", "http://[2001:db8::1]:8080/"},
		{"backslashes", `http:\\example.com\a`, "", "http://example.com/a"},
		{"space around, tab inside", " \thttp://exa\tmple.com/\n", "", "http://example.com/"},
		{"tracking parameters", "http://example.com/?utm_source=x&a=1&FBCLID=2&Utm_Id", "", "http://example.com/?a=1"},
		{"nothing but tracking", "http://example.com/?gclid=1", "", "http://example.com/"},
		{"encoded name of a tracking parameter", "http://example.com/?%75tm_source=x&a", "", "http://example.com/?a"},
		{"refer is not ref", "http://example.com/?refer=1", "", "http://example.com/?refer=1"},
		{"sorted, stable", "http://example.com/?b=2&a=9&b=1&a=1", "", "http://example.com/?a=9&a=1&b=2&b=1"},
		{"empty parameters", "http://example.com/?&&a&&", "", "http://example.com/?a"},
		{"empty query", "http://example.com/a?", "", "http://example.com/a"},
		{"empty query and fragment", "http://example.com/a?#x", "", "http://example.com/a"},
		{"question mark in a query", "http://example.com/??a", "", "http://example.com/??a"},
		{"apostrophe in a query", "http://example.com/'?'", "", "http://example.com/'?%27"},
		{"relative file", "next.html", base, "https://example.org/dir/next.html"},
		{"relative root", "/x", base, "https://example.org/x"},
		{"relative host", "//other.example/x", base, "https://other.example/x"},
		{"relative query", "?y=2", base, "https://example.org/dir/page.html?y=2"},
		{"relative fragment", "#y", base, "https://example.org/dir/page.html?x=1"},
		{"relative nothing", "", base, "https://example.org/dir/page.html?x=1"},
		{"relative up", "../../../x", base, "https://example.org/x"},
		{"relative here", "./x/./y", base, "https://example.org/dir/x/y"},
		{"relative dot", "..", base, "https://example.org/"},
		{"relative without slashes", "https:next", base, "https://example.org/dir/next"},
		{"colon later", "a/b:c", base, "https://example.org/dir/a/b:c"},
		{"bad base of an absolute URL", "http://example.com/a%2", "nonsense", "http://example.com/a%2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k, err := c.Canonical(tc.raw, tc.base)
			if err != nil {
				t.Fatal(err)
			}
			if k.URL != tc.want {
				t.Errorf("Canonical(%q, %q) = %q, want %q", tc.raw, tc.base, k.URL, tc.want)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	c := canonicalizer(t, "utm_*")
	long := "http://example.com/" + strings.Repeat("a", MaxLength)
	for _, tc := range []struct {
		raw, base string
		want      error
	}{
		{"", "", ErrNotURL},
		{"# a comment", "", ErrNotURL},
		{"example.com/a", "", ErrNotURL},
		{"next.html", "nonsense", ErrNotURL},
		{"http://", "", ErrNotURL},
		{"http://a b/", "", ErrNotURL},
		{"http://example.com:99999/", "", ErrNotURL},
		{"http://[::1/", "", ErrNotURL},
		{"http://1.2.3.256/", "", ErrNotURL},
		{"http://-1.255/", "", ErrNotURL},
		{"http://+10.0.0.1/", "", ErrNotURL},
		{"http://10.0.0.+0x1./", "", ErrHost},
		{"http://a-b.0x7F/", "", ErrNotURL},
		{"next.html", "mailto:a@example.com", ErrNotURL},
		{"/a", "ftp://example.com/", ErrScheme},
		{"ftp://example.com/", "", ErrScheme},
		{"javascript:void(0)", "http://example.com/", ErrScheme},
		{"java\tscript:void(0)", "http://example.com/", ErrScheme},
		{"mailto:a@example.com", "", ErrScheme},
		{"localhost:8080/", "", ErrScheme},
		{"http://a..b/", "", ErrHost},
		{"http://./", "", ErrHost},
		{"http://.example.com/", "", ErrHost},
		{"http://{{host}}/", "", ErrHost},
		{"http://example.com:0/", "", ErrHost},
		{"http://" + strings.Repeat("a", 64) + ".com/", "", ErrHost},
		{"http://" + strings.Repeat("a.", 127) + "com/", "", ErrHost},
		{long, "", ErrTooLong},
		{"http://example.com/" + strings.Repeat("é", MaxLength/6), "", ErrTooLong},
		{strings.Repeat("a", maxRaw+1), "", ErrTooLong},
	} {
		k, err := c.Canonical(tc.raw, tc.base)
		if !errors.Is(err, tc.want) {
			t.Errorf("Canonical(%s, %q) = %q, %v; want %v", quoted(tc.raw), tc.base, k.URL, err, tc.want)
		}
		if err != nil && len(err.Error()) > 300 {
			t.Errorf("the error of %s has %d octets", quoted(tc.raw), len(err.Error()))
		}
	}
	if _, err := c.Canonical(long[:MaxLength]+"#"+long, ""); err != nil {
		t.Errorf("a URL of %d octets and a fragment: %v", MaxLength, err)
	}
}

func TestKeys(t *testing.T) {
	c := canonicalizer(t)
	for _, tc := range []struct {
		raw  string
		want Key
	}{
		{"https://www.Example.co.uk:8443/B/?z&a", Key{"https://www.example.co.uk:8443/B/?a&z", "uk,co,example:8443)/b?a&z", "www.example.co.uk:8443", "example.co.uk"}},
		{"http://example.com:443/", Key{"http://example.com:443/", "com,example:443)/", "example.com", "example.com"}},
		{"https://a.b.github.io/", Key{"https://a.b.github.io/", "io,github,b,a)/", "a.b.github.io", "b.github.io"}},
		{"https://github.io/", Key{"https://github.io/", "io,github)/", "github.io", "github.io"}},
		{"http://localhost:8080/", Key{"http://localhost:8080/", "localhost:8080)/", "localhost:8080", "localhost"}},
		{"http://a.b.test/", Key{"http://a.b.test/", "test,b,a)/", "a.b.test", "b.test"}},
		{"http://127.0.0.1:81/x", Key{"http://127.0.0.1:81/x", "1,0,0,127:81)/x", "127.0.0.1:81", "127.0.0.1"}},
		{"http://[::1]/x", Key{"http://[::1]/x", "::1)/x", "[::1]", "[::1]"}},
		{"http://[::1]:81/x", Key{"http://[::1]:81/x", "::1:81)/x", "[::1]:81", "[::1]"}},
	} {
		got, err := c.Canonical(tc.raw, "")
		if err != nil {
			t.Errorf("Canonical(%q): %v", tc.raw, err)
			continue
		}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("Canonical(%q) (-want +got):\n%s", tc.raw, d)
		}
		again, err := KeyOf(got.URL)
		if err != nil || again != got {
			t.Errorf("KeyOf(%q) = %+v, %v; want %+v", got.URL, again, err, got)
		}
	}
	for _, bad := range []string{"", "http://", "http://example.com", "ftp://a/", "http://a b/", "http://u@a/", "http://a/#b"} {
		if k, err := KeyOf(bad); !errors.Is(err, ErrNotURL) {
			t.Errorf("KeyOf(%q) = %+v, %v; want ErrNotURL", bad, k, err)
		}
	}
}

func TestSplitGivesCommonCrawlColumns(t *testing.T) {
	for _, tc := range []struct {
		url  string
		want Parts
	}{
		{"https://a.b.www.example.co.uk:8443/p/q?r=s", Parts{
			HostName: "a.b.www.example.co.uk", TLD: "uk", SecondLast: "co", ThirdLast: "example", FourthLast: "www", FifthLast: "b",
			RegistrySuffix: "co.uk", RegisteredDomain: "example.co.uk", PrivateSuffix: "co.uk", PrivateDomain: "example.co.uk",
			NameReversed: "uk.co.example.www.b.a", Protocol: "https", Port: 8443, Path: "/p/q", Query: "r=s",
		}},
		{"http://x.user.github.io/", Parts{
			HostName: "x.user.github.io", TLD: "io", SecondLast: "github", ThirdLast: "user", FourthLast: "x",
			RegistrySuffix: "io", RegisteredDomain: "github.io", PrivateSuffix: "github.io", PrivateDomain: "user.github.io",
			NameReversed: "io.github.user.x", Protocol: "http", Path: "/",
		}},
		{"http://github.io/", Parts{
			HostName: "github.io", TLD: "io", SecondLast: "github", RegistrySuffix: "io", RegisteredDomain: "github.io",
			PrivateSuffix: "github.io", NameReversed: "io.github", Protocol: "http", Path: "/",
		}},
		{"http://www.site.test/", Parts{
			HostName: "www.site.test", TLD: "test", SecondLast: "site", ThirdLast: "www", RegistrySuffix: "test", RegisteredDomain: "site.test",
			PrivateSuffix: "test", PrivateDomain: "site.test", NameReversed: "test.site.www", Protocol: "http", Path: "/",
		}},
		{"http://192.0.2.1/?a", Parts{HostName: "192.0.2.1", Protocol: "http", Path: "/", Query: "a"}},
	} {
		got, err := Split(tc.url)
		if err != nil {
			t.Errorf("Split(%q): %v", tc.url, err)
		}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("Split(%q) (-want +got):\n%s", tc.url, d)
		}
	}
}

func TestBadPatternsAreNamed(t *testing.T) {
	for _, p := range []string{"", "*", "a=b", "a&b", "[ab]", "a b", "é", "50%"} {
		_, err := New([]string{"utm_*", p})
		if !errors.Is(err, ErrPattern) || !strings.Contains(err.Error(), quoted(p)) {
			t.Errorf("New(%q): %v; want an error that quotes the pattern", p, err)
		}
	}
}

func TestPatterns(t *testing.T) {
	for _, tc := range []struct {
		pattern, name string
		want          bool
	}{
		{"utm_*", "utm_", true}, {"utm_*", "UTM_x", true}, {"utm_*", "utm", false},
		{"*id", "fbclid", true}, {"*id", "idx", false}, {"?clid", "gclid", true}, {"?clid", "clid", false},
		{"a*b*c", "aXbYc", true}, {"a*b*c", "abcb", false}, {"REF", "ref", true},
	} {
		c := canonicalizer(t, tc.pattern)
		if got := c.strip.match(tc.name); got != tc.want {
			t.Errorf("pattern %q, name %q: %v", tc.pattern, tc.name, got)
		}
	}
}

// The bucket of a domain is part of the stored format. In another bucket, the domain would lose the
// data of earlier rounds.
func TestBucketsNeverChange(t *testing.T) {
	for _, tc := range []struct {
		domain string
		n      int
		want   int
	}{{"example.com", 1, 0}, {"example.com", 0, 0}, {"example.com", 16, 8}, {"example.org", 16, 4}, {"bücher.example", 1000, 582}} {
		if got := Bucket(tc.domain, tc.n); got != tc.want {
			t.Errorf("Bucket(%q, %d) = %d, want %d", tc.domain, tc.n, got, tc.want)
		}
	}
}

// TestSURT compares SURTs of canonical URLs with the SURTs of the reference implementation,
// internetarchive/surt 0.3.1.
func TestSURT(t *testing.T) {
	f, err := os.Open(filepath.Join("testdata", "surt.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for s := bufio.NewScanner(f); s.Scan(); n++ {
		canonical, want, _ := strings.Cut(s.Text(), "\t")
		if got, err := SURT(canonical); err != nil || got != want {
			t.Errorf("SURT(%q) = %q, %v; want %q", canonical, got, err, want)
		}
	}
	if n < 100 {
		t.Errorf("testdata/surt.tsv has %d lines", n)
	}
}

func TestWHATWG(t *testing.T) {
	for _, tc := range []struct{ raw, base, want string }{
		{"http://user:pass@foo:21/bar;par?b#c", "", "http://user:pass@foo:21/bar;par?b#c"},
		{"foo:opaque  ?hi", "", "foo:opaque %20?hi"},
		{"foo:opaque  #", "", "foo:opaque %20#"},
		{"http://host/^", "", "http://host/%5E"},
		{"http://a.xn--pokxncvks/", "", "http://a.xn--pokxncvks/"},
		{"http://xn-q.xn-Qa.XN--a/", "", "http://xn-q.xn-qa.xn--a/"},
		{"//xn-q.é/", "http://example.com/", "http://xn-q.xn--9ca/"},
	} {
		if got, err := WHATWG(tc.raw, tc.base); err != nil || got != tc.want {
			t.Errorf("WHATWG(%q, %q) = %q, %v; want %q", tc.raw, tc.base, got, err, tc.want)
		}
	}
	for _, bad := range []string{"http://%2541.com/", "http://a%25b/", "http://\xff/", "http://%00/"} {
		if got, err := WHATWG(bad, ""); !errors.Is(err, ErrNotURL) {
			t.Errorf("WHATWG(%q) = %q, %v; want ErrNotURL", bad, got, err)
		}
	}
}

// whatwgCase is a test case of the URL Standard, in the form of web-platform-tests.
type whatwgCase struct {
	Name, Input, Base, Href string
	Failure                 bool
}

func (c whatwgCase) run(t *testing.T) {
	t.Helper()
	got, err := WHATWG(c.Input, c.Base)
	if c.Failure && err == nil {
		t.Errorf("%s: WHATWG(%q, %q) = %q, want a failure", c.Name, c.Input, c.Base, got)
	}
	if !c.Failure && (err != nil || got != c.Href) {
		t.Errorf("%s: WHATWG(%q, %q) = %q, %v; want %q", c.Name, c.Input, c.Base, got, err, c.Href)
	}
}

// TestURLStandard checks one test case for each rule of the URL Standard.
func TestURLStandard(t *testing.T) {
	f, err := os.Open(filepath.Join("testdata", "whatwg.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for d := json.NewDecoder(f); d.More(); n++ {
		var c whatwgCase
		if err := d.Decode(&c); err != nil {
			t.Fatal(err)
		}
		c.run(t)
	}
	if n < 90 {
		t.Errorf("only %d cases", n)
	}
}

// TestWebPlatformTests runs the URL Standard's own tests, if they are present beside the
// project.
func TestWebPlatformTests(t *testing.T) {
	data, err := os.ReadFile("../../../shared/data/url/wpt-urltestdata.json")
	if err != nil {
		t.Log("../shared/data/url/wpt-urltestdata.json is missing, so only TestURLStandard tests the standard")
		return
	}
	var entries []json.RawMessage
	if err := json.Unmarshal(data, &entries); err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		var c whatwgCase
		if json.Unmarshal(e, &c) == nil { // an element that is not an object is a comment
			c.run(t)
		}
	}
}

func TestOverlappingBucketsShareHashes(t *testing.T) {
	for buckets := 1; buckets <= 7; buckets++ {
		for n := 1; n <= 7; n++ {
			for b := range buckets {
				first, last := Overlapping(b, buckets, n)
				for other := range n {
					// The bucket b is the range b/buckets to (b+1)/buckets of all hashes.
					share := b*n < (other+1)*buckets && other*buckets < (b+1)*n
					if share != (first <= other && other <= last) {
						t.Errorf("buckets %d of %d and %d of %d: %v", b, buckets, other, n, !share)
					}
				}
			}
		}
	}
}

func TestSplitPort(t *testing.T) {
	for host, want := range map[string][2]string{
		"a.example": {"a.example", ""}, "a.example:81": {"a.example", ":81"}, "[2001:db8::1]": {"[2001:db8::1]", ""},
		"[2001:db8::1]:81": {"[2001:db8::1]", ":81"}, "10.0.0.1:81": {"10.0.0.1", ":81"}, "": {"", ""}, ":81": {"", ":81"},
	} {
		if name, port := SplitPort(host); name != want[0] || port != want[1] {
			t.Errorf("%q: %q, %q", host, name, port)
		}
	}
}

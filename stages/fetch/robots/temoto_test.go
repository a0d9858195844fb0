package robots

import (
	"testing"

	"github.com/temoto/robotstxt"
)

// TestWhatTheLibraryAloneMisjudges shows why temoto/robotstxt is not used for verdicts: in each
// case it differs from Google's parser. If a newer version of the library passes a case, remove the
// case.
func TestWhatTheLibraryAloneMisjudges(t *testing.T) {
	const foo, all = "User-agent: foobot\n", "User-agent: *\n"
	for _, c := range []struct {
		name, robots, path string
		allowed            bool
	}{
		{"of equals Allow wins", foo + "Disallow: /a\nAllow: /a\n", "/a", true},
		{"a dollar at the end only", foo + "Disallow: /a$b\n", "/a$b", false},
		{"escapes in lower case", foo + "Disallow: /%e3%83%84\n", "/%E3%83%84", false},
		{"octets outside ASCII", foo + "Disallow: /\u30c4\n", "/%E3%83%84", false},
		{"a token is no prefix", "User-agent: foo\nDisallow: /\n", "/x", true},
		{"a version after the token", "User-agent: foobot/2.1\nDisallow: /\n", "/x", false},
		{"rules before any agent", "Disallow: /\n" + foo + "Allow: /b\n", "/a", true},
		{"an empty group of its own", all + "Disallow: /\n\n" + foo, "/x", true},
		{"typos", foo + "Dissallow: /\n", "/x", false},
		{"index.html", all + "Allow: /d/index.html\nDisallow: /\n", "/d/", true},
		{"half a byte-order mark", "\xEF\xBB" + foo + "Disallow: /\n", "/x", false},
		{"one bad line", foo + "Crawl-delay: fast\nDisallow: /a\n", "/a", false},
		{"NUL", foo + "Disallow: /a\x00b\n", "/ac", false},
	} {
		if v := googleVerdict(Parse([]byte(c.robots)).GroupFor("FooBot"), "http://h"+c.path); v.Allowed != c.allowed {
			t.Errorf("%s: %+v", c.name, v)
		}
		if data, err := robotstxt.FromString(c.robots); err == nil && data.TestAgent(c.path, "FooBot") == c.allowed {
			t.Errorf("%s: the library is right", c.name)
		}
	}
}

package robots_test

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
)

// asked returns the URL that is sent for a given one, the canonical URL, and the verdict on what is sent.
func asked(t testing.TB, file, given string) (v robots.Verdict, sent, url string) {
	t.Helper()
	c, err := urlkey.New([]string{"utm_*", "fbclid"})
	if err != nil {
		t.Fatal(err)
	}
	k, sent, err := c.Sent(given, "")
	if err != nil {
		t.Fatal(err)
	}
	sent = cmp.Or(sent, k.URL)
	return robots.Parse([]byte(file)).GroupFor("foobot").Verdict(sent), sent, k.URL
}

// robots.txt is asked for a URL as it is linked, and so sent. Escapes make no difference.
func TestTheVerdictIsAboutWhatIsSent(t *testing.T) {
	const deny = "Disallow: "
	tests := []struct {
		name, rules, given string
		rule               string // line that denies the URL; "" if the URL is sent
	}{
		{"an escaped tilde in the rule", deny + "/%7Ejoe/", "http://h/~joe/a", deny + "/%7Ejoe/"},
		{"an escaped tilde in both", deny + "/%7Ejoe/", "http://h/%7Ejoe/a", deny + "/%7Ejoe/"},
		{"an escaped tilde in the URL", deny + "/~joe/", "http://h/%7Ejoe/a", deny + "/~joe/"},
		{"in lower case", deny + "/%7ejoe/", "http://h/%7Ejoe/a", deny + "/%7ejoe/"},
		{"in lower case in the URL", deny + "/%7Ejoe/", "http://h/%7ejoe/a", deny + "/%7Ejoe/"},
		{"an escaped letter in the rule", deny + "/%62%61%7A", "http://h/baz", deny + "/%62%61%7A"},
		{"an escaped letter in the URL", deny + "/baz", "http://h/%62a%7a", deny + "/baz"},
		{"each escapes another letter", deny + "/%62az", "http://h/b%61z", deny + "/%62az"},
		{"an escaped hyphen, dot and underscore", deny + "/a%2Db%2Ec%5Fd", "http://h/a-b.c_d", deny + "/a%2Db%2Ec%5Fd"},
		{"an escaped letter is no other letter", deny + "/%62az", "http://h/caz", ""},
		{"the case of letters counts, also escaped", deny + "/%41", "http://h/a", ""},
		{"escaped letters in the query of the rule", deny + "/s?%71=", "http://h/s?q=1", deny + "/s?%71="},
		{"escaped letters in the query of the URL", deny + "/s?q=", "http://h/s?%71=1", deny + "/s?q="},

		{"parameters in the rule's order", deny + "/q?z=1&a=2", "http://h/q?z=1&a=2", deny + "/q?z=1&a=2"},
		{"parameters in canonical order alone", deny + "/q?z=1&a=2", "http://h/q?a=2&z=1", ""},
		{"a rule in canonical order", deny + "/q?a=2&z=1", "http://h/q?z=1&a=2", ""},
		{"a prefix of parameters", deny + "/q?z=", "http://h/q?z=1&a=2", deny + "/q?z="},
		{"a prefix that the canonical order lacks", deny + "/q?z=", "http://h/q?a=2&z=1", ""},
		{"order and escapes at once", deny + "/%71?z=1&a=2", "http://h/q?%7A=1&%61=2", deny + "/%71?z=1&a=2"},
		{"a parameter at the end", deny + "/*&a=2$", "http://h/q?z=1&a=2", deny + "/*&a=2$"},
		{"order around a tracking parameter", deny + "/q?z=1&a=2", "http://h/q?z=1&utm_source=x&a=2", ""},

		{"a literal star", deny + "/star-%2A.html", "http://h/star-*.html", deny + "/star-%2A.html"},
		{"a literal star that the URL escapes", deny + "/star-%2A.html", "http://h/star-%2A.html", deny + "/star-%2A.html"},
		{"a literal star in lower case", deny + "/star-%2a.html", "http://h/star-*.html", deny + "/star-%2a.html"},
		{"a literal star is no wildcard", deny + "/star-%2A.html", "http://h/star-x.html", ""},
		{"a wildcard matches a star", deny + "/star-*.html", "http://h/star-%2A.html", deny + "/star-*.html"},
		{"a literal dollar", deny + "/cost-%24", "http://h/cost-$", deny + "/cost-%24"},
		{"a literal dollar that the URL escapes", deny + "/cost-%24", "http://h/cost-%24", deny + "/cost-%24"},
		{"a literal dollar at the end is no anchor", deny + "/cost-%24", "http://h/cost-$5", deny + "/cost-%24"},
		{"nor does it match the end", deny + "/cost-%24", "http://h/cost-", ""},
		{"a dollar in the middle", deny + "/a$b", "http://h/a%24b", deny + "/a$b"},
		{"an anchor after a literal dollar", deny + "/a%24$", "http://h/a$", deny + "/a%24$"},
		{"and its end", deny + "/a%24$", "http://h/a$b", ""},

		{"an escaped slash is no slash", deny + "/a/b", "http://h/a%2Fb", ""},
		{"a slash is no escaped slash", deny + "/a%2Fb", "http://h/a/b", ""},
		{"an escaped slash, hex in lower case", deny + "/a%2fb", "http://h/a%2Fb", deny + "/a%2fb"},
		{"an escaped question mark", deny + "/a?b", "http://h/a%3Fb", ""},
		{"a question mark", deny + "/a%3Fb", "http://h/a?b", ""},
		{"an escaped equals sign", deny + "/q?a=b", "http://h/q?a%3Db", ""},
		{"an escaped ampersand", deny + "/q?a=1&b", "http://h/q?a=1%26b", ""},
		{"an escaped ampersand in the rule", deny + "/q?a=1%26b", "http://h/q?a=1&b", ""},
		{"an escaped colon", deny + "/a:b", "http://h/a%3Ab", ""},
		{"an escaped hash", deny + "/a%23b", "http://h/a%23b", deny + "/a%23b"},
		{"a plus is no space", deny + "/q?a+b", "http://h/q?a%20b", ""},
		{"a space is no plus", deny + "/q?a%20b", "http://h/q?a+b", ""},
		{"a plus", deny + "/q?a+b", "http://h/q?a+b", deny + "/q?a+b"},
		{"a space in the rule", deny + "/my files/", "http://h/my%20files/a", deny + "/my files/"},
		{"a space in the URL", deny + "/my%20files/", "http://h/my files/a", deny + "/my%20files/"},
		{"an apostrophe in a query", deny + "/q?a='b", "http://h/q?a=%27b", deny + "/q?a='b"},
		{"braces and bars", deny + "/{a|b}", "http://h/%7Ba%7Cb%7D", deny + "/{a|b}"},

		{"UTF-8 in the rule", deny + "/caf\u00e9", "http://h/caf%C3%A9", deny + "/caf\u00e9"},
		{"UTF-8 in the URL", deny + "/caf%c3%a9", "http://h/caf\u00e9/", deny + "/caf%c3%a9"},
		{"UTF-8 in both", deny + "/\u30c4*x", "http://h/\u30c4/x", deny + "/\u30c4*x"},
		{"UTF-8 in a query", deny + "/?q=\u30c4", "http://h/?q=%e3%83%84", deny + "/?q=\u30c4"},
		{"another letter of UTF-8", deny + "/caf\u00e9", "http://h/caf%C3%A8", ""},

		{"an escaped escape is not decoded twice", deny + "/~joe", "http://h/%257Ejoe", ""},
		{"nor in the rule", deny + "/%257Ejoe", "http://h/~joe", ""},
		{"an escaped escape in both", deny + "/%257ejoe", "http://h/%257ejoe", deny + "/%257ejoe"},
		{"a stray percent sign", deny + "/100%", "http://h/100%", deny + "/100%"},
		{"a stray percent sign that the URL escapes", deny + "/100%/a", "http://h/100%25/a", deny + "/100%/a"},
		{"a stray percent sign makes no escape", deny + "/~", "http://h/%%37E", ""},
		{"half an escape", deny + "/%7", "http://h/%7Ejoe", deny + "/%7"},

		{"case of the host", deny + "/%7Ejoe/", "HTTP://H/%7Ejoe/", deny + "/%7Ejoe/"},
		{"a default port", deny + "/%7Ejoe/", "http://h:80/~joe/", deny + "/%7Ejoe/"},
		{"another port", deny + "/%7Ejoe/", "http://h:8080/%7ejoe/", deny + "/%7Ejoe/"},
		{"credentials", deny + "/~joe/", "http://u:p@h/%7Ejoe/", deny + "/~joe/"},
		{"dot segments are resolved first", deny + "/~joe/", "http://h/x/../%7Ejoe/./a", deny + "/~joe/"},
		{"and escaped dot segments", deny + "/~joe/", "http://h/x/%2e%2E/~joe/a", deny + "/~joe/"},
		{"a rule on what dot segments remove", deny + "/x/", "http://h/x/../a", ""},
		{"a fragment", deny + "/*#", "http://h/a#b", deny + "/*"},
		{"a fragment alone", deny + "/a/b", "http://h/a#/b", ""},

		{"a tracking parameter", deny + "/*utm_", "http://h/page?utm_source=x", deny + "/*utm_"},
		{"a tracking parameter beside another", deny + "/*utm_", "http://h/page?b=1&utm_source=x", deny + "/*utm_"},
		{"a tracking parameter with an escaped name", deny + "/*utm_", "http://h/page?%75tm_source=x", deny + "/*utm_"},
		{"the page of a tracking parameter", deny + "/page", "http://h/page?utm_source=x", deny + "/page"},
		{"an empty query", deny + "/page?", "http://h/page?", deny + "/page?"},
		{"empty parameters", deny + "/page?b&a", "http://h/page?&b&&a&", ""},
		{"every query", deny + "/*?", "http://h/page?z&a", deny + "/*?"},

		{"an anchor", deny + "/%7Ejoe$", "http://h/~joe", deny + "/%7Ejoe$"},
		{"an anchor before more", deny + "/%7Ejoe$", "http://h/~joe/", ""},
		{"an anchor after parameters", deny + "/q?z=1&a=2$", "http://h/q?z=1&a=2", deny + "/q?z=1&a=2$"},
		{"a wildcard between escapes", deny + "/%7E*/%70rivate", "http://h/~joe/private/x", deny + "/%7E*/%70rivate"},
		{"a wildcard and an anchor", deny + "/*.%70hp$", "http://h/a.php", deny + "/*.%70hp$"},
		{"a wildcard over parameters", deny + "/*z=*a=", "http://h/q?z=1&a=2", deny + "/*z=*a="},

		{"a longer allow", deny + "/%7Ejoe/\nAllow: /%7Ejoe/pub/", "http://h/%7Ejoe/pub/a", ""},
		{"a longer allow in RFC 9309's reading only", deny + "/%7E\nAllow: /~joe", "http://h/~joe", ""},
		{"a longer allow that one reading lacks", deny + "/%7E\nAllow: /~joe", "http://h/%7Ejoe", deny + "/%7E"},
		{"an allow that is longer by its escapes", deny + "/~joe/a\nAllow: /%7Ejoe/", "http://h/%7Ejoe/a", deny + "/~joe/a"},
		{"an allow that Google's reading does not match", deny + "/\nAllow: /%7Ejoe/", "http://h/~joe/", deny + "/"},
		{"an allow as the URL is linked", deny + "/\nAllow: /%7Ejoe/", "http://h/%7Ejoe/", ""},
		{"an allow of both forms", deny + "/\nAllow: /%7Ejoe/\nAllow: /~joe/", "http://h/%7Ejoe/", ""},
		{"an allow of one order", deny + "/q\nAllow: /q?a=2&z=1", "http://h/q?z=1&a=2", deny + "/q"},

		{"an index page allows its directory", deny + "/\nAllow: /d/index.html", "http://h/d/", ""},
		{"not by an escaped name", deny + "/\nAllow: /d/index%2Ehtml", "http://h/d/", deny + "/"},
		{"an escaped directory", deny + "/\nAllow: /%64/index.html\nAllow: /d/index.html", "http://h/%64/", ""},
		{"robots.txt may always be asked for", deny + "/", "http://h/robots.txt", ""},
		{"but not with escapes", deny + "/", "http://h/robot%73.txt", deny + "/"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, sent, _ := asked(t, "User-agent: *\n"+tt.rules+"\n", tt.given)
			if got.Allowed != (tt.rule == "") || tt.rule != "" && got.Rule != tt.rule {
				t.Errorf("%q is asked for %q, given as %q: got %+v, want denied by %q", tt.rules, sent, tt.given, got, tt.rule)
			}
		})
	}
	if len(tests) < 60 {
		t.Errorf("%d cases", len(tests))
	}
}

// tokens splits a canonical path and query into single octets and escapes.
func tokens(path string) (out []string) {
	for i := 0; i < len(path); {
		n := 1
		if path[i] == '%' {
			n = 3
		}
		out = append(out, path[i:i+n])
		i += n
	}
	return out
}

// rewrite writes a token of a URL in another way: it may escape unreserved octets and change the
// case of hex digits.
func rewrite(r *rand.Rand, token string) string {
	if len(token) == 1 { // the token is not an escape
		if !unreserved.MatchString(token) || r.IntN(3) > 0 {
			return token
		}
		token = fmt.Sprintf("%%%02X", token[0])
	}
	if r.IntN(2) == 0 {
		return strings.ToLower(token)
	}
	return token
}

// rewriteRule writes a token of a rule in another way. It may leave octets unescaped that a URI
// must not contain. It escapes a literal star or dollar, which would otherwise be a wildcard or
// anchor.
func rewriteRule(r *rand.Rand, token string, last bool) string {
	switch {
	case token == "*", token == "$" && last:
		return rewrite(r, fmt.Sprintf("%%%02X", token[0]))
	case len(token) == 3 && !last && r.IntN(2) == 0: // a space at the end would be trimmed
		b, err := hex.DecodeString(token[1:])
		if err == nil && (b[0] >= 0x80 || strings.IndexByte(" \"'<>\\^`{|}", b[0]) >= 0) {
			return string(b)
		}
	}
	return rewrite(r, token)
}

// someRule makes up a rule that matches a path. The rule is a rewritten prefix of the path, in
// which stars replace some tokens. If it has the whole path, it may end with an anchor.
func someRule(r *rand.Rand, path string) string {
	all := tokens(path)
	n := 1 + r.IntN(len(all))
	var b strings.Builder
	b.WriteString("/")
	for i := 1; i < n; i++ {
		if r.IntN(8) == 0 {
			b.WriteString("*")
			i += r.IntN(3)
			if i >= n {
				return b.String()
			}
		}
		b.WriteString(rewriteRule(r, all[i], i == n-1))
	}
	if n == len(all) && r.IntN(2) == 0 {
		b.WriteString("$")
	}
	return b.String()
}

// FuzzEscapesMakeNoDifference makes up a rule that denies a URL, and judges the URL with other escapes.
func FuzzEscapesMakeNoDifference(f *testing.F) {
	for i, path := range []string{
		"~joe/a", "q?z=1&a=2", "star-*.html", "star-%2A.html", "cost-$", "cost-%24", "a%2Fb/c%3Fd", "caf\u00e9?q=\u30c4", "%257Ejoe", "my files/{a|b}'?c='d",
		"q?z=1&utm_source=x&a=2", "d/index.html", "a+b?c+d=e%20f", "a;b=c,d:e@f!(g)", "%E9%FF", "robot%73.txt",
	} {
		f.Add(path, uint64(i))
	}
	f.Fuzz(func(t *testing.T, path string, seed uint64) {
		canon, err := urlkey.New([]string{"utm_*", "fbclid"})
		if err != nil {
			t.Fatal(err)
		}
		k, sent, err := canon.Sent("http://h/"+path, "")
		if err != nil || len(k.URL) > 2000 || k.URL == "http://h/robots.txt" {
			return
		}
		path = strings.TrimPrefix(cmp.Or(sent, k.URL), "http://h")
		if strayPercent.MatchString(path) {
			return // the text after the escape cannot be written in another way
		}
		r := rand.New(rand.NewPCG(seed, 9309))
		for range 8 {
			rule := "Disallow: " + someRule(r, path)
			given := "http://h"
			for _, token := range tokens(path) {
				given += rewrite(r, token)
			}
			v, sent, url := asked(t, "User-agent: *\n"+rule+"\n", given)
			if url != k.URL {
				t.Fatalf("%q is %[3]q, not %[2]q", given, k.URL, url)
			}
			if v.Allowed {
				t.Errorf("%q is sent as %q in spite of %q", given, sent, rule)
			}
		}
	})
}

var unreserved = regexp.MustCompile(`^[0-9A-Za-z._~-]$`)

var strayPercent = regexp.MustCompile(`%($|[^0-9A-F]|[0-9A-F]($|[^0-9A-F]))`)

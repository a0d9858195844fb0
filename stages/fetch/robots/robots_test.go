package robots

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// googleVerdict returns the verdict of the comparison of raw octets alone, as Google's parser gives it.
func googleVerdict(g *Group, rawURL string) Verdict {
	path := pathOf(rawURL)
	if path == "/robots.txt" {
		return Verdict{Allowed: true}
	}
	return decide(g.rules, path)
}

// TestSites checks verdicts for the robots.txt files of a few kinds of sites. Google's parser gave
// the same verdicts.
func TestSites(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/sites.txtar")
	if err != nil {
		t.Fatal(err)
	}
	body := map[string][]byte{}
	verdicts := 0
	for _, f := range archive.Files {
		site, file := path.Split(f.Name)
		if file != "verdicts" {
			body[site] = f.Data
			continue
		}
		for line := range strings.Lines(string(f.Data)) {
			w := strings.Fields(line)
			if len(w) != 3 || body[site] == nil || w[0] != "allow" && w[0] != "deny" {
				t.Fatalf("%s: %q is not a verdict of a file", site, line)
			}
			allowed, agent, url := w[0] == "allow", w[1], w[2]
			verdicts++
			for _, with := range []struct{ name, from, to string }{{"", "", ""}, {" with CRLF", "\n", "\r\n"}, {" with CR", "\n", "\r"}} {
				text := body[site]
				if with.name != "" {
					text = bytes.ReplaceAll(text, []byte(with.from), []byte(with.to))
				}
				g := Parse(text).GroupFor(agent)
				for _, got := range []Verdict{googleVerdict(g, url), g.Verdict(url)} { // both must agree
					if got.Allowed != allowed {
						t.Errorf("%s%s: %s: got %+v", site, with.name, line, got)
					}
				}
				compare(t, string(text), agent, url)
			}
		}
	}
	if verdicts < 80 {
		t.Errorf("only %d verdicts", verdicts)
	}
}

// TestNamedCases checks verdicts of Google's open-source parser. The cases are in a file outside
// the repository, which may be missing.
func TestNamedCases(t *testing.T) {
	f, err := os.Open("../../../../shared/data/robots-named.jsonl")
	if errors.Is(err, fs.ErrNotExist) {
		t.Log("without ../shared/data/robots-named.jsonl TestSites and TestVerdict have the cases")
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	n := 0
	for sc.Scan() {
		var c struct {
			Case, Agent, URL string
			Robots           string `json:"robots_base64"`
			Allowed          bool
		}
		if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		body, err := base64.StdEncoding.DecodeString(c.Robots)
		if err != nil {
			t.Fatal(err)
		}
		n++
		g := Parse(body).GroupFor(c.Agent)
		for _, got := range []Verdict{googleVerdict(g, c.URL), g.Verdict(c.URL)} { // both must agree
			if got.Allowed != c.Allowed {
				t.Errorf("%s: %q asks %s: got %+v, want allowed=%t", c.Case, body, c.URL, got, c.Allowed)
			}
		}
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	if n == 0 {
		t.Error("no cases read")
	}
}

func TestVerdict(t *testing.T) {
	const foo = "User-agent: foobot\n"
	const all = "User-agent: *\n"
	tests := []struct {
		name, robots, url string
		allowed           bool
		rule              string
		line              int
	}{
		{"an empty file allows", "", "http://h/x", true, "", 0},
		{"no rule matches", foo + "Disallow: /a\n", "http://h/b", true, "", 0},
		{"the rule that decided is named", foo + "\n  Disallow: /a  # why\n", "http://h/a", false, "Disallow: /a", 3},
		{"longest match wins over order", foo + "Disallow: /a\nAllow: /a/b\n", "http://h/a/b/c", true, "Allow: /a/b", 3},
		{"a shorter allow loses", foo + "Allow: /x/\nDisallow: /x/page.html\n", "http://h/x/page.html", false, "Disallow: /x/page.html", 3},
		{"of equals allow wins", foo + "Disallow: /a\nAllow: /a\n", "http://h/a", true, "Allow: /a", 3},
		{"of equal disallows the first is named", foo + "Disallow: /a*\nDisallow: /a?\n", "http://h/a?", false, "Disallow: /a*", 2},
		{"a star counts as an octet", foo + "Allow: /page\nDisallow: /*.html\n", "http://h/page.html", false, "Disallow: /*.html", 3},
		{"an escaped octet counts as three", foo + "Allow: /abcd\nDisallow: /\u00e9\n", "http://h/%C3%A9", false, "Disallow: /\u00e9", 3},
		{"empty paths decide nothing", foo + "Disallow:\nAllow:\n", "http://h/", true, "", 0},
		{"robots.txt itself", all + "Disallow: /\n", "https://h/robots.txt", true, "", 0},
		{"but not with a query", all + "Disallow: /\n", "https://h/robots.txt?x", false, "Disallow: /", 2},

		{"dollar anchors the end", all + "Disallow: /fish$\n", "http://h/fish", false, "Disallow: /fish$", 2},
		{"dollar does not match more", all + "Disallow: /fish$\n", "http://h/fish/", true, "", 0},
		{"of two dollars the first is literal", all + "Disallow: /a$$\n", "http://h/a$", false, "Disallow: /a$$", 2},
		{"star and dollar", all + "Disallow: /*.php$\n", "http://h/a.php/b.php", false, "Disallow: /*.php$", 2},
		{"star and dollar with a query", all + "Disallow: /*.php$\n", "http://h/a.php?q", true, "", 0},
		{"parts do not overlap", all + "Disallow: /ab*ba$\n", "http://h/aba", true, "", 0},
		{"star before dollar", all + "Disallow: /a*$\n", "http://h/abc", false, "Disallow: /a*$", 2},
		{"several stars", all + "Disallow: /*a**b*c\n", "http://h/xaxxbxxcx", false, "Disallow: /*a**b*c", 2},
		{"a star stands for nothing too", all + "Disallow: /a*b\n", "http://h/ab", false, "Disallow: /a*b", 2},
		{"lower-case escapes are raised", all + "Disallow: /%e3%83%84\n", "http://h/%E3%83%84", false, "Disallow: /%e3%83%84", 2},
		{"escapes are not decoded", all + "Disallow: /%62%61%7A\n", "http://h/baz", true, "", 0},
		{"half an escape is literal", all + "Disallow: /%e\n", "http://h/%e", false, "Disallow: /%e", 2},
		{"an unescaped URL does not match an escaped rule", all + "Disallow: /\u30c4\n", "http://h/\u30c4", true, "", 0},

		{"index.html allows its directory", all + "Allow: /d/index.html\nDisallow: /\n", "http://h/d/", true, "Allow: /d/index.html", 2},
		{"and itself", all + "Allow: /d/index.html\nDisallow: /\n", "http://h/d/index.html", true, "Allow: /d/index.html", 2},
		{"and nothing else", all + "Allow: /d/index.html\nDisallow: /\n", "http://h/d/index.htm", false, "Disallow: /", 3},
		{"disallowed index.html leaves the directory", all + "Disallow: /d/index.html\n", "http://h/d/", true, "", 0},

		{"its own group beats the star's", all + "Disallow: /\n" + foo + "Disallow: /y\n", "http://h/x", true, "", 0},
		{"its own empty group too", all + "Disallow: /\n\n" + foo, "http://h/x", true, "", 0},
		{"groups of an agent are one", foo + "Disallow: /a\nUser-agent: x\nDisallow: /\n" + foo + "Disallow: /b\n", "http://h/b", false, "Disallow: /b", 6},
		{"groups of the star are one", all + "Disallow: /a\nUser-agent: x\nDisallow: /\n" + all + "Disallow: /b\n", "http://h/a", false, "Disallow: /a", 2},
		{"several agents share a group", "User-agent: a\n" + foo + "User-agent: c\nDisallow: /\n", "http://h/x", false, "Disallow: /", 4},
		{"agent and star share a group", all + foo + "Disallow: /\n", "http://h/x", false, "Disallow: /", 3},
		{"a token is matched whole", "User-agent: foo\nDisallow: /\n", "http://h/x", true, "", 0},
		{"and is not a prefix", "User-agent: foobots\nDisallow: /\n", "http://h/x", true, "", 0},
		{"version and comment are cut", "User-agent: FOOBOT/2.1 (x)\nDisallow: /\n", "http://h/x", false, "Disallow: /", 2},
		{"star with words", "User-agent: * all\nDisallow: /\n", "http://h/x", false, "Disallow: /", 2},
		{"star glued to a word is no star", "User-agent: *bot\nDisallow: /\n", "http://h/x", true, "", 0},
		{"sitemap does not split a group", foo + "Sitemap: http://h/s\nUser-agent: b\nDisallow: /\n", "http://h/x", false, "Disallow: /", 4},
		{"unknown lines do not split a group", foo + "Noindex: /q\nUser-agent: b\nDisallow: /\n", "http://h/x", false, "Disallow: /", 4},
		{"an empty disallow does", foo + "Disallow:\nUser-agent: b\nDisallow: /\n", "http://h/x", true, "", 0},
		{"rules before an agent are nobody's", "Disallow: /\n" + foo, "http://h/x", true, "", 0},

		{"carriage returns end lines", "User-agent: foobot\r\rDisallow: /\r", "http://h/x", false, "Disallow: /", 3},
		{"CRLF is one end", "User-agent: foobot\r\n\r\nDisallow: /\r\n", "http://h/x", false, "Disallow: /", 3},
		{"LF CR are two", "User-agent: foobot\n\rDisallow: /", "http://h/x", false, "Disallow: /", 3},
		{"byte-order mark", "\xEF\xBB\xBF" + foo + "Disallow: /\n", "http://h/x", false, "Disallow: /", 2},
		{"half a byte-order mark", "\xEF\xBB" + foo + "Disallow: /\n", "http://h/x", false, "Disallow: /", 2},
		{"NUL ends a line's text", foo + "Disallow: /a\x00b\n", "http://h/ac", false, "Disallow: /a", 2},
		{"invalid UTF-8 in a rule", foo + "Disallow: /\xff\n", "http://h/%FF", false, "Disallow: /\uFFFD", 2},
		{"a colon forgotten", "User-agent foobot\nDisallow /\n", "http://h/x", false, "Disallow /", 2},
		{"with three words it is no rule", foo + "Disallow / b\n", "http://h/x", true, "", 0},
		{"no value and no colon", foo + "Disallow\n", "http://h/x", true, "", 0},
		{"vertical tabs are space", "User-agent:\v foobot\f\nDisallow\t:\t/\n", "http://h/x", false, "Disallow\t:\t/", 2},
		{"no-break space is not", foo + "Disallow: /\u00a0\n", "http://h/x", true, "", 0},
		{"useragent", "useragent: foobot\nDisallow: /\n", "http://h/x", false, "Disallow: /", 2},
		{"user agent", "user agent: foobot\nDisallow: /\n", "http://h/x", false, "Disallow: /", 2},
		{"dissallow", foo + "dissallow: /\n", "http://h/x", false, "dissallow: /", 2},
		{"dissalow", foo + "dissalow: /\n", "http://h/x", false, "dissalow: /", 2},
		{"disalow", foo + "disalow: /\n", "http://h/x", false, "disalow: /", 2},
		{"diasllow", foo + "DIASLLOW: /\n", "http://h/x", false, "DIASLLOW: /", 2},
		{"disallaw", foo + "disallaw: /\n", "http://h/x", false, "disallaw: /", 2},
		{"a key may go on", foo + "Disallows: /\n", "http://h/x", false, "Disallows: /", 2},
		{"other typos are not guessed", foo + "dis-allow: /\n", "http://h/x", true, "", 0},
		{"HTML is no robots.txt", "<html><p>User-agent: *\nDisallow: /</p>", "http://h/x", true, "", 0},

		{"no path", all + "Disallow: /$\n", "http://h", false, "Disallow: /$", 2},
		{"query without a path", all + "Disallow: /?a\n", "http://h?a=1", false, "Disallow: /?a", 2},
		{"fragment is not matched", all + "Disallow: /a$\n", "http://h/a#b", false, "Disallow: /a$", 2},
		{"fragment before a path", all + "Disallow: /x\n", "http://h#/x", true, "", 0},
		{"a URL in the query", all + "Disallow: /r?u=http://x/\n", "http://h/r?u=http://x/", false, "Disallow: /r?u=http://x/", 2},
		{"a bare path", all + "Disallow: /a\n", "/a", false, "Disallow: /a", 2},
		{"a path that mentions a scheme", all + "Disallow: /a\n", "/a/http://b", false, "Disallow: /a", 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := googleVerdict(Parse([]byte(tt.robots)).GroupFor("FooBot"), tt.url)
			want := Verdict{Allowed: tt.allowed, Rule: tt.rule, Line: tt.line}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%q asks %q (-want +got):\n%s", tt.robots, tt.url, diff)
			}
		})
	}
}

func TestLongLinesAreCut(t *testing.T) {
	long := "/x/" + strings.Repeat("a", maxLine-len("disallow: /x/"))
	g := Parse([]byte("user-agent: f\ndisallow: " + long + "/qux\n")).GroupFor("f")
	if v := googleVerdict(g, "http://h"+long+"/fux"); v.Allowed {
		t.Error("the rule as cut off should match")
	} else if len(v.Rule) != maxRuleText {
		t.Errorf("rule text has %d bytes, want it cut to %d", len(v.Rule), maxRuleText)
	}
	if v := googleVerdict(g, "http://h"+long[:len(long)-1]); !v.Allowed {
		t.Error("a URL shorter than the rule should not match")
	}
}

func TestOnlyTheFirstBytesCount(t *testing.T) {
	body := "User-agent: *\n" + strings.Repeat("#", MaxBytes) + "\nDisallow: /\n"
	if v := googleVerdict(Parse([]byte(body)).GroupFor("f"), "http://h/"); !v.Allowed {
		t.Errorf("a rule beyond %d bytes was read: %+v", MaxBytes, v)
	}
}

func TestCrawlDelay(t *testing.T) {
	tests := []struct {
		name, robots string
		want         time.Duration
		ok           bool
	}{
		{"none", "User-agent: *\nDisallow: /", 0, false},
		{"seconds", "User-agent: *\nCrawl-delay: 5", 5 * time.Second, true},
		{"fractions", "User-agent: *\nCrawl-Delay: 0.5 # slow", 500 * time.Millisecond, true},
		{"zero", "User-agent: *\nCrawl-delay: 0", 0, true},
		{"beside rules in any order", "User-agent: *\nDisallow: /a\nCrawl-delay: 3\nDisallow: /b", 3 * time.Second, true},
		{"no number", "User-agent: *\nCrawl-delay: fast\nDisallow: /", 0, false},
		{"empty", "User-agent: *\nCrawl-delay:\nDisallow: /", 0, false},
		{"negative", "User-agent: *\nCrawl-delay: -3", 0, false},
		{"not a number", "User-agent: *\nCrawl-delay: NaN", 0, false},
		{"endless", "User-agent: *\nCrawl-delay: 1e300", maxCrawlDelay * time.Second, true},
		{"the longest of several", "User-agent: *\nCrawl-delay: 7\nCrawl-delay: 2", 7 * time.Second, true},
		{"its own, not the star's", "User-agent: *\nCrawl-delay: 9\nDisallow: /\nUser-agent: foobot\nCrawl-delay: 2", 2 * time.Second, true},
		{"its own group without one", "User-agent: *\nCrawl-delay: 9\nDisallow: /\nUser-agent: foobot\nDisallow: /", 0, false},
		{"for those named before it", "User-agent: other\nCrawl-delay: 9\nUser-agent: foobot\nDisallow: /", 0, false},
		{"before any agent", "Crawl-delay: 9\nUser-agent: *\nDisallow: /", 0, false},
		{"not that of the group after it", "User-agent: foobot\nCrawl-delay: 10\nUser-agent: bixo\nCrawl-delay: 20", 10 * time.Second, true},
		{"not that of the group before it", "User-agent: bixo\nCrawl-delay: 20\nUser-agent: foobot\nCrawl-delay: 10", 10 * time.Second, true},
		{"nor that of a later group of several", "User-agent: foobot\nCrawl-delay: 1\nUser-agent: a\nUser-agent: b\nCrawl-delay: 20\nDisallow: /x\nCrawl-delay: 30", time.Second, true},
		{"of all that are named together", "User-agent: a\nUser-agent: foobot\nSitemap: http://h/s\nUser-agent: b\nCrawl-delay: 4\nRequest-rate: 1/2\nCrawl-delay: 6\nUser-agent: c\nCrawl-delay: 20", 6 * time.Second, true},
		{"the longest of two groups of its own", "User-agent: foobot\nCrawl-delay: 3\nUser-agent: a\nCrawl-delay: 20\nUser-agent: foobot\nCrawl-delay: 5", 5 * time.Second, true},
		{"after the shared rules, of those named last", "User-agent: a\nCrawl-delay: 20\nUser-agent: foobot\nDisallow: /x\nCrawl-delay: 5", 5 * time.Second, true},
		{"beside broken lines", "\x00\nbad\nUser-agent *\n: x\nCrawl-delay 4\nAllow", 4 * time.Second, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := Parse([]byte(tt.robots)).GroupFor("foobot").CrawlDelay()
			if got != tt.want || ok != tt.ok {
				t.Errorf("got %v, %t; want %v, %t", got, ok, tt.want, tt.ok)
			}
		})
	}
}

func TestSitemaps(t *testing.T) {
	body := "Sitemap: https://h/a.xml\nUser-agent: *\nDisallow: /\nsite-map: http://other/b.xml?x=1 # c\n" +
		"Sitemap: /relative.xml\nSitemap: ftp://h/c\nSitemap:\nSitemap: http://h/a b\nSITEMAP:https://h/a.xml\n" +
		"Sitemap: maps/d.xml.gz\nSitemap: //cdn.h/e.xml\nSitemap: ?f=1\nSitemap: https://h:8443/relative.xml\nSitemap: HTTP://h/g\nSitemap: http:///x\n"
	for base, want := range map[string][]string{
		"": {"https://h/a.xml", "http://other/b.xml?x=1", "https://h:8443/relative.xml", "HTTP://h/g"},
		"https://h:8443/robots.txt": {
			"https://h/a.xml", "http://other/b.xml?x=1", "https://h:8443/relative.xml", "https://h:8443/maps/d.xml.gz", "https://cdn.h/e.xml",
			"https://h:8443/robots.txt?f=1", "HTTP://h/g",
		},
	} {
		if diff := cmp.Diff(want, Parse([]byte(body)).Sitemaps(base)); diff != "" {
			t.Errorf("sitemaps by %q (-want +got):\n%s", base, diff)
		}
	}
}

func TestProductToken(t *testing.T) {
	for ua, want := range map[string]string{
		"examplebot/1.0 (+https://example.org/bot)": "examplebot",
		"My-Bot_x 2":      "My-Bot_x",
		"bot2":            "bot",
		"":                "",
		"\u30c4":          "",
		"Mozilla[@`{":     "Mozilla",
		"Googlebot-Image": "Googlebot-Image",
	} {
		if got := ProductToken(ua); got != want {
			t.Errorf("ProductToken(%q) = %q, want %q", ua, got, want)
		}
	}
}

func TestUserAgentsThatRobotsCannotNameAreRefused(t *testing.T) {
	for ua, want := range map[string]string{
		"examplebot/1.0 (+https://example.org/bot)": "", "Example-Bot_x": "", "bot (x2)": "", "bot/2": "", "crawlbatch/v1.2.3": "", "bot\t2": "", "bot;2": "",
		"bot2": `as "bot"`, "bot2/1.0 (+https://example.org)": `as "bot"`, "my.bot/1.0": `as "my"`, "b\u00f6t/1": `as "b"`,
		"2bot/1.0": "no product token", "(+https://example.org/)": "no product token", "/1.0": "no product token", "": "no product token", " bot": "no product token",
	} {
		err := CheckAgent(ua)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", ua, err, want)
		}
	}
}

func TestARobotsTxtInUTF16IsReadAfterItsMark(t *testing.T) {
	const text = "User-agent: *\r\nDisallow: /privat\u00e9 # \U0001F600\r\nCrawl-delay: 7\n"
	encode := func(order binary.AppendByteOrder, mark bool) []byte {
		var b []byte
		units := utf16.Encode([]rune(text))
		if mark {
			units = append([]uint16{0xFEFF}, units...)
		}
		for _, u := range units {
			b = order.AppendUint16(b, u)
		}
		return b
	}
	for name, c := range map[string]struct {
		body    []byte
		allowed bool
	}{
		"little endian":      {encode(binary.LittleEndian, true), false},
		"big endian":         {encode(binary.BigEndian, true), false},
		"cut in mid-unit":    {append(encode(binary.LittleEndian, true), 'x'), false},
		"UTF-8 with a mark":  {[]byte("\uFEFF" + text), false},
		"a mark and no more": {[]byte{0xFF, 0xFE}, true},
	} {
		g := Parse(c.body).GroupFor("foobot")
		if v := googleVerdict(g, "http://h/privat%C3%A9/x"); v.Allowed != c.allowed {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func TestFetchClass(t *testing.T) {
	for status, want := range map[int]Class{
		200: Rules, 204: Rules, 301: NoFile, 304: NoFile, 400: NoFile, 401: NoFile, 403: NoFile, 404: NoFile, 410: NoFile,
		408: Unreachable, 421: Unreachable, 425: Unreachable, 409: NoFile, 420: Unreachable, 430: Unreachable, 426: NoFile,
		429: Unreachable, 499: NoFile, 500: Unreachable, 503: Unreachable, 599: Unreachable, 0: Unreachable, 999: Unreachable, 100: Unreachable,
	} {
		if got := FetchClass(status, nil); got != want {
			t.Errorf("FetchClass(%d, nil) = %d, want %d", status, got, want)
		}
	}
	if got := FetchClass(200, errors.New("cut off")); got != Unreachable {
		t.Errorf("an error with a status: got %d, want Unreachable", got)
	}
	if v := googleVerdict(AllowAll(), "http://h/x"); !v.Allowed {
		t.Errorf("AllowAll: %+v", v)
	}
}

func TestRequestRate(t *testing.T) {
	tests := []struct {
		name, robots string
		want         time.Duration
		ok           bool
	}{
		{"seconds", "User-agent: *\nRequest-rate: 1/5", 5 * time.Second, true},
		{"several documents a minute", "User-agent: *\nRequest-rate: 30/1m", 2 * time.Second, true},
		{"units", "User-agent: *\nRequest-rate: 1/10s", 10 * time.Second, true},
		{"an hour", "User-agent: *\nRequest-rate: 60/1H", time.Minute, true},
		{"a day", "User-agent: *\nRequest-rate: 1/1d", 24 * time.Hour, true},
		{"space", "User-agent: *\nrequest-rate : 1 / 10 s", 10 * time.Second, true},
		{"hours of the day are kept at all hours", "User-agent: *\nRequest-rate: 1/10m 1300-1659", 10 * time.Minute, true},
		{"hours without a unit", "User-agent: *\nRequest-rate: 1/10 1300-1659", 10 * time.Second, true},
		{"fractions", "User-agent: *\nRequest-rate: 0.5/1.5", 3 * time.Second, true},
		{"the slowest of several", "User-agent: *\nRequest-rate: 1/5 0600-0845\nRequest-rate: 1/30 0845-0600", 30 * time.Second, true},
		{"the slower of rate and delay", "User-agent: *\nCrawl-delay: 9\nRequest-rate: 1/5", 9 * time.Second, true},
		{"a rate below a delay", "User-agent: *\nCrawl-delay: 2\nRequest-rate: 1/5", 5 * time.Second, true},
		{"its own, not the star's", "User-agent: *\nRequest-rate: 1/9\nDisallow:\nUser-agent: foobot\nRequest-rate: 1/2", 2 * time.Second, true},
		{"for those named before it", "User-agent: a\nRequest-rate: 1/9\nUser-agent: foobot\nDisallow:", 0, false},
		{"not that of the group after it", "User-agent: foobot\nRequest-rate: 1/10\nUser-agent: bixo\nRequest-rate: 1/20", 10 * time.Second, true},
		{"no end", "User-agent: *\nRequest-rate: 1/1e300", 0, false},
		{"long, and bounded", "User-agent: *\nRequest-rate: 1/99999999999999", maxCrawlDelay * time.Second, true},
		{"nothing in an hour", "User-agent: *\nRequest-rate: 0/1h", 0, false},
		{"negative", "User-agent: *\nRequest-rate: -1/5", 0, false},
		{"no rate", "User-agent: *\nRequest-rate: 5", 0, false},
		{"another unit", "User-agent: *\nRequest-rate: 1/5y", 0, false},
		{"words", "User-agent: *\nRequest-rate: one/five", 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := Parse([]byte(tt.robots)).GroupFor("foobot")
			if got, ok := g.Delay(); got != tt.want || ok != tt.ok {
				t.Errorf("got %v, %t; want %v, %t", got, ok, tt.want, tt.ok)
			}
		})
	}
}

func TestContentSignals(t *testing.T) {
	tests := []struct{ name, robots, url, want string }{
		{"of all", "User-agent: *\nContent-Signal: search=yes, ai-train=no\nAllow: /\n", "http://h/a", "ai-train=no,search=yes"},
		{"its own, not the star's", "User-agent: *\nContent-Signal: search=yes\nDisallow:\nUser-agent: foobot\nContent-signal: ai-input=no", "http://h/a", "ai-input=no"},
		{"its own group without one", "User-agent: *\nContent-Signal: search=no\nDisallow:\nUser-agent: foobot\nDisallow: /b", "http://h/a", ""},
		{"it does not split a group", "User-agent: a\nContent-Signal: search=no\nUser-agent: foobot\nContent-Signal: ai-train=no", "http://h/a", "ai-train=no"},
		{"of a path", "User-agent: *\nContent-Signal: /b ai-train=no", "http://h/bc", "ai-train=no"},
		{"of another path", "User-agent: *\nContent-Signal: /b ai-train=no", "http://h/a", ""},
		{"the longest path decides", "User-agent: *\nContent-Signal: /a/ ai-train=yes\nContent-Signal: ai-train=no, search=yes", "http://h/a/b", "ai-train=yes,search=yes"},
		{"of two as long, no", "User-agent: *\nContent-Signal: /a ai-train=no\nContent-Signal: /* ai-train=yes", "http://h/a", "ai-train=no"},
		{"wildcards", "User-agent: *\nContent-Signal: *.pdf$ ai-train=no", "http://h/a.pdf", "ai-train=no"},
		{"groups of an agent are one", "User-agent: foobot\nContent-Signal: ai-train=yes\nDisallow: /x\nUser-agent: foobot\nContent-Signal: ai-train=no", "http://h/a", "ai-train=no"},
		{"before any agent", "Content-Signal: ai-train=no\nUser-agent: *\nAllow: /", "http://h/a", ""},
		{"a path alone", "User-agent: *\nContent-Signal: /a", "http://h/a", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Parse([]byte(tt.robots)).GroupFor("foobot").Signals(tt.url).String(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

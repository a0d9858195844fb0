package robots

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"unicode"

	"github.com/jimsmart/grobotstxt"
)

// oracle judges with an independent, line-by-line Go port of Google's C++ parser. Where the port
// differs from the original, either asWritten corrects it or the test skips the case (see differs).
func oracle(body, agent, rawURL string) (allowed bool) {
	m := grobotstxt.NewRobotsMatcher()
	m.AgentAllowed("", agent, rawURL) // sets the path and the agent
	grobotstxt.Parse(body, asWritten{m})
	return !m.Disallowed()
}

// asWritten ends product tokens at the first octet outside [a-zA-Z_-], as Google's C++ parser does.
// The port also accepts digits and other octets.
type asWritten struct{ *grobotstxt.RobotsMatcher }

func (m asWritten) HandleUserAgent(line int, value string) {
	if value != "" && value[0] == '*' && (len(value) == 1 || isSpace(value[1])) {
		m.RobotsMatcher.HandleUserAgent(line, "*")
		return
	}
	n := 0
	for n < len(value) && (value[n] == '-' || value[n] == '_' || value[n]|0x20 >= 'a' && value[n]|0x20 <= 'z') {
		n++
	}
	m.RobotsMatcher.HandleUserAgent(line, value[:n])
}

// differs returns why the port differs from the C++ parser in a case, or "" if it does not.
func differs(body, agent, rawURL string) string {
	if u, err := url.Parse(rawURL); err != nil || u.String() != rawURL {
		return "it rewrites the URL first"
	}
	if pathOf(rawURL) == "/robots.txt" {
		return "this project always asks for /robots.txt (RFC 9309, 2.2.2)"
	}
	if strings.IndexByte(body, 0) >= 0 {
		return "NUL ends a line of C"
	}
	if strings.Contains(strings.ToLower(body), "diaslow") {
		return "it forgives one typo more"
	}
	for _, r := range body {
		if r > 0x7F && (unicode.IsSpace(r) || unicode.ToLower(r) < 0x80) {
			return "it trims and folds by Unicode, the C++ by ASCII"
		}
	}
	for i := 0; i+2 < len(body); i++ {
		if _, escaped := octet(body, i); escaped && (body[i+1] <= '9' || body[i+2] <= '9') && !bytes.Equal([]byte(normalise(body)), []byte(body)) {
			return "it damages the digits of escapes as it raises their case"
		}
	}
	if agent != ProductToken(agent) || agent == "" {
		return "a product token is asked for"
	}
	return ""
}

func compare(t *testing.T, body, agent, rawURL string) (done bool) {
	t.Helper()
	if differs(body, agent, rawURL) != "" {
		return false
	}
	g := Parse([]byte(body)).GroupFor(agent)
	v := googleVerdict(g, rawURL)
	if g.Verdict(rawURL).Allowed && !v.Allowed {
		t.Errorf("%q\nasks %s as %q: every reading allows what Google's denies", body, rawURL, agent)
	}
	if want := oracle(body, agent, rawURL); v.Allowed != want {
		t.Errorf("%q\nasks %s as %q: got %+v, Google's parser says allowed=%t", body, rawURL, agent, v, want)
	}
	return true
}

var oracleCases = flag.Int("oracle", 30_000, "how many files are made up to ask two parsers about")

// TestVerdictsEqualGooglesParser makes files from valid and broken parts of robots.txt files, and
// compares the verdicts of both parsers.
func TestVerdictsEqualGooglesParser(t *testing.T) {
	r := rand.New(rand.NewPCG(9309, 5))
	asked, denied := 0, 0
	for range *oracleCases {
		body := someFile(r)
		for range 4 {
			u := "http://h" + somePath(r)
			if !compare(t, body, "foobot", u) {
				continue
			}
			asked++
			if !googleVerdict(Parse([]byte(body)).GroupFor("foobot"), u).Allowed {
				denied++
			}
		}
		if t.Failed() {
			return
		}
	}
	if asked < *oracleCases || denied < asked/20 || denied > asked*19/20 {
		t.Errorf("%d verdicts compared, %d of them denials: too few", asked, denied)
	}
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// someFile makes up a robots.txt.
func someFile(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString(pick(r, "", "", "", "", "\xEF\xBB\xBF", "\xEF\xBB", "\xEF"))
	end := pick(r, "\n", "\n", "\r\n", "\r", "\n\r")
	for range 1 + r.IntN(12) {
		b.WriteString(pick(r, "", "", "", " ", "\t", "\v"))
		switch r.IntN(12) {
		case 0, 1, 2:
			b.WriteString(pick(r, "User-agent", "user-agent", "USERAGENT", "User agent", "User-agents", "Usr-agent"))
			b.WriteString(someSeparator(r))
			b.WriteString(pick(r, "*", "foobot", "FooBot", "foobot/2.1", "foobot2", "foobots", "foo", "bar", "* x", "*x", "", "foobot bar", "foobot*", "f\xc3\xa9o"))
		case 3, 4, 5, 6, 7:
			b.WriteString(pick(r, "Disallow", "disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw", "Disallows", "disallowed", "dis-allow"))
			b.WriteString(someSeparator(r))
			b.WriteString(somePattern(r))
		case 8, 9:
			b.WriteString(pick(r, "Allow", "ALLOW", "allowed", "Alow"))
			b.WriteString(someSeparator(r))
			b.WriteString(somePattern(r))
		case 10:
			b.WriteString(pick(r, "Sitemap: http://h/s.xml", "site-map: http://h/s", "Crawl-delay: 3", "Noindex: /a", "Content-Signal: ai-train=no", "Request-rate: 1/5", ": /a", "/a", "User-agent", "Disallow"))
		case 11:
			// adds nothing
		}
		b.WriteString(pick(r, "", "", "", " ", " # x", "#", "\t"))
		b.WriteString(end)
	}
	return b.String()
}

func someSeparator(r *rand.Rand) string {
	return pick(r, ":", ": ", ": ", ": ", " : ", " ", "\t", "", "::", ":\v")
}

func somePattern(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString(pick(r, "/", "/", "/", "", "*", "a"))
	for range r.IntN(5) {
		b.WriteString(pick(r, "a", "b", "a", "b", "/", "*", "$", "?", ".html", "index.html", "/index.htm", "%AB", "%c", "\xc3\xa9", ";", " ", "="))
	}
	b.WriteString(pick(r, "", "", "", "$", "*", "$$", "*$"))
	return b.String()
}

func somePath(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString(pick(r, "/", "/", "/", "/", "?", ""))
	for range r.IntN(6) {
		b.WriteString(pick(r, "a", "b", "a", "b", "/", "$", ".html", "index.html", "/index.html", "/index.htm", "%AB", "%C3%A9", ";", "="))
	}
	return b.String()
}

// FuzzVerdictEqualsGooglesParser compares both parsers on any bytes.
func FuzzVerdictEqualsGooglesParser(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		f.Add([]byte(someFile(r)), somePath(r))
	}
	f.Add([]byte("user-agent: foobot\ndisallow: /x/"+strings.Repeat("a", maxLine)+"\n"), "/x/aaa")
	f.Fuzz(func(t *testing.T, body []byte, path string) {
		if len(body) > MaxBytes || len(path) > 4096 {
			return
		}
		defer func() {
			if p := recover(); p != nil && !strings.Contains(fmt.Sprint(p), "Syntax error") { // the port panics like this on a bad line
				panic(p)
			}
		}()
		compare(t, string(body), "foobot", "http://h/"+path)
	})
}

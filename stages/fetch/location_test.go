package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// oddLocations are what servers write into Location, and where browsers go.
var oddLocations = []struct {
	name   string
	values []string
	want   string // "": nowhere
}{
	{"absolute", []string{"http://b.example/x"}, "http://b.example/x"},
	{"relative to the directory", []string{"x"}, "http://a.example/d/x"},
	{"relative to the root", []string{"/x"}, "http://a.example/x"},
	{"above the root", []string{"../../../x"}, "http://a.example/x"},
	{"a query alone", []string{"?x"}, "http://a.example/d/p?x"},
	{"a fragment alone", []string{"#x"}, "http://a.example/d/p?q=1"},
	{"without a scheme", []string{"//b.example/x"}, "http://b.example/x"},
	{"backslashes for slashes", []string{`\\b.example\x`}, "http://b.example/x"},
	{"one backslash", []string{`\x`}, "http://a.example/x"},
	{"three slashes", []string{"http:///b.example/x"}, "http://b.example/x"},
	{"one slash", []string{"https:/b.example/x"}, "https://b.example/x"},
	{"white space around", []string{" \t/x\t "}, "http://a.example/x"},
	{"spaces within", []string{"/two words?a b"}, "http://a.example/two%20words?a%20b"},
	{"a tab within", []string{"/tw\to"}, "http://a.example/two"},
	{"a percent sign that escapes nothing", []string{"/100%"}, "http://a.example/100%"},
	{"UTF-8", []string{"/caf\u00e9?\u00e9"}, "http://a.example/caf%C3%A9?%C3%A9"},
	{"Latin-1", []string{"/caf\xe9?\xe9"}, "http://a.example/caf%E9?%E9"},
	{"a name in another script", []string{"http://b\u00fccher.example/"}, "http://xn--bcher-kva.example/"},
	{"upper case and default port", []string{"HTTP://B.EXAMPLE:80/X"}, "http://b.example/X"},
	{"credentials", []string{"http://user:secret@b.example/"}, "http://b.example/"},
	{"two that differ", []string{"/x", "/y"}, "http://a.example/x"},
	{"an empty one first", []string{"", "/y"}, "http://a.example/y"},
	{"none", nil, ""},
	{"empty", []string{""}, ""},
	{"white space alone", []string{"  "}, ""},
	{"a script", []string{"javascript:alert(1)"}, ""},
	{"data", []string{"data:text/html,x"}, ""},
	{"mail", []string{"mailto:a@b.example"}, ""},
	{"another scheme", []string{"ftp://user:secret@b.example/"}, ""},
	{"a file", []string{"file:///etc/passwd"}, ""},
	{"no host", []string{"http://"}, ""},
	{"a host that is none", []string{"http://[bad/"}, ""},
	{"a port that is none", []string{"http://b.example:99999/"}, ""},
	{"a host with a space", []string{"http://b example/"}, ""},
	{"a number for an address", []string{"http://0x7f.1/"}, "http://127.0.0.1/"},
	{"too long", []string{"/" + strings.Repeat("x", urlkey.MaxLength)}, ""},
}

func locationHeader(values []string) *wire.Exchange {
	x := &wire.Exchange{Status: 302}
	for _, v := range values {
		x.Header = append(x.Header, wire.Field{Name: "location", Value: v})
	}
	return x
}

func locator(t testing.TB) *crawl {
	canon, err := urlkey.New([]string{"utm_*"})
	if err != nil {
		t.Fatal(err)
	}
	return &crawl{canon: canon}
}

func TestLocationsLeadWhereBrowsersGo(t *testing.T) {
	c := locator(t)
	for _, tt := range oddLocations {
		k, _, err := Location(c.canon, locationHeader(tt.values), "http://a.example/d/p?q=1")
		if k.URL != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: %q, %v; want %q", tt.name, k.URL, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// FuzzLocation holds redirects to leading to a canonical http URL without
// credentials, or to an error, whatever the octets.
func FuzzLocation(f *testing.F) {
	for _, tt := range oddLocations {
		f.Add(strings.Join(tt.values, "\n"))
	}
	f.Fuzz(func(t *testing.T, values string) {
		c := locator(t)
		k, _, err := Location(c.canon, locationHeader(strings.Split(values, "\n")), "https://www.a.example/d/p?q=1")
		if err != nil {
			if k.URL != "" || errors.Is(err, errNoLocation) != (strings.TrimSpace(values) == "") {
				t.Fatalf("%q, %v", k.URL, err)
			}
			return
		}
		authority, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(k.URL, "http://"), "https://"), "/")
		if !strings.HasPrefix(k.URL, "http") || strings.ContainsAny(authority, "@\\ ") || strings.ContainsAny(k.URL, "\r\n\x00#") {
			t.Fatalf("%q leads to %q", values, k.URL)
		}
		if again, err := c.canon.Canonical(k.URL, ""); err != nil || again.URL != k.URL {
			t.Fatalf("%q, canonical again %q, %v", k.URL, again.URL, err)
		}
		if p := cookieURL(k.URL); p.Host == "" || p.Scheme == "" {
			t.Fatalf("cookies of %q are of %q", k.URL, p)
		}
	})
}

// Every 3xx ends in the outcome that it should, and leaves its trace.
func TestRedirectStatuses(t *testing.T) {
	answers := map[string]string{
		"/300":           "300 Multiple Choices\r\nLocation: /preferred",
		"/300-none":      "300 Multiple Choices",
		"/301":           "301 Moved Permanently\r\nLocation: /a",
		"/302":           "302 Found\r\nLocation: /b",
		"/303":           "303 See Other\r\nLocation: /c",
		"/304":           "304 Not Modified",
		"/305":           "305 Use Proxy\r\nLocation: http://proxy.example/",
		"/306":           "306 Unused\r\nLocation: /x",
		"/307":           "307 Temporary Redirect\r\nLocation: /d",
		"/308":           "308 Permanent Redirect\r\nLocation: /e",
		"/399":           "399 Whatever\r\nLocation: /x",
		"/loop-fragment": "302 Found\r\nLocation: /loop-fragment#again",
		"/to-loopback":   "302 Found\r\nLocation: http://127.1/",
		"/script":        "302 Found\r\nLocation: javascript:history.back()",
		"/secret":        "302 Found\r\nLocation: http://user:secret@www.a.com/landing",
		"/secret-ftp":    "302 Found\r\nLocation: ftp://user:secret@www.a.com/",
	}
	type want struct {
		outcome schema.Outcome
		final   string
		target  string
	}
	wants := map[string]want{
		"/300":           {schema.OK, "http://a.com/preferred", ""},
		"/300-none":      {schema.ProtocolError, "http://a.com/300-none", ""},
		"/301":           {schema.OK, "http://a.com/a", ""},
		"/302":           {schema.OK, "http://a.com/b", ""},
		"/303":           {schema.OK, "http://a.com/c", ""},
		"/304":           {schema.ProtocolError, "http://a.com/304", ""},
		"/305":           {schema.ProtocolError, "http://a.com/305", ""},
		"/306":           {schema.ProtocolError, "http://a.com/306", ""},
		"/307":           {schema.OK, "http://a.com/d", ""},
		"/308":           {schema.OK, "http://a.com/e", ""},
		"/399":           {schema.ProtocolError, "http://a.com/399", ""},
		"/loop-fragment": {schema.RedirectLimit, "http://a.com/loop-fragment", ""},
		"/to-loopback":   {schema.Redirected, "http://a.com/to-loopback", "http://127.0.0.1/"},
		"/script":        {schema.ProtocolError, "http://a.com/script", ""},
		"/secret":        {schema.OK, "http://www.a.com/landing", ""},
		"/secret-ftp":    {schema.ProtocolError, "http://a.com/secret-ftp", ""},
	}
	bubble(t, func(t *testing.T) {
		var list []string
		for path := range answers {
			list = append(list, "http://a.com"+path)
		}
		l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
			status, ok := answers[r.URL.Path]
			switch {
			case r.Header.Get("Authorization") != "":
				status = "400 Bad Request"
			case !ok:
				status = "200 OK\r\nContent-Type: text/html"
			}
			body := "<p>ok"
			if r.URL.Path == "/robots.txt" {
				status = "404 Not Found"
			} else if r.URL.Path == "/304" {
				body = ""
			}
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			fmt.Fprintf(c, "HTTP/1.1 %s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
		}, list...)
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		fetches := l.outcomes(r)
		for path, w := range wants {
			f := fetches["http://a.com"+path]
			if diff := cmp.Diff(w, want{f.Outcome, f.FinalURL, f.RedirectTarget}, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s (error %q) (-want +got):\n%s", path, f.Error, diff)
			}
			if w.outcome == schema.ProtocolError && f.Error == "" || strings.Contains(f.Error+f.ErrorDetail, "secret") {
				t.Errorf("%s: error %q", path, f.Error)
			}
		}
		for _, k := range rowsOf[schema.Link](l, r, stages.FileLinks) {
			if strings.Contains(k.Target, "secret") {
				t.Errorf("a link to %s", k.Target)
			}
		}
		for _, c := range rowsOf[schema.Capture](l, r, stages.FileCaptures) {
			if strings.Contains(c.FetchRedirect, "secret@") || strings.Contains(c.FetchRedirect, ":secret") {
				t.Errorf("fetch_redirect %s", c.FetchRedirect)
			}
		}
		l.checkCaptures(r)
	})
}

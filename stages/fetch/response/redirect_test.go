package response

import (
	"errors"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// oddLocations lists odd Location values of real servers, with the URLs that browsers open for
// them.
var oddLocations = []struct {
	name   string
	values []string
	want   string // redirect target; "" if there is none
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
	x := &wire.Exchange{Response: http1.Response{Status: 302}}
	for _, v := range values {
		x.Header = append(x.Header, http1.Field{Name: "location", Value: v})
	}
	return x
}

func locator(t testing.TB) *urlkey.Canonicalizer {
	canon, err := urlkey.New([]string{"utm_*"})
	if err != nil {
		t.Fatal(err)
	}
	return canon
}

func TestLocationsLeadWhereBrowsersGo(t *testing.T) {
	canon := locator(t)
	for _, tt := range oddLocations {
		k, _, err := Location(canon, locationHeader(tt.values), "http://a.example/d/p?q=1")
		if k.URL != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: %q, %v; want %q", tt.name, k.URL, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// FuzzLocation checks that each Location gives an error, or a canonical http or https URL without
// credentials.
func FuzzLocation(f *testing.F) {
	for _, tt := range oddLocations {
		f.Add(strings.Join(tt.values, "\n"))
	}
	f.Fuzz(func(t *testing.T, values string) {
		canon := locator(t)
		k, _, err := Location(canon, locationHeader(strings.Split(values, "\n")), "https://www.a.example/d/p?q=1")
		if err != nil {
			if k.URL != "" || errors.Is(err, ErrNoLocation) != (strings.TrimSpace(values) == "") {
				t.Fatalf("%q, %v", k.URL, err)
			}
			return
		}
		authority, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(k.URL, "http://"), "https://"), "/")
		if !strings.HasPrefix(k.URL, "http") || strings.ContainsAny(authority, "@\\ ") || strings.ContainsAny(k.URL, "\r\n\x00#") {
			t.Fatalf("%q leads to %q", values, k.URL)
		}
		if again, err := canon.Canonical(k.URL, ""); err != nil || again.URL != k.URL {
			t.Fatalf("%q, canonical again %q, %v", k.URL, again.URL, err)
		}
		if p := cookieURL(k.URL); p.Host == "" || p.Scheme == "" {
			t.Fatalf("cookies of %q are of %q", k.URL, p)
		}
	})
}

package html

import "testing"

func TestElementsFit(t *testing.T) {
	for a, e := range elements {
		if e.id >= maxIDs || (e.id == 0) != (e.flags&void != 0) {
			t.Errorf("%s has the place %d of %d", a, e.id, maxIDs)
		}
	}
}

func TestParseRefresh(t *testing.T) {
	for in, want := range map[string]string{
		"5; url=/next": "/next", "0;URL='/a b'": "/a b", "0, /next": "/next", "1.5 ;url = /x": "/x", `0; url="/q`: "/q",
		"5": "", "": "", "url=/x": "", ".5; url=/x": "/x", "0; urlish": "urlish",
		"5foo": "", "5url=/x": "", "5/x": "", "5 foo": "foo", "5,foo": "foo",
	} {
		if got, ok := parseRefresh(in); got != want || ok != (want != "") {
			t.Errorf("parseRefresh(%q) = %q, %v; want %q", in, got, ok, want)
		}
	}
}

func TestReferencesOfOtherSchemes(t *testing.T) {
	for ref, want := range map[string]bool{
		"javascript:void(0)": true, "JavaScript:x": true, "java\tscript:x": true, "\x01javascript:x": true, "mailto:a@b": true, "tel:+1": true,
		"data:,x": true, "about:blank": true, "blob:https://example.com/x": true, "ftp://example.com/": true, "httpsx://a": true, "http+x:a": true,
		"localhost:80": true, "x:": true,
		"": false, "http:a": false, "HTTPS://example.com": false, "ht\ntp://a": false, "/a:b": false, "a/b:c": false, "?a:b": false, "#a:b": false,
		"//h:80/": false, "1a:b": false, ":x": false, "é:x": false, "javascript": false,
	} {
		if got := hasOtherScheme([]byte(ref)); got != want {
			t.Errorf("%q: %v", ref, got)
		}
	}
}

func TestDateOfAPath(t *testing.T) {
	for path, want := range map[string]string{
		"/2024/07/01/title": "2024-07-01", "/news/2024/07/01/title/": "2024-07-01", "/2024-07-01-title.html": "2024-07-01", "/blog/2024-07-01-title/x": "2024-07-01",
		"/2024/07/01/": "", "/2024/07/01": "", "/2024/07/title": "", "/2024-07-01": "", "/2024/7/1/title": "", "/12024/07/01/title": "", "/": "", "": "",
	} {
		if got := dateOfPath(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

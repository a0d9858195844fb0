package mediatype

import (
	"errors"
	"strings"
	"testing"
)

func TestTheMostSpecificRangeCounts(t *testing.T) {
	var r Ranges[string]
	for _, m := range []string{"*/*", "text/*", "text/html", "application/*+xml", "application/*", "application/atom+xml"} {
		if err := r.Set(m, m); err != nil {
			t.Fatal(err)
		}
	}
	for in, want := range map[string]string{
		"text/html":            "text/html",
		"text/csv":             "text/*",
		"application/atom+xml": "application/atom+xml",
		"application/rss+xml":  "application/*+xml",
		"application/pdf":      "application/*",
		"application/xml":      "application/*",
		"image/svg+xml":        "*/*",
		"":                     "*/*",
		"nonsense":             "*/*",
	} {
		if got, ok := r.Lookup(in); got != want || !ok {
			t.Errorf("%q: %q, %t; want %q", in, got, ok, want)
		}
	}
	var none Ranges[bool]
	if _, ok := none.Lookup("text/html"); ok {
		t.Error("an empty Ranges has a value")
	}
}

func TestOnlyMediaRangesAreTaken(t *testing.T) {
	for in, ok := range map[string]bool{
		"text/html": true, "text/*": true, "*/*": true, "application/*+xml": true, "application/vnd.ms-excel": true, "image/svg+xml": true,
		"": false, "text": false, "text/": false, "/html": false, "*": false, "*/html": false, "*/*+xml": false, "text/h*": false, "text/**": false, "text/*html": false,
		"Text/HTML": false, "text/html; charset=utf-8": false, "text/html,text/plain": false, "application/*+": false, "text/ä": false,
		"text/" + strings.Repeat("x", 300): false,
	} {
		var r Ranges[int]
		if err := r.Set(in, 1); (err == nil) != ok || err != nil && !errors.Is(err, ErrRange) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func TestContentTypeFieldsAsTheyCome(t *testing.T) {
	for in, want := range map[string][2]string{
		"text/html":                                     {"text/html", ""},
		" Text/HTML ; Charset=\"UTF-8\"":                {"text/html", "UTF-8"},
		"text/html;charset=utf-8;x=y":                   {"text/html", "utf-8"},
		"text/html; a=b; charset='koi8-r', text/plain":  {"text/html", "koi8-r"},
		"text/html, application/json":                   {"text/html", ""},
		"text/html; malformed; charset = windows-1251 ": {"text/html", "windows-1251"},
		"application/http; msgtype=response":            {"application/http", ""},
		"*/*":                                           {"*/*", ""},
		"":                                              {},
		"html":                                          {},
		"text/":                                         {},
		"text/html charset=utf-8":                       {},
		"text/h<tml":                                    {},
		"text/" + strings.Repeat("x", 128):              {},
	} {
		if got := [2]string{Essence(in), Charset(in)}; got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

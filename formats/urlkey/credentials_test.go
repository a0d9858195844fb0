package urlkey

import (
	"strings"
	"testing"
)

func TestCredentialsAreTakenOut(t *testing.T) {
	for in, want := range map[string]string{
		"http://u:secret@h/p@q":        "http://h/p@q",
		"http://u:se@cret@h:81?a@b":    "http://h:81?a@b",
		"ftp://u:secret@h/":            "ftp://h/",
		"HTTPS:u:secret@h":             "HTTPS:h",
		`http:\\u:secret@h\p`:          `http:\\h\p`,
		"//u:secret@h/":                "//h/",
		" \t//u:secret@h":              " \t//h",
		"ht\ntp://u:secret@h/":         "ht\ntp://h/",
		"http://u:secret@[bad/":        "http://[bad/",
		"git+ssh://u:secret@h":         "git+ssh://h",
		"http:///u:secret@h":           "http:///h",
		"mailto:a@b.example":           "mailto:a@b.example",
		"/a//b@c":                      "/a//b@c",
		"user@example.org":             "user@example.org",
		"http://h/?next=http://a:b@c/": "http://h/?next=http://a:b@c/",
		"":                             "",
		":":                            ":",
	} {
		if got := WithoutCredentials(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestErrorsTellNoCredentials(t *testing.T) {
	c, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []string{
		"http://u:secret@[bad/", "ftp://u:secret@h/", "http://u:secret@h:99999/", "http://u:secret@h..x/", "http://u:secret@h/" + strings.Repeat("x", MaxLength),
	} {
		if _, err := c.Canonical(in, ""); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%.40q: %v", in, err)
		}
	}
	if k, err := c.Canonical("http://u:secret@h.example/", ""); err != nil || k.URL != "http://h.example/" {
		t.Errorf("%q, %v", k.URL, err)
	}
}

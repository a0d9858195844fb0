package scope

import "testing"

func TestScope(t *testing.T) {
	for _, tc := range []struct {
		pattern, url string
		want         bool
	}{
		{"example.org", "https://example.org/a", true}, {"example.org", "https://www.example.org:8080/", true},
		{"example.org", "https://badexample.org/", false}, {"example.org", "https://example.org.evil.example/", false},
		{"example.org:8080", "http://example.org:8080/", true}, {"example.org:8080", "http://example.org/", false},
		{"[2001:db8::2]", "http://[2001:db8::2]/", true}, {"[2001:db8::2]", "http://[2001:db8::2]:8080/", true},
		{"[2001:db8::2]", "http://[2001:db8::22]/", false}, {"[2001:db8::2]:8080", "http://[2001:db8::2]:8080/", true},
		{"[2001:db8::2]:8080", "http://[2001:db8::2]/", false},
		{"example.org/docs/*", "https://example.org/docs/a/b", true}, {"example.org/docs/*", "https://example.org/blog", false},
		{"example.org/docs", "https://example.org/docs", true}, {"example.org/docs", "https://example.org/docs/", false},
		{"*.pdf", "https://example.org/a.pdf", true}, {"*.pdf", "https://example.org/a.pdf?x", false},
		{"https://*", "http://example.org/", false}, {"https://*", "https://example.org/", true},
		{"*/a*b/*c", "http://example.org/aXb/c", true}, {"*/a*b/*c", "http://example.org/aXb", false}, {"a*a", "http://a", false},
	} {
		s, err := New([]string{tc.pattern}, nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, why := s.Allows(tc.url, ""); got != tc.want || got != (why == "") {
			t.Errorf("include %q, URL %q: %v, %q", tc.pattern, tc.url, got, why)
		}
	}
	s, err := New([]string{"example.org"}, []string{"*secret*"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if ok, why := s.Allows("http://example.org/secret", ""); ok || why != "*secret*" {
		t.Errorf("excluded: %v, %q", ok, why)
	}
}

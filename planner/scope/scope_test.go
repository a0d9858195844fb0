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

// What matches the URL or the form in which it is sent matches.
func TestTheFormIsJudgedToo(t *testing.T) {
	const url, sent = "http://a.example/x?a=1&b=2", "http://a.example/%78?b=2&a=1&utm_x=3"
	refuse, accept := []Filter{{Name: "f", Match: "b=2&a=1"}}, []Filter{{Match: "utm_x", Accept: true}, {Name: "f", Match: "a=1"}}
	for _, tc := range []struct {
		name             string
		include, exclude []string
		filters          []Filter
		url, form, want  string
	}{
		{"included", []string{"*?a=1*"}, nil, nil, url, sent, " "},
		{"included in its form", []string{"*utm_x*"}, nil, nil, url, sent, " "},
		{"not included", []string{"*utm_y*"}, nil, nil, url, sent, "out_of_scope include"},
		{"not included in the canonical form", []string{"*utm_x*"}, nil, nil, url, "", "out_of_scope include"},
		{"excluded in its form", nil, []string{"a.example/%78*"}, nil, url, sent, "out_of_scope a.example/%78*"},
		{"excluded in the canonical form", nil, []string{"a.example/x*"}, nil, url, sent, "out_of_scope a.example/x*"},
		{"excluded, but asked for in the canonical form", nil, []string{"a.example/%78*"}, nil, url, "", " "},
		{"included and excluded", []string{"a.example"}, []string{"*utm_*"}, nil, url, sent, "out_of_scope *utm_*"},
		{"filtered in its form", nil, nil, refuse, url, sent, "filtered f"},
		{"filtered, but asked for in the canonical form", nil, nil, refuse, url, "", " "},
		{"accepted in its form", nil, nil, accept, url, sent, " "},
		{"filtered in the canonical form", nil, nil, accept, url, "", "filtered f"},
	} {
		s, err := New(tc.include, tc.exclude, tc.filters, nil)
		if err != nil {
			t.Fatal(err)
		}
		if reason, detail := s.Refusal(tc.url, tc.form); string(reason)+" "+detail != tc.want {
			t.Errorf("%s: %q %q, want %q", tc.name, reason, detail, tc.want)
		}
	}
}

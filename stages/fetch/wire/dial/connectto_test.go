package dial

import (
	"strings"
	"testing"
)

func TestConnectToRules(t *testing.T) {
	tests := []struct {
		rule, host string
		port       uint16
		toHost     string
		toPort     uint16
		ok         bool
	}{
		{"a.test:80:127.0.0.1:8080", "a.test", 80, "127.0.0.1", 8080, true},
		{"A.Test:80:127.0.0.1:8080", "a.test", 80, "127.0.0.1", 8080, true},
		{"a.test:80:127.0.0.1:8080", "a.test", 443, "a.test", 443, false},
		{"a.test:80:127.0.0.1:8080", "b.test", 80, "b.test", 80, false},
		{"::127.0.0.1:8080", "any.test", 443, "127.0.0.1", 8080, true},
		{":443:127.0.0.1:", "any.test", 443, "127.0.0.1", 443, true},
		{"a.test::b.test:", "a.test", 81, "b.test", 81, true},
		{"a.test:80::81", "a.test", 80, "a.test", 81, true},
		{":::", "a.test", 80, "a.test", 80, true},
		{"[2001:db8::1]:80:[::1]:8080", "2001:db8::1", 80, "::1", 8080, true},
		{"[2001:DB8::0:1]:80:[::1]:8080", "2001:db8::1", 80, "::1", 8080, true},
	}
	for _, tt := range tests {
		r, err := ParseConnectTo(tt.rule)
		if err != nil {
			t.Errorf("%s: %v", tt.rule, err)
			continue
		}
		host, port, ok := r.Match(tt.host, tt.port)
		if host != tt.toHost || port != tt.toPort || ok != tt.ok {
			t.Errorf("%s for %s:%d gives %s:%d, %v", tt.rule, tt.host, tt.port, host, port, ok)
		}
	}
	for _, s := range []string{"", "a", "a:80", "a:80:b", "a:80:b:81:c", "2001:db8::1:80:b:81", "[a]:80:b:81", "[::1:80:b:81", "::1]:80:b:81", "a:x:b:81", "a:80:b:0", "a:80:b:65536", "a b:80:c:81", "http://a:80:b:81"} {
		if r, err := ParseConnectTo(s); err == nil {
			t.Errorf("%q is taken for %+v", s, r)
		} else if !strings.Contains(err.Error(), "HOST:PORT:ADDR:PORT") {
			t.Errorf("%q: error %q does not say what is wanted", s, err)
		}
	}
}

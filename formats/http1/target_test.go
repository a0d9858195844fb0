package http1

import (
	"strings"
	"testing"
)

func TestTargets(t *testing.T) {
	tests := []struct{ url, origin, authority, path string }{
		{"http://example.org", "http://example.org:80", "example.org", "/"},
		{"HTTPS://Example.ORG/A?B#c", "https://example.org:443", "example.org", "/A?B"},
		{"http://example.org:443/", "http://example.org:443", "example.org:443", "/"},
		{"https://example.org:443/", "https://example.org:443", "example.org", "/"},
		{"http://example.org:/", "http://example.org:80", "example.org", "/"},
		{"http://example.org?q", "http://example.org:80", "example.org", "/?q"},
		{"http://example.org#f", "http://example.org:80", "example.org", "/"},
		{"http://u:p@ss@example.org/", "http://example.org:80", "example.org", "/"},
		{"http://example.org/100%", "http://example.org:80", "example.org", "/100%"},
		{"http://example.org/a b\r\nX: y", "http://example.org:80", "example.org", "/a%20b%0D%0AX:%20y"},
		{"http://example.org/ü", "http://example.org:80", "example.org", "/%C3%BC"},
		{"http://example.org./", "http://example.org.:80", "example.org.", "/"},
		{"http://[2001:DB8::0:1]:8080/", "http://[2001:db8::1]:8080", "[2001:db8::1]:8080", "/"},
		{"http://[::1]/", "http://[::1]:80", "[::1]", "/"},
		{"http://127.1/", "http://127.0.0.1:80", "127.0.0.1", "/"},
		{"http://0x7f.1/", "http://127.0.0.1:80", "127.0.0.1", "/"},
		{"http://0X7F000001/", "http://127.0.0.1:80", "127.0.0.1", "/"},
		{"http://2130706433/", "http://127.0.0.1:80", "127.0.0.1", "/"},
		{"http://0177.0.0.01/", "http://127.0.0.1:80", "127.0.0.1", "/"},
		{"http://1.2.3.4./", "http://1.2.3.4:80", "1.2.3.4", "/"},
		{"http://0x/", "http://0.0.0.0:80", "0.0.0.0", "/"},
		{"http://xn--bcher-kva.example/", "http://xn--bcher-kva.example:80", "xn--bcher-kva.example", "/"},
		{"http://a_b.example/", "http://a_b.example:80", "a_b.example", "/"},
	}
	for _, tt := range tests {
		got, err := ParseTarget(tt.url)
		if err != nil {
			t.Errorf("%s: %v", tt.url, err)
			continue
		}
		if got.Origin() != tt.origin || got.authority() != tt.authority || got.path != tt.path {
			t.Errorf("%s: %s, %s, %s; want %s, %s, %s", tt.url, got.Origin(), got.authority(), got.path, tt.origin, tt.authority, tt.path)
		}
	}
	for _, url := range []string{
		"", "example.org", "//example.org/", "ftp://example.org/", "http:", "http://", "http:///", "http://:80/", "http://@/",
		"http://exa mple.org/", "http://exa\nmple.org/", "http://bücher.example/", "http://a%41.example/", "http://a..b/", "http://.../",
		"http://1.2.3.4.5/", "http://256.256.256.256.256/", "http://1.2.3.256/", "http://4294967296/", "http://0x100000000/", "http://09.1/",
		"http://+10.0.0.1/", "http://-1.255/", "http://0x-1.1/",
		"http://foo.0x1/", "http://foo.1/", "http://99999999999999999999999/", "http://[::1/", "http://[fe80::1%25eth0]/", "http://[1.2.3.4]/",
		"http://example.org:x/", "http://example.org:-1/", "http://example.org:70000/",
		"http://" + strings.Repeat("a", 64) + ".example/", "http://" + strings.Repeat("a.", 200) + "example/", "http://example.org/" + strings.Repeat("a", maxURL),
	} {
		if got, err := ParseTarget(url); err == nil {
			t.Errorf("%.60q is taken for %s", url, got.Origin())
		}
	}
}

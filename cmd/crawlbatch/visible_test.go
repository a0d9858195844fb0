package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
)

// TestNothingFromTheWebCommandsATerminal shows commands text that would change what a terminal shows.
func TestNothingFromTheWebCommandsATerminal(t *testing.T) {
	const hostile = "x\x1b[2J\r\u009b31m\u202etxt\u2066\u061c\u200b\x7f\x9b\U000e0041y"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			fmt.Fprintf(w, "User-agent: *\nDisallow: /%s\n", "no")
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, "<title>%s</title><a href='/%s'>%[1]s</a>", hostile, "link")
	}))
	defer server.Close()
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		crawltest.Write(t, name, text)
		return name
	}
	page := file("page", "<title>"+hostile+"</title><p>"+hostile)
	robots := file("robots", "User-agent: *\nDisallow: /"+strings.ReplaceAll(hostile, "\r", "")+"*\nDisallow: /\nSitemap: http://a.test/"+hostile+"\n")
	block := "GET / HTTP/1.1" + hostile + "\r\n\r\n"
	archive := file("warc", fmt.Sprintf("WARC/1.1\r\nWARC-Type: request\r\nWARC-Target-URI: http://a.test/%s\tz\r\nWARC-Date: 2026-11-01T00:00:00Z\r\n"+
		"WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000000>\r\nContent-Type: application/http; msgtype=request\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n", strings.ReplaceAll(hostile, "\r", ""), len(block), block))
	for _, tc := range []struct {
		json bool
		args []string
	}{
		{false, []string{"inspect", "url", "http://a.test/" + hostile + "\nskip       -"}},
		{false, []string{"inspect", "robots", robots, "--agent", "x", "http://a.test/" + hostile}},
		{true, []string{"inspect", "page", page, "--url", "http://a.test/", "--content-type", "text/html; charset=utf-8"}},
		{false, []string{"inspect", "warc", archive}},
		{true, []string{"inspect", "warc", archive, "--jsonl"}},
		{true, []string{"fetch", "http://a.test/", "--connect-to", "::" + server.Listener.Addr().(*net.TCPAddr).String(), "--store", filepath.Join(dir, "none")}},
		{false, []string{"fetch", "http://" + hostile + "/", "--user-agent", "x (+https://example.org/bot)"}},
		{false, []string{"status", "--month", hostile}},
		{false, []string{"views", "--store", filepath.Join(dir, hostile)}},
	} {
		out, said, _ := runCommandLine(t, tc.args...)
		for _, r := range strings.NewReplacer("\n", "", "\t", "").Replace(out + said) {
			if !unicode.IsGraphic(r) {
				t.Errorf("%q prints %U: %q", tc.args[:2], r, out+said)
				break
			}
		}
		if tc.json && !json.Valid([]byte(out)) {
			t.Errorf("%q prints no JSON: %s", tc.args[:2], out)
		}
		if got := out + said; !strings.Contains(got, "x\\u001b[2J") && !strings.Contains(got, "u202e") && !strings.Contains(got, "%E2%80%AE") {
			t.Errorf("%q says nothing of it: %s", tc.args[:2], got)
		}
	}
	for _, lines := range [][]string{{"inspect", "warc", archive}, {"inspect", "url", "http://a.test/\nskip       forged"}} {
		if out, _, _ := runCommandLine(t, lines...); strings.Contains(out, "\tz") || strings.Contains(out, "\nskip       forged") {
			t.Errorf("%q: a text forges a field: %s", lines[:2], out)
		}
	}
}

package fetch

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
)

// The rows show the right outcome for every kind of 3xx response.
func TestRedirectStatuses(t *testing.T) {
	answers := map[string]string{
		"/300":           "300 Multiple Choices\r\nLocation: /preferred",
		"/300-none":      "300 Multiple Choices\r\nContent-Type: text/html",
		"/301-none":      "301 Moved Permanently\r\nContent-Type: text/html",
		"/303-blank":     "303 See Other\r\nContent-Type: text/html\r\nLocation: ",
		"/307-type":      "307 Temporary Redirect\r\nContent-Type: image/png",
		"/308-empty":     "308 Permanent Redirect\r\nContent-Type: text/html",
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
		"/300-none":      {schema.OK, "http://a.com/300-none", ""},
		"/301-none":      {schema.OK, "http://a.com/301-none", ""},
		"/303-blank":     {schema.OK, "http://a.com/303-blank", ""},
		"/307-type":      {schema.MIMEFiltered, "http://a.com/307-type", ""},
		"/308-empty":     {schema.ProtocolError, "http://a.com/308-empty", ""},
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
			} else if r.URL.Path == "/304" || r.URL.Path == "/308-empty" {
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
		for _, k := range linksOf(l, r) {
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

package fetch

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/http1/wiretest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
)

// scripted returns a handler that sends the bytes of a path and closes the connection. A path may have several
// answers; the last one is repeated. Requests counts the requests by path.
func scripted(t *testing.T, answers map[string][]string, check func(path string, n int, r *http.Request)) (handler http.HandlerFunc, requests map[string]int) {
	var mu sync.Mutex
	requests = map[string]int{}
	return func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		n := requests[r.URL.Path]
		requests[r.URL.Path]++
		mu.Unlock()
		all := answers[r.URL.Path]
		if len(all) == 0 {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if check != nil {
			check(r.URL.Path, n, r)
		}
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close() //nolint:errcheck // in memory
		_, _ = io.WriteString(c, all[min(n, len(all)-1)])
	}, requests
}

// A response of which no byte of the document arrives is not ok. It is repeated once. A response of which a part
// arrives is ok.
func TestABrokenResponseIsNotOK(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
	coded := func(coding, payload string) string {
		return head + "Content-Encoding: " + coding + "\r\n\r\n" + payload
	}
	gz, whole := wiretest.Encode("gzip", wiretest.LongPage), head+"\r\n<p>whole"
	for path, c := range map[string]struct {
		answers []string
		want    schema.Outcome
		tries   int
		cut     string
	}{
		"/head-in-a-line":        {[]string{"HTTP/1.1 200 OK\r\nContent-Ty"}, schema.ProtocolError, 2, ""},
		"/head-after-a-line":     {[]string{head}, schema.ProtocolError, 2, ""},
		"/head-of-crs":           {[]string{"HTTP/1.1 200 OK\rContent-Type: text/html\r\r<p>hello"}, schema.ProtocolError, 2, ""},
		"/head-once":             {[]string{head, whole}, schema.OK, 2, ""},
		"/no-body":               {[]string{head + "Content-Length: 100\r\n\r\n"}, schema.ProtocolError, 2, ""},
		"/no-chunk":              {[]string{head + "Transfer-Encoding: chunked\r\n\r\nff\r\n"}, schema.ProtocolError, 2, ""},
		"/gzip-head":             {[]string{coded("gzip", gz[:10])}, schema.ProtocolError, 2, ""},
		"/gzip-noise":            {[]string{coded("gzip", gz[:10]+strings.Repeat("\xff\x00", 50))}, schema.ProtocolError, 2, ""},
		"/br-noise":              {[]string{coded("br", strings.Repeat("\xff\x00\x81", 50))}, schema.ProtocolError, 2, ""},
		"/zstd-noise":            {[]string{coded("zstd", "\x28\xb5\x2f\xfd\x00\xff\x01\x00\x00")}, schema.ProtocolError, 2, ""},
		"/deflate-noise":         {[]string{coded("deflate", "\xff\xff\xff\x00")}, schema.ProtocolError, 2, ""},
		"/gzip-in-br":            {[]string{coded("br, gzip", gz[:10])}, schema.ProtocolError, 2, ""},
		"/transfer-coding":       {[]string{head + "Transfer-Encoding: gzip\r\n\r\n" + gz[:10]}, schema.ProtocolError, 2, ""},
		"/gzip-half":             {[]string{coded("gzip", gz[:len(gz)/2])}, schema.OK, 1, schema.TruncatedDisconnect},
		"/gzip-of-nothing":       {[]string{coded("gzip", wiretest.Encode("gzip", ""))}, schema.OK, 1, ""},
		"/half":                  {[]string{head + "Content-Length: 100\r\n\r\n<p>half"}, schema.OK, 1, schema.TruncatedDisconnect},
		"/empty":                 {[]string{head + "Content-Length: 0\r\n\r\n"}, schema.OK, 1, ""},
		"/no-length-and-no-body": {[]string{head + "\r\n"}, schema.OK, 1, ""},
		"/named-only":            {[]string{coded("gzip", "<p>plain")}, schema.OK, 1, ""},
	} {
		t.Run(path[1:], func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				handler, requests := scripted(t, map[string][]string{path: c.answers}, nil)
				l := newLab(t, handler, "http://a.com"+path)
				r, err := l.run(t.Context(), nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				f := l.outcomes(r)["http://a.com"+path]
				if f.Outcome != c.want || requests[path] != c.tries || c.want == schema.OK && f.Truncated != c.cut || (f.Error == "") != (c.want == schema.OK) {
					t.Errorf("%s (%q %q) after %d requests, truncated %q", f.Outcome, f.Error, f.ErrorDetail, requests[path], f.Truncated)
				}
				l.checkCaptures(r)
			})
		})
	}
}

// A status of an unknown class counts as a server error (RFC 9110, 15).
func TestAnUnknownStatus(t *testing.T) {
	for status, want := range map[int]schema.Outcome{299: schema.OK, 399: schema.ProtocolError, 499: schema.HTTP4xx, 599: schema.HTTP5xx, 600: schema.HTTP5xx, 666: schema.HTTP5xx, 999: schema.HTTP5xx} {
		bubble(t, func(t *testing.T) {
			handler, _ := scripted(t, map[string][]string{"/": {fmt.Sprintf("HTTP/1.1 %d Whatever\r\nContent-Type: text/html\r\n\r\n<p>a", status)}}, nil)
			l := newLab(t, handler, "http://a.com/")
			r, err := l.run(t.Context(), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if f := l.outcomes(r)["http://a.com/"]; f.Outcome != want || int(f.HTTPStatus) != status {
				t.Errorf("%d: %s %d (%s)", status, f.Outcome, f.HTTPStatus, f.Error)
			}
		})
	}
}

// A server that refuses the condition of a request gets the request again without it, after its delay. A later
// round sends no condition either, because no validators are stored.
func TestARefusedCondition(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: \"v2\"\r\n\r\n<p>new"
	for name, c := range map[string]struct {
		answers []string
		want    schema.Outcome
		tries   int
		etag    string
	}{
		"412":               {[]string{"HTTP/1.1 412 No\r\n\r\n", ok}, schema.OK, 2, ""},
		"400":               {[]string{"HTTP/1.1 400 No\r\n\r\n", ok}, schema.OK, 2, ""},
		"403":               {[]string{"HTTP/1.1 403 No\r\n\r\n", ok}, schema.OK, 2, ""},
		"416":               {[]string{"HTTP/1.1 416 No\r\n\r\n", ok}, schema.OK, 2, ""},
		"500":               {[]string{"HTTP/1.1 500 No\r\n\r\n", ok}, schema.OK, 2, ""},
		"501":               {[]string{"HTTP/1.1 501 No\r\n\r\n", ok}, schema.OK, 2, ""},
		"406, for any":      {[]string{"HTTP/1.1 406 No\r\n\r\n"}, schema.HTTP4xx, 2, ""},
		"412, then a retry": {[]string{"HTTP/1.1 412 No\r\n\r\n", "HTTP/1.1 502 No\r\n\r\n", ok}, schema.OK, 3, ""},
		"404":               {[]string{"HTTP/1.1 404 No\r\n\r\n", ok}, schema.HTTP4xx, 1, ""},
		"304":               {[]string{"HTTP/1.1 304 Same\r\n\r\n"}, schema.NotModified, 1, ""},
		"200":               {[]string{ok}, schema.OK, 1, `"v2"`},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var times []time.Time
				handler, requests := scripted(t, map[string][]string{"/": c.answers}, func(_ string, n int, r *http.Request) {
					times = append(times, time.Now())
					if conditional := r.Header.Get("If-None-Match") != ""; conditional != (n == 0) {
						t.Errorf("request %d: conditional %t", n, conditional)
					}
				})
				l := newLab(t, handler)
				rows := planRows(t, []string{"http://a.com/"})
				rows[0].ETag, rows[0].Fetches, rows[0].ContentDigest = `"v1"`, 1, "OLD"
				rows[0].ContentAt, rows[0].WARCFilename = schema.TimeOf(time.Now().Add(-time.Hour)), "warc/old.warc.gz"
				l.setPlanAt(rows, "p2")
				r, err := l.run(t.Context(), nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				f := l.outcomes(r)["http://a.com/"]
				if f.Outcome != c.want || requests["/"] != c.tries || f.ETag != c.etag || int(f.Attempts) != c.tries {
					t.Errorf("%s (%s), %d requests, %d attempts, ETag %q", f.Outcome, f.Error, requests["/"], f.Attempts, f.ETag)
				}
				for i := 1; i < len(times); i++ {
					if gap := times[i].Sub(times[i-1]); gap < l.cfg.Politeness.Delay {
						t.Errorf("request %d came %v after the one before", i, gap)
					}
				}
				if n := len(rowsOf[schema.Request](l, r, stages.FileRequests)); n != c.tries+1 {
					t.Errorf("%d rows of requests", n)
				}
			})
		})
	}
}

// A robots.txt counts if it is complete, like a page, and in any coding that can be told. If it cannot be decoded,
// what it forbids is not known.
func TestRobotsTxtInCodings(t *testing.T) {
	const file = "User-agent: *\nDisallow: /private\n"
	gz, zst := wiretest.Encode("gzip", file), wiretest.Encode("zstd", file)
	for name, c := range map[string]struct {
		field, file string
		want        schema.Outcome
	}{
		"a wrong checksum":        {"gzip", gz[:len(gz)-8] + "abcd" + gz[len(gz)-4:], schema.RobotsDenied},
		"a wrong length":          {"gzip", gz[:len(gz)-4] + "abcd", schema.RobotsDenied},
		"cut":                     {"gzip", gz[:len(gz)-12], schema.RobotsUnreachable},
		"gzip without a field":    {"", gz, schema.RobotsDenied},
		"zstd without a field":    {"", zst, schema.RobotsDenied},
		"gzip named once too few": {"gzip", wiretest.Encode("gzip", gz), schema.RobotsDenied},
		"gzip named zstd":         {"zstd", gz, schema.RobotsDenied},
		"gzip in an unknown name": {"x-compressed", gz, schema.RobotsDenied},
		"half of gzip, not named": {"", gz[:len(gz)-12], schema.RobotsUnreachable},
		"an unknown coding":       {"compress", "\x1f\x9d\x90\x00\x01\x02", schema.RobotsUnreachable},
		"a named coding, unlike":  {"gzip", "\x00\x01\x02\x03\x04", schema.RobotsUnreachable},
		"six codings":             {"br, br, br, br, br, br", "\x00\x01\x02\x03", schema.RobotsUnreachable},
		"a charset as a coding":   {"UTF-8", file, schema.RobotsDenied},
		"UTF-16 as a coding":      {"utf-16", "\xff\xfe" + strings.Join(strings.Split(file, ""), "\x00") + "\x00", schema.RobotsDenied},
		"a coding of plain text":  {"gzip", file, schema.RobotsDenied},
		"an empty file":           {"compress", "", schema.HTTP4xx},
		"a page":                  {"", "<html><p>hello", schema.HTTP4xx},
		"noise":                   {"", "\x00\x01\x02\xff", schema.HTTP4xx},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				field := ""
				if c.field != "" {
					field = "Content-Encoding: " + c.field + "\r\n"
				}
				handler, _ := scripted(t, map[string][]string{"/robots.txt": {"HTTP/1.1 200 OK\r\n" + field + "\r\n" + c.file}}, nil)
				l := newLab(t, handler, "http://a.com/private") // /private answers 404
				r, err := l.run(t.Context(), nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				if f := l.outcomes(r)["http://a.com/private"]; f.Outcome != c.want {
					t.Errorf("%s (%s %s), want %s", f.Outcome, f.Error, f.ErrorDetail, c.want)
				}
			})
		})
	}
}

package fetchcheck

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/http1/wiretest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// noStore panics on any read.
type noStore struct{ store.Bucket }

func (noStore) String() string { return "nowhere" }

const originURL = "http://a.test"

// reply is an answer to a robots.txt request.
type reply struct {
	url   string // requested URL; "" means originURL
	of    string // URL of the robots.txt that redirected to url
	epoch int32
	at    int64
	raw   string // bytes of the response; "" if no response came
	lost  bool   // true: the response is missing in the store
}

func gzipped(s string) string { return wiretest.Encode("gzip", s) }

func rawResponse(status int, more, body string) string {
	return fmt.Sprintf("HTTP/1.1 %d X\r\n%sContent-Length: %d\r\n\r\n%s", status, more, len(body), body)
}

// archived writes replies as captures into one WARC file and returns a judge with these replies.
func archived(t *testing.T, replies []reply) *judge {
	t.Helper()
	b, err := dirstore.Open(filepath.Join(t.TempDir(), "store"), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const key = "warc/crawl=2026-11/round=0/part-00000-e1-00000.warc.gz"
	var file bytes.Buffer
	w := warc.NewWriter(&file)
	a := audit.New(audit.Options{Bucket: b, Config: config.Default()})
	canon, err := urlkey.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	files := &robotsFiles{Audit: a, round: &audit.Round{}, canon: canon, byURL: map[string][]*robotsResponse{}, chains: map[string][]*robotsResponse{}, carried: map[string][]*robotsResponse{}, lost: map[string]bool{}, reader: warc.NewReader(nil, warc.ReaderOptions{})}
	t.Cleanup(files.close)
	for _, r := range replies {
		if r.url == "" {
			r.url = originURL + "/robots.txt"
		}
		f := &robotsResponse{requestRow: requestRow{URL: r.url, RobotsFor: r.of, Epoch: r.epoch, Start: schema.Time(r.at)}}
		if r.raw == "" {
			f.Error = "timed out"
		} else {
			x, err := wire.Replay([]byte(r.raw), false, wire.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			at, err := w.Write(&warc.Record{Type: warc.Response, Date: schema.Time(r.at).Time(), TargetURI: r.url, Block: [][]byte{[]byte(r.raw)}, PayloadDigest: warc.Digest(x.PayloadDigest)})
			if err != nil {
				t.Fatal(err)
			}
			f.Status = int16(x.Status)
			if !r.lost {
				f.capture = &robotsCapture{URL: r.url, Digest: warc.Digest(x.PayloadDigest).Value(), File: key, Offset: int32(at.Offset), Length: int32(at.Length)}
			}
			x.Release()
		}
		f.class = f.classify()
		files.add(f)
	}
	files.sort()
	if _, err := store.CreateBytes(t.Context(), b, key, file.Bytes()); err != nil {
		t.Fatal(err)
	}
	return &judge{Audit: a, round: &audit.Round{}, files: files, agent: "testbot"}
}

// nameRobots writes the place of a robots.txt response into a request. The response is the last one
// before the request that has the file with the request's digest.
func (j *judge) nameRobots(q *requestRow) {
	for _, all := range j.files.byURL {
		for _, f := range all {
			if f.capture != nil && f.digest() == q.Digest && f.class != robots.Unreachable && (f.Start <= q.Start || f.Epoch < q.Epoch) && (f.Status < 300 || f.Status > 399 || q.Digest == "") {
				q.File, q.Offset = f.capture.File, f.capture.Offset
			}
		}
	}
}

func TestTheEvidenceOfARequestIsTheAnswerInForce(t *testing.T) {
	const open = "User-agent: *\nDisallow: /b\n"
	digest := warc.DigestOf([]byte(open)).Value()
	ttl := 24 * time.Hour.Microseconds()
	twice := []reply{{epoch: 1, at: 1, raw: rawResponse(200, "", open)}, {epoch: 1, at: ttl, raw: rawResponse(200, "", open)}}
	later := config.Default().Fetch.Timeout.Total.Std().Microseconds()
	for _, c := range []struct {
		name    string
		replies []reply
		at      int64
		of      int // index of the reply that the request names; -1: none
		want    string
	}{
		{"the answer", twice, ttl + 5, 1, ""},
		{"the one before, as the newer came", twice, ttl + 5, 0, ""},
		{"the one before, long after", twice, ttl + 5 + later, 0, "as evidence, but"},
		{"none", twice, ttl + 5, -1, "as evidence, but"},
		{"an answer that still holds", twice[:1], ttl - 5, 0, ""},
		{"an answer that is too old", twice[:1], ttl + 10*time.Minute.Microseconds(), 0, "robots.txt holds for 24h"},
		{"an answer that is too old, and another try failed", append(slices.Clone(twice[:1]), reply{epoch: 1, at: 10 * ttl, raw: rawResponse(503, "", "")}), 10*ttl + 5, 0, ""},
		{"the same, long after the try", append(slices.Clone(twice[:1]), reply{epoch: 1, at: 10 * ttl, raw: rawResponse(503, "", "")}), 12 * ttl, 0, "robots.txt holds for 24h"},
		{"the same, after more than 30 days", append(slices.Clone(twice[:1]), reply{epoch: 1, at: 31 * ttl, raw: rawResponse(503, "", "")}), 31*ttl + 5, 0, "robots.txt holds for 24h"},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := archived(t, c.replies)
			j.RobotsTTL = 24 * time.Hour
			q := requestRow{URL: originURL + "/a", Epoch: 1, Start: schema.Time(c.at), DelayMS: 2000, Digest: digest}
			if c.of >= 0 {
				f := j.files.byURL[originURL+"/robots.txt"][c.of]
				q.File, q.Offset = f.capture.File, f.capture.Offset
			}
			if _, err := j.request(t.Context(), &q); err != nil {
				t.Fatal(err)
			}
			found := j.Report().Violations
			if c.want == "" && len(found) > 0 || c.want != "" && (len(found) != 1 || !strings.Contains(found[0].Problem, c.want)) {
				t.Errorf("found %+v, want %q", found, c.want)
			}
		})
	}
}

// Several origins may redirect to the same URL. A request is judged by the response that came for its own origin.
func TestARedirectIsFollowedAlongItsOwnChain(t *testing.T) {
	const www = "http://www.a.test/robots.txt"
	root := originURL + "/robots.txt"
	file := func(n int) string { return fmt.Sprintf("User-agent: *\nDisallow: /%d\n", n) }
	to := func(url string) string { return rawResponse(302, "Location: "+url+"\r\n", "") }
	for _, c := range []struct {
		name    string
		replies []reply
		of      int // index of the reply in force
	}{
		{"the target was fetched before", []reply{{url: www, raw: rawResponse(200, "", file(1))}, {raw: to(www)}, {url: www, of: root, raw: rawResponse(200, "", file(2))}}, 2},
		{"the target was fetched after", []reply{{raw: to(www)}, {url: www, of: root, raw: rawResponse(200, "", file(1))}, {url: www, raw: rawResponse(200, "", file(2))}}, 1},
		{"the target was fetched in between", []reply{{raw: to(www)}, {url: www, raw: rawResponse(200, "", file(1))}, {url: www, of: root, raw: rawResponse(200, "", file(2))}}, 2},
		{"another origin fetched the target in between", []reply{{raw: to(www)}, {url: www, of: "http://b.test/robots.txt", raw: rawResponse(200, "", file(1))}, {url: www, of: root, raw: rawResponse(200, "", file(2))}}, 2},
		{"an upgrade to https", []reply{{url: "https://a.test/robots.txt", raw: rawResponse(200, "", file(1))}, {raw: to("https://a.test/robots.txt")}, {url: "https://a.test/robots.txt", of: root, raw: rawResponse(200, "", file(2))}}, 2},
		{"a chain of three", []reply{{raw: to("https://a.test/robots.txt")}, {url: "https://a.test/robots.txt", of: root, raw: to("https://www.a.test/robots.txt")},
			{url: "https://www.a.test/robots.txt", raw: rawResponse(200, "", file(1))}, {url: "https://www.a.test/robots.txt", of: root, raw: rawResponse(200, "", file(2))}}, 3},
		{"back to itself", []reply{{raw: to(www)}, {url: www, of: root, raw: to(root)}, {of: root, raw: rawResponse(200, "", file(1))}}, 2},
		{"a target that failed first", []reply{{raw: to(www)}, {url: www, of: root, raw: rawResponse(503, "", "")}, {url: www, raw: rawResponse(200, "", file(1))}, {url: www, of: root, raw: rawResponse(200, "", file(2))}}, 3},
		{"a target that could not be decoded first", []reply{{raw: to(www)}, {url: www, of: root, raw: rawResponse(200, "Content-Encoding: compress\r\n", "\x1f\x9d\x90\x00")}, {url: www, of: root, raw: rawResponse(200, "", file(2))}}, 2},
		{"a target without a file", []reply{{raw: to(www)}, {url: www, raw: rawResponse(200, "", file(1))}, {url: www, of: root, raw: rawResponse(404, "", "")}}, 2},
		{"a target that changed", []reply{{raw: to("http://old.test/robots.txt")}, {url: "http://old.test/robots.txt", of: root, raw: rawResponse(503, "", "")}, {raw: to(www)}, {url: www, of: root, raw: rawResponse(200, "", file(1))}}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i := range c.replies {
				c.replies[i].epoch, c.replies[i].at = 1, int64(i+1)
			}
			j := archived(t, c.replies)
			for i, r := range c.replies {
				if strings.HasPrefix(r.raw, "HTTP/1.1 302") || strings.HasPrefix(r.raw, "HTTP/1.1 503") {
					continue
				}
				before := len(j.Report().Violations)
				at := j.files.byURL[cmp.Or(r.url, root)]
				f := at[slices.IndexFunc(at, func(f *robotsResponse) bool { return f.Start == schema.Time(i+1) })]
				q := requestRow{URL: originURL + "/a", Epoch: 1, Start: 100, DelayMS: 2000, Digest: f.digest(), File: f.capture.File, Offset: f.capture.Offset}
				if _, err := j.request(t.Context(), &q); err != nil {
					t.Fatal(err)
				}
				if clean := len(j.Report().Violations) == before; clean != (i == c.of) {
					t.Errorf("reply %d is in force: %t", i, clean)
				}
			}
		})
	}
}

func TestTheRobotsFileInForceIsTheLastThatWasAnswered(t *testing.T) {
	const open, shut = "User-agent: *\nDisallow: /b\n", "User-agent: testbot\nCrawl-delay: 3\nDisallow: /a\n"
	digest := func(body string) string { return warc.DigestOf([]byte(body)).Value() }
	later := config.Default().Fetch.Timeout.Total.Std().Microseconds()
	page := func(at int64, of string) requestRow {
		return requestRow{URL: originURL + "/a", Epoch: 1, Start: schema.Time(at), DelayMS: 3000, Digest: of}
	}
	redirected := []reply{
		{epoch: 1, at: 1, raw: rawResponse(301, "Location: //b.test/robots.txt\r\n", "")},
		{url: "http://b.test/robots.txt", of: originURL + "/robots.txt", epoch: 1, at: 2, raw: rawResponse(503, "", "")},
		{url: "http://b.test/robots.txt", of: originURL + "/robots.txt", epoch: 1, at: 3, raw: rawResponse(200, "", open)},
	}
	cases := []struct {
		name    string
		replies []reply
		request requestRow
		want    string // part of the expected problem; "" if no problem is expected
	}{
		{"a file that allows it", []reply{{epoch: 1, at: 1, raw: rawResponse(200, "", open)}}, page(5, digest(open)), ""},
		{"a file that denies it", []reply{{epoch: 1, at: 1, raw: rawResponse(200, "", shut)}}, page(5, digest(shut)), `denied it: "Disallow: /a" in line 3`},
		{"a file that cannot be decoded", []reply{{epoch: 1, at: 1, raw: rawResponse(200, "Content-Encoding: compress\r\n", "\x1f\x9d\x90\x00")}}, page(5, digest("\x1f\x9d\x90\x00")), "cannot be decoded"},
		{"a file in a coding that no field names", []reply{{epoch: 1, at: 1, raw: rawResponse(200, "", gzipped(shut))}}, page(5, digest(gzipped(shut))), `denied it: "Disallow: /a" in line 3`},
		{"no file", []reply{{epoch: 1, at: 1, raw: rawResponse(404, "", "")}}, page(5, ""), ""},
		{"a file that is forbidden", []reply{{epoch: 1, at: 1, raw: rawResponse(403, "", "")}}, page(5, ""), ""},
		{"a server that is at its limit", []reply{{epoch: 1, at: 1, raw: rawResponse(429, "", "")}}, page(5, ""), "before a 2xx or 4xx response to"},
		{"a server that fails", []reply{{epoch: 1, at: 1, raw: rawResponse(500, "", "")}}, page(5, ""), "before a 2xx or 4xx response to"},
		{"no answer", []reply{{epoch: 1, at: 1}}, page(5, ""), "before a 2xx or 4xx response to"},
		{"nothing asked", nil, page(5, ""), "before a 2xx or 4xx response to"},
		{"asked too late", []reply{{epoch: 1, at: 6, raw: rawResponse(404, "", "")}}, page(5, ""), "before a 2xx or 4xx response to"},
		{"a file that is not stored", []reply{{epoch: 1, at: 1, raw: rawResponse(200, "", open), lost: true}}, page(5, digest(open)), "before a 2xx or 4xx response to"},
		{"a file said to be absent", []reply{{epoch: 1, at: 1, raw: rawResponse(200, "", open)}}, page(5, ""), "its row says that there was no robots.txt"},
		{"a file said to be there", []reply{{epoch: 1, at: 1, raw: rawResponse(404, "", "")}}, page(5, digest(open)), "answered with status 404"},
		{"a second try", []reply{{epoch: 1, at: 1, raw: rawResponse(503, "", "")}, {epoch: 1, at: 3, raw: rawResponse(200, "", open)}}, page(5, digest(open)), ""},
		{"a newer file", []reply{{epoch: 1, at: 1, raw: rawResponse(200, "", shut)}, {epoch: 1, at: 3, raw: rawResponse(200, "", open)}}, page(5, digest(open)), ""},
		{"the older file, as the newer came", []reply{{epoch: 1, at: 1, raw: rawResponse(200, "", open)}, {epoch: 1, at: 3, raw: rawResponse(200, "", shut)}}, page(5, digest(open)), ""},
		{"the older file, long after", []reply{{epoch: 1, at: 1, raw: rawResponse(200, "", open)}, {epoch: 1, at: 3, raw: rawResponse(200, "", shut)}}, page(5+later, digest(open)), "was in force"},
		{"an epoch before on a clock that is ahead", []reply{{epoch: 0, at: 900, raw: rawResponse(200, "", open)}}, page(5, digest(open)), ""},
		{"a later epoch", []reply{{epoch: 2, at: 1, raw: rawResponse(200, "", open)}}, page(5, digest(open)), "before a 2xx or 4xx response to"},
		{"a redirect and its target in one millisecond", []reply{{url: "http://b.test/robots.txt", of: originURL + "/robots.txt", epoch: 1, at: 1, raw: rawResponse(200, "", open)}, {epoch: 1, at: 1, raw: rawResponse(301, "Location: //b.test/robots.txt\r\n", "")}}, page(5, digest(open)), ""},
		{"a redirect to another host", redirected, page(5, digest(open)), ""},
		{"a redirect to nowhere", []reply{{epoch: 1, at: 1, raw: rawResponse(301, "", "")}}, page(5, ""), ""},
		{"a redirect whose end did not answer", redirected[:2], page(5, ""), "before a 2xx or 4xx response to"},
		{"a rule that decided otherwise", []reply{{epoch: 1, at: 1, raw: rawResponse(200, "", "User-agent: *\nAllow: /a\n")}}, page(5, digest("User-agent: *\nAllow: /a\n")), `"Allow: /a"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			j := archived(t, c.replies)
			j.nameRobots(&c.request)
			if _, err := j.request(t.Context(), &c.request); err != nil {
				t.Fatal(err)
			}
			found := j.Report().Violations
			if c.want == "" && len(found) > 0 || c.want != "" && (len(found) != 1 || !strings.Contains(found[0].Problem, c.want)) {
				t.Errorf("found %+v, want %q", found, c.want)
			}
		})
	}

	j := archived(t, []reply{{epoch: 1, at: 1, raw: rawResponse(200, "", shut)}})
	slow := requestRow{URL: originURL + "/c", Epoch: 1, Start: 9, DelayMS: 2999, Digest: digest(shut)}
	j.nameRobots(&slow)
	if limited, err := j.request(t.Context(), &slow); err != nil || !limited {
		t.Errorf("limited %t, %v", limited, err)
	}
	if v := j.Report().Violations; len(v) != 1 || v[0].Check != crawlDelayKept.Name || v[0].Invariant != 3 {
		t.Errorf("a delay below the Crawl-delay: %+v", v)
	}
}

// In a round with a takedown, a redirect whose target has no request left may lead to what was removed. What can be
// told apart is a violation as before.
func TestARedirectToWhatATakedownRemoved(t *testing.T) {
	const open, shut = "User-agent: *\nDisallow: /b\n", "User-agent: *\nDisallow: /a\n"
	digest := func(body string) string { return warc.DigestOf([]byte(body)).Value() }
	away := reply{epoch: 1, at: 10, raw: rawResponse(301, "Location: //gone.test/robots.txt\r\n", "")}
	later := config.Default().Fetch.Timeout.Total.Std().Microseconds()
	failed := reply{url: "http://gone.test/robots.txt", of: originURL + "/robots.txt", epoch: 1, at: 12, raw: rawResponse(503, "", "")}
	for _, c := range []struct {
		name    string
		replies []reply
		forgot  bool
		at      int64 // when the page was requested
		digest  string
		want    string // the violation; "" if there is a note
	}{
		{"removed", []reply{away}, true, 20, digest(open), ""},
		{"removed, and no file", []reply{away}, true, 20, "", ""},
		{"removed after an older file", []reply{{epoch: 1, at: 1, raw: rawResponse(200, "", shut)}, away}, true, 20, digest(open), ""},
		{"a round without a takedown", []reply{away}, false, 20, digest(open), "before a 2xx or 4xx response to"},
		{"the target is there, and failed", []reply{away, failed}, true, 20, digest(open), "before a 2xx or 4xx response to"},
		{"nothing asked", nil, true, 20, digest(open), "before a 2xx or 4xx response to"},
		{"requested before the redirect", []reply{away}, true, 5, digest(open), "before a 2xx or 4xx response to"},
		{"a newer file, long before", []reply{away, {epoch: 1, at: 30, raw: rawResponse(200, "", open)}}, true, 40 + later, digest(shut), "was in force"},
		{"a newer file that denies it", []reply{away, {epoch: 1, at: 30, raw: rawResponse(200, "", shut)}}, true, 40, digest(shut), "denied it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := archived(t, c.replies)
			j.files.round.Forgot = c.forgot
			q := requestRow{URL: originURL + "/a", Epoch: 1, Start: schema.Time(c.at), DelayMS: 2000, Digest: c.digest}
			j.nameRobots(&q)
			if _, err := j.request(t.Context(), &q); err != nil {
				t.Fatal(err)
			}
			found, notes := j.Report().Violations, j.Report().Notes
			if c.want == "" && (len(found) > 0 || len(notes) != 1) || c.want != "" && (len(found) != 1 || !strings.Contains(found[0].Problem, c.want) || len(notes) > 0) {
				t.Errorf("found %+v, want %q; notes %q", found, c.want, notes)
			}
		})
	}
}

// Many rows may be about an origin whose robots.txt redirects. The first of them reads the responses.
func TestARobotsRedirectIsReadOnceForAllRows(t *testing.T) {
	const file = "User-agent: *\nDisallow: /b\n"
	yes, no := true, false
	j := archived(t, []reply{
		{epoch: 1, at: 1, raw: rawResponse(301, "Location: //b.test/robots.txt\r\n", "")},
		{url: "http://b.test/robots.txt", of: originURL + "/robots.txt", epoch: 1, at: 2, raw: rawResponse(301, "Location: //c.test/robots.txt\r\n", "")},
		{url: "http://c.test/robots.txt", of: originURL + "/robots.txt", epoch: 1, at: 3, raw: rawResponse(200, "", file)},
		{epoch: 1, at: 4, raw: rawResponse(302, "", "")},
	})
	read := store.Count(j.Bucket)
	j.Bucket = read
	q := requestRow{URL: originURL + "/a", Epoch: 1, Start: 5, DelayMS: 2000, Digest: warc.DigestOf([]byte(file)).Value()}
	q.File, q.Offset = j.files.byURL["http://c.test/robots.txt"][0].capture.File, j.files.byURL["http://c.test/robots.txt"][0].capture.Offset
	rows := []fetchRow{{URL: originURL + "/a", Outcome: "ok", Allowed: &yes}, {URL: originURL + "/b", Outcome: "robots_denied", Allowed: &no, Rule: "Disallow: /b"}}
	var first store.Counts
	for i := range 50 {
		if _, err := j.request(t.Context(), &q); err != nil {
			t.Fatal(err)
		}
		if err := j.fetches(t.Context(), seq(rows)); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = read.Counts()
		}
	}
	if n := read.Counts(); n != first || n.Gets == 0 {
		t.Errorf("the first rows: %+v; all rows: %+v", first, n)
	}
	if found := j.Report().Violations; len(found) > 0 {
		t.Errorf("found %+v", found)
	}
	wrong := fetchRow{URL: originURL + "/a", Outcome: "robots_denied", Allowed: &no, Rule: "Disallow: /"}
	if err := j.fetches(t.Context(), seq([]fetchRow{wrong})); err != nil {
		t.Fatal(err)
	}
	if found := j.Report().Violations; len(found) != 1 || !strings.Contains(found[0].Problem, "http://c.test/robots.txt (status 200") {
		t.Errorf("a verdict that no file gives: %+v", found)
	}
}

// Pages of a host often redirect from http to https, so the rows of both origins alternate.
func TestTheRulesOfBothOriginsOfAHostAreReadOnce(t *testing.T) {
	yes := true
	j := archived(t, []reply{
		{epoch: 1, at: 1, raw: rawResponse(200, "", "User-agent: *\nDisallow: /b\n")},
		{url: "https://a.test/robots.txt", epoch: 1, at: 2, raw: rawResponse(200, "", "User-agent: *\nDisallow: /c\n")},
	})
	read := store.Count(j.Bucket)
	j.Bucket = read
	rows := []fetchRow{{URL: originURL + "/c", Outcome: "ok", Allowed: &yes}, {URL: "https://a.test/b", Outcome: "ok", Allowed: &yes}}
	var first store.Counts
	for i := range 50 {
		if err := j.fetches(t.Context(), seq(rows)); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = read.Counts()
		}
	}
	if n := read.Counts(); n != first || n.Gets == 0 {
		t.Errorf("the first rows: %+v; all rows: %+v", first, n)
	}
	if found := j.Report().Violations; len(found) > 0 {
		t.Errorf("found %+v", found)
	}
}

func TestVerdictsAreThoseOfAStoredFile(t *testing.T) {
	yes, no := true, false
	replies := []reply{{epoch: 1, at: 1, raw: rawResponse(200, "", "User-agent: *\nDisallow: /b\n")}}
	cases := []struct {
		name string
		row  fetchRow
		want string
	}{
		{"allowed", fetchRow{URL: originURL + "/a", Outcome: "ok", Allowed: &yes}, ""},
		{"denied", fetchRow{URL: originURL + "/b", Outcome: "robots_denied", Allowed: &no, Rule: "Disallow: /b"}, ""},
		{"not asked", fetchRow{URL: originURL + "/b", Outcome: "dns_error"}, ""},
		{"denied by another rule", fetchRow{URL: originURL + "/b", Outcome: "robots_denied", Allowed: &no, Rule: "Disallow: /"}, "says allowed=false by"},
		{"denied though it is allowed", fetchRow{URL: originURL + "/a", Outcome: "robots_denied", Allowed: &no}, "says allowed=true"},
		{"fetched though it was denied", fetchRow{URL: originURL + "/b", Outcome: "ok", Allowed: &no, Rule: "Disallow: /b"}, "its outcome is ok"},
		{"denied without a verdict", fetchRow{URL: originURL + "/b", Outcome: "robots_denied"}, "no verdict"},
		{"a redirect to what is denied", fetchRow{URL: originURL + "/a", Outcome: "robots_denied", Allowed: &yes, Error: "redirect to a URL that robots.txt denies", Detail: originURL + "/b: Disallow: /b"}, ""},
		{"a redirect to what is allowed", fetchRow{URL: originURL + "/a", Outcome: "robots_denied", Allowed: &yes, Error: "redirect to a URL that robots.txt denies", Detail: originURL + "/c: Disallow: /b"}, "says allowed=true"},
		{"of an origin that was not asked", fetchRow{URL: "https://a.test/a", Outcome: "ok", Allowed: &yes}, "no response of https://a.test is stored"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			j := archived(t, replies)
			if err := j.fetches(t.Context(), seq([]fetchRow{c.row})); err != nil {
				t.Fatal(err)
			}
			found := j.Report().Violations
			if c.want == "" && len(found) > 0 || c.want != "" && (len(found) != 1 || !strings.Contains(found[0].Problem, c.want)) {
				t.Errorf("found %+v, want %q", found, c.want)
			}
		})
	}
}

// FuzzIndex reads arbitrary bytes as a CDXJ index.
func FuzzIndex(f *testing.F) {
	f.Add([]byte(`com,a)/ 20261121000000 {"url":"http://a.com/","digest":"X","length":"10","offset":"5","filename":"w"}` + "\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		var x index
		problem, err := x.read(bytes.NewReader(body), "w", 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range x.entries {
			if problem == "" && (e.offset < 0 || e.length <= 0 || e.offset+e.length > 1000) {
				t.Errorf("an entry outside of the file: %+v", e)
			}
		}
	})
}

func TestAnErrorResponseMayBreakOffAndAFileMayNot(t *testing.T) {
	for _, c := range []struct {
		status int16
		want   robots.Class
	}{
		{200, robots.Unreachable},
		{404, robots.NoFile},
		{503, robots.Unreachable},
	} {
		f := robotsResponse{requestRow: requestRow{Status: c.status}, capture: &robotsCapture{Status: c.status, Truncated: schema.TruncatedDisconnect}}
		if got := f.classify(); got != c.want {
			t.Errorf("status %d: class %d, want %d", c.status, got, c.want)
		}
	}
}

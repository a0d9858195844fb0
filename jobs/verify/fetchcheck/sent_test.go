package fetchcheck

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
)

const sentRules = "User-agent: *\nDisallow: /%7Ejoe/\nDisallow: /q?z=1&a=2\nDisallow: /r?a=2&z=1\nDisallow: /utm?utm_\n"

// askJudge returns a judge that has the rules in sentRules.
func askJudge(t *testing.T) *judge {
	t.Helper()
	j := archived(t, []reply{{epoch: 1, at: 1, raw: rawResponse(200, "", sentRules)}})
	canon, err := urlkey.New([]string{"utm_*"})
	if err != nil {
		t.Fatal(err)
	}
	j.files.canon = canon
	return j
}

// expectProblem reports unless the judge found exactly the problem, or none for "".
func (j *judge) expectProblem(t *testing.T, want string) {
	t.Helper()
	if found := j.Report().Violations; want == "" && len(found) > 0 || want != "" && (len(found) != 1 || !strings.Contains(found[0].Problem, want)) {
		t.Errorf("found %+v, want %q", found, want)
	}
}

func TestARequestIsJudgedByWhatWasSent(t *testing.T) {
	for _, c := range []struct{ name, url, sent, want string }{ // want: the expected problem; "" if no problem is expected
		{"the canonical URL", "/a", "", ""},
		{"the canonical URL, denied by a rule with escapes", "/~joe/a", "", `it was requested though`},
		{"the same, as it was linked", "/~joe/a", "/%7Ejoe/a", `it was requested as http://a.test/%7Ejoe/a, though`},
		{"an allowed URL, denied as it was linked", "/q?a=2&z=1", "/q?z=1&a=2", `denied that: "Disallow: /q?z=1&a=2" in line 3`},
		{"the same URL in the allowed form", "/q?a=2&z=1", "", ""},
		{"and in another form", "/q?a=2&z=1", "/q?a=2&&z=1", ""},
		{"a denied URL, allowed as it was linked", "/r?a=2&z=1", "/r?z=1&a=2", ""},
		{"the same URL in the denied form", "/r?a=2&z=1", "", `denied it: "Disallow: /r?a=2&z=1" in line 4`},
		{"a tracking parameter that is denied", "/utm", "/utm?utm_source=x", "denied that"},
		{"a tracking parameter that matters not", "/a", "/a?utm_source=x", ""},
		{"an empty query", "/a", "/a?", ""},
		{"another path", "/a", "/b", "it was requested as http://a.test/b, which is another URL"},
		{"another query", "/a?x=1", "/a?x=2", "which is another URL"},
		{"a parameter that is not dropped", "/a", "/a?x", "which is another URL"},
		{"another host", "/a", "http://b.test/a", "which is another URL"},
		{"another scheme", "/a", "https://a.test/a", "which is another URL"},
		{"another port", "/a", "http://a.test:81/a", "which is another URL"},
		{"a usual port", "/a", "http://a.test:80/a", "which is not the form"},
		{"a host in capitals", "/a", "http://A.test/a", "which is not the form"},
		{"a fragment", "/a", "/a#b", "which is not the form"},
		{"credentials", "/a", "http://me@a.test/a", "which is not the form"},
		{"dot segments", "/a", "/b/../a", "which is not the form"},
		{"the canonical URL, written out", "/a", "/a", "which is not the form"},
		{"no URL", "/a", "http://", "which is another URL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := askJudge(t)
			q := requestRow{
				URL: originURL + c.url, Sent: c.sent, PlannedURL: originURL + c.url, Purpose: string(schema.ForPage), Epoch: 1, Start: 9, DelayMS: 2000,
				Digest: warc.DigestOf([]byte(sentRules)).Value(),
			}
			if strings.HasPrefix(c.sent, "/") {
				q.Sent = originURL + c.sent
			}
			j.nameRobots(&q)
			if err := j.requests(t.Context(), seq([]requestRow{q})); err != nil {
				t.Fatal(err)
			}
			j.expectProblem(t, c.want)
		})
	}
}

func TestVerdictsAreAboutWhatIsSent(t *testing.T) {
	yes, no := true, false
	const denied = "redirect to a URL that robots.txt denies"
	for _, c := range []struct {
		name string
		row  fetchRow
		want string
	}{
		{"denied as it was linked", fetchRow{URL: originURL + "/q?a=2&z=1", Sent: originURL + "/q?z=1&a=2", Outcome: "robots_denied", Allowed: &no, Rule: "Disallow: /q?z=1&a=2"}, ""},
		{"allowed in spite of what is sent", fetchRow{URL: originURL + "/q?a=2&z=1", Sent: originURL + "/q?z=1&a=2", Outcome: "ok", Allowed: &yes}, "says allowed=false by"},
		{"denied though only another form is", fetchRow{URL: originURL + "/q?a=2&z=1", Outcome: "robots_denied", Allowed: &no, Rule: "Disallow: /q?z=1&a=2"}, "says allowed=true"},
		{"allowed as it was linked", fetchRow{URL: originURL + "/r?a=2&z=1", Sent: originURL + "/r?z=1&a=2", Outcome: "ok", Allowed: &yes}, ""},
		{"denied because the canonical URL is", fetchRow{URL: originURL + "/r?a=2&z=1", Sent: originURL + "/r?z=1&a=2", Outcome: "robots_denied", Allowed: &no, Rule: "Disallow: /r?a=2&z=1"}, "says allowed=true"},
		{"denied by escapes", fetchRow{URL: originURL + "/~joe/a", Outcome: "robots_denied", Allowed: &no, Rule: "Disallow: /%7Ejoe/"}, ""},
		{"a redirect to a denied form", fetchRow{URL: originURL + "/a", Outcome: "robots_denied", Allowed: &yes, Error: denied, Detail: originURL + "/q?z=1&a=2&b: Disallow: /q?z=1&a=2"}, ""},
		{"a redirect to an allowed form", fetchRow{URL: originURL + "/a", Outcome: "robots_denied", Allowed: &yes, Error: denied, Detail: originURL + "/q?a=2&b&z=1: Disallow: /q?z=1&a=2"}, "says allowed=true"},
		{"a redirect to a form whose canonical URL is denied", fetchRow{URL: originURL + "/a", Outcome: "robots_denied", Allowed: &yes, Error: denied, Detail: originURL + "/r?z=1&a=2: Disallow: /r?a=2&z=1"}, "says allowed=true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := askJudge(t)
			if err := j.fetches(t.Context(), seq([]fetchRow{c.row})); err != nil {
				t.Fatal(err)
			}
			j.expectProblem(t, c.want)
		})
	}
}

// The target URI of a record, and the URL in its line of the index, are what was sent.
func TestARecordAndItsIndexHaveTheURLThatWasSent(t *testing.T) {
	const url, linked, body = "http://a.test/q?a=2&z=1", "http://a.test/q?z=1&a=2", "body"
	digest := warc.DigestOf([]byte(body))
	var file bytes.Buffer
	w := warc.NewWriter(&file)
	extents := map[string]warc.Extent{}
	for _, target := range []string{url, linked} {
		at, err := w.Write(&warc.Record{Type: warc.Response, Date: time.UnixMilli(1), TargetURI: target, Block: [][]byte{[]byte("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n" + body)}, PayloadDigest: digest})
		if err != nil {
			t.Fatal(err)
		}
		extents[target] = at
	}
	for _, c := range []struct{ name, sent, record, line, problem, mismatch string }{
		{"the canonical URL", "", url, url, "", ""},
		{"as it was linked", linked, linked, linked, "", ""},
		{"a record of the canonical URL", linked, url, linked, "the record has the URL " + url + ", the row " + linked, ""},
		{"a record as it was linked", "", linked, url, "the record has the URL " + linked + ", the row " + url, ""},
		{"a line of the canonical URL", linked, linked, url, "", "another URL or digest"},
		{"a line as it was linked", "", url, linked, "", "another URL or digest"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := archive{
				Audit: audit.New(audit.Options{Bucket: noStore{}, Config: config.Default()}), round: &audit.Round{}, reader: warc.NewReader(nil, warc.ReaderOptions{Check: true}),
				window: window{r: bytes.NewReader(file.Bytes()), size: int64(file.Len())},
			}
			at := extents[c.record]
			m := recordRef{locatedRecord: locatedRecord{URL: url, Sent: c.sent, Digest: digest.Value(), Offset: int32(at.Offset), Length: int32(at.Length)}}
			if problem, err := a.checkRecord(&m, compareRecord); err != nil || problem != c.problem {
				t.Errorf("the record: %q, %v; want %q", problem, err, c.problem)
			}
			x := index{key: "index", entries: []indexEntry{{offset: at.Offset, length: at.Length, hash: hashOf(c.line, digest.Value())}}}
			x.compare(&a, &m)
			if found := a.Report().Violations; c.mismatch == "" && len(found) > 0 || c.mismatch != "" && (len(found) != 1 || !strings.Contains(found[0].Problem, c.mismatch)) {
				t.Errorf("the line: %+v, want %q", found, c.mismatch)
			}
		})
	}
}

// A page has the form in which its capture was asked for.
func TestAPageWasSentAsItsCapture(t *testing.T) {
	const linked = "http://a.test/?b"
	row := func(sent string) locatedRecord {
		return locatedRecord{File: "w", Offset: 1, Length: 2, URL: "http://a.test/", Sent: sent, Digest: "d"}
	}
	for _, c := range []struct{ name, page, capture, want string }{
		{"the canonical URL", "", "", ""},
		{"as it was linked", linked, linked, ""},
		{"another form than its capture", linked, "", "was sent as " + linked + ", the"},
		{"the canonical URL, and its capture as it was linked", "", linked, "was sent as http://a.test/, the"},
	} {
		a := archive{Audit: audit.New(audit.Options{Bucket: noStore{}, Config: config.Default()}), round: &audit.Round{}}
		a.comparePointer(&recordRef{row(c.page), ofPage, "pages"}, &atPlace{capture: recordRef{row(c.capture), ofCapture, "captures"}})
		if found := a.Report().Violations; c.want == "" && len(found) > 0 || c.want != "" && (len(found) != 1 || !strings.Contains(found[0].Problem, c.want)) {
			t.Errorf("%s: %+v, want %q", c.name, found, c.want)
		}
	}
}

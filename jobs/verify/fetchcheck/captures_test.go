package fetchcheck

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
)

func TestOfWhatSaysNoarchiveExactlyThePayloadIsMissing(t *testing.T) {
	const head, body = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n", "secret"
	secret := warc.DigestOf([]byte(body))
	var file bytes.Buffer
	w := warc.NewWriter(&file)
	cases := []struct {
		name, block string
		reason      warc.Truncation // why content is missing, as the record says
		row         locatedRecord
		want        string // part of the expected problem; "" if no problem is expected
	}{
		{"withheld without a digest", head, warc.TruncatedUnspecified, locatedRecord{Truncated: "unspecified", Digest: secret.Value()}, ""},
		{"kept without a digest", head + body, warc.TruncatedUnspecified, locatedRecord{Truncated: "unspecified", Digest: secret.Value()}, "holds some of it"},
		{"without a digest or a word in the row", head, warc.TruncatedUnspecified, locatedRecord{Digest: secret.Value()}, "its payload withheld"},
		{"withheld", head, warc.TruncatedUnspecified, locatedRecord{Truncated: "unspecified", Digest: secret.Value()}, ""},
		{"kept all the same", head + body, warc.TruncatedUnspecified, locatedRecord{Truncated: "unspecified", Digest: secret.Value()}, "holds some of it"},
		{"in part", head + body[:1], warc.TruncatedUnspecified, locatedRecord{Truncated: "unspecified", Digest: secret.Value()}, "holds some of it"},
		{"without a word in the record", head, "", locatedRecord{Truncated: "unspecified", Digest: secret.Value()}, "does not say so"},
		{"for another reason", head, warc.TruncatedLength, locatedRecord{Truncated: "unspecified", Digest: secret.Value()}, "does not say so"},
		{"without a word in the row", head, warc.TruncatedUnspecified, locatedRecord{Digest: secret.Value()}, "its payload withheld"},
		{"kept", head + body, "", locatedRecord{Digest: secret.Value()}, ""},
	}
	var err error
	extents := make([]warc.Extent, len(cases))
	for i, c := range cases {
		record := &warc.Record{Type: warc.Response, Date: time.UnixMilli(1), TargetURI: "http://a.test/", Block: [][]byte{[]byte(c.block)}, Truncated: c.reason}
		if !strings.Contains(c.name, "without a digest") {
			record.PayloadDigest = secret
		}
		extents[i], err = w.Write(record)
		if err != nil {
			t.Fatal(err)
		}
	}
	a := archive{
		Audit: audit.New(audit.Options{Bucket: noStore{}, Config: config.Default()}), round: &audit.Round{}, reader: warc.NewReader(nil, warc.ReaderOptions{Check: true}),
		window: window{r: bytes.NewReader(file.Bytes()), size: int64(file.Len())},
	}
	for i, c := range cases {
		m := recordRef{locatedRecord: c.row}
		m.URL, m.Offset, m.Length = "http://a.test/", int32(extents[i].Offset), int32(extents[i].Length)
		problem, err := a.checkRecord(&m, compareRecord)
		if err != nil || (c.want == "") != (problem == "") || !strings.Contains(problem, c.want) {
			t.Errorf("%s: %q, %v; want %q", c.name, problem, err, c.want)
		}
	}
}

func TestAPageSaysWhyItsContentIsNotKept(t *testing.T) {
	at := locatedRecord{File: "w", Offset: 1, Length: 2, URL: "u", Digest: "d"}
	row := func(truncated, robots string) locatedRecord {
		l := at
		l.Truncated, l.Robots = truncated, robots
		return l
	}
	for _, c := range []struct {
		name          string
		page, capture locatedRecord
		want          string
	}{
		{"kept", row("", "noindex"), row("", ""), ""},
		{"not kept", row("unspecified", "noindex,noarchive"), row("unspecified", ""), ""},
		{"kept against its word", row("", "noarchive,x"), row("", ""), "says noarchive, but the record"},
		{"not kept without its word", row("unspecified", "noindex"), row("unspecified", ""), "does not say noarchive"},
	} {
		a := archive{Audit: audit.New(audit.Options{Bucket: noStore{}, Config: config.Default()}), round: &audit.Round{}}
		a.comparePointer(&recordRef{c.page, ofPage, "pages"}, &atPlace{capture: recordRef{c.capture, ofCapture, "captures"}})
		found := a.Report().Violations
		if c.want == "" && len(found) > 0 || c.want != "" && (len(found) != 1 || !strings.Contains(found[0].Problem, c.want)) {
			t.Errorf("%s: %+v, want %q", c.name, found, c.want)
		}
	}
	keeping := config.Default()
	keeping.Store.NoArchive = config.NoArchiveKeep
	a := archive{Audit: audit.New(audit.Options{Bucket: noStore{}, Config: keeping}), round: &audit.Round{}}
	a.comparePointer(&recordRef{row("", "noarchive"), ofPage, "pages"}, &atPlace{capture: recordRef{row("", ""), ofCapture, "captures"}})
	if found := a.Report().Violations; len(found) > 0 {
		t.Errorf("store.noarchive: keep: %+v", found)
	}
}

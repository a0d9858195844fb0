package warc_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/warc"
)

func TestIndexIsSortedCDXJ(t *testing.T) {
	var index warc.Index
	for _, c := range []warc.Capture{
		{
			SURT: "org,example)/b", Date: testDate, URL: "https://example.org/b?x=<&>", MIME: "text/html", Detected: "application/xhtml+xml",
			Status: 200, Digest: warc.DigestOf(), Filename: "a.warc.gz", Extent: warc.Extent{Offset: 1234, Length: 56},
			Charset: "UTF-8", Languages: "eng,deu", Truncated: warc.TruncatedLength,
		},
		{SURT: "org,example)/a", Date: testDate.Add(time.Hour), URL: "https://example.org/a", Status: 301, Redirect: "https://example.org/b", Filename: "a.warc.gz"},
		{SURT: "org,example)/a", Date: testDate, URL: "https://example.org/a", MIME: "text/html", Revisit: true, Filename: "a.warc.gz"},
		{SURT: "org,example)/a b\nc", Date: testDate, URL: "https://example.org/a b\nc\xff", Filename: "a.warc.gz"},
	} {
		if err := index.Add(c); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	n, err := index.WriteTo(&out)
	if err != nil || n != int64(out.Len()) || index.Len() != 4 {
		t.Errorf("WriteTo: %d bytes of %d, %d captures, %v", n, out.Len(), index.Len(), err)
	}
	want := `org,example)/a 20261103040506 {"url":"https://example.org/a","mime":"warc/revisit","length":"0","offset":"0","filename":"a.warc.gz"}
org,example)/a 20261103050506 {"url":"https://example.org/a","status":"301","length":"0","offset":"0","filename":"a.warc.gz","redirect":"https://example.org/b"}
org,example)/a%20b%0ac 20261103040506 {"url":"https://example.org/a b\nc\ufffd","length":"0","offset":"0","filename":"a.warc.gz"}
org,example)/b 20261103040506 {"url":"https://example.org/b?x=<&>","mime":"text/html","mime-detected":"application/xhtml+xml","status":"200","digest":"3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ","length":"56","offset":"1234","filename":"a.warc.gz","charset":"UTF-8","languages":"eng,deu","truncated":"length"}
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

package table_test

import (
	"bytes"
	"crypto/sha1"
	"encoding/base32"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
)

func newStore(t testing.TB) store.Bucket {
	t.Helper()
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// captures returns n rows, sorted by SURT, that resemble rows of a partition: 40 hosts, two per
// domain, paths of a few words, incompressible digests.
func captures(n int) []schema.Capture {
	rng := rand.New(rand.NewPCG(1, 2))
	words := []string{"news", "article", "2026", "product", "the-way-home", "archive", "blog", "tag", "item", "winter-sale", "about", "list"}
	out := make([]schema.Capture, n)
	offset := int32(0)
	for i := range out {
		host := i * 40 / n
		domain := fmt.Sprintf("site-%02d.co.uk", host/2)
		name := [2]string{"shop.", "www."}[host%2] + domain
		path := fmt.Sprintf("/%s/%s/%06d-%s-%s", words[rng.IntN(12)], words[rng.IntN(12)], i, words[rng.IntN(12)], words[rng.IntN(12)])
		sum := sha1.Sum([]byte(path))
		length := int32(8000 + rng.IntN(60000))
		out[i] = schema.Capture{
			URLColumns: schema.URLColumns{
				SURT: fmt.Sprintf("uk,co,site-%02d,%s)%s", host/2, [2]string{"shop", "www"}[host%2], path),
				URL:  "https://" + name + path, HostName: name, HostTLD: "uk", Host2ndLastPart: "co",
				Host3rdLastPart: fmt.Sprintf("site-%02d", host/2), Host4thLastPart: [2]string{"shop", "www"}[host%2],
				HostRegistrySuffix: "co.uk", HostRegisteredDomain: domain, HostPrivateSuffix: "co.uk", HostPrivateDomain: domain,
				HostNameReversed: fmt.Sprintf("uk.co.site-%02d.%s", host/2, [2]string{"shop", "www"}[host%2]),
				Protocol:         "https", Path: path,
			},
			CaptureColumns: schema.CaptureColumns{
				FetchTime: 1794000000000_000 + schema.Time(rng.IntN(72_000_000))*1000, FetchStatus: 200,
				ContentDigest: base32.StdEncoding.EncodeToString(sum[:]),
				MimeType:      "text/html", MimeDetected: "text/html", Charset: "UTF-8", Languages: "eng",
				WARCFilename:     fmt.Sprintf("warc/crawl=2026-11/round=0/part-00017-e1-%05d.warc.gz", offset>>30),
				WARCRecordOffset: offset & (1<<30 - 1), WARCRecordLength: length, WARCSegment: "part-00017",
			},
		}
		offset += length
		if offset < 0 {
			offset = 0
		}
	}
	return out
}

func TestNullsOfWorkingPagesStayNull(t *testing.T) {
	yes := true
	want := []schema.WorkingPage{{PageColumns: schema.PageColumns{URLColumns: schema.URLColumns{URL: "a"}}},
		{PageColumns: schema.PageColumns{URLColumns: schema.URLColumns{URL: "b"}}, Changed: &yes}}
	s := newStore(t)
	write(t, s, "pages.parquet", want)
	got := tabletest.Read[schema.WorkingPage](t, s, "pages.parquet")
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
}

func TestPointersInEmbeddedStructsAreRefused(t *testing.T) {
	type inner struct {
		Maybe *bool `parquet:"maybe,optional"`
	}
	type row struct {
		inner
		Key int64 `parquet:"key"`
	}
	if _, err := table.NewWriterTo[row](&bytes.Buffer{}); err == nil {
		t.Error("a writer accepts them, but a reader would return false for null")
	}
}

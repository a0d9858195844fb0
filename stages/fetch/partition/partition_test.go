package partition

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/schema"
)

func TestPlannedRowsSurviveScratch(t *testing.T) {
	want := schema.PlannedRow{PlannedURL: schema.PlannedURL{URL: "u", SURT: "s", Host: "h", Domain: "d", Priority: -7, Depth: 3, ContentDigest: "c", ETag: `"é"`, LastModified: "", Fetches: 9,
		ContentAt: -1, WARCFilename: "w", WARCRecordOff: 1 << 30, WARCRecordLen: 2, Form: schema.Form{Sent: "é", SentFrom: schema.SentAnswered}}}
	b := rowCodec.Append(nil, &want)
	var got schema.PlannedRow
	if err := rowCodec.Decode(string(b), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for i := range b {
		if err := rowCodec.Decode(string(b[:i]), &got); err == nil {
			t.Errorf("the first %d of %d bytes were decoded without an error", i, len(b))
		}
	}
}

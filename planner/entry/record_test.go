package entry

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/source"
)

// FuzzRecord checks that a record is unchanged after encoding and decoding for scratch space.
func FuzzRecord(f *testing.F) {
	f.Add("http://www.example.com:8080/a?b=c", "etag", int32(500), uint64(7))
	f.Add("https://com.com.com/", "", int32(-1), uint64(1)<<63)
	f.Add("http://[::1]:81/", "x", int32(2000), uint64(0))
	f.Fuzz(func(t *testing.T, raw, etag string, n int32, place uint64) {
		c, err := urlkey.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		k, err := c.Canonical(raw, "")
		if err != nil {
			t.Skip()
		}
		var content source.Content
		if etag != "" {
			content = source.Content{At: schema.Time(place >> 1), Filename: etag, Offset: n & (1<<31 - 1), Length: 7}
		}
		want := New(k, &source.Entry{Due: true, Priority: n, Depth: n, Fetches: n, ETag: etag, Content: content}, schema.Form{Sent: raw, SentFrom: schema.SentFrom(etag)}, Seq(place))
		var got Record
		if err := Records.Decode(string(Records.Append(nil, &want)), &got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-wrote +read):\n%s", d)
		}
		key, rest := ByDomain.appendKey(nil, &want), appendRest(nil, &want)
		byHost, err := ByHost.rekey(nil, key, rest)
		if d := cmp.Diff(ByHost.appendKey(nil, &want), byHost); err != nil || d != "" {
			t.Errorf("key by host: %v (-want +got):\n%s", err, d)
		}
		for order, key := range map[*Order][]byte{&ByDomain: key, &ByHost: byHost} {
			_, err := order.decode(nil, key, rest, &got)
			if d := cmp.Diff(want, got); err != nil || d != "" {
				t.Errorf("key and rest: %v (-wrote +read):\n%s", err, d)
			}
		}
	})
}

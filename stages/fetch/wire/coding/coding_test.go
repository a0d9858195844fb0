package coding

import (
	"slices"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/formats/http1/wiretest"
	"github.com/google/go-cmp/cmp"
)

type decoded struct {
	http1.Response
	Decoded
}

func (d *decoded) Release() { d.Decoded.Release() }

// decode decodes a payload. field is the value of Content-Encoding.
func decode(payload, field string, maxBody int64) *decoded {
	d := &decoded{Response: http1.Response{Payload: []byte(payload), Header: http1.Header{{Name: "Content-Encoding", Value: field}}}}
	d.Decode(&d.Response, maxBody)
	return d
}

const usualLimit = 5 << 20

func TestCodingsAreUndone(t *testing.T) {
	texts := map[string]string{"short": wiretest.Page, "long": wiretest.LongPage, "noise": wiretest.Noise(200_000), "one byte": "x"}
	for name, text := range texts {
		for _, tt := range []struct {
			field  string
			layers []string // codings of the body
			want   []string // codings that must be undone
		}{
			{"gzip", []string{"gzip"}, []string{"gzip"}},
			{"GZIP", []string{"gzip"}, []string{"gzip"}},
			{"x-gzip", []string{"gzip"}, []string{"gzip"}},
			{"deflate", []string{"deflate"}, []string{"deflate"}},
			{"deflate", []string{"raw deflate"}, []string{"deflate"}},
			{"deflate", []string{"gzip"}, []string{"deflate"}},
			{"br", []string{"br"}, []string{"br"}},
			{"zstd", []string{"zstd"}, []string{"zstd"}},
			{"identity, br, gzip", []string{"br", "gzip"}, []string{"gzip", "br"}},
			{"gzip, br, zstd, deflate, gzip", []string{"gzip", "br", "zstd", "deflate", "gzip"}, []string{"gzip", "deflate", "zstd", "br", "gzip"}},
			{", gzip ,", []string{"gzip"}, []string{"gzip"}},
		} {
			payload := text
			for _, l := range tt.layers {
				payload = wiretest.Encode(l, payload)
			}
			x := decode(payload, tt.field, usualLimit)
			if string(x.Body) != text || x.BodyTruncated != http1.Complete || len(x.Warnings) > 0 {
				t.Errorf("%s, %v as %q: %d bytes, truncated %q, warnings %q", name, tt.layers, tt.field, len(x.Body), x.BodyTruncated, x.Warnings)
			}
			if d := cmp.Diff(tt.want, x.Codings); d != "" {
				t.Errorf("%s, %v as %q: codings (-want +got)\n%s", name, tt.layers, tt.field, d)
			}
			if string(x.Payload) != payload {
				t.Errorf("%s, %v: the payload was changed", name, tt.layers)
			}
			x.Release()
		}
	}
}

func TestCutEncodingsKeepWhatTheyHold(t *testing.T) {
	text := wiretest.Noise(300_000)
	for _, coding := range []string{"gzip", "deflate", "br", "zstd"} {
		whole := wiretest.Encode(coding, text)
		x := decode(whole[:len(whole)*3/4], coding, usualLimit)
		if len(x.Body) < len(text)/4 || !strings.HasPrefix(text, string(x.Body)) || x.BodyTruncated != http1.TruncDisconnect || x.Truncated != http1.Complete {
			t.Errorf("%s: kept %d of %d bytes, truncated %q", coding, len(x.Body), len(text), x.BodyTruncated)
		}
		if d := cmp.Diff([]string{WarnTruncated}, wiretest.Codes(x.Warnings)); d != "" {
			t.Errorf("%s: warnings (-want +got)\n%s", coding, d)
		}
		if x = decode(whole+"\x00garbage", coding, usualLimit); string(x.Body) != text || x.BodyTruncated != http1.Complete {
			t.Errorf("%s with bytes after it: %d bytes, truncated %q", coding, len(x.Body), x.BodyTruncated)
		}
		if d := cmp.Diff([]string{WarnTrailing}, wiretest.Codes(x.Warnings)); d != "" {
			t.Errorf("%s with bytes after it: warnings (-want +got)\n%s", coding, d)
		}
	}
}

func TestBombsAreCut(t *testing.T) {
	zeros := strings.Repeat("\x00", 16<<20)
	bomb := wiretest.Encode("gzip", zeros)
	var members strings.Builder // gzip stream of many empty members
	empty := wiretest.Encode("gzip", "")
	for members.Len() < 8<<20 {
		members.WriteString(empty)
	}
	tests := []struct {
		name, field, payload string
		max                  int
	}{
		{"gzip", "gzip", bomb, 5 << 20},
		{"deflate", "deflate", wiretest.Encode("deflate", zeros), 5 << 20},
		{"br", "br", wiretest.Encode("br", zeros), 5 << 20},
		{"zstd", "zstd", wiretest.Encode("zstd", zeros), 5 << 20},
		{"gzip in gzip", "gzip, gzip", wiretest.Encode("gzip", bomb), 5 << 20},
		{"gzip in br", "gzip, br", wiretest.Encode("br", bomb), 5 << 20},
		{"four deep", "gzip, gzip, gzip, gzip", wiretest.Encode("gzip", wiretest.Encode("gzip", wiretest.Encode("gzip", bomb))), 5 << 20},
		{"empty members in gzip", "gzip, gzip", wiretest.Encode("gzip", members.String()), 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := decode(tt.payload, tt.field, usualLimit)
			defer x.Release()
			if len(x.Body) > tt.max || x.BodyTruncated != http1.TruncLength {
				t.Errorf("%d bytes became %d (at most %d), truncated %q, warnings %q", len(tt.payload), len(x.Body), tt.max, x.BodyTruncated, x.Warnings)
			}
		})
	}
}

// A template or a table of zeros has a ratio of decoded to encoded bytes like that of a bomb. Only the limit of
// bodies counts, unless it is that of a long sitemap.
func TestARatioIsNoReasonToCut(t *testing.T) {
	for _, coding := range []string{"gzip", "deflate", "br", "zstd"} {
		body := strings.Repeat("a", usualLimit-1)
		x := decode(wiretest.Encode(coding, body), coding, usualLimit)
		if string(x.Body) != body || x.BodyTruncated != http1.Complete || len(x.Warnings) > 0 {
			t.Errorf("%s: %d bytes, truncated %q, warnings %q", coding, len(x.Body), x.BodyTruncated, x.Warnings)
		}
		x.Release()
	}
	x := decode(wiretest.Encode("br", strings.Repeat("a", 8<<20)), "br", 50<<20)
	if d := cmp.Diff([]string{WarnBomb}, wiretest.Codes(x.Warnings)); d != "" || len(x.Body) != freeRatio || x.BodyTruncated != http1.TruncLength {
		t.Errorf("%d bytes, truncated %q, warnings %q", len(x.Body), x.BodyTruncated, x.Warnings)
	}
}

// A body that is complete counts, whatever its checksum and length say. A body that is not complete is cut.
func TestACompleteBodyMayHaveAWrongChecksum(t *testing.T) {
	at := func(b string, i int) string {
		c := []byte(b)
		c[len(c)+i] ^= 0xff
		return string(c)
	}
	gz := wiretest.Encode("gzip", wiretest.LongPage)
	for name, c := range map[string]struct {
		coding, payload string
		cut             http1.Truncation
		warning         string
	}{
		"checksum of gzip":             {"gzip", at(gz, -8), http1.Complete, WarnChecksum},
		"length of gzip":               {"gzip", at(gz, -1), http1.Complete, WarnChecksum},
		"checksum of a member":         {"gzip", at(wiretest.Encode("gzip", ""), -8) + gz, http1.Complete, WarnChecksum},
		"checksum and bytes after it":  {"gzip", at(gz, -8) + "junk", http1.Complete, WarnTrailing},
		"checksum of gzip as deflate":  {"deflate", at(gz, -8), http1.Complete, WarnChecksum},
		"checksum of deflate":          {"deflate", at(wiretest.Encode("deflate", wiretest.LongPage), -1), http1.Complete, ""},
		"checksum of zstd":             {"zstd", at(wiretest.Encode("zstd", wiretest.LongPage), -1), http1.Complete, ""},
		"gzip without its second half": {"gzip", gz[:len(gz)/2], http1.TruncDisconnect, WarnTruncated},
	} {
		x := decode(c.payload, c.coding, usualLimit)
		if whole := string(x.Body) == wiretest.LongPage; whole != (c.cut == http1.Complete) || x.BodyTruncated != c.cut ||
			c.warning != "" && !slices.Contains(wiretest.Codes(x.Warnings), c.warning) {
			t.Errorf("%s: whole %t, truncated %q, warnings %q", name, whole, x.BodyTruncated, x.Warnings)
		}
		x.Release()
	}
}

// A zstd frame may claim to need a window of terabytes.
func TestZstdWindowIsBounded(t *testing.T) {
	x := decode("\x28\xb5\x2f\xfd\x00\xff\x01\x00\x00", "zstd", usualLimit)
	if len(x.Body) != 0 || x.BodyTruncated != http1.TruncDisconnect {
		t.Errorf("%d bytes, truncated %q, warnings %q", len(x.Body), x.BodyTruncated, x.Warnings)
	}
}

// FuzzDecode checks the limits for any payload under any codings.
func FuzzDecode(f *testing.F) {
	for _, c := range []string{"gzip", "deflate", "raw deflate", "br", "zstd"} {
		e := wiretest.Encode(c, wiretest.Page)
		f.Add([]byte(e), strings.TrimPrefix(c, "raw "))
		f.Add([]byte(e[:len(e)/2]), strings.TrimPrefix(c, "raw "))
	}
	f.Add([]byte(wiretest.Encode("gzip", wiretest.Encode("br", wiretest.Page))), "br, gzip")
	f.Fuzz(func(t *testing.T, payload []byte, field string) {
		if len(payload) > 64<<10 {
			return
		}
		before := string(payload)
		x := decode(before, field, 64<<10)
		if len(x.Body) > 64<<10 && len(x.Codings) > 0 || string(x.Payload) != before {
			t.Errorf("%d bytes decoded to %d", len(payload), len(x.Body))
		}
		if len(x.Codings) == 0 && string(x.Body) != before {
			t.Error("nothing was undone and the body is another")
		}
		if text, err := Text(&x.Response, &x.Decoded, 1<<10); len(text) > 1<<10 || err != nil && err != ErrEncoded {
			t.Errorf("a text of %d bytes, %v", len(text), err)
		}
		x.Release()
	})
}

package wire

import (
	"bytes"
	"compress/flate"
	"compress/zlib"
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// noise is text of n bytes that hardly compresses, always the same.
func noise(n int) string {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(' ' + r.IntN(95))
	}
	return string(b)
}

func encode(t testing.TB, coding, s string) string {
	t.Helper()
	var b bytes.Buffer
	switch coding {
	case "gzip", "x-gzip":
		w := gzip.NewWriter(&b)
		w.Write([]byte(s))
		w.Close()
	case "deflate":
		w := zlib.NewWriter(&b)
		w.Write([]byte(s))
		w.Close()
	case "raw deflate":
		w, _ := flate.NewWriter(&b, -1)
		w.Write([]byte(s))
		w.Close()
	case "br":
		w := brotli.NewWriter(&b)
		w.Write([]byte(s))
		w.Close()
	case "zstd":
		w, err := zstd.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		w.Write([]byte(s))
		w.Close()
	default:
		t.Fatalf("no coding %q", coding)
	}
	return b.String()
}

// decode runs the decoder over a payload whose Content-Encoding is field.
func decode(payload, field string, d decoder) *Exchange {
	x := &Exchange{Payload: []byte(payload), Header: Header{{"Content-Encoding", field}}}
	d.body(x)
	return x
}

var usualLimits = decoder{maxBody: 5 << 20, maxRatio: 256}

func TestCodingsAreUndone(t *testing.T) {
	texts := map[string]string{"short": page, "long": longPage, "noise": noise(200_000), "one byte": "x"}
	for name, text := range texts {
		for _, tt := range []struct {
			field  string
			layers []string // as applied
			want   []string // as undone
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
				payload = encode(t, l, payload)
			}
			x := decode(payload, tt.field, usualLimits)
			if string(x.Body) != text || x.BodyTruncated != Complete || len(x.Warnings) > 0 {
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
	text := noise(300_000)
	for _, coding := range []string{"gzip", "deflate", "br", "zstd"} {
		whole := encode(t, coding, text)
		x := decode(whole[:len(whole)*3/4], coding, usualLimits)
		if len(x.Body) < len(text)/4 || !strings.HasPrefix(text, string(x.Body)) || x.BodyTruncated != TruncDisconnect || x.Truncated != Complete {
			t.Errorf("%s: kept %d of %d bytes, truncated %q", coding, len(x.Body), len(text), x.BodyTruncated)
		}
		if d := cmp.Diff([]string{WarnCodingTruncated}, codes(x.Warnings)); d != "" {
			t.Errorf("%s: warnings (-want +got)\n%s", coding, d)
		}
		if x = decode(whole+"\x00garbage", coding, usualLimits); string(x.Body) != text || x.BodyTruncated != Complete {
			t.Errorf("%s with bytes after it: %d bytes, truncated %q", coding, len(x.Body), x.BodyTruncated)
		}
		if d := cmp.Diff([]string{WarnCodingTrailing}, codes(x.Warnings)); d != "" {
			t.Errorf("%s with bytes after it: warnings (-want +got)\n%s", coding, d)
		}
	}
}

func TestBombsAreCut(t *testing.T) {
	zeros := strings.Repeat("\x00", 16<<20)
	bomb := encode(t, "gzip", zeros)
	var members strings.Builder // that decode to nothing, over and over
	empty := encode(t, "gzip", "")
	for members.Len() < 8<<20 {
		members.WriteString(empty)
	}
	tests := []struct {
		name, field, payload string
		max                  int
	}{
		{"gzip", "gzip", bomb, 5 << 20},
		{"deflate", "deflate", encode(t, "deflate", zeros), 5 << 20},
		{"br", "br", encode(t, "br", zeros), freeRatio},
		{"zstd", "zstd", encode(t, "zstd", zeros), 2 << 20},
		{"gzip in gzip", "gzip, gzip", encode(t, "gzip", bomb), 5 << 20},
		{"gzip in br", "gzip, br", encode(t, "br", bomb), 5 << 20},
		{"four deep", "gzip, gzip, gzip, gzip", encode(t, "gzip", encode(t, "gzip", encode(t, "gzip", bomb))), freeRatio},
		{"empty members in gzip", "gzip, gzip", encode(t, "gzip", members.String()), 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := decode(tt.payload, tt.field, usualLimits)
			defer x.Release()
			if len(x.Body) > tt.max || x.BodyTruncated != TruncLength {
				t.Errorf("%d bytes became %d (at most %d), truncated %q, warnings %q", len(tt.payload), len(x.Body), tt.max, x.BodyTruncated, x.Warnings)
			}
		})
	}
}

// Inflating stays within a limit that ratio alone sets.
func TestRatioWarning(t *testing.T) {
	x := decode(encode(t, "br", strings.Repeat("a", 8<<20)), "br", usualLimits)
	if d := cmp.Diff([]string{WarnDecompressionBomb}, codes(x.Warnings)); d != "" || len(x.Body) != freeRatio {
		t.Errorf("%d bytes, warnings %q", len(x.Body), x.Warnings)
	}
	x = decode(encode(t, "br", strings.Repeat("a", freeRatio)), "br", usualLimits)
	if len(x.Body) != freeRatio || x.BodyTruncated != Complete {
		t.Errorf("a body of just a MiB: %d bytes, truncated %q", len(x.Body), x.BodyTruncated)
	}
}

// A zstd frame may ask for a window of terabytes.
func TestZstdWindowIsBounded(t *testing.T) {
	x := decode("\x28\xb5\x2f\xfd\x00\xff\x01\x00\x00", "zstd", usualLimits)
	if len(x.Body) != 0 || x.BodyTruncated != TruncDisconnect {
		t.Errorf("%d bytes, truncated %q, warnings %q", len(x.Body), x.BodyTruncated, x.Warnings)
	}
}

func TestPrefixIsDecoded(t *testing.T) {
	text := noise(50_000)
	addr := rawServer(t, answer("HTTP/1.1 200 OK\r\nContent-Encoding: br, gzip\r\n\r\n"+encode(t, "gzip", encode(t, "br", text))))
	var got string
	x, err := clientTo(t, addr, nil).Do(context.Background(), &Request{URL: "http://host.test/", OnPrefix: func(_ *Exchange, b []byte) bool {
		got = string(b)
		return true
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Release()
	if len(got) == 0 || !strings.HasPrefix(text, got) {
		t.Errorf("prefix %.40q of %d bytes", got, len(got))
	}
	if string(x.Body) != text {
		t.Errorf("body of %d bytes", len(x.Body))
	}
}

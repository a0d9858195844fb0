package planner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"

	"crawlbatch.io/crawlbatch/planner/entry"
	"crawlbatch.io/crawlbatch/planner/source"
)

// longTexts are texts that repeat to long URLs.
var longTexts = map[string]string{
	"plain": "x", "slashes": "/", "parameters": "&a=1", "entities": "&amp;", "quotes": `"`, "separators": ",", "backslashes": `\`, "percents": "%",
	"percent escapes": "%E2%80%AE", "white space": " ", "tabs": "\t", "carriage returns": "\r", "line ends": "\r\n", "right-to-left override": "\u202e",
	"zero width": "\u200b\u200d\ufeff", "combining": "e\u0301\u0323\u0300", "full width": "．／％", "surrogates as UTF-8": "\xed\xa0\x80\xed\xb0\x80",
	"noncharacters": "\ufffe\U0010ffff", "overlong": "\xc0\xaf\xe0\x80\xaf", "cut runes": "\xf0\x9f\xf0", "bytes that are not UTF-8": "\xff\xfe", "NUL": "\x00",
	"controls": "\x01\x1b\x7f\u0085\u2028", "emoji": "👩‍👩‍👧‍👦", "case folding": "İıſKÅß", "private use": "\ue000", "tags": "\U000e0041", "ideographs": "例え", "dots": "../",
}

// TestALongURLIsRefusedAlone plans from files of each format with a URL of 10 MB or 200 kB, which the text
// "/end" ends. The URLs before and after it must be planned, and the long URL must be refused once.
func TestALongURLIsRefusedAlone(t *testing.T) {
	const first, last = "http://a.example/first", "http://a.example/last"
	quoted := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
	asJSON := func(s string) string {
		b, err := json.Marshal(map[string]string{"url": s})
		if err != nil {
			t.Fatal(err)
		}
		return string(b) + "\n"
	}
	for _, f := range []struct {
		file string
		make func(urls ...string) string
		not  string // characters that would end the URL in this format
	}{
		{"text.txt", func(urls ...string) string { return strings.Join(urls, "\n") }, "\n"},
		{"plain.csv", func(urls ...string) string { return "url,n\n" + strings.Join(urls, ",1\n") + ",1\n" }, "\n,"},
		{"quoted.csv", func(urls ...string) string {
			return "n,url\n1," + quoted(urls[0]) + "\n1," + quoted(urls[1]) + "\n1," + quoted(urls[2]) + "\n"
		}, "\n"},
		{"lines.jsonl", func(urls ...string) string { return asJSON(urls[0]) + asJSON(urls[1]) + asJSON(urls[2]) }, ""},
		{"rows.parquet", func(urls ...string) string { return parquetOf(t, &parquet.Plain, urls) }, ""},
		{"dictionary.parquet", func(urls ...string) string { return parquetOf(t, &parquet.RLEDictionary, urls) }, ""},
	} {
		for name, text := range longTexts {
			if f.not != "" && strings.ContainsAny(text, f.not) || testing.Short() && name != "plain" {
				continue
			}
			for _, host := range []string{"http://a.example/", "http://"} {
				path := filepath.Join(t.TempDir(), f.file)
				size := 10 << 20
				if name != "plain" {
					size = 200_000 // more than source.MaxURL
				}
				body := f.make(first, host+strings.Repeat(text, size/len(text))+"/end", last)
				if err := os.WriteFile(path, []byte(body), 0o644); err != nil {
					t.Fatal(err)
				}
				s, err := source.Files(path, nil)
				if err != nil {
					t.Fatal(err)
				}
				_, parts, refused := commitAndRead(t, bucket(t), plan(t, Default(), s))
				if got := planned(parts); !slices.Equal(got, []string{first, last}) {
					t.Errorf("%s, %s: planned %.200q", f.file, name, got)
				}
				if len(refused) != 1 || refused[0].Reason == "" || len(refused[0].URL) > 3*entry.MaxText || len(refused[0].Detail) > entry.MaxText {
					t.Errorf("%s, %s: %d refused: %.300s", f.file, name, len(refused), fmt.Sprint(refused))
				}
			}
		}
	}
}

// parquetOf returns a Parquet file with a column url.
func parquetOf(t *testing.T, e encoding.Encoding, urls []string) string {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewWriter(&b, parquet.NewSchema("list", parquet.Group{"url": parquet.Encoded(parquet.String(), e)}))
	for _, u := range urls {
		if err := w.Write(map[string]any{"url": u}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestManyLongURLsTakeBoundedMemory reads 40 URLs of 10 MB from a file of each format that is a stream.
func TestManyLongURLsTakeBoundedMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	long := "http://a.example/" + strings.Repeat("x", 10<<20)
	for file, line := range map[string]string{"u.txt": long + "\n", "u.csv": long + "\n", "u.jsonl": `{"url":"` + long + "\"}\n"} {
		path := filepath.Join(t.TempDir(), file)
		out, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, ".csv") {
			_, err = out.WriteString("url\n")
		}
		for range 40 {
			if _, werr := out.WriteString(line); err == nil {
				err = werr
			}
		}
		if cerr := out.Close(); err != nil || cerr != nil {
			t.Fatal(err, cerr)
		}
		s, err := source.Files(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		before, most, n := m.HeapInuse, m.HeapInuse, 0
		for _, err := range s.Entries(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			n++
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapInuse)
		}
		if n != 40 || most-before > 48<<20 {
			t.Errorf("%s: %d entries, %d bytes, more than 48 MiB", file, n, most-before)
		}
	}
}

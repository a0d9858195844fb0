package source

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
)

// indexRow has a column of each type that a condition can compare, and columns that no condition can
// compare.
type indexRow struct {
	URL      string    `parquet:"url,dict"`
	Host     string    `parquet:"host"`
	Status   int16     `parquet:"status"`
	Length   *int64    `parquet:"length,optional"`
	Big      uint64    `parquet:"big"`
	Score    float64   `parquet:"score"`
	Rate     float32   `parquet:"rate"`
	OK       bool      `parquet:"ok"`
	Fetched  time.Time `parquet:"fetched,timestamp(millisecond)"`
	Written  time.Time `parquet:"written,timestamp(nanosecond)"`
	Day      int32     `parquet:"day,date"`
	Lang     *string   `parquet:"lang,optional"`
	Priority int32     `parquet:"priority"`
	Tags     []string  `parquet:"tags,list"`
	Price    int64     `parquet:"price,decimal(2:18)"`
	ID       [16]byte  `parquet:"id,uuid"`
	Nested   struct {
		URL string `parquet:"url"`
	} `parquet:"nested"`
}

var epoch = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// indexRows returns rows that are sorted by host, as in an index of captures.
func indexRows(n int) []indexRow {
	rng := rand.New(rand.NewPCG(1, 2))
	rows := make([]indexRow, n)
	for i := range rows {
		host := fmt.Sprintf("host%05d.example", i/7)
		rows[i] = indexRow{
			URL: fmt.Sprintf("http://%s/%d", host, i), Host: host, Status: []int16{200, 200, 301, 404, 503}[rng.IntN(5)], Big: uint64(i) << 49,
			Score: rng.NormFloat64(), Rate: float32(i) / 10, OK: i%3 == 0, Fetched: epoch.Add(time.Duration(i) * time.Minute),
			Written: epoch.Add(time.Duration(i) * time.Second), Day: 20_758 + int32(i/1440), Priority: int32(i % 1001),
		}
		if i%4 != 0 {
			length := rng.Int64N(1e6)
			rows[i].Length = &length
		}
		if lang := []string{"eng", "deu", "eng,deu", ""}[rng.IntN(4)]; lang != "" {
			rows[i].Lang = &lang
		}
	}
	return rows
}

// indexFile writes rows in small pages and row groups.
func indexFile(t *testing.T, rows []indexRow, options ...parquet.WriterOption) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[indexRow](&b, append(options, parquet.PageBufferSize(2000), parquet.MaxRowsPerRowGroup(3000))...)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// counted counts the bytes that a reader takes.
type counted struct {
	*bytes.Reader
	n int
}

func (c *counted) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.Reader.ReadAt(p, off)
	c.n += n
	return n, err
}

// readBack reads a Parquet file with options, and returns the entries and the number of bytes read.
func readBack(t *testing.T, content []byte, options string) ([]Entry, int, error) {
	t.Helper()
	_, how, err := splitName(options)
	if err != nil {
		t.Fatal(err)
	}
	in := &counted{Reader: bytes.NewReader(content)}
	var out []Entry
	_, err = readParquet(t.Context(), &file{name: "u", at: in, size: int64(len(content))}, &how, func(e Entry) bool {
		out = append(out, e)
		return true
	})
	return out, in.n, err
}

// Whatever the library makes of LZ4, the file is refused before its first row.
func TestParquetWithLZ4IsRefusedAtTheStart(t *testing.T) {
	rows := indexRows(10)
	files := map[string][]byte{"LZ4_RAW": indexFile(t, rows, parquet.Compression(&parquet.Lz4Raw))}
	if pyarrow, err := os.ReadFile("../../../shared/data/field/pyarrow-lz4.parquet"); err == nil {
		files["LZ4"] = pyarrow
	} else {
		t.Log("without ../shared/data/field/pyarrow-lz4.parquet only a file of this library is read")
	}
	for name, content := range files {
		entries, _, err := readBack(t, content, "u")
		if len(entries) > 0 || !errors.Is(err, ErrUnreadable) || !strings.Contains(err.Error(), "is compressed with LZ4") || !strings.Contains(err.Error(), "zstd or snappy") {
			t.Errorf("%s: %d entries, %v", name, len(entries), err)
		}
	}
	for _, codec := range []compress.Codec{&parquet.Uncompressed, &parquet.Snappy, &parquet.Gzip, &parquet.Brotli, &parquet.Zstd} {
		if entries, _, err := readBack(t, indexFile(t, rows, parquet.Compression(codec)), "u"); len(entries) != len(rows) || err != nil {
			t.Errorf("%s: %d entries, %v", codec, len(entries), err)
		}
	}
}

// TestConditionsSkipPagesAndLoseNoRow compares conditions with the same comparisons in Go.
func TestConditionsSkipPagesAndLoseNoRow(t *testing.T) {
	rows := indexRows(30_000)
	files := map[string][]byte{
		"v2":             indexFile(t, rows),
		"v1, compressed": indexFile(t, rows, parquet.DataPageVersion(1), parquet.Compression(&parquet.Zstd)),
		"one page":       indexFile(t, rows, parquet.PageBufferSize(1<<20), parquet.DataPageStatistics(false)),
	}
	str := func(s *string) string {
		if s == nil {
			return "\x00"
		}
		return *s
	}
	for _, tc := range []struct {
		where string
		want  func(r *indexRow) bool
		skips bool // few pages hold the rows
	}{
		{"status = 200", func(r *indexRow) bool { return r.Status == 200 }, false},
		{"status != 200 AND ok = true", func(r *indexRow) bool { return r.Status != 200 && r.OK }, false},
		{"host = 'host00500.example'", func(r *indexRow) bool { return r.Host == "host00500.example" }, true},
		{"host LIKE 'host0100%' AND status IN (404, 503)", func(r *indexRow) bool {
			return strings.HasPrefix(r.Host, "host0100") && (r.Status == 404 || r.Status == 503)
		}, true},
		{"host > 'host04200' AND url LIKE '%9'", func(r *indexRow) bool { return r.Host > "host04200" && strings.HasSuffix(r.URL, "9") }, true},
		{"host IN ('host00001.example', 'host01400.example', 'x')", func(r *indexRow) bool { return r.Host == "host00001.example" || r.Host == "host01400.example" }, true},
		{"length < 1000", func(r *indexRow) bool { return r.Length != nil && *r.Length < 1000 }, false},
		{"length >= 500000.5", func(r *indexRow) bool { return r.Length != nil && *r.Length > 500_000 }, false},
		{"score > 2 AND rate <= 100.5", func(r *indexRow) bool { return r.Score > 2 && r.Rate <= 100.5 }, true},
		{"big >= 9223372036854775808 AND big < 9.3e18", func(r *indexRow) bool { return r.Big >= 1<<63 && float64(r.Big) < 9.3e18 }, true},
		{"fetched >= '2026-11-03' AND fetched < '2026-11-03 01:00:00'", func(r *indexRow) bool {
			return !r.Fetched.Before(epoch.AddDate(0, 0, 2)) && r.Fetched.Before(epoch.AddDate(0, 0, 2).Add(time.Hour))
		}, true},
		{"written = '2026-11-01T01:00:07+01:00'", func(r *indexRow) bool { return r.Written.Equal(epoch.Add(7 * time.Second)) }, true},
		{"day = '2026-11-04'", func(r *indexRow) bool { return r.Day == 20_761 }, true},
		{"lang LIKE '%deu%'", func(r *indexRow) bool { return strings.Contains(str(r.Lang), "deu") }, false},
		{"lang != 'eng'", func(r *indexRow) bool { return r.Lang != nil && *r.Lang != "eng" }, false},
		{"ok = false AND host < 'host00002'", func(r *indexRow) bool { return !r.OK && r.Host < "host00002" }, true},
		{"host = 'a'", func(r *indexRow) bool { return false }, true},
	} {
		var want []string
		for i := range rows {
			if tc.want(&rows[i]) {
				want = append(want, fmt.Sprintf("%d %s", i+1, rows[i].URL))
			}
		}
		for name, content := range files {
			all, _, err := readBack(t, content, "")
			if err != nil || len(all) != len(rows) {
				t.Fatalf("%s: %d rows, %v", name, len(all), err)
			}
			got, n, err := readBack(t, content, "#where="+tc.where)
			if d := cmp.Diff(want, urls(got)); d != "" || err != nil {
				t.Errorf("%s, %s: %v\n%s", name, tc.where, err, d)
			}
			// The first read takes the end of the file, where the footer is.
			if n -= readBytes; tc.skips && name != "one page" && n > len(content)/10 {
				t.Errorf("%s: %d of %d bytes were read in addition to the footer", tc.where, n, len(content))
			}
		}
	}
}

func TestColumnsOfParquetAreChecked(t *testing.T) {
	content := indexFile(t, indexRows(10))
	got, _, err := readBack(t, content, "#column=host,priority=priority,where=status > 0")
	if err != nil || len(got) != 10 || got[3].URL != "host00000.example" || got[3].Priority != 3 {
		t.Errorf("a named column: %+v, %v", got, err)
	}
	for _, tc := range []struct {
		options string
		want    error
		says    string
	}{
		{"#column=uri", ErrColumn, `no column "uri", its columns are "url", "host"`},
		{"#column=tags", ErrColumn, `column "tags" is nested`},
		{"#column=nested", ErrColumn, `column "nested" is nested`},
		{"#column=status", ErrColumn, `column "status" holds numbers, not texts`},
		{"#column=id", ErrColumn, `column "id" holds values of type UUID, not texts`},
		{"#priority=score", ErrColumn, `column "score" holds numbers, not whole numbers`},
		{"#priority=fetched", ErrColumn, "not whole numbers"},
		{"#where=status = '200'", ErrWhere, `character 1: column "status" holds numbers`},
		{"#where=ok = true AND host = 1", ErrWhere, `character 15: column "host" holds texts: write them in single quotes`},
		{"#where=fetched > 5", ErrWhere, `column "fetched" holds times: write them as`},
		{"#where=fetched > 'yesterday'", ErrWhere, `column "fetched" holds times: write them as`},
		{"#where=status LIKE '2%'", ErrWhere, `column "status" holds numbers`},
		{"#where=price > 5", ErrWhere, `column "price" holds values of type DECIMAL`},
		{"#where=tld = 'a'", ErrColumn, `no column "tld"`},
	} {
		if _, _, err := readBack(t, content, tc.options); !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v; want %q", tc.options, err, tc.says)
		}
	}
}

// FuzzParquet reads damaged files with a condition.
func FuzzParquet(f *testing.F) {
	rows := indexRows(50)
	var b bytes.Buffer
	if err := parquet.Write(&b, rows, parquet.PageBufferSize(300)); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes(), 40, byte(1))
	f.Fuzz(func(t *testing.T, data []byte, at int, by byte) {
		if data = bytes.Clone(data); at >= 0 && at < len(data) {
			data[at] += by
		}
		how := &reading{priority: "priority"}
		var err error
		if how.where, err = parseFilter("host >= 'host00002' AND length > 10 AND fetched > '2026-01-01'"); err != nil {
			t.Fatal(err)
		}
		in := &file{name: "fuzz", at: bytes.NewReader(data), size: int64(len(data))}
		_, err = readParquet(t.Context(), in, how, func(e Entry) bool { return len(e.URL) <= MaxURL })
		if err != nil && !errors.Is(err, ErrUnreadable) && !errors.Is(err, ErrColumn) && !errors.Is(err, ErrWhere) {
			t.Error(err)
		}
	})
}

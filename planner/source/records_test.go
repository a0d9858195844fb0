package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

// entryTexts returns "line priority url", or "line ! reason", for each entry.
func entryTexts(entries []Entry) []string {
	var out []string
	for _, e := range entries {
		switch {
		case e.Broken != "":
			out = append(out, fmt.Sprintf("%d ! %s [%s]", e.Line, e.Broken, e.URL))
		case e.Priority != DefaultPriority:
			out = append(out, fmt.Sprintf("%d %s (%d)", e.Line, e.URL, e.Priority))
		default:
			out = append(out, fmt.Sprintf("%d %s", e.Line, e.URL))
		}
	}
	return out
}

func TestCSVIsReadAsItComes(t *testing.T) {
	stray := "url,n\n\"http://a/,1\nhttp://b/,2\nhttp://c/,\"x\"\n"
	for _, tc := range []struct {
		name, options, text string
		want                []string
	}{
		{"header", "", "rank,url\n1,http://a/\n2,http://b/", []string{"2 http://a/", "3 http://b/"}},
		{"CRLF, BOM and blank lines", "", "\xef\xbb\xbfrank,url\r\n\r\n1,http://a/\r\n\r\n2,http://b/\r\n", []string{"3 http://a/", "5 http://b/"}},
		{"quotes", "", "n,url\n\"a \"\"b\"\", c\",\"http://a/?x=1,2\"\n\"two\nlines\",http://b/\n\"\",http://c/\n", []string{"2 http://a/?x=1,2", "3 http://b/", "5 http://c/"}},
		{"quotes inside a field stand for themselves", "", "n,url\na\"b,http://a/\"x\"\n", []string{`2 http://a/"x"`}},
		{"names may differ in case", "", "Rank, URL \n1,http://a/\n", []string{"2 http://a/"}},
		{"a named column", "#column=address", "url,address\nx,http://a/\n", []string{"2 http://a/"}},
		{"a name with a comma", `#column="the, ""url"""`, "x,\"the, \"\"url\"\"\"\nx,http://a/\n", []string{"2 http://a/"}},
		{"a column by its number", "#column=2", "1,example.com\n2,http://a/\n", []string{"1 example.com", "2 http://a/"}},
		{"no header, one URL a record", "", "1,http://a/\n2,http://b/\n", []string{"1 http://a/", "2 http://b/"}},
		{"one column without header", "", "http://a/\nhttp://b/\n", []string{"1 http://a/", "2 http://b/"}},
		{"blank URLs are skipped", "", "rank,url\n1,\n2,\" \"\n3,http://a/\n", []string{"4 http://a/"}},
		{"too few and too many fields", "", "rank,url\n1\n2,http://a/?x=1,2\n3,http://b/\n", []string{
			"2 ! the record has 1 fields, the first record 2 [1]", "3 ! the record has 3 fields, the first record 2 [2,http://a/?x=1,2]", "4 http://b/"}},
		{"a stray quote costs one line", "", stray, []string{"2 ! text follows the closing quote of a field [\"http://a/,1]", "3 http://b/", "4 http://c/"}},
		{"a quote that never closes", "", "url,n\n\"http://a/,1\nhttp://b/,2\n", []string{"2 ! a quoted field does not end [\"http://a/,1]", "3 http://b/"}},
		{"priorities", "#priority=p", "url,p\nhttp://a/,900\nhttp://b/,\nhttp://c/,1001\nhttp://d/,x\nhttp://e/,0\n", []string{
			"2 http://a/ (900)", "3 http://b/", "4 ! column \"p\" holds no whole number from 0 to 1000 [http://c/]",
			"5 ! column \"p\" holds no whole number from 0 to 1000 [http://d/]", "6 http://e/ (0)"}},
		{"where", "#where=n >= 2 AND url LIKE 'http://_/%'", "url,n\nhttp://a/,1\nhttp://b/,2\nhttp://c/,10\nhttp://d/,x\nhttp://ee/,3\n", []string{"3 http://b/", "4 http://c/"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for name, text := range map[string]string{"u.csv": tc.text, "u.tsv.gz": string(gzipped(t, tabbed(tc.text)))} {
				if name != "u.csv" && strings.ContainsAny(tc.options+tc.text, "(?") || strings.Contains(tc.name, "comma") {
					continue
				}
				got, err := collect(t.Context(), open(t, write(t, name, []byte(text))+tc.options))
				want := tc.want
				if name != "u.csv" {
					want = strings.Split(tabbed(strings.Join(want, "\n")), "\n")
				}
				if d := cmp.Diff(want, entryTexts(got)); d != "" || err != nil {
					t.Errorf("%s: %v\n%s", name, err, d)
				}
			}
		})
	}
}

// tabbed turns the commas between fields into tabs.
func tabbed(s string) string { return strings.ReplaceAll(s, ",", "\t") }

func TestJSONLinesAreReadAsTheyCome(t *testing.T) {
	for _, tc := range []struct {
		name, options, text string
		want                []string
	}{
		{"objects", "", `{"url":"http://a/","n":1}` + "\r\n\n" + ` {"n":null, "url":"http:\/\/b\/\u00e9"}`, []string{"1 http://a/", "3 http://b/é"}},
		{"null, missing and blank URLs are skipped", "", `{"url":null}` + "\n{}\n" + `{"url":" "}` + "\n" + `{"url":"a"}`, []string{"4 a"}},
		{"lines that are no objects", "", `{"url":"a"}` + "\n[1]\nnull\n{\"url\":\nx\n" + `{"url":1}` + "\n" + `{"url":["b"]}`, []string{
			"1 a", "2 ! the line is no JSON object [[1]]", "3 ! the line is no JSON object [null]", "4 ! the line is no JSON object [{\"url\":]",
			"5 ! the line is no JSON object [x]", "6 ! column \"url\" holds no text [{\"url\":1}]", "7 ! column \"url\" holds no text [{\"url\":[\"b\"]}]"}},
		{"where", "#where=ok = true AND n < 2.5 AND t != 'x'", `{"url":"a","ok":true,"n":2,"t":"y"}` + "\n" + `{"url":"b","ok":true,"n":3,"t":"y"}` + "\n" +
			`{"url":"c","ok":false,"n":1,"t":"y"}` + "\n" + `{"url":"d","ok":true,"n":"1","t":"y"}` + "\n" + `{"url":"e","ok":true,"n":1}` + "\n" + `{"url":"f","ok":true,"n":1e400,"t":"y"}`, []string{"1 a", "4 d"}},
		{"priority", "#column=u,priority=p", `{"u":"a","p":7}` + "\n" + `{"u":"b","p":"8"}` + "\n" + `{"u":"c"}` + "\n" + `{"u":"d","p":1.5}`, []string{
			"1 a (7)", "2 b (8)", "3 c", "4 ! column \"p\" holds no whole number from 0 to 1000 [{\"u\":\"d\",\"p\":1.5}]"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := collect(t.Context(), open(t, write(t, "u.jsonl", []byte(tc.text))+tc.options))
			if d := cmp.Diff(tc.want, entryTexts(got)); d != "" || err != nil {
				t.Errorf("%v\n%s", err, d)
			}
		})
	}
}

// zstdOf compresses texts with zstd, each in a frame of its own.
func zstdOf(t *testing.T, parts ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, part := range parts {
		z, err := zstd.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(z, part); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func TestCompressedMembersAreOneFile(t *testing.T) {
	skippable := "\x50\x2a\x4d\x18\x03\x00\x00\x00abc"
	for name, content := range map[string][]byte{
		"gzip":                  append(gzipped(t, "a\nb"), gzipped(t, "c\nd\n")...),
		"zstd":                  zstdOf(t, "a\nb", "c\nd\n"),
		"zstd, skippable frame": append([]byte(skippable), zstdOf(t, "a\nbc\n", "d")...),
	} {
		got, err := collect(t.Context(), open(t, write(t, "u", content)))
		if d := cmp.Diff([]string{"1 a", "2 bc", "3 d"}, urls(got)); d != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, d)
		}
	}
}

// zeros is an endless stream of zero bytes.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestBombsTakeLittleMemory reads files that expand to a gigabyte without a line end.
func TestBombsTakeLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("expands gigabytes, not with -short")
	}
	bomb := func(begin string, out io.WriteCloser, b *bytes.Buffer) []byte {
		_, err := io.WriteString(out, begin)
		if err == nil {
			_, err = io.CopyN(out, zeros{}, 1<<30)
		}
		if err == nil {
			_, err = io.WriteString(out, "\nhttp://a/\n")
		}
		if err == nil {
			err = out.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	for name, begin := range map[string]string{"u.txt": "", "u.csv": "url\n\"", "u.jsonl": "{\"url\":\"b\"}\n\""} {
		var b bytes.Buffer
		z, err := zstd.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		path := write(t, name+".zst", bomb(begin, z, &b))
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := collect(t.Context(), open(t, path))
		runtime.ReadMemStats(&after)
		if err != nil || got[len(got)-1].URL != "http://a/" {
			t.Errorf("%s: %d entries, %v", name, len(got), err)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
			t.Errorf("%s: %d MiB were allocated", name, grown>>20)
		}
	}
	// The frame's header (RFC 8878, section 3.1.1.1) demands a window of 256 MiB for five bytes.
	wide := write(t, "u", []byte("\x28\xb5\x2f\xfd\x00\x90\x29\x00\x00a\nb\nc"))
	if _, err := collect(t.Context(), open(t, wide)); !errors.Is(err, ErrUnreadable) || !strings.Contains(err.Error(), "window") {
		t.Errorf("a window of 256 MiB: %v", err)
	}
}

func TestOptionsAreCheckedAndFilesKeepTheirNames(t *testing.T) {
	odd := write(t, "u#column=x.csv", []byte("url\na\n"))
	got, err := collect(t.Context(), open(t, odd))
	if d := cmp.Diff([]string{"2 a"}, urls(got)); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	got, err = collect(t.Context(), open(t, strings.Replace(odd, "#", "[#]", 1)+"#column=url,format=text"))
	if err == nil || !errors.Is(err, ErrOption) || len(got) > 0 {
		t.Errorf("a column of text: %q, %v", urls(got), err)
	}
	got, err = collect(t.Context(), open(t, strings.Replace(odd, "#", "[#]", 1)+"#format=text"))
	if d := cmp.Diff([]string{"1 url", "2 a"}, urls(got)); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	csv := write(t, "u.csv", []byte("rank,address\n1,http://a/\n"))
	jsonl := write(t, "u.jsonl", []byte("{\"b\":1,\"a\":2}\n{\"c\":1}\n"))
	for _, tc := range []struct {
		name string
		want error
		says string
	}{
		{csv, ErrColumn, `no column "url", its columns are "rank", "address"`},
		{csv + "#column=uri", ErrColumn, `no column "uri"`},
		{csv + "#column=address,priority=p", ErrColumn, `no column "p"`},
		{csv + "#column=address,where=tld = 'a'", ErrColumn, `no column "tld"`},
		{csv + "#column=3", ErrColumn, `no column "3"`},
		{jsonl, ErrColumn, `no column "url", its columns are "a", "b"`},
		{csv + "#colum=url", ErrOption, `unknown option "colum"`},
		{csv + "#column=", ErrOption, `option "column" has no value`},
		{csv + "#format=xml", ErrOption, `format "xml" is none of text, csv, tsv, json`},
		{csv + "#column=a,column=b", ErrOption, `option "column" is given twice`},
		{csv + `#column="a`, ErrOption, "quotes"},
		{csv + "#where=", ErrWhere, "character 1"},
		{write(t, "u.json", []byte(`[{"url":"a"}]`)), ErrUnreadable, "jq -c"},
		{write(t, "u.csv", []byte("url,\"a\nb")), ErrUnreadable, "line 1"},
		{write(t, "u.csv", []byte("url,a\nx,1\n")) + "#where=a > 1", ErrEmpty, "no record meets the condition"},
		{write(t, "u.xz", []byte("\xfd7zXZ\x00\x00\x00\x00\x00")), ErrUnreadable, "xz"},
		{write(t, "u.zip", []byte("PK\x03\x04\x00\x00\x00\x00\x00")), ErrUnreadable, "zip"},
		{write(t, "u.zst", zstdOf(t, "a\nb\n")[:9]), ErrUnreadable, "line 1"},
		{write(t, "u.zst", zstdOf(t, "a\nb\n")[:9]), ErrUnreadable, "breaks off"},
		{write(t, "u.zst", append([]byte(zstdOf(t, "a\n")), "tail"...)), ErrUnreadable, "follows something else: cut it off"},
		{write(t, "u.gz", append(gzipped(t, "a\n"), "a longer tail"...)), ErrUnreadable, "follows something else: cut it off"},
		{write(t, "u.gz", append(gzipped(t, "a\n"), "a"...)), ErrUnreadable, "follows something else: cut it off"},
		{write(t, "u.gz", append(gzipped(t, "a\n"), "\x00\x00\x00a"...)), ErrUnreadable, "follows something else: cut it off"},
		{write(t, "u.gz", slices.Concat(gzipped(t, "a\n"), []byte{0, 0}, gzipped(t, "b\n"))), ErrUnreadable, "follows something else: cut it off"},
		{write(t, "u.gz", slices.Concat(gzipped(t, "a\n"), gzipped(t, "b\n")[:15])), ErrUnreadable, "breaks off"},
		{write(t, "u.gz", gzipped(t, string(gzipped(t, "a\n")))), ErrUnreadable, "compressed twice"},
		{write(t, "u.gz", gzipped(t, string(zstdOf(t, "a\n")))), ErrUnreadable, "compressed twice"},
		{write(t, "u.gz", gzipped(t, "PAR1xxxx")), ErrUnreadable, "compressed Parquet"},
		{write(t, "u.csv", []byte("url,a\rhttp://a/,1\rhttp://b/,2\r")), ErrUnreadable, `CR) only: convert them with tr '\r' '\n'`},
		{write(t, "u.tsv", []byte("http://a/\t1\rhttp://b/\t2")), ErrUnreadable, "CR) only"},
		{write(t, "u.jsonl.gz", gzipped(t, `{"url":"a"}`+"\r"+`{"url":"b"}`)), ErrUnreadable, "CR) only"},
		{write(t, "u.txt", []byte("http://a/\rhttp://b/\r")), ErrUnreadable, "CR) only"},
		{write(t, "u", []byte("h\x00t\x00t\x00p\x00:\x00")), ErrUnreadable, "UTF-16"},
		{write(t, "u", []byte("\x00h\x00t\x00t\x00p\x00:")), ErrUnreadable, "UTF-16"},
	} {
		s, err := Files(tc.name, nil)
		if err == nil {
			_, err = collect(context.Background(), s)
		}
		if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v; want %q", tc.name, err, tc.says)
		}
	}
	got, err = collect(t.Context(), open(t, write(t, "u", []byte("http://a/\rhttp://b/\r\r\nhttp://c/\r\r\n"))))
	if err != nil || len(got) != 2 || got[0].Broken != strayCR || got[1].Broken != "" {
		t.Errorf("lines with CR: %+v, %v", got, err)
	}
	got, err = collect(t.Context(), open(t, write(t, "u.csv", []byte("http://a/\r"))))
	if err != nil || len(got) != 1 || got[0].URL != "http://a/" {
		t.Errorf("one line that ends with CR: %+v, %v", got, err)
	}
	padded := slices.Concat(slices.Repeat(gzipped(t, ""), 200), gzipped(t, "a\n"), gzipped(t, "b\n"), make([]byte, 300<<10))
	got, err = collect(t.Context(), open(t, write(t, "u.gz", padded)))
	if d := cmp.Diff([]string{"1 a", "2 b"}, urls(got)); err != nil || d != "" {
		t.Errorf("gzip with zero bytes at its end: %v\n%s", err, d)
	}
	pipe, err := Files("-", strings.NewReader("PAR1xxxxxxxxxxxx"))
	if err == nil {
		_, err = collect(t.Context(), pipe)
	}
	if !errors.Is(err, ErrUnreadable) || !strings.Contains(err.Error(), "name the file") {
		t.Errorf("Parquet from standard input: %v", err)
	}
	pipe, err = Files("-#format=csv", strings.NewReader("url\na\n"))
	if err == nil {
		got, err = collect(t.Context(), pipe)
	}
	if d := cmp.Diff([]string{"2 a"}, urls(got)); d != "" || err != nil {
		t.Errorf("CSV from standard input: %v\n%s", err, d)
	}
}

// failing is a stream that breaks after some bytes.
type failing struct {
	io.Reader
	err error
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err == io.EOF {
		err = f.err
	}
	return n, err
}

func TestNoRecordIsMadeOfABrokenStream(t *testing.T) {
	broken := errors.New("the cable broke")
	for _, format := range formats {
		for _, text := range []string{"url\nhttp://a/", "url\n\"a", "{\"url\":\"b\"}\n{}"} {
			if (text[0] == '{') != (format == formatJSON) {
				continue
			}
			s, err := Files("-#format="+format, &failing{strings.NewReader(text), broken})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := collect(t.Context(), s); !errors.Is(err, broken) {
				t.Errorf("%s of %q: %v", format, text, err)
			}
		}
	}
}

// FuzzRecords checks the lines, lengths and errors of CSV and JSON lines, and that the sizes of reads
// do not matter.
func FuzzRecords(f *testing.F) {
	f.Add([]byte("url,n\n\"0\"00000"), false, byte(3))
	f.Add([]byte("url,n\r\n\"a\"\"\n\",1\n\"b,2\nc\n"), false, byte(3))
	f.Add([]byte("{\"url\":\"a\"}\n\n[]\n{\"url\":1}"), true, byte(1))
	f.Fuzz(func(t *testing.T, data []byte, isJSON bool, step byte) {
		read := func(in io.Reader) (out []Entry, err error) {
			how := &reading{priority: "n", where: filter{{column: "url", op: "LIKE", values: []value{textOf("%a%")}}}}
			last := int64(0)
			visit := func(e Entry) bool {
				if e.Line <= last || e.URL == "" && e.Broken == "" || len(e.URL) > MaxURL {
					t.Errorf("line %d after %d: %q", e.Line, last, e.URL)
				}
				last = e.Line
				out = append(out, e)
				return true
			}
			if isJSON {
				_, err = readJSON(t.Context(), in, "fuzz", how, visit)
			} else {
				_, err = readCSV(t.Context(), in, ',', "fuzz", how, visit)
			}
			if err != nil && !errors.Is(err, ErrUnreadable) && !errors.Is(err, ErrColumn) {
				t.Error(err)
			}
			return out, err
		}
		whole, err1 := read(bytes.NewReader(data))
		parts, err2 := read(&stepped{bytes.NewReader(data), int(step) + 1})
		if d := cmp.Diff(whole, parts); d != "" || fmt.Sprint(err1) != fmt.Sprint(err2) {
			t.Errorf("in steps of %d: %v, %v\n%s", int(step)+1, err1, err2, d)
		}
	})
}

// stepped is a reader that gives a few bytes at a time.
func TestAFirstRecordThatIsTooLongIsRefused(t *testing.T) {
	long := "http://a.example/" + strings.Repeat("x", maxRecord)
	for text, want := range map[string][]string{
		long + "\n" + long + "\nhttp://a.example/1\n": {"1 broken", "2 broken", "3 http://a.example/1"},
		long + "\nname,url\nx,http://a.example/1":     {"1 broken", "3 http://a.example/1"},
		long + "\n\"" + long + "\"\n":                 {"1 broken", "2 broken"},
		long:                                          {"1 broken"},
	} {
		var out []string
		_, err := readCSV(t.Context(), strings.NewReader(text), ',', "u", &reading{}, func(e Entry) bool {
			if e.Broken != "" {
				e.URL = "broken"
			}
			out = append(out, fmt.Sprint(e.Line, " ", e.URL))
			return true
		})
		if d := cmp.Diff(want, out); d != "" || err != nil {
			t.Errorf("%v\n%s", err, d)
		}
	}
}

type stepped struct {
	in io.Reader
	n  int
}

func (s *stepped) Read(p []byte) (int, error) { return s.in.Read(p[:min(len(p), s.n)]) }

// TestTheSizesOfReadsDoNotMatter reads records around the largest size.
func TestTheSizesOfReadsDoNotMatter(t *testing.T) {
	for _, n := range []int{maxRecord - 3, maxRecord - 2, maxRecord - 1, maxRecord, maxRecord + 1} {
		long := strings.Repeat("x", n)
		for _, text := range []string{"url\n" + long + "\na\n", "url\n" + long, "url\n\"" + long[2:] + "\"\na\n", "{\"url\":\"" + long[10:] + "\"}\n{\"url\":\"a\"}\n", "url\n\"" + long} {
			var first []string
			for _, step := range []int{1 << 10, 64<<10 - 1, 1 << 24} {
				var out []string
				_, err := readCSV(t.Context(), &stepped{strings.NewReader(text), step}, ',', "u", &reading{}, func(e Entry) bool {
					out = append(out, fmt.Sprint(e.Line, len(e.URL), e.Broken))
					return true
				})
				if text[0] == '{' {
					out = nil
					_, err = readJSON(t.Context(), &stepped{strings.NewReader(text), step}, "u", &reading{}, func(e Entry) bool {
						out = append(out, fmt.Sprint(e.Line, len(e.URL), e.Broken))
						return true
					})
				}
				if first == nil {
					first = out
				}
				if d := cmp.Diff(first, out); d != "" || err != nil || len(out) == 0 {
					t.Errorf("%d bytes, steps of %d: %v\n%s", n, step, err, d)
				}
			}
		}
	}
}

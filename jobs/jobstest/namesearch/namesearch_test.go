package namesearch_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/urlfilter"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/jobs/jobstest/namesearch"
)

// places returns where Object finds the names.
func places(t *testing.T, key string, body []byte, names *namesearch.Names) []string {
	t.Helper()
	hits, err := namesearch.Object(key, body, names)
	if err != nil {
		t.Fatal(err)
	}
	var at []string
	for _, h := range hits {
		at = append(at, h.Where)
	}
	return at
}

func domain(hosts ...string) *namesearch.Names {
	var n namesearch.Names
	n.Domain("d7.example", hosts...)
	return &n
}

func pageURL(t *testing.T) *namesearch.Names {
	t.Helper()
	var n namesearch.Names
	if err := n.URL("https://www.d7.example/a/b?x=1&y=2"); err != nil {
		t.Fatal(err)
	}
	return &n
}

func TestANameIsFoundInEveryForm(t *testing.T) {
	names, one := domain(), pageURL(t)
	for _, text := range []string{
		"see d7.example", "http://d7.example:8080/", "www.D7.Example", "example,d7)/x", "example,d7,www)/", "example.d7",
		"example.d7.www", "u=http%3A%2F%2Fd7.example%2F", `"\u003cd7.example"`, "a@d7.example.", "d\x007\x00.\x00e\x00x\x00a\x00m\x00p\x00l\x00e\x00",
		"x" + base64.StdEncoding.EncodeToString([]byte("ab//d7.example/c")),
	} {
		if places(t, "key", []byte(text), names) == nil {
			t.Errorf("the domain was not found in %q", text)
		}
	}
	for _, text := range []string{"d77.example", "xd7.example", "d7.example.org", "my-d7.example", "example,d77)/", "org.example.d7", "org,example,d7)/", "d7example", "example.d7x"} {
		if at := places(t, "key", []byte(text), names); at != nil {
			t.Errorf("the domain was found in %q: %q", text, at)
		}
	}
	for _, text := range []string{"https://www.d7.example/a/b?x=1&y=2", "http://WWW.d7.example/a/b?x=1&y=2#top", "example,d7,www)/a/b?x=1&y=2", "(www.d7.example/a/b?x=1&y=2)", "www.d7.example%2Fa%2Fb%3Fx%3D1%26y%3D2"} {
		if places(t, "key", []byte(text), one) == nil {
			t.Errorf("the URL was not found in %q", text)
		}
	}
	for _, text := range []string{"https://www.d7.example/a/b", "https://www.d7.example/a/b?x=1&y=22", "https://www.d7.example/a/b?x=1&y=2&z", "http://d7.example/a/b?x=1&y=2", "example,d7)/a/b?x=1&y=2"} {
		if at := places(t, "key", []byte(text), one); at != nil {
			t.Errorf("the URL was found in %q: %q", text, at)
		}
	}
}

func TestANameIsFoundInEveryPartOfAParquetFile(t *testing.T) {
	type row struct {
		URL    string   `parquet:"url,delta"`
		Host   string   `parquet:"host,dict"`
		Others []string `parquet:"others,list"`
		N      int64    `parquet:"n"`
	}
	write := func(key string, rows ...row) []byte {
		var b bytes.Buffer
		w := parquet.NewGenericWriter[row](&b, parquet.Compression(&parquet.Zstd), parquet.KeyValueMetadata("k", key),
			parquet.BloomFilters(parquet.SplitBlockFilter(10, "host")))
		if _, err := w.Write(rows); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	clean := write("none", row{"http://a.example/", "a.example", []string{"http://b.example/"}, 1}, row{"http://z.example/", "z.example", nil, 2})
	if at := places(t, "x.parquet", clean, domain("d7.example")); at != nil {
		t.Errorf("a name is found in a file without it: %q", at)
	}
	// The name is between others, so statistics do not hold it.
	among := write("none", row{"http://a.example/", "a.example", nil, 1}, row{"http://d7.example/", "d7.example", []string{"http://d7.example/o"}, 2}, row{"http://z.example/", "z.example", nil, 3})
	for _, file := range map[string][]byte{"a file": among, "a run": append(append(bytes.Clone(clean), among...), clean...)} {
		at := places(t, "x.parquet", file, domain("d7.example"))
		for _, want := range []string{"column url", "column host", "dictionary of host", "column others.list.element", "Bloom filter of host"} {
			if !slices.Contains(at, want) {
				t.Errorf("%q is not among the places %q", want, at)
			}
		}
		if slices.Contains(at, "statistics of url") {
			t.Errorf("statistics hold a value between others: %q", at)
		}
	}
	only := places(t, "x.parquet", write("about d7.example", row{"http://d7.example/", "d7.example", nil, 1}), domain())
	for _, want := range []string{"metadata", "statistics of url", "page index of host"} {
		if !slices.Contains(only, want) {
			t.Errorf("%q is not among the places %q", want, only)
		}
	}
	if _, err := namesearch.Object("x.parquet", among[:len(among)-9], domain()); err == nil {
		t.Error("a file that cannot be read is no error")
	}
}

func TestANameIsFoundInDocumentsArchivesAndFilters(t *testing.T) {
	doc, err := json.Marshal(map[string]any{"a": []any{map[string]string{"reason": "https://www.d7.example/a/b?x=1&y=2"}}, "bits": []byte("….d7.example")})
	if err != nil {
		t.Fatal(err)
	}
	if at := places(t, "x.json", doc, domain()); !slices.Contains(at, "JSON at .a.reason") || !slices.Contains(at, "base64 in JSON at .bits") {
		t.Errorf("places in a document: %q", at)
	}
	// JSON spells & as \u0026, so only the decoded string equals the URL.
	if at := places(t, "x.json", doc, pageURL(t)); !slices.Equal(at, []string{"JSON at .a.reason"}) {
		t.Errorf("places of a URL in a document: %q", at)
	}

	var graph bytes.Buffer
	z := gzip.NewWriter(&graph)
	z.Comment = "d7.example"
	if _, err := z.Write([]byte(strings.Repeat("0\texample.c\n", 99) + "1\texample.d7.www\n")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if at := places(t, "host-vertices.txt.gz", graph.Bytes(), domain()); !slices.Equal(at, []string{"bytes", "gzip header", "gzip"}) {
		t.Errorf("places in a graph: %q", at)
	}

	var file bytes.Buffer
	out := warc.NewWriter(&file)
	for _, rec := range []warc.Record{
		{Type: warc.Response, Date: time.Unix(1, 0), TargetURI: "http://a.example/", Block: [][]byte{[]byte("HTTP/1.1 302 Found\r\nLocation: http://d7.example/\r\n\r\n")}},
		{Type: warc.Response, Date: time.Unix(1, 0), TargetURI: "http://b.example/", Block: [][]byte{[]byte("HTTP/1.1 200 OK\r\n\r\nSee d7.example.")}},
		{Type: warc.Request, Date: time.Unix(1, 0), TargetURI: "http://d7.example/", Block: [][]byte{[]byte("GET / HTTP/1.1\r\nHost: d7.example\r\n\r\n")}},
	} {
		if _, err := out.Write(&rec); err != nil {
			t.Fatal(err)
		}
	}
	at := places(t, "x.warc.gz", file.Bytes(), domain())
	at = slices.DeleteFunc(at, func(w string) bool { return w == "bytes" }) // whether deflate leaves the name whole
	if want := []string{"HTTP header of a response", "body of a response", "WARC header of a request", "HTTP header of a request"}; !slices.Equal(at, want) {
		t.Errorf("places in a WARC file: %q, want %q", at, want)
	}

	filter := filterOf(t, "http://d7.example/x", "http://a.example/")
	names := domain()
	names.Probe("http://d7.example/x")
	if at := places(t, "known/part-00000.bloom", filter, names); !slices.Equal(at, []string{"URL filter"}) {
		t.Errorf("places in a filter: %q", at)
	}
	if at := places(t, "crawl=2026-11/d7.example.json", []byte("{}"), domain()); !slices.Equal(at, []string{"key"}) {
		t.Errorf("places in a key: %q", at)
	}
}

// filterOf returns the bytes of a URL filter.
func filterOf(t *testing.T, urls ...string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "filter")
	w, err := urlfilter.NewWriter(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range urls {
		if err := w.Add(u); err != nil {
			t.Fatal(err)
		}
	}
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Finish(t.Context(), b, "known", "known.bloom"); err != nil {
		t.Fatal(err)
	}
	body, _, err := b.Get(t.Context(), "known.bloom", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

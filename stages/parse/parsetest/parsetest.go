// Package parsetest holds the pages for tests of stage parse: the repository's own pages, and real
// pages if they lie beside the repository.
package parsetest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/document"
	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
)

// Page is a page with its true properties. The page may declare other ones.
type Page struct {
	Name, URL string
	Language  string // true language in ISO-639-3; "" if only Main is known
	Charset   string // true charset in IANA's spelling; "" if only Main is known
	Main      string // true main text; "" if unknown
	Body      []byte
}

// Document returns the page in the form of a fetched document.
func (p *Page) Document(contentType string) *document.Document {
	return &document.Document{URL: p.URL, ContentType: contentType, Body: p.Body}
}

// Text returns the page in UTF-8, decoded from its true charset.
func (p *Page) Text(tb testing.TB) []byte {
	tb.Helper()
	e, _ := Encoding(tb, p.Charset)
	out, err := e.NewDecoder().Bytes(p.Body)
	if err != nil {
		tb.Fatal(p.Name, err)
	}
	return bytes.TrimPrefix(out, []byte("\xEF\xBB\xBF"))
}

// Repository returns a path below the root of the repository.
func Repository(tb testing.TB, path ...string) string {
	tb.Helper()
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "Makefile")); err == nil {
			return filepath.Join(append([]string{dir}, path...)...)
		}
		if dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	tb.Fatal("the test does not run within the repository", err)
	return ""
}

// Shared returns a path of the test data beside the repository. If these data are missing, Shared
// logs this and returns false. The test then uses the repository's own data.
func Shared(tb testing.TB, path ...string) (dir string, ok bool) {
	tb.Helper()
	dir = Repository(tb, append([]string{"..", "shared", "data"}, path...)...)
	if _, err := os.Stat(dir); err != nil {
		tb.Logf("without ../shared/data/%s: the repository's own data alone", strings.Join(path, "/"))
		return "", false
	}
	return dir, true
}

// CorpusDir returns the folder of the repository's own pages in many languages and charsets. The
// README in that folder describes the pages.
func CorpusDir(tb testing.TB) string { return Repository(tb, "testdata", "pages") }

// Corpus loads the repository's own pages, in the order of the manifest.
func Corpus(tb testing.TB) (pages []Page) {
	tb.Helper()
	dir := CorpusDir(tb)
	raw, err := os.ReadFile(filepath.Join(dir, "manifest.tsv"))
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if f[0] == "page" {
			continue
		}
		name := strings.TrimSuffix(f[0], ".html.gz")
		pages = append(pages, Page{Name: name, URL: "https://example.com/doc/" + name + ".html", Language: f[1], Charset: f[2], Body: unzip(tb, filepath.Join(dir, f[0]))})
	}
	return pages
}

// Articles loads the repository's own pages with a known main text, sorted by name.
func Articles(tb testing.TB) (pages []Page) {
	tb.Helper()
	files, err := filepath.Glob(Repository(tb, "testdata", "articles", "*.html"))
	if err != nil || files == nil {
		tb.Fatal("no articles", err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		path := strings.TrimSuffix(file, ".html")
		text, err := os.ReadFile(path + ".txt")
		if err != nil {
			tb.Fatal(err)
		}
		name := filepath.Base(path)
		pages = append(pages, Page{Name: name, URL: "https://example.com/" + name + ".html", Main: string(text), Body: body})
	}
	return pages
}

// Real loads the real pages with their main text, sorted by name. If there are no real pages, the
// result is nil.
func Real(tb testing.TB) (pages []Page) {
	tb.Helper()
	dir, ok := Shared(tb, "pages")
	if !ok {
		return nil
	}
	raw, err := os.ReadFile(filepath.Join(dir, "ground-truth.json"))
	if err != nil {
		tb.Fatal(err)
	}
	var truth map[string]struct {
		Main string `json:"main_text"`
		URL  string `json:"url"`
	}
	if err := json.Unmarshal(raw, &truth); err != nil {
		tb.Fatal(err)
	}
	for id, p := range truth {
		pages = append(pages, Page{Name: id, URL: p.URL, Main: p.Main, Body: unzip(tb, filepath.Join(dir, id+".html.gz"))})
	}
	slices.SortFunc(pages, func(a, b Page) int { return strings.Compare(a.Name, b.Name) })
	return pages
}

// Own returns the corpus and the articles.
func Own(tb testing.TB) []Page {
	tb.Helper()
	return append(Corpus(tb), Articles(tb)...)
}

// Pages returns the repository's own pages and the real pages. real is true if there are real pages.
func Pages(tb testing.TB) (pages []Page, real bool) {
	tb.Helper()
	pages = Real(tb)
	return append(Own(tb), pages...), pages != nil
}

// Documents returns the documents on which benchmarks measure the stage. The documents are the real
// pages. If there are none, the documents are the articles of the repository, with the typical
// parts of a real page around each article.
func Documents(tb testing.TB) (docs []document.Document) {
	tb.Helper()
	pages := Real(tb)
	if pages == nil {
		pages = Articles(tb)
		for i := range pages {
			pages[i].Body = dress(pages[i].Body, i)
		}
	}
	for i := range pages {
		docs = append(docs, *pages[i].Document("text/html"))
	}
	return docs
}

func unzip(tb testing.TB, path string) []byte {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // read only
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(path, err)
	}
	body, err := io.ReadAll(z)
	if err != nil {
		tb.Fatal(path, err)
	}
	return body
}

// Encoding returns the encoding of a charset label according to the Encoding Standard, and its name
// in that standard.
func Encoding(tb testing.TB, label string) (encoding.Encoding, string) {
	tb.Helper()
	e, name := charset.Lookup(label)
	if e == nil {
		tb.Fatalf("no encoding has the label %q", label)
	}
	return e, name
}

var declarations = regexp.MustCompile(`(?i)((?:charset|encoding)\s*=\s*["']?)[A-Za-z0-9_-]+|(\blang\s*=\s*["'])[A-Za-z-]+`)

// Mute returns the page without its declarations of charset and language, in the same length. In a
// page in UTF-16, only the byte order mark is removed.
func Mute(body []byte) []byte {
	if bytes.HasPrefix(body, []byte{0xFF, 0xFE}) || bytes.HasPrefix(body, []byte{0xFE, 0xFF}) {
		return body[2:]
	}
	return declarations.ReplaceAllFunc(body, func(m []byte) []byte {
		out := bytes.Clone(m)
		for i := bytes.IndexByte(m, '=') + 1; i < len(out); i++ {
			if c := out[i]; c != '"' && c != '\'' && c != ' ' {
				out[i] = '-'
			}
		}
		return out
	})
}

// Attr returns the value of a node's attribute, or "" if the node has none.
func Attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// Object is an object of the column json_ld.
type Object struct {
	Type       []string `json:"type"`
	Headline   string   `json:"headline"`
	Name       string   `json:"name"`
	Published  string   `json:"datePublished"`
	Modified   string   `json:"dateModified"`
	Author     []string `json:"author"`
	Breadcrumb []struct {
		Name string `json:"name"`
		URL  string `json:"url"`
	} `json:"breadcrumb"`
}

// JSONLD reads the column json_ld with encoding/json and checks the bounds of the column.
func JSONLD(t *testing.T, column string) []Object {
	t.Helper()
	var objects []Object
	d := json.NewDecoder(strings.NewReader(column))
	d.DisallowUnknownFields()
	if err := d.Decode(&objects); err != nil || d.More() {
		t.Fatalf("json_ld is not what it says: %v: %.300q", err, column)
	}
	if len(objects) == 0 || len(objects) > 16 {
		t.Errorf("json_ld with %d objects", len(objects))
	}
	for _, o := range objects {
		if len(o.Type) > 16 || len(o.Author) > 16 || len(o.Breadcrumb) > 16 || len(o.Headline) > 512 || len(o.Name) > 512 {
			t.Errorf("json_ld beyond its bounds: %+v", o)
		}
		for _, c := range o.Breadcrumb {
			if c.URL != "" && !strings.HasPrefix(c.URL, "http") {
				t.Errorf("json_ld has a breadcrumb of %q", c.URL)
			}
		}
	}
	return objects
}

// Accuracy holds the number of guesses and the number of right guesses.
type Accuracy struct{ Right, All int }

// Count counts a guess, which is right or wrong.
func (a *Accuracy) Count(right bool) {
	a.All++
	if right {
		a.Right++
	}
}

// Share returns the share of right guesses, from 0 to 1.
func (a Accuracy) Share() float64 { return float64(a.Right) / float64(a.All) }

// GuessCharsets decodes every page of the corpus as if the page declared nothing. It counts the
// pages that decode correctly. Pages in UTF-8 do not count, because their bytes prove the encoding.
func GuessCharsets(tb testing.TB, decode func(body []byte, contentType string) ([]byte, string)) (guesses Accuracy) {
	for _, c := range Corpus(tb) {
		if c.Charset == "UTF-8" {
			continue
		}
		c.Body = Mute(c.Body)
		got, name := decode(c.Body, "text/html")
		ok := bytes.Equal(got, c.Text(tb))
		if guesses.Count(ok); !ok && testing.Verbose() {
			tb.Logf("%s: guessed %s", c.Name, name)
		}
	}
	return guesses
}

// Markup lists pieces of markup that are easy to misread: beginnings and ends of tags, comments and
// references.
var Markup = []string{
	"a<b>c</b >d</>e< f<3 </3>g<", "a</", "<a", "<a href", "<a href=", "<a href='x", "<p/><br / >", "<A HREF=X hReF=y>", "<a =b href = c>", "<a href=/x/>",
	"<a href=\"a&amp;b&copy=1&copy;&copyx&notit;&#65;&#x42&lt&fjlig;&semi;&nbsp\">", "&amp;&copy=1&copyx&notit;&#65;&#x42z&#0;&#x80;&unknown;&", "<!-->a<!--->b<!-- c --!>d<!-- e -- > f -->g<!--!>h-->i",
	"<!doctype html>x<!foo>y<?xml v?>z", "<title>a&lt;b</titl></title >c", "<script>a</script>b", "<script><!-- <script> </script> --> </script>x",
	"<script><!-- <script></script></script>x", "<script><!--<5 <script></script>y</script>", "<script><!-- --!></script>x", "<script><!-->x</script>y",
	"<script><!-- <scriptx </script>z", "<style></style/>x</style>", "<textarea></textareaX>&amp;</textarea>", "<plaintext></plaintext>&amp;", "<noscript><p>x</noscript>y",
	"<iframe><p></iframe>", "<xmp>&lt;</XMP>x", "<a title=a\x00b href='x\r\ny'>", "<script/>x</script>", "<a/href=x/src=y>", "<img src=a\"b'c>",
	"<script></SCRIPT>x", "<!---->a", "<!-- a -->b<!--", "<!--a--!", "<![CDATA[x]]>", "<script><!--</script>x-->",
}

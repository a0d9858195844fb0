package parse

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/stages/parse/text"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
)

// corpusDir holds real pages of many languages and charsets; see its README.
const corpusDir = "../../testdata/pages"

// corpusPage is a page of the corpus and what is true of it, whatever it says itself.
type corpusPage struct {
	name     string
	language string // ISO-639-3
	charset  string // as IANA registers it
	body     []byte
}

// corpus loads the pages, in the order of the manifest.
func corpus(tb testing.TB) (pages []corpusPage) {
	tb.Helper()
	raw, err := os.ReadFile(filepath.Join(corpusDir, "manifest.tsv"))
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if f[0] == "page" {
			continue
		}
		file, err := os.Open(filepath.Join(corpusDir, f[0]))
		if err != nil {
			tb.Fatal(err)
		}
		z, err := gzip.NewReader(file)
		if err != nil {
			tb.Fatal(f[0], err)
		}
		body, err := io.ReadAll(z)
		if err != nil {
			tb.Fatal(f[0], err)
		}
		file.Close()
		pages = append(pages, corpusPage{strings.TrimSuffix(f[0], ".html.gz"), f[1], f[2], body})
	}
	return pages
}

// lookup returns the encoding of the Encoding Standard that a charset's label stands for.
func lookup(tb testing.TB, label string) (encoding.Encoding, string) {
	tb.Helper()
	e, name := charset.Lookup(label)
	if e == nil {
		tb.Fatalf("no encoding has the label %q", label)
	}
	return e, name
}

// text is the page in UTF-8, decoded by what is true of it.
func (c *corpusPage) text(tb testing.TB) []byte {
	tb.Helper()
	e, _ := lookup(tb, c.charset)
	out, err := e.NewDecoder().Bytes(c.body)
	if err != nil {
		tb.Fatal(c.name, err)
	}
	return bytes.TrimPrefix(out, utf8BOM)
}

var declarations = regexp.MustCompile(`(?i)((?:charset|encoding)\s*=\s*["']?)[A-Za-z0-9_-]+|(\blang\s*=\s*["'])[A-Za-z-]+`)

var declaresLanguage = regexp.MustCompile(`(?i)<html[^>]*\slang=`)

// mute returns a page that does not say its charset or its language, of the same
// length; of one in UTF-16 only the mark is taken.
func mute(body []byte) []byte {
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

// corpusRow is what is stored of a page, in short.
type corpusRow struct {
	Page       string   `json:"page"`
	Kind       Kind     `json:"kind"`
	Title      string   `json:"title"`
	Language   string   `json:"language"`
	Charset    string   `json:"charset"`
	Words      int32    `json:"word_count"`
	Links      int      `json:"links"`
	BadLinks   int      `json:"bad_links,omitempty"`
	FullBytes  int      `json:"full_bytes"`
	MainBytes  int      `json:"main_bytes"`
	TextDigest string   `json:"text_digest"`
	SimHash    string   `json:"simhash"`
	Canonical  string   `json:"canonical,omitempty"`
	Begins     []string `json:"main_begins"` // the first blocks, cut
	Topics     []string `json:"topics"`
}

func corpusDocument(c *corpusPage, body []byte, contentType string) *document.Document {
	return &document.Document{URL: "https://example.com/doc/" + c.name + ".html", ContentType: contentType, Body: body}
}

// TestGoldenRowsOfTheCorpus compares what is stored of each page of the corpus with
// what was; its language and charset are those of the manifest, which no parser made.
func TestGoldenRowsOfTheCorpus(t *testing.T) {
	p := newParser(t)
	golden := filepath.Join(corpusDir, "golden.jsonl")
	want := map[string]string{}
	if f, err := os.Open(golden); err == nil {
		s := bufio.NewScanner(f)
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			var row corpusRow
			if err := json.Unmarshal(s.Bytes(), &row); err != nil {
				t.Fatal(err)
			}
			want[row.Page] = s.Text()
		}
		f.Close()
	}
	var out bytes.Buffer
	languages, charsets := map[string]bool{}, map[string]bool{}
	for _, c := range corpus(t) {
		r := p.Parse(corpusDocument(&c, c.body, "text/html"))
		row := corpusRow{Page: c.name, Kind: r.Kind, Title: r.Page.Title, Language: r.Page.Language, Charset: r.Page.Charset, Words: r.Page.WordCount,
			Links: len(r.Links), BadLinks: r.BadLinks, FullBytes: len(r.Text.Full), MainBytes: len(r.Text.Main), TextDigest: r.Page.TextDigest,
			SimHash: fmt.Sprintf("%016x", uint64(r.Page.SimHash)), Canonical: r.Page.CanonicalURL, Topics: r.Page.Topics}
		for _, line := range strings.Split(r.Text.Main, "\n") {
			if len(row.Begins) < 3 {
				row.Begins = append(row.Begins, cut(line, 100))
			}
		}
		if r.Kind != HTML || r.Page.Title == "" || len(r.Text.Full) < 400 {
			t.Errorf("%s: a page of kind %s with the title %q and %d bytes of text", c.name, r.Kind, r.Page.Title, len(r.Text.Full))
		}
		if declaresLanguage.Match(c.body) && !sameLanguage(r.Page.Language, c.language) {
			t.Errorf("%s: language %q, truly %s", c.name, r.Page.Language, c.language)
		}
		_, name := lookup(t, c.charset)
		if _, got := lookup(t, r.Page.Charset); got != name {
			t.Errorf("%s: charset %s, truly %s", c.name, r.Page.Charset, c.charset)
		}
		if strings.ContainsRune(r.Text.Full, utf8.RuneError) {
			t.Errorf("%s: the text has replacement characters", c.name)
		}
		languages[c.language], charsets[name] = true, true
		var line bytes.Buffer
		enc := json.NewEncoder(&line)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(row); err != nil {
			t.Fatal(err)
		}
		out.Write(line.Bytes())
		if got := strings.TrimSpace(line.String()); !*update && got != want[c.name] {
			t.Errorf("%s: rows differ from %s (-want +got; -update rewrites it):\n%s", c.name, golden, cmp.Diff(want[c.name], got))
		}
	}
	if len(languages) < 25 || len(charsets) < 12 {
		t.Errorf("%d languages and %d charsets, want at least 25 and 12", len(languages), len(charsets))
	}
	if *update {
		if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// sameLanguage compares a language with the true one: Norwegian is written in two ways.
func sameLanguage(got, truth string) bool {
	return got == truth || truth == "nor" && (got == "nob" || got == "nno")
}

// TestTheHeaderDeclaresACharset parses every page without its own declaration.
func TestTheHeaderDeclaresACharset(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	for _, c := range corpus(t) {
		body := c.body
		if !strings.HasPrefix(c.charset, "UTF-16") {
			body = mute(body)
		}
		got, name := decode(body, "text/html; charset="+c.charset)
		_, want := lookup(t, c.charset)
		if _, name := lookup(t, name); name != want {
			t.Errorf("%s: charset %s, declared %s", c.name, name, c.charset)
		}
		truth := c
		truth.body = body
		if d := cmp.Diff(string(truth.text(t)), string(got)); d != "" {
			t.Errorf("%s: text (-truth +decoded):\n%.2000s", c.name, d)
		}
	}
}

// accuracy is how many guesses are right.
type accuracy struct{ right, all int }

func (a *accuracy) count(right bool) {
	a.all++
	if right {
		a.right++
	}
}

func (a accuracy) share() float64 { return float64(a.right) / float64(a.all) }

// guessCharsets decodes every page of the corpus as though it declared nothing, and
// counts those that become what they should. Those in UTF-8, which is its own proof,
// are left out.
func guessCharsets(tb testing.TB, decode func(body []byte, contentType string) ([]byte, string)) (guesses accuracy) {
	for _, c := range corpus(tb) {
		if c.charset == "UTF-8" {
			continue
		}
		c.body = mute(c.body)
		got, name := decode(c.body, "text/html")
		ok := bytes.Equal(got, c.text(tb))
		if guesses.count(ok); !ok && testing.Verbose() {
			tb.Logf("%s: guessed %s", c.name, name)
		}
	}
	return guesses
}

func TestGuessedCharsets(t *testing.T) {
	g := guessCharsets(t, decode)
	t.Logf("%d of %d", g.right, g.all)
	if g.all < 50 || g.right < g.all-2 {
		t.Errorf("guessed %d of %d", g.right, g.all)
	}
}

// shortTexts are pieces of 100 to 200 characters of a page's text.
func shortTexts(s string) (out []string) {
	for _, line := range strings.Split(s, "\n") {
		for len(line) > 0 && len(out) < 12 {
			end, n := 0, 0
			for end < len(line) && (n < 100 || n < 200 && line[end] != ' ' && line[end] != '.') {
				_, size := utf8.DecodeRuneInString(line[end:])
				end += size
				n++
			}
			if n >= 100 {
				out = append(out, line[:end])
			}
			line = line[end:]
		}
	}
	return out
}

// detectLanguages guesses the language of every page of the corpus from its text
// alone, and of pieces of its main content.
func detectLanguages(tb testing.TB, detect func(string) string) (pages, short accuracy) {
	p := newParser(tb)
	for _, c := range corpus(tb) {
		if c.charset != "UTF-8" {
			continue // the same text once more
		}
		r := p.Parse(corpusDocument(&c, mute(c.body), "text/html; charset=utf-8"))
		sample := r.Text.Main
		if len(sample) < 200 {
			sample = r.Text.Full
		}
		got := detect(sample)
		ok := sameLanguage(got, c.language)
		if pages.count(ok); !ok && testing.Verbose() {
			tb.Logf("%s: %s, truly %s", c.name, got, c.language)
		}
		for _, s := range shortTexts(r.Text.Main) {
			got := detect(s)
			ok := sameLanguage(got, c.language)
			if short.count(ok); !ok && testing.Verbose() {
				tb.Logf("  %s: %s, truly %s: %.60s", c.name, got, c.language, s)
			}
		}
	}
	return pages, short
}

// TestDetectedLanguages holds what is reached, less a little: of the pieces some are in
// English whatever the page is in.
func TestDetectedLanguages(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	pages, short := detectLanguages(t, text.Detect)
	t.Logf("pages %d of %d, texts of 100 to 200 characters %d of %d", pages.right, pages.all, short.right, short.all)
	if pages.share() < 0.97 || short.share() < 0.93 || pages.all < 80 || short.all < 600 {
		t.Errorf("detected %.3f of %d pages, %.3f of %d short texts", pages.share(), pages.all, short.share(), short.all)
	}
}

package parse

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/stages/parse/fold"
	"crawlbatch.io/crawlbatch/stages/parse/parsetest"
	"crawlbatch.io/crawlbatch/stages/parse/text"
)

var declaresLanguage = regexp.MustCompile(`(?i)<html[^>]*\slang=`)

// corpusRow is a short form of a page's stored rows.
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
	Begins     []string `json:"main_begins"` // first blocks of the main text, shortened
	Topics     []string `json:"topics"`
}

// TestGoldenRowsOfTheCorpus compares the stored rows of each page of the corpus with golden.jsonl.
// The test also compares the language and the charset with the manifest of the corpus.
func TestGoldenRowsOfTheCorpus(t *testing.T) {
	p := newParser(t)
	golden := filepath.Join(parsetest.CorpusDir(t), "golden.jsonl")
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
	for _, c := range parsetest.Corpus(t) {
		r := p.Parse(c.Document("text/html"))
		row := corpusRow{Page: c.Name, Kind: r.Kind, Title: r.Page.Title, Language: r.Page.Language, Charset: r.Page.Charset, Words: r.Page.WordCount,
			Links: len(r.Links), BadLinks: r.BadLinks, FullBytes: len(r.Text.Full), MainBytes: len(r.Text.Main), TextDigest: r.Page.TextDigest,
			SimHash: fmt.Sprintf("%016x", uint64(r.Page.SimHash)), Canonical: r.Page.CanonicalURL, Topics: r.Page.Topics}
		for _, line := range strings.Split(r.Text.Main, "\n") {
			if len(row.Begins) < 3 {
				row.Begins = append(row.Begins, fold.Cut(line, 100))
			}
		}
		if r.Kind != HTML || r.Page.Title == "" || len(r.Text.Full) < 400 {
			t.Errorf("%s: a page of kind %s with the title %q and %d bytes of text", c.Name, r.Kind, r.Page.Title, len(r.Text.Full))
		}
		if declaresLanguage.Match(c.Body) && !sameLanguage(r.Page.Language, c.Language) {
			t.Errorf("%s: language %q, truly %s", c.Name, r.Page.Language, c.Language)
		}
		_, name := parsetest.Encoding(t, c.Charset)
		if _, got := parsetest.Encoding(t, r.Page.Charset); got != name {
			t.Errorf("%s: charset %s, truly %s", c.Name, r.Page.Charset, c.Charset)
		}
		if strings.ContainsRune(r.Text.Full, utf8.RuneError) {
			t.Errorf("%s: the text has replacement characters", c.Name)
		}
		languages[c.Language], charsets[name] = true, true
		var line bytes.Buffer
		enc := json.NewEncoder(&line)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(row); err != nil {
			t.Fatal(err)
		}
		out.Write(line.Bytes())
		if got := strings.TrimSpace(line.String()); !*update && got != want[c.Name] {
			t.Errorf("%s: rows differ from %s (-want +got; -update rewrites it):\n%s", c.Name, golden, cmp.Diff(want[c.Name], got))
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

// sameLanguage reports whether got is the code of the true language. Norwegian has two written
// forms, which count as the same.
func sameLanguage(got, truth string) bool {
	return got == truth || truth == "nor" && (got == "nob" || got == "nno")
}

// shortTexts cuts pieces of 100 to 200 characters from a page's text.
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

// detectLanguages detects the language of every page of the corpus from its text alone, and the
// language of pieces of its main content.
func detectLanguages(tb testing.TB, detect func(string) string) (pages, short parsetest.Accuracy) {
	p := newParser(tb)
	for _, c := range parsetest.Corpus(tb) {
		if c.Charset != "UTF-8" {
			continue // another page has the same text
		}
		c.Body = parsetest.Mute(c.Body)
		r := p.Parse(c.Document("text/html; charset=utf-8"))
		sample := r.Text.Main
		if len(sample) < 200 {
			sample = r.Text.Full
		}
		got := detect(sample)
		ok := sameLanguage(got, c.Language)
		if pages.Count(ok); !ok && testing.Verbose() {
			tb.Logf("%s: %s, truly %s", c.Name, got, c.Language)
		}
		for _, s := range shortTexts(r.Text.Main) {
			got := detect(s)
			ok := sameLanguage(got, c.Language)
			if short.Count(ok); !ok && testing.Verbose() {
				tb.Logf("  %s: %s, truly %s: %.60s", c.Name, got, c.Language, s)
			}
		}
	}
	return pages, short
}

// TestDetectedLanguages requires slightly less than the present quality. Not all pieces of pages can
// be right, because some are in English although the whole page has another language.
func TestDetectedLanguages(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	pages, short := detectLanguages(t, text.Detect)
	t.Logf("pages %d of %d, texts of 100 to 200 characters %d of %d", pages.Right, pages.All, short.Right, short.All)
	if pages.Share() < 0.97 || short.Share() < 0.93 || pages.All < 80 || short.All < 600 {
		t.Errorf("detected %.3f of %d pages, %.3f of %d short texts", pages.Share(), pages.All, short.Share(), short.All)
	}
}

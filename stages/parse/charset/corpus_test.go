package charset

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"crawlbatch.io/crawlbatch/stages/parse/fold"
	"crawlbatch.io/crawlbatch/stages/parse/parsetest"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html/charset"
)

// TestTheHeaderDeclaresACharset parses every page with its charset declared in the header but not
// in the page.
func TestTheHeaderDeclaresACharset(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	for _, c := range parsetest.Corpus(t) {
		body := c.Body
		if !strings.HasPrefix(c.Charset, "UTF-16") {
			body = parsetest.Mute(body)
		}
		got, name := Decode(body, "text/html; charset="+c.Charset)
		_, want := parsetest.Encoding(t, c.Charset)
		if _, name := parsetest.Encoding(t, name); name != want {
			t.Errorf("%s: charset %s, declared %s", c.Name, name, c.Charset)
		}
		truth := c
		truth.Body = body
		if d := cmp.Diff(string(truth.Text(t)), string(got)); d != "" {
			t.Errorf("%s: text (-truth +decoded):\n%.2000s", c.Name, d)
		}
	}
}

func TestGuessedCharsets(t *testing.T) {
	g := parsetest.GuessCharsets(t, Decode)
	t.Logf("%d of %d", g.Right, g.All)
	if g.All < 50 || g.Right < g.All-2 {
		t.Errorf("guessed %d of %d", g.Right, g.All)
	}
}

// TestDeclaredEncodings runs the repository's own cases, which have html5lib's form.
func TestDeclaredEncodings(t *testing.T) {
	if passed, _, all := runEncodingTests(t, []string{filepath.Join("testdata", "encodings.dat")}); passed < all || all < 30 {
		t.Errorf("passed %d of %d", passed, all)
	}
}

// TestEncodingTestsOfHTML5Lib runs html5lib's encoding tests. Decode must pass every test that
// x/net/html/charset passes. For an ASCII document without a declaration, the tests expect
// windows-1252, but Decode returns UTF-8, which gives the same text. Two tests fail on purpose. In
// the first test, a script writes the declaration. In the second test, UTF-8 text declares EUC-JP.
func TestEncodingTestsOfHTML5Lib(t *testing.T) {
	dir, ok := parsetest.Shared(t, "html5lib")
	if !ok {
		return
	}
	dir = filepath.Join(dir, "encoding")
	files, _ := filepath.Glob(filepath.Join(dir, "*.dat"))
	scripted, _ := filepath.Glob(filepath.Join(dir, "scripted", "*.dat"))
	passed, theirs, all := runEncodingTests(t, append(files, scripted...))
	t.Logf("%d of %d, x/net/html/charset %d", passed, all, theirs)
	if passed < 81 {
		t.Errorf("passed %d of %d", passed, all)
	}
	big5, err := os.ReadFile(filepath.Join(dir, "chardet", "test_big5.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if got := (&undecoded{body: big5}).guessEncoding(); got != "big5" {
		t.Errorf("a text in Big5 is taken for %s", got)
	}
}

// runEncodingTests runs files of tests. passed is the number of tests that Decode passes, and theirs
// is the number of tests that x/net/html/charset passes.
func runEncodingTests(t *testing.T, files []string) (passed, theirs, all int) {
	t.Helper()
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range bytes.Split(raw, []byte("#data\n")) {
			data, label, ok := bytes.Cut(test, []byte("\n#encoding\n"))
			if !ok {
				continue
			}
			all++
			_, want := parsetest.Encoding(t, string(bytes.TrimSpace(label)))
			_, x, _ := charset.DetermineEncoding(data, "")
			_, got := (&undecoded{body: data}).sniffEncoding("")
			if got == "utf-8" && ascii(data) && want == "windows-1252" {
				got = want
			}
			if x == want {
				theirs++
			}
			switch {
			case got == want:
				passed++
			case x == want && !(filepath.Base(f) == "test-yahoo-jp.dat" && got == "utf-8" && utf8.Valid(data)):
				t.Errorf("%s: %s, want %s: %.200q", filepath.Base(f), got, want, data)
			default:
				t.Logf("%s: %s, x/net/html/charset %s, want %s: %.100q", filepath.Base(f), got, x, want, data)
			}
		}
	}
	return passed, theirs, all
}

// FuzzDecode checks the promises of Decode for any bytes and any declaration.
func FuzzDecode(f *testing.F) {
	for _, c := range parsetest.Corpus(f) {
		f.Add("text/html", parsetest.Mute(c.Body)[:min(len(c.Body)-2, 2000)])
		f.Add("text/html; charset="+c.Charset, c.Body[:min(len(c.Body), 500)])
	}
	f.Add("text/html; charset=replacement", []byte("x"))
	f.Add("charset=;charset='utf-16", []byte("<meta charset=utf-7><meta http-equiv=content-type content='charset charset = \"koi8-r'>"))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		before := bytes.Clone(body)
		doc, name := Decode(body, contentType)
		if !bytes.Equal(before, body) {
			t.Error("decode changed the body")
		}
		if !utf8.Valid(doc) || len(doc) > 3*len(body)+3 {
			t.Errorf("%d bytes of %s became %d, UTF-8 %t", len(body), name, len(doc), utf8.Valid(doc))
		}
		if e, _ := charset.Lookup(name); e == nil {
			t.Errorf("%q is not an encoding", name)
		}
		again, same := Decode(body, contentType)
		if same != name || !bytes.Equal(again, doc) {
			t.Errorf("decoded twice, as %s and %s", name, same)
		}
		if utf8.Valid(body) && name == "UTF-8" && !bytes.Equal(doc, bytes.TrimPrefix(body, fold.BOM)) {
			t.Error("UTF-8 was changed")
		}
	})
}

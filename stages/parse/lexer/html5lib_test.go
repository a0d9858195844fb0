package lexer

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"crawlbatch.io/crawlbatch/stages/parse/parsetest"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html/atom"
)

// tokenizerTest is a case of html5lib's tokenizer tests.
type tokenizerTest struct {
	Description   string
	Input         string
	Output        []json.RawMessage
	InitialStates []string
	LastStartTag  string
	DoubleEscaped bool
}

// contexts maps each start state of the tokenizer to an element whose text the tokenizer reads in
// that state.
var contexts = map[string]atom.Atom{"Data state": 0, "PLAINTEXT state": atom.Plaintext, "RCDATA state": atom.Title, "RAWTEXT state": atom.Style,
	"Script data state": atom.Script}

var escapes = regexp.MustCompile(`\\u[0-9a-fA-F]{4}`)

// unescaped reverses the double escaping that some tests have.
func unescaped(s string) string {
	return escapes.ReplaceAllStringFunc(s, func(m string) string {
		n, _ := strconv.ParseUint(m[2:], 16, 16)
		return string(rune(n))
	})
}

// expectedTokens returns the tokens that a test expects, in the form of lexTokens,
// without comments, doctypes and unused attributes.
func (test *tokenizerTest) expectedTokens(t *testing.T) (out []string) {
	t.Helper()
	for _, raw := range test.Output {
		var token []json.RawMessage
		if err := json.Unmarshal(raw, &token); err != nil {
			continue // "ParseError"
		}
		text := func(i int) (s string) {
			if err := json.Unmarshal(token[i], &s); err != nil {
				t.Fatal(err)
			}
			if test.DoubleEscaped {
				s = unescaped(s)
			}
			return s
		}
		switch text(0) {
		case "Character":
			out = addText(out, dropDifferences(text(1)))
		case "EndTag":
			out = append(out, "</"+atom.Lookup([]byte(text(1))).String())
		case "StartTag":
			s := "<" + atom.Lookup([]byte(text(1))).String()
			var vals map[string]string
			if err := json.Unmarshal(token[2], &vals); err != nil {
				t.Fatal(err)
			}
			for a := Attr(0); a < attrCount; a++ {
				for key, v := range vals {
					if test.DoubleEscaped {
						v = unescaped(v)
					}
					if of, known := attrNames[key]; known && of == a {
						s += fmt.Sprintf(" %d=%s", a, dropDifferences(v))
					}
				}
			}
			out = append(out, s)
		}
	}
	return out
}

// TestTokens runs the lexer and x/net/html's tokenizer on the repository's own cases, which have
// html5lib's form.
func TestTokens(t *testing.T) {
	if passed, all := tokenize(t, []string{filepath.Join("testdata", "tokens.json")}); passed < all || all < 50 {
		t.Errorf("passed %d of %d cases", passed, all)
	}
}

// TestTokenizerTestsOfHTML5Lib runs html5lib's tokenizer tests in each state in which a document's
// text can begin. The lexer and x/net/html's tokenizer must find the same tokens.
func TestTokenizerTestsOfHTML5Lib(t *testing.T) {
	dir, ok := parsetest.Shared(t, "html5lib")
	if !ok {
		return
	}
	files, _ := filepath.Glob(filepath.Join(dir, "tokenizer", "*.test"))
	passed, all := tokenize(t, files)
	t.Logf("x/net/html, and so the lexer, passes %d of %d", passed, all)
	if passed < 6900 {
		t.Errorf("passed %d of %d tests", passed, all)
	}
}

// tokenize runs files of tests. passed is the number of tests that x/net/html's tokenizer passes, and
// all is the number of tests.
func tokenize(t *testing.T, files []string) (passed, all int) {
	t.Helper()
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var suite struct{ Tests []tokenizerTest }
		if err := json.Unmarshal(raw, &suite); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		for _, test := range suite.Tests {
			if test.DoubleEscaped {
				test.Input = unescaped(test.Input)
			}
			want := test.expectedTokens(t)
			if test.InitialStates == nil {
				test.InitialStates = []string{"Data state"}
			}
			for _, state := range test.InitialStates {
				context, ok := contexts[state]
				if !ok {
					continue // the lexer's own tests cover CDATA sections
				}
				if test.LastStartTag != "" {
					context = atom.Lookup([]byte(test.LastStartTag))
				}
				doc := test.Input
				if context != 0 {
					doc = "<" + context.String() + ">" + doc
				}
				x, ours := netHTMLTokens([]byte(doc)), lexTokens([]byte(doc))
				if context != 0 {
					x, ours = x[1:], ours[1:]
				}
				all++
				if slices.Equal(x, want) {
					passed++
				} else if testing.Verbose() {
					t.Logf("%s: %q: x/net/html finds %q, wanted is %q", test.Description, test.Input, x, want)
				}
				if d := cmp.Diff(x, ours); d != "" {
					t.Errorf("%s: %s: %q in the %s (-x/net/html +lexer):\n%s", filepath.Base(f), test.Description, test.Input, state, d)
				}
			}
		}
	}
	return passed, all
}

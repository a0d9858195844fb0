// Package focus scores texts and URLs by a list of weighted terms, so that a crawl can prefer what is
// relevant to a topic.
//
// A model is a text with one term per line: its weight, a space, and the term, which is one or more words.
// Lines that are empty or begin with # are comments.
//
//	# renewable energy
//	1    solar power
//	0.5  wind
//	-2   horoscope
//
// A term occurs in a text if its words do, in their order and next to each other. Letter case and
// compatibility forms of characters do not matter. In scripts without spaces between words (Chinese,
// Japanese, Thai and others), each character counts as a word. The score of a text is the sum of the
// weights of the terms that occur in it, each counted once.
//
// Any bytes can be scored, in time linear in their number. Package focus imports package schema.
package focus

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// ErrModel means that a text is not a model. The error names the line.
var ErrModel = errors.New("not a list of weighted terms")

// These are the bounds of a model and of what is scored.
const (
	MaxBytes  = 1 << 20 // largest size of a model's text
	maxTerms  = 20_000
	maxWords  = 16 // words of a term
	maxWeight = 1000
	maxScored = 64 << 10 // bytes of each text that count
)

// Model is a parsed list of terms. It is safe for concurrent use.
type Model struct {
	terms   []term
	index   map[string]int    // index of each term, by its words with a space between them
	lengths map[string]uint32 // for the first word of each term, the numbers of words of such terms, as bits
}

type term struct {
	words  []string
	weight float64
}

// Parse reads a model. Errors wrap ErrModel.
func Parse(text string) (*Model, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("%w: it has more than %d bytes", ErrModel, MaxBytes)
	}
	m, seen := &Model{index: map[string]int{}, lengths: map[string]uint32{}}, map[string]int{}
	lines := bufio.NewScanner(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	lines.Buffer(nil, MaxBytes+1)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		t, err := parseTerm(line)
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrModel, n, err)
		}
		key := strings.Join(t.words, " ")
		if before, twice := seen[key]; twice {
			return nil, fmt.Errorf("%w: line %d: the term %.60q is in line %d, too", ErrModel, n, key, before)
		}
		if seen[key] = n; len(m.terms) == maxTerms {
			return nil, fmt.Errorf("%w: line %d: a list has at most %d terms", ErrModel, n, maxTerms)
		}
		m.index[key] = len(m.terms)
		m.lengths[t.words[0]] |= 1 << len(t.words)
		m.terms = append(m.terms, t)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	if len(m.terms) == 0 {
		return nil, fmt.Errorf("%w: it has no term: write lines such as \"1 solar power\"", ErrModel)
	}
	return m, nil
}

func parseTerm(line string) (t term, err error) {
	if !utf8.ValidString(line) {
		return t, fmt.Errorf("%.60q is not UTF-8", line)
	}
	at := strings.IndexFunc(line, unicode.IsSpace)
	if at < 0 {
		return t, fmt.Errorf("%.60q is not a weight and a term: write a line such as \"1 solar power\"", line)
	}
	if t.weight, err = strconv.ParseFloat(line[:at], 64); err != nil || !(math.Abs(t.weight) <= maxWeight) { // NaN is refused too
		return t, fmt.Errorf("%.60q is not a weight from -%d to %d", line[:at], maxWeight, maxWeight)
	}
	if t.words = words(line[at:]); len(t.words) == 0 || len(t.words) > maxWords {
		return t, fmt.Errorf("the term %.60q has %d words: it must have 1 to %d", strings.TrimSpace(line[at:]), len(t.words), maxWords)
	}
	return t, nil
}

// String returns the model as a text that Parse reads: without comments, and with terms as words in lower
// case. It holds only letters, marks, digits, spaces, line ends, and the characters of numbers.
func (m *Model) String() string {
	var b strings.Builder
	for _, t := range m.terms {
		fmt.Fprintf(&b, "%s %s\n", strconv.FormatFloat(t.weight, 'g', -1, 64), strings.Join(t.words, " "))
	}
	return b.String()
}

// Score returns the sum of the weights of the terms that occur in any of the texts.
func (m *Model) Score(texts ...string) float64 {
	found := map[int]bool{}
	for _, text := range texts {
		all := words(text)
		for i, word := range all {
			for lengths := m.lengths[word]; lengths != 0; lengths &= lengths - 1 {
				n := bits.TrailingZeros32(lengths)
				if i+n > len(all) {
					break
				}
				if t, ok := m.index[strings.Join(all[i:i+n], " ")]; ok {
					found[t] = true
				}
			}
		}
	}
	sum := 0.0
	for _, t := range slices.Sorted(maps.Keys(found)) { // in the order of the list, so that the sum is always rounded alike
		sum += m.terms[t].weight
	}
	return sum
}

// ScoreInlink returns the score of a URL with the texts of links to it, plus half of the score of the best
// page that links to it. links may be nil. Without a model, the score is 0.
func (m *Model) ScoreInlink(address string, links *schema.Inlink) float64 {
	if m == nil {
		return 0
	}
	_, rest, _ := strings.Cut(address, "://")
	if plain, err := url.PathUnescape(rest); err == nil {
		rest = plain
	}
	if links == nil {
		return m.Score(rest)
	}
	return m.Score(append([]string{rest}, links.Anchors...)...) + float64(links.SourceFocus/2)
}

// unspaced are scripts that put no spaces between words.
var unspaced = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar}

// words divides a text into words in lower case.
func words(text string) (out []string) {
	if len(text) > maxScored {
		text = text[:maxScored]
	}
	text = strings.ToLower(norm.NFKC.String(text))
	start := -1 // start of the current word
	end := func(at int) {
		if start >= 0 {
			out = append(out, text[start:at])
		}
		start = -1
	}
	for i, r := range text {
		switch {
		case r == utf8.RuneError:
			end(i)
		case unicode.In(r, unspaced...):
			end(i)
			out = append(out, string(r))
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			if start < 0 {
				start = i
			}
		default:
			end(i)
		}
	}
	end(len(text))
	return out
}

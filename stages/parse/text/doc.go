// Package text collects the text of a document as an outline of blocks and elements, and chooses
// the main content. For the main content, the package computes the normal form, digest, words,
// terms, language and signals of quality.
//
// The input is text and element names in document order. The output is lines of text, counts and a
// language. Equal input gives equal output. Time and memory are linear in the text. Package text
// imports no other package of this project.
//
// Other programs can recompute the stored values from the column main of a row of text, by the
// definitions below. Categories, scripts and case follow the Unicode version of Go's package
// unicode. A changed definition needs a new parse.Version.
//
// # The normal form
//
// Equal contents have the same normal form, even if they are typed, composed or broken into lines
// differently. The following steps, in this order, give the normal form:
//
//  1. Decode as UTF-8; a byte that is not UTF-8 is U+FFFD. Compose by Normalization Form C (UAX
//     #15), in the Stream-Safe Text Format where more than 30 non-starters follow one another.
//     (Form KC would fold characters that read differently: ², ﬁ, ①.)
//  2. Leave out characters that only affect line breaks and direction: U+00AD (soft hyphen),
//     U+061C, U+200E, U+200F, U+202A–U+202E, U+2060, U+2066–U+2069, U+FEFF.
//  3. Map each code point to lower case by its simple mapping (UnicodeData.txt).
//  4. Replace every run of white space (White_Space, U+200B, and the control characters below
//     U+0020) by one U+0020, and remove it at both ends.
//
// text_digest is the SHA-1 of the normal form's UTF-8 in base 32 (RFC 4648), or null if the normal
// form is empty. The column simhash is the fingerprint of the normal form, as package
// formats/simhash defines it.
//
// # Words
//
// Words follow the default rules of UAX #29, applied to the normal form and adapted to web texts:
//
//   - In scripts with spaces between words, a run of letters (L) and numbers (N), with the
//     marks (M), U+200C and U+200D after them, is a word. Han, Hiragana, Katakana and the
//     scripts below never share a run with others.
//   - Between two letters, the characters ' U+2019 and U+00B7 continue the word (don’t,
//     col·lecció). The characters . and , continue a word between two ASCII digits (3,000.5). A
//     full stop between letters separates words, because many pages forget the space after it; so
//     does the low line.
//   - Each code point of Han and Hiragana is a word, as in UAX #29 without a dictionary. A Chinese
//     word has about 1.6 such code points, a Japanese word about 2. A run of Katakana is a word.
//   - Thai, Lao, Khmer, Myanmar, Tai Le, New Tai Lue, Tai Tham and Tai Viet are written without
//     spaces. A word has about four letters and marks. The number of words in a run is therefore
//     the number of its letters and marks, divided by four and rounded up.
//
// word_count is the number of words. scripts and script_words count the words by script (UAX #24,
// with names from ISO 15924). A word has the script of its first code point in a script of the table
// of properties.go. Without such a code point, a word has the script Zyyy if all its code points are
// Common or Inherited, such as a number, and otherwise Zzzz.
//
// # Terms
//
// Terms are words that may tell what a text is about, with their counts:
//
//   - words of at least three letters (two in Hangul and Katakana; four in Latn, Grek and Cyrl in
//     languages without a list of stop words). Numbers, stop words of the text's language
//     (words/stopwords.txt) and eleven English stop words do not count. In French, Italian and
//     Catalan, elided articles are cut off, so l’eau gives eau;
//   - pairs of words that may be terms, joined by a space: the words have a single space between
//     them in one line, and the pair occurs at least twice. A pair does not cross the end of a
//     sentence or a block;
//   - pairs of adjacent Han code points that occur at least twice, joined. A pair does not count if
//     Chinese or Japanese texts on any subject have one of its code points;
//   - runs of 3 to 16 letters and marks in scripts without spaces that occur at least
//     twice; longer runs are clauses.
//
// The most frequent terms come first. Of equally frequent terms, the earliest comes first. A pair is as
// early as the first occurrence of its first word, in the pair or elsewhere; it comes after this word,
// and among the pairs with this word by its own first occurrence. Only the first 100,000 words of a text
// count.
package text

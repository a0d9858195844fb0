// Package text holds what parse does with the text of a document: the outline of
// blocks and elements that it is collected in, the choice of the main content, the
// normal form and its digest, words, terms, language, and the signals of quality.
//
// In: text and element names in document order. Out: lines of text, counts, a
// language. All of it is pure: equal input gives equal output, without input or output
// of its own, in time and memory linear in the text. It imports no other package of
// this project.
//
// What is stored can be recomputed by another program, from column main of a row of
// text, by what follows. Categories, scripts and case are those of the Unicode version
// of Go's package unicode; a change of these definitions is one of parse.Version.
//
// # The normal form
//
// Equal contents that are typed, composed or broken into lines differently have the
// same normal form. A text gets its own by these steps, in this order:
//
//  1. Decode as UTF-8; a byte that is not UTF-8 is U+FFFD. Compose: Normalization Form
//     C (UAX #15), in the Stream-Safe Text Format where more than 30 non-starters follow
//     one another. Not KC: what compatibility folds (², ﬁ, ①) is read differently.
//  2. Leave out what shows only in how lines break and run: U+00AD (soft hyphen),
//     U+061C, U+200E, U+200F, U+202A–U+202E, U+2060, U+2066–U+2069, U+FEFF.
//  3. Map each code point to lower case by its simple mapping (UnicodeData.txt).
//  4. Make every run of white space (White_Space, U+200B, and the control characters
//     below U+0020) one U+0020, none at the ends.
//
// text_digest is the SHA-1 of its UTF-8 in base 32 (RFC 4648), null where it is empty.
// simhash is the fingerprint, as package formats/simhash defines it, of the normal form.
//
// # Words
//
// Words are those of the default rules of UAX #29 with what they leave to others decided
// for texts of the web, in the normal form:
//
//   - A run of letters (L) and numbers (N), with the marks (M), U+200C and U+200D that
//     follow them, is a word: of all scripts that part words by spaces. Han, Hiragana,
//     Katakana and the scripts below never share a run with others.
//   - ' U+2019 and U+00B7 between two letters go on with the word (don’t, col·lecció), and so
//     do . and , between two ASCII digits (3,000.5). A full stop between letters parts
//     words, for many pages forget the space behind it; so does the low line.
//   - Of Han and Hiragana each code point is a word, as in UAX #29 without a dictionary:
//     about 1.6 for a word of Chinese, 2 for one of Japanese. A run of Katakana is one.
//   - Thai, Lao, Khmer, Myanmar and Tai Le, New Tai Lue, Tai Tham, Tai Viet are written
//     without spaces: a run of theirs counts for a word for each four letters and marks
//     begun, about their mean length.
//
// word_count is their number. scripts and script_words give it by script (UAX #24, named
// by ISO 15924): that of a word is the script of its first code point that has one of its
// own. A word without (numbers) is of Zyyy, one in a script that the table in properties.go
// does not name of Zzzz.
//
// # Terms
//
// Terms are the words that may say what a text is about, with their counts:
//
//   - words (in French, Italian and Catalan without what an apostrophe elides: of l’eau, eau) of
//     at least three letters (Hangul, Katakana: two; of languages without a list of
//     stop words, in the scripts Latn, Grek and Cyrl, four) that are neither a number nor a stop
//     word of the text's language (stoplists_*.go) nor one of eleven of English,
//   - pairs of such words that follow one another in one line with nothing but a space
//     between them, so not across the end of a sentence or a block, and that occur twice
//     at least, joined by a space,
//   - pairs of Han code points that stand side by side, neither one that Chinese or Japanese
//     write in every sentence, and that occur twice at least, written together,
//   - runs of the scripts without spaces of 3 to 16 letters and marks that occur twice
//     at least: longer ones are clauses.
//
// The most frequent come first, of equals the one that occurs first. The first 100,000
// words of a text are looked at.
package text

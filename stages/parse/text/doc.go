// Package text holds what parse does with the text of a document: the outline of
// blocks and elements that it is collected in, the choice of the main content, the
// normal form and its digest, words, terms, language.
//
// In: text and element names in document order. Out: lines of text, counts, a
// language. All of it is pure: equal input gives equal output, without input or output
// of its own, in time and memory linear in the text. It imports no other package of
// this project.
package text

package schema

import (
	"cmp"

	"crawlbatch.io/crawlbatch/formats/extsort"
)

// UnknownLanguage stands in terms for pages whose language is not known: the ISO-639-3 code for
// undetermined.
const UnknownLanguage = "und"

// TermLanguage returns the language of terms under which the terms of a page count.
func TermLanguage(page string) string { return cmp.Or(page, UnknownLanguage) }

// Term is a row of the terms dataset: how many of the round's sampled pages in a language have a term.
// Package formats/topics defines the sample, and which terms have rows.
type Term struct {
	Language string `parquet:"language,dict" doc:"ISO-639-3 code of the pages' language; und: not known"`
	Term     string `parquet:"term,delta" doc:"word, or pair of neighbouring words, in lower case"`
	Pages    int64  `parquet:"pages" doc:"number of sampled pages in the language that have the term among their 128 most frequent terms (document frequency)"`
	Sampled  int64  `parquet:"sampled_pages" doc:"number of sampled pages in the language, at most 10,000,000; the same in all rows of a round and language"`
}

// TermPages is a row of merge's run of terms: how many pages of a partition have a term. A row with an
// empty term holds the number of all pages of the language and level. Rows are sorted by bucket,
// language, term and level.
type TermPages struct {
	Bucket   int32  `parquet:"bucket" doc:"bucket whose rank task counts the term"`
	Language string `parquet:"language,dict" doc:"as in terms"`
	Term     string `parquet:"term,delta" doc:"the term; empty: all pages"`
	Level    int32  `parquet:"level" doc:"level of the pages, as package formats/topics defines it"`
	Pages    int64  `parquet:"pages" doc:"number of pages"`
}

// TermPagesKey appends the key of a row of runs of terms.
func TermPagesKey(k extsort.Key, t *TermPages) extsort.Key {
	return k.Int(int64(t.Bucket)).Text(t.Language).Text(t.Term).Int(int64(t.Level))
}

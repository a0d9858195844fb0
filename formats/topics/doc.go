// Package topics chooses the topics of each page: the terms with the highest TF-IDF among the pages of
// the same language. It also makes the terms dataset, which holds the document frequencies.
//
// The input is merge's pages, with the counts of the 128 most frequent terms of each page. Merge tasks
// count the pages that have each term (Counter) and write a run, with a section for each bucket of
// terms. Rank tasks add up a section of all runs (Terms) and write a part of terms. Publish tasks
// weigh the terms of their pages (Scorer).
//
// # Definitions
//
// The terms of a page are those of its main text, as package stages/parse/text defines them: words, and
// pairs of words that occur at least twice. Stop words are none, because pairs end there; their idf would be
// lowest anyway. In languages without spaces, terms are pairs of Han code points, and short runs of
// letters. The counts of terms are term frequencies (tf). Only the first 100,000 words of a page count. If a page
// has more than 128 terms, only the 128 most frequent count, the earliest first among equals: the lists of
// terms, and so the frequencies below, know no others. (Of 495 measured pages with a median of 520 words, half
// have more than 203 terms. On average 68 of them occur twice or more often.)
//
// n is the number of sampled pages in the page's language, and df is the number of those that have the
// term. Pages whose language is not known count as a language of their own. A term counts if df is at
// least MinPages(n): at least 1 in a language of fewer than 1,000 pages, at least 5 from 4,000 pages on, and from 600,000
// pages on at least one in 100,000 pages. So misspellings and numbers of orders are no
// topics, and a language has less than 12.8 million terms. Then
//
//	idf   = 1 + ln((1 + n) / (1 + df)), rounded to 6 decimal places
//	score = tf · idf
//
// This is scikit-learn's TfidfVectorizer(smooth_idf=True, sublinear_tf=False, norm=None, min_df=MinPages(n)),
// fitted on the sample and applied to every page. The norm l2 divides all scores of a page by the same
// number, so it gives the same topics. Because idf is rounded, the scores of a page are whole millionths,
// and their order is the same on every processor. The topics are the 15 terms with the highest
// scores, the highest first. Of equal scores, the more frequent term comes first, then the earlier one.
//
// # The sample
//
// A page's level is the number of leading zero bits of the XXH3-64 of its URL. A round of at most 10
// million planned URLs samples all pages. A larger round samples the pages of a language whose level is
// at least the smallest L for which they number at most 10 million. L depends on the language, so rare
// languages have a larger share. So that runs stay small, no round counts more than about 80 million
// pages in all: with N planned URLs, only levels from floor(N) on count, and levels from top(N) on
// count as one.
//
// The sample and all counts depend only on the pages of the round. So the rows of terms and all topics
// are the same, whatever the number of partitions, buckets and machines.
//
// # Bounds
//
// Of a partition of articles, a run takes about 300 bytes for each page, and the longer lists of terms 350.
// Counting and weighing took 0.1 to 0.4 ms of CPU for a page, where parsing took 1.5 to 2 ms: the more pages share
// their terms, the less.
//
// A Counter holds 64 MiB of counts and then moves them to a sorter on local disk. Terms streams. A Scorer
// holds 128 MiB of terms, for about 90,000 pages, then reads all terms once and scores these pages. To read a million
// terms takes 0.3 s of CPU.
//
// Package topics imports formats packages.
package topics

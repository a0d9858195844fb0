package topics

import (
	"fmt"
	"iter"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// Terms calls write with the rows of terms of a bucket, in order. rows are the rows of the bucket's sections of
// all runs, sorted. urls is the number of planned URLs of the round.
func Terms(urls int64, rows iter.Seq2[schema.TermPages, error], write func(*schema.Term) error) error {
	return sampleOf(urls, maxSampled).count(summed(rows), write)
}

// count adds up the sampled pages of each term, and calls write with the rows of the terms that count.
func (s sample) count(rows iter.Seq2[schema.TermPages, error], write func(*schema.Term) error) error {
	var language languagePages
	var sum schema.Term
	flush := func() error {
		if sum.Term == "" || sum.Pages < MinPages(sum.Sampled) {
			return nil
		}
		return write(&sum)
	}
	for row, err := range rows {
		if err != nil {
			return fmt.Errorf("read terms: %w", err)
		}
		if row.Language != sum.Language || row.Term != sum.Term {
			if err := flush(); err != nil {
				return err
			}
			if row.Language != sum.Language {
				language = languagePages{}
			}
			sum = schema.Term{Language: row.Language, Term: row.Term}
		}
		if row.Term == "" { // the numbers of all pages come first
			language.add(row.Level, row.Pages)
			continue
		}
		var lowest int32
		sum.Sampled, lowest = language.sampled(s.most)
		if row.Level >= lowest {
			sum.Pages += row.Pages
		}
	}
	return flush()
}

// languagePages holds the number of pages of a language by level, in ascending order of levels.
type languagePages []struct {
	level int32
	pages int64
}

func (l *languagePages) add(level int32, pages int64) {
	*l = append(*l, struct {
		level int32
		pages int64
	}{level, pages})
}

// sampled returns the number of sampled pages and the lowest sampled level.
func (l languagePages) sampled(most int64) (pages int64, lowest int32) {
	for i := len(l) - 1; i >= 0 && (pages == 0 || pages+l[i].pages <= most); i-- {
		pages += l[i].pages
		lowest = l[i].level
	}
	return pages, lowest
}

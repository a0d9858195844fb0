package topics

import (
	"context"
	"fmt"
	"iter"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

// Write writes the part of terms of the task's bucket. ok is false if the round has no terms.
func Write(ctx context.Context, env *stages.Env, in *stages.Input) (f manifest.File, ok bool, err error) {
	if !In(in.Plan) {
		return f, false, nil
	}
	sections, _, err := stages.Sections(in.Results[stages.Merge], stages.FileTerms, in.Task.Partition)
	if err != nil {
		return f, false, err
	}
	key := layout.Table(stages.FileTerms, in.Task.Crawl, in.Task.Round, in.Task.Partition)
	f, err = stages.Write(ctx, env, stages.FileTerms, key, []string{"language", "term"}, func(w *table.Writer[schema.Term]) error {
		rows := table.MergeSections(ctx, env.Bucket, env.Scratch, sections, schema.CompareTermPages)
		return sampleOf(in.Plan.URLs, maxSampled).count(summed(rows), w.Append)
	})
	return f, err == nil, err
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

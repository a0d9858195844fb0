package merge

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
)

// key is the sort key of a URL in the tables.
type key struct {
	SURT string `parquet:"url_surtkey"`
	URL  string `parquet:"url"`
}

func compareKeys(a, b *key) int { return schema.CompareURLs(a.SURT, a.URL, b.SURT, b.URL) }

func keyKey(k table.Key, u *key) table.Key { return k.Text(u.SURT).Text(u.URL) }

func fetchKey(k table.Key, f *schema.Fetch) table.Key {
	return k.Text(f.SURT).Text(f.URL).Int(int64(f.RecordedAt))
}

// mergeFetches publishes the outcomes, checks them against the plan, and writes the run of redirects.
func (m *merger) mergeFetches(ctx context.Context) error {
	rows, err := sorted(ctx, m, m.keys(stages.FileFetches, ""), fetchKey)
	if err != nil {
		return err
	}
	defer rows.Close()
	planned, err := sorted(ctx, m, []string{m.plan.Partitions[m.task.Partition].File.Key}, keyKey)
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	defer planned.Close()
	heads := map[string]bool{}
	for _, head := range m.hops {
		heads[head] = true
	}
	redirects, err := table.NewSorter(m.env.Scratch, schema.RedirectKey, m.sortMemory/4)
	if err != nil {
		return err
	}
	defer redirects.Close()
	if err := publish(ctx, m, stages.FileFetches, stages.ByURL, func(w *table.Writer[schema.Fetch]) error {
		for f, err := range oneEach(planned.Sorted(ctx), rows.Sorted(ctx)) {
			if err != nil {
				return err
			}
			if heads[f.URL] {
				m.depths[strings.Clone(f.URL)] = f.Depth // the texts of a sorted row share their memory
			}
			m.count("outcome."+string(f.Outcome), 1)
			m.hosts.countFetch(&f)
			if err := w.Append(&f); err != nil {
				return err
			}
			if f.RedirectTarget == "" {
				continue
			}
			k, err := urlkey.KeyOf(f.RedirectTarget)
			if err != nil {
				return fmt.Errorf("redirect target of %q: %w", f.URL, err)
			}
			if err := redirects.Add(&schema.Redirect{
				Bucket: int32(urlkey.Bucket(k.Domain, m.plan.Buckets)), SURT: k.SURT, URL: k.URL, Form: schema.Linked(f.RedirectSent, f.Domain == k.Domain), Source: f.URL, Depth: f.Depth,
			}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	order := []string{"target_bucket", "url_surtkey", "url", "depth", "source"}
	return keepRun(ctx, m, stages.FileRedirects, order, redirects.Sorted(ctx), func(r *schema.Redirect) int32 { return r.Bucket })
}

// oneEach yields the rows of fetches. If a planned URL does not have exactly one row, or a row has no
// planned URL, the sequence ends there with an error. Both parameters are in the order of URLs.
func oneEach(planned iter.Seq2[key, error], fetches iter.Seq2[schema.Fetch, error]) iter.Seq2[schema.Fetch, error] {
	return func(yield func(schema.Fetch, error) bool) {
		fail := func(url, what string) {
			yield(schema.Fetch{}, fmt.Errorf("planned URL %q %s: the fetch stage must record exactly one outcome for each URL: %w",
				url, what, stages.ErrPermanent))
		}
		plan := table.Pull(planned)
		defer plan.Close()
		last := key{}
		for f, err := range fetches {
			if err != nil {
				yield(f, err)
				return
			}
			here := key{f.SURT, f.URL}
			if here == last {
				fail(f.URL, "has two outcomes")
				return
			}
			p, err := plan.Next()
			if err != nil {
				yield(f, fmt.Errorf("plan: %w", err))
				return
			}
			switch {
			case p == nil || compareKeys(p, &here) > 0:
				yield(f, fmt.Errorf("URL %q has an outcome but is not in the partition's plan: %w", f.URL, stages.ErrPermanent))
				return
			case *p != here:
				fail(p.URL, "has no outcome")
				return
			}
			last = here
			if !yield(f, nil) {
				return
			}
		}
		p, err := plan.Next()
		if err != nil {
			yield(schema.Fetch{}, fmt.Errorf("plan: %w", err))
		} else if p != nil {
			fail(p.URL, "has no outcome")
		}
	}
}

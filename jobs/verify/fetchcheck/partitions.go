package fetchcheck

import (
	"context"
	"strings"

	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
)

// placedURL is a planned URL with its partition.
type placedURL struct {
	Domain    string
	URL       string
	Partition int32
}

func placedKey(k table.Key, p *placedURL) table.Key {
	return k.Text(p.Domain).Text(p.URL).Int(int64(p.Partition))
}

// everyDomainIsInOnePartition reports domains and URLs that are in two partitions of the round, and
// URLs that occur twice in one partition. With a sample, the check covers only some domains.
func everyDomainIsInOnePartition(ctx context.Context, a *audit.Audit, r *audit.Round) error {
	rows, err := table.NewSorter(a.Scratch, placedKey, 4*audit.SortMemory)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // the sorter holds only temporary data
	for n, part := range r.Plan.Partitions {
		if a.Broken(part.File.Key) {
			continue
		}
		if err := a.Skip(place(ctx, a, r, n, rows), onePartition, r); err != nil {
			return err
		}
	}
	a.Count(onePartition, rows.Len())
	wrong := func(p *placedURL, format string, args ...any) {
		a.Wrong(onePartition, r.Number, audit.URL(r.Plan.Partitions[p.Partition].File.Key, p.URL), format, args...)
	}
	var last placedURL
	first := true
	for p, err := range rows.Sorted(ctx) {
		if err != nil {
			return err
		}
		switch {
		case first || p.Domain != last.Domain:
		case p.URL == last.URL:
			wrong(&p, "it is planned twice in the round, also in %s", r.Plan.Partitions[last.Partition].File.Key)
		case p.Partition != last.Partition:
			wrong(&p, "its domain %s is planned in two partitions, also in %s: two tasks would fetch from it at once", p.Domain, r.Plan.Partitions[last.Partition].File.Key)
		}
		last, first = p, false
	}
	return nil
}

// place adds the planned URLs of a partition to the sorter. It reports a row whose URL does not belong
// to the row's domain, and a row whose domain does not belong to the partition's bucket.
func place(ctx context.Context, a *audit.Audit, r *audit.Round, n int, rows *table.Sorter[placedURL]) error {
	part := r.Plan.Partitions[n]
	domain, in := "", false
	return audit.Each(ctx, a, []string{part.File.Key}, func(key string, p *planned) error {
		if p.Domain != domain || domain == "" {
			domain, in = strings.Clone(p.Domain), a.Sampled(p.Domain)
		}
		if !in {
			return nil
		}
		if k, err := urlkey.KeyOf(p.URL); err != nil || k.Domain != p.Domain || urlkey.Bucket(k.Domain, r.Plan.Buckets) != part.Bucket {
			a.Wrong(onePartition, r.Number, audit.URL(key, p.URL),
				"it is planned under domain %q in a partition of bucket %d; its own domain is %q", p.Domain, part.Bucket, k.Domain)
		}
		return rows.Add(&placedURL{p.Domain, p.URL, int32(n)})
	})
}

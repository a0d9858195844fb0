package reducecheck

import (
	"context"
	"math"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/publish/domains"
)

// DomainsAddUp compares the rows of domains with sums over the published tables, and the columns of
// each row with each other. It does not use the code of the stage. It reads one bucket at a time, so
// memory holds the sums of one domain and a sort.
func DomainsAddUp(ctx context.Context, a *audit.Audit, r *audit.Round) error {
	a.Count(domainsAddUp, 0)
	if !r.Complete(stages.Merge) || !r.Complete(stages.Publish) {
		return nil // the tables are not complete yet
	}
	for bucket := range r.Plan.Buckets {
		writer, ok := domains.Writer(r.Plan, bucket)
		if !ok || !a.Share.Has(bucket) {
			continue
		}
		result, err := r.Result(ctx, stages.Publish, writer)
		if err == nil && result != nil {
			err = checkDomains(ctx, a, r, bucket, audit.Keys(result.FilesOf(stages.FileDomains)))
		}
		if err := a.Skip(err, domainsAddUp, r); err != nil {
			return err
		}
	}
	return nil
}

// checkDomains checks the domains of a bucket, which are in the objects with the given keys.
func checkDomains(ctx context.Context, a *audit.Audit, r *audit.Round, bucket int, keys []string) error {
	sums, err := table.NewSorter(a.Scratch, sumKey, audit.SortMemory)
	if err != nil {
		return err
	}
	defer sums.Close()
	if err := sumBucket(ctx, a, r, bucket, sums); err != nil {
		return err
	}
	wrong := func(domain, format string, args ...any) {
		a.Wrong(domainsAddUp, r.Number, audit.At{Object: strings.Join(keys, ", "), Row: domain, Where: "domain = " + audit.SQL(domain)}, format, args...)
	}
	want := table.Pull(wholeSums(sums.Sorted(ctx)))
	defer want.Close()
	// before reports the wanted rows that precede a domain, and returns the wanted row of the domain.
	before := func(domain string, last bool) (*domainSum, error) {
		for {
			w, err := want.Peek()
			switch {
			case w == nil || w.Domain > domain && !last:
				return nil, err
			case w.Domain == domain && !last:
				return want.Next()
			}
			wrong(w.Domain, "it has no row, but %d planned URLs", w.Planned)
			_, _ = want.Next() // skips the row that Peek returned
		}
	}
	err = audit.Each(ctx, a, keys, func(_ string, got *schema.Domain) error {
		a.Count(domainsAddUp, 1)
		w, err := before(got.Domain, false)
		if err != nil {
			return err
		}
		if w == nil {
			wrong(got.Domain, "it has a row, but no planned URL")
			return nil
		}
		for _, d := range w.differences(got) {
			wrong(got.Domain, "its column %s is %d; the tables add up to %d", d.column, d.got, d.want)
		}
		for _, problem := range contradictions(got) {
			wrong(got.Domain, "%s", problem)
		}
		return nil
	})
	if err == nil {
		_, err = before("", true)
	}
	return err
}

// contradictions says which columns of a row contradict each other.
func contradictions(d *schema.Domain) (problems []string) {
	check := func(holds bool, problem string) {
		if !holds {
			problems = append(problems, problem)
		}
	}
	named := int64(0)
	for _, n := range d.LanguagePages {
		named += int64(n)
	}
	check(len(d.Languages) == len(d.LanguagePages), "languages and language_pages differ in length")
	check(named+d.OtherLanguages <= d.Pages, "more pages have a language than there are pages")
	check((d.Blocked == 0) == (d.BlockedBy == ""), "blocked and blocked_by contradict each other")
	check(int64(len(d.Addresses)) == min(d.AddressCount, 8), "addresses and address_count contradict each other")
	check(int64(len(d.Networks)) == min(d.NetworkCount, 8) && d.NetworkCount <= d.AddressCount, "networks, network_count and address_count contradict each other")
	check((d.ErrorRate == nil) == (d.Requests == 0), "error_rate and requests contradict each other")
	check(d.ErrorRate == nil || math.Abs(*d.ErrorRate*float64(d.Requests)-float64(d.FailedRequests)) < 1e-6*float64(d.Requests), "error_rate is not failed_requests / requests")
	for _, p := range [][]*float64{{d.FirstByteP50, d.FirstByteP90, d.FirstByteP99}, {d.TotalP50, d.TotalP90, d.TotalP99}} {
		nulls := slices.Contains(p, nil)
		check(!nulls || p[0] == nil && p[1] == nil && p[2] == nil, "some percentiles are null and others are not")
		check(nulls || *p[0] <= *p[1] && *p[1] <= *p[2], "percentiles are not in order")
	}
	check((d.RobotsState == "") == (d.RobotsHost == ""), "robots_state and robots_host contradict each other")
	check((d.RobotsChanged == nil) == (d.RobotsBefore == ""), "robots_changed and robots_compared contradict each other")
	return problems
}

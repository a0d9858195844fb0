package sitemaps

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/zeebo/xxh3"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// notePlanned notes that a URL is planned, so that no round of the crawl requests it as a sitemap. It
// returns the row that tells this to later rounds, and false if the list knew it already.
func (l *List) notePlanned(key urlkey.Key) (row schema.Sitemap, news bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := xxh3.HashString(key.URL)
	if l.known[h] {
		return row, false
	}
	l.known[h] = true
	return schema.Sitemap{SURT: key.SURT, URL: key.URL, Host: key.Host, Domain: key.Domain, Planned: true}, true
}

// Fetched notes that a planned URL was fetched and is a sitemap, possibly after redirects to
// another URL. It returns the rows that keep later rounds from requesting the sitemap again.
func (l *List) Fetched(p *schema.PlannedURL, final urlkey.Key) (rows []schema.Sitemap) {
	if !l.On() {
		return nil
	}
	for _, k := range []urlkey.Key{{URL: p.URL, SURT: p.SURT, Host: p.Host, Domain: p.Domain}, final} {
		if row, news := l.notePlanned(k); news {
			rows = append(rows, row)
		}
	}
	return rows
}

// EndSuspect ends a sitemap at which several attempts died, before it is queued. The caller records
// the row.
func (l *List) EndSuspect(named string) (schema.Sitemap, error) {
	row, err := unsentRow(named)
	if err == nil {
		row.Outcome = schema.InternalError
		_, err = l.Restore(&row)
	}
	return row, err
}

// unsentRow returns the row of a sitemap that was not requested.
func unsentRow(named string) (schema.Sitemap, error) {
	k, err := urlkey.KeyOf(named)
	if err != nil {
		return schema.Sitemap{}, fmt.Errorf("sitemap %q: %v: %w", named, err, table.ErrCorrupt)
	}
	return schema.Sitemap{SURT: k.SURT, URL: k.URL, Host: k.Host, Domain: k.Domain}, nil
}

// Carrier takes over the rows of a previous round.
type Carrier struct {
	list     *List
	own      map[string]bool          // registered domains of the partition
	carries  func(domain string) bool // see List.Carrier
	recorded map[uint64]bool          // hashes of the recorded rows of other domains
}

// Carrier returns a carrier for a partition with the registered domains in own. carries reports
// whether the partition also records the rows of another domain. Some partition must do so, because
// a later round may plan URLs of that domain.
func (l *List) Carrier(own map[string]bool, carries func(domain string) bool) *Carrier {
	return &Carrier{l, own, carries, map[uint64]bool{}}
}

// Take takes over a row. It changes the row to the state in this round, and returns whether to
// record the row. If a sitemap of the partition waited or failed temporarily, it waits again. But
// after a redirect, such a sitemap is left out, because its row does not say how robots.txt wrote its URL;
// robots.txt names the sitemap again.
func (c *Carrier) Take(row *schema.Sitemap) (record bool, err error) {
	named := cmp.Or(row.Named, row.URL)
	if row.Earlier = isFinal(row.Outcome); !row.Earlier && !row.Planned {
		if row.Named != "" || row.Redirects > 0 {
			return false, nil
		}
		sent, at := row.Sent, row.FetchedAt
		if *row, err = unsentRow(named); err != nil {
			return false, err
		}
		row.Sent, row.FetchedAt = sent, at
	}
	if c.own[row.Domain] {
		return c.list.Restore(row)
	}
	h := xxh3.HashString(fmt.Sprint(row.Outcome, row.Planned, named))
	if c.recorded[h] || !c.carries(row.Domain) {
		return false, nil
	}
	c.recorded[h] = true
	return true, nil
}

// TakeOver takes over the sitemaps of the previous round. It calls read for the rows of each
// result. It calls record for the rows that later rounds need, so that these need not read older
// rows. The first partition of a bucket also records the rows of other domains of the bucket.
// Partition 0 also does so for buckets without a partition.
func (l *List) TakeOver(plan *manifest.Plan, part int, before []*manifest.Result, read func(*manifest.Result, func(*schema.Sitemap) error) error,
	record func(*schema.Sitemap) error) error {
	if !l.On() {
		return nil
	}
	own := map[string]bool{}
	for _, h := range l.Index.Hosts() {
		if k, err := urlkey.KeyOf("http://" + h.Name + "/"); err == nil {
			own[k.Domain] = true
		}
	}
	carrier := l.Carrier(own, func(domain string) bool { return carries(plan, part, urlkey.Bucket(domain, plan.Buckets)) })
	for _, r := range before {
		err := read(r, func(row *schema.Sitemap) error {
			if keep, err := carrier.Take(row); !keep || err != nil {
				return err
			}
			return record(row)
		})
		if err != nil {
			return fmt.Errorf("load sitemaps of the previous round: %w", err)
		}
	}
	return nil
}

// carries reports whether a partition records the rows of those domains of a bucket that are not
// its own. The first partition of the bucket does so, or partition 0 if the bucket has none.
func carries(plan *manifest.Plan, part, bucket int) bool {
	first := slices.IndexFunc(plan.Partitions, func(p manifest.PlanPartition) bool { return p.Bucket == bucket })
	return part == max(first, 0)
}

// markSuspects marks each waiting sitemap that the list suspects contains.
func (l *List) markSuspects(suspects []manifest.Suspect) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, la := range l.lanes {
		for _, t := range la.waiting {
			t.suspect = slices.ContainsFunc(suspects, func(s manifest.Suspect) bool { return s.Sitemap == t.Named })
		}
	}
}

// Expected reports whether a sitemap waits for its request in this round, or is under way.
func (l *List) Expected(named string) bool { return l.Host(named) != "" }

// Host returns the host of the next request for a sitemap, or "" if the sitemap is not expected.
func (l *List) Host(named string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.tasks {
		if t.Named == named {
			return t.Key.Host
		}
	}
	if ended, ok := l.known[xxh3.HashString(named)]; ended || !ok {
		return ""
	}
	key, err := urlkey.KeyOf(named)
	if err != nil {
		return ""
	}
	for _, t := range l.waitingOf(key.Host) {
		if t.Named == named {
			return t.Key.Host
		}
	}
	return ""
}

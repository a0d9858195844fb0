package planner

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/budget"
	"crawlbatch.io/crawlbatch/planner/entry"
	"crawlbatch.io/crawlbatch/planner/pace"
)

// chooser reads the records in order and merges the records of each URL. It writes the URLs that
// each domain's budget allows to the chosen list.
type chooser struct {
	*rules
	refused *refusals
	files   func(entry.Seq) string // returns the name of the source of an entry
	names   *entry.Names           // for the listings of refused URLs
	out     *chosenWriter

	hasLinks func(warc string) bool // as Request.HasLinks
	pruned   func(warc string) bool // as Request.Pruned

	since schema.Time // URLs that were fetched at this time or later are refused; 0: no URL is refused for this reason

	duplicates int64
	spent      int64                           // number of URLs that earlier rounds of the crawl planned
	round      *budget.Round                   // counts the chosen new URLs
	offers     *entry.Offers                   // nil without budgets by host
	ranked     *table.Cursor[pace.Observation] // observations of hosts in earlier rounds, for offers; nil if there are none
	addresses  *budget.Addresses
	overBudget map[string]int64 // number of URLs that each key of plan.budgets refuses
	mergedBy   map[string]int64 // number of listed entries that each step of the canonical form merged with the first of their URL

	merged  entry.Record  // current URL, merged from its entries so far
	url     *entry.Record // address of merged; nil before the first URL
	listed  int64         // number of the current URL's entries that come from the user, not from the frontier
	first   listedAs      // the first of these
	origins entry.Origins // where sources list the current URL
	domains []*domain
	free    []*entry.Record // memory of records that are written
}

// listedAs says how an entry writes its URL.
type listedAs struct {
	sent   string
	merged int32 // as entry.Record.Merged
}

// domain collects the URLs of one domain from which the chooser selects. If the domain has no
// limit, the chooser writes each URL immediately.
type domain struct {
	name  string
	limit int64 // largest number of URLs of the domain in the crawl; 0 means no limit
	spent int64
	due   []*entry.Record // due URLs that an earlier round of the crawl planned; such URLs use no budget
	best  worstFirst      // heap of the best new URLs, with the worst of them on top

	byHost *budget.Domain // replaces limit, due and best if the config has budgets by host; otherwise nil
}

// worstFirst is a heap of records. The worst record is on top, because the chooser drops that
// record first.
type worstFirst []*entry.Record

func (w worstFirst) Len() int           { return len(w) }
func (w worstFirst) Less(i, j int) bool { return better(w[i], w[j]) > 0 }
func (w worstFirst) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }
func (w *worstFirst) Push(x any)        { *w = append(*w, x.(*entry.Record)) }
func (w *worstFirst) Pop() any {
	last := (*w)[len(*w)-1]
	*w = (*w)[:len(*w)-1]
	return last
}

// better compares records by priority, highest first, then by place in the sources.
func better(a, b *entry.Record) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Seq, b.Seq))
}

// choose runs the chooser over all records.
func (c *chooser) choose(ctx context.Context, records iter.Seq2[entry.Record, error]) error {
	n := int64(0)
	for row, err := range records {
		if err != nil {
			return err
		}
		if n++; n%batchEntries == 0 {
			c.note("compared", n, "entries with the budgets")
		}
		if c.url != nil && row.URL == c.url.URL {
			c.merge(&row)
			continue
		}
		if err := c.endURL(); err != nil {
			return err
		}
		if c.url == nil || row.Hash != c.url.Hash {
			if err := c.endGroup(ctx); err != nil {
				return err
			}
			c.out.begin(row.Hash)
		}
		c.merged, c.listed, c.origins = row, 0, entry.Origins{}
		c.url = &c.merged
		c.count(&row)
	}
	if err := c.endURL(); err != nil {
		return err
	}
	return c.endGroup(ctx)
}

// keep returns a copy of a record, in the memory of one that is written.
func (c *chooser) keep(r *entry.Record) *entry.Record {
	if len(c.free) == 0 {
		return new(*r)
	}
	u := c.free[len(c.free)-1]
	c.free, *u = c.free[:len(c.free)-1], *r
	return u
}

// count counts an entry of the current URL, and notes where sources list the URL.
func (c *chooser) count(r *entry.Record) {
	o := entry.UnpackOrigins(r)
	if c.origins.Known == nil {
		c.origins.Known = o.Known
	}
	if !r.Listed {
		return
	}
	if c.listed++; c.listed == 1 {
		c.origins.First, c.first = o.First, listedAs{r.Sent, r.Merged}
	} else if c.first != (listedAs{r.Sent, r.Merged}) {
		for _, step := range urlkey.Merged(cmp.Or(r.Merged^c.first.merged, r.Merged)).Names() {
			c.mergedBy[step]++
		}
	}
	c.origins.Last = o.Last
}

// merge adds another entry to the current URL.
func (c *chooser) merge(r *entry.Record) {
	c.count(r)
	u := c.url
	u.Due, u.Spent, u.Renamed = u.Due || r.Due, u.Spent || r.Spent, u.Renamed || r.Renamed
	u.FetchedAt, u.PlannedFor = max(u.FetchedAt, r.FetchedAt), cmp.Or(u.PlannedFor, r.PlannedFor)
	u.Planned, u.RenamedPlanned = max(u.Planned, r.Planned), max(u.RenamedPlanned, r.RenamedPlanned)
	switch {
	case u.History && !r.History: // the frontier has an entry of the URL, and then one of another form of the URL
		u.History, u.Depth, u.Priority = false, r.Depth, r.Priority
	case !r.History:
		u.Depth = min(u.Depth, r.Depth)
		u.Priority = max(u.Priority, r.Priority)
	}
	if !r.History || u.SentFrom == schema.SentByNobody { // a newer row of this crawl says what was asked for last
		u.Form.Offer(r.Form)
	}
	// Keep the newest WARC record of the URL. Of records with the same time, keep the first.
	older := u.WARCFilename != "" && u.ContentAt >= r.ContentAt
	if u.Fetches == 0 && u.ETag == "" && u.LastModified == "" && !older {
		u.Fetches, u.ContentDigest, u.ETag, u.LastModified = r.Fetches, r.ContentDigest, r.ETag, r.LastModified
		u.GaveContent = r.GaveContent
		u.ContentAt, u.WARCFilename, u.WARCRecordOff, u.WARCRecordLen = r.ContentAt, r.WARCFilename, r.WARCRecordOff, r.WARCRecordLen
		u.PayloadFilename, u.PayloadRecordOff, u.PayloadRecordLen = r.PayloadFilename, r.PayloadRecordOff, r.PayloadRecordLen
	}
}

// forget drops what must not be used of a URL's last content: all of it but the digest if its WARC file was pruned, or if
// the URL is now asked for in another form; and the validators if the links of the content are needed but not stored.
func (c *chooser) forget(u *entry.Record) {
	if u.GaveContent != u.Sent || c.pruned != nil && u.WARCFilename != "" && c.pruned(u.WARCFilename) {
		u.ETag, u.LastModified, u.WARCFilename, u.WARCRecordOff, u.WARCRecordLen = "", "", "", 0, 0
	}
	if c.hasLinks != nil && (u.ETag != "" || u.LastModified != "") && !c.hasLinks(u.WARCFilename) {
		u.ETag, u.LastModified = "", ""
	}
}

// endURL passes the current URL to its domain after the URL's last entry.
func (c *chooser) endURL() error {
	u := c.url
	if u == nil || u.History { // no other entry names the URL
		return nil
	}
	c.duplicates += max(c.listed-1, 0)
	u.Listed, u.Line = c.listed > 0, c.origins.First.Line
	u.Origins = entry.PackOrigins(u, c.origins)
	d := c.domainOf(u.Domain)
	if u.Spent {
		d.spent++
		c.spent++
		if d.byHost != nil {
			d.byHost.Spend(u.Host, u.URL)
		}
	}
	// No round plans the other form any more, so that form stays due. The URL is planned once
	// because of the other form.
	u.Due = u.Due || u.Renamed && !u.Spent && u.Planned <= u.RenamedPlanned
	if !u.Due {
		return nil
	}
	if u.Fetches == 0 && u.WARCFilename != "" { // a source names the record of an archive, whose URL as it was sent stays
		u.Sent = u.GaveContent
	}
	if u.Sent != "" { // the form may be that of an entry that is not due, which ingest has not refused
		if reason, detail := c.scope.Refusal(u.URL, u.Sent); reason != "" {
			return c.refuseRecord(u, reason, detail)
		}
	}
	if c.since > 0 && u.FetchedAt >= c.since {
		at := u.FetchedAt.Time().Format(time.RFC3339)
		return c.refuseRecord(u, schema.SkipRecent, fmt.Sprintf("fetched at %s, plan.skip_within is %v", at, c.SkipWithin))
	}
	c.forget(u)
	switch {
	case d.byHost != nil && u.Spent:
		return c.out.add(u)
	case d.byHost != nil:
		d.byHost.Offer(u.Host, u.URL, u.Priority)
		return c.offers.Add(u)
	case d.limit == 0:
		if !u.Spent {
			c.round.Add(u.Priority, false)
		}
		return c.out.add(u)
	case u.Spent:
		d.due = append(d.due, c.keep(u))
		return nil
	case int64(len(d.best)) < d.limit:
		heap.Push(&d.best, c.keep(u))
		return nil
	case len(d.best) > 0 && better(u, d.best[0]) < 0:
		*u, *d.best[0] = *d.best[0], *u
		heap.Fix(&d.best, 0)
	}
	return c.refuseWorst(d, u)
}

// refuseWorst refuses a URL over the budget of its domain.
func (c *chooser) refuseWorst(d *domain, u *entry.Record) error {
	key := "default"
	if _, own := c.budget(d.name); own {
		key = "domains"
	}
	return c.refuseBudget(u, key, fmt.Sprintf("%d URLs of %s a crawl", d.limit, d.name))
}

// refuseBudget refuses a URL because of the budget with a key. Without budgets by host, the detail is as
// it was before there were such budgets, so that plans keep their IDs.
func (c *chooser) refuseBudget(u *entry.Record, key, detail string) error {
	c.overBudget[key]++
	if c.Limits.Any() {
		detail = "plan.budgets." + key + ": " + detail
	}
	return c.refuseRecord(u, schema.SkipBudget, detail)
}

// refuseRecord adds the URL of a record to the refusals.
func (c *chooser) refuseRecord(u *entry.Record, reason schema.SkipReason, detail string) error {
	return c.refused.addURL(urlkey.Key{URL: u.URL, Domain: u.Domain}, u.Seq, schema.Refused{
		Source: c.files(u.Seq), Depth: u.Depth, Reason: reason, Detail: detail, Form: u.Form, Listing: c.names.Listing(u),
	})
}

// domainOf returns the domain with the given name in the current group, and adds the domain if it
// is missing.
func (c *chooser) domainOf(name string) *domain {
	for _, d := range c.domains {
		if d.name == name {
			return d
		}
	}
	limit, own := c.budget(name)
	d := &domain{name: name, limit: limit}
	if c.offers != nil {
		d.byHost = c.budgets.NewDomain(name, limit, own)
	}
	c.domains = append(c.domains, d)
	return d
}

// endGroup writes the URLs of the current group that fit the budgets.
func (c *chooser) endGroup(ctx context.Context) error {
	if c.offers != nil && len(c.domains) > 0 {
		if err := c.decideOffers(ctx); err != nil {
			return err
		}
	}
	for _, d := range c.domains {
		for int64(len(d.best)) > max(d.limit-d.spent, 0) {
			if err := c.refuseWorst(d, heap.Pop(&d.best).(*entry.Record)); err != nil {
				return err
			}
		}
		for _, u := range d.best {
			c.round.Add(u.Priority, false)
		}
		for _, u := range slices.Concat(d.due, d.best) {
			if err := c.out.add(u); err != nil {
				return err
			}
			c.free = append(c.free, u)
		}
	}
	c.domains = c.domains[:0]
	return c.out.endGroup()
}

// roundLimit returns the number of new URLs that the round may have, and the key and number of the budget
// that sets it. A limit of -1 allows all chosen URLs.
func (c *chooser) roundLimit() (limit int64, key, detail string) {
	chosen := c.round.Total()
	limit = -1
	if c.CrawlURLs > 0 && chosen > max(c.CrawlURLs-c.spent, 0) {
		limit, key, detail = max(c.CrawlURLs-c.spent, 0), "total", fmt.Sprintf("%d URLs a crawl", c.CrawlURLs)
		if c.Limits.Any() && c.spent > 0 {
			detail += fmt.Sprintf(", of which earlier rounds planned %d", c.spent)
		}
	}
	if c.RoundURLs > 0 && chosen > c.RoundURLs && (limit < 0 || c.RoundURLs < limit) {
		limit, key, detail = c.RoundURLs, "per_day", fmt.Sprintf("%d URLs a round", c.RoundURLs)
	}
	return limit, key, detail
}

// writeLimited writes URLs of a list to out: all URLs that were planned before, and the new URLs that
// c.round takes. It prefers new URLs of higher priority. Among URLs of equal priority, it prefers those
// that come first in the list. The method refuses the remaining URLs.
func (c *chooser) writeLimited(ctx context.Context, from *entry.List, key, detail string, out *chosenWriter) error {
	return from.Read(ctx, from.All(), func(u *entry.Record) error {
		if u.Spent || c.round.Take(u.Priority, u.NewHost) {
			return out.put(u)
		}
		text := detail
		if c.Limits.Any() {
			text += c.round.Numbers(u.Priority, u.NewHost)
		}
		return c.refuseBudget(u, key, text)
	})
}

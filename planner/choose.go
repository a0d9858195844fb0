package planner

import (
	"container/heap"
	"context"
	"fmt"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// chooser reads the records in order, folds those of one URL into one, and hands
// what each domain's budget allows to the chosen list.
type chooser struct {
	*rules
	refused *refusals
	files   func(seq) string // name of the source of an entry
	out     *chosenWriter
	left    *chosenWriter // what is not planned and has spellings

	duplicates int64
	spent      int64       // planned in earlier rounds of the crawl
	priorities [1001]int64 // new URLs chosen, by priority

	cur     *folded // the URL at hand
	hash    uint64  // the group at hand
	domains []*domain
}

// folded is one URL out of all its entries.
type folded struct {
	record
	listed int
}

// domain is the choice among the URLs of one domain. One without a limit is written
// as it comes.
type domain struct {
	name  string
	limit int64 // 0: none
	spent int64
	again []chosen // planned before and due again: they cost no budget
	best  worst    // the best new ones, the worst on top
}

// chosen is a URL that may be planned, and what record.parse reads of it.
type chosen struct {
	url, value   string
	host, domain string
	priority     int32
	seq          seq
}

// worst is a heap of chosen records with the one to give up first on top.
type worst []chosen

func (w worst) Len() int           { return len(w) }
func (w worst) Less(i, j int) bool { return better(&w[j], &w[i]) }
func (w worst) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }
func (w *worst) Push(x any)        { *w = append(*w, x.(chosen)) }
func (w *worst) Pop() any {
	old := *w
	last := old[len(old)-1]
	*w = old[:len(old)-1]
	return last
}

// better orders by priority, then by place.
func better(a, b *chosen) bool {
	if a.priority != b.priority {
		return a.priority > b.priority
	}
	return a.seq < b.seq
}

// choose runs the chooser over all records.
func (c *chooser) choose(ctx context.Context, records *runs) error {
	for rec, err := range records.sorted(ctx) {
		if err != nil {
			return err
		}
		hash, url, s, err := splitKey(rec[0])
		if err != nil {
			return err
		}
		if c.cur != nil && (hash != c.hash || string(url) != c.cur.url) {
			if err := c.url(); err != nil {
				return err
			}
		}
		if hash != c.hash {
			if err := c.end(); err != nil {
				return err
			}
			c.hash = hash
			c.out.begin(hash)
		}
		if err := c.fold(string(url), string(rec[1]), hash, s); err != nil {
			return err
		}
	}
	if c.cur != nil {
		if err := c.url(); err != nil {
			return err
		}
	}
	return c.end()
}

// fold adds an entry to the URL at hand, whose first entry has the least place.
func (c *chooser) fold(url, value string, hash uint64, s seq) error {
	var r record
	if err := r.parse(url, value); err != nil {
		return err
	}
	r.hash, r.seq = hash, s
	listed := 0
	if r.flags&isListed != 0 {
		listed = 1
	}
	if c.cur == nil {
		c.cur = &folded{record: r, listed: listed}
		return nil
	}
	f := c.cur
	f.listed += listed
	f.flags |= r.flags
	f.depth = min(f.depth, r.depth)
	f.priority = max(f.priority, r.priority)
	f.spellings = f.spellings.Union(r.spellings)
	// Of what several WARC files hold of it the newest counts, of equals the first.
	older := f.content.Filename != "" && f.content.At >= r.content.At
	if f.fetches == 0 && f.etag == "" && f.lastModified == "" && !older {
		f.fetches, f.contentDigest, f.etag, f.lastModified, f.content = r.fetches, r.contentDigest, r.etag, r.lastModified, r.content
	}
	return nil
}

// url gives the URL at hand to its domain.
func (c *chooser) url() error {
	f := c.cur
	c.cur = nil
	if f.listed > 1 {
		c.duplicates += int64(f.listed - 1)
	}
	d := c.domain(f.domain)
	if f.flags&isSpent != 0 {
		d.spent++
		c.spent++
	}
	if f.flags&isDue == 0 {
		return leave(c.left, &f.record)
	}
	if f.spellings.Overflow() {
		k, err := urlkey.KeyOf(f.url)
		if err != nil {
			return err
		}
		if err := c.refused.url(k, f.seq, &schema.Refused{
			Source: c.files(f.seq), Depth: f.depth, Reason: schema.SkipSpellings, Detail: f.spellings.TooMany(), Spellings: f.spellings,
		}); err != nil {
			return err
		}
		return leave(c.left, &f.record)
	}
	this := chosen{url: f.url, value: string(f.appendValue(nil)), host: f.host, domain: d.name, priority: f.priority, seq: f.seq}
	switch {
	case d.limit == 0:
		if f.flags&isSpent == 0 {
			c.priorities[f.priority]++
		}
		return c.out.add(&this)
	case f.flags&isSpent != 0:
		d.again = append(d.again, this)
		return nil
	case int64(len(d.best)) < d.limit:
		heap.Push(&d.best, this)
		return nil
	case len(d.best) > 0 && better(&this, &d.best[0]):
		this, d.best[0] = d.best[0], this
		heap.Fix(&d.best, 0)
	}
	return c.overBudget(d, &this)
}

func (c *chooser) overBudget(d *domain, u *chosen) error {
	return refuseBudget(c.refused, c.left, c.files, u, fmt.Sprintf("%d URLs of %s a crawl", d.limit, d.name))
}

// leave keeps a URL that is not planned, if it has spellings: a redirect may lead to it.
func leave(left *chosenWriter, r *record) error {
	if len(r.spellings) == 0 {
		return nil
	}
	known := record{url: r.url, host: r.host, domain: r.domain, spellings: r.spellings}
	return left.put(urlkey.Hash(r.domain), &chosen{url: r.url, value: string(known.appendValue(nil)), host: r.host, domain: r.domain})
}

// refuseBudget refuses a URL for a budget, which detail names.
func refuseBudget(refused *refusals, left *chosenWriter, files func(seq) string, u *chosen, detail string) error {
	var r record
	if err := r.parse(u.url, u.value); err != nil {
		return err
	}
	k, err := urlkey.KeyOf(u.url)
	if err != nil {
		return err
	}
	if err := refused.url(k, u.seq, &schema.Refused{
		Source: files(u.seq), Depth: r.depth, Reason: schema.SkipBudget, Detail: detail, Spellings: r.spellings,
	}); err != nil {
		return err
	}
	return leave(left, &r)
}

// domain finds or begins a domain of the group.
func (c *chooser) domain(name string) *domain {
	for _, d := range c.domains {
		if d.name == name {
			return d
		}
	}
	d := &domain{name: name, limit: c.budget(name)}
	c.domains = append(c.domains, d)
	return d
}

// end closes a group: what fits the budgets is written.
func (c *chooser) end() error {
	for _, d := range c.domains {
		for int64(len(d.best)) > max(d.limit-d.spent, 0) {
			u := heap.Pop(&d.best).(chosen)
			if err := c.overBudget(d, &u); err != nil {
				return err
			}
		}
		for i := range d.best {
			c.priorities[d.best[i].priority]++
		}
		for _, list := range [][]chosen{d.again, d.best} {
			for i := range list {
				if err := c.out.add(&list[i]); err != nil {
					return err
				}
			}
		}
	}
	c.domains = c.domains[:0]
	c.out.end()
	return nil
}

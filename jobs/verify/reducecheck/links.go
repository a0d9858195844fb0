package reducecheck

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlfilter"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/formats/urlstate"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
	"crawlbatch.io/crawlbatch/stages"
)

// linkTarget is a URL to which a link or a redirect of the round leads. Targets are sorted by bucket,
// SURT and URL, because the check looks them up in this order.
type linkTarget struct {
	Bucket    int32
	SURT, URL string
	Source    string // URL of the page that has the link or redirect
	Kind      string // kind of the link
}

func targetKey(k table.Key, t *linkTarget) table.Key {
	return k.Int(int64(t.Bucket)).Text(t.SURT).Text(t.URL)
}

// stateRow holds the columns of the urls dataset that invariant 6 needs.
type stateRow struct {
	SURT        string          `parquet:"url_surtkey"`
	URL         string          `parquet:"url"`
	State       schema.URLState `parquet:"state"`
	Outcome     schema.Outcome  `parquet:"outcome,optional"`
	LastPlanned string          `parquet:"last_planned,optional"`
}

// outcomeRow holds the columns of the fetches dataset that invariant 6 needs.
type outcomeRow struct {
	SURT           string         `parquet:"url_surtkey"`
	URL            string         `parquet:"url"`
	Outcome        schema.Outcome `parquet:"outcome"`
	HTTPStatus     int16          `parquet:"http_status,optional"`
	RedirectTarget string         `parquet:"redirect_target,optional"`
	FinalURL       string         `parquet:"final_url,optional"`
}

// skipRow holds the columns of the skips dataset that invariant 6 needs.
type skipRow struct {
	SURT   string            `parquet:"url_surtkey,optional"`
	URL    string            `parquet:"url"`
	Reason schema.SkipReason `parquet:"reason"`
}

// urlRow holds the columns that invariant 6 needs of a URL's row in an earlier round's dataset urls.
type urlRow struct {
	SURT  string          `parquet:"url_surtkey"`
	URL   string          `parquet:"url"`
	State schema.URLState `parquet:"state"`
}

func urlRowKey(k table.Key, u *urlRow) table.Key { return k.Text(u.SURT).Text(u.URL) }

// fact is one table's row about one URL. It has the state after an earlier round, or one of the pointers is set.
type fact struct {
	surt, url string
	key       string          // key of the file with the outcome
	earlier   schema.URLState // state after an earlier round
	state     *stateRow
	skip      *skipRow
	outcome   *outcomeRow
	target    *linkTarget
}

func factKey(k table.Key, f *fact) table.Key { return k.Text(f.surt).Text(f.url) }

// NoLinkTargetIsLost looks up every link target of a followed kind and every redirect target in the
// datasets urls and skips. It also compares the states in urls with the outcomes of the round. The
// check merges the sorted tables of one bucket at a time. It therefore needs memory only for one
// sort and for the open parts.
func NoLinkTargetIsLost(ctx context.Context, a *audit.Audit, r *audit.Round) error {
	for _, c := range []audit.Check{targetsKept, statesFollow, filtersHold} {
		a.Count(c, 0)
	}
	if a.Config == nil || !r.Complete(stages.Merge) || !r.Complete(stages.Frontier) {
		return nil // the tables are not complete yet
	}
	if a.Share.Index >= r.Plan.Buckets {
		return nil // the audit's share contains no bucket
	}
	targets, err := table.NewSorter(a.Scratch, targetKey, audit.SortMemory)
	if err != nil {
		return err
	}
	defer targets.Close()
	if err := collectTargets(ctx, a, r, targets); err != nil {
		return err
	}
	next, stop := iter.Pull2(targets.Sorted(ctx))
	defer stop()
	at := &targetsAt{next: next}
	at.advance()
	for bucket := range r.Plan.Buckets {
		if !a.Share.Has(bucket) {
			continue
		}
		if err := a.Skip(checkBucketURLs(ctx, a, r, bucket, at), targetsKept, r); err != nil {
			return err
		}
		for at.ok && at.err == nil && int(at.row.Bucket) == bucket {
			at.advance() // skip the rest of the bucket's targets, if the check of the bucket ended early at an unreadable object
		}
	}
	return at.err
}

// linkRow holds the columns of the links dataset that invariant 6 needs.
type linkRow struct {
	Source string          `parquet:"source"`
	Target string          `parquet:"target"`
	Kind   schema.LinkKind `parquet:"kind"`
}

// maxRecent limits the number of targets that collectTargets remembers.
const maxRecent = 16 << 10

// collectTargets reads all links, and adds to out the targets in the buckets of the audit's share: those
// of followed links and of redirects for the frontier. It skips unreadable parts. To save work, it remembers recent
// targets.
func collectTargets(ctx context.Context, a *audit.Audit, r *audit.Round, out *table.Sorter[linkTarget]) error {
	recent := map[string]bool{}
	add := func(target, source, kind string) error {
		if recent[target] {
			return nil
		}
		k, err := urlkey.KeyOf(target)
		if err != nil {
			return nil // a target without a key cannot be planned; merge only counts such targets
		}
		if len(recent) == maxRecent {
			clear(recent)
		}
		target = strings.Clone(target)
		recent[target] = true
		bucket := urlkey.Bucket(k.Domain, r.Plan.Buckets)
		if !a.Share.Has(bucket) {
			return nil
		}
		return out.Add(&linkTarget{Bucket: int32(bucket), SURT: k.SURT, URL: target, Source: strings.Clone(source), Kind: kind})
	}
	followed := a.Config.FollowedKinds()
	link := func(_ string, l *linkRow) error {
		if !slices.Contains(followed, l.Kind) {
			return nil
		}
		return add(l.Target, l.Source, string(l.Kind))
	}
	redirect := func(_ string, f *outcomeRow) error {
		if f.RedirectTarget == "" {
			return nil
		}
		return add(f.RedirectTarget, f.URL, string(schema.KindRedirect))
	}
	for n := range r.Tasks(stages.Merge) {
		merge, err := r.Result(ctx, stages.Merge, n)
		if err != nil {
			if err := a.Skip(err, targetsKept, r); err != nil {
				return err
			}
			continue
		}
		if err := a.Skip(audit.Each(ctx, a, audit.Keys(merge.FilesOf(stages.FileLinks)), link), targetsKept, r); err != nil {
			return err
		}
		if err := a.Skip(audit.Each(ctx, a, audit.Keys(merge.FilesOf(stages.FileFetches)), redirect), targetsKept, r); err != nil {
			return err
		}
	}
	return nil
}

// targetsAt is a position in the sorted targets.
type targetsAt struct {
	next func() (linkTarget, error, bool)
	row  linkTarget
	err  error
	ok   bool
}

func (t *targetsAt) advance() { t.row, t.err, t.ok = t.next() }

// targetsIn yields the targets of a bucket.
func (t *targetsAt) targetsIn(bucket int) iter.Seq2[fact, error] {
	return func(yield func(fact, error) bool) {
		for t.ok && (t.err != nil || int(t.row.Bucket) == bucket) {
			row := t.row
			if !yield(fact{surt: row.SURT, url: row.URL, target: &row}, t.err) || t.err != nil {
				return
			}
			t.advance()
		}
	}
}

// checkBucketURLs merges the rows of all tables about a bucket's URLs, and judges each URL.
func checkBucketURLs(ctx context.Context, a *audit.Audit, r *audit.Round, bucket int, at *targetsAt) error {
	var before []string // urls of earlier rounds
	pruned := slices.ContainsFunc(r.Earlier, func(s *manifest.Sealed) bool { return s.Pruned })
	if pruned {
		chain := urlstate.After(r.Earlier).Chain(bucket, r.Plan.Buckets)
		if chain.Cut() {
			a.NotePruned(r.Number, targetsKept)
			return nil
		}
		before = chain.Keys() // the older parts are gone, so the check must trust the bases
	}
	for _, sealed := range r.Earlier {
		keys := audit.Keys(urlstate.Overlapping(sealed, bucket, r.Plan.Buckets)) // the parts and not the bases, so that the check notices a wrong base
		if sealed.Crawl == r.Crawl || !pruned {
			before = append(before, keys...)
		}
	}
	states, err := bucketKeys(ctx, r, stages.Frontier, stages.FileURLs, bucket)
	skips, err2 := bucketKeys(ctx, r, stages.Frontier, stages.FileSkips, bucket)
	outcomes, err3 := partitionKeys(ctx, r, stages.Merge, stages.FileFetches, bucket)
	if err := cmp.Or(err, err2, err3); err != nil {
		return err
	}
	in := slices.Concat(
		[]iter.Seq2[fact, error]{earlierFacts(ctx, a, before)},
		convertObjects(ctx, a, states, func(_ string, s *stateRow) fact {
			return fact{surt: s.SURT, url: s.URL, state: s}
		}),
		convertObjects(ctx, a, skips, func(_ string, s *skipRow) fact {
			return fact{surt: s.SURT, url: s.URL, skip: s}
		}),
		convertObjects(ctx, a, outcomes, func(key string, o *outcomeRow) fact {
			return fact{surt: o.SURT, url: o.URL, key: key, outcome: o}
		}))
	in = append(in, at.targetsIn(bucket))
	filter, err := filterOf(ctx, a, r, bucket)
	if err != nil {
		return err
	}
	c := &urlChecker{a: a, r: r, bucket: bucket, filter: filter}
	for f, err := range merged(ctx, factKey, in...) {
		if err != nil {
			return err
		}
		if f.surt != c.surt || f.url != c.url {
			c.judgeFacts()
			c.urlFacts = urlFacts{surt: f.surt, url: f.url}
		}
		c.add(&f)
	}
	c.judgeFacts()
	a.Count(targetsKept, c.targets)
	a.Count(statesFollow, c.rows)
	a.Count(filtersHold, c.tested)
	return nil
}

// earlierFacts yields the rows of urls of earlier rounds. There may be hundreds of parts, which need not all be
// open at the same time.
func earlierFacts(ctx context.Context, a *audit.Audit, keys []string) iter.Seq2[fact, error] {
	return convertRows(audit.Merge(ctx, a, keys, urlRowKey), func(u *urlRow) fact {
		return fact{surt: u.SURT, url: u.URL, earlier: u.State}
	})
}

// filterOf opens the URL filter of a bucket. It returns nil if the task has no readable result. If the
// filter is unreadable, it reports the filter and returns nil.
func filterOf(ctx context.Context, a *audit.Audit, r *audit.Round, bucket int) (*urlfilter.Filter, error) {
	key := layout.URLFilter(r.Crawl, r.Number, bucket)
	result, err := r.Result(ctx, stages.Frontier, bucket)
	if err != nil || result == nil {
		return nil, err
	}
	for _, f := range result.FilesOf(stages.FileURLFilter) {
		if f.Key != key {
			continue
		}
		filter, err := urlfilter.Open(ctx, a.Bucket, key)
		if err != nil {
			return nil, a.Fault(err, filtersHold, r.Number, key)
		}
		if filter.Keys() != f.Rows {
			a.Wrong(filtersHold, r.Number, audit.At{Object: key}, "it was made from %d URLs, but its result says %d", filter.Keys(), f.Rows)
		}
		return filter, nil
	}
	return nil, nil
}

// urlChecker gathers the facts about one URL at a time, and judges the URL.
type urlChecker struct {
	a       *audit.Audit
	r       *audit.Round
	bucket  int
	filter  *urlfilter.Filter // filter of the URLs in urls and skips; nil if the bucket has no filter
	targets int64             // number of distinct targets
	rows    int64             // number of rows of urls, skips and fetches
	tested  int64             // number of distinct URLs that were looked up in the filter

	urlFacts
}

// urlFacts holds the facts about one URL.
type urlFacts struct {
	surt, url string
	earlier   schema.URLState // state of the URL in the newest row of an earlier round; "" if there is none
	states    int
	state     *stateRow
	skip      *skipRow
	outcome   *outcomeRow
	key       string      // key of the file with the outcome
	target    *linkTarget // target of the first followed link to this URL
}

func (c *urlChecker) add(f *fact) {
	switch {
	case f.earlier != "":
		c.earlier = f.earlier
		return
	case f.target != nil:
		if c.target == nil {
			c.target = f.target
			c.targets++
		}
		return
	case f.state != nil:
		c.states++
		c.state = f.state
		if !slices.Contains(schema.URLStates, f.state.State) {
			c.wrong(statesFollow, stages.FileURLs, "its state %q does not exist", f.state.State)
		}
	case f.skip != nil:
		c.skip = f.skip
		if !slices.Contains(schema.SkipReasons, f.skip.Reason) {
			c.wrong(targetsKept, stages.FileSkips, "its skip reason %q does not exist", f.skip.Reason)
		}
	case f.outcome != nil:
		c.outcome, c.key = f.outcome, f.key
	}
	c.rows++
}

// judgeFacts reports what is wrong with the URL according to the gathered facts.
func (c *urlChecker) judgeFacts() {
	if c.target != nil && c.earlier == "" && c.state == nil && c.skip == nil {
		c.wrong(targetsKept, stages.FileURLs, "%s links to it (%s), but it is not in urls of this round or an earlier round, and not in skips of this round", c.target.Source, c.target.Kind)
	}
	if c.filter != nil && (c.state != nil || c.skip != nil) {
		c.tested++
		if !c.filter.MayHold(c.url) {
			c.wrongIn(layout.URLFilter(c.r.Crawl, c.r.Number, c.bucket), filtersHold, "urls or skips has a row for it, but the URL filter of its bucket does not contain it")
		}
	}
	c.checkSkipped()
	if c.states > 1 {
		c.wrong(statesFollow, stages.FileURLs, "it has %d rows in one round", c.states)
	}
	if o := c.outcome; o != nil && o.Outcome == schema.Redirected && o.RedirectTarget == "" && !c.a.TakenDown {
		c.wrongIn(c.key, targetsKept, "it was redirected, but its row does not name the target")
	}
	c.checkState()
}

// checkSkipped checks that skips has the reason for which a URL waits no more.
func (c *urlChecker) checkSkipped() {
	if c.earlier == schema.StateFound && c.state != nil && c.state.State == schema.StateSkipped && c.skip == nil {
		c.wrong(statesFollow, stages.FileURLs, "its state went from found to skipped, but skips has no row that says why")
	}
}

// checkState compares the URL's state with its outcome in the round.
func (c *urlChecker) checkState() {
	o, s := c.outcome, c.state
	switch {
	case o == nil && s != nil && s.LastPlanned == nameOf(c.r):
		c.wrong(statesFollow, stages.FileURLs, "its row says that this round planned it, but fetches has no row for it")
	case o == nil:
	case s == nil:
		c.wrong(statesFollow, stages.FileURLs, "its outcome in this round is %s, but it has no row in urls", o.Outcome)
	default:
		moved := o.FinalURL != "" && o.FinalURL != o.URL
		if c.a.TakenDown && o.FinalURL == "" { // a takedown may have removed the final URL
			moved = s.State == schema.StateRedirected
		}
		if want := schema.StateAfter(o.Outcome, o.HTTPStatus, moved); s.State != want || s.Outcome != o.Outcome {
			c.wrong(statesFollow, stages.FileURLs, "its outcome is %s, so its state is %s; urls says %s with outcome %s", o.Outcome, want, s.State, s.Outcome)
		}
		if s.LastPlanned != nameOf(c.r) {
			c.wrong(statesFollow, stages.FileURLs, "this round fetched it, but its row says that it was planned last in %q", s.LastPlanned)
		}
	}
}

// wrong reports a violation of the URL in the bucket's part of a dataset.
func (c *urlChecker) wrong(check audit.Check, dataset, format string, args ...any) {
	c.wrongIn(layout.Table(dataset, c.r.Crawl, c.r.Number, c.bucket), check, format, args...)
}

func (c *urlChecker) wrongIn(key string, check audit.Check, format string, args ...any) {
	c.a.Wrong(check, c.r.Number, audit.URL(key, c.url), format, args...)
}

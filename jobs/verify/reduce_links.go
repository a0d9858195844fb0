package verify

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/http"
	"path"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlfilter"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
)

const (
	linksCheck = "no link target is lost"
	urlsCheck  = "a URL's state follows from its outcome"
	knownCheck = "no URL is lost to a Bloom filter"
)

// linkTarget is a URL that the round met, in the order in which it is looked up.
type linkTarget struct {
	Bucket    int32
	SURT, URL string
	Source    string // page that named it
	Kind      string // of the link; "": of none that is followed, only its spelling counts
	Spelling  string // that counts: one of its own domain
}

func compareTargets(a, b *linkTarget) int {
	return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), strings.Compare(a.SURT, b.SURT), strings.Compare(a.URL, b.URL))
}

// stateRow is what is read of a row of urls.
type stateRow struct {
	SURT        string          `parquet:"url_surtkey"`
	URL         string          `parquet:"url"`
	State       schema.URLState `parquet:"state"`
	Outcome     schema.Outcome  `parquet:"outcome,optional"`
	LastPlanned string          `parquet:"last_planned,optional"`
	Spellings   []string        `parquet:"spellings,list"`
}

// outcomeRow is what is read of a row of fetches.
type outcomeRow struct {
	SURT           string         `parquet:"url_surtkey"`
	URL            string         `parquet:"url"`
	Outcome        schema.Outcome `parquet:"outcome"`
	HTTPStatus     int16          `parquet:"http_status,optional"`
	RedirectTarget string         `parquet:"redirect_target,optional"`
	FinalURL       string         `parquet:"final_url,optional"`
}

type skipRow struct {
	SURT   string            `parquet:"url_surtkey,optional"`
	URL    string            `parquet:"url"`
	Reason schema.SkipReason `parquet:"reason"`
}

// urlRow is what is read of an earlier row of urls, and of a row of the plan.
type urlRow struct {
	SURT      string   `parquet:"url_surtkey"`
	URL       string   `parquet:"url"`
	Spellings []string `parquet:"spellings,list"`
}

// fact is what one table says of one URL: one of the fields after url is set.
type fact struct {
	surt, url string
	key       string // of the object, of an outcome
	earlier   *earlierRow
	planned   schema.Spellings
	state     *stateRow
	skip      *skipRow
	outcome   *outcomeRow
	target    *linkTarget
}

func compareFacts(a, b *fact) int {
	return cmp.Or(strings.Compare(a.surt, b.surt), strings.Compare(a.url, b.url))
}

// checkLinks looks up every link target of a followed kind and every redirect
// target, and compares the states of urls with the outcomes of the round. It goes
// bucket by bucket, and in each it merges what is sorted: memory is that of a sort
// and of the open parts.
func (a *audit) checkLinks(ctx context.Context, r *round) error {
	a.note(6, linksCheck, "link targets", 0)
	a.note(6, urlsCheck, "rows", 0)
	a.note(6, knownCheck, "URLs", 0)
	a.note(6, spellingsCheck, "URLs with spellings", 0)
	if a.Config == nil || !r.complete(stages.Merge) || !r.complete(stages.Frontier) {
		return nil // what is there is not said to be whole yet
	}
	targets, err := table.NewSorter(a.Scratch, compareTargets, sortMemory)
	if err != nil {
		return err
	}
	defer targets.Close()
	if err := a.collectTargets(ctx, r, targets); err != nil {
		return err
	}
	next, stop := iter.Pull2(targets.Sorted(ctx))
	defer stop()
	at := &targetsAt{next: next}
	at.advance()
	for bucket := range r.plan.Buckets {
		if err := a.skip(a.checkBucketURLs(ctx, r, bucket, at), 6, linksCheck, r); err != nil {
			return err
		}
		for at.ok && at.err == nil && int(at.row.Bucket) == bucket {
			at.advance() // what a check that was cut off has left
		}
	}
	return at.err
}

// linkRow is what is read of a row of links.
type linkRow struct {
	Source string          `parquet:"source"`
	Target string          `parquet:"target"`
	Kind   schema.LinkKind `parquet:"kind"`

	Spelling string `parquet:"target_spelling,optional"`
}

// collectTargets reads the targets of links of followed kinds, of links of other kinds
// that have a spelling that counts, and of redirects that were handed to the frontier.
// A part that cannot be read is left out.
func (a *audit) collectTargets(ctx context.Context, r *round, out *table.Sorter[linkTarget]) error {
	add := func(target, source, kind, spelling string) error {
		k, err := urlkey.KeyOf(target)
		if err != nil {
			// A target without a key can be neither planned nor joined: merge says so.
			return nil
		}
		if spelling = ownSpelling(k.Domain, source, spelling); kind == "" && spelling == "" {
			return nil
		}
		return out.Add(&linkTarget{Bucket: int32(urlkey.Bucket(k.Domain, r.plan.Buckets)), SURT: k.SURT, URL: target, Source: source, Kind: kind, Spelling: spelling})
	}
	followed := a.Config.FollowedKinds()
	links := func(keys []string) error {
		for l, err := range concat[linkRow](ctx, a, keys) {
			switch {
			case err != nil:
			case slices.Contains(followed, l.Kind):
				err = add(l.Target, l.Source, string(l.Kind), l.Spelling)
			case l.Spelling != "":
				err = add(l.Target, l.Source, "", l.Spelling)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	redirects := func(keys []string) error {
		for f, err := range concat[outcomeRow](ctx, a, keys) {
			if err == nil && f.RedirectTarget != "" {
				err = add(f.RedirectTarget, f.URL, string(schema.KindRedirect), "")
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	for _, merge := range r.results[stages.Merge] {
		if err := a.skip(links(keysOf(merge.FilesOf(stages.FileLinks))), 6, linksCheck, r); err != nil {
			return err
		}
		if err := a.skip(redirects(keysOf(merge.FilesOf(stages.FileFetches))), 6, linksCheck, r); err != nil {
			return err
		}
	}
	return nil
}

// targetsAt is the place in the sorted targets.
type targetsAt struct {
	next func() (linkTarget, error, bool)
	row  linkTarget
	err  error
	ok   bool
}

func (t *targetsAt) advance() { t.row, t.err, t.ok = t.next() }

// of yields the targets of a bucket.
func (t *targetsAt) of(bucket int) iter.Seq2[fact, error] {
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

// checkBucketURLs merges what the tables say of the URLs of a bucket.
func (a *audit) checkBucketURLs(ctx context.Context, r *round, bucket int, at *targetsAt) error {
	var in []iter.Seq2[fact, error]
	for _, sealed := range r.earlier {
		files := sealed.FilesOf(stages.FileURLs)
		for _, f := range files {
			then, err := layout.ParsePart(strings.TrimSuffix(path.Base(f.Key), ".parquet"))
			if err == nil && !overlap(bucket, r.plan.Buckets, then, len(files)) {
				continue
			}
			in = append(in, convert(ctx, a, []string{f.Key}, func(u *urlRow) fact {
				return fact{surt: u.SURT, url: u.URL, earlier: &earlierRow{u.Spellings, sealed.Crawl == r.crawl}}
			}))
		}
	}
	for _, key := range r.bucketKeys(stages.Frontier, stages.FileURLs, bucket) {
		in = append(in, convert(ctx, a, []string{key}, func(s *stateRow) fact { return fact{surt: s.SURT, url: s.URL, state: s} }))
	}
	for _, key := range r.bucketKeys(stages.Frontier, stages.FileSkips, bucket) {
		in = append(in, convert(ctx, a, []string{key}, func(s *skipRow) fact { return fact{surt: s.SURT, url: s.URL, skip: s} }))
	}
	for _, key := range r.partitionKeys(stages.Merge, stages.FileFetches, bucket) {
		in = append(in, convert(ctx, a, []string{key}, func(o *outcomeRow) fact { return fact{surt: o.SURT, url: o.URL, key: key, outcome: o} }))
	}
	in = append(in, at.of(bucket))
	spelt, err := a.speltInPlan(ctx, r, bucket)
	if err != nil {
		return err
	}
	defer spelt.Close()
	in = append(in, speltFacts(ctx, spelt))
	filter, err := a.filterOf(ctx, r, bucket)
	if err != nil {
		return err
	}
	c := &urlChecker{a: a, r: r, bucket: bucket, filter: filter}
	for f, err := range merged(ctx, compareFacts, in...) {
		if err != nil {
			return err
		}
		if f.surt != c.surt || f.url != c.url {
			c.finish()
			c.start(f.surt, f.url)
		}
		c.add(&f)
	}
	c.finish()
	a.note(6, linksCheck, "link targets", c.targets)
	a.note(6, urlsCheck, "rows", c.rows)
	a.note(6, knownCheck, "URLs", c.tested)
	a.note(6, spellingsCheck, "URLs with spellings", c.spelt)
	return nil
}

// filterOf is the Bloom file of a bucket; nil where it cannot be read, which is
// reported, and where frontier wrote none, as older versions did.
func (a *audit) filterOf(ctx context.Context, r *round, bucket int) (*urlfilter.Filter, error) {
	key := layout.URLFilter(r.crawl, r.number, bucket)
	for _, result := range r.results[stages.Frontier] {
		for _, f := range result.FilesOf(stages.FileURLFilter) {
			if f.Key != key {
				continue
			}
			filter, err := urlfilter.Open(ctx, a.Bucket, key)
			if err != nil {
				return nil, a.fault(err, 6, knownCheck, r.number, key)
			}
			if filter.Keys() != f.Rows {
				a.report(Violation{
					Invariant: 6, Check: knownCheck, Round: r.number, Object: key,
					Problem: fmt.Sprintf("it was made of %d URLs, its result says %d", filter.Keys(), f.Rows),
				})
			}
			return filter, nil
		}
	}
	return nil, nil
}

// overlap tells whether bucket a of n and bucket b of m share hashes: buckets are
// ranges of the same space.
func overlap(a, n, b, m int) bool {
	return int64(a)*int64(m) < int64(b+1)*int64(n) && int64(b)*int64(n) < int64(a+1)*int64(m)
}

// urlChecker gathers what is said of one URL after the other.
type urlChecker struct {
	a       *audit
	r       *round
	bucket  int
	filter  *urlfilter.Filter // of urls and skips; nil: there is none
	targets int64             // distinct
	rows    int64             // of urls, skips and fetches
	tested  int64             // distinct, by the filter
	spelt   int64             // distinct, with spellings

	surt, url string
	earlier   *earlierRow // the newest
	said      said
	states    int
	state     *stateRow
	skip      *skipRow
	outcome   *outcomeRow
	key       string      // of the object that holds the outcome
	target    *linkTarget // the first of a link that is followed
}

func (c *urlChecker) start(surt, url string) {
	*c = urlChecker{
		a: c.a, r: c.r, bucket: c.bucket, filter: c.filter, targets: c.targets, rows: c.rows, tested: c.tested, spelt: c.spelt,
		surt: surt, url: url,
	}
}

func (c *urlChecker) add(f *fact) {
	switch {
	case f.earlier != nil:
		c.earlier = f.earlier
		c.said.know(f.earlier)
		return
	case f.planned != nil:
		c.said.planned = f.planned
		return
	case f.target != nil:
		c.said.linked = c.said.linked.Add(f.target.Spelling)
		if c.target == nil && f.target.Kind != "" {
			c.target = f.target
			c.targets++
		}
		return
	case f.state != nil:
		c.states++
		c.state = f.state
		if !slices.Contains(states, f.state.State) {
			c.report(urlsCheck, stages.FileURLs, "its state %q is none that there is", f.state.State)
		}
	case f.skip != nil:
		c.skip = f.skip
		if !slices.Contains(skipReasons, f.skip.Reason) {
			c.report(linksCheck, stages.FileSkips, "it was skipped for %q, which is no reason that there is", f.skip.Reason)
		}
	case f.outcome != nil:
		c.outcome, c.key = f.outcome, f.key
	}
	c.rows++
}

// finish judges the URL.
func (c *urlChecker) finish() {
	if c.target != nil && c.earlier == nil && c.state == nil && c.skip == nil {
		c.report(linksCheck, stages.FileURLs, "%s names it (%s), and it is neither in urls of this round or one before nor in skips of this one", c.target.Source, c.target.Kind)
	}
	if c.filter != nil && (c.state != nil || c.skip != nil) {
		c.tested++
		if !c.filter.MayHold(c.url) {
			c.reportIn(layout.URLFilter(c.r.crawl, c.r.number, c.bucket), knownCheck, "its bucket's urls or skips has a row of it, and the filter says that neither has")
		}
	}
	c.checkSpellings()
	if c.states > 1 {
		c.report(urlsCheck, stages.FileURLs, "it has %d rows in one round", c.states)
	}
	if o := c.outcome; o != nil && o.Outcome == schema.Redirected && o.RedirectTarget == "" {
		c.reportIn(c.key, linksCheck, "it was redirected, and its row does not say where to")
	}
	switch {
	case c.outcome == nil && c.state != nil && c.state.LastPlanned == c.r.name():
		c.report(urlsCheck, stages.FileURLs, "its row says that this round planned it, and fetches has no row of it")
	case c.outcome == nil:
	case c.state == nil:
		c.report(urlsCheck, stages.FileURLs, "it ended as %s in this round and has no row in urls", c.outcome.Outcome)
	default:
		if want := stateAfter(c.outcome); c.state.State != want || c.state.Outcome != c.outcome.Outcome {
			c.report(urlsCheck, stages.FileURLs, "it ended as %s, so its state is %s; urls says %s with outcome %s", c.outcome.Outcome, want, c.state.State, c.state.Outcome)
		}
		if c.state.LastPlanned != c.r.name() {
			c.report(urlsCheck, stages.FileURLs, "this round fetched it, and its row says that it was planned last in %q", c.state.LastPlanned)
		}
	}
}

// report reports the URL in the bucket's part of a dataset.
func (c *urlChecker) report(check, dataset, format string, args ...any) {
	c.reportIn(layout.Table(dataset, c.r.crawl, c.r.number, c.bucket), check, format, args...)
}

func (c *urlChecker) reportIn(key, check, format string, args ...any) {
	c.a.report(Violation{
		Invariant: 6, Check: check, Round: c.r.number, Object: key,
		Row: c.url, Where: urlIs(c.url), Problem: fmt.Sprintf(format, args...),
	})
}

var states = []schema.URLState{
	schema.StateFound, schema.StateFetched, schema.StateRedirected, schema.StateDeferred, schema.StateDenied, schema.StateFailed, schema.StateGone, schema.StateSkipped,
}

var skipReasons = []schema.SkipReason{
	schema.SkipNotURL, schema.SkipBadRecord, schema.SkipScheme, schema.SkipTooLong, schema.SkipOutOfScope, schema.SkipFiltered, schema.SkipTrap, schema.SkipDepth,
	schema.SkipBudget, schema.SkipRobots, schema.SkipNofollow, schema.SkipStopped, schema.SkipDuplicate, schema.SkipSpellings,
}

// stateAfter is where an outcome leaves a planned URL.
func stateAfter(o *outcomeRow) schema.URLState {
	switch o.Outcome {
	case schema.OK, schema.NotModified:
		if o.FinalURL != "" && o.FinalURL != o.URL {
			return schema.StateRedirected // another URL answered
		}
		return schema.StateFetched
	case schema.Redirected:
		return schema.StateRedirected
	case schema.RobotsDenied:
		return schema.StateDenied
	case schema.Deferred, schema.HostSuspended, schema.Stopped:
		return schema.StateDeferred
	case schema.HTTP4xx:
		if o.HTTPStatus == http.StatusNotFound || o.HTTPStatus == http.StatusGone {
			return schema.StateGone
		}
	}
	return schema.StateFailed
}

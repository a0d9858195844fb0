package frontier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
)

// item is what one input says about one URL. Exactly one of the pointers is set.
type item struct {
	surt, url string
	prior     *schema.URLRecord // its state after an earlier round
	outcome   *outcome          // it was planned in this round
	response  *outcome          // it responded in place of the planned URL that redirected to it
	hop       *hop              // it responded on the way to another URL, mostly with a redirect
	redirect  *redirect         // a planned URL redirects to it
	inlink    *schema.Inlink
	refused   *schema.Refused
	planned   *plannedSpelling // it was planned, with spellings
}

// plannedSpelling holds what the frontier reads from a plan. The rest is in fetches.
type plannedSpelling struct {
	SURT      string   `parquet:"url_surtkey"`
	URL       string   `parquet:"url"`
	Spellings []string `parquet:"spellings,list"`
}

func compareItems(a, b *item) int {
	return schema.CompareURLs(a.surt, a.url, b.surt, b.url)
}

// hop holds what the frontier reads from a capture that is not a document.
type hop struct {
	SURT      string `parquet:"url_surtkey"`
	URL       string `parquet:"url"`
	Status    int16  `parquet:"fetch_status"`
	Redirect  string `parquet:"fetch_redirect,optional"`
	FetchTime int64  `parquet:"fetch_time,timestamp(millisecond)"`
}

// redirect is a redirect that was not followed. Its target may be in any bucket.
type redirect struct {
	SURT, URL string // of the target
	Source    string
	Depth     int32 // of the source
}

// target holds what is read from a row of fetches to find redirects.
type target struct {
	URL            string `parquet:"url"`
	Depth          int32  `parquet:"depth"`
	RedirectTarget string `parquet:"redirect_target,optional"`
}

// inputs are the open inputs of a bucket.
type inputs struct {
	env     *stages.Env
	in      *stages.Input
	cfg     *Config
	bucket  int
	streams []table.Stream[item]
	closers []io.Closer // closed last to first
}

func (i *inputs) Close() error {
	var errs []error
	for _, c := range slices.Backward(i.closers) {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// owns reports whether a domain belongs to this bucket.
func (i *inputs) owns(domain string) bool {
	return urlkey.Bucket(domain, i.in.Plan.Buckets) == i.bucket
}

// addFile adds an object to the merge.
func addFile[T any](ctx context.Context, i *inputs, key string, conv func(*T) (item, bool)) error {
	r, err := table.Open[T](ctx, i.env.Bucket, key)
	if err != nil {
		return err
	}
	i.closers = append(i.closers, r)
	i.streams = append(i.streams, table.Convert(r, conv))
	return nil
}

// addSorted adds rows that fill produces unsorted.
func addSorted[T any](ctx context.Context, i *inputs, compare func(a, b *T) int, fill func(add func(*T) error) error, conv func(*T) (item, bool)) error {
	s, err := table.NewSorter(i.env.Scratch, compare, i.cfg.Memory)
	if err != nil {
		return err
	}
	i.closers = append(i.closers, s)
	if err := fill(s.Add); err != nil {
		return err
	}
	p := table.Pull(s.Sorted(ctx))
	i.closers = append(i.closers, p)
	i.streams = append(i.streams, table.Convert(p, conv))
	return nil
}

// open opens all inputs of the bucket. Prior states come first, oldest first; the merge
// keeps that order for equal URLs.
func open(ctx context.Context, env *stages.Env, in *stages.Input, cfg *Config) (_ *inputs, err error) {
	i := &inputs{env: env, in: in, cfg: cfg, bucket: in.Task.Partition}
	defer func() {
		if err != nil {
			err = errors.Join(err, i.Close())
		}
	}()
	for _, key := range i.priorKeys() {
		if err := addFile(ctx, i, key, func(r *schema.URLRecord) (item, bool) {
			return item{surt: r.SURT, url: r.URL, prior: r}, i.owns(r.Domain)
		}); err != nil {
			return nil, err
		}
	}
	for _, key := range i.partitionKeys(stages.FileFetches, "") {
		if err := addFile(ctx, i, key, func(o *outcome) (item, bool) {
			return item{surt: o.SURT, url: o.URL, outcome: o}, true
		}); err != nil {
			return nil, err
		}
	}
	for _, key := range i.partitionKeys(stages.FileCaptures, schema.SubsetDiagnostics) {
		if err := addFile(ctx, i, key, func(h *hop) (item, bool) {
			return item{surt: h.SURT, url: h.URL, hop: h}, true
		}); err != nil {
			return nil, err
		}
	}
	for _, f := range in.Results[stages.Rank][i.bucket].FilesOf(stages.FileInlinks) {
		if err := addFile(ctx, i, f.Key, func(r *schema.Inlink) (item, bool) {
			return item{surt: r.SURT, url: r.URL, inlink: r}, true
		}); err != nil {
			return nil, err
		}
	}
	return i, errors.Join(i.addResponses(ctx), i.addRedirects(ctx), i.addRefused(ctx), i.addSpellings(ctx))
}

// priorKeys lists the parts of urls of earlier rounds, oldest first, that may hold
// domains of the bucket. A round has one part per bucket. Buckets are ranges of hashes,
// so buckets of rounds with different numbers of them can be compared.
func (i *inputs) priorKeys() []string {
	var keys []string
	for _, round := range i.in.Earlier {
		keys = append(keys, stages.OverlappingKeys(round.FilesOf(stages.FileURLs), i.bucket, i.in.Plan.Buckets)...)
	}
	return keys
}

// partitionKeys lists merge's files of a dataset for the partitions of the bucket.
func (i *inputs) partitionKeys(dataset, subset string) []string {
	return stages.SubsetKeys(stages.OfBucket(i.in.Plan, i.in.Results[stages.Merge], i.bucket), dataset, subset)
}

// addResponses adds the URLs that responded in place of planned ones. Redirects are
// followed within a domain only, so these URLs are in the same bucket.
func (i *inputs) addResponses(ctx context.Context) error {
	keys := i.partitionKeys(stages.FileFetches, "")
	compare := func(a, b *outcome) int {
		return cmp.Or(schema.CompareURLs(a.SURT, a.URL, b.SURT, b.URL), strings.Compare(a.FinalURL, b.FinalURL))
	}
	return addSorted(ctx, i, compare, func(add func(*outcome) error) error {
		for o, err := range table.Concat[outcome](ctx, i.env.Bucket, keys) {
			if err != nil {
				return err
			}
			if !moved(&o) {
				continue
			}
			k, err := urlkey.KeyOf(o.FinalURL)
			if err != nil {
				return fmt.Errorf("final URL of %q: %w", o.URL, err)
			}
			o.FinalURL, o.URL = o.URL, o.FinalURL
			o.SURT, o.Host, o.Domain = k.SURT, k.Host, k.Domain
			if err := add(&o); err != nil {
				return err
			}
		}
		return nil
	}, func(o *outcome) (item, bool) { return item{surt: o.SURT, url: o.URL, response: o}, true })
}

// moved reports whether the outcome is the response of another URL.
func moved(o *outcome) bool {
	if o.FinalURL == "" || o.FinalURL == o.URL {
		return false
	}
	switch o.Outcome {
	case schema.OK, schema.NotModified, schema.HTTP4xx, schema.HTTP5xx, schema.RateLimited, schema.MIMEFiltered:
		return true
	}
	return false
}

// addRedirects adds the targets of redirects that were not followed. It reads all
// partitions, because a redirect may lead into any bucket.
func (i *inputs) addRedirects(ctx context.Context) error {
	keys := stages.Keys(i.in.Results[stages.Merge], stages.FileFetches)
	compare := func(a, b *redirect) int {
		return cmp.Or(schema.CompareURLs(a.SURT, a.URL, b.SURT, b.URL), cmp.Compare(a.Depth, b.Depth), strings.Compare(a.Source, b.Source))
	}
	return addSorted(ctx, i, compare, func(add func(*redirect) error) error {
		for t, err := range table.Concat[target](ctx, i.env.Bucket, keys) {
			if err != nil {
				return err
			}
			if t.RedirectTarget == "" {
				continue
			}
			k, err := urlkey.KeyOf(t.RedirectTarget)
			if err != nil {
				return fmt.Errorf("redirect target of %q: %w", t.URL, err)
			}
			if !i.owns(k.Domain) {
				continue
			}
			if err := add(&redirect{SURT: k.SURT, URL: k.URL, Source: t.URL, Depth: t.Depth}); err != nil {
				return err
			}
		}
		return nil
	}, func(r *redirect) (item, bool) { return item{surt: r.SURT, url: r.URL, redirect: r}, true })
}

// addRefused adds the entries that the plan refused. Texts that are not URLs belong to
// bucket 0.
func (i *inputs) addRefused(ctx context.Context) error {
	f := i.in.Plan.RefusedFile
	if f == nil || f.Rows == 0 {
		return nil
	}
	compare := func(a, b *schema.Refused) int {
		return cmp.Or(schema.CompareURLs(a.SURT, a.URL, b.SURT, b.URL), strings.Compare(a.Source, b.Source), cmp.Compare(a.Line, b.Line))
	}
	return addSorted(ctx, i, compare, func(add func(*schema.Refused) error) error {
		for r, err := range table.Concat[schema.Refused](ctx, i.env.Bucket, []string{f.Key}) {
			if err != nil {
				return err
			}
			if r.Domain == "" && i.bucket != 0 || r.Domain != "" && !i.owns(r.Domain) {
				continue
			}
			if err := add(&r); err != nil {
				return err
			}
		}
		return nil
	}, func(r *schema.Refused) (item, bool) { return item{surt: r.SURT, url: r.URL, refused: r}, true })
}

// addSpellings adds the planned URLs that have spellings, because only the plan has the
// spellings from the sources. A plan is sorted by host, so its rows are sorted again.
func (i *inputs) addSpellings(ctx context.Context) error {
	if i.env.Format == 1 {
		return nil // plans of this format have no such column
	}
	var keys []string
	for _, p := range i.in.Plan.Partitions {
		if p.Bucket == i.bucket && p.File.Rows > 0 {
			keys = append(keys, p.File.Key)
		}
	}
	compare := func(a, b *plannedSpelling) int { return schema.CompareURLs(a.SURT, a.URL, b.SURT, b.URL) }
	return addSorted(ctx, i, compare, func(add func(*plannedSpelling) error) error {
		for r, err := range table.Concat[plannedSpelling](ctx, i.env.Bucket, keys) {
			if err == nil && len(r.Spellings) > 0 {
				err = add(&r)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}, func(r *plannedSpelling) (item, bool) { return item{surt: r.SURT, url: r.URL, planned: r}, true })
}

// planned has the hosts and domains of the bucket that this crawl has planned.
type planned struct{ hosts, domains map[string]bool }

// name holds what is read from a row of fetches or urls to fill planned.
type name struct {
	Host        string `parquet:"host"`
	Domain      string `parquet:"domain"`
	LastPlanned string `parquet:"last_planned,optional"` // urls only
}

// planned reads the names if the follow policy needs them.
func (i *inputs) planned(ctx context.Context) (planned, error) {
	p := planned{map[string]bool{}, map[string]bool{}}
	if i.cfg.Follow != FollowHost && i.cfg.Follow != FollowDomain {
		return p, nil
	}
	read := func(keys []string, counts func(*name) bool) error {
		for n, err := range table.Concat[name](ctx, i.env.Bucket, keys) {
			if err != nil {
				return err
			}
			if counts(&n) {
				p.hosts[n.Host], p.domains[n.Domain] = true, true
			}
		}
		return nil
	}
	crawl := i.in.Task.Crawl + "."
	return p, errors.Join(
		read(i.partitionKeys(stages.FileFetches, ""), func(*name) bool { return true }),
		read(i.priorKeys(), func(n *name) bool { return strings.HasPrefix(n.LastPlanned, crawl) }),
	)
}

// ranks reads the bucket's host ranks, and counts the hosts of all buckets.
func ranks(ctx context.Context, b store.Bucket, results []*manifest.Result, bucket int) (rank map[string]float64, hosts int64, err error) {
	type row struct {
		Host string  `parquet:"host"`
		Rank float64 `parquet:"rank"`
	}
	rank = map[string]float64{}
	for n, r := range results {
		for _, f := range r.FilesOf(stages.FileHosts) {
			hosts += f.Rows
			if n != bucket {
				continue
			}
			for h, err := range table.Concat[row](ctx, b, []string{f.Key}) {
				if err != nil {
					return nil, 0, err
				}
				rank[h.Host] = h.Rank
			}
		}
	}
	return rank, hosts, nil
}

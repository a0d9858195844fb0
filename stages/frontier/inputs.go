package frontier

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/formats/urlstate"
	"crawlbatch.io/crawlbatch/stages"
)

// item is a row about one URL from one input. The row has one of the types that group.addItem
// distinguishes.
type item struct {
	surt, url string
	row       any
	own       bool // the row is from a part of urls of this crawl
}

func itemKey(k table.Key, i *item) table.Key { return k.Text(i.surt).Text(i.url) }

// hop holds the columns that the frontier reads from a capture that is not a document, such as a
// redirect.
type hop struct {
	SURT      string      `parquet:"url_surtkey"`
	URL       string      `parquet:"url"`
	Sent      string      `parquet:"sent,optional"`
	Status    int16       `parquet:"fetch_status"`
	Redirect  string      `parquet:"fetch_redirect,optional"`
	FetchTime schema.Time `parquet:"fetch_time,timestamp(microsecond)"`
}

// inputs are the open inputs of a bucket.
type inputs struct {
	env     *stages.Env
	in      *stages.Input
	cfg     *Config
	bucket  int
	prior   urlstate.Chain // states of the bucket's URLs after the last sealed round
	streams []table.Stream[item]
	closers []io.Closer // opened inputs
}

// Close closes the inputs, the last opened first.
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

// mostFiles is the largest number of files of a dataset that are open at the same time.
const mostFiles = 16

// addFiles adds tables in the order of URLs to the merge, each as a separate stream. It sorts the rows of more than
// mostFiles tables again, which opens one at a time. place returns the key of a row.
func addFiles[T any](ctx context.Context, i *inputs, keys []string, place func(*T) (surt, url string)) error {
	if len(keys) > mostFiles {
		return addSorted(ctx, i, keys, func(row *T) (*T, error) { return row, nil }, place, func(k table.Key, _ *T) table.Key { return k })
	}
	return addRows(ctx, i, keys, func(row *T) (item, bool) {
		surt, url := place(row)
		return item{surt: surt, url: url, row: row}, true
	})
}

// addRows adds tables to the merge, each as a separate stream. It leaves out the rows for which
// convert returns false.
func addRows[T any](ctx context.Context, i *inputs, keys []string, convert func(*T) (item, bool)) error {
	for _, key := range keys {
		r, err := table.Open[T](ctx, i.env.Bucket, key)
		if err != nil {
			return err
		}
		i.closers = append(i.closers, r)
		i.streams = append(i.streams, table.Convert(r, convert))
	}
	return nil
}

// addSorted adds the rows of tables that are not in the order of URLs. It calls take for every row, and
// sorts and adds the rows that take returns, unless they are nil. tie orders rows of equal URLs.
func addSorted[In, Out any](ctx context.Context, i *inputs, keys []string, take func(*In) (*Out, error),
	place func(*Out) (surt, url string), tie func(k table.Key, row *Out) table.Key, opts ...table.ReaderOption) error {
	s, err := table.NewSorter(i.env.Scratch, func(k table.Key, row *Out) table.Key {
		surt, url := place(row)
		return tie(k.Text(surt).Text(url), row)
	}, i.cfg.Memory)
	if err != nil {
		return err
	}
	i.closers = append(i.closers, s)
	for row, err := range table.Concat[In](ctx, i.env.Bucket, keys, opts...) {
		if err != nil {
			return err
		}
		out, err := take(&row)
		if err == nil && out != nil {
			err = s.Add(out)
		}
		if err != nil {
			return err
		}
	}
	p := table.Pull(s.Sorted(ctx))
	i.closers = append(i.closers, p)
	i.streams = append(i.streams, table.Convert(p, func(row *Out) (item, bool) {
		surt, url := place(row)
		return item{surt: surt, url: url, row: row}, true
	}))
	return nil
}

// open opens all inputs of the bucket. Prior states are the first inputs, from the oldest to the
// newest. For equal URLs the merge keeps the order of the inputs.
func open(ctx context.Context, env *stages.Env, in *stages.Input, cfg *Config) (_ *inputs, err error) {
	bucket := in.Task.Partition
	i := &inputs{env: env, in: in, cfg: cfg, bucket: bucket, prior: urlstate.After(in.Earlier).Chain(bucket, in.Plan.Buckets)}
	for _, add := range []func(context.Context) error{
		i.addPrior, i.addOutcomes, i.addPages, i.addHops, i.addSitemaps, i.addInlinks, i.addResponses, i.addRedirects, i.addRefused,
	} {
		if err := add(ctx); err != nil {
			return nil, errors.Join(err, i.Close())
		}
	}
	return i, nil
}

func (i *inputs) addPrior(ctx context.Context) error {
	own := path.Dir(path.Dir(layout.Table(stages.FileURLs, i.in.Task.Crawl, 0, 0))) + "/"
	for _, key := range i.prior.Keys() {
		if err := addRows(ctx, i, []string{key}, func(r *schema.URLRecord) (item, bool) {
			return item{r.SURT, r.URL, r, strings.HasPrefix(key, own)}, i.owns(r.Domain)
		}); err != nil {
			return err
		}
	}
	return nil
}

func (i *inputs) addOutcomes(ctx context.Context) error {
	return addFiles(ctx, i, i.partitionKeys(stages.FileFetches, ""), func(o *outcome) (surt, url string) { return o.SURT, o.URL })
}

func (i *inputs) addHops(ctx context.Context) error {
	keys := i.partitionKeys(stages.FileCaptures, schema.SubsetDiagnostics)
	return addFiles(ctx, i, keys, func(h *hop) (surt, url string) { return h.SURT, h.URL })
}

// addPages adds the pages of the round.
func (i *inputs) addPages(ctx context.Context) error {
	return addFiles(ctx, i, i.partitionKeys(stages.FilePages, ""), func(p *page) (surt, url string) { return p.SURT, p.URL })
}

// addSitemaps adds the sitemaps that the round requested because robots.txt names them.
func (i *inputs) addSitemaps(ctx context.Context) error {
	return addFiles(ctx, i, i.partitionKeys(stages.FileSitemaps, ""), func(s *schema.Sitemap) (surt, url string) { return s.SURT, s.URL })
}

func (i *inputs) addInlinks(ctx context.Context) error {
	keys := stages.Keys(i.in.Results[stages.Rank][i.bucket:i.bucket+1], stages.FileInlinks)
	return addFiles(ctx, i, keys, func(r *schema.Inlink) (surt, url string) { return r.SURT, r.URL })
}

// partitionKeys lists merge's files of a dataset for the partitions of the bucket.
func (i *inputs) partitionKeys(dataset, subset string) []string {
	return stages.SubsetKeys(stages.OfBucket(i.in.Plan, i.in.Results[stages.Merge], i.bucket), dataset, subset)
}

// response is the outcome of a planned URL that redirected to another URL. Its URL is the URL that gave
// the last response, and its FinalURL is the planned URL. In an outcome it is the other way round.
type response outcome

// addResponses adds a response for each planned URL that redirected to another URL. The fetcher follows
// redirects only within a domain, so both URLs are in the same bucket.
func (i *inputs) addResponses(ctx context.Context) error {
	return addSorted(ctx, i, i.partitionKeys(stages.FileFetches, ""), func(o *outcome) (*response, error) {
		if !moved(o) {
			return nil, nil
		}
		k, err := urlkey.KeyOf(o.FinalURL)
		if err != nil {
			return nil, fmt.Errorf("final URL of %q: %w", o.URL, err)
		}
		o.FinalURL, o.URL = o.URL, o.FinalURL
		o.SURT, o.Host, o.Domain = k.SURT, k.Host, k.Domain
		return (*response)(o), nil
	}, func(r *response) (surt, url string) { return r.SURT, r.URL },
		func(k table.Key, r *response) table.Key { return k.Text(r.FinalURL) })
}

// moved reports whether the last response came from a URL other than the planned URL.
func moved(o *outcome) bool {
	if o.FinalURL == "" || o.FinalURL == o.URL {
		return false
	}
	switch o.Outcome {
	case schema.OK, schema.NotModified, schema.HTTP4xx, schema.HTTP5xx, schema.RateLimited, schema.Blocked, schema.PaymentRequired, schema.MIMEFiltered:
		return true
	}
	return false
}

// addRedirects adds the targets of redirects that the fetcher did not follow. It reads the results of
// all partitions, because a redirect may lead into any bucket.
func (i *inputs) addRedirects(ctx context.Context) error {
	sections, err := stages.Sections(i.in.Results[stages.Merge], stages.FileRedirects, i.bucket)
	if err != nil {
		return err
	}
	rows := table.Pull(table.MergeSections(ctx, i.env.Bucket, i.env.Scratch, sections, schema.RedirectKey))
	i.closers = append(i.closers, rows)
	i.streams = append(i.streams, table.Convert(rows, func(r *schema.Redirect) (item, bool) { return item{surt: r.SURT, url: r.URL, row: r}, true }))
	return nil
}

// addRefused adds the entries that the plan refused. Texts that are not URLs belong to bucket 0.
func (i *inputs) addRefused(ctx context.Context) error {
	f := i.in.Plan.RefusedFile
	if f == nil || f.Rows == 0 {
		return nil
	}
	return addSorted(ctx, i, []string{f.Key}, func(r *schema.Refused) (*schema.Refused, error) {
		if r.Domain == "" && i.bucket != 0 || r.Domain != "" && !i.owns(r.Domain) {
			return nil, nil
		}
		return r, nil
	}, func(r *schema.Refused) (surt, url string) { return r.SURT, r.URL },
		func(k table.Key, r *schema.Refused) table.Key { return k.Text(r.Source).Int(r.Line) }, table.IntRange("bucket", int64(i.bucket), int64(i.bucket)))
}

// plannedNames holds the hosts and domains of the URLs that this crawl has planned in the bucket.
type plannedNames struct{ hosts, domains map[string]bool }

// name holds the columns that plannedHosts reads from the datasets fetches and urls.
type name struct {
	Host        string `parquet:"host"`
	Domain      string `parquet:"domain"`
	LastPlanned string `parquet:"last_planned,optional"` // only in the urls dataset
}

// plannedHosts returns the hosts and domains of the bucket's URLs that this crawl has planned. If the
// follow policy does not need them, the result is empty.
func (i *inputs) plannedHosts(ctx context.Context) (plannedNames, error) {
	p := plannedNames{map[string]bool{}, map[string]bool{}}
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
		read(i.prior.Keys(), func(n *name) bool { return strings.HasPrefix(n.LastPlanned, crawl) }),
	)
}

package reducecheck

import (
	"context"
	"iter"
	"reflect"
	"strings"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
	"crawlbatch.io/crawlbatch/stages"
)

// noPartition is the partition of rows that a bucket has as a whole.
const noPartition = -1

// domainSum is a sum of rows about one domain. Its fields have the same names as in schema.Domain.
type domainSum struct {
	Domain    string
	Partition int32 // partition that has the rows, or noPartition

	Planned, OK, NotModified, Redirected, RobotsDenied, RobotsUnreachable, HTTP4xx, HTTP5xx, RateLimited, Refused, PaymentRequired, DNSError, ConnectError, TLSError,
	Timeout, ProtocolError, RedirectLimit, MIMEFiltered, AddressBlocked, HostSuspended, Deferred, Stopped, InternalError int64

	Blocked, Pages, NewPages, ChangedPages, IndexablePages, ContentBytes, ExactDuplicates, NearDuplicates int64
	Requests, FailedRequests, Bytes, RequestMS                                                            int64
	Hosts, LinkedHosts, BreakerEvents                                                                     int64
}

func sumKey(k table.Key, s *domainSum) table.Key { return k.Text(s.Domain).Int(int64(s.Partition)) }

// numbers returns the index of each number of domainSum in domainSum and in schema.Domain, with its column.
var numbers = func() (all []number) {
	sum, row := reflect.TypeFor[domainSum](), reflect.TypeFor[schema.Domain]()
	for i := range sum.NumField() {
		if f, ok := row.FieldByName(sum.Field(i).Name); ok && f.Type.Kind() == reflect.Int64 {
			column, _, _ := strings.Cut(f.Tag.Get("parquet"), ",")
			all = append(all, number{column, i, f.Index[0]})
		}
	}
	return all
}()

type number struct {
	column  string
	sum, in int
}

// add adds the numbers of another sum.
func (s *domainSum) add(other *domainSum) {
	to, from := reflect.ValueOf(s).Elem(), reflect.ValueOf(other).Elem()
	for _, n := range numbers {
		to.Field(n.sum).SetInt(to.Field(n.sum).Int() + from.Field(n.sum).Int())
	}
}

// addOutcome counts a planned URL with an outcome.
func (s *domainSum) addOutcome(o schema.Outcome) {
	for _, n := range numbers {
		if n.column == "outcome_"+string(o) {
			f := reflect.ValueOf(s).Elem().Field(n.sum)
			f.SetInt(f.Int() + 1)
		}
	}
}

// difference is a column that differs from the sum.
type difference struct {
	column    string
	got, want int64
}

func (s *domainSum) differences(d *schema.Domain) (found []difference) {
	sum, row := reflect.ValueOf(s).Elem(), reflect.ValueOf(d).Elem()
	for _, n := range numbers {
		if got, want := row.Field(n.in).Int(), sum.Field(n.sum).Int(); got != want {
			found = append(found, difference{n.column, got, want})
		}
	}
	return found
}

// wholeSums adds up the sums of each domain with planned URLs. A partition may have requests to a
// domain of which it has no planned URLs, because a robots.txt redirects to that domain. These
// requests do not count.
func wholeSums(rows iter.Seq2[domainSum, error]) iter.Seq2[domainSum, error] {
	return func(yield func(domainSum, error) bool) {
		var whole, part domainSum
		endPart := func() {
			if part.Planned > 0 || part.Partition == noPartition {
				whole.add(&part)
			}
		}
		for row, err := range rows {
			if err != nil {
				yield(row, err)
				return
			}
			if row.Domain == part.Domain && row.Partition == part.Partition {
				part.add(&row)
				continue
			}
			endPart()
			part = row
			if row.Domain != whole.Domain {
				if whole.Planned > 0 && !yield(whole, nil) {
					return
				}
				whole = domainSum{Domain: row.Domain}
			}
		}
		endPart()
		if whole.Planned > 0 {
			yield(whole, nil)
		}
	}
}

// The columns that the sums need.
type (
	domainFetch struct {
		Domain     string         `parquet:"domain"`
		Outcome    schema.Outcome `parquet:"outcome"`
		HTTPStatus int16          `parquet:"http_status,optional"`
	}
	domainRequest struct {
		Host          string `parquet:"host"`
		Status        int16  `parquet:"http_status,optional"`
		ErrorClass    string `parquet:"error_class,optional"`
		TotalMS       int64  `parquet:"total_ms"`
		BytesReceived int64  `parquet:"bytes_received"`
	}
	domainPage struct {
		URL           string          `parquet:"url"`
		Indexable     bool            `parquet:"indexable"`
		PageHint      schema.PageHint `parquet:"page_hint,optional"`
		DuplicateKind string          `parquet:"duplicate_kind,optional"`
		ContentBytes  int64           `parquet:"content_bytes"`
		Changed       *bool           `parquet:"changed,optional"`
	}
	domainHost struct {
		Host          string `parquet:"host"`
		Domain        string `parquet:"domain"`
		Planned       int64  `parquet:"planned"`
		DelayMS       *int64 `parquet:"delay_ms,optional"`
		BreakerEvents int32  `parquet:"breaker_events"`
	}
)

// summing adds up neighbouring rows of one domain before they are sorted.
type summing struct {
	to  *table.Sorter[domainSum]
	sum domainSum
	err error
}

// of returns the sum to which the next row of a domain belongs.
func (s *summing) of(domain string) *domainSum {
	if domain != s.sum.Domain {
		s.flush()
		s.sum.Domain = strings.Clone(domain)
	}
	return &s.sum
}

func (s *summing) flush() {
	if s.sum.Domain != "" && s.err == nil {
		s.err = s.to.Add(&s.sum)
	}
	s.sum = domainSum{Partition: s.sum.Partition}
}

// ofURL is like of, for a row with a URL. It ignores what is not a URL, which other checks report.
func (s *summing) ofURL(url string) *domainSum {
	k, err := urlkey.KeyOf(url)
	if err != nil {
		return &domainSum{}
	}
	return s.of(k.Domain)
}

// sumBucket adds the sums over the tables of a bucket to the sorter.
func sumBucket(ctx context.Context, a *audit.Audit, r *audit.Round, bucket int, to *table.Sorter[domainSum]) error {
	for n, p := range r.Plan.Partitions {
		if p.Bucket != bucket {
			continue
		}
		s := &summing{to: to, sum: domainSum{Partition: int32(n)}}
		merged, err := r.Result(ctx, stages.Merge, n)
		if err != nil {
			return err
		}
		published, err := r.Result(ctx, stages.Publish, n)
		if err != nil {
			return err
		}
		if err := s.partition(ctx, a, merged, published); err != nil {
			return err
		}
	}
	hosts, err := bucketKeys(ctx, r, stages.Rank, stages.FileHosts, bucket)
	if err != nil {
		return err
	}
	s := &summing{to: to, sum: domainSum{Partition: noPartition}}
	return eachSummed(ctx, a, hosts, s, func(h *domainHost) {
		d := s.of(h.Domain)
		d.BreakerEvents += int64(h.BreakerEvents)
		if h.Planned > 0 || h.DelayMS != nil {
			d.Hosts++
		} else {
			d.LinkedHosts++
		}
	})
}

// partition sums the tables of a partition.
func (s *summing) partition(ctx context.Context, a *audit.Audit, merged, published *manifest.Result) error {
	err := eachSummed(ctx, a, audit.Keys(merged.FilesOf(stages.FileFetches)), s, func(f *domainFetch) {
		d := s.of(f.Domain)
		d.Planned++
		d.addOutcome(f.Outcome)
		switch f.Outcome {
		case schema.RobotsDenied, schema.RobotsUnreachable, schema.Stopped, schema.AddressBlocked, schema.HostSuspended, schema.RateLimited,
			schema.Blocked, schema.PaymentRequired:
			d.Blocked++
		case schema.HTTP4xx:
			if f.HTTPStatus == 401 || f.HTTPStatus == 403 || f.HTTPStatus == 451 {
				d.Blocked++
			}
		}
	})
	if err != nil {
		return err
	}
	err = eachSummed(ctx, a, audit.Keys(merged.FilesOf(stages.FileRequests)), s, func(q *domainRequest) {
		d := s.ofURL("http://" + q.Host + "/")
		d.Requests++
		d.Bytes += q.BytesReceived
		d.RequestMS += q.TotalMS
		if q.ErrorClass != "" || q.Status == 429 || q.Status >= 500 {
			d.FailedRequests++
		}
	})
	if err != nil {
		return err
	}
	return eachSummed(ctx, a, audit.Keys(published.FilesOf(stages.FilePages)), s, func(p *domainPage) {
		d := s.ofURL(p.URL)
		d.Pages++
		d.ContentBytes += p.ContentBytes
		d.NewPages += one(p.Changed == nil)
		d.ChangedPages += one(p.Changed != nil && *p.Changed)
		d.IndexablePages += one(p.Indexable)
		d.Blocked += one(p.PageHint == schema.HintBlocked)
		d.ExactDuplicates += one(p.DuplicateKind == string(schema.DupExact))
		d.NearDuplicates += one(p.DuplicateKind == string(schema.DupNear))
	})
}

// one returns 1 for true and 0 for false.
func one(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// eachSummed calls do with each row of the objects, and then ends the last sum.
func eachSummed[T any](ctx context.Context, a *audit.Audit, keys []string, s *summing, do func(*T)) error {
	err := audit.Each(ctx, a, keys, func(_ string, row *T) error {
		do(row)
		return s.err
	})
	if err != nil {
		return err
	}
	s.flush()
	return s.err
}

package fetchcheck

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
	"crawlbatch.io/crawlbatch/stages"
)

// rounding is the largest error in the difference of two times, in milliseconds, because both times
// are rounded down to milliseconds.
const rounding = 1

// paced holds the columns of the requests dataset that invariant 3 needs.
type paced struct {
	Host    string      `parquet:"host"`
	Start   schema.Time `parquet:"start,timestamp(microsecond)"`
	URL     string      `parquet:"url"`
	Epoch   int32       `parquet:"epoch"`
	GapMS   *int64      `parquet:"gap_ms"`
	DelayMS int64       `parquet:"delay_ms"`
	TotalMS int64       `parquet:"total_ms"`
}

func pacedKey(k table.Key, p *paced) table.Key {
	return k.Text(p.Host).Int(int64(p.Start)).Text(p.URL).Int(int64(p.Epoch))
}

// delaysAreKept reads the requests to each host of a partition in the order of their start times. The
// row of a request records the delay that had to pass since the previous request to the host.
func delaysAreKept(ctx context.Context, a *audit.Audit, r *audit.Round, n int) error {
	part, err := r.Partition(ctx, n)
	if err != nil {
		return err
	}
	keys, sorted := part.Files(stages.FileRequests, "")
	if len(keys) == 0 || a.Broken(keys...) {
		return nil
	}
	p := pacing{Audit: a, round: r, object: keys[0], limit: a.InFlight}
	return p.walk(audit.InOrder(ctx, a, keys, sorted, pacedKey))
}

// pacing walks through the requests of a partition.
type pacing struct {
	*audit.Audit
	round  *audit.Round
	object string
	limit  int // limit of requests in flight; 0 if unknown

	host   string
	epochs []epochPace // state of the host's epochs
	last   paced       // last request to the host; its Host is empty before the first request
}

// epochPace is the state of one epoch's requests to the host.
type epochPace struct {
	epoch  int32
	last   paced
	flying []paced // the requests in flight
}

func (p *pacing) wrong(check audit.Check, q *paced, format string, args ...any) {
	where := fmt.Sprintf("host = %s AND epoch_ms(start) BETWEEN %d AND %d", audit.SQL(q.Host), q.Start.UnixMilli()-q.DelayMS, q.Start.UnixMilli())
	p.Wrong(check, p.round.Number, audit.At{Object: p.object, Row: q.URL, Where: where}, format, args...)
}

func (p *pacing) walk(rows iter.Seq2[paced, error]) error {
	var gaps, requests int64
	for q, err := range rows {
		if err != nil {
			return err
		}
		requests++
		if q.Host != p.host || requests == 1 {
			p.host, p.epochs, p.last = strings.Clone(q.Host), p.epochs[:0], paced{}
		} else if q.Start < p.last.Start {
			p.wrong(delayKept, &q, "the rows of host %s are not in the order of their starts", q.Host)
			p.epochs, p.last = p.epochs[:0], paced{} // q is the first known request to its host
		}
		i := slices.IndexFunc(p.epochs, func(e epochPace) bool { return e.epoch == q.Epoch })
		if i < 0 {
			p.epochs = append(p.epochs, epochPace{epoch: q.Epoch})
			i = len(p.epochs) - 1
		} else {
			p.gap(&p.epochs[i].last, &q)
			gaps++
		}
		if p.OneClock && p.last.Host != "" && p.last.Epoch != q.Epoch {
			p.gap(&p.last, &q)
			gaps++
		}
		p.flight(&p.epochs[i], &q)
		p.epochs[i].last, p.last = q, q
	}
	p.Count(delayKept, gaps)
	if p.limit > 0 {
		p.Count(inFlightKept, requests)
	}
	return nil
}

// gap compares the time between two requests with the recorded delay.
func (p *pacing) gap(before, q *paced) {
	if gap := q.Start.Sub(before.Start).Milliseconds(); gap < q.DelayMS-rounding {
		p.wrong(delayKept, q, "it was sent %d ms after %s, the delay in force was %d ms (epochs %d and %d)", gap, before.URL, q.DelayMS, before.Epoch, q.Epoch)
	} else if q.GapMS != nil && before.Epoch == q.Epoch && *q.GapMS < q.DelayMS-rounding {
		p.wrong(delayKept, q, "its row records a gap of %d ms to the one before, the delay in force was %d ms", *q.GapMS, q.DelayMS)
	}
}

// flight counts the requests in flight at the start of the request q, including q. It compares the
// number with the limit. Times are whole milliseconds. A request that took 0 ms may have ended before
// the others of its millisecond began, so flight does not count those with it.
func (p *pacing) flight(e *epochPace, q *paced) {
	e.flying = slices.DeleteFunc(e.flying, func(f paced) bool { return f.Start.Add(time.Duration(f.TotalMS)*time.Millisecond) <= q.Start })
	n := 1
	for _, f := range e.flying {
		if f.Start < q.Start || q.TotalMS > 0 {
			n++
		}
	}
	e.flying = append(e.flying, *q)
	if p.limit > 0 && n > p.limit {
		p.wrong(inFlightKept, q, "%d requests to %s were in flight when it was sent, %d are allowed", n, q.Host, p.limit)
	}
}

// edgeRequest is the last request to a host in one round, or the first request to the host in the
// next round.
type edgeRequest struct {
	paced
	Later  bool // true: the request is in the later round, which is the checked round
	Object string
}

// edgeKey orders the requests to each host by round and then by time. A host can have several edge
// requests in a round, because addEdges adds one for each partition whose redirects lead to the host.
func edgeKey(k table.Key, e *edgeRequest) table.Key {
	return pacedKey(k.Text(e.Host).Bool(e.Later), &e.paced)
}

// delaysAreKeptBetweenRounds checks, for each host, the delay between the last request of the previous
// round and the first request of this round. The delay applies because a round continues with the pace
// of the previous round. The check needs a single clock (OneClock), because it compares times of tasks
// that may have run on different machines. With a sample, it covers only some hosts.
func delaysAreKeptBetweenRounds(ctx context.Context, a *audit.Audit, r *audit.Round) error {
	if !a.OneClock || r.Before == nil {
		return nil
	}
	edges, err := table.NewSorter(a.Scratch, edgeKey, audit.SortMemory)
	if err != nil {
		return err
	}
	defer edges.Close() //nolint:errcheck // the sorter holds only temporary data
	for _, of := range []*audit.Round{r.Before, r} {
		for n := range of.Plan.Partitions {
			part, err := of.Partition(ctx, n)
			if err != nil {
				return a.Skip(err, delayKept, of)
			}
			keys, _ := part.Files(stages.FileRequests, "")
			if a.Broken(keys...) {
				return nil // some last or first requests are unknown
			}
			if err := addEdges(ctx, a, keys, of == r, edges); err != nil {
				return a.Skip(err, delayKept, of)
			}
		}
	}
	var gaps int64
	var last, first edgeRequest // a host's last request in the previous round, and its first request in this round
	for e, err := range edges.Sorted(ctx) {
		if err != nil {
			return err
		}
		switch {
		case !e.Later:
			last = e
			continue
		case last.Host != e.Host || first.Host == e.Host:
			continue
		}
		first = e
		gaps++
		if gap := e.Start.Sub(last.Start).Milliseconds(); gap < e.DelayMS-rounding {
			a.Wrong(delayKept, r.Number, audit.URL(e.Object, e.URL), "it was sent %d ms after %s of the round before, the delay in force was %d ms", gap, last.URL, e.DelayMS)
		}
	}
	a.Count(delayKept, gaps)
	return nil
}

// addEdges adds one request to each host of a partition to the sorter out: the first request if later
// is true, otherwise the last. addEdges needs a few hundred bytes of memory for each host.
func addEdges(ctx context.Context, a *audit.Audit, keys []string, later bool, out *table.Sorter[edgeRequest]) error {
	edges := map[string]edgeRequest{}
	err := audit.Each(ctx, a, keys, func(key string, q *paced) error {
		e, known := edges[q.Host]
		if a.Sampled(q.Host) && (!known || later && q.Start < e.Start || !later && q.Start > e.Start) {
			q.Host, q.URL = strings.Clone(q.Host), strings.Clone(q.URL)
			edges[q.Host] = edgeRequest{*q, later, key}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, host := range slices.Sorted(maps.Keys(edges)) {
		e := edges[host]
		if err := out.Add(&e); err != nil {
			return err
		}
	}
	return nil
}

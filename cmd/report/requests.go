package report

import (
	"cmp"
	"context"
	"strings"

	"crawlbatch.io/crawlbatch/cmd/report/sketch"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
)

// requestRow holds the columns of the requests dataset that a report needs.
type requestRow struct {
	Purpose       schema.Purpose `parquet:"purpose"`
	Host          string         `parquet:"host"`
	Address       string         `parquet:"address,optional"`
	Start         schema.Time    `parquet:"start,timestamp(microsecond)"`
	GapMS         *int64         `parquet:"gap_ms,optional"`
	DelayMS       int64          `parquet:"delay_ms"`
	Status        int16          `parquet:"http_status,optional"`
	ErrorClass    string         `parquet:"error_class,optional"`
	QueueMS       int64          `parquet:"queue_ms"`
	DNSMS         *int64         `parquet:"dns_ms,optional"`
	DNSUS         *int64         `parquet:"dns_us,optional"`
	ConnectMS     *int64         `parquet:"connect_ms,optional"`
	ConnectUS     *int64         `parquet:"connect_us,optional"`
	TLSMS         *int64         `parquet:"tls_ms,optional"`
	TLSUS         *int64         `parquet:"tls_us,optional"`
	FirstByteMS   *int64         `parquet:"first_byte_ms,optional"`
	FirstByteUS   *int64         `parquet:"first_byte_us,optional"`
	TotalMS       int64          `parquet:"total_ms"`
	TotalUS       *int64         `parquet:"total_us,optional"`
	BytesSent     int64          `parquet:"bytes_sent"`
	BytesReceived int64          `parquet:"bytes_received"`
}

// latency is a step of a request with the histogram of its times, in microseconds.
type latency struct {
	name, column string
	of           func(*requestRow) (us *int64, ms *int64)
	sketch.Histogram
}

// requests collects the figures of the requests dataset.
type requests struct {
	purposes, networks, paces, soon, failures *group
	rate                                      *sketch.Timeline
	latencies                                 []*latency
	queue                                     sketch.Histogram
	waits                                     [len(waitReasons)]int64 // milliseconds
	waited                                    [len(waitReasons)]int64 // requests

	sent, unconnected, bytes, sentBytes, gaps, tooSoon int64
	round                                              int
	host                                               string // host of the previous row
	status                                             int16
}

// The values of a point of the timeline of requests.
const (
	rateRequests = iota
	rateBytes
	rate2xx
	rate3xx
	rate4xx
	rate5xx
	rateNone
	rateValues
)

// mostRate is the largest number of points of the charts over time.
const mostRate = 400

// rounding is the largest error of a difference of two times, in milliseconds: times are rounded
// down to milliseconds.
const rounding = 1

func newRequests() *requests {
	return &requests{
		rate: sketch.NewTimeline(mostRate, rateValues),
		latencies: []*latency{
			{name: "name resolution", column: "dns", of: func(r *requestRow) (*int64, *int64) { return r.DNSUS, r.DNSMS }},
			{name: "TCP connect", column: "connect", of: func(r *requestRow) (*int64, *int64) { return r.ConnectUS, r.ConnectMS }},
			{name: "TLS handshake", column: "tls", of: func(r *requestRow) (*int64, *int64) { return r.TLSUS, r.TLSMS }},
			{name: "first byte", column: "first_byte", of: func(r *requestRow) (*int64, *int64) { return r.FirstByteUS, r.FirstByteMS }},
			{name: "whole request", column: "total", of: func(r *requestRow) (*int64, *int64) { return r.TotalUS, &r.TotalMS }},
		},
		purposes: (&group{
			id: "purposes", title: "Requests by purpose", from: stages.FileRequests, share: true,
			keys:   []key{{name: "purpose", sql: "purpose"}},
			values: []value{count("requests"), total("bytes received", unitBytes, "bytes_received"), total("bytes sent", unitBytes, "bytes_sent")},
		}).start(),
		failures: (&group{
			id: "failures", title: "Requests without a response", from: stages.FileRequests, where: "http_status IS NULL",
			keys: []key{{name: "class", sql: orNull("error_class", "aborted by the crawl")}}, values: []value{count("requests")},
		}).start(),
		networks: (&group{
			id: "networks", title: "Networks that answer 403 or 429 most often", from: stages.FileRequests, where: "address IS NOT NULL AND http_status IS NOT NULL",
			keys: []key{{name: "network", sql: networkSQL}}, limit: 25, positive: true, keep: 1 << 15,
			values:  []value{countIf("blocked", "http_status IN (403, 429)"), count("responses")},
			derived: []derived{{name: "share blocked", unit: unitShare, sql: "count(*) FILTER (WHERE http_status IN (403, 429)) / count(*)", of: func(v []int64) any { return ratio(v[0], v[1]) }}},
			note:    "A network is a /24 of IPv4 or a /48 of IPv6. A high share of 403 or 429 in a whole network often means that a provider blocks the crawler.",
		}).start(),
		paces: (&group{
			id: "paces", title: "Gap between two requests to a host, compared with the delay in force", from: stages.FileRequests, where: "gap_ms IS NOT NULL", share: true,
			keys: []key{{name: "gap", sql: paceSQL}}, values: []value{count("requests")},
			note: "A gap may be 1 ms shorter than the delay, because times are rounded to milliseconds. `crawlbatch verify` compares the times themselves.",
		}).start(),
		soon: (&group{
			id: "too-soon", title: "Hosts with requests before the delay had passed", from: stages.FileRequests, where: "gap_ms < delay_ms - 1", limit: 25,
			keys:   []key{{name: "host", sql: "host"}},
			values: []value{count("requests"), {name: "smallest gap", unit: unitMS, how: sketch.Smallest, sql: "min(gap_ms)"}, {name: "largest delay", unit: unitMS, how: sketch.Largest, sql: "max(delay_ms)"}},
		}).start(),
	}
}

// networkSQL names the network of an address, as network does.
const networkSQL = `CASE WHEN address[1] = '['
    THEN regexp_extract(address, '^\[([0-9a-f]+(:[0-9a-f]+){0,2})', 1) || '::/48'
    ELSE regexp_extract(address, '^[0-9]+\.[0-9]+\.[0-9]+') || '.0/24' END`

// network returns the network of an address: the first 24 bits of IPv4, or the groups of the first
// 48 bits of IPv6.
func network(address string) string {
	if !strings.HasPrefix(address, "[") {
		dots := 0
		for i := range len(address) {
			if address[i] == '.' {
				if dots++; dots == 3 {
					return address[:i] + ".0/24"
				}
			}
		}
		return ".0/24"
	}
	end, groups := 1, 0
	for i := 1; i < len(address) && groups < 3; i++ {
		if c := address[i]; c == ':' || c == ']' || c == '%' {
			if i == end || address[i-1] == ':' {
				break // an empty group
			}
			end = i
			if groups++; c != ':' {
				break
			}
		}
	}
	return address[1:end] + "::/48"
}

const paceSQL = `CASE WHEN gap_ms < delay_ms - 1 THEN 'sooner than the delay'
    WHEN delay_ms = 0 THEN 'no delay in force'
    WHEN gap_ms <= delay_ms * 1.1 THEN '1 to 1.1 times the delay'
    WHEN gap_ms <= delay_ms * 2 THEN '1.1 to 2 times the delay'
    WHEN gap_ms <= delay_ms * 10 THEN '2 to 10 times the delay'
    ELSE 'over 10 times the delay' END`

// pace returns the range of a gap, as paceSQL names it.
func pace(gap, delay int64) string {
	switch {
	case gap < delay-rounding:
		return "sooner than the delay"
	case delay == 0:
		return "no delay in force"
	case gap*10 <= delay*11:
		return "1 to 1.1 times the delay"
	case gap <= delay*2:
		return "1.1 to 2 times the delay"
	case gap <= delay*10:
		return "2 to 10 times the delay"
	}
	return "over 10 times the delay"
}

func (q *requests) read(ctx context.Context, r *rounds) error {
	return scan(ctx, r, stages.FileRequests, nil, q.add)
}

func (q *requests) add(round int, row *requestRow) {
	q.sent += one(row.BytesSent > 0)
	q.unconnected += one(row.BytesSent == 0)
	q.bytes += row.BytesReceived
	q.sentBytes += row.BytesSent
	q.purposes.add(string(row.Purpose), 1, row.BytesReceived, row.BytesSent)
	if row.Status == 0 {
		q.failures.add(cmp.Or(row.ErrorClass, "aborted by the crawl"), 1)
	} else if row.Address != "" {
		q.networks.add(network(row.Address), one(row.Status == 403 || row.Status == 429), 1)
	}
	at := q.rate.At(round, row.Start.UnixMilli())
	at[rateRequests]++
	at[rateBytes] += row.BytesReceived
	if class := int(row.Status / 100); class >= 2 && class <= 5 {
		at[rate2xx+class-2]++
	} else {
		at[rateNone]++
	}
	for _, l := range q.latencies {
		if us, ms := l.of(row); us != nil {
			l.Add(*us)
		} else if ms != nil {
			l.Add(*ms * 1000)
		}
	}
	q.queue.Add(row.QueueMS)
	if row.GapMS != nil {
		q.gap(*row.GapMS, row, round)
	}
	if row.Host != q.host {
		q.host = strings.Clone(row.Host)
	}
	q.round, q.status = round, row.Status
}

// gap adds the time since the previous request to the host.
func (q *requests) gap(gap int64, row *requestRow, round int) {
	q.gaps++
	q.paces.add(pace(gap, row.DelayMS), 1)
	if gap < row.DelayMS-rounding {
		q.tooSoon++
		q.soon.add(row.Host, 1, gap, row.DelayMS)
	}
	delay := min(gap, row.DelayMS)
	queued := min(gap-delay, max(row.QueueMS, 0))
	after := waitOther
	if row.Host == q.host && round == q.round {
		switch {
		case q.status == 429 || q.status == 503:
			after = waitLimited
		case q.status >= 500:
			after = waitServer
		case q.status == 0:
			after = waitFailed
		}
	}
	q.wait(waitDelay, delay)
	q.wait(waitQueue, queued)
	q.wait(after, gap-delay-queued)
}

func (q *requests) wait(reason int, ms int64) {
	q.waits[reason] += ms
	q.waited[reason] += one(ms > 0)
}

// The reasons of waits, as indexes of waitReasons.
const (
	waitDelay = iota
	waitQueue
	waitLimited
	waitServer
	waitFailed
	waitOther
)

// waitReasons names the parts of the time between two requests to a host, as waitsSQL does.
var waitReasons = [...]string{
	"the delay in force", "a free slot", "a pause after 429 or 503", "a pause after another 5xx", "a pause after a request without a response",
	"a slow response, or no URL was due",
}

const waitsSQL = `WITH gaps AS (
  SELECT least(gap_ms, delay_ms) AS delay, least(gap_ms - least(gap_ms, delay_ms), queue_ms) AS queued, gap_ms,
    lag(coalesce(http_status, 0)) OVER (PARTITION BY round, host ORDER BY start) AS before
  FROM requests WHERE crawl = '%s'
), parts AS (
  SELECT 'the delay in force' AS "waited for", delay AS ms FROM gaps WHERE gap_ms IS NOT NULL
  UNION ALL SELECT 'a free slot', queued FROM gaps WHERE gap_ms IS NOT NULL
  UNION ALL SELECT CASE WHEN before IN (429, 503) THEN 'a pause after 429 or 503'
    WHEN before >= 500 THEN 'a pause after another 5xx' WHEN before = 0 THEN 'a pause after a request without a response'
    ELSE 'a slow response, or no URL was due' END, gap_ms - delay - queued FROM gaps WHERE gap_ms IS NOT NULL
)
SELECT "waited for", sum(ms) / 3600000.0 AS "host-hours", sum(ms) / sum(sum(ms)) OVER () AS share, count(*) FILTER (WHERE ms > 0) AS requests
FROM parts GROUP BY 1 HAVING sum(ms) > 0 ORDER BY 2 DESC, 1`

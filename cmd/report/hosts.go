package report

import (
	"cmp"
	"context"
	"math"
	"strconv"

	"crawlbatch.io/crawlbatch/cmd/report/sketch"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
)

// failedSQL sums the failures of a host. robots_denied is not among them.
const failedSQL = "failed_http_4xx + failed_http_5xx + failed_rate_limited + failed_dns_error + failed_connect_error + failed_tls_error + failed_timeout + failed_protocol_error"

func failures(h *schema.Host) int64 {
	return h.FailedHTTP4xx + h.FailedHTTP5xx + h.FailedRate + h.Refused + h.FailedDNS + h.FailedConnect + h.FailedTLS + h.FailedTimeout + h.FailedProtocol
}

// hosts collects the figures of the hosts dataset.
type hosts struct {
	busiest, worst, suspended, holding, robots, delays, ranked *group
	rows, breakers, suspendedHosts                             int64
}

// keepHosts is the least number of hosts that a table of hosts counts exactly.
const keepHosts = 1 << 14

// rankScale is the number of parts into which a rank of 1 is cut.
const rankScale = 1e12

func newHosts() *hosts {
	host, round := key{name: "host", sql: "host"}, key{name: "round", sql: "round", number: true}
	planned, requests := total("planned", unitCount, "planned"), total("requests", unitCount, "requests")
	delay := value{name: "delay", unit: unitMS, how: sketch.Largest, sql: "coalesce(max(delay_ms), 0)"}
	failures := total("failed", unitCount, failedSQL)
	return &hosts{
		busiest: (&group{
			id: "busiest", title: "Hosts with the most requests", from: stages.FileHosts, keys: []key{host}, limit: 25, keep: keepHosts, unique: true, positive: true,
			values: []value{requests, planned, total("fetched", unitCount, "fetched"), failures, total("bytes", unitBytes, "bytes"), delay},
			note:   "The delay is the largest at the end of a round.",
		}).start(),
		worst: (&group{
			id: "worst", title: "Hosts with the most failures", from: stages.FileHosts, keys: []key{host}, limit: 25, keep: keepHosts, unique: true, positive: true,
			values: []value{
				failures, planned, total("4xx", unitCount, "failed_http_4xx"), total("5xx", unitCount, "failed_http_5xx"), total("rate limited", unitCount, "failed_rate_limited"),
				total("no connection", unitCount, "failed_dns_error + failed_connect_error + failed_tls_error"), total("timeout", unitCount, "failed_timeout"),
				{name: "suspended", unit: unitCount, sql: "sum(breaker_events)::BIGINT"}, delay,
			},
			derived: []derived{{name: "share failed", unit: unitShare, sql: "sum(" + failedSQL + ") / nullif(sum(planned), 0)", of: func(v []int64) any { return ratio(v[0], v[1]) }}},
		}).start(),
		suspended: (&group{
			id: "suspended", title: "Hosts that the breaker suspended", from: stages.FileHosts, keys: []key{host, round}, limit: 25, unique: true, positive: true,
			values: []value{
				{name: "suspended", unit: unitCount, sql: "sum(breaker_events)::BIGINT"}, failures, planned, delay,
				{name: "last request", unit: unitTime, how: sketch.Largest, sql: "max(last_request)"},
			},
			note: "After too many failures in a row, the breaker suspends a host for a while.",
		}).start(),
		holding: (&group{
			id: "holding", title: "The ten domains that hold the rounds", from: stages.FileHosts, keys: []key{{name: "domain", sql: "domain"}, round}, limit: 10, keep: keepHosts, positive: true,
			values: []value{
				{name: "least time", unit: unitSeconds, how: sketch.Largest, scale: 0.001, sql: "max(requests * coalesce(delay_ms, 0)) / 1000"},
				count("hosts"), planned, requests, delay,
				{name: "first request", unit: unitTime, how: sketch.First, sql: "min(first_request)"},
				{name: "last request", unit: unitTime, how: sketch.Largest, sql: "max(last_request)"},
			},
			note: "The least time is that of the domain's slowest host: its requests, one after another, at its delay at the end of the round. No number of machines makes a round shorter than this.",
		}).start(),
		robots: (&group{
			id: "robots", title: "robots.txt of hosts", from: stages.FileHosts, share: true,
			keys: []key{{name: "state", sql: orNull("robots_state", "not requested")}}, values: []value{count("hosts, once for each round")},
		}).start(),
		delays: (&group{
			id: "delays", title: "Delay of hosts at the end of a round", from: stages.FileHosts, share: true,
			keys: []key{{name: "delay", sql: delaySQL}}, values: []value{count("hosts, once for each round")},
		}).start(),
		ranked: (&group{
			id: "ranked", title: "Hosts with the highest rank", from: stages.FileHosts, keys: []key{host}, limit: 20, positive: true,
			values: []value{
				{name: "rank", unit: unitScore, how: sketch.Largest, scale: 1 / rankScale, sql: "max(rank)"},
				{name: "linked from hosts", unit: unitCount, how: sketch.Largest, sql: "max(inlink_hosts)"},
				{name: "links to hosts", unit: unitCount, how: sketch.Largest, sql: "max(outlink_hosts)"},
			},
			note: "PageRank of the graph of links between hosts, the largest of all rounds. The ranks of a round sum to 1.",
		}).start(),
	}
}

const delaySQL = `CASE WHEN delay_ms IS NULL THEN 'nothing was requested' WHEN delay_ms < 1000 THEN 'under 1 s'
    WHEN delay_ms < 5000 THEN '1 to 5 s' WHEN delay_ms < 30000 THEN '5 to 30 s' ELSE '30 s and more' END`

// delayClass returns the range of a delay, as delaySQL names it.
func delayClass(ms *int64) string {
	switch {
	case ms == nil:
		return "nothing was requested"
	case *ms < 1000:
		return "under 1 s"
	case *ms < 5000:
		return "1 to 5 s"
	case *ms < 30000:
		return "5 to 30 s"
	}
	return "30 s and more"
}

func (h *hosts) read(ctx context.Context, r *rounds) error {
	return scan(ctx, r, stages.FileHosts, []*group{h.busiest, h.worst, h.suspended}, h.add)
}

func (h *hosts) add(round int, row *schema.Host) {
	failed, suspended, n := failures(row), int64(row.BreakerEvents), strconv.Itoa(round)
	var delay int64
	if row.DelayMS != nil {
		delay = *row.DelayMS
	}
	h.rows++
	h.breakers += suspended
	h.suspendedHosts += one(suspended > 0)
	h.robots.add(cmp.Or(row.RobotsState, "not requested"), 1)
	h.delays.add(delayClass(row.DelayMS), 1)
	h.busiest.add(row.Host, row.Requests, row.Planned, row.Fetched, failed, row.Bytes, delay)
	h.holding.add(pair(row.Domain, n), row.Requests*delay, 1, row.Planned, row.Requests, delay, row.FirstRequest.UnixMilli(), row.LastRequest.UnixMilli())
	h.worst.add(row.Host, failed, row.Planned, row.FailedHTTP4xx, row.FailedHTTP5xx, row.FailedRate,
		row.FailedDNS+row.FailedConnect+row.FailedTLS, row.FailedTimeout, suspended, delay)
	h.ranked.add(row.Host, int64(math.Round(row.Rank*rankScale)), row.InlinkHosts, row.OutlinkHosts)
	if suspended > 0 {
		h.suspended.add(pair(row.Host, n), suspended, failed, row.Planned, delay, row.LastRequest.UnixMilli())
	}
}

package report

import (
	"cmp"
	"context"
	"strconv"

	"crawlbatch.io/crawlbatch/cmd/report/sketch"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
)

// fetchRow holds the columns of the fetches dataset that a report needs.
type fetchRow struct {
	Outcome      schema.Outcome `parquet:"outcome"`
	Attempts     int32          `parquet:"attempts"`
	Status       int16          `parquet:"http_status,optional"`
	Error        string         `parquet:"error,optional"`
	RobotsRule   string         `parquet:"robots_rule,optional"`
	BlockedBy    string         `parquet:"blocked_by,optional"`
	Price        string         `parquet:"price,optional"`
	Depth        int32          `parquet:"depth"`
	RecordedAt   schema.Time    `parquet:"recorded_at,timestamp(microsecond)"`
	ContentBytes int64          `parquet:"content_bytes,optional"`
	MimeDetected string         `parquet:"content_mime_detected,optional"`
	RetryAfterMS *int64         `parquet:"retry_after_ms,optional"`
}

// fetches collects the figures of the fetches dataset.
type fetches struct {
	outcomes, statuses, errors, blocked, rules, depths, types, rounds *group
	retryAfter                                                        sketch.Histogram
	left                                                              *sketch.Timeline
	urls, documents, retried, contentBytes                            int64
	failed, faults, deferred, denied                                  int64
}

// mostLeft is the largest number of points of the chart of the progress.
const mostLeft = 300

func newFetches() *fetches {
	urls := []value{count("URLs")}
	return &fetches{
		left: sketch.NewTimeline(mostLeft, 1),
		outcomes: (&group{
			id: "outcomes", title: "Outcomes of planned URLs", from: stages.FileFetches, share: true,
			keys: []key{{name: "outcome", sql: "outcome"}}, values: urls,
			note: "Each planned URL has exactly one outcome.",
		}).start(),
		statuses: (&group{
			id: "statuses", title: "HTTP status of the last response", from: stages.FileFetches, share: true, limit: 30,
			keys: []key{{name: "status", sql: orNull("http_status::VARCHAR", "no response")}}, values: urls,
		}).start(),
		errors: (&group{
			id: "errors", title: "Errors", from: stages.FileFetches, where: "error IS NOT NULL", limit: 30,
			keys: []key{{name: "outcome", sql: "outcome"}, {name: "error", sql: "error"}}, values: urls,
		}).start(),
		blocked: (&group{
			id: "blocked-by", title: "URLs that services in front of sites, or prices, kept from the crawl", from: stages.FileFetches, share: true, limit: 30,
			where: "blocked_by IS NOT NULL OR outcome = 'payment_required'",
			keys:  []key{{name: "service or price", sql: blockedBy}, {name: "outcome", sql: "outcome"}}, values: urls,
			note: "Ask the owners of the sites to allow the user agent. host_suspended: the host got no more requests after several refusals.",
		}).start(),
		rules: (&group{
			id: "rules", title: "Lines of robots.txt that denied most URLs", from: stages.FileFetches, where: "outcome = 'robots_denied'", limit: 20,
			keys: []key{{name: "line of robots.txt", sql: "left(" + orNull("robots_rule", "no rule") + ", 200)"}}, values: urls,
		}).start(),
		depths: (&group{
			id: "depths", title: "Depth of planned URLs", from: stages.FileFetches, byKey: true, limit: 50, share: true,
			keys: []key{{name: "links from a source", sql: "depth", number: true}}, values: urls,
		}).start(),
		types: (&group{
			id: "types", title: "Media types that the content shows", from: stages.FileFetches, where: "content_mime_detected IS NOT NULL", limit: 30,
			keys: []key{{name: "type", sql: "content_mime_detected"}},
			values: []value{
				count("responses"), countIf("stored", "outcome = 'ok'"),
				{name: "decoded bytes", unit: unitBytes, sql: "coalesce(sum(content_bytes), 0)::BIGINT"},
			},
		}).start(),
		rounds: (&group{
			id: "rounds", from: stages.FileFetches, byKey: true,
			keys:   []key{{name: "round", sql: "round", number: true}},
			values: []value{count("URLs"), countIf("documents", documentsAre), {name: "first outcome", unit: unitTime, how: sketch.First, sql: "min(recorded_at)"}, {name: "last outcome", unit: unitTime, how: sketch.Largest, sql: "max(recorded_at)"}},
		}).start(),
	}
}

// blockedBy is the key of the table blocked-by in SQL.
const blockedBy = "coalesce(blocked_by, price, 'no price')"

// documentsAre, failedAre and the like are conditions on outcomes in SQL. failedAre is schema.Outcome.Failed.
const (
	documentsAre = "outcome IN ('ok', 'not_modified')"
	failedAre    = "outcome IN ('http_4xx', 'http_5xx', 'rate_limited', 'blocked', 'payment_required', 'dns_error', 'connect_error', 'tls_error', 'timeout', 'protocol_error', 'redirect_limit', 'internal_error', 'host_suspended', 'address_blocked', 'robots_unreachable')"
)

func (f *fetches) read(ctx context.Context, r *rounds) error {
	return scan(ctx, r, stages.FileFetches, nil, f.add)
}

func (f *fetches) add(round int, row *fetchRow) {
	document := row.Outcome == schema.OK || row.Outcome == schema.NotModified
	f.urls++
	f.documents += one(document)
	f.failed += one(row.Outcome.Failed())
	f.faults += one(row.Outcome == schema.InternalError)
	f.deferred += one(row.Outcome == schema.Deferred)
	f.denied += one(row.Outcome == schema.RobotsDenied)
	f.retried += one(row.Attempts > 1)
	f.contentBytes += row.ContentBytes
	f.outcomes.add(string(row.Outcome), 1)
	status := "no response"
	if row.Status != 0 {
		status = strconv.Itoa(int(row.Status))
	}
	f.statuses.add(status, 1)
	if row.Error != "" {
		f.errors.add(pair(string(row.Outcome), row.Error), 1)
	}
	if row.BlockedBy != "" || row.Outcome == schema.PaymentRequired {
		f.blocked.add(pair(cut(cmp.Or(row.BlockedBy, row.Price, "no price"), mostText), string(row.Outcome)), 1)
	}
	if row.Outcome == schema.RobotsDenied {
		f.rules.add(cut(cmp.Or(row.RobotsRule, "no rule"), mostText), 1)
	}
	f.depths.add(strconv.Itoa(int(row.Depth)), 1)
	if row.MimeDetected != "" {
		f.types.add(row.MimeDetected, 1, one(row.Outcome == schema.OK), row.ContentBytes)
	}
	f.rounds.add(strconv.Itoa(round), 1, one(document), row.RecordedAt.UnixMilli(), row.RecordedAt.UnixMilli())
	if row.RetryAfterMS != nil {
		f.retryAfter.Add(*row.RetryAfterMS)
	}
	f.left.At(round, row.RecordedAt.UnixMilli())[0]++
}

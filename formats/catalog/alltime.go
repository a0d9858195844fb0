package catalog

import (
	"fmt"
	"strings"

	"crawlbatch.io/crawlbatch/formats/manifest"
)

// allTime is the view domains_all: a row for each domain, over all opened rounds.
var allTime = struct {
	name, row string
	columns   []allTimeColumn
}{"domains_all", "a registered domain, over all rounds that the views open, reparses excluded", []allTimeColumn{
	{"rounds", Int64, "count(*)", "rounds that planned URLs of the domain"},
	{"first_crawl", String, "min(crawl)", "crawl of the first of these rounds"},
	{"first_round", Int32, first("round"), "number of the first of these rounds in its crawl"},
	{"last_crawl", String, "max(crawl)", "crawl of the last of these rounds"},
	{"last_round", Int32, last("round"), "number of the last of these rounds in its crawl"},
	{"first_request", Timestamp, "min(first_request)", "when the first request was written; null if none was"},
	{"last_request", Timestamp, "max(last_request)", "when the last request was written; null if none was"},
	{"planned", Int64, sum("planned"), "URLs planned, each as often as it was planned"},
	{"fetched", Int64, sum("outcome_ok + outcome_not_modified"), "of these, URLs with outcome ok or not_modified"},
	{"blocked", Int64, sum("blocked"), "URLs that were not fetched because somebody forbids it, as in domains"},
	{"pages", Int64, sum("pages"), "pages of all rounds"},
	{"new_pages", Int64, sum("new_pages"), "pages that were fetched for the first time"},
	{"changed_pages", Int64, sum("changed_pages"), "pages whose content differed from the last fetch"},
	{"duplicates", Int64, sum("exact_duplicates + near_duplicates"), "pages that duplicate other pages"},
	{"content_bytes", Int64, sum("content_bytes"), "decoded size of the pages, bytes"},
	{"requests", Int64, sum("requests"), "requests, and attempts that got no connection"},
	{"failed_requests", Int64, sum("failed_requests"), "of these, those that failed, as in domains"},
	{"error_rate", Float64, "CAST(sum(failed_requests) AS DOUBLE) / nullif(sum(requests), 0)", "failed_requests / requests, 0 to 1; null without requests"},
	{"bytes", Int64, sum("bytes"), "bytes received, before decoding"},
	{"request_ms", Int64, sum("request_ms"), "sum of the times of all requests, milliseconds"},
	{"span_ms", Int64, sum("span_ms"), "sum of the times from the first to the last request of each round, milliseconds"},
	{"breaker_events", Int64, sum("breaker_events"), "number of times that breakers of its hosts opened"},
	{"robots_changes", Int64, sum("CASE WHEN robots_changed THEN 1 ELSE 0 END"), "rounds in which its robots.txt had changed"},
	{"hosts", Int64, last("hosts"), "hosts in its last round; this and the following columns are those of its last round"},
	{"blocked_by", String, last("blocked_by"), "most frequent reason in blocked"},
	{"first_byte_p50_ms", Float64, last("first_byte_p50_ms"), "median of the times to first byte, milliseconds"},
	{"first_byte_p90_ms", Float64, last("first_byte_p90_ms"), "90th percentile of the times to first byte, milliseconds"},
	{"delay_ms", Int64, last("delay_ms"), "longest delay between requests to a host, milliseconds"},
	{"robots_host", String, last("robots_host"), "host whose robots.txt the next two columns describe"},
	{"robots_state", String, last("robots_state"), "state of this robots.txt: rules, none (4xx), unreachable"},
	{"robots_digest", String, last("robots_digest"), "SHA-1 of this robots.txt, base 32"},
	{"address_count", Int64, last("address_count"), "number of different IP addresses"},
	{"network_count", Int64, last("network_count"), "number of different networks"},
	{"rank", Float64, last("rank"), "sum of the PageRanks of its hosts"},
	{"harmonic", Float64, last("harmonic"), "harmonic centrality of the domain"},
}}

// allTimeColumn is a column of a view over all rounds, with the expression that computes it.
type allTimeColumn struct {
	name       string
	typeOf     Type
	expression string
	meaning    string
}

// Engines differ in the type of a sum and in what max_by does with null, so the expressions avoid both.
func sum(of string) string   { return "CAST(sum(" + of + ") AS BIGINT)" }
func first(of string) string { return "max(CASE WHEN oldest = 1 THEN " + of + " END)" }
func last(of string) string  { return "max(CASE WHEN newest = 1 THEN " + of + " END)" }

// allTimeDataset describes the view as a dataset without files.
func allTimeDataset() Dataset {
	d := Dataset{Name: allTime.name, Row: allTime.row, Columns: []Column{{"domain", String, false, true, "registered domain, private suffixes counted"}}}
	for _, c := range allTime.columns {
		d.Columns = append(d.Columns, Column{Name: c.name, Type: c.typeOf, Nullable: true, Description: c.meaning})
	}
	return d
}

// allTimeQuery returns the query of the view, in the SQL that all clients understand. source names the
// view domains. Rounds that have no dataset domains do not count.
func allTimeQuery(source string, sealed []*manifest.Sealed) string {
	columns := joined(allTime.columns, ",\n", func(c allTimeColumn) string { return fmt.Sprintf("  %s AS %s", c.expression, c.name) })
	return strings.TrimRight(fmt.Sprintf("SELECT domain,\n%s\nFROM (\n  SELECT *,\n"+
		"    row_number() OVER (PARTITION BY domain ORDER BY crawl, round) AS oldest,\n"+
		"    row_number() OVER (PARTITION BY domain ORDER BY crawl DESC, round DESC) AS newest\n"+
		"  FROM %s\n  %s) AS all_rounds\nGROUP BY domain", columns, source, withoutReparses(sealed)), "\n")
}

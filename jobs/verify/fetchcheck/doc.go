// Package fetchcheck checks invariants 1 to 4 of the map side (outcomes, robots.txt, pace and WARC
// records), mostly one partition at a time.
//
// The checks read the rounds of an audit and report violations to the audit. Memory is bounded:
// rows are streamed, and rows that must be joined are sorted on local disk. The package imports
// jobs/verify/audit, jobs/worker, stages, stages/fetch and formats.
package fetchcheck

import "crawlbatch.io/crawlbatch/jobs/verify/audit"

// These are the checks, ordered by invariant.
var (
	checkpoints = audit.Check{Invariant: 0, Name: "checkpoints", Of: "checkpoints"}

	oneOutcome    = audit.Check{Invariant: 1, Name: "one outcome a URL", Of: "planned URLs"}
	knownOutcomes = audit.Check{Invariant: 1, Name: "known outcomes", Of: "rows of fetches"}
	onePartition  = audit.Check{Invariant: 1, Name: "a domain is in one partition", Of: "planned URLs"}

	robotsObeyed   = audit.Check{Invariant: 2, Name: "robots.txt is obeyed", Of: "requests"}
	robotsVerdicts = audit.Check{Invariant: 2, Name: "robots.txt verdicts", Of: "rows of fetches"}

	crawlDelayKept = audit.Check{Invariant: 3, Name: "Crawl-delay", Of: "requests"}
	delayKept      = audit.Check{Invariant: 3, Name: "delay between requests", Of: "gaps"}
	inFlightKept   = audit.Check{Invariant: 3, Name: "requests in flight", Of: "requests"}

	recordsMatch  = audit.Check{Invariant: 4, Name: "WARC records", Of: "WARC records"}
	pointersMatch = audit.Check{Invariant: 4, Name: "pointers to captures", Of: "rows of fetches, pages and sitemaps"}
	sitemapsMatch = audit.Check{Invariant: 4, Name: "requests for sitemaps", Of: "rows of sitemaps"}
	indexesMatch  = audit.Check{Invariant: 4, Name: "CDXJ indexes", Of: "CDXJ lines"}
)

// Steps returns the map-side steps, in the order of their invariants.
func Steps() []audit.Step {
	return []audit.Step{
		{Partition: resultIsWhatItsCheckpointLists, Checks: []audit.Check{checkpoints}},
		{Partition: everyPlannedURLHasOneOutcome, Checks: []audit.Check{oneOutcome, knownOutcomes}},
		{Round: everyDomainIsInOnePartition, Checks: []audit.Check{onePartition}},
		{Partition: robotsTxtIsObeyed, Checks: []audit.Check{robotsObeyed, robotsVerdicts, crawlDelayKept}},
		{Partition: delaysAreKept, Checks: []audit.Check{delayKept, inFlightKept}},
		{Round: delaysAreKeptBetweenRounds, Checks: []audit.Check{delayKept}},
		{Partition: recordsAreWhereRowsSay, Checks: []audit.Check{recordsMatch, pointersMatch, indexesMatch}},
		{Partition: sitemapsHaveTheirRequests, Checks: []audit.Check{sitemapsMatch}},
	}
}

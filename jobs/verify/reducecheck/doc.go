// Package reducecheck checks invariants 5 to 7 of the reduce side (clusters, link targets and
// states of URLs, changes of pages, sums of domains, terms and topics, and recomputed results).
//
// The checks read the rounds of an audit and report violations to the audit. The checks follow the
// definitions of the stages. They do not use the stages' code, unless a check runs a task again.
// Rows are streamed and sorted on local disk. Memory holds 8 bytes for each page that is similar to
// another page, and 2 bits for every other page; or, while terms are checked, about 200,000 terms. The package imports jobs/verify/audit,
// jobs/worker, planner, stages and formats.
package reducecheck

import "crawlbatch.io/crawlbatch/jobs/verify/audit"

// These are the checks, ordered by invariant.
var (
	clustersMatch     = audit.Check{Invariant: 5, Name: "clusters are the components", Of: "pages"}
	sealedUnchanged   = audit.Check{Invariant: 5, Name: "sealed representatives stand", Of: "objects"}
	targetsKept       = audit.Check{Invariant: 6, Name: "no link target is lost", Of: "link targets"}
	statesFollow      = audit.Check{Invariant: 6, Name: "a URL's state follows from its outcome", Of: "rows"}
	filtersHold       = audit.Check{Invariant: 6, Name: "no URL is lost to a Bloom filter", Of: "URLs"}
	changesFollow     = audit.Check{Invariant: 6, Name: "a page's change follows from its last capture", Of: "pages"}
	domainsAddUp      = audit.Check{Invariant: 7, Name: "domains add up", Of: "domains"}
	termsAddUp        = audit.Check{Invariant: 7, Name: "terms add up", Of: "terms"}
	topicsFollow      = audit.Check{Invariant: 7, Name: "topics follow from terms", Of: "pages"}
	resultsReproduced = audit.Check{Invariant: 7, Name: "the same inputs, the same bytes", Of: "tasks"}
)

// Steps returns the reduce-side steps, in the order of their invariants.
func Steps() []audit.Step {
	return []audit.Step{
		{Round: ClustersAreTheComponents, Checks: []audit.Check{clustersMatch, sealedUnchanged}, Computes: true},
		{Round: NoLinkTargetIsLost, Checks: []audit.Check{targetsKept, statesFollow, filtersHold}, Divided: true},
		{Round: ChangesFollow, Checks: []audit.Check{changesFollow}, Computes: true, Divided: true},
		{Round: DomainsAddUp, Checks: []audit.Check{domainsAddUp}, Computes: true, Divided: true},
		{Round: TopicsFollow, Checks: []audit.Check{termsAddUp, topicsFollow}, Computes: true, Divided: true},
		{Round: SameInputsGiveSameBytes, Checks: []audit.Check{resultsReproduced}, Computes: true, Alone: true, Divided: true},
	}
}

// Package verify audits a stored crawl against the invariants that crawlbatch promises, from the
// stored data alone.
//
// In: a store and a crawl. Out: a violation for each broken invariant, with the object and the row,
// and how much each check read.
//
// Package audit first reads the documents (crawl, plans, inputs, results, seals) and looks for
// every file that they list. It reports each unreadable file once, and the checks skip it. Then the
// checks run side by side: those of the map side (fetchcheck) by partition, those of the reduce
// side (reducecheck) by round. For an unfinished round they check its committed results and
// checkpoints. The crawl may continue meanwhile.
//
// Verify never writes to the store. Memory is bounded: rows are streamed, and rows that must be
// joined are sorted on local disk. An error means that the audit could not be done; all faults of
// the data are violations. The report does not depend on how many checks run at the same time. It
// imports audit, fetchcheck and reducecheck.
package verify

import (
	"context"
	"slices"

	"crawlbatch.io/crawlbatch/jobs/verify/audit"
	"crawlbatch.io/crawlbatch/jobs/verify/fetchcheck"
	"crawlbatch.io/crawlbatch/jobs/verify/reducecheck"
)

type (
	// Options say what is audited and how thoroughly.
	Options = audit.Options
	// Report is the result of an audit.
	Report = audit.Report
	// Checked says how much a check read.
	Checked = audit.Checked
	// Violation is a stored object, row or record that breaks an invariant.
	Violation = audit.Violation
	// Stray is an object that no seal, result, checkpoint or live attempt accounts for.
	Stray = audit.Stray
)

// Run audits a crawl. The error says why the audit could not be done: the store does not answer,
// the crawl or round does not exist, or the context ended.
func Run(ctx context.Context, o Options) (*Report, error) {
	return audit.Run(ctx, o, slices.Concat(fetchcheck.Steps(), reducecheck.Steps()))
}

// Strays calls do for each object of a crawl that no seal, result, checkpoint or live attempt accounts
// for. If documents are damaged, it calls nothing, and the report says what is wrong.
func Strays(ctx context.Context, o Options, do func(Stray) error) (*Report, error) {
	return audit.Strays(ctx, o, do)
}

// Package verify audits a stored crawl against the invariants that crawlbatch promises, from the
// stored data alone.
//
// An audit reads a crawl in a store. The report has a violation for each broken invariant, with the
// object and the row. The report also has the number of items that each check read.
//
// First, package audit reads the documents (crawl, plans, inputs, results, seals) and looks for
// every file that the documents list. It reports each unreadable file once, and the checks skip
// unreadable files. Then the checks run side by side. Checks of the map side (fetchcheck) run by
// partition, checks of the reduce side (reducecheck) by round. In an unfinished round, the checks
// cover the committed results and checkpoints. The crawl may continue during the audit.
//
// An audit runs in one process, or in tasks that an executor starts (RunInTasks). An audit in one
// process writes nothing to the store. An audit in tasks writes its own documents, and removes them
// at the end. Memory is bounded: rows are streamed, and rows that must be joined are sorted on
// local disk. An error means that the audit was impossible. All faults of the data are violations.
// The report does not depend on the number of checks that run at the same time. The package imports
// audit, fetchcheck, reducecheck, jobs/roundstate, stages and formats.
package verify

import (
	"context"
	"slices"

	"crawlbatch.io/crawlbatch/jobs/verify/audit"
	"crawlbatch.io/crawlbatch/jobs/verify/fetchcheck"
	"crawlbatch.io/crawlbatch/jobs/verify/reducecheck"
)

type (
	// Options say what to audit and how thoroughly.
	Options = audit.Options
	// Report is the result of an audit.
	Report = audit.Report
	// Checked tells the number of items that a check has read.
	Checked = audit.Checked
	// Violation is a stored object, row or record that breaks an invariant.
	Violation = audit.Violation
	// Stray is an object that nothing in the crawl needs: no seal, result or checkpoint lists it, and
	// no running attempt can have made it.
	Stray = audit.Stray
)

// Run audits a crawl. An error means that the audit is impossible, because the store does not
// answer, the crawl or round does not exist, or the context ended.
func Run(ctx context.Context, o Options) (*Report, error) {
	return audit.Run(ctx, o, steps(), nil)
}

func steps() []audit.Step { return slices.Concat(fetchcheck.Steps(), reducecheck.Steps()) }

// Strays calls do with each stray of a crawl. If documents are damaged, it does not call do, and the
// report describes the damage.
func Strays(ctx context.Context, o Options, do func(Stray) error) (*Report, error) {
	return audit.Strays(ctx, o, do)
}

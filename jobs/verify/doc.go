// Package verify audits what is stored of a crawl against the invariants that
// crawlbatch promises, from the stored data alone.
//
// In: a store and a crawl. Out: a violation for each thing that is not as it must
// be, with the object and the row to look at, and what was checked how often.
//
// First the documents are read (crawl, plans, inputs, results, seals), then every
// file that they list is looked for; what cannot be read is reported there, once,
// and left out by what follows. Then the invariants are checked side by side, by
// partition where a partition tells all: outcomes, robots.txt, pace and records
// from the map side; clusters, links and recomputed bytes from the reduces. Of a
// round that is not finished, what its committed results promise is checked. A
// crawl may go on meanwhile.
//
// It reads and never writes to the store. Memory is bounded: rows are streamed,
// and what must be joined is sorted on local disk; an error says that the audit
// could not be done, whatever is wrong with the data is a violation. The report
// does not depend on how many checks run at a time. It imports jobs/config,
// jobs/worker, stages and what is below them.
package verify

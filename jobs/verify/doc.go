// Package verify audits what is stored of a crawl against the invariants that
// crawlbatch promises, from the stored data alone.
//
// In: a store and a crawl. Out: a violation for each thing that is not as it must
// be, with the object and the row to look at, and what was checked how often. It
// reads and never writes to the store. Memory is bounded: rows are streamed, and
// what must be joined is sorted on local disk. It imports jobs/config,
// jobs/worker, stages and what is below them.
package verify

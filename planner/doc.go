// Package planner shards the URLs of a round into partitions.
//
// In: sources (package source), the config, the time. Out: a plan: Parquet files
// with the URLs of each partition, files with the spellings of other known URLs of their
// domains, the list of what was refused, and plan.json.
//
// The life of an entry in here:
//
//	source ─► canonical form, scope, depth, stops ─► sorted by domain and URL, on disk
//	       ─► one record a URL, with all its spellings ─► the domain's budget, the round's ─► a bucket by the
//	       domain's hash ─► a partition of that bucket by predicted time ─► Parquet
//
// Copy gives a round of another crawl the same plan: of a reparse, which reads what was
// fetched by it.
//
// What falls out on the way is counted, and written to refused.parquet with its line.
//
// It promises that the same sources, config and clock give the same bytes and the
// same plan ID whatever the parallelism; that all URLs of a domain are in one
// partition, and all domains of a partition in one bucket; that memory is bounded by
// Config.Memory and one domain's budget, not by the number of URLs; and that nothing
// is in the store before Commit, and no plan.json before all it names. It imports
// formats packages and package source.
package planner

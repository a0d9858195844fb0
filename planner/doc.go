// Package planner shards the URLs of a round into partitions.
//
// In: sources (package source) and the config. Out: a plan: Parquet files with the URLs
// of each partition, files with the spellings of other known URLs of their domains, the
// list of refused entries, and plan.json.
//
// The life of an entry:
//
//	source ─► canonical form, scope, depth, stops ─► sorted by domain and URL, on disk
//	       ─► one record a URL, with all its spellings ─► the domain's budget, the round's ─► a bucket by the
//	       domain's hash ─► a partition of that bucket by predicted time ─► Parquet
//
// Copy stores the same plan for a round of another crawl: a reparse needs the plan of the
// responses that it reads.
//
// Refused entries are counted and written to refused.parquet with their lines.
//
// It promises:
//
//   - the same sources and config give the same bytes and the same plan ID, at any
//     parallelism;
//   - all URLs of a domain are in one partition, and all domains of a partition in one
//     bucket;
//   - Config.Memory and one domain's budget bound the memory, for any number of URLs;
//   - Commit writes plan.json last, after all files that it names.
//
// It imports formats packages and package source.
package planner

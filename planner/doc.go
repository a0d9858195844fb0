// Package planner shards the URLs of a round into partitions.
//
// The input is sources (package source) and the config. The output is a plan. A plan has a Parquet
// file of URLs for each partition, the list of refused entries, and plan.json.
//
// An entry of a source takes the following steps:
//
//	source ─► canonical form, scope, depth, stops ─► sorted by domain and URL, on disk
//	       ─► one record per URL, in one form ─► budgets (package budget) ─► a bucket by the
//	       domain's hash ─► a partition of that bucket, slow domains together ─► Parquet
//
// All of these steps use several CPUs. Workers make URLs canonical and sort them. While the chooser writes the URLs that fit
// the budgets, goroutines merge the sorted runs and decode them ahead of it. Partitions are written several at a time.
//
// After the sources, the planner reads the rows of earlier rounds about the listed URLs, and URLs
// that are due. A set of the listed URLs, exact or a Bloom filter of 64 MiB, selects the rows to
// read.
//
// The planner predicts times from the delays, latencies, requests and addresses of hosts that earlier
// rounds observed.
//
// The planner counts refused entries and lists them, with their line numbers, in refused.parquet.
//
// Package planner promises:
//
//   - the same sources, observed hosts and config give the same bytes and the same plan ID, at any
//     parallelism;
//   - all URLs of a domain are in one partition, and all domains of a partition in one
//     bucket;
//   - Config.Memory and one domain's budget bound the memory for any number of URLs, except for
//     about 60 bytes for each domain. With Config.Limits, the memory does not grow with a domain's
//     budget, but by about 100 bytes for each host of the domain that is decided about and for each
//     known address;
//   - Commit writes plan.json last, after all files that it names.
//
// Package planner imports formats packages and the packages budget, entry, pace, pack, planfile, scope, slowest and
// source.
package planner

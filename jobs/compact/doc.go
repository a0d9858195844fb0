// Package compact makes the compacted copy of a crawl's tables: few large parts for each dataset, with the
// rows of all rounds in the order of the dataset's key, with Bloom filters.
//
// A round publishes one part for each partition, and its URLs are divided among the partitions by the
// hash of their domains. A query for one URL therefore opens every part of every round. In a compacted
// copy, the parts of all rounds are merged by key, then round, into parts of 256 MiB whose ranges of keys
// do not overlap. The columns crawl, round and subset of a copy say where a row was published, so its
// folders have no partitions. A copy has the newest format, whatever the formats of the rounds were.
//
// The copy is derived data. Package compact never changes or deletes a published part, and anybody can
// make the copy again. The protocol is:
//
//  1. Each run writes its parts under a revision of its own (layout.Compacted), so that no two runs
//     write the same key. It compares the rows of each part with those of the published parts.
//  2. It checks that every part is there, creates the list of the parts (manifest.Compaction), and
//     appends the entry `compacted` to the ledger if the seals are still those that it copied. From
//     then on, views read the new copy.
//  3. It deletes the copies that older entries named, and parts that no entry names if they were begun
//     more than a day before the newest entry. A run that takes so long gives way: it does not append
//     its entry if it sees a newer one.
//
// A run that dies leaves parts that nothing reads, and so does a run that is told to stop while the store
// writes its entry: the entry may take effect later, and then needs its list and parts. A run on a later
// day deletes them.
//
// Package compact imports packages jobs, jobs/ledger, jobs/roundstate, stages and formats.
package compact

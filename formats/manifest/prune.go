package manifest

// The policies of pruning (Pruning.Policy).
const (
	// PruneRaw deletes raw captures: WARC files with their indexes, segments, and working files
	// that no later round reads.
	PruneRaw = "raw"
	// PruneMetadata deletes all objects of a crawl except its ledger, the lists Prune, and the WARC
	// files and indexes in these lists.
	PruneMetadata = "metadata"
)

// Pruning says which objects of a crawl the command prune deletes, and why.
type Pruning struct {
	Policy string `json:"policy"`
	Months int    `json:"months"` // age of a crawl, in months, from which the policy applies to it
	Rounds int    `json:"rounds"` // number of rounds of the crawl, which are all sealed
	// Buckets holds the number of reduce buckets of each round, and Continues is the crawl that the
	// pruned crawl continued. Later months need both when the crawl's documents are gone. Both are
	// empty unless Policy is PruneMetadata.
	Buckets   []int  `json:"buckets,omitempty"`
	Continues string `json:"continues,omitempty"`
}

// Prune lists the WARC files of a pruned crawl that stay with their indexes, because later rounds
// refer to payloads in them. The entry `pruning` of the ledger names this document.
type Prune struct {
	Header
	Crawl string   `json:"crawl"`
	At    string   `json:"at"` // time of the decision, RFC 3339, UTC
	Prune Pruning  `json:"prune"`
	Kept  []string `json:"kept"` // keys of WARC files, sorted
}

func (*Prune) kind() string { return "prune" }

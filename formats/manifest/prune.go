package manifest

// The policies of pruning (Pruning.Policy). Each also deletes what the policies before it delete.
const (
	// PruneWorking deletes working data: the working files of reduce stages that no later round reads, and the texts
	// of segments, which the table text repeats.
	PruneWorking = "working"
	// PruneRaw deletes raw captures: WARC files with their indexes, and the rest of segments.
	PruneRaw = "raw"
	// PruneMetadata deletes all objects of a crawl except its ledger, the lists Prune, and the WARC
	// files and indexes in these lists.
	PruneMetadata = "metadata"
)

// Pruning says which objects of a crawl the command prune deletes, and why.
type Pruning struct {
	Policy string `json:"policy"`
	Days   int    `json:"days,omitempty"`   // age of a crawl, in days, from which PruneWorking applies to it
	Months int    `json:"months,omitempty"` // age of a crawl, in months, from which the other policies apply to it
	Rounds int    `json:"rounds"`           // number of rounds of the crawl, which are all sealed
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

package manifest

// The kinds of objects that are pruned (Pruning.Policy).
const (
	// PruneRaw is the policy for raw captures: WARC files with their indexes, segments, and working
	// files that no later round reads.
	PruneRaw = "raw"
	// PruneMetadata is the policy for everything else: a crawl loses all objects except its ledger.
	PruneMetadata = "metadata"
)

// Pruning says which objects of a crawl are deleted by age.
type Pruning struct {
	Policy string `json:"policy"`
	Months int    `json:"months"` // age in months at which the policy deletes
	Rounds int    `json:"rounds"` // number of the crawl's rounds, which are all sealed
	// Buckets holds the number of reduce buckets of each round, and Continues is the crawl that the
	// pruned crawl continued. Later months need both after the crawl's documents are gone. Only
	// entries about metadata have them.
	Buckets   []int  `json:"buckets,omitempty"`
	Continues string `json:"continues,omitempty"`
}

// Prune is the list of those WARC files of a pruned crawl that stay, because a later round refers to
// their payloads. Their indexes stay, too. A ledger's entry `pruning` names the list.
type Prune struct {
	Header
	Crawl string   `json:"crawl"`
	At    string   `json:"at"` // time of the decision, RFC 3339, UTC
	Prune Pruning  `json:"prune"`
	Kept  []string `json:"kept"` // keys of WARC files, sorted
}

func (*Prune) kind() string { return "prune" }

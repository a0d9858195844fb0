package manifest

// Compaction lists the parts of a compacted copy of a crawl's tables. The newest entry `compacted` of
// the ledger names the list that views use. The copy can be made again from the published parts.
type Compaction struct {
	Header
	Crawl    string           `json:"crawl"`
	Revision string           `json:"revision"` // name of the copy
	At       string           `json:"at"`       // when the copy was complete, RFC 3339, UTC
	Rounds   []CompactedRound `json:"rounds"`
	// Files are the parts, by dataset, subset and the order of their rows. A part has the rows of all
	// Rounds whose Datasets name its dataset.
	Files []File `json:"files,omitempty"`
}

// CompactedRound is a round whose rows a copy has.
type CompactedRound struct {
	Round int    `json:"round"`
	Seal  string `json:"seal"` // digest of the seal whose parts were copied, as in the entry `sealed`
	// Datasets names the copied datasets. Each has the same rows as the published parts.
	Datasets []string `json:"datasets"`
}

func (*Compaction) kind() string { return "compaction" }

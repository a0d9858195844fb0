package manifest

// Removal lists the objects of a crawl that a takedown changes. It holds keys and digests, and no name
// that the takedown removes. The entry `takedown` of the ledger names this document.
type Removal struct {
	Header
	Crawl string `json:"crawl"`
	At    string `json:"at"` // when all new contents were stored, RFC 3339, UTC
	// Objects are in the order in which they change: data, then the documents that list them.
	Objects []ChangedObject `json:"objects"`
	// Entries are the ledger entries for changed documents. The ledger gets them when all objects are
	// changed, with the entry `taken_down`.
	Entries []Entry `json:"entries"`
}

func (*Removal) kind() string { return "removal" }

// ChangedObject is an object that a takedown creates, changes or deletes.
type ChangedObject struct {
	Key    string `json:"key"`
	Old    string `json:"old_sha256,omitempty"` // of the content before; "" if there was no object
	New    string `json:"new_sha256,omitempty"` // of the content after; "" if the object is deleted
	Staged int    `json:"staged,omitempty"`     // number of the object with the new content
	Step   int    `json:"step"`                 // objects with a smaller number change before
}

// Removing is takedown/takedown.json. While it exists, a takedown is unfinished: some objects have
// their new content, and others have not.
type Removing struct {
	Header
	ID     string        `json:"id"` // names the folder with the new contents
	At     string        `json:"at"`
	Crawls []RemovalName `json:"crawls"`
}

func (*Removing) kind() string { return "removing" }

// RemovalName names the Removal of a crawl.
type RemovalName struct {
	Crawl  string `json:"crawl"`
	Object string `json:"object"`
	SHA256 string `json:"sha256"` // ContentDigest of the object
}

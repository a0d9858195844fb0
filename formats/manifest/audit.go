package manifest

// Audit is the inputs.json of an audit that several tasks run. It says what the tasks of one phase
// must check.
type Audit struct {
	Header
	Crawl       string  `json:"crawl"`
	Plan        string  `json:"plan"`  // plan of the round whose folder holds the audit's documents
	Round       int     `json:"round"` // the only round to audit; negative: all rounds
	Phase       string  `json:"phase"`
	Sample      float64 `json:"sample"` // share of the partitions, records, files and tasks to check, 0 to 1
	OneClock    bool    `json:"one_clock"`
	InFlight    int     `json:"in_flight"`     // largest number of simultaneous requests to a host that the config allows
	RobotsTTLMS int64   `json:"robots_ttl_ms"` // time for which a robots.txt stays valid, milliseconds
	Tasks       int     `json:"tasks"`         // number of tasks in the phase
	Nonce       string  `json:"nonce"`         // random text that distinguishes audits that began in the same second
	// Unreadable holds the unreadable objects that the audit has already reported: the xxHash3 of
	// their keys, 8 bytes each, sorted.
	Unreadable []byte `json:"unreadable"`
}

func (*Audit) kind() string { return "audit" }

// Findings is the result of one task of an audit. The report combines the findings of all tasks.
type Findings struct {
	Checked    []CheckCount      `json:"checked"`
	Violations []Violation       `json:"violations"`
	Places     []PlacedViolation `json:"places"` // not counted in Checked, because another task may report the same place
	Notes      []string          `json:"notes"`
	Counted    []CountedNote     `json:"counted"`
	Unreadable []byte            `json:"unreadable"` // as in Audit
}

// PlacedViolation is a violation that several tasks or steps may find. The report lists only one
// violation for each Place.
type PlacedViolation struct {
	Place     string    `json:"place"`
	Violation Violation `json:"violation"`
}

// Violation is a stored object, row or record that breaks an invariant.
type Violation struct {
	Invariant int    `json:"invariant"` // number of the broken invariant; 0 means the store's structure
	Check     string `json:"check"`     // short name of the check, such as "one outcome a URL"
	Round     int    `json:"round"`     // number of the round; negative means the whole crawl
	Object    string `json:"object"`    // key of the object
	Row       string `json:"row"`       // identifies the row or record by its URL or offset
	Problem   string `json:"problem"`
	Where     string `json:"where,omitempty"` // SQL condition that selects the rows in the object
}

// CheckCount counts the items that a check has read and the violations that it has found.
type CheckCount struct {
	Invariant int    `json:"invariant"`
	Check     string `json:"check"`
	Looked    int64  `json:"looked"` // number of rows, records or objects that the check read
	Of        string `json:"of"`     // noun for the counted items, such as "rows" or "WARC records"
	Found     int64  `json:"found"`  // number of violations, including violations that the report does not list
}

// CountedNote is a note that the report shows once, although several tasks may have made it. The
// report replaces {n} in Text with N, the number of times that the note applies, and {example} with
// Example.
type CountedNote struct {
	Text    string `json:"text"`
	N       int64  `json:"n"`
	Example string `json:"example"` // the smallest of all examples
}

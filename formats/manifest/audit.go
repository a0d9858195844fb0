package manifest

// Audit is the inputs.json of an audit that several tasks run. It says what the tasks of one phase
// must check.
type Audit struct {
	Header
	Crawl       string  `json:"crawl"`
	Plan        string  `json:"plan"`  // plan of the round whose folder holds the audit's documents
	Round       int     `json:"round"` // the only round to audit; negative: all rounds
	Phase       string  `json:"phase"`
	Sample      float64 `json:"sample"`
	OneClock    bool    `json:"one_clock"`
	InFlight    int     `json:"in_flight"`     // largest number of simultaneous requests to a host that the crawl allows
	RobotsTTLMS int64   `json:"robots_ttl_ms"` // time for which a robots.txt stays valid, milliseconds
	Tasks       int     `json:"tasks"`         // number of tasks in the phase
	Nonce       string  `json:"nonce"`         // random text, which distinguishes audits that began in the same second
	Unreadable  []byte  `json:"unreadable"`    // xxHash3 of the keys of unreadable objects that the audit has already reported: 8 bytes each, in order
}

func (*Audit) kind() string { return "audit" }

// Findings holds what one task of an audit has found. The report combines the findings of all
// tasks.
type Findings struct {
	Checked    []CheckCount      `json:"checked"`
	Violations []Violation       `json:"violations"`
	Places     []PlacedViolation `json:"places"` // not counted in Checked, because several tasks may report the same place
	Notes      []string          `json:"notes"`
	Counted    []CountedNote     `json:"counted"`
	Unreadable []byte            `json:"unreadable"` // as in Audit
}

// PlacedViolation is a violation that several steps of a check may find at the same place. The report
// lists each place only once.
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

// CountedNote is a note that a report lists once. In the text, {n} stands for the number of times
// that the note applies, and {example} for the example.
type CountedNote struct {
	Text    string `json:"text"`
	N       int64  `json:"n"`
	Example string `json:"example"` // the smallest of all examples
}

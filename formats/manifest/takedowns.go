package manifest

// Takedowns is the store's list of what was taken down. It holds keyed digests of names, not the names.
// The key is not in the store (package formats/takedown).
type Takedowns struct {
	Header
	// Check is a keyed digest of a fixed text. It tells the right key from another.
	Check string `json:"check"`
	// Entries are in the order in which they were made. Nothing removes one.
	Entries []Takedown `json:"entries"`
}

// Takedown is one call of the command takedown.
type Takedown struct {
	At     string `json:"at"` // when the command was given, RFC 3339, UTC
	Reason string `json:"reason"`
	// Domains are digests of domains, each of which stands for its subdomains too. URLs are digests of
	// URLs, and Hosts of the hosts of these URLs. All are sorted.
	Domains []string `json:"domains,omitempty"`
	URLs    []string `json:"urls,omitempty"`
	Hosts   []string `json:"hosts,omitempty"`
	// Counts says what the command removed, by the names that its summary uses.
	Counts []Count `json:"counts,omitempty"`
}

func (*Takedowns) kind() string { return "takedowns" }

package warc

import (
	"strings"
	"time"
)

// Reference is what the header of a revisit says about the record that has its payload. Each field may be empty.
type Reference struct {
	ID     string // WARC-Refers-To, without angle brackets
	URI    string // WARC-Refers-To-Target-URI, without angle brackets
	Date   time.Time
	Digest Digest // payload digest
}

// Reference returns the reference of a revisit. A date that cannot be read counts as none.
func (h Header) Reference() Reference {
	date, _ := parseDate(h.Get(FieldRefersToDate))
	return Reference{ID: h.uri(FieldRefersTo), URI: h.uri(FieldRefersToURI), Date: date, Digest: Digest(h.Get(FieldPayloadDigest))}
}

// NotModified reports whether a revisit says that the server answered that its last content is current. Any
// other revisit says that its payload was the same. The versions of WARC have profiles with different beginnings.
func (h Header) NotModified() bool {
	return strings.Contains(strings.ToLower(h.Get(FieldProfile)), "/revisit/server-not-modified")
}

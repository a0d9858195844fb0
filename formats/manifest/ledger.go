package manifest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"crawlbatch.io/crawlbatch/formats/store"
)

// The kinds of ledger entries (Entry.What).
const (
	EntryCrawl      = "crawl"      // crawl.json was created or will be replaced, or prune or takedown has claimed active.json
	EntryPlanning   = "planning"   // the time Now of the round is fixed: the plan takes URLs that are due by then
	EntryPlan       = "plan"       // the plan of the round is chosen
	EntryStarted    = "started"    // the round has started and follows its plan
	EntryRunning    = "running"    // a driver crawls the rounds of the crawl window from Now to Until
	EntryFinished   = "finished"   // a `run` ended without an error while no round was open
	EntryFetching   = "fetching"   // a partition of the round has a checkpoint
	EntryFrozen     = "frozen"     // the inputs of a stage are frozen
	EntrySealed     = "sealed"     // the round is complete
	EntryPoliteness = "politeness" // a revision of the config's politeness section is published
	EntryStop       = "stop"       // a person stopped a host or a registered domain
	EntryResume     = "resume"     // a person ended such a stop
	EntryPause      = "pause"      // a person paused the requests of the crawl
	EntryContinue   = "continue"   // a person ended the pause
	EntryPruning    = "pruning"    // from now on, objects of the crawl may be deleted by age; their absence is no loss
	EntryPruned     = "pruned"     // the deletions of the newest entry `pruning` are complete
	EntryTakedown   = "takedown"   // from now on, objects of the crawl get the contents that the list Object names
	EntryTakenDown  = "taken_down" // all objects of the newest entry `takedown` have these contents; the entries before this one name the changed documents again. Without an entry `takedown`: the store has takedowns.json
	EntryCompacted  = "compacted"  // views read the compacted copy that Object lists; without Object, they read the published parts again
)

// Ledger is ledger.json: the record of what a crawl began, decided and sealed. Entries are added,
// and never changed or removed. The digest of each entry covers all earlier entries.
type Ledger struct {
	Header
	Crawl   string  `json:"crawl"`
	Entries []Entry `json:"entries"`
}

func (*Ledger) kind() string { return "ledger" }

// Entry is one line of a ledger.
type Entry struct {
	N          int    `json:"n"` // number of the entry, from 1
	At         string `json:"at"`
	What       string `json:"what"`
	Round      *int   `json:"round,omitempty"`
	Stage      string `json:"stage,omitempty"`
	Plan       string `json:"plan,omitempty"`
	Now        string `json:"now,omitempty"`        // time by which all planned URLs were due, or beginning of the crawl window, RFC 3339, UTC
	Until      string `json:"until,omitempty"`      // end of the crawl window, RFC 3339, UTC
	Revision   int    `json:"revision,omitempty"`   // revision of the politeness section
	Generation int    `json:"generation,omitempty"` // generation of the seal
	Object     string `json:"object,omitempty"`     // key of the document that the entry records
	SHA256     string `json:"sha256,omitempty"`     // ContentDigest of the object; "" if unknown
	Host       string `json:"host,omitempty"`       // host, as in the tables, that was stopped or resumed
	Domain     string `json:"domain,omitempty"`     // registered domain whose hosts were all stopped or resumed
	By         string `json:"by,omitempty"`         // person who stopped, resumed, paused or continued, and the machine
	Reason     string `json:"reason,omitempty"`     // reason that the person gave
	// Rebuilt marks an entry for an object that existed before a lost ledger was recreated.
	// The ledger cannot tell which objects were lost before this entry.
	Rebuilt bool     `json:"rebuilt,omitempty"`
	Prune   *Pruning `json:"prune,omitempty"` // only in an entry `pruning`: what is deleted
	Digest  string   `json:"digest"`
}

// InRound reports whether the entry concerns the given round.
func (e *Entry) InRound(round int) bool { return e.Round != nil && *e.Round == round }

// chained returns the digest of the entry: the SHA-256 of before, which is the digest of the previous
// entry, and the entry without Digest.
func (e Entry) chained(before string) (string, error) {
	e.Digest = ""
	body, err := json.Marshal(&e)
	if err != nil {
		return "", fmt.Errorf("entry %d of a ledger: %w", e.N, err)
	}
	return Digest(append([]byte(before), body...)), nil
}

// Append adds entries to the ledger, and sets their numbers and digests.
func (l *Ledger) Append(entries ...Entry) error {
	for _, e := range entries {
		before := ""
		if n := len(l.Entries); n > 0 {
			before = l.Entries[n-1].Digest
		}
		e.N = len(l.Entries) + 1
		var err error
		if e.Digest, err = e.chained(before); err != nil {
			return err
		}
		l.Entries = append(l.Entries, e)
	}
	return nil
}

// Check checks the numbers and digests of all entries. The error wraps ErrCorrupt.
func (l *Ledger) Check() error {
	before := ""
	for i, e := range l.Entries {
		want, err := e.chained(before)
		if err != nil {
			return err
		}
		if e.N != i+1 || e.Digest != want {
			return fmt.Errorf("entry %d does not follow from the one before it: %w", i+1, ErrCorrupt)
		}
		before = e.Digest
	}
	return nil
}

// Crawls is crawls.json in the root of a store: the list of all its crawls. This object is called
// the head.
type Crawls struct {
	Header
	Crawls []CrawlName `json:"crawls"` // crawls in the order in which they began
	// Proof is a digest of the document, like Checkpoint.Proof.
	Proof string `json:"proof,omitempty"`
}

func (*Crawls) kind() string { return "crawls" }

// CrawlName is the entry of a crawl in crawls.json.
type CrawlName struct {
	Crawl string `json:"crawl"`
	At    string `json:"at"`
}

// Names reports whether c lists the given crawl.
func (c *Crawls) Names(crawl string) bool {
	for _, n := range c.Crawls {
		if n.Crawl == crawl {
			return true
		}
	}
	return false
}

// ContentDigest returns the SHA-256, in hex, of a document without its field written_by. Documents
// that differ only in the version of crawlbatch that wrote them have the same ContentDigest.
func ContentDigest(body []byte) string {
	sum := sha256.New()
	head, rest := body, []byte(nil)
	if at := bytes.Index(body, []byte("\n \"written_by\": ")); at >= 0 && bytes.Count(body[:at], []byte("\n")) == 2 {
		line := body[at+1:]
		head, rest = body[:at], nil
		if end := bytes.IndexByte(line, '\n'); end >= 0 {
			rest = line[end:]
		}
	}
	sum.Write(head)
	sum.Write(rest)
	return hex.EncodeToString(sum.Sum(nil))
}

// LoadContents is like Load, but returns the document's ContentDigest in place of its SHA-256.
func LoadContents(ctx context.Context, b store.Bucket, key string, d Document) (store.Version, string, error) {
	body, version, err := b.Get(ctx, key, int64(limitOf(d)))
	if err == nil {
		err = Decode(key, body, d)
	}
	if err != nil {
		return "", "", fmt.Errorf("load %s: %w", d.kind(), err)
	}
	return version, ContentDigest(body), nil
}

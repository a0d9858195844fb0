// Package manifest holds the small JSON documents through which tasks agree: the frozen crawl,
// plans, checkpoints, inputs, results, attempts and seals.
//
// In: bytes from the store. Out: checked values, or an error that names the object and
// what to do. Every document has a format version. A document with a newer version gives
// ErrNewer. Encoding is deterministic: it keeps the order of struct fields, sorts maps and
// uses no clock. The package imports packages schema and store.
package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// MaxBytes bounds the size of a manifest, for writing and for reading.
const MaxBytes = 64 << 20

var (
	// ErrNewer: the document was written by a newer crawlbatch.
	ErrNewer = errors.New("written by a newer crawlbatch: use that version or a later one")
	// ErrTooLarge: the document has more than MaxBytes, and nothing was written.
	ErrTooLarge = errors.New("too large for a manifest")
	// ErrCorrupt: the document is not a manifest of its kind.
	ErrCorrupt = errors.New("not a valid manifest: it is damaged or no crawlbatch object; restore it from a copy")
)

// Header is the first part of every manifest.
type Header struct {
	Format  int    `json:"format_version"`
	Kind    string `json:"kind"`
	Version string `json:"written_by,omitempty"` // crawlbatch version
}

func (h *Header) header() *Header { return h }

// Document is a pointer to any manifest type of this package.
type Document interface {
	header() *Header
	kind() string
}

// Encode renders a document with its header and a final newline. If the document is too
// large to be read back, it returns ErrTooLarge.
func Encode(d Document) ([]byte, error) {
	h := d.header()
	h.Format, h.Kind = schema.FormatVersion, d.kind()
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(d); err != nil {
		return nil, fmt.Errorf("encode %s: %w", d.kind(), err)
	}
	if buf.Len() > MaxBytes {
		return nil, fmt.Errorf("encode %s: it has %d bytes, %d are allowed: %w", d.kind(), buf.Len(), MaxBytes, ErrTooLarge)
	}
	return buf.Bytes(), nil
}

// Decode reads a document of d's type from the body of the object key.
func Decode(key string, body []byte, d Document) error {
	var h Header
	if err := json.Unmarshal(body, &h); err != nil || h.Format == 0 {
		return fmt.Errorf("%q: %w", key, ErrCorrupt)
	}
	if h.Format > schema.FormatVersion {
		return fmt.Errorf("%q has format version %d, this program knows %d: %w", key, h.Format, schema.FormatVersion, ErrNewer)
	}
	if h.Kind != d.kind() {
		return fmt.Errorf("%q holds a %q manifest, expected %q: %w", key, h.Kind, d.kind(), ErrCorrupt)
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(d); err != nil {
		return fmt.Errorf("%q: %v: %w", key, err, ErrCorrupt)
	}
	return nil
}

// File describes a committed object. The object becomes durable and its size and digest
// are recorded before anything names it.
type File struct {
	Dataset string `json:"dataset"` // dataset or working file name
	Subset  string `json:"subset,omitempty"`
	Key     string `json:"key"`
	Bytes   int64  `json:"bytes"`
	Rows    int64  `json:"rows"`
	SHA256  string `json:"sha256"` // hex
}

// Count is a named number. Slices of Count are sorted by name.
type Count struct {
	Name string `json:"name"`
	N    int64  `json:"n"`
}

// Crawl is crawl.json: what the first plan of the crawl froze.
type Crawl struct {
	Header
	Crawl     string `json:"crawl"`
	CreatedAt string `json:"created_at"` // RFC 3339, UTC
	Config    string `json:"config"`     // YAML as resolved by the first plan, with ${VAR} unexpanded
	Continues string `json:"continues,omitempty"`
	// Reparse says what the crawl parses again. If it is nil, the crawl fetches.
	Reparse *Reparse `json:"reparse,omitempty"`
}

func (*Crawl) kind() string { return "crawl" }

// Reparse describes a reparse, a crawl whose fetch tasks read stored responses.
type Reparse struct {
	// Of is the crawl that fetched. If it is empty, the plan names external WARC files in
	// the store Archive.
	Of      string `json:"of,omitempty"`
	Archive string `json:"archive,omitempty"` // directory or s3://bucket/prefix, as the user named it
	// Files is the digest of the list of those WARC files.
	Files  string `json:"files_sha256,omitempty"`
	Parser int    `json:"parser_version"` // of all its rows, except those of unreadable records
}

// Plan is plan.json.
type Plan struct {
	Header
	ID               string          `json:"plan"` // digest of inputs and config
	Crawl            string          `json:"crawl"`
	Round            int             `json:"round"`
	Buckets          int             `json:"buckets"` // number of reduce buckets; all domains of a partition are in one
	URLs             int64           `json:"urls"`
	Domains          int64           `json:"domains"`
	Hosts            int64           `json:"hosts"`
	EstimatedSeconds float64         `json:"estimated_seconds"` // of the longest partition
	EstimatedBytes   int64           `json:"estimated_bytes"`
	Sources          []string        `json:"sources"`
	SourceLines      int64           `json:"source_lines"`
	Refused          []Count         `json:"refused"` // counts by reason
	RefusedFile      *File           `json:"refused_file,omitempty"`
	Partitions       []PlanPartition `json:"partitions"`
}

func (*Plan) kind() string { return "plan" }

// KeepsSpellings reports whether the plan lists how its URLs were spelled. Plans of format
// 1 do not.
func (p *Plan) KeepsSpellings() bool { return p.Format >= 2 }

// PlanPartition describes one partition of a plan.
type PlanPartition struct {
	Partition        int     `json:"partition"`
	Bucket           int     `json:"bucket"`
	URLs             int64   `json:"urls"`
	Domains          int64   `json:"domains"`
	Hosts            int64   `json:"hosts"`
	EstimatedSeconds float64 `json:"estimated_seconds"`
	File             File    `json:"file"`
	// Spellings has rows for URLs of the partition's domains that have several known
	// spellings and are not planned in this round. It is nil if there are none or the plan
	// is older.
	Spellings *File `json:"spellings,omitempty"`
}

// Start is start.json: the plan that the round follows.
type Start struct {
	Header
	Plan string `json:"plan"`
}

func (*Start) kind() string { return "start" }

// Inputs is inputs.json: the results that a stage reads. It is written once and never
// changes.
type Inputs struct {
	Header
	Stage string      `json:"stage"`
	Plan  string      `json:"plan"`
	Tasks []InputTask `json:"tasks"`
}

func (*Inputs) kind() string { return "inputs" }

// InputTask is one result that a stage reads.
type InputTask struct {
	Stage     string `json:"stage"`
	Partition int    `json:"partition"`
	SHA256    string `json:"sha256"` // of the result document
}

// Result is the result of a committed task. It is a pure function of the task's inputs, so
// it contains no time and no machine name.
type Result struct {
	Header
	Task      string  `json:"task"` // merge@2026-11.0:17
	Stage     string  `json:"stage"`
	Partition int     `json:"partition"`
	Plan      string  `json:"plan"`
	Counts    []Count `json:"counts"` // sorted by name
	Files     []File  `json:"files"`

	// In a fetch task's result, Hosts lists the hosts that needed a longer pause than
	// their usual delay when the task ended. The next round respects these pauses.
	Hosts       []HostClock `json:"hosts,omitempty"`
	CompletedAt int64       `json:"completed_at_ms,omitempty"` // UTC, on the completing attempt's clock
}

func (*Result) kind() string { return "result" }

// Count returns the count with that name, or 0.
func (r *Result) Count(name string) int64 {
	for _, c := range r.Counts {
		if c.Name == name {
			return c.N
		}
	}
	return 0
}

// FilesOf returns the result's files of a dataset, in order.
func (r *Result) FilesOf(dataset string) []File { return filesOf(r.Files, dataset) }

func filesOf(files []File, dataset string) []File {
	var out []File
	for _, f := range files {
		if f.Dataset == dataset {
			out = append(out, f)
		}
	}
	return out
}

// SortedCounts returns counts as a slice sorted by name, the form that documents use.
func SortedCounts[K ~string](counts map[K]int64) []Count {
	out := make([]Count, 0, len(counts))
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, Count{Name: string(name), N: counts[name]})
	}
	return out
}

// Sealed is sealed.json. A round is complete only if this document exists.
type Sealed struct {
	Header
	Crawl  string  `json:"crawl"`
	Round  int     `json:"round"`
	Plan   string  `json:"plan"`
	Counts []Count `json:"counts"` // outcome.ok …, pages, links, duplicates …
	Files  []File  `json:"files"`  // every part of every dataset, and the working files that later rounds read
}

func (*Sealed) kind() string { return "sealed" }

// FilesOf returns the files of a dataset, in key order.
func (s *Sealed) FilesOf(dataset string) []File { return filesOf(s.Files, dataset) }

// Active is active.json. It allows only one fetch stage per store at a time.
type Active struct {
	Header
	Crawl string `json:"crawl"`
	Round int    `json:"round"`
	Nonce string `json:"nonce"` // makes every body unique
	Done  bool   `json:"done"`
}

func (*Active) kind() string { return "active" }

// Checkpoint holds the authoritative state of a partition. Only its holder may fetch, and
// an outcome counts only once a checkpoint lists it.
type Checkpoint struct {
	Header
	Plan        string        `json:"plan"`
	Partition   int           `json:"partition"`
	Epoch       int           `json:"epoch"`
	Counter     int64         `json:"counter"` // makes every body unique, together with Epoch and Holder
	Holder      string        `json:"holder"`  // the attempt that holds the lease
	Released    bool          `json:"released"`
	Complete    bool          `json:"complete"`
	CompletedAt int64         `json:"completed_at_ms,omitempty"` // UTC
	LeaseMS     int64         `json:"lease_ms"`                  // how long the holder may fetch after it sends a swap
	ElapsedMS   int64         `json:"elapsed_ms"`                // elapsed part of the fetch window, over all attempts
	Recorded    []byte        `json:"recorded"`                  // Roaring bitmap of the plan's rows with an outcome
	Files       []File        `json:"files"`                     // committed segments and WARC files
	Hosts       []HostClock   `json:"hosts"`                     // sorted by host
	Retries     []URLRetry    `json:"retries,omitempty"`         // URLs that wait for another try, by row
	Robots      []OriginRetry `json:"robots,omitempty"`          // origins whose robots.txt waits for another try, by origin
	Counts      []Count       `json:"counts"`

	Politeness int       `json:"politeness,omitempty"` // the revision that the holder follows, see Politeness
	Stalled    int       `json:"stalled,omitempty"`    // consecutive attempts that recorded no outcome, with this one
	Trying     *Trying   `json:"trying,omitempty"`     // in serial mode: the item that may kill the attempt
	Suspects   []Suspect `json:"suspects,omitempty"`   // items at which attempts in serial mode died

	// Activity shows people what the holder was doing. Checkpoints of format 1 have none.
	Activity *Activity `json:"activity,omitempty"`
}

func (*Checkpoint) kind() string { return "checkpoint" }

// RecordedRows decodes Recorded. The error wraps ErrCorrupt.
func (c *Checkpoint) RecordedRows() (*roaring.Bitmap, error) {
	rows := roaring.New()
	if len(c.Recorded) > 0 {
		if _, err := rows.ReadFrom(bytes.NewReader(c.Recorded)); err != nil {
			return nil, fmt.Errorf("recorded rows: %v: %w", err, ErrCorrupt)
		}
	}
	return rows, nil
}

// Activity tells what the holder of a partition was doing at a checkpoint or renewal, on
// its own clock. It is only for display.
type Activity struct {
	At          int64     `json:"at_ms"`     // UTC
	InFlight    int       `json:"in_flight"` // requests in progress
	Ready       int       `json:"ready"`     // hosts that were due
	Delayed     int       `json:"delayed"`   // hosts that waited for their usual delay
	Waits       []Wait    `json:"waits,omitempty"`
	More        int       `json:"more_waits,omitempty"`   // number of waits that Waits leaves out
	RemainingMS int64     `json:"remaining_ms,omitempty"` // predicted remaining time
	Closes      int64     `json:"closes_ms,omitempty"`    // UTC, when the window closes
	Failures    []Failure `json:"failures,omitempty"`     // by class, newest first
}

// Wait describes something that the holder waits for.
type Wait struct {
	Host  string `json:"host,omitempty"` // empty if the whole task waited
	Why   string `json:"why"`
	Until int64  `json:"until_ms,omitempty"` // UTC
	URLs  int64  `json:"urls,omitempty"`     // number of URLs that wait
}

// Failure is a class of failed requests of one attempt.
type Failure struct {
	Class string `json:"class"`
	N     int64  `json:"n"`
	Host  string `json:"host,omitempty"` // of the newest failure
	Text  string `json:"text,omitempty"` // of the newest failure
	At    int64  `json:"at_ms"`          // of the newest failure, UTC
}

// HostClock is a host's pace and health at a checkpoint.
type HostClock struct {
	Host     string       `json:"host"`
	DelayMS  int64        `json:"delay_ms"`            // the current delay
	BaseMS   int64        `json:"base_ms"`             // the part that config and robots.txt require
	RaisedMS int64        `json:"raised_ms,omitempty"` // the part added because of the host's responses
	Limited  int          `json:"limited,omitempty"`   // consecutive 429 and 503 responses
	WaitMS   int64        `json:"wait_ms"`             // time until its next request, at the checkpoint
	Breaker  *HostBreaker `json:"breaker,omitempty"`
}

// HostBreaker is a host's breaker at a checkpoint.
type HostBreaker struct {
	OK      int   `json:"ok,omitempty"`     // successful requests in the breaker's window
	Failed  int   `json:"failed,omitempty"` // failed requests in the breaker's window
	Open    bool  `json:"open,omitempty"`   // the host is suspended
	GaveUp  bool  `json:"gave_up,omitempty"`
	ProbeMS int64 `json:"probe_ms,omitempty"` // time until the next probe
	PauseMS int64 `json:"pause_ms,omitempty"` // pause before that probe
	Probes  int   `json:"probes,omitempty"`   // consecutive failed probes
	Opened  int   `json:"opened,omitempty"`   // how often the breaker has opened
}

// RetryCounts holds the number of retries used, by class of failure.
type RetryCounts struct {
	Timeouts     int `json:"timeouts,omitempty"`
	ServerErrors int `json:"server_errors,omitempty"`
	Limited      int `json:"limited,omitempty"` // 429 and 503
	DNS          int `json:"dns,omitempty"`
	Later        int `json:"later,omitempty"` // for a robots.txt that the other retries did not get
}

// URLRetry is a planned URL that waits for another try.
type URLRetry struct {
	Row      int64 `json:"row"`      // row in the plan file
	Attempts int32 `json:"attempts"` // requests sent for the URL
	RetryCounts
	WaitMS int64  `json:"wait_ms"`       // at the checkpoint: time until the next try
	Why    string `json:"why,omitempty"` // why the last try failed, for people
	// Chain is where the URL's redirects have led so far, or nil if it has not been
	// redirected.
	Chain *Chain `json:"chain,omitempty"`
}

// Chain is an unfinished chain of redirects, up to the last recorded response.
type Chain struct {
	Met   []Hop        `json:"met"`             // redirected requests, that for the planned URL first
	Next  string       `json:"next"`            // URL to request
	Tries int32        `json:"tries,omitempty"` // requests sent for Next
	Fetch schema.Fetch `json:"fetch"`           // the row so far
}

// Hop is a request that was redirected.
type Hop struct {
	URL    string   `json:"url"`
	Cookie string   `json:"cookie,omitempty"` // sent with the request
	Set    []string `json:"set,omitempty"`    // Set-Cookie fields of the response that apply to the rest of the chain
}

// OriginRetry is an origin whose robots.txt waits for another try.
type OriginRetry struct {
	Origin string `json:"origin"`
	Next   string `json:"next"` // URL to request, after redirects
	Host   string `json:"host"` // host of Next
	Hops   int    `json:"hops,omitempty"`
	Tries  int32  `json:"tries"` // requests sent for the robots.txt
	RetryCounts
	WaitMS int64  `json:"wait_ms"`       // at the checkpoint: time until the next try
	Why    string `json:"why,omitempty"` // why the last try failed, for people
}

// Trying names what an attempt in serial mode is working on: a planned row, or the
// robots.txt of an origin.
type Trying struct {
	Row    int64  `json:"row"`
	Origin string `json:"origin,omitempty"` // empty if it works on the row
}

// Suspect is what attempts in serial mode were working on when they died.
type Suspect struct {
	Trying
	Deaths int `json:"deaths"`
}

// Politeness is politeness.json: the newest revision of the politeness section. Tasks
// follow it regardless of the config with which they started.
type Politeness struct {
	Header
	Revision int    `json:"revision"` // from 1; makes every body unique
	Config   string `json:"config"`   // YAML of the section
}

func (*Politeness) kind() string { return "politeness" }

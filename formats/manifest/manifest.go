// Package manifest holds the small JSON documents through which tasks agree: the frozen crawl,
// plans, checkpoints, inputs, results, attempts and seals.
//
// The input is bytes from the store. The output is a checked document, or an error that
// names the object and says what to do. Every document has a format version. Decode returns ErrFormat for a
// document of another version. The encoding of a document depends only on its fields, so equal
// documents have equal bytes. Package manifest imports packages schema and store.
package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// MaxBytes is the size of the largest manifest, in bytes. Larger ones are neither written nor read.
const MaxBytes = 64 << 20

// maxListBytes is MaxBytes for a document that lists objects of a whole crawl, of which a billion URLs have a million.
const maxListBytes = 1 << 30

// limitOf returns the size of the largest document of a type, in bytes.
func limitOf(d Document) int {
	switch d.(type) {
	case *Removal, *Prune:
		return maxListBytes
	}
	return MaxBytes
}

var (
	// ErrFormat means that a document has another format than this program.
	ErrFormat = fmt.Errorf("this crawlbatch reads and writes only format %d", schema.FormatVersion)
	// ErrTooLarge means that a document would have more than MaxBytes and was not written.
	ErrTooLarge = errors.New("too large for a manifest")
	// ErrCorrupt means that the document is not a manifest of the expected kind.
	ErrCorrupt = errors.New("not a valid manifest: it is damaged or is not a crawlbatch object; restore it from a copy")
)

// Header is the first part of every manifest.
type Header struct {
	Format  int    `json:"format_version"`
	Kind    string `json:"kind"`
	Version string `json:"written_by,omitempty"` // version of crawlbatch that wrote the manifest
}

func (h *Header) header() *Header { return h }

// Document is a pointer to any manifest type of this package.
type Document interface {
	header() *Header
	kind() string
}

// Encode renders a document with its header and a final newline. If the result is longer than
// MaxBytes, Encode returns ErrTooLarge.
func Encode(d Document) ([]byte, error) {
	h := d.header()
	h.Format, h.Kind = schema.FormatVersion, d.kind()
	proof := proofOf(d)
	if proof == nil {
		return encode(d)
	}
	*proof = ""
	body, err := encode(d)
	if err == nil {
		*proof = Digest(body)
		body, err = encode(d)
	}
	return body, err
}

func encode(d Document) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(d); err != nil {
		return nil, fmt.Errorf("encode %s: %w", d.kind(), err)
	}
	body := buf.Bytes()
	if most := limitOf(d); len(body) > most {
		return nil, fmt.Errorf("encode %s: it has %d bytes, but at most %d are allowed: %w", d.kind(), len(body), most, ErrTooLarge)
	}
	return body, nil
}

// Decode reads a document of d's type from body. Errors name the object by its key.
func Decode(key string, body []byte, d Document) error {
	var h Header
	if err := json.Unmarshal(body, &h); err != nil || h.Format == 0 {
		return fmt.Errorf("%q: %w", key, ErrCorrupt)
	}
	if h.Format != schema.FormatVersion {
		return fmt.Errorf("%q has format %d: %w", key, h.Format, ErrFormat)
	}
	if h.Kind != d.kind() {
		return fmt.Errorf("%q holds a %q manifest, expected %q: %w", key, h.Kind, d.kind(), ErrCorrupt)
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(d); err != nil {
		return fmt.Errorf("%q: %v: %w", key, err, ErrCorrupt)
	}
	if !proven(d, body) {
		return fmt.Errorf("%q: its proof is not the digest of its content: %w", key, ErrCorrupt)
	}
	return nil
}

// File describes an object: a part of a dataset, or a working file. A document names an object only
// after the object is durable.
type File struct {
	Dataset string `json:"dataset"` // name of the dataset or kind of working file
	Subset  string `json:"subset,omitempty"`
	Key     string `json:"key"`
	Bytes   int64  `json:"bytes"`
	Rows    int64  `json:"rows"`
	SHA256  string `json:"sha256"` // hex
	// Blocks holds, in base 64, the first 16 bytes of the SHA-256 of each block of 512 KiB, so that a
	// reader can check a part of the file. Blocks is empty for WARC files and for files up to 1 MiB. Seals
	// also omit Blocks of files that no later round reads.
	Blocks string `json:"blocks,omitempty"`
	// SectionIndex lists the sections of a run, in base 64. The entry of a section begins with
	// three varints: its bucket minus the previous section's bucket, its number of rows, and its
	// number of bytes. The digests of its blocks follow, as in Blocks.
	SectionIndex string `json:"sections,omitempty"`
}

// Count is a named number. Slices of Count are sorted by name.
type Count struct {
	Name string `json:"name"`
	N    int64  `json:"n"`
}

// Crawl is crawl.json, the settings that the first plan of the crawl froze.
type Crawl struct {
	Header
	Crawl     string `json:"crawl"`
	CreatedAt string `json:"created_at"`          // time of creation, RFC 3339, UTC
	Config    string `json:"config"`              // config as YAML, with all defaults; ${VAR} is unexpanded
	Continues string `json:"continues,omitempty"` // previous crawl, whose states of URLs and representatives are read
	// Continued lists the crawls that this crawl continues, oldest first, with the number of rounds
	// that it reads of each. A crawl without plan.history has no list: it reads all rounds of all
	// these crawls, even rounds that are sealed later.
	Continued []ContinuedCrawl `json:"continued,omitempty"`
	// Listed means that the crawl was planned without the frontier of the crawls that it continues.
	// It plans a URL that they know only if a source lists the URL, or if a round of this crawl finds
	// it.
	Listed bool `json:"listed,omitempty"`
	// Reparse names the responses that the crawl parses again. Reparse is nil if the crawl fetches.
	Reparse *Reparse `json:"reparse,omitempty"`
}

func (*Crawl) kind() string { return "crawl" }

// ContinuedCrawl says how many rounds of an earlier crawl another crawl reads.
type ContinuedCrawl struct {
	Crawl  string `json:"crawl"`
	Rounds int    `json:"rounds"`
}

// Reparse says which stored responses a reparse parses again.
type Reparse struct {
	// Of is the crawl that fetched the responses. If Of is empty, the responses are in external WARC
	// files in the store Archive, and the plan names these files.
	Of      string `json:"of,omitempty"`
	Archive string `json:"archive,omitempty"` // store of external WARC files as the user named it: directory or s3://bucket/prefix
	// Files is the SHA-256 of the list of external WARC files.
	Files  string `json:"files_sha256,omitempty"`
	Parser int    `json:"parser_version"` // version of the parser that made all rows, except those for unreadable records
}

// Plan is plan.json, the manifest of a round's plan.
type Plan struct {
	Header
	ID               string          `json:"plan"` // digest of the plan's inputs and of the config
	Crawl            string          `json:"crawl"`
	Round            int             `json:"round"`
	Buckets          int             `json:"buckets"`         // number of reduce buckets; each partition is in one bucket
	Known            int64           `json:"known,omitempty"` // earlier rounds know at least this number of URLs
	URLs             int64           `json:"urls"`
	Domains          int64           `json:"domains"`
	Hosts            int64           `json:"hosts"`
	EstimatedSeconds float64         `json:"estimated_seconds"` // predicted time of the longest partition, in seconds
	EstimatedBytes   int64           `json:"estimated_bytes"`
	Sources          []string        `json:"sources"`
	SourceLines      int64           `json:"source_lines"`
	Refused          []Count         `json:"refused"`              // number of refused URLs for each reason
	Merged           []Count         `json:"merged,omitempty"`     // listed entries that are another one's URL only by a step of the canonical form, for each step
	TakenDown        int64           `json:"taken_down,omitempty"` // number of URLs that were refused because of a takedown; no row names them
	RefusedFile      *File           `json:"refused_file,omitempty"`
	OptOutFile       *File           `json:"opt_out_file,omitempty"` // entries of the opt-out list; nil if there are none
	Partitions       []PlanPartition `json:"partitions"`
}

func (*Plan) kind() string { return "plan" }

// Lists returns RefusedFile and OptOutFile, as far as the plan has them.
func (p *Plan) Lists() (files []File) {
	for _, f := range []*File{p.RefusedFile, p.OptOutFile} {
		if f != nil {
			files = append(files, *f)
		}
	}
	return files
}

// Within returns a copy of the plan in which no predicted time is longer than the window.
func (p *Plan) Within(window time.Duration) *Plan {
	q := *p
	q.EstimatedSeconds = min(p.EstimatedSeconds, window.Seconds())
	q.Partitions = slices.Clone(p.Partitions)
	for i := range q.Partitions {
		q.Partitions[i].EstimatedSeconds = min(q.Partitions[i].EstimatedSeconds, window.Seconds())
	}
	return &q
}

// PodHours returns the sum of the predicted times of all partitions, in hours: the time for which
// all fetch pods together run.
func (p *Plan) PodHours() (hours float64) {
	for i := range p.Partitions {
		hours += p.Partitions[i].EstimatedSeconds / 3600
	}
	return hours
}

// SecondsAt predicts how many seconds it takes to fetch all partitions in their order, if the given
// number of fetch tasks runs at a time.
func (p *Plan) SecondsAt(tasks int) float64 {
	ends := make([]float64, max(1, min(tasks, len(p.Partitions))))
	for i := range p.Partitions {
		next := slices.Index(ends, slices.Min(ends))
		ends[next] += p.Partitions[i].EstimatedSeconds
	}
	return slices.Max(ends)
}

// PlanPartition describes one partition of a plan.
type PlanPartition struct {
	Partition        int     `json:"partition"`
	Bucket           int     `json:"bucket"`
	URLs             int64   `json:"urls"`
	Domains          int64   `json:"domains"`
	Hosts            int64   `json:"hosts"`
	EstimatedSeconds float64 `json:"estimated_seconds"`
	File             File    `json:"file"`
}

// Inputs is inputs.json, the frozen list of the results that a stage reads.
type Inputs struct {
	Header
	Stage string      `json:"stage"`
	Plan  string      `json:"plan"`
	Tasks []InputTask `json:"tasks"`
}

func (*Inputs) kind() string { return "inputs" }

// InputTask names one result that a stage reads.
type InputTask struct {
	Stage     string `json:"stage"`
	Partition int    `json:"partition"`
	SHA256    string `json:"sha256"` // digest of the result document
}

// Result is the result of a committed task. The result of a reduce task depends only on the inputs of
// the task, so it contains no time and no name of a machine.
type Result struct {
	Header
	Task      string  `json:"task"` // name of the task, such as merge@2026-11.0:17
	Stage     string  `json:"stage"`
	Partition int     `json:"partition"`
	Plan      string  `json:"plan"`
	Counts    []Count `json:"counts"` // sorted by name
	Files     []File  `json:"files"`

	// Hosts lists the hosts that asked for a longer pause than the usual delay, if the pause lasts
	// beyond the task. The next round respects these pauses. Only fetch tasks set Hosts.
	Hosts       []HostClock `json:"hosts,omitempty"`
	Answerers   []Answerer  `json:"answerers,omitempty"`       // as in a checkpoint, for the witness of the next round
	CompletedAt int64       `json:"completed_at_ms,omitempty"` // time when the fetch task completed, by the attempt's clock, milliseconds UTC

	Findings *Findings `json:"findings,omitempty"` // only in the result of an audit's task

	// Proof is a digest of the document, like Checkpoint.Proof.
	Proof string `json:"proof,omitempty"`
}

func (*Result) kind() string { return "result" }

// Count returns the count with the given name, or 0.
func (r *Result) Count(name string) int64 {
	for _, c := range r.Counts {
		if c.Name == name {
			return c.N
		}
	}
	return 0
}

// FilesOf returns the result's files of a dataset or kind of working file, in order.
func (r *Result) FilesOf(dataset string) []File { return filesOf(r.Files, dataset) }

// FileOf returns the result's file with the given key, or nil if the result is nil or has no such
// file.
func (r *Result) FileOf(key string) *File {
	if r != nil {
		for i := range r.Files {
			if r.Files[i].Key == key {
				return &r.Files[i]
			}
		}
	}
	return nil
}

func filesOf(files []File, dataset string) []File {
	var out []File
	for _, f := range files {
		if f.Dataset == dataset {
			out = append(out, f)
		}
	}
	return out
}

// SortedCounts returns counts in the form of documents: a slice that is sorted by name.
func SortedCounts[K ~string](counts map[K]int64) []Count {
	out := make([]Count, 0, len(counts))
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, Count{Name: string(name), N: counts[name]})
	}
	return out
}

// Sealed is sealed.json. A round is complete only if it has a sealed.json.
type Sealed struct {
	Header
	Crawl   string  `json:"crawl"`
	Round   int     `json:"round"`
	Plan    string  `json:"plan"`
	Counts  []Count `json:"counts"`  // numbers of rows, such as outcome.ok, pages and links
	Buckets int     `json:"buckets"` // number of reduce buckets
	// Files lists the parts of all datasets, and the working files that later rounds read. A stored seal has
	// none: the objects in Manifests list these files. Code that reads the objects sets Files to the files
	// that its caller needs.
	Files     []File     `json:"files,omitempty"`
	Manifests []FileList `json:"manifests,omitempty"`
	// Pruned marks a value that is not a stored seal: it stands for a round of a pruned crawl and has
	// no files.
	Pruned bool `json:"-"`
}

func (*Sealed) kind() string { return "sealed" }

// FileList describes a manifest of a seal: a Parquet object that lists files of the sealed round.
type FileList struct {
	File                 // the Parquet object; Rows is the number of listed files
	FirstBucket int      `json:"first_bucket"` // lowest bucket of the listed files; NoBucket if a file has no bucket
	LastBucket  int      `json:"last_bucket"`
	Datasets    []string `json:"datasets"` // datasets of the listed files, sorted
}

// NoBucket stands for the bucket of a file that belongs to no reduce bucket.
const NoBucket = -1

// ReduceBuckets returns the number of reduce buckets of the round, also for a value that states only its files.
func (s *Sealed) ReduceBuckets() int {
	if s.Buckets > 0 {
		return s.Buckets
	}
	return len(s.FilesOf("urls")) // a round has one part of urls for each bucket
}

// FilesOf returns the files of a dataset, in key order.
func (s *Sealed) FilesOf(dataset string) []File { return filesOf(s.Files, dataset) }

// Active is active.json, which names the running fetch stage. A store has at most one running fetch
// stage.
type Active struct {
	Header
	Crawl string `json:"crawl"`
	Round int    `json:"round"`
	Nonce string `json:"nonce"` // random text that makes every body unique
	Done  bool   `json:"done"`
	// Prune means that not a fetch stage but the command prune runs: it deletes objects. Until Done,
	// no round is fetched and no crawl is parsed again. Crawl is the first crawl that loses objects.
	Prune bool `json:"prune,omitempty"`
	// Takedown means that not prune but the command takedown runs: it changes objects. Prune is set too.
	Takedown bool `json:"takedown,omitempty"`
	// Proof is a digest of the document, like Checkpoint.Proof.
	Proof string `json:"proof,omitempty"`
}

func (*Active) kind() string { return "active" }

// Politeness is politeness.json, the newest revision of the config's politeness section. Tasks obey
// it, even if they started with another config.
type Politeness struct {
	Header
	Revision int    `json:"revision"` // number of the revision, from 1, which makes every body unique
	Config   string `json:"config"`   // YAML of the politeness section
}

func (*Politeness) kind() string { return "politeness" }

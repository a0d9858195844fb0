// Package manifest holds the small JSON documents through which tasks agree: the frozen crawl,
// plans, checkpoints, inputs, results, attempts and seals.
//
// The input is bytes from the store. The output is checked values, or an error that names the
// object and says what to do. Every document has a format version. Decoding a document of a newer
// version returns ErrNewer. Encoding is deterministic: struct fields are in order, maps are sorted,
// and no clock is read. Package manifest imports packages schema and store.
package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// MaxBytes bounds the size of a manifest, in bytes. Longer manifests are neither written nor read.
const MaxBytes = 64 << 20

var (
	// ErrNewer means that the document was written by a newer crawlbatch.
	ErrNewer = errors.New("written by a newer crawlbatch: use that version or a later one")
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
	return EncodeAs(d, schema.FormatVersion)
}

// EncodeAs encodes a document in an older format. The result has the same bytes as the encoding by
// an older program.
func EncodeAs(d Document, format int) ([]byte, error) {
	h := d.header()
	h.Format, h.Kind = format, d.kind()
	proof := proofOf(d)
	if proof == nil {
		return encode(d)
	}
	*proof = ""
	body, err := encode(d)
	if err == nil && format >= proofSince {
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
	if d.header().Format < proofSince {
		body = blocks.ReplaceAll(body, nil)
	}
	if len(body) > MaxBytes {
		return nil, fmt.Errorf("encode %s: it has %d bytes, but at most %d are allowed: %w", d.kind(), len(body), MaxBytes, ErrTooLarge)
	}
	return body, nil
}

// Decode reads a document of d's type from body. Errors name the object by its key.
func Decode(key string, body []byte, d Document) error {
	var h Header
	if err := json.Unmarshal(body, &h); err != nil || h.Format == 0 {
		return fmt.Errorf("%q: %w", key, ErrCorrupt)
	}
	if h.Format > schema.FormatVersion {
		return fmt.Errorf("%q has format version %d, but this program supports only versions up to %d: %w", key, h.Format, schema.FormatVersion, ErrNewer)
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

// File describes a committed object. A document names an object only after the object is durable
// and its size and digest are known.
type File struct {
	Dataset string `json:"dataset"` // name of the dataset or kind of working file
	Subset  string `json:"subset,omitempty"`
	Key     string `json:"key"`
	Bytes   int64  `json:"bytes"`
	Rows    int64  `json:"rows"`
	SHA256  string `json:"sha256"` // hex
	// Blocks holds, in base 64, 16 bytes of the SHA-256 of each block, so that a reader can check a
	// part of the file. Blocks is empty for WARC files, for files up to 1 MiB, and in documents
	// before format 3. Seals also omit Blocks of files that no later round reads.
	Blocks string `json:"blocks,omitempty"`
	// SectionIndex lists the sections of a run, in base 64. The entry of a section begins with
	// three varints: its bucket minus the previous section's bucket, the number of rows, and the
	// number of bytes. A digest of each block follows, as in Blocks.
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
	Config    string `json:"config"`              // config as YAML, as the first plan resolved it, with ${VAR} unexpanded
	Continues string `json:"continues,omitempty"` // previous crawl, whose states of URLs and representatives this crawl reads
	// Continued lists the crawls that this crawl continues, oldest first, with the number of rounds
	// that it reads of each. A crawl without plan.history has no list. It reads all rounds of the
	// crawl that Continues names, and of the crawls before that one, even rounds that are sealed
	// later.
	Continued []ContinuedCrawl `json:"continued,omitempty"`
	// Listed means that the crawl was planned without the frontier of these crawls. It plans a URL
	// from them only if a source names the URL or one of its own rounds finds it.
	Listed bool `json:"listed,omitempty"`
	// Reparse names the responses that the crawl parses again. Reparse is nil if the crawl fetches.
	Reparse *Reparse `json:"reparse,omitempty"`
	// AdoptedFrom is the format of the crawl before it got a ledger; AdoptedFrom is 0 if the crawl
	// began with a ledger.
	AdoptedFrom int `json:"adopted_from,omitempty"`
}

func (*Crawl) kind() string { return "crawl" }

// TakesLinks reports whether a page of the crawl that answers 304 keeps the links from earlier
// rounds. Such a crawl plans only URLs from its sources and URLs that it finds, so it needs the
// links of every page. Crawls of formats before 6 request pages without validators instead, so that
// no page answers 304.
func (c *Crawl) TakesLinks() bool { return c.Listed && c.Format >= 6 }

// ContinuedCrawl is a crawl that another crawl continues, up to a round.
type ContinuedCrawl struct {
	Crawl  string `json:"crawl"`
	Rounds int    `json:"rounds"`
}

// Reparse describes a reparse, a crawl whose fetch tasks read stored responses.
type Reparse struct {
	// Of is the crawl that fetched the responses. If Of is empty, the plan names external WARC
	// files in the store Archive.
	Of      string `json:"of,omitempty"`
	Archive string `json:"archive,omitempty"` // store of external WARC files as the user named it: directory or s3://bucket/prefix
	// Files is the SHA-256 of the list of external WARC files.
	Files  string `json:"files_sha256,omitempty"`
	Parser int    `json:"parser_version"` // version of the parser that made the rows, except rows of unreadable records
}

// Plan is plan.json, the manifest of a round's plan.
type Plan struct {
	Header
	ID               string          `json:"plan"` // digest of the plan's inputs and config
	Crawl            string          `json:"crawl"`
	Round            int             `json:"round"`
	Buckets          int             `json:"buckets"`         // number of reduce buckets; each partition is in one bucket
	Known            int64           `json:"known,omitempty"` // lower bound of the number of URLs that earlier rounds know
	URLs             int64           `json:"urls"`
	Domains          int64           `json:"domains"`
	Hosts            int64           `json:"hosts"`
	EstimatedSeconds float64         `json:"estimated_seconds"` // predicted time of the longest partition, in seconds
	EstimatedBytes   int64           `json:"estimated_bytes"`
	Sources          []string        `json:"sources"`
	SourceLines      int64           `json:"source_lines"`
	Refused          []Count         `json:"refused"` // number of refused URLs for each reason
	RefusedFile      *File           `json:"refused_file,omitempty"`
	OptOutFile       *File           `json:"opt_out_file,omitempty"` // entries of the opt-out list; nil if the round has none
	Partitions       []PlanPartition `json:"partitions"`
}

func (*Plan) kind() string { return "plan" }

// Lists returns the plan's files that cover all partitions.
func (p *Plan) Lists() (files []File) {
	for _, f := range []*File{p.RefusedFile, p.OptOutFile} {
		if f != nil {
			files = append(files, *f)
		}
	}
	return files
}

// KeepsSpellings reports whether the plan lists the spellings of its URLs. Plans of format 1 do not
// list spellings.
func (p *Plan) KeepsSpellings() bool { return p.Format >= 2 }

// PodHours returns the sum of the predicted times of all partitions, in hours. The sum is the total
// running time of the fetch pods.
func (p *Plan) PodHours() (hours float64) {
	for i := range p.Partitions {
		hours += p.Partitions[i].EstimatedSeconds / 3600
	}
	return hours
}

// SecondsAt predicts in how many seconds a process fetches all partitions in their order, if it
// fetches the given number of partitions at a time.
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
	// Spellings lists URLs of the partition's domains that have several known spellings and are not
	// planned in this round. Spellings is nil in older plans, and in plans without such URLs.
	Spellings *File `json:"spellings,omitempty"`
}

// Start is start.json, which names the plan that a round follows. Since format 3, the ledger names
// the plan instead.
type Start struct {
	Header
	Plan string `json:"plan"`
}

func (*Start) kind() string { return "start" }

// Inputs is inputs.json, the list of results that a stage reads. Inputs is written once and never
// changes.
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

// Result is the result of a committed task. The inputs of a task determine the result, so the
// result of a reduce task contains no time and no machine name.
type Result struct {
	Header
	Task      string  `json:"task"` // name of the task, such as merge@2026-11.0:17
	Stage     string  `json:"stage"`
	Partition int     `json:"partition"`
	Plan      string  `json:"plan"`
	Counts    []Count `json:"counts"` // sorted by name
	Files     []File  `json:"files"`

	// Hosts lists each host with an unfinished pause that is longer than the usual delay. Only
	// fetch tasks set Hosts. The next round respects the pauses.
	Hosts       []HostClock `json:"hosts,omitempty"`
	CompletedAt int64       `json:"completed_at_ms,omitempty"` // time when the fetch task completed, by the attempt's clock, milliseconds UTC

	Findings *Findings `json:"findings,omitempty"` // only in the result of an audit's task

	// Proof is a digest of the document, like Checkpoint.Proof. Results have a proof since format
	// 3.
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

// FilesOf returns the result's files of a dataset, in order.
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

// SortedCounts returns counts as a slice sorted by name, the form that documents use.
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
	Crawl  string  `json:"crawl"`
	Round  int     `json:"round"`
	Plan   string  `json:"plan"`
	Counts []Count `json:"counts"` // numbers of rows, such as outcome.ok, pages and links
	// Buckets is the number of reduce buckets. Seals of formats before 4 have no such field: use the
	// method ReduceBuckets.
	Buckets int `json:"buckets,omitempty"`
	// Files lists the parts of all datasets, and the working files that later rounds read. Since
	// format 4, seals list the files in manifests instead. The reader of the manifests then sets
	// Files to the files that its caller needs.
	Files     []File     `json:"files,omitempty"`
	Manifests []FileList `json:"manifests,omitempty"`
	// Pruned marks a seal without files that stands for a round of a pruned crawl. No document has it.
	Pruned bool `json:"-"`
}

func (*Sealed) kind() string { return "sealed" }

// FileList describes a manifest: a Parquet object that lists files of a sealed round.
type FileList struct {
	File                 // the manifest itself; Rows is the number of listed files
	FirstBucket int      `json:"first_bucket"` // lowest bucket of the listed files; NoBucket if a file has no bucket
	LastBucket  int      `json:"last_bucket"`
	Datasets    []string `json:"datasets"` // datasets of the listed files, sorted
}

// NoBucket stands for the bucket of a file that belongs to no reduce bucket.
const NoBucket = -1

// ReduceBuckets returns the number of reduce buckets of the round.
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
	// Prune means that `prune` deletes objects in this store. Until Done, no round is fetched and
	// no crawl is parsed again. Crawl is the first crawl that loses objects.
	Prune bool `json:"prune,omitempty"`
	// Proof is a digest of the document, like Checkpoint.Proof. active.json has a proof since
	// format 3.
	Proof string `json:"proof,omitempty"`
}

func (*Active) kind() string { return "active" }

// Politeness is politeness.json, the newest revision of the config's politeness section. Tasks
// follow Politeness even if they started with another config.
type Politeness struct {
	Header
	Revision int    `json:"revision"` // number of the revision, from 1, which makes every body unique
	Config   string `json:"config"`   // YAML of the politeness section
}

func (*Politeness) kind() string { return "politeness" }

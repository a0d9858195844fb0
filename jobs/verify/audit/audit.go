// Package audit is the framework of verify. It reads a crawl's documents, looks for every listed
// file, runs checks side by side, and collects the findings.
//
// An audit takes a store, a crawl and a table of steps, and returns a Report. Before any step runs,
// an audit finds all unreadable documents and files and reports each of them once. The steps then
// skip unreadable objects. The package never writes to the store. The package imports jobs/config,
// jobs/ledger, jobs/roundstate, stages, stages/publish, stages/fetch/robots and formats.
package audit

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zeebo/xxh3"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger"
)

// Options say what to audit and how thoroughly.
type Options struct {
	Bucket   store.Bucket
	Crawl    string
	Round    int            // the only round to audit; negative: all rounds
	Config   *config.Config // the frozen config; if nil, the config is unreadable, and the audit skips checks that need a config
	Scratch  string         // an existing local directory for temporary files
	Parallel int            // number of steps that run at the same time; 0 means GOMAXPROCS
	Sample   float64        // share of partitions, records, files and tasks to check, which a hash of their names chooses; 1 means all
	// Archive opens the store of the external WARC files that a reparse reads.
	Archive  func(ctx context.Context, address string) (store.Bucket, error)
	Version  string // version of the running crawlbatch; empty means the version that made the crawl
	OneClock bool   // true: all tasks ran on one machine, so the audit may compare times of different epochs
	Share    Share  // the part of the audit that this process does
	ID       string // ID of an audit in tasks, whose own documents are not strays; empty if the audit runs in one process

	// Now is the time of the audit. Documents of another audit in tasks are not strays if that
	// audit began at most a day before Now.
	Now time.Time
}

type (
	// Violation is a stored object, row or record that breaks an invariant.
	Violation = manifest.Violation
	// Checked tells the number of items that a check has read.
	Checked = manifest.CheckCount
)

// Report is the result of an audit.
type Report struct {
	Crawl      string      `json:"crawl"`
	Store      string      `json:"store"`
	Rounds     []int       `json:"rounds"`   // numbers of the audited rounds
	Unsealed   []int       `json:"unsealed"` // numbers of the audited rounds that are not finished
	Sample     float64     `json:"sample"`
	Checked    []Checked   `json:"checked"`    // ordered by invariant and name
	Violations []Violation `json:"violations"` // ordered by round, invariant, check, object and row
	Notes      []string    `json:"notes"`      // notes about data that was not checked, with the reason; a note is no violation
}

// Found returns the number of violations, including violations that the report does not list.
func (r *Report) Found() int64 {
	var n int64
	for _, c := range r.Checked {
		n += c.Found
	}
	return n
}

// Check is an invariant, or a part of an invariant. Reports refer to a check by its Name.
type Check struct {
	Invariant int    // number of the invariant; 0 means the store's structure
	Name      string // the statement that the check verifies
	Of        string // noun for the counted items, such as "rows"
}

// At is the place of a violation.
type At struct {
	Object string // key of the object
	Row    string // identifies the row or record by its URL or offset
	Where  string // SQL condition that selects the rows in the object
}

// URL returns the place of a URL's row in a table.
func URL(object, url string) At { return At{object, url, "url = " + SQL(url)} }

// SQL returns a text as an SQL literal.
func SQL(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// maxViolations limits the violations that one check lists in one round. Further violations are
// counted, but not listed.
const maxViolations = 20

// Audit collects the reports of the steps of one audit. Steps call the methods of Audit
// concurrently.
type Audit struct {
	Options
	InFlight   int               // largest number of simultaneous requests to one host that the crawl allows; 0 if unknown
	RobotsTTL  time.Duration     // time for which a robots.txt stays valid; 0 if unknown
	Reparse    *manifest.Reparse // the source that the crawl parses again; nil for a crawl that fetches
	External   store.Bucket      // store of the external WARC files that the crawl parses; nil without such files
	TakenDown  bool              // true: the store has a list of takedowns, so columns that refer to a URL may be null
	Ledger     *ledger.Ledger    // ledger of the crawl; nil if the ledger is lost or damaged
	Sound      bool              // true: this process has compared the digest of every file that the documents of the crawl list
	source     *ledger.Ledger    // ledger of the crawl that a reparse parses again; nil without such a crawl, or if the ledger is lost
	defers     bool              // true: the parts of reduce tasks are decoded after the checks, unless a check has compared all their rows
	last       int               // number of the round after the crawl's last round
	results    *resultCache
	files      *table.Sorter[listedFile] // files that the documents of the audited rounds list
	opened     []*os.File                // scratch files with checkpoints
	pruned     ledger.AllPruned          // what was deleted by age, by crawl
	compaction *manifest.Compaction      // list of the crawl's compacted copy; nil if there is none, or if it is lost
	copy       string                    // key of compaction
	lost       map[string]bool           // keys of objects that were reported as lost or changed; only Load uses the map

	mu      sync.Mutex
	found   map[checkRound][]Violation // the first maxViolations violations of each check and round, in order
	checked map[string]*Checked
	broken  map[uint64]struct{}              // hashes of the keys of reported unreadable objects, because a lost store has millions of them
	frozen  bool                             // true: the set broken no longer changes
	places  map[checkPlace]Violation         // smallest violation of each place at which several steps may find one; at most maxPlaces
	further map[uint64]struct{}              // hashes of the places beyond maxPlaces; for these, the violation that came first counts
	counted map[string]*manifest.CountedNote // by text
	notes   []string
	decoded map[madeBy]struct{} // tasks whose parts a check has compared row by row
}

type (
	checkRound struct {
		round int
		check string
	}
	checkPlace struct{ check, place string }
)

// New returns an audit without findings.
func New(o Options) *Audit {
	if o.Parallel <= 0 {
		o.Parallel = runtime.GOMAXPROCS(0)
	}
	return &Audit{
		Options: o, found: map[checkRound][]Violation{}, checked: map[string]*Checked{}, broken: map[uint64]struct{}{}, lost: map[string]bool{},
		places: map[checkPlace]Violation{}, further: map[uint64]struct{}{}, counted: map[string]*manifest.CountedNote{}, results: &resultCache{bucket: o.Bucket}, decoded: map[madeBy]struct{}{},
	}
}

// Count adds to the number of items that a check has read. A check that finds nothing to read calls
// Count with 0, so that the report lists the check.
func (a *Audit) Count(c Check, read int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.entry(c).Looked += read
}

// Note adds a note to the report.
func (a *Audit) Note(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.notes = append(a.notes, fmt.Sprintf(format, args...))
}

// CountNote counts the calls with the same text. The report has one note for all of them. In the
// text, {n} stands for the number of calls, and {example} for the smallest example of all calls.
func (a *Audit) CountNote(text, example string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.addNote(manifest.CountedNote{Text: text, N: 1, Example: example})
}

func (a *Audit) addNote(n manifest.CountedNote) {
	e := a.counted[n.Text]
	if e == nil {
		a.counted[n.Text] = &n
		return
	}
	e.N += n.N
	e.Example = min(e.Example, n.Example)
}

// Wrong reports a violation of a check in a round. A negative round means the whole crawl.
func (a *Audit) Wrong(c Check, round int, at At, format string, args ...any) {
	v := violation(c, round, at, format, args...)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.entry(c).Found++
	a.addViolation(v)
}

// WrongOnce reports a violation at a place at which several steps may find the same fault. Of the
// violations of a check at a place, the report has only the first in the order of compareViolations.
func (a *Audit) WrongOnce(c Check, place string, round int, at At, format string, args ...any) {
	v := violation(c, round, at, format, args...)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.entry(c)
	a.addPlace(place, v)
}

func violation(c Check, round int, at At, format string, args ...any) Violation {
	return Violation{Invariant: c.Invariant, Check: c.Name, Round: round, Object: at.Object, Row: at.Row, Where: at.Where, Problem: fmt.Sprintf(format, args...)}
}

// maxPlaces is the number of places whose violations are kept until the report. A damaged store may
// have millions of such places.
const maxPlaces = 10_000

func (a *Audit) addPlace(place string, v Violation) {
	p := checkPlace{v.Check, place}
	old, known := a.places[p]
	if !known && len(a.places) >= maxPlaces {
		hash := xxh3.HashString(p.check + "\x00" + place)
		if _, known := a.further[hash]; !known {
			a.further[hash] = struct{}{}
			a.checked[v.Check].Found++
			a.addViolation(v)
		}
		return
	}
	if !known || compareViolations(v, old) < 0 {
		a.places[p] = v
	}
}

// addViolation lists a violation. It keeps the smallest violations, so that the report does not
// depend on the order in which steps find violations.
func (a *Audit) addViolation(v Violation) {
	l := checkRound{v.Round, v.Check}
	a.found[l] = insert(a.found[l], v)
}

// insert adds a violation to a sorted list, and drops the largest violation of a full list.
func insert(all []Violation, v Violation) []Violation {
	i, _ := slices.BinarySearchFunc(all, v, compareViolations)
	if i == maxViolations {
		return all
	}
	all = slices.Insert(all, i, v)
	return all[:min(len(all), maxViolations)]
}

func (a *Audit) entry(c Check) *Checked {
	e := a.checked[c.Name]
	if e == nil {
		e = &Checked{Invariant: c.Invariant, Check: c.Name, Of: c.Of}
		a.checked[c.Name] = e
	}
	return e
}

// setBroken records that an object is unreadable and was reported. After setBroken, no check
// reports the object again.
func (a *Audit) setBroken(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.frozen {
		a.broken[xxh3.HashString(key)] = struct{}{}
	}
}

// freezeBroken ends the search for unreadable objects. Afterwards, setBroken does nothing, so that the
// report does not depend on the order in which steps find further unreadable objects.
func (a *Audit) freezeBroken() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.frozen = true
}

// AnyBroken reports whether any object is unreadable and was reported, or was deleted by age.
func (a *Audit) AnyBroken() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.broken)+len(a.pruned) > 0
}

// Broken reports whether any of the objects is unreadable and was reported, or was deleted by age.
func (a *Audit) Broken(keys ...string) bool {
	if slices.ContainsFunc(keys, a.pruned.Has) {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(keys, func(key string) bool {
		_, ok := a.broken[xxh3.HashString(key)]
		return ok
	})
}

// Sampled reports whether the item with this name is in the sample.
func (a *Audit) Sampled(name string) bool {
	return a.Sample >= 1 || fraction(name) < a.Sample
}

// SampledOf reports which of n items are in the sample. The choice depends only on the names of the
// items. If n is not 0, at least one item is in the sample.
func (a *Audit) SampledOf(n int, name func(int) string) []bool {
	in := make([]bool, n)
	least := 0
	for i := range in {
		in[i] = a.Sampled(name(i))
		if fraction(name(i)) < fraction(name(least)) {
			least = i
		}
	}
	if n > 0 && !slices.Contains(in, true) {
		in[least] = true
	}
	return in
}

// fraction maps names evenly to [0,1).
func fraction(name string) float64 { return float64(xxh3.HashString(name)>>11) / (1 << 53) }

// Report returns the findings so far.
func (a *Audit) Report() *Report {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := &Report{
		Crawl: a.Crawl, Store: a.Bucket.String(), Sample: a.Sample, Rounds: []int{}, Unsealed: []int{},
		Checked: []Checked{}, Violations: []Violation{}, Notes: append([]string{}, a.notes...),
	}
	found, places := maps.Clone(a.found), map[string]int64{}
	for p, v := range a.places {
		places[p.check]++
		l := checkRound{v.Round, v.Check}
		found[l] = insert(slices.Clone(found[l]), v)
	}
	for name, c := range a.checked {
		counted := *c
		counted.Found += places[name]
		r.Checked = append(r.Checked, counted)
	}
	slices.SortFunc(r.Checked, func(a, b Checked) int {
		return cmp.Or(cmp.Compare(a.Invariant, b.Invariant), cmp.Compare(a.Check, b.Check))
	})
	for _, v := range found {
		r.Violations = append(r.Violations, v...)
	}
	slices.SortFunc(r.Violations, compareViolations)
	for text, e := range a.counted {
		r.Notes = append(r.Notes, strings.NewReplacer("{n}", strconv.FormatInt(e.N, 10), "{example}", e.Example).Replace(text))
	}
	slices.Sort(r.Notes)
	return r
}

// compareViolations orders violations by their content, so that a report does not depend on the order
// in which steps find them.
func compareViolations(a, b Violation) int {
	return cmp.Or(cmp.Compare(a.Round, b.Round), cmp.Compare(a.Invariant, b.Invariant), cmp.Compare(a.Check, b.Check),
		cmp.Compare(a.Object, b.Object), cmp.Compare(a.Row, b.Row), cmp.Compare(a.Problem, b.Problem))
}

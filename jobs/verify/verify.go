package verify

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/zeebo/xxh3"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
)

// Options say what is audited and how thoroughly.
type Options struct {
	Bucket   store.Bucket
	Crawl    string
	Round    int            // the only round to audit; negative: all
	Config   *config.Config // as frozen; nil: it could not be read, and what needs it is left out
	Scratch  string         // an existing local directory
	Log      *slog.Logger
	Parallel int     // checks at a time; 0: GOMAXPROCS
	Sample   float64 // share of the partitions, records and tasks that are looked at, by a hash of their names; 1: all
	// Archive opens the store that holds WARC files of others, for a reparse of those.
	Archive  func(ctx context.Context, address string) (store.Bucket, error)
	Version  string // of this crawlbatch; empty: whatever made the crawl
	OneClock bool   // all tasks ran on one machine, so times of different epochs may be compared
}

// Violation is something that is not as it must be.
type Violation struct {
	Invariant int    `json:"invariant"` // number in the list of invariants; 0: the store's structure
	Check     string `json:"check"`     // short name, such as "one outcome a URL"
	Round     int    `json:"round"`     // negative: of the crawl as a whole
	Object    string `json:"object"`    // key
	Row       string `json:"row"`       // what identifies the row or record: URL, offset
	Problem   string `json:"problem"`
	Where     string `json:"where,omitempty"` // SQL condition on the object's rows that shows those concerned
}

// Checked says how much a check looked at.
type Checked struct {
	Invariant int    `json:"invariant"`
	Check     string `json:"check"`
	Looked    int64  `json:"looked"` // rows, records or objects
	Of        string `json:"of"`     // what was counted: "rows", "WARC records"
	Found     int64  `json:"found"`  // violations, those beyond Report's limit included
}

// Report is what an audit found.
type Report struct {
	Crawl      string      `json:"crawl"`
	Store      string      `json:"store"`
	Rounds     []int       `json:"rounds"`   // audited
	Unsealed   []int       `json:"unsealed"` // those of them that are not finished, audited as far as they go
	Sample     float64     `json:"sample"`
	Checked    []Checked   `json:"checked"`    // by invariant and name
	Violations []Violation `json:"violations"` // by round, invariant, check, object and row
	Notes      []string    `json:"notes"`      // what is no violation and yet not as it might be: what was not looked at, and why
}

// Found is the number of violations, those that are not listed included.
func (r *Report) Found() int64 {
	var n int64
	for _, c := range r.Checked {
		n += c.Found
	}
	return n
}

// round is a round as the checks see it.
type round struct {
	crawl   string
	number  int
	plan    *manifest.Plan
	reading robots.Reading                      // of robots.txt, as the round began with it
	sealed  *manifest.Sealed                    // nil: not sealed
	results map[stages.Stage][]*manifest.Result // by partition; nil where there is none that can be read
	digests map[stages.Stage][]string           // SHA-256 of these results
	earlier []*manifest.Sealed                  // sealed rounds before it, oldest first
	before  *round                              // the round before it; nil: none, or it cannot be read
}

// maxViolations bounds what one check of one round lists; the rest is counted.
const maxViolations = 20

// audit is an audit under way. Checks call its methods concurrently.
type audit struct {
	Options
	inFlight  int               // requests to a host that may be; 0: not known
	robotsTTL time.Duration     // a robots.txt holds for so long; 0: not known
	reparse   *manifest.Reparse // what the crawl parses again; nil: it fetches
	foreign   store.Bucket      // with the WARC files of others that it parses; nil: they are a crawl's

	mu      sync.Mutex
	found   map[list][]Violation // sorted, the least maxViolations of each
	checked map[string]*Checked
	broken  map[string]bool // objects that cannot be read and were reported
	settled bool            // broken does not change any more
	met     map[faulty]bool // reported by a check of its own
	others  map[otherMaker]int64
	denied  map[int]*deniedNow // by round
	notes   []string
}

// deniedNow are requests of a round that its reading of robots.txt allowed and today's
// would not.
type deniedNow struct {
	requests  int64
	url, rule string // of the least URL
}

// otherMaker is a version of crawlbatch that made parts of a round.
type otherMaker struct {
	round   int
	version string
}

// faulty is an object, or a place in one, that a check could not read.
type faulty struct{ check, place string }

// list names what is bounded.
type list struct {
	round int
	check string
}

func newAudit(o Options) *audit {
	if o.Parallel <= 0 {
		o.Parallel = runtime.GOMAXPROCS(0)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &audit{Options: o, found: map[list][]Violation{}, checked: map[string]*Checked{}, broken: map[string]bool{}, met: map[faulty]bool{}, others: map[otherMaker]int64{}, denied: map[int]*deniedNow{}}
}

// note counts what a check looked at. Noting 0 has a check listed that may find
// nothing to look at.
func (a *audit) note(invariant int, check, of string, looked int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.entry(invariant, check, of).Looked += looked
}

// tell adds a note to the report.
func (a *audit) tell(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.notes = append(a.notes, fmt.Sprintf(format, args...))
}

// report records a violation.
func (a *audit) report(v Violation) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.entry(v.Invariant, v.Check, "").Found++
	l := list{v.Round, v.Check}
	// The least ones are kept, so that the report does not depend on their order.
	if i, _ := slices.BinarySearchFunc(a.found[l], v, compareViolations); i < maxViolations {
		all := slices.Insert(a.found[l], i, v)
		a.found[l] = all[:min(len(all), maxViolations)]
	}
}

func (a *audit) entry(invariant int, check, of string) *Checked {
	c := a.checked[check]
	if c == nil {
		c = &Checked{Invariant: invariant, Check: check}
		a.checked[check] = c
	}
	if of != "" {
		c.Of = of
	}
	return c
}

// setBroken remembers an object that was reported as unreadable, so that no check
// reports it again.
func (a *audit) setBroken(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.settled {
		a.broken[key] = true
	}
}

// settle ends the search for objects that cannot be read: were it to go on beside
// the checks, their order would decide what is reported.
func (a *audit) settle() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settled = true
}

// once says whether a check meets what it could not read for the first time.
func (a *audit) once(check, place string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := faulty{check, place}
	if a.met[f] {
		return false
	}
	a.met[f] = true
	return true
}

func (a *audit) isBroken(keys ...string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(keys, func(key string) bool { return a.broken[key] })
}

// sampled says whether what has that name is looked at.
func (a *audit) sampled(name string) bool {
	return a.Sample >= 1 || fraction(name) < a.Sample
}

// sampledOf says which of the names are looked at: at least one, if there is one.
func (a *audit) sampledOf(names []string) []bool {
	in := make([]bool, len(names))
	some, least := false, 0
	for i, name := range names {
		in[i] = a.sampled(name)
		some = some || in[i]
		if fraction(name) < fraction(names[least]) {
			least = i
		}
	}
	if !some && len(in) > 0 {
		in[least] = true
	}
	return in
}

// fraction spreads names over [0,1).
func fraction(name string) float64 { return float64(xxh3.HashString(name)>>11) / (1 << 53) }

// summary is the report so far.
func (a *audit) summary() *Report {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := &Report{Crawl: a.Crawl, Store: a.Bucket.String(), Sample: a.Sample, Rounds: []int{}, Unsealed: []int{}, Checked: []Checked{}, Violations: []Violation{}, Notes: append([]string{}, a.notes...)}
	for _, c := range a.checked {
		r.Checked = append(r.Checked, *c)
	}
	slices.SortFunc(r.Checked, func(a, b Checked) int {
		return cmp.Or(cmp.Compare(a.Invariant, b.Invariant), cmp.Compare(a.Check, b.Check))
	})
	for _, v := range a.found {
		r.Violations = append(r.Violations, v...)
	}
	slices.SortFunc(r.Violations, compareViolations)
	for m, n := range a.others { // sorted below
		r.Notes = append(r.Notes, fmt.Sprintf("round %d, %s: not looked at: tasks whose inputs give this crawlbatch %s other bytes: %d, made by %s: check with that crawlbatch",
			m.round, recomputeCheck, a.Version, n, m.version))
	}
	for n, d := range a.denied { // sorted below
		r.Notes = append(r.Notes, fmt.Sprintf("round %d, %s: requests that robots.txt allowed as the round read it, and denies as rounds begun by this crawlbatch read it: at least %d, such as %s by %q (the round kept no spellings of lists and links, only redirects could be looked at)",
			n, obeyed, d.requests, d.url, d.rule))
	}
	slices.Sort(r.Notes)
	return r
}

// compareViolations orders what was found, whatever the order of finding.
func compareViolations(a, b Violation) int {
	return cmp.Or(cmp.Compare(a.Round, b.Round), cmp.Compare(a.Invariant, b.Invariant), cmp.Compare(a.Check, b.Check),
		cmp.Compare(a.Object, b.Object), cmp.Compare(a.Row, b.Row), cmp.Compare(a.Problem, b.Problem))
}

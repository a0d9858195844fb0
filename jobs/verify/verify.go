package verify

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/stages"
)

// Options say what is audited and how thoroughly.
type Options struct {
	Bucket   store.Bucket
	Crawl    string
	Config   *config.Config // as frozen
	Scratch  string         // an existing local directory
	Log      *slog.Logger
	Parallel int     // checks at a time; 0: GOMAXPROCS
	Sample   float64 // share of the partitions, records and tasks that are looked at, by a hash of their names; 1: all
	OneClock bool    // all tasks ran on one machine, so times of different epochs may be compared
}

// Violation is something that is not as it must be.
type Violation struct {
	Invariant int    `json:"invariant"` // number in the list of invariants; 0: the store's structure
	Check     string `json:"check"`     // short name, such as "one outcome a URL"
	Round     int    `json:"round"`
	Object    string `json:"object"` // key
	Row       string `json:"row"`    // what identifies the row or record: URL, offset
	Problem   string `json:"problem"`
}

// Checked says how much a check looked at.
type Checked struct {
	Invariant int    `json:"invariant"`
	Check     string `json:"check"`
	Looked    int64  `json:"looked"` // rows, records or objects
	Of        string `json:"of"`     // what was counted: "rows", "WARC records"
	Found     int64  `json:"found"`  // violations, those beyond Report's limit included
}

// round is a round as the checks see it.
type round struct {
	crawl   string
	number  int
	plan    *manifest.Plan
	sealed  *manifest.Sealed // nil: not sealed
	results map[stages.Stage][]*manifest.Result
	earlier []*manifest.Sealed // sealed rounds before it, oldest first
}

// maxViolations bounds what one check of one round lists; the rest is counted.
const maxViolations = 20

// audit is an audit under way. Checks call its methods concurrently.
type audit struct {
	Options

	mu      sync.Mutex
	found   []Violation
	checked map[string]*Checked
}

// note counts what a check looked at.
func (a *audit) note(invariant int, check, of string, looked int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.entry(invariant, check, of).Looked += looked
}

// report records a violation.
func (a *audit) report(v Violation) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.entry(v.Invariant, v.Check, "")
	c.Found++
	if c.Found <= maxViolations {
		a.found = append(a.found, v)
	}
}

func (a *audit) entry(invariant int, check, of string) *Checked {
	if a.checked == nil {
		a.checked = map[string]*Checked{}
	}
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

// sortedViolations orders what was found, whatever the order of finding.
func sortedViolations(v []Violation) {
	slices.SortFunc(v, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Round, b.Round), cmp.Compare(a.Invariant, b.Invariant), cmp.Compare(a.Check, b.Check),
			cmp.Compare(a.Object, b.Object), cmp.Compare(a.Row, b.Row), cmp.Compare(a.Problem, b.Problem))
	})
}

package audit

import (
	"maps"
	"slices"

	"github.com/zeebo/xxh3"

	"crawlbatch.io/crawlbatch/formats/manifest"
)

// Share is the part of an audit that one task does. The zero value is the whole audit.
type Share struct{ Index, Of int }

// Has reports whether the item with this number is in the share.
func (s Share) Has(n int) bool { return s.Of <= 1 || n%s.Of == s.Index }

// HasNamed reports whether the item with this name is in the share. Names divide items whose
// numbers may differ between tasks because the crawl continues.
func (s Share) HasNamed(name string) bool {
	return s.Of <= 1 || xxh3.HashString(name)%uint64(s.Of) == uint64(s.Index)
}

// forget removes all findings. The sets of lost and unreadable objects remain.
func (a *Audit) forget() {
	fresh := New(a.Options)
	a.found, a.checked, a.reported, a.counted, a.notes = fresh.found, fresh.checked, fresh.reported, fresh.counted, nil
}

// The method findings returns what a task has found.
func (a *Audit) findings() *manifest.Findings {
	r := a.Report()
	f := &manifest.Findings{Checked: r.Checked, Violations: r.Violations, Notes: append([]string{}, a.notes...), Counted: []manifest.CountedNote{}}
	slices.Sort(f.Notes)
	for _, text := range slices.Sorted(maps.Keys(a.counted)) {
		f.Counted = append(f.Counted, *a.counted[text])
	}
	f.Unreadable = slices.AppendSeq([]string{}, maps.Keys(a.broken))
	slices.Sort(f.Unreadable)
	return f
}

// add adds the findings of a task. Two tasks may meet the same unreadable place or have the same
// note, which the report has only once.
func (a *Audit) add(f *manifest.Findings) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range f.Checked {
		e := a.entry(Check{c.Invariant, c.Check, c.Of})
		e.Looked += c.Looked
		e.Found += c.Found
	}
	known := map[Violation]bool{}
	for _, all := range a.found {
		for _, v := range all {
			known[v] = true
		}
	}
	for _, v := range f.Violations {
		if known[v] {
			a.checked[v.Check].Found--
			continue
		}
		a.addViolation(v)
	}
	for _, n := range f.Notes {
		if !slices.Contains(a.notes, n) {
			a.notes = append(a.notes, n)
		}
	}
	for _, n := range f.Counted {
		a.addNote(n)
	}
	for _, key := range f.Unreadable {
		a.broken[key] = true
	}
}

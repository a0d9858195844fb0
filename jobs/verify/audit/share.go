package audit

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/zeebo/xxh3"

	"crawlbatch.io/crawlbatch/formats/manifest"
)

// Share is the part of an audit that one task does. The zero value is the whole audit.
type Share struct{ Index, Of int }

// Has reports whether the item with this number is in the share.
func (s Share) Has(n int) bool { return s.Of <= 1 || n%s.Of == s.Index }

// HasNamed reports whether the item with this name is in the share. It is for items that tasks may
// number differently, because the crawl may continue during the audit.
func (s Share) HasNamed(name string) bool {
	return s.Of <= 1 || xxh3.HashString(name)%uint64(s.Of) == uint64(s.Index)
}

// NewID returns the ID of an audit in tasks that begins at the given time. The ID is the time in
// seconds since 1970, in base 36.
func NewID(at time.Time) string { return strconv.FormatInt(at.Unix(), 36) }

// ended reports whether an audit in tasks with this ID counts as ended, because it began more than a day
// ago.
func (a *Audit) ended(id string) bool {
	at, err := strconv.ParseInt(id, 36, 64)
	return err != nil || a.Now.Sub(time.Unix(at, 0)) > 24*time.Hour
}

// forget removes all findings, but keeps the sets of lost and unreadable objects.
func (a *Audit) forget() {
	fresh := New(a.Options)
	a.found, a.checked, a.places, a.further, a.counted, a.notes = fresh.found, fresh.checked, fresh.places, fresh.further, fresh.counted, nil
}

// findings returns what a task has found.
func (a *Audit) findings() *manifest.Findings {
	f := &manifest.Findings{Notes: slices.Sorted(slices.Values(a.notes)), Unreadable: a.unreadable()}
	for _, name := range slices.Sorted(maps.Keys(a.checked)) {
		f.Checked = append(f.Checked, *a.checked[name])
	}
	for _, all := range a.found {
		f.Violations = append(f.Violations, all...)
	}
	slices.SortFunc(f.Violations, compareViolations)
	for p, v := range a.places {
		f.Places = append(f.Places, manifest.PlacedViolation{Place: p.place, Violation: v})
	}
	slices.SortFunc(f.Places, func(x, y manifest.PlacedViolation) int {
		return cmp.Or(compareViolations(x.Violation, y.Violation), cmp.Compare(x.Place, y.Place))
	})
	for _, text := range slices.Sorted(maps.Keys(a.counted)) {
		f.Counted = append(f.Counted, *a.counted[text])
	}
	return f
}

// unreadable returns the sorted hashes of the reported unreadable objects, 8 bytes for each.
func (a *Audit) unreadable() (hashes []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, hash := range slices.Sorted(maps.Keys(a.broken)) {
		hashes = binary.BigEndian.AppendUint64(hashes, hash)
	}
	return hashes
}

// addUnreadable marks the objects with these hashes as unreadable and reported.
func (a *Audit) addUnreadable(hashes []byte) {
	for ; len(hashes) >= 8; hashes = hashes[8:] {
		a.broken[binary.BigEndian.Uint64(hashes)] = struct{}{}
	}
}

// add adds the findings of a task. A note that several tasks have is in the report only once.
func (a *Audit) add(f *manifest.Findings) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range f.Checked {
		e := a.entry(Check{c.Invariant, c.Check, c.Of})
		e.Looked += c.Looked
		e.Found += c.Found
	}
	for _, v := range f.Violations {
		a.addViolation(v)
	}
	for _, p := range f.Places {
		a.addPlace(p.Place, p.Violation)
	}
	for _, n := range f.Notes {
		if !slices.Contains(a.notes, n) {
			a.notes = append(a.notes, n)
		}
	}
	for _, n := range f.Counted {
		a.addNote(n)
	}
	a.addUnreadable(f.Unreadable)
}

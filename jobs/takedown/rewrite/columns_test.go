package rewrite

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestEachTextColumnIsClassified fails if a column was added that may hold names: add it to columns, to
// exceptions or to nameless.
func TestEachTextColumnIsClassified(t *testing.T) {
	for dataset, k := range kinds {
		if err := unclassified(dataset, k.rows); err != nil {
			t.Error(err)
		}
	}
}

// TestNoClassifiedColumnIsGone fails if a rule names a column that no kind of file has.
func TestNoClassifiedColumnIsGone(t *testing.T) {
	found := map[string]bool{}
	for _, k := range kinds {
		for _, f := range reflect.VisibleFields(k.rows) {
			name, _, _ := strings.Cut(f.Tag.Get("parquet"), ",")
			found[name] = true
		}
	}
	for _, n := range slices.Concat(nameless, slices.Collect(maps.Keys(columns))) {
		if !found[n] {
			t.Errorf("no kind of file has the column %q", n)
		}
	}
}

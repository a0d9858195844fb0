package extsort

import (
	"bytes"
	"cmp"
	"math"
	"testing"
)

func TestKeysHaveTheOrderOfTheirFields(t *testing.T) {
	type fields struct {
		text string
		n    int64
	}
	var all []fields
	for _, text := range []string{"", "\x00", "\x00\x00", "\x00a", "\x01", "\x01\x00", "\x01\x02", "\x02", "a", "a\x00", "a\x01", "a\x02", "aa", "b", "\xff"} {
		for _, n := range []int64{math.MinInt64, -1, 0, 1, math.MaxInt64} {
			all = append(all, fields{text, n})
		}
	}
	for i, a := range all {
		for j, b := range all {
			k, l := AppendInt(AppendText(nil, a.text), a.n), AppendInt(AppendText(nil, b.text), b.n)
			if got, want := bytes.Compare(k, l), cmp.Compare(i, j); got != want {
				t.Errorf("keys of %q, %d and %q, %d compare as %d, want %d", a.text, a.n, b.text, b.n, got, want)
			}
			k, l = AppendInt(nil, ^a.n), AppendInt(nil, ^b.n)
			if got, want := bytes.Compare(k, l), cmp.Compare(b.n, a.n); got != want {
				t.Errorf("keys of %d and %d, the highest first, compare as %d, want %d", a.n, b.n, got, want)
			}
		}
	}
}

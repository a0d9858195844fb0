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
			k, l := Key(nil).Text(a.text).Int(a.n), Key(nil).Text(b.text).Int(b.n)
			if got, want := bytes.Compare(k, l), cmp.Compare(i, j); got != want {
				t.Errorf("keys of %q, %d and %q, %d compare as %d, want %d", a.text, a.n, b.text, b.n, got, want)
			}
			k, l = Key(nil).Int(^a.n), Key(nil).Int(^b.n)
			if got, want := bytes.Compare(k, l), cmp.Compare(b.n, a.n); got != want {
				t.Errorf("keys of %d and %d, the highest first, compare as %d, want %d", a.n, b.n, got, want)
			}
		}
	}
}

func TestKeysOfFloatsAndBoolsHaveTheirOrder(t *testing.T) {
	all := []float64{math.Inf(-1), -math.MaxFloat64, -1, -math.SmallestNonzeroFloat64, 0, math.SmallestNonzeroFloat64, 1, math.MaxFloat64, math.Inf(1)}
	for i, a := range all {
		for j, b := range all {
			if got, want := bytes.Compare(Key(nil).Float(a), Key(nil).Float(b)), cmp.Compare(i, j); got != want {
				t.Errorf("keys of %g and %g compare as %d, want %d", a, b, got, want)
			}
		}
	}
	if !bytes.Equal(Key(nil).Float(math.Copysign(0, -1)), Key(nil).Float(0)) || bytes.Compare(Key(nil).Bool(false), Key(nil).Bool(true)) >= 0 {
		t.Error("-0 differs from 0, or false does not come before true")
	}
}

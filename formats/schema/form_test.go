package schema

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The forms come in the order of the rule. Whatever the order in which they are offered, the first wins.
func TestFormDependsOnNoOrder(t *testing.T) {
	forms := []Form{
		{"", SentBySource}, {"http://a/?b", SentBySource}, {"http://a/?c", SentBySource}, {"http://a/?bb", SentBySource},
		{"", SentAnswered}, {"http://a/?b", SentAnswered}, Linked("", true), Linked("http://a/?b", true), Linked("", false), Linked("http://a/?b", false),
		{"http://a/?b", SentByNobody},
	}
	for range 200 {
		var one, other Form
		one, first := forms[len(forms)-1], len(forms)-1
		other = one
		for _, i := range rand.Perm(len(forms))[:1+rand.IntN(len(forms))] {
			if first = min(first, i); rand.IntN(2) == 0 {
				one.Offer(forms[i])
			} else {
				other.Offer(forms[i])
				other.Offer(forms[i])
			}
		}
		if one.Offer(other); one != forms[first] {
			t.Fatalf("%+v wins, want %+v", one, forms[first])
		}
	}
	if !slices.IsSortedFunc(forms, func(a, b Form) int { return a.compare(&b) }) {
		t.Error("the forms are not in order")
	}
}

package inlinks_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/inlinks"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// TestAnchorsKeepTheLeastHashesWithExactCounts counts up to 3,000 distinct texts in random order,
// in one set and as the sum of several sets.
func TestAnchorsKeepTheLeastHashesWithExactCounts(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for _, distinct := range []int{1, 7, 9, 255, 256, 257, 511, 512, 600, 3000} {
		var texts []string
		counts := map[string]int32{}
		for i := range distinct {
			texts = append(texts, fmt.Sprint("text ", i))
		}
		var whole inlinks.Anchors
		parts := make([]inlinks.Anchors, 3)
		for i := range 3 * distinct {
			text := texts[i%distinct]
			if i >= distinct {
				text = texts[r.IntN(distinct)]
			}
			counts[text]++
			whole.Add(text, 1)
			parts[r.IntN(3)].Add(text, 1)
			whole.Add("", 1) // a link without text
		}
		slices.SortFunc(texts, func(a, b string) int { return cmp.Compare(urlkey.Hash(a), urlkey.Hash(b)) })
		want := texts[:min(distinct, inlinks.MaxAnchors)]
		got, n := whole.Kept()
		sum := schema.TargetLinks{}
		for i := range parts {
			row := schema.TargetLinks{}
			row.Anchors, row.AnchorCounts = parts[i].Kept()
			inlinks.Add(&sum, &row)
		}
		if d := gocmp.Diff(want, got) + gocmp.Diff(want, sum.Anchors) + gocmp.Diff(n, sum.AnchorCounts); d != "" {
			t.Errorf("%d texts: %s", distinct, d)
		}
		for i, text := range got {
			if n[i] != counts[text] {
				t.Errorf("%d texts: %q has the count %d, want %d", distinct, text, n[i], counts[text])
			}
		}
	}
}

func TestFinishShowsTheMostFrequentTexts(t *testing.T) {
	sum := schema.TargetLinks{AnchorCounts: []int32{1, 3, 2, 3, 1, 1}}
	sum.Anchors = []string{"f", "b", "c", "a", "e", "d"}
	if row := inlinks.Finish(&sum); !slices.Equal(row.Anchors, []string{"a", "b", "c", "d", "e"}) {
		t.Errorf("anchors %q", row.Anchors)
	}
}

func TestTheFirstSourceIsFollowedThenNearThenLeast(t *testing.T) {
	var row schema.Inlink
	for _, step := range []struct {
		followed bool
		depth    int32
		source   string
		want     string
	}{
		{false, 1, "m", "m"}, {false, 2, "a", "m"}, {false, 1, "b", "b"}, {true, 9, "z", "z"}, {false, 0, "a", "z"}, {true, 9, "y", "y"}, {true, 3, "zz", "zz"}, {true, 3, "", "zz"},
	} {
		inlinks.Source(&row, step.followed, step.depth, step.source)
		if row.FirstSource != step.want {
			t.Errorf("after %+v the first source is %q", step, row.FirstSource)
		}
	}
}

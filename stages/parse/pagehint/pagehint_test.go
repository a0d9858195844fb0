package pagehint

import (
	"maps"
	"slices"
	"testing"
)

func TestPhrasesAreInTheNormalForm(t *testing.T) {
	lists := [][]string{notFoundSentences, domainOffers, notFoundPrefixes}
	for _, set := range []map[string]bool{notFoundTitles, domainOfferTitles, defaultTitles, wallTitles, constructionTitles} {
		lists = append(lists, slices.Collect(maps.Keys(set)))
	}
	for _, list := range lists {
		for _, p := range list {
			if got := normalOf(p); got != p {
				t.Errorf("%q is %q in the normal form", p, got)
			}
		}
	}
	for p := range notFoundTitles {
		if !isNotFound(p) || !isNotFound("404 - "+p) || !isNotFound(p+" | example") {
			t.Errorf("%q is not found in titles", p)
		}
	}
	for p := range wallTitles {
		if !isWall(p) {
			t.Errorf("%q", p)
		}
	}
}

package pagehint

import (
	"maps"
	"slices"
	"testing"
)

func TestPhrasesAreInTheNormalForm(t *testing.T) {
	lists := [][]string{notFoundSentences, domainOffers, notFoundPrefixes}
	for _, set := range []map[string]bool{notFound, domainOfferTitles, defaultPages, walls, constructions} {
		lists = append(lists, slices.Collect(maps.Keys(set)))
	}
	for _, list := range lists {
		for _, p := range list {
			if got := normalOf(p); got != p {
				t.Errorf("%q is %q in the normal form", p, got)
			}
		}
	}
	for p := range notFound {
		if !isNotFound(p) || !isNotFound("404 - "+p) || !isNotFound(p+" | example") {
			t.Errorf("%q is not found in titles", p)
		}
	}
	for p := range walls {
		if !isWall(p) {
			t.Errorf("%q", p)
		}
	}
}

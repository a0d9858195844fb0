package simweb

import (
	"iter"

	"crawlbatch.io/crawlbatch/stages/simweb/faults"
)

// Seeds iterates over the seed URLs of a crawl: each host's home page and a share (SeedShare) of
// its other pages, in the order of their numbers.
func (w *Web) Seeds() iter.Seq[string] {
	return func(yield func(string) bool) {
		for h := range w.cfg.Hosts {
			if !yield(w.URL(h, 0)) || !w.moreSeeds(h, yield) {
				return
			}
		}
	}
}

func (w *Web) moreSeeds(h int, yield func(string) bool) bool {
	if w.cfg.SeedShare == 0 {
		return true
	}
	for p := 1; p < w.Pages(h); p++ {
		if w.pageKey(h, p).named("seed").unit() >= w.cfg.SeedShare {
			continue
		}
		if !yield(w.URL(h, p)) {
			return false
		}
		if w.role(h, p) == roleFault && w.faultOf(h, p).Name == faults.Planned && !yield(w.urlAt(h, landingPath(faults.Planned, p))) {
			return false
		}
	}
	return true
}

package lease

import (
	"slices"

	"crawlbatch.io/crawlbatch/formats/manifest"
)

// maxDeaths is the number of attempts that die at a URL, robots.txt or sitemap before it is
// quarantined.
const maxDeaths = 3

// countDeath returns a copy of suspects in which the item at has one more death.
func countDeath(suspects []manifest.Suspect, at manifest.Trying) []manifest.Suspect {
	suspects = slices.Clone(suspects)
	for i := range suspects {
		if suspects[i].Trying == at {
			suspects[i].Deaths++
			return suspects
		}
	}
	return append(suspects, manifest.Suspect{Trying: at, Deaths: 1})
}

// IsQuarantined reports whether no attempt may try a suspect again, because too many attempts died at
// it.
func IsQuarantined(s manifest.Suspect) bool { return s.Deaths >= maxDeaths }

// Quarantined returns the URLs, robots.txt files and sitemaps that no attempt may try again.
func Quarantined(d *manifest.Checkpoint) (found []manifest.Trying) {
	for _, s := range d.Suspects {
		if IsQuarantined(s) {
			found = append(found, s.Trying)
		}
	}
	return found
}

// Waiting returns the suspects whose next request comes after a pause, by a checkpoint. The delay of a host is no
// pause. URLs and robots.txt files wait for another try. A sitemap gets no other try, but it may wait
// for the target of its redirect. hostOf returns the host of the next request for a row or a sitemap.
func Waiting(d *manifest.Checkpoint, hostOf func(manifest.Trying) string) map[manifest.Trying]bool {
	found := map[manifest.Trying]bool{}
	for _, s := range d.Suspects {
		host, wait := "", int64(0)
		for _, r := range d.Retries {
			if s.IsRow() && s.Row == r.Row && r.RetryCounts != (manifest.RetryCounts{}) {
				host, wait = hostOf(s.Trying), r.WaitMS
			}
		}
		for _, r := range d.Robots {
			if s.Origin == r.Origin && r.RetryCounts != (manifest.RetryCounts{}) {
				host, wait = r.Host, r.WaitMS
			}
		}
		if s.Sitemap != "" {
			host = hostOf(s.Trying)
		}
		if wait > 0 || slices.ContainsFunc(d.Hosts, func(h manifest.HostClock) bool { return h.Host == host && paused(&h) }) {
			found[s.Trying] = true
		}
	}
	return found
}

func paused(h *manifest.HostClock) bool {
	return h.WaitMS > h.DelayMS || h.Breaker != nil && h.Breaker.ProbeMS > 0
}

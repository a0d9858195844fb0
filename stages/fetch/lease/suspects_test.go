package lease

import (
	"testing"

	"crawlbatch.io/crawlbatch/formats/manifest"
)

// A suspect that waits for another try by the checkpoint of a dead attempt was requested again, and killed nothing.
// After a death, the checkpoint must not look the same.
func TestASuspectSurvivedIfAPauseFollowedItsLastRequest(t *testing.T) {
	row, origin, sitemap := manifest.Trying{Row: 7}, manifest.Trying{Origin: "http://h.com"}, manifest.Trying{Sitemap: "http://h.com/map.xml"}
	tried := manifest.RetryCounts{Limited: 1}
	checkpoint := func(counts manifest.RetryCounts, waitMS int64, host manifest.HostClock) manifest.Checkpoint {
		host.Host, host.DelayMS = "h.com", 2000
		return manifest.Checkpoint{
			Suspects: []manifest.Suspect{{Trying: row, Deaths: 1}, {Trying: origin, Deaths: 1}, {Trying: sitemap, Deaths: 1}},
			Retries:  []manifest.URLRetry{{Row: 7, RetryCounts: counts, WaitMS: waitMS}},
			Robots:   []manifest.OriginRetry{{Origin: "http://h.com", Host: "h.com", RetryCounts: counts, WaitMS: waitMS}},
			Hosts:    []manifest.HostClock{host},
		}
	}
	hostOf := func(manifest.Trying) string { return "h.com" }
	for name, c := range map[string]struct {
		d              manifest.Checkpoint
		again, sitemap bool // whether the row and the robots.txt, and the sitemap, wait
	}{
		"it waits":                       {checkpoint(tried, 10_000, manifest.HostClock{}), true, false},
		"its host pauses":                {checkpoint(tried, 0, manifest.HostClock{WaitMS: 7_200_000}), true, true},
		"its host is suspended":          {checkpoint(tried, 0, manifest.HostClock{Breaker: &manifest.HostBreaker{Open: true, ProbeMS: 1}}), true, true},
		"its host only keeps its delay":  {checkpoint(tried, 0, manifest.HostClock{WaitMS: 2000}), false, false},
		"its host pauses for another":    {checkpoint(manifest.RetryCounts{}, 0, manifest.HostClock{WaitMS: 7_200_000}), false, true},
		"its request is to be repeated":  {checkpoint(manifest.RetryCounts{}, 10_000, manifest.HostClock{}), false, false},
		"its host is probed at this try": {checkpoint(tried, 0, manifest.HostClock{Breaker: &manifest.HostBreaker{Open: true}}), false, false},
	} {
		waits, survived := Waiting(&c.d, hostOf), Survived(&c.d, hostOf)
		if waits[row] != c.again || waits[origin] != c.again || waits[sitemap] != c.sitemap {
			t.Errorf("%s: %v wait", name, waits)
		}
		if survived[row] != c.again || survived[origin] != c.again || survived[sitemap] {
			t.Errorf("%s: %v survived", name, survived)
		}
	}
	// The waits come from an earlier segment.
	for _, next := range []manifest.Trying{row, origin} {
		d := checkpoint(tried, 10_000, manifest.HostClock{WaitMS: 2000})
		last := d
		Try(&d, next)
		if *d.Trying != next || Survived(&d, hostOf)[next] || len(Survived(&d, hostOf)) != 1 || len(Survived(&last, hostOf)) != 2 {
			t.Errorf("after %+v was tried, %v survived, before %v", next, Survived(&d, hostOf), Survived(&last, hostOf))
		}
	}
}

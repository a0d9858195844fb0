package lease

import (
	"testing"

	"crawlbatch.io/crawlbatch/formats/manifest"
)

func TestASuspectWaitsForTheEndOfAPause(t *testing.T) {
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
		if waits := Waiting(&c.d, hostOf); waits[row] != c.again || waits[origin] != c.again || waits[sitemap] != c.sitemap {
			t.Errorf("%s: %v wait", name, waits)
		}
	}
}

//go:build lab

package lab

import (
	"cmp"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages/simweb"
	"crawlbatch.io/crawlbatch/stages/simweb/truth"
)

// check checks a disturbed crawl: verify must find no violation, the tables must equal those of the
// undisturbed crawl, and the server's log must show no forbidden or repeated request. excused reports
// whether the suite accepts a request that came too soon.
func (c *chaos) check(r *chaosRun, b store.Bucket, excused func(truth.Violation) bool) {
	t := c.t
	t.Helper()
	if code, out := c.start("verify", "--one-clock").wait(); code != 0 {
		t.Errorf("verify: exit %d\n%s", code, out)
	}
	normal := crawltest.WithoutStale
	if c.noteLapses() || c.interrupted {
		normal = crawltest.HopsOnce
	}
	crawltest.CompareStable(t, r.baseline, b, normal)
	entries := c.stop()
	for _, v := range truth.CheckLog(c.web, entries, c.pace) {
		if excused == nil || !excused(v) {
			t.Errorf("the server saw: %s", v)
		}
	}
	c.checkRepeats(r, entries)
}

// lapse matches the log line about a lease that ended before its renewal. Its submatch is the time of the
// line.
var lapse = regexp.MustCompile(`time=(\S+) level=WARN msg="the right to fetch has ended`)

// noteLapses records a blow for each lease that ended before its renewal, because the machine was too busy
// or the store was away. The process then aborts its requests and repeats them. noteLapses reports whether
// there was such a lease.
func (c *chaos) noteLapses() bool {
	some := false
	for _, name := range c.outputs {
		text, err := os.ReadFile(name)
		if err != nil {
			c.t.Error(err)
		}
		for _, m := range lapse.FindAllSubmatch(text, -1) {
			at, err := time.Parse(time.RFC3339, string(m[1]))
			if err != nil {
				c.t.Errorf("the log line %q: %v", m[0], err)
			}
			c.blows, some = append(c.blows, blow{from: at, to: at}), true
		}
	}
	return some
}

// lostAtMost is the interval between two checkpoints plus the time to make a checkpoint. After a blow (a
// kill or another disturbance), a crawl may repeat only requests whose outcomes no checkpoint lists. If the
// suite does not know the checkpoints at a blow, it accepts repeats of requests that were sent less than
// lostAtMost before the blow.
const lostAtMost = chaosEvery + 4*time.Second

// explains reports whether a blow explains that a URL was requested at two times, first and second. ended
// is the time of the last request of the first redirect chain. late is true if the lost outcome is older than
// lostAtMost, because a checkpoint took too long; a busy disk may delay a few checkpoints.
func (b *blow) explains(host, url string, first, second, ended time.Time) (ok, late bool) {
	if b.hosts != nil && !b.hosts[host] || b.to.Before(first) || b.from.After(second) {
		return false, false
	}
	late = b.from.Sub(ended) > lostAtMost
	if b.committed == nil {
		return !late, late
	}
	return !b.committed[url], late
}

// checkRepeats reports documents that were fetched twice although no disturbance explains the second
// request.
func (c *chaos) checkRepeats(r *chaosRun, entries []simweb.Entry) {
	asked := map[string][]simweb.Entry{} // earlier requests, by URL
	slices.SortStableFunc(entries, func(a, b simweb.Entry) int { return cmp.Compare(a.Time.UnixNano(), b.Time.UnixNano()) })
	repeats := 0
	late := map[int]bool{} // indexes of blows at which a checkpoint was late
	for _, e := range entries {
		url := "http://" + e.Host + e.Path
		earlier := asked[url]
		asked[url] = append(earlier, e)
		if len(earlier) == 0 || r.repeated[e.Host+e.Path] > 0 || strings.HasSuffix(e.Path, "robots.txt") {
			continue
		}
		before := earlier[len(earlier)-1]
		if before.Status >= 500 || before.Status == http.StatusTooManyRequests {
			continue
		}
		repeats++
		ended := c.chainEnd(asked, before, e.Time)
		explained, delayed := false, -1
		for i := range c.blows {
			switch ok, late := c.blows[i].explains(e.Host, url, before.Time, e.Time, ended); {
			case ok && !late:
				explained = true
			case ok:
				delayed = i
			}
		}
		if !explained && delayed >= 0 {
			explained, late[delayed] = true, true
		}
		if !explained {
			c.t.Errorf("%s was fetched at %s and again at %s, and no interruption explains it", url,
				before.Time.Format("15:04:05.000"), e.Time.Format("15:04:05.000"))
		}
	}
	if 2*len(late) > len(c.blows) {
		c.t.Errorf("at %d of %d interruptions, the newest checkpoint lacked outcomes older than %v", len(late), len(c.blows), lostAtMost)
	}
	c.t.Logf("%d kills, %d requests, %d of them for a document that a crash had lost; %d checkpoints were late", c.killed, len(entries), repeats, len(late))
}

// chainEnd returns the time of the last request of a redirect chain. first is the
// chain's first request. A fetch task records a chain only after the chain's last request. If the
// chain was not requested completely yet, chainEnd returns now.
func (c *chaos) chainEnd(asked map[string][]simweb.Entry, first simweb.Entry, now time.Time) time.Time {
	for e, hops := first, 0; hops < 10; hops++ {
		host, path, ok := c.web.Locate("http://" + e.Host + e.Path)
		if !ok {
			return e.Time
		}
		target := c.web.Look(host, path).Target
		if e.Status/100 != 3 || target == "" {
			return e.Time
		}
		next := asked[target]
		if len(next) == 0 || next[len(next)-1].Time.Before(e.Time) {
			return now
		}
		e = next[len(next)-1]
	}
	return now
}

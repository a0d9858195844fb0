package fetch

import (
	"fmt"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/store"
)

// TestAFetchTaskCostsTheStoreFewRequests counts the store requests of a task with default settings,
// in virtual time. The limits are 2,000 PUT per million pages for data, and 150 PUT per hour for
// checkpoints and leases.
func TestAFetchTaskCostsTheStoreFewRequests(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	for _, c := range []struct {
		pace        string
		hosts, each int
	}{
		{"100 pages a second", 200, 40},
		{"10 pages a second", 20, 150},
		{"1 page a second", 2, 500},
	} {
		t.Run(c.pace, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var list []string
				for h := range c.hosts {
					list = append(list, urls(fmt.Sprintf("h%d.com", h), c.each)...)
				}
				l := newLab(t, noRobots(page), list...)
				l.cfg.Slots = 200
				counted := store.Count(l.bucket)
				began := time.Now()
				if _, err := l.run(t.Context(), counted, nil); err != nil {
					t.Fatal(err)
				}
				hours, pages := time.Since(began).Hours(), float64(len(list))
				n := counted.Counts()
				// The last checkpoint of a task may list only a few URLs.
				const last = 12
				allowed := 2000*pages/1e6 + 150*hours + last
				t.Logf("%.0f pages in %.2f h: %d PUT (%.0f allowed), %d GET, %d LIST", pages, hours, n.Puts, allowed, n.Gets, n.Lists)
				if float64(n.Puts) > allowed {
					t.Errorf("%d PUT, %.0f are allowed", n.Puts, allowed)
				}
				if allowed := 20_000*pages/1e6 + 20; float64(n.Gets) > allowed {
					t.Errorf("%d GET, %.0f are allowed", n.Gets, allowed)
				}
			})
		})
	}
}

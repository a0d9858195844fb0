package sitemaps

import (
	"fmt"
	"testing"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
)

func newTestList(t *testing.T, claim func(url string) bool) *List {
	t.Helper()
	canon, err := urlkey.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return New(Default(), Tools{Canon: canon, Planned: func(string) (bool, error) { return false, nil }, Claim: claim})
}

// An attempt that takes over a sitemap that was requested reserves its URLs, so that no redirect of a
// page requests them again.
func TestARestoredSitemapReservesItsURLs(t *testing.T) {
	claimed := map[string]bool{}
	l := newTestList(t, func(url string) bool { claimed[url] = true; return true })
	for _, row := range []schema.Sitemap{
		{URL: "http://a.com/fresh.xml"}, {URL: "http://a.com/tried.xml", Tries: 1}, {URL: "http://a.com/here.xml", Named: "http://a.com/moved.xml", Redirects: 1},
	} {
		if _, err := l.Restore(&row); err != nil {
			t.Fatal(err)
		}
	}
	if len(claimed) != 3 || claimed["http://a.com/fresh.xml"] {
		t.Errorf("reserved: %v", claimed)
	}
}

// robots.txt gives a sitemap that an index names in its canonical form the spelling that its rules may deny.
func TestAWaitingSitemapGetsItsSpelling(t *testing.T) {
	l := newTestList(t, nil)
	first, row, err := l.name("http://a.com/s.xml?a=2&z=1", "", "a.com")
	if err != nil || first == nil || row.Spelling != "" {
		t.Fatal(first, row, err)
	}
	if again, _, err := l.name("http://a.com/s.xml?z=1&a=2", "", "a.com"); again != nil || err != nil {
		t.Fatal(again, err)
	}
	if want := "http://a.com/s.xml?z=1&a=2"; first.Spelled != want {
		t.Errorf("the spelling is %q, want %q", first.Spelled, want)
	}
}

// The memory of waiting tasks is bounded, including what is not text.
func TestTheMemoryOfWaitingSitemapsIsBounded(t *testing.T) {
	l := newTestList(t, func(string) bool { return true })
	tasks := 0
	var last *Task
	for h := range 4000 {
		for i := range 99 {
			task, _, err := l.name(fmt.Sprintf("https://www.example%d.com/s%d.xml", h, i), "", fmt.Sprintf("example%d.com", h))
			if err != nil {
				t.Fatal(err)
			}
			if task != nil {
				tasks++
				last = task
			}
		}
	}
	if most := maxWaiting / taskSize; tasks > most || tasks < most/2 {
		t.Errorf("%d tasks wait, want at most %d", tasks, most)
	}
	for _, task := range l.waiting() {
		for next := l.next(task); next != nil; next = l.next(task) {
			l.outcome(next, schema.HTTP4xx, 0, 0)
		}
	}
	if l.held != 0 || *last.lane.domain != (usage{files: last.lane.host.files}) {
		t.Errorf("no task waits, but %d bytes are held, and the last domain's usage is %+v", l.held, *last.lane.domain)
	}
}

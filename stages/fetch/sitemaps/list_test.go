package sitemaps

import (
	"fmt"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages/fetch/partition"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
)

func newTestList(t *testing.T, claim func(url string) bool) *List {
	t.Helper()
	canon, err := urlkey.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	index, err := partition.One(t.TempDir(), &schema.PlannedURL{URL: "http://planned.example/", Host: "planned.example"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = index.Close() })
	return New(Default(), Tools{Canon: canon, Index: index, Claim: claim})
}

// When an attempt takes over a sitemap that was requested, it reserves the sitemap's URLs, so that no
// redirect of a page requests them again.
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

// The bound on the memory of waiting tasks counts the tasks themselves, too, not only their texts.
func TestTheMemoryOfWaitingSitemapsIsBounded(t *testing.T) {
	l := newTestList(t, func(string) bool { return true })
	tasks := 0
	var last *Task
	for h := range 4000 {
		for i := range 99 {
			task, _, err := l.addNamed(fmt.Sprintf("https://www.example%d.com/s%d.xml", h, i), "", fmt.Sprintf("example%d.com", h))
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
	if hosts := len(l.waiting()); len(l.lanes) != hosts || len(l.used) != hosts {
		t.Errorf("there are lanes of %d hosts and sums of %d domains, but only %d hosts have sitemaps", len(l.lanes), len(l.used), hosts)
	}
	for _, task := range l.waiting() {
		for next := l.next(task); next != nil; next = l.next(task) {
			l.finish(next, schema.HTTP4xx, 0, 0)
		}
	}
	if l.held != 0 || *last.lane.domain != (usage{files: last.lane.host.files}) {
		t.Errorf("no task waits, but %d bytes are held, and the last domain's usage is %+v", l.held, *last.lane.domain)
	}
}

// A robots.txt can name a sitemap on a new host of its domain in each line, and so can the robots.txt
// of each of these hosts. Hosts whose sitemaps are not taken take up no memory, neither in a later
// attempt nor in the next round.
func TestHostsWithoutSitemapsTakeUpNoMemory(t *testing.T) {
	files := Default().Files
	parse := func(prefix string) *robots.File {
		var text strings.Builder
		for i := range 20_000 {
			fmt.Fprintf(&text, "Sitemap: http://%s%d.d.com/\n", prefix, i)
		}
		return robots.Parse([]byte(text.String()))
	}
	first, second := parse("x"), parse("y")
	named := func(l *List) *List {
		l.Scheduler = polite.New(polite.Options{Slots: 1})
		l.NameAll("http://d.com/robots.txt", first)
		l.NameAll("http://d.com/robots.txt", first)
		l.NameAll("http://y1.d.com/robots.txt", second)
		return l
	}
	restored, carried := newTestList(t, nil), newTestList(t, nil)
	c := carried.Carrier(map[string]bool{"d.com": true}, func(string) bool { return true })
	for i := range 20_000 { // more than one list records
		row := schema.Sitemap{URL: fmt.Sprintf("http://x%d.d.com/", i), Domain: "d.com"}
		if _, err := restored.Restore(&row); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Take(&row); err != nil {
			t.Fatal(err)
		}
	}
	for name, l := range map[string]*List{"first": named(newTestList(t, nil)), "restored": named(restored), "carried": named(carried)} {
		if l.Left() != files || len(l.lanes) > files || len(l.known) > files || len(l.used) != 1 {
			t.Errorf("%s list: %d sitemaps are left of %d, with lanes of %d hosts", name, l.Left(), files, len(l.lanes))
		}
		for i := range files {
			if url := fmt.Sprintf("http://x%d.d.com/", i); !l.Expected(url) {
				t.Errorf("%s list: %s is not expected", name, url)
			}
		}
		if l.Expected("http://x19999.d.com/") || len(l.lanes) > files {
			t.Errorf("%s list: a question makes a lane", name)
		}
	}
}

// A sitemap whose first request was aborted keeps its reservation, and can be requested again.
func TestASitemapKeepsItsReservation(t *testing.T) {
	claimed := map[string]bool{}
	l := newTestList(t, func(url string) bool {
		free := !claimed[url]
		claimed[url] = true
		return free
	})
	task, _, err := l.addNamed("http://a.com/s.xml", "", "a.com")
	if err != nil || !l.Reserve(task) || !l.Reserve(task) {
		t.Errorf("the sitemap cannot be requested again: %v", err)
	}
	other, _, err := l.addNamed("http://a.com/t.xml", "", "a.com")
	claimed["http://a.com/t.xml"] = true
	if err != nil || l.Reserve(other) {
		t.Errorf("a second task reserved the URL: %v", err)
	}
}

// The next round knows how a waiting sitemap was named. It does not know how a redirected sitemap was, so this sitemap is
// left out until robots.txt names it again.
func TestACarriedSitemapIsAskedForAsItWasNamed(t *testing.T) {
	const canonical, sent = "http://a.com/s.xml?a=2&z=1", "http://a.com/s.xml?z=1&a=2"
	l := newTestList(t, nil)
	c := l.Carrier(map[string]bool{"a.com": true}, func(string) bool { return true })
	for _, o := range []schema.Outcome{schema.RobotsDenied, schema.HTTP5xx, ""} {
		moved := schema.Sitemap{URL: "http://a.com/here.xml", Named: "http://a.com/moved.xml", Domain: "a.com", Redirects: 1, Outcome: o}
		if record, err := c.Take(&moved); record || err != nil {
			t.Errorf("outcome %q: a redirected sitemap is carried on: %v", o, err)
		}
	}
	row := schema.Sitemap{URL: canonical, Domain: "a.com", Sent: sent, Outcome: schema.RobotsDenied}
	if record, err := c.Take(&row); !record || err != nil || row.Sent != sent {
		t.Fatal(record, err, row)
	}
	if tasks := l.waiting(); len(tasks) != 1 || tasks[0].Sent != sent {
		t.Errorf("%d hosts have waiting sitemaps", len(tasks))
	}
}

// Serial mode requests a suspect first. It no longer waits for the suspect if the round requests no
// more sitemaps of its host.
func TestASuspectComesFirstOrNotAtAll(t *testing.T) {
	l := newTestList(t, nil)
	const suspect = "http://a.com/s7.xml"
	for i := range 9 {
		if _, _, err := l.addNamed(fmt.Sprintf("http://a.com/s%d.xml", i), "", "a.com"); err != nil {
			t.Fatal(err)
		}
	}
	l.markSuspects([]manifest.Suspect{{Trying: manifest.Trying{Sitemap: suspect}}})
	if !l.Expected(suspect) || l.Expected("http://a.com/unknown.xml") {
		t.Error("a waiting suspect is not expected, or an unknown one is")
	}
	first := l.next(l.waiting()[0])
	if first.Named != suspect || l.Host(suspect) != "a.com" {
		t.Errorf("%s comes first", first.Named)
	}
	if first.Key.Host = "www.a.com"; l.Host(suspect) != "www.a.com" { // it redirected
		t.Errorf("the next request goes to %q", l.Host(suspect))
	}
	l.Drop(first)
	if l.Expected(suspect) || l.Expected("http://a.com/s8.xml") {
		t.Error("a suspect is expected although the round requests no more sitemaps of its host")
	}
}

// Partition 0 keeps the rows of buckets without URLs.
func TestEveryBucketIsCarriedByOnePartition(t *testing.T) {
	plan := &manifest.Plan{Buckets: 5, Partitions: []manifest.PlanPartition{{Bucket: 1}, {Bucket: 1}, {Bucket: 3}}}
	want := []int{0, 0, 0, 2, 0}
	for bucket := range plan.Buckets {
		for part := range plan.Partitions {
			if got := carries(plan, part, bucket); got != (part == want[bucket]) {
				t.Errorf("partition %d carries bucket %d: %t", part, bucket, got)
			}
		}
	}
}

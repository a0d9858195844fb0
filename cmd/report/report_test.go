package report

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/longest"
	"crawlbatch.io/crawlbatch/jobs/verify"
	"crawlbatch.io/crawlbatch/stages"
)

// parsed returns the nodes of a page.
func parsed(t *testing.T, page string) (all []*html.Node) {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range doc.Descendants() {
		all = append(all, n)
	}
	return all
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func TestHostileTextsStayTexts(t *testing.T) {
	f := newFake(t, 60)
	f.round(4000)
	r := f.report()
	r.Sections[0] = (&maker{rounds: &rounds{}, Options: Options{Verdict: &verify.Report{Violations: []verify.Violation{{Check: hostile[0], Object: hostile[1], Row: hostile[2], Problem: hostile[6]}}}}}).verdict()
	page := pageOf(t, r)
	known := strings.Fields("html head meta title style body a header h1 p bdi nav ul li main section h2 h3 h4 span div details summary pre code label input table thead tbody tr th td button svg rect figure noscript footer script")
	scripts, texts := 0, map[string]bool{}
	for _, n := range parsed(t, page) {
		if n.Type == html.TextNode {
			texts[n.Data] = true
		}
		if n.Type != html.ElementNode {
			continue
		}
		if !slices.Contains(known, n.Data) {
			t.Fatalf("the page has an element %s", n.Data)
		}
		if n.Data == "script" {
			scripts++
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "src" || a.Key == "href" && !strings.HasPrefix(a.Val, "#") {
				t.Errorf("%s has %s=%q", n.Data, a.Key, a.Val)
			}
		}
	}
	if scripts != 1 {
		t.Errorf("%d scripts", scripts)
	}
	for _, want := range []string{hostile[0] + ".test", hostile[1], "a�b�cba.test", "Disallow: " + hostile[5], "s3://bucket/" + hostile[0]} {
		if !texts[want] {
			t.Errorf("no text %q", want)
		}
	}
	for _, not := range []string{"<img", "<svg onload", "\u202e", "\x00"} {
		if strings.Contains(page, not) {
			t.Errorf("the page contains %q", not)
		}
	}
}

func TestThePageIsWhole(t *testing.T) {
	f := newFake(t, 60)
	f.round(4000)
	f.round(2000)
	r := f.report()
	page := pageOf(t, r)
	if again := pageOf(t, f.report()); again != page {
		t.Error("the same tables give another page")
	}
	ids, targets, heads := map[string]int{}, []string{}, 0
	var script, style, policy string
	for _, n := range parsed(t, page) {
		if n.Type != html.ElementNode {
			continue
		}
		if id := attribute(n, "id"); id != "" {
			ids[id]++
		}
		for _, refers := range []string{"aria-labelledby", "href"} {
			if to := strings.TrimPrefix(attribute(n, refers), "#"); to != "" {
				targets = append(targets, to)
			}
		}
		switch n.Data {
		case "h1":
			heads++
		case "script":
			script = n.FirstChild.Data
		case "style":
			style = n.FirstChild.Data
		case "meta":
			policy += attribute(n, "content")
		}
	}
	for id, n := range ids {
		if n > 1 {
			t.Errorf("%d elements have the ID %s", n, id)
		}
	}
	for _, to := range targets {
		if ids[to] == 0 {
			t.Errorf("nothing has the ID %s", to)
		}
	}
	if heads != 1 || !strings.Contains(policy, hashOf(script)) || !strings.Contains(policy, hashOf(style)) || !strings.Contains(policy, "default-src 'none'") {
		t.Errorf("%d h1; policy %s", heads, policy)
	}
	if !strings.Contains(script, "Permission is hereby granted") || !strings.Contains(script, "uPlot (v1.6.32)") {
		t.Error("the licence or the version of uPlot is missing")
	}
	everyNumberHasASource(t, r)
	var back Report
	if body, err := json.Marshal(r); err != nil || json.Unmarshal(body, &back) != nil || len(back.Sections) != len(r.Sections) {
		t.Errorf("JSON: %v", err)
	}
}

// everyNumberHasASource checks that figures and tables name their SQL or their source.
func everyNumberHasASource(t *testing.T, r *Report) {
	charts := 0
	for _, s := range r.Sections {
		for _, g := range s.Figures {
			if g.SQL == "" && g.Source == "" {
				t.Errorf("figure %s has no SQL", g.Name)
			}
		}
		for _, g := range s.Tables {
			if g.SQL == "" && g.Source == "" {
				t.Errorf("table %s has no SQL", g.ID)
			}
			if g.Chart != nil {
				charts++
			}
			for _, row := range g.Rows {
				if len(row) != len(g.Columns) {
					t.Errorf("table %s: %d columns, row %v", g.ID, len(g.Columns), row)
				}
			}
		}
	}
	if charts != 4 {
		t.Errorf("%d charts", charts)
	}
}

// A month that has more rounds so far has more of everything, which is no change of the web.
func TestMonthsAreComparedByAsManyRoundsAsBothHave(t *testing.T) {
	of := func(n int64) *manifest.Sealed {
		return &manifest.Sealed{Counts: manifest.SortedCounts(map[string]int64{"plan.urls": n, "merge.outcome.ok": n})}
	}
	for name, c := range map[string]struct {
		now, before  []*manifest.Sealed
		title, where string
		urls         [2]int64
	}{
		"one against two": {[]*manifest.Sealed{of(10)}, []*manifest.Sealed{of(20), of(500)}, "2026-11 and 2026-10, the first round of each", " AND round < 1) AS", [2]int64{10, 20}},
		"three to two":    {[]*manifest.Sealed{of(10), of(1), of(1)}, []*manifest.Sealed{of(20), of(500)}, "2026-11 and 2026-10, the first 2 rounds of each", " AND round < 2) AS", [2]int64{11, 520}},
		"as many":         {[]*manifest.Sealed{of(10), of(1)}, []*manifest.Sealed{of(20), of(500)}, "2026-11 and 2026-10", "WHERE crawl = '2026-11') AS", [2]int64{11, 520}},
	} {
		m := &maker{Options: Options{Crawl: crawl}, rounds: &rounds{sealed: c.now}, previous: "2026-10", earlier: c.before}
		got := m.change().Tables[0]
		if got.Title != c.title || got.Rows[0][1] != c.urls[0] || got.Rows[0][2] != c.urls[1] || !strings.Contains(got.SQL, c.where) {
			t.Errorf("%s: %q, %v\n%s", name, got.Title, got.Rows[0], got.SQL)
		}
	}
}

func TestTheReportNamesWhatNeedsAttention(t *testing.T) {
	quiet := func() *maker {
		return &maker{Options: Options{Crawl: crawl}, collected: &collected{fetches: newFetches(), requests: newRequests(), hosts: newHosts(), accounts: newAccounts()}, rounds: &rounds{sealed: []*manifest.Sealed{{}}}, status: newFakeStatus()}
	}
	for _, c := range []struct {
		name, level, text string
		change            func(m *maker)
	}{
		{"nothing", levelGood, "Nothing else needs attention.", func(*maker) {}},
		{"no verdict", levelNote, "not verified", func(*maker) {}},
		{"verdict", levelGood, "as promised", func(m *maker) { m.Verdict = &verify.Report{Rounds: []int{0}, Sample: 1} }},
		{"sample", levelNote, "sample of 1 %", func(m *maker) { m.Verdict = &verify.Report{Rounds: []int{0}, Sample: 0.01} }},
		{"other round", levelWarn, "does not cover round 0", func(m *maker) { m.Verdict = &verify.Report{Sample: 1} }},
		{"violation", levelBad, "1 violation", func(m *maker) {
			m.Verdict = &verify.Report{Rounds: []int{0}, Sample: 1, Checked: []verify.Checked{{Found: 1}}, Violations: []verify.Violation{{}}}
		}},
		{"too soon", levelBad, "1 request came before", func(m *maker) {
			gap := int64(10)
			m.requests.add(0, &requestRow{Host: "a", GapMS: &gap, DelayMS: 100})
		}},
		{"fault", levelBad, "internal_error", func(m *maker) { m.fetches.add(0, &fetchRow{Outcome: schema.InternalError}) }},
		{"failures", levelWarn, "100.0 % of the planned URLs failed, most often with timeout (1 URL)", func(m *maker) { m.fetches.add(0, &fetchRow{Outcome: schema.Timeout}) }},
		{"deferred", levelWarn, "their hosts asked for pauses longer than what was left", func(m *maker) { m.fetches.add(0, &fetchRow{Outcome: schema.Deferred}) }},
		{"blocked", levelWarn, "1 network answered", func(m *maker) {
			for range blockingFrom {
				m.requests.add(0, &requestRow{Host: "a", Address: "192.0.2.1:443", Status: 403, BytesSent: 1})
			}
		}},
		{"more blocked networks than the table shows", levelWarn, "30 networks answered", func(m *maker) {
			for i := range 30 * blockingFrom {
				m.requests.add(0, &requestRow{Host: "a", Address: fmt.Sprintf("192.0.%d.1:443", i%30), Status: 403, BytesSent: 1})
			}
		}},
		{"slow", levelWarn, "lasted 2.0 times as long as predicted. Round 0 took 2 h instead of 1 h.", func(m *maker) {
			m.timing = []roundTime{{urls: 1, last: 7_200_000, predicted: 1}}
		}},
		{"what was slow", levelWarn, "lasted 3.0 times as long as predicted. Round 1 took 5 h instead of 1 h. Its last request went to late.test, which got 7 requests in 4 h." +
			" Of this time, 2 h went to the delay between two requests, because of this: Crawl-delay; 1 h went to a pause by people.", func(m *maker) {
			m.timing = []roundTime{{urls: 1, last: 3_600_000, predicted: 1}, {round: 1, urls: 1, last: 18_000_000, predicted: 1}}
			m.longest = &longest.Round{Host: &longest.Host{Host: "late.test", Requests: 7, First: 3_600_000, Last: 18_000_000, Cause: "Crawl-delay",
				Spent: []longest.Time{{On: longest.OnDelay, MS: 7_200_000}, {On: "a pause by people", MS: 3_600_000}}}}
		}},
		{"a killed attempt that left no outcome", levelWarn, "A round fetched 2.0 times as long as predicted. Round 0 took 2 h instead of 1 h. Before the first request to late.test, 1 h went to killed attempts that recorded no request to it. Its last request", func(m *maker) {
			m.timing = []roundTime{{urls: 1, last: 3_600_000, predicted: 1}}
			m.longest = &longest.Round{FetchHours: 2, PredictedHours: 1, Host: &longest.Host{Host: "late.test", Requests: 7, First: 3_600_000, Last: 7_200_000,
				Before: []longest.Time{{On: "killed attempts that recorded no request to it", MS: 3_600_000}, {On: "a pause by people", MS: 1000}}}}
		}},
		{"what was slow in general", levelWarn, "Round 0 took 2 h instead of 1 h. Between two requests, hosts mostly waited for a pause after 429 or 503 (90 % of the time).", func(m *maker) {
			m.timing = []roundTime{{urls: 1, last: 7_200_000, predicted: 1}}
			gap := int64(10_000)
			m.requests.add(1, &requestRow{Host: "late.test", Status: 429})
			m.requests.add(1, &requestRow{Host: "late.test", GapMS: &gap, DelayMS: 1000})
		}},
		{"paused", levelNote, "People paused the crawl for 10 min between", func(m *maker) {
			m.timing = []roundTime{{first: 1_200_000, last: 7_200_000}}
			m.pauses = []ledger.Pause{{Since: "1970-01-01T00:10:00Z", Ended: "1970-01-01T00:30:00Z"}}
		}},
		{"killed", levelWarn, "Killed processes ended 2 attempts at fetch tasks", func(m *maker) {
			for range 2 {
				m.accounts.add(0, &accountRow{Stage: "fetch", Outcome: "killed", ErrorClass: "killed"})
			}
			m.accounts.add(0, &accountRow{Stage: "merge", Outcome: "killed", ErrorClass: "killed"})
		}},
		{"suspended", levelNote, "suspended hosts 3 times", func(m *maker) { m.hosts.add(0, &schema.Host{Host: "a", BreakerEvents: 3}) }},
	} {
		m := quiet()
		c.change(m)
		r := &Report{Sections: []Section{{Tables: m.tables(m.hosts.holding)}}}
		all := m.attention(r)
		if !slices.ContainsFunc(all, func(a Attention) bool { return a.Level == c.level && strings.Contains(a.Text, c.text) }) {
			t.Errorf("%s: %+v", c.name, all)
		}
		if all[0].Text == "Nothing else needs attention." {
			t.Errorf("%s: it comes first", c.name)
		}
	}
}

func TestTheSmallestGapMayBe0(t *testing.T) {
	q := newRequests()
	for _, gap := range []int64{700, 0, 300} {
		q.add(0, &requestRow{Host: "a.test", GapMS: &gap, DelayMS: 1000})
	}
	if got := fmt.Sprint(q.soon.table(crawl).Rows); got != "[[a.test 3 0 1000]]" {
		t.Errorf("%s", got)
	}
}

func TestNetworksAndPaces(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.77:443": "192.0.2.0/24", "[2001:db8:1:2::5]:443": "2001:db8:1::/48", "[2001:db8::1]:80": "2001:db8::/48", "[2001::1]:80": "2001::/48",
		"[::1]:80": "::/48", "[fe80::1%eth0]:80": "fe80::/48", "": ".0/24", "[": "::/48",
	} {
		if got := network(address); got != want {
			t.Errorf("%q: %q, want %q", address, got, want)
		}
	}
	for _, c := range []struct {
		gap, delay int64
		want       string
	}{
		{98, 100, "sooner than the delay"}, {99, 100, "1 to 1.1 times the delay"}, {110, 100, "1 to 1.1 times the delay"}, {111, 100, "1.1 to 2 times the delay"},
		{1000, 100, "2 to 10 times the delay"}, {1001, 100, "over 10 times the delay"}, {5, 0, "no delay in force"},
	} {
		if got := pace(c.gap, c.delay); got != c.want {
			t.Errorf("gap %d, delay %d: %q, want %q", c.gap, c.delay, got, c.want)
		}
	}
}

func TestWaitsAddUpToTheGaps(t *testing.T) {
	q := newRequests()
	row := func(host string, status int16, gap, queue int64) {
		r := requestRow{Host: host, Status: status, DelayMS: 100, QueueMS: queue}
		if gap > 0 {
			r.GapMS = &gap
		}
		q.add(0, &r)
	}
	row("a", 429, 0, 0)
	row("a", 200, 1000, 50) // 100 delay, 50 queue, 850 after the 429
	row("a", 500, 100, 0)
	row("a", 0, 300, 0) // 200 after the 500
	row("a", 200, 500, 1000)
	row("b", 200, 0, 0)
	row("b", 200, 150, 0) // 50 other
	want := [len(waitReasons)]int64{waitDelay: 500, waitQueue: 450, waitLimited: 850, waitServer: 200, waitOther: 50}
	if q.waits != want {
		t.Errorf("%v, want %v", q.waits, want)
	}
}

func TestNumbersHaveUnits(t *testing.T) {
	for _, c := range []struct {
		v    any
		unit string
		want string
	}{
		{int64(1234567), unitCount, "1,234,567"}, {int64(999), unitBytes, "999 B"}, {int64(1000), unitBytes, "1.00 kB"}, {int64(999_999), unitBytes, "1.00 MB"},
		{0.123, unitShare, "12.3 %"}, {0.0001, unitShare, "0.01 %"}, {1.0, unitShare, "100 %"}, {0.0, unitShare, "0 %"}, {-0.5, unitShare, "-50 %"},
		{12.5, unitMS, "12.5 ms"}, {61_000.0, unitMS, "1 min 1 s"}, {3.5, unitHours, "3 h 30 min"}, {100.0, unitHours, "4 d 4 h"}, {59.96, unitSeconds, "1 min"},
		{nil, unitCount, "–"}, {"2026-11-25T14:13:27.001Z", unitTime, "2026-11-25 14:13:27"}, {0.5, unitRate, "0.500 / s"}, {0.016, unitScore, "0.0160"}, {1.5e-9, unitScore, "1.5e-09"},
	} {
		if got := formatted(c.v, c.unit); got != c.want {
			t.Errorf("%v %s: %q, want %q", c.v, c.unit, got, c.want)
		}
	}
	if got := shown(strings.Repeat("é", 300)); got != strings.Repeat("é", mostText-1)+"…" {
		t.Errorf("a long text: %q", got)
	}
	if got := shown("x\xff\xfey"); got != "x��y" {
		t.Errorf("a text that is not UTF-8: %q", got)
	}
}

// stream writes rows that a function makes, so that the test holds few rows.
func stream[T any](t *testing.T, b store.Bucket, s *manifest.Sealed, dataset string, n int, row func(i int) T) {
	t.Helper()
	l, err := table.WriteFile(filepath.Join(t.TempDir(), "rows"), func(yield func(T, error) bool) {
		for i := range n {
			if !yield(row(i), nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	f, err := table.Commit(t.Context(), b, l, dataset, layout.Table(dataset, crawl, s.Round, 0))
	if err != nil {
		t.Fatal(err)
	}
	s.Files = append(s.Files, f)
}

// A report of a million fetches and requests to 100,000 hosts has bounded memory and size.
func TestAMillionRowsTakeBoundedMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("a million rows take a minute: run without -short")
	}
	f := newFake(t, 100_000)
	s := &manifest.Sealed{Crawl: crawl, Buckets: 1}
	f.sealed = []*manifest.Sealed{s}
	const rows = 1_000_000
	stream(t, f.bucket, s, stages.FileFetches, rows, func(i int) fetchRow {
		return fetchRow{Outcome: schema.Outcomes[f.pick(len(schema.Outcomes))], Attempts: 1, Error: "error " + strconv.Itoa(i), RobotsRule: "Disallow: /" + strconv.Itoa(i), MimeDetected: "type/" + strconv.Itoa(i), Status: int16(i % 1000), Depth: int32(i), RecordedAt: begin + schema.Time(i)*2_000_000}
	})
	stream(t, f.bucket, s, stages.FileRequests, rows, func(i int) requestRow {
		gap, us := int64(1000+f.pick(5000)), int64(f.pick(9_000_000))
		return requestRow{Purpose: schema.ForPage, Host: "h" + strconv.Itoa(i/10), Address: fmt.Sprintf("%d.%d.%d.9:80", i%223, i/223%256, i/57088%256), Start: begin + schema.Time(i)*2_000_000, GapMS: &gap, DelayMS: 1000, Status: int16(200 + i%300), FirstByteUS: &us, TotalUS: &us, BytesSent: 100}
	})
	stream(t, f.bucket, s, stages.FileHosts, f.hosts, func(i int) schema.Host {
		return schema.Host{Host: "h" + strconv.Itoa(i), Domain: "d" + strconv.Itoa(i), Requests: int64(f.pick(10_000)), FailedTimeout: int64(f.pick(50)), Planned: 100, Rank: f.Float64() / 1e5}
	})
	for _, d := range []string{stages.FileLinks, stages.FileSkips} {
		stream(t, f.bucket, s, d, rows, func(i int) smallRow {
			return smallRow{Kind: "kind " + strconv.Itoa(i), Reason: schema.SkipReason("reason " + strconv.Itoa(i)), Representative: "http://x/" + strconv.Itoa(i)}
		})
	}
	heap := peakHeap()
	cpu := cpuTime(t)
	r := f.report()
	used := cpuTime(t) - cpu
	grown := heap()
	page := pageOf(t, r)
	t.Logf("%d rows: %.1f s of CPU per million rows, %d MB of heap, page of %d bytes", 4*rows, used.Seconds()/4, grown>>20, len(page))
	if grown > 200<<20 {
		t.Errorf("the heap grew by %d MB", grown>>20)
	}
	if len(page) > 3_000_000 {
		t.Errorf("the page has %d bytes", len(page))
	}
	if g := r.table("networks"); len(g.Rows) != 25 || g.Bound != 0 { // few networks block, and the others are dropped first
		t.Errorf("networks: %d rows, bound %d", len(g.Rows), g.Bound)
	}
	if g := r.table("links"); len(g.Rows) > 2*defaultKeep || g.More == 0 || g.Bound == 0 {
		t.Errorf("links have %d rows, %d more, bound %d", len(g.Rows), g.More, g.Bound)
	}
}

// peakHeap begins to sample the heap. The returned function ends the sampling and returns by how much
// the heap grew at most, in bytes.
func peakHeap() func() int64 {
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	peak, stop := make(chan uint64), make(chan struct{})
	go func() {
		var most uint64
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				peak <- most
				return
			case <-tick.C:
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapAlloc)
			}
		}
	}()
	return func() int64 {
		close(stop)
		return int64(<-peak) - int64(before.HeapAlloc)
	}
}

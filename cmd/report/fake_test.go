package report

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/stages"
)

const (
	crawl             = "2026-11"
	begin schema.Time = 1_793_491_200_000_000 // 2026-11-01
)

// hostile are texts that a web server may choose, such as names of hosts and lines of robots.txt.
var hostile = []string{
	`</script><img src=x onerror=alert(1)>`, `"><svg onload=alert(2)>`, `'; alert(3); //`, "<!--", "]]>", `&lt;b&gt;`, "a\x00b\u202Ecba", "<b>é&amp;",
}

// fake makes the tables of sealed rounds with random rows.
type fake struct {
	*rand.Rand
	t      testing.TB
	bucket store.Bucket
	hosts  int
	sealed []*manifest.Sealed
	before map[string]int64 // counts of the month before
}

func newFake(t testing.TB, hosts int) *fake {
	b, err := dirstore.Open(filepath.Join(t.TempDir(), "store"), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &fake{Rand: rand.New(rand.NewPCG(1, 2)), t: t, bucket: b, hosts: hosts, before: map[string]int64{"plan.urls": 1000, "publish.pages": 900}}
}

func write[T any](f *fake, s *manifest.Sealed, dataset string, rows []T) {
	key := layout.Table(dataset, crawl, s.Round, 0)
	if dataset == stages.FileCaptures {
		key = layout.Captures(crawl, schema.SubsetWARC, s.Round, 0)
	}
	s.Files = append(s.Files, tabletest.Write(f.t, f.bucket, dataset, key, rows))
}

// pick returns a number below n. Small numbers are much more frequent.
func (f *fake) pick(n int) int { return int(float64(n) * f.Float64() * f.Float64() * f.Float64()) }

func (f *fake) host(i int) string {
	if i < len(hostile) {
		return hostile[i] + ".test"
	}
	return fmt.Sprintf("h%05d.d%05d.test", i, i/3)
}

// round adds a sealed round with n fetches, and rows of the other datasets.
func (f *fake) round(n int) {
	s := &manifest.Sealed{Crawl: crawl, Round: len(f.sealed), Buckets: 1}
	fetches, requests := make([]schema.Fetch, n), make([]schema.Request, 0, n)
	start := begin.Add(time.Duration(s.Round) * 40 * time.Hour)
	outcomes := map[string]int64{}
	for i := range fetches {
		o := schema.Outcomes[f.pick(len(schema.Outcomes))]
		outcomes[string(o)]++
		at := start.Add(time.Duration(f.Float64()*f.Float64()*30*float64(time.Hour))) / 1000 * 1000
		r := schema.Fetch{
			URL: "http://example.test/" + fmt.Sprint(i), Host: f.host(f.pick(f.hosts)), Outcome: o, Attempts: int32(1 + f.pick(3)),
			HTTPStatus: []int16{200, 301, 403, 404, 429, 500, 503, 0}[f.pick(8)], Depth: int32(f.pick(12)), RecordedAt: at, ContentBytes: int64(f.pick(100_000)),
			MimeDetected: []string{"text/html", "application/pdf", hostile[0]}[f.pick(3)],
		}
		if o == schema.RobotsDenied {
			r.RobotsRule = "Disallow: " + hostile[f.pick(len(hostile))]
		}
		if o != schema.OK {
			r.Error = "failed with " + hostile[f.pick(len(hostile))]
		}
		fetches[i] = r
		requests = append(requests, f.request(&r))
	}
	slices.SortStableFunc(requests, func(a, b schema.Request) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Start, b.Start))
	})
	for i := 1; i < n; i++ {
		if requests[i].Host == requests[i-1].Host {
			gap := max(requests[i].Start.Sub(requests[i-1].Start).Milliseconds(), requests[i].DelayMS)
			requests[i].GapMS = &gap
		}
	}
	write(f, s, stages.FileFetches, fetches)
	write(f, s, stages.FileRequests, requests)
	f.others(s, n)
	counts := map[string]int64{"plan.urls": int64(n), "merge.requests": int64(n), "publish.pages": int64(n / 10), "merge.links": int64(n / 10), "frontier.skips": int64(n / 10)}
	for o, n := range outcomes {
		counts["merge.outcome."+o] = n
	}
	s.Counts = manifest.SortedCounts(counts)
	f.sealed = append(f.sealed, s)
}

func (f *fake) request(r *schema.Fetch) schema.Request {
	us := int64(1000 + f.pick(3_000_000))
	address := fmt.Sprintf("10.%d.%d.7:443", f.pick(200), f.pick(250))
	if f.IntN(5) == 0 {
		address = fmt.Sprintf("[2001:db8:%x::1]:443", f.pick(60))
	}
	return schema.Request{
		Purpose: schema.ForPage, URL: r.URL, Host: r.Host, Address: address, Start: r.RecordedAt - schema.Time(us/1000)*1000, DelayMS: 2000, Status: r.HTTPStatus,
		QueueMS: int64(f.pick(500)), FirstByteUS: &us, TotalMS: us / 1000, TotalUS: &us, BytesSent: 200, BytesReceived: int64(f.pick(50_000)),
	}
}

// others adds rows of the other datasets.
func (f *fake) others(s *manifest.Sealed, n int) {
	var hosts []schema.Host
	for i := range f.hosts {
		delay := int64(f.pick(10_000))
		hosts = append(hosts, schema.Host{
			Host: f.host(i), Domain: f.host(i / 2), RobotsState: "rules", DelayMS: &delay, Planned: 40, Fetched: 30, FailedHTTP4xx: int64(f.pick(9)), FailedTimeout: 1,
			Requests: int64(20 + f.pick(300)), Bytes: int64(f.pick(1_000_000)), BreakerEvents: int32(f.pick(40) / 30), FirstRequest: begin, LastRequest: begin + schema.Time(f.pick(90_000_000))*1000,
			Rank: f.Float64() / float64(f.hosts), InlinkHosts: int64(f.pick(50)),
		})
	}
	var pages []schema.Page
	var duplicates []schema.Duplicate
	var links []schema.Link
	var urls []schema.URLRecord
	var skips []schema.Skip
	var captures []schema.Capture
	for i := range n / 10 {
		url := "http://" + hostile[i%len(hostile)] + "/" + fmt.Sprint(f.pick(i+1))
		pages = append(pages, schema.Page{PageColumns: schema.PageColumns{URLColumns: schema.URLColumns{URL: url}, Language: []string{"eng", "deu", "fra", hostile[1]}[f.pick(4)], DocumentKind: "html", WordCount: int32(f.pick(3000)), Inlinks: int64(f.pick(400)), Outlinks: int32(f.pick(90)), ContentBytes: int64(f.pick(200_000))}})
		duplicates = append(duplicates, schema.Duplicate{URL: url, Representative: url, Kind: schema.DupNear, ClusterSize: int32(2 + f.pick(9))})
		links = append(links, schema.Link{Kind: schema.LinkKinds[f.pick(len(schema.LinkKinds))], Nofollow: f.IntN(4) == 0})
		urls = append(urls, schema.URLRecord{URL: url, State: schema.URLStates[f.pick(len(schema.URLStates))], FirstSeen: fmt.Sprintf("%s.%d", crawl, f.IntN(s.Round+1))})
		skips = append(skips, schema.Skip{URL: url, Reason: schema.SkipReasons[f.pick(len(schema.SkipReasons))], Detail: fmt.Sprintf("pages at a.example/%d are the same (%d of 60)", f.pick(3), f.pick(60))})
		captures = append(captures, schema.Capture{CaptureColumns: schema.CaptureColumns{WARCRecordLength: int32(f.pick(20_000))}})
	}
	f.accounts(s)
	write(f, s, stages.FileHosts, hosts)
	write(f, s, stages.FilePages, pages)
	write(f, s, stages.FileDuplicates, duplicates)
	write(f, s, stages.FileLinks, links)
	write(f, s, stages.FileURLs, urls)
	write(f, s, stages.FileSkips, skips)
	write(f, s, stages.FileCaptures, captures)
}

// accounts adds rows of stages and runs. Some attempts were killed, and round 1 has no prices.
// The rows of the other datasets do not depend on them.
func (f *fake) accounts(s *manifest.Sealed) {
	defer func(r *rand.Rand) { f.Rand = r }(f.Rand)
	f.Rand = rand.New(rand.NewPCG(3, uint64(s.Round)))
	var attempts []schema.StageAttempt
	for _, stage := range slices.Sorted(slices.Values(stages.Order)) {
		for task := range 20 {
			a := schema.StageAttempt{Stage: string(stage), Task: int32(task), Attempt: 1, Outcome: "done"}
			if f.IntN(8) == 0 {
				a.Outcome, a.ErrorClass = "killed", manifest.FailureClasses()[f.IntN(9)]
			} else {
				n := func() *int64 { return new(int64(f.pick(1_000_000))) }
				a.WallMS, a.CPUMS, a.PeakMemory, a.Rows, a.BytesWritten, a.BytesRead = n(), n(), n(), n(), n(), n()
				a.Puts, a.Gets, a.Lists, a.Deletes, a.FailedCalls = n(), n(), n(), n(), n()
			}
			if s.Round != 1 && a.WallMS != nil {
				a.Dollars = new(float64(*a.WallMS) / 1e8)
			}
			attempts = append(attempts, a)
		}
	}
	run := schema.Run{TaskHours: f.Float64() * 100, Puts: 5, Gets: 6, BytesWritten: 7}
	if s.Round != 1 {
		run.Dollars, run.PredictedDollars, run.StoredDollars, run.PredictedTask, run.PricesDate = new(f.Float64()), new(f.Float64()), new(f.Float64()), new(f.Float64()), "2026-11"
		run.PredictedPuts, run.PredictedGets, run.PredictedBytes = new(int64(1)), new(int64(2)), new(int64(3))
	}
	write(f, s, stages.FileStages, attempts)
	write(f, s, stages.FileRuns, []schema.Run{run})
}

// report makes the report of the rounds.
func (f *fake) report() *Report {
	f.t.Helper()
	m := &maker{Options: Options{Bucket: f.bucket, Crawl: crawl, Store: "s3://bucket/" + hostile[0], Version: "test"}, status: &jobs.Status{}, plans: map[int]*manifest.Plan{}}
	if err := m.readSealed(f.t.Context(), f.sealed); err != nil {
		f.t.Fatal(err)
	}
	for _, s := range f.sealed {
		m.plans[s.Round] = &manifest.Plan{Round: s.Round, URLs: s.FilesOf(stages.FileFetches)[0].Rows, EstimatedSeconds: 30 * 3600, Partitions: []manifest.PlanPartition{{EstimatedSeconds: 30 * 3600}}}
	}
	m.previous, m.earlier = "2026-10", []*manifest.Sealed{{Crawl: "2026-10", Counts: manifest.SortedCounts(f.before)}}
	var err error
	if m.collected, err = collect(f.t.Context(), m.rounds); err != nil {
		f.t.Fatal(err)
	}
	m.timing = m.times()
	return m.report()
}

// html returns the page of a report.
func pageOf(t testing.TB, r *Report) string {
	t.Helper()
	var page bytes.Buffer
	if err := HTML(&page, r); err != nil {
		t.Fatal(err)
	}
	return page.String()
}

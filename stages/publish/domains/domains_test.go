package domains

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
)

const testCrawl = "2026-11"

// round holds the rows of a round, as later stages would have them.
type round struct {
	fetches    []schema.Fetch
	requests   []schema.Request
	pages      []schema.WorkingPage
	duplicates []schema.Duplicate
	hosts      []schema.Host
}

// ptr returns a pointer to a copy of v.
func ptr[T any](v T) *T { return &v }

// randomRound makes rows about some domains. One domain has an IP address for a name, and one has a
// host with a port.
func randomRound(seed uint64) *round {
	r, out := rand.New(rand.NewPCG(seed, 1)), &round{}
	for n := range 40 {
		domain := fmt.Sprintf("d%02d.test", n)
		if n == 7 {
			domain = "192.0.2.77"
		}
		hosts := []string{domain}
		if n%3 == 0 {
			hosts = append(hosts, "www."+domain, "x."+domain+":8080")
		}
		for h, host := range hosts {
			row := schema.Host{Host: host, Domain: domain, RobotsState: []string{"rules", "none", "unreachable", ""}[r.IntN(4)], Rank: r.Float64() / 100, Harmonic: float64(n)}
			for i := range 1 + r.IntN(30) {
				url := fmt.Sprintf("http://%s/%d", host, i)
				k, err := urlkey.KeyOf(url)
				if err != nil {
					panic(err)
				}
				f := schema.Fetch{SURT: k.SURT, URL: url, Host: host, Domain: domain, Outcome: schema.Outcomes[r.IntN(len(schema.Outcomes))], HTTPStatus: int16(400 + r.IntN(5))}
				out.fetches = append(out.fetches, f)
				row.Planned++
				q := schema.Request{Host: host, URL: url, Address: fmt.Sprintf("192.0.%d.%d:80", r.IntN(4), r.IntN(6)), Start: schema.Time(1000*n+i) * 1000, DelayMS: int64(500 * r.IntN(4)), TotalMS: int64(r.IntN(900)), BytesReceived: int64(r.IntN(9999)), BytesSent: 9}
				if q.TotalUS = ptr(q.TotalMS * 1000); r.IntN(4) > 0 {
					q.Status, q.FirstByteUS = int16([]int{200, 404, 429, 503}[r.IntN(4)]), ptr(int64(math.Exp(r.Float64()*16)))
				} else {
					q.ErrorClass = string(schema.Timeout)
				}
				out.requests = append(out.requests, q)
				row.DelayMS, row.LastRequest = ptr(q.DelayMS), q.Start
				row.FirstRequest = cmp.Or(row.FirstRequest, q.Start)
				if f.Outcome == schema.OK {
					parts, err := urlkey.Split(url)
					if err != nil {
						panic(err)
					}
					p := schema.Page{PageColumns: schema.PageColumns{ContentBytes: int64(r.IntN(999)), Language: []string{"", "eng", "deu", "fra"}[r.IntN(4)], Indexable: r.IntN(2) == 0}}
					p.SURT, p.URL, p.HostName, p.HostPrivateDomain = k.SURT, url, parts.HostName, parts.PrivateDomain
					if r.IntN(2) == 0 {
						p.Changed = ptr(r.IntN(2) == 0)
					}
					out.pages = append(out.pages, schema.Working(&p, schema.WorkingColumns{}))
					out.duplicates = append(out.duplicates, schema.Duplicate{SURT: k.SURT, URL: url, Kind: []schema.DuplicateKind{schema.DupExact, schema.DupNear, schema.DupRepresentative}[r.IntN(3)]})
				}
			}
			if row.RobotsState == "rules" {
				row.RobotsDigest = strings.Repeat(string(rune('A'+r.IntN(3))), 32)
			}
			row.BreakerEvents = int32(h)
			out.hosts = append(out.hosts, row)
		}
		out.hosts = append(out.hosts, schema.Host{Host: "linked." + domain, Domain: domain, Rank: 0.001, Harmonic: float64(n)})
	}
	return out
}

// put stores the rows of a round for a plan of so many partitions and buckets, and returns the input.
func put(t *testing.T, b store.Bucket, of *round, number, partitions, buckets int) *stages.Input {
	t.Helper()
	p := &manifest.Plan{Crawl: testCrawl, Round: number, Buckets: buckets, Partitions: make([]manifest.PlanPartition, partitions)}
	for n := range p.Partitions {
		p.Partitions[n].Bucket = n * buckets / partitions
	}
	// A domain is in one of the partitions of its bucket.
	partitionOf := func(domain string) int {
		var own []int
		for n := range p.Partitions {
			if p.Partitions[n].Bucket == urlkey.Bucket(domain, buckets) {
				own = append(own, n)
			}
		}
		return own[int(domain[2])%len(own)]
	}
	domainOf := map[string]string{}
	for _, h := range of.hosts {
		domainOf[h.Host] = h.Domain
	}
	in := &stages.Input{Task: stages.Task{Stage: stages.Publish, Crawl: testCrawl, Round: number}, Plan: p, Results: map[stages.Stage][]*manifest.Result{stages.Dedup: {{}}, stages.Rank: {{}}}}
	for n := range partitions {
		here := func(domain string) bool { return partitionOf(domain) == n }
		requests := keep(of.requests, func(q *schema.Request) bool { return here(domainOf[q.Host]) })
		if n == partitions-1 { // a robots.txt of a domain of this partition redirects to any other domain
			for _, q := range of.requests[:min(9, len(of.requests))] {
				if !here(domainOf[q.Host]) {
					q.BytesReceived += 1e6
					requests = append(requests, q)
				}
			}
		}
		in.Results[stages.Merge] = append(in.Results[stages.Merge], &manifest.Result{Files: []manifest.File{
			file(t, b, number, n, stages.FileFetches, keep(of.fetches, func(f *schema.Fetch) bool { return here(f.Domain) })),
			file(t, b, number, n, stages.FileRequests, requests),
			file(t, b, number, n, stages.FilePages, keep(of.pages, func(p *schema.WorkingPage) bool { return here(cmp.Or(p.HostPrivateDomain, p.HostName)) })),
		}})
	}
	for n := range buckets {
		here := func(domain string) bool { return urlkey.Bucket(domain, buckets) == n }
		duplicates, hosts := in.Results[stages.Dedup][0], in.Results[stages.Rank][0]
		duplicates.Files = append(duplicates.Files, file(t, b, number, n, stages.FileDuplicates, keep(of.duplicates, func(d *schema.Duplicate) bool {
			k, _ := urlkey.KeyOf(d.URL)
			return here(k.Domain)
		})))
		hosts.Files = append(hosts.Files, file(t, b, number, n, stages.FileHosts, keep(of.hosts, func(h *schema.Host) bool { return here(h.Domain) })))
	}
	return in
}

func keep[T any](rows []T, f func(*T) bool) (kept []T) {
	for i := range rows {
		if f(&rows[i]) {
			kept = append(kept, rows[i])
		}
	}
	return kept
}

func file[T any](t *testing.T, b store.Bucket, round, part int, dataset string, rows []T) manifest.File {
	t.Helper()
	return tabletest.Write(t, b, dataset, layout.Table(dataset, testCrawl, round, part), rows)
}

// write writes all parts of a round and returns their rows by domain, and the files.
func write(t *testing.T, b store.Bucket, in *stages.Input) (rows []schema.Domain, files []manifest.File) {
	t.Helper()
	env := &stages.Env{Bucket: b, Scratch: t.TempDir(), Log: slog.New(slog.DiscardHandler)}
	for bucket := range in.Plan.Buckets {
		f, err := Write(t.Context(), env, in, bucket)
		if err != nil {
			t.Fatal(err)
		}
		part := tabletest.Read[schema.Domain](t, b, f.Key)
		if !slices.IsSortedFunc(part, func(a, b schema.Domain) int { return strings.Compare(a.Domain, b.Domain) }) {
			t.Errorf("%s is not sorted", f.Key)
		}
		rows, files = append(rows, part...), append(files, f)
	}
	slices.SortFunc(rows, func(a, b schema.Domain) int { return strings.Compare(a.Domain, b.Domain) })
	return rows, files
}

func openStore(t *testing.T) store.Bucket {
	t.Helper()
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestPartitionsAndBucketsDoNotChangeTheRows(t *testing.T) {
	of := randomRound(1)
	b := openStore(t)
	want, first := write(t, b, put(t, b, of, 0, 1, 1))
	if len(want) != 40 {
		t.Fatalf("%d rows, want 40", len(want))
	}
	for i, shape := range [][2]int{{3, 1}, {4, 4}, {5, 2}} {
		got, _ := write(t, b, put(t, b, of, i+1, shape[0], shape[1]))
		if d := gocmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%v: %s", shape, d)
		}
	}
	_, again := write(t, b, put(t, b, of, 0, 1, 1)) // on the same keys, which other bytes could not get
	if d := gocmp.Diff(first, again); d != "" {
		t.Error(d)
	}
}

func TestARowDescribesItsDomain(t *testing.T) {
	of := randomRound(2)
	b := openStore(t)
	rows, _ := write(t, b, put(t, b, of, 0, 3, 2))
	for _, row := range rows {
		domainOf := func(url string) string { k, _ := urlkey.KeyOf(url); return k.Domain }
		var planned, refused int64
		for _, f := range of.fetches {
			if f.Domain == row.Domain {
				planned++
				*row.Outcomes()[slices.Index(schema.Outcomes, f.Outcome)]--
				if f.Outcome == schema.HTTP4xx && (f.HTTPStatus == 401 || f.HTTPStatus == 403) || slices.Contains([]schema.Outcome{schema.RobotsDenied,
					schema.RobotsUnreachable, schema.Stopped, schema.AddressBlocked, schema.HostSuspended, schema.RateLimited, schema.Blocked,
					schema.PaymentRequired}, f.Outcome) {
					refused++
				}
			}
		}
		for i, n := range row.Outcomes() {
			if *n != 0 {
				t.Errorf("%s: %s is %d too much", row.Domain, schema.Outcomes[i], *n)
			}
		}
		if row.Planned != planned || row.Blocked != refused || (row.BlockedBy == "") != (refused == 0) {
			t.Errorf("%s: planned %d (want %d), blocked %d (want %d) by %q", row.Domain, row.Planned, planned, row.Blocked, refused, row.BlockedBy)
		}
		var times []int64
		byAddress := map[string]int64{}
		for _, q := range of.requests {
			if domainOf(q.URL) == row.Domain {
				byAddress[strings.TrimSuffix(q.Address, ":80")]++
				if q.FirstByteUS != nil {
					times = append(times, *q.FirstByteUS)
				}
			}
		}
		slices.Sort(times)
		for p, got := range map[int]*float64{50: row.FirstByteP50, 90: row.FirstByteP90, 99: row.FirstByteP99} {
			if len(times) == 0 {
				if got != nil {
					t.Errorf("%s: a percentile of no response", row.Domain)
				}
				continue
			}
			if want := times[(len(times)*p+99)/100-1]; math.Abs(*got*1000-float64(want)) > float64(want)/64 {
				t.Errorf("%s: percentile %d is %v ms, want %d µs", row.Domain, p, *got, want)
			}
		}
		if len(byAddress) != int(row.AddressCount) || len(row.Addresses) != min(8, len(byAddress)) {
			t.Errorf("%s: %d addresses, %d of them named, want %d", row.Domain, row.AddressCount, len(row.Addresses), len(byAddress))
		}
		for i := 1; i < len(row.Addresses); i++ {
			x, y := row.Addresses[i-1], row.Addresses[i]
			if byAddress[x] < byAddress[y] || byAddress[x] == byAddress[y] && x > y {
				t.Errorf("%s: address %s with %d requests is before %s with %d", row.Domain, x, byAddress[x], y, byAddress[y])
			}
		}
		if row.LinkedHosts != 1 || row.Hosts != 1 && row.Hosts != 3 || row.NetworkCount > 4 {
			t.Errorf("%s: %d hosts, %d linked hosts, %d networks", row.Domain, row.Hosts, row.LinkedHosts, row.NetworkCount)
		}
	}
}

// TestRowsAreComparedWithEarlierRounds makes three rounds of one domain in which robots.txt changes.
func TestRowsAreComparedWithEarlierRounds(t *testing.T) {
	b := openStore(t)
	var earlier []*manifest.Sealed
	make := func(domain string, hosts ...schema.Host) schema.Domain {
		t.Helper()
		of := &round{}
		for i := range hosts {
			hosts[i].Domain, hosts[i].Planned = domain, 1
			of.fetches = append(of.fetches, schema.Fetch{URL: "http://" + hosts[i].Host + "/", Host: hosts[i].Host, Domain: domain, Outcome: schema.OK})
		}
		of.hosts = hosts
		in := put(t, b, of, len(earlier), 2, 1+len(earlier)%2)
		in.Earlier = earlier
		rows, files := write(t, b, in)
		earlier = append(earlier, &manifest.Sealed{Crawl: testCrawl, Round: len(earlier), Buckets: in.Plan.Buckets, Files: files})
		return rows[0]
	}
	www, bare := "www.a.test", "a.test"
	type result struct {
		Previous, Host, Before string
		Changed                *bool
	}
	check := func(name string, d schema.Domain, want result) {
		t.Helper()
		if diff := gocmp.Diff(want, result{d.PreviousRound, d.RobotsHost, d.RobotsBefore, d.RobotsChanged}); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	check("first", make("a.test", schema.Host{Host: www, RobotsState: "rules", RobotsDigest: "A"}), result{Host: www})
	check("same", make("a.test", schema.Host{Host: www, RobotsState: "rules", RobotsDigest: "A"}), result{"2026-11.0", www, "2026-11.0", ptr(false)})
	check("unreachable", make("a.test", schema.Host{Host: www, RobotsState: "unreachable"}), result{Previous: "2026-11.1", Host: www})
	check("changed since the last readable one", make("a.test", schema.Host{Host: www, RobotsState: "rules", RobotsDigest: "B"}), result{"2026-11.2", www, "2026-11.1", ptr(true)})
	check("the host with the domain's name counts", make("a.test", schema.Host{Host: bare, RobotsState: "none"}, schema.Host{Host: www, RobotsState: "rules", RobotsDigest: "B"}), result{Previous: "2026-11.3", Host: bare})
	check("gone", make("a.test", schema.Host{Host: www, RobotsState: "none"}), result{"2026-11.4", www, "2026-11.3", ptr(true)})
	for range mostEarlier {
		make("b.test", schema.Host{Host: "b.test"})
	}
	check("too long ago", make("a.test", schema.Host{Host: www, RobotsState: "none"}), result{Host: www})
}

func TestOnePartitionOfABucketWritesItsDomains(t *testing.T) {
	p := &manifest.Plan{Buckets: 3, Partitions: []manifest.PlanPartition{{Bucket: 0}, {Bucket: 0}, {Bucket: 2}}}
	for bucket, want := range []int{0, -1, 2} {
		if n, ok := Writer(p, bucket); ok != (want >= 0) || ok && n != want {
			t.Errorf("bucket %d: partition %d, %t", bucket, n, ok)
		}
	}
	if !WrittenBy(p, 0) || WrittenBy(p, 1) || !WrittenBy(p, 2) {
		t.Error("other partitions than the first write domains")
	}
}

func TestBinsAreNarrow(t *testing.T) {
	last := int32(-1)
	for us := int64(0); us < longest; us += 1 + us/97 {
		b := binOf(us)
		if b < last {
			t.Fatalf("%d µs has bin %d after %d", us, b, last)
		}
		if last = b; math.Abs(middleOf(b)*1000-float64(us)) > float64(us)/64 {
			t.Fatalf("%d µs: the middle of its bin is %v ms", us, middleOf(b))
		}
	}
	if binOf(-1) != 0 || binOf(math.MaxInt64) != binOf(longest) || last > 1200 {
		t.Errorf("the last bin is %d", last)
	}
	if h := (&histogram{}); h.percentile(50) != nil {
		t.Error("a percentile of nothing")
	}
}

func TestPlaceOf(t *testing.T) {
	for _, tt := range []struct{ server, address, network string }{
		{"192.0.2.1:80", "192.0.2.1", "192.0.2.0/24"},
		{"[::ffff:192.0.2.1]:80", "192.0.2.1", "192.0.2.0/24"},
		{"[64:ff9b::192.0.2.1]:80", "192.0.2.1", "192.0.2.0/24"},
		{"[2001:db8:1:2::3]:443", "2001:db8:1:2::3", "2001:db8:1::/48"},
		{"", "", ""},
	} {
		if address, network := placeOf(tt.server); address != tt.address || network != tt.network {
			t.Errorf("%s: %s in %s, want %s in %s", tt.server, address, network, tt.address, tt.network)
		}
	}
}

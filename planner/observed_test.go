package planner

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/planner/source"
)

// seen yields the given hosts, as if earlier rounds had observed them.
func seen(hosts ...source.Host) iter.Seq2[source.Host, error] {
	return func(yield func(source.Host, error) bool) {
		for _, h := range hosts {
			if !yield(h, nil) {
				return
			}
		}
	}
}

func planWith(t *testing.T, cfg Config, hosts iter.Seq2[source.Host, error], urls ...string) *Plan {
	t.Helper()
	req := request(t, unnumbered(urls...))
	req.Hosts = hosts
	p, err := Make(context.Background(), cfg, req)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// domainsOf commits a plan and returns the partition of each domain.
func domainsOf(t *testing.T, p *Plan) map[string]int {
	t.Helper()
	of := map[string]int{}
	_, parts, _ := commitAndRead(t, bucket(t), p)
	for n, rows := range parts {
		for _, r := range rows {
			of[r.Domain] = n
		}
	}
	return of
}

func TestDomainsOfOneAddressStayTogether(t *testing.T) {
	var urls []string
	var hosts []source.Host
	for d := range 300 {
		name := fmt.Sprintf("d%d.example", d)
		for n := range 10 {
			urls = append(urls, fmt.Sprintf("http://%s/%d", name, n))
		}
		hosts = append(hosts,
			source.Host{Host: name, Domain: name, Address: "192.0.2.250"}, // an older observation, which the newer one replaces
			source.Host{Host: name, Domain: name, Address: fmt.Sprintf("192.0.2.%d", d%30)})
	}
	cfg := Default()
	cfg.PartitionURLs = 500
	p := planWith(t, cfg, seen(hosts...), urls...)
	of := domainsOf(t, p)
	for d := range 300 {
		if got, want := of[fmt.Sprintf("d%d.example", d)], of[fmt.Sprintf("d%d.example", d%30)]; got != want {
			t.Fatalf("domain %d is in partition %d, domain %d of the same address in partition %d", d, got, d%30, want)
		}
	}
	// The 100 URLs of the address take 20 s. The 10 URLs of the host with a delay of 2 s take 20 s,
	// too.
	if got := p.Manifest().EstimatedSeconds; got != 20 {
		t.Errorf("%v s, want 20", got)
	}
	cfg.AddressDelay = time.Second
	if got := planWith(t, cfg, seen(hosts...), urls...).Manifest().EstimatedSeconds; got != 100 {
		t.Errorf("at 1 s for each request to an address: %v s, want 100", got)
	}
	// The order of sources does not matter. A spilled sort gives the same plan.
	cfg.AddressDelay, cfg.Memory = 200*time.Millisecond, 1<<20
	if again := planWith(t, cfg, seen(hosts...), shuffled(urls)...); again.Manifest().ID != p.Manifest().ID {
		t.Errorf("plan %s, of shuffled URLs %s", p.Manifest().ID, again.Manifest().ID)
	}
	cfg.AddressDelay = 0
	of = domainsOf(t, planWith(t, cfg, seen(hosts...), urls...))
	apart := 0
	for d := range 300 {
		if of[fmt.Sprintf("d%d.example", d)] != of[fmt.Sprintf("d%d.example", d%30)] {
			apart++
		}
	}
	if apart == 0 {
		t.Error("without a delay per address, domains of an address stay together")
	}
}

func TestObservedDelaysArePredicted(t *testing.T) {
	ms := func(n int64) *int64 { return &n }
	urls := []string{"http://a.example/1", "http://a.example/2", "http://www.b.example/1", "http://c.example/1", "http://unseen.example/"}
	hosts := seen(
		source.Host{Host: "a.example", Domain: "a.example", DelayMS: ms(90_000)},
		source.Host{Host: "a.example", Domain: "a.example", DelayMS: ms(30_000)}, // the newest round counts
		source.Host{Host: "www.b.example", Domain: "b.example", DelayMS: ms(40_000)},
		source.Host{Host: "c.example", Domain: "c.example", DelayMS: ms(1)}, // a shorter delay than the config's
		source.Host{Host: "nowhere.example", Domain: "nowhere.example", DelayMS: ms(1e9)},
	)
	cfg := Default()
	cfg.PartitionURLs = 1
	var got []float64
	for _, p := range planWith(t, cfg, hosts, urls...).Manifest().Partitions {
		got = append(got, p.EstimatedSeconds)
	}
	if want := []float64{60, 40, 2, 2}; !slices.Equal(got, want) {
		t.Errorf("predicted %v s, want %v", got, want)
	}
	cfg.Window = 50 * time.Second
	if m := planWith(t, cfg, hosts, urls...).Manifest(); m.EstimatedSeconds != 50 {
		t.Errorf("with a window of 50 s: predicted %v s", m.EstimatedSeconds)
	}
	cfg.Window, cfg.RoundURLs, cfg.PartitionURLs = 0, 4, 10
	if m := planWith(t, cfg, hosts, urls...).Manifest(); m.EstimatedSeconds != 60 || m.URLs != 4 {
		t.Errorf("with a budget of a round: %d URLs, predicted %v s", m.URLs, m.EstimatedSeconds)
	}
}

func TestHostsOfSealedRounds(t *testing.T) {
	b, dir := bucket(t), t.TempDir()
	type row = source.Host
	delay := int64(2000)
	put := func(name string, rows ...row) manifest.File {
		l, err := table.WriteFile(dir+"/part", func(yield func(row, error) bool) {
			for _, r := range rows {
				yield(r, nil)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		f, err := table.Commit(context.Background(), b, l, "hosts", name)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	a := row{Host: "a.example", Domain: "a.example", Address: "192.0.2.1", DelayMS: &delay, Rank: 0.75}
	linked := row{Host: "linked.example", Domain: "linked.example", Rank: 0.25} // a host to which no request was sent
	gone := manifest.File{Key: "gone.parquet", Dataset: "hosts"}
	rounds := []*manifest.Sealed{{Files: []manifest.File{put("a.parquet", a, linked), gone}}, {Files: []manifest.File{put("b.parquet", a)}}}
	var got []string
	for h, err := range source.Hosts(context.Background(), b, rounds) {
		if err != nil || h.Requested() != (h.Host == "a.example") || h.Requested() && (h.Address != "192.0.2.1" || *h.DelayMS != 2000) {
			t.Errorf("%+v, %v", h, err)
		}
		got = append(got, fmt.Sprint(h.Host, " ", h.Rank))
	}
	if fmt.Sprint(got) != "[a.example 1.5 linked.example 0.5 a.example 0.75]" {
		t.Errorf("hosts with their ranks: %v", got)
	}
}

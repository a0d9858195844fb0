package planner

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// shape describes the domains of a web of a billion URLs.
type shape struct {
	name     string
	domains  int
	exponent float64 // exponent of Zipf's law for the URLs of a domain
	budget   int64   // largest number of URLs of a domain
	hosts    int64   // number of hosts of a large domain
	slow     int     // each slow-th domain has a delay of 30 s; 0 means none
	gain     float64 // smallest allowed ratio of byTime's pod-hours to packGroups' pod-hours
}

var shapes = []shape{
	{name: "the default budget", domains: 10e6, exponent: 1, budget: 10_000, gain: 15},
	{name: "few large domains", domains: 50e6, exponent: 1.3, budget: 10_000, gain: 12},
	{name: "domains of similar size", domains: 20e6, exponent: 0.5, budget: 10_000, gain: 3},
	{name: "pairs of pages", domains: 500e6, exponent: 0, budget: 10_000, gain: 0.99},
	{name: "no budget", domains: 10e6, exponent: 1, budget: math.MaxInt64, gain: 1.2},
	{name: "many hosts a domain", domains: 10e6, exponent: 1, budget: 100_000, hosts: 20, gain: 3},
	{name: "some slow domains", domains: 10e6, exponent: 1, budget: 10_000, slow: 10, gain: 8},
}

// sample draws a share of 1/scale of the web's domains. The sample has the web's distribution of
// URLs.
func (s *shape) sample(r *rules, scale int) (groups []group, urls int64) {
	var weights []float64
	for i := scale / 2; i < s.domains; i += scale {
		weights = append(weights, math.Pow(float64(i+1), -s.exponent))
	}
	size := func(c, weight float64) int64 { return min(s.budget, max(1, int64(c*weight))) }
	lo, hi := 0.0, 1e10
	for range 60 {
		mid, sum := (lo+hi)/2, int64(0)
		for _, w := range weights {
			sum += size(mid, w)
		}
		if sum < 1e9/int64(scale) {
			lo = mid
		} else {
			hi = mid
		}
	}
	for i, w := range weights {
		g := group{hash: urlkey.Hash(fmt.Sprintf("d%d.example", i)), urls: size(hi, w), domains: 1}
		hosts := min(g.urls, max(s.hosts, 1))
		delay := r.Delay
		if s.slow > 0 && i%s.slow == 0 {
			delay = 30 * time.Second
		}
		g.hosts, g.longest = int32(hosts), float64((g.urls+hosts-1)/hosts)*max(delay, r.Service).Seconds()
		groups, urls = append(groups, g), urls+g.urls
	}
	sortByHash(groups)
	return groups, urls
}

func sortByHash(groups []group) {
	slices.SortFunc(groups, func(a, b group) int { return cmp.Compare(a.hash, b.hash) })
}

func packRules(t testing.TB, partitionURLs int) *rules {
	t.Helper()
	cfg := Default()
	cfg.PartitionURLs = partitionURLs
	r, err := cfg.rules()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func podHours(r *rules, parts []partition) (hours float64) {
	for _, p := range parts {
		hours += r.predictSeconds(p.urls, p.longest) / 3600
	}
	return hours
}

// leastHours returns a lower bound of the pod-hours of the groups of one bucket. The first k
// partitions hold at most as many URLs as k full partitions. The next partition therefore takes at
// least as long as the slowest group that does not fit into k full partitions. The URLs that fit
// into none of these partitions need further time on all slots.
func leastHours(r *rules, groups []group) float64 {
	order := slices.SortedFunc(slices.Values(groups), func(a, b group) int { return cmp.Compare(b.longest, a.longest) })
	p := packing{rules: r, groups: order, limit: int64(r.PartitionURLs)}
	rest := int64(0) // URLs left over if all partitions so far are full
	for _, g := range order {
		rest += min(g.urls, p.limit)
	}
	least, bound, size, full := r.predictSeconds(rest, 0), 0.0, int64(0), int64(0)
	for i, g := range order {
		if size >= full {
			bound, full, rest = bound+g.longest, full+p.limit, max(rest-p.limit, 0)
			least = max(least, bound+r.predictSeconds(rest, 0))
		}
		size += min(p.size(int32(i)), p.limit)
	}
	return least / 3600
}

// byBucket passes the groups of each bucket to the function visit.
func byBucket(groups []group, buckets int, visit func([]group)) {
	for len(groups) > 0 {
		n := slices.IndexFunc(groups, func(g group) bool {
			return urlkey.BucketOf(g.hash, buckets) != urlkey.BucketOf(groups[0].hash, buckets)
		})
		if n < 0 {
			n = len(groups)
		}
		visit(groups[:n])
		groups = groups[n:]
	}
}

func TestPodHoursAreNearTheirLowerBound(t *testing.T) {
	scale := 200
	if testing.Short() {
		scale = 500
	}
	for _, s := range shapes {
		r := packRules(t, 500_000)
		groups, urls := s.sample(r, max(scale, s.domains/200_000))
		buckets := r.buckets(urls, Request{})
		parts := r.assign(groups, nil, buckets)
		checkPacking(t, r, groups, parts)
		least, before := 0.0, 0.0
		byBucket(groups, buckets, func(g []group) {
			least += leastHours(r, g)
			before += podHours(r, byTime(packRules(t, 50_000), g))
		})
		now := podHours(r, parts)
		t.Logf("%s: %d URLs of %d domains in %d partitions: %.1f pod-hours, lower bound %.1f, by time %.0f",
			s.name, urls, len(groups), len(parts), now, least, before)
		if now > 1.05*least {
			t.Errorf("%s: %.1f pod-hours, lower bound %.1f", s.name, now, least)
		}
		if now*s.gain > before {
			t.Errorf("%s: %.1f pod-hours, the assignment by time takes %.1f: want at most 1 of %.1f", s.name, now, before, s.gain)
		}
	}
}

// byTime makes partitions of equal time, as earlier versions did. Each large group, slowest first,
// goes to the partition with the earliest predicted end. Small groups fill the rest.
func byTime(r *rules, groups []group) []partition {
	total := int64(0)
	for _, g := range groups {
		total += g.urls
	}
	count := min(max(1, (total+int64(r.PartitionURLs)/2)/int64(r.PartitionURLs)), int64(len(groups)))
	room := (total + count - 1) / count
	parts := make([]partition, count)
	var large, small []group
	for _, g := range groups {
		if g.urls*64 > room {
			large = append(large, g)
		} else {
			small = append(small, g)
		}
	}
	slices.SortStableFunc(large, func(a, b group) int { return cmp.Compare(b.longest, a.longest) })
	for _, g := range large {
		best, earliest := 0, math.Inf(1)
		for i, p := range parts {
			end := r.predictSeconds(p.urls+g.urls, max(p.longest, g.longest))
			if (p.urls+g.urls <= room || p.urls == 0) && (end < earliest || end == earliest && p.urls < parts[best].urls) {
				best, earliest = i, end
			}
		}
		parts[best].add(&g)
	}
	at := 0
	for _, g := range small {
		for at < len(parts)-1 && parts[at].urls+g.urls/2 >= room {
			at++
		}
		parts[at].add(&g)
	}
	return parts
}

// checkPacking checks that each group is in one partition, and that no partition exceeds its
// limits.
func checkPacking(t *testing.T, r *rules, groups []group, parts []partition) {
	t.Helper()
	seen := make([]bool, len(groups))
	for n, p := range parts {
		want := partition{bucket: p.bucket, groups: p.groups}
		for k, i := range p.groups {
			if seen[i] || k > 0 && p.groups[k-1] >= i {
				t.Fatalf("partition %d has group %d twice, or before group %d", n, i, p.groups[max(k-1, 0)])
			}
			seen[i] = true
			want.add(&groups[i])
		}
		if p.urls != want.urls || p.hosts != want.hosts || p.domains != want.domains || p.longest != want.longest {
			t.Fatalf("partition %d is %+v, its groups make %+v", n, p, want)
		}
		if len(p.groups) == 0 || len(p.groups) > 1 && (p.urls > int64(r.PartitionURLs) || p.hosts > partitionHosts+int64(len(p.groups))) {
			t.Fatalf("partition %d has %d groups, %d URLs, %d hosts", n, len(p.groups), p.urls, p.hosts)
		}
	}
	if i := slices.Index(seen, false); i >= 0 {
		t.Fatalf("group %d is in no partition", i)
	}
}

// packGroups keeps the limits for any groups and takes at most about twice the lower bound. If each
// group needs more than half a partition, no assignment is near the lower bound.
func TestAnyGroupsArePacked(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for n := range 3000 {
		r := packRules(t, 1+rnd.IntN(1<<rnd.IntN(16)))
		r.Slots = 1 + rnd.IntN(300)
		groups := make([]group, 1+rnd.IntN(300))
		most := 1 + rnd.IntN(2*r.PartitionURLs)
		for i := range groups {
			g := group{hash: rnd.Uint64(), urls: 1 + int64(rnd.IntN(1+rnd.IntN(most))), domains: 1}
			g.hosts, g.longest = int32(1+rnd.Int64N(g.urls)), float64(g.urls)*float64(rnd.IntN(4))
			groups[i] = g
		}
		sortByHash(groups)
		parts := r.packGroups(groups).partitions(nil, 0, 0)
		checkPacking(t, r, groups, parts)
		if now, least := podHours(r, parts), leastHours(r, groups); now > 2.5*least {
			t.Errorf("case %d: %d groups in %d partitions of %d URLs: %.3f pod-hours, lower bound %.3f", n, len(groups), len(parts), r.PartitionURLs, now, least)
		}
	}
}

// If a later month has some more domains, few of the other domains move to another partition.
func TestFewDomainsMoveBetweenMonths(t *testing.T) {
	r := packRules(t, 50_000)
	groups, _ := shapes[0].sample(r, 500)
	rnd := rand.New(rand.NewPCG(3, 4))
	partOf := func(groups []group) map[uint64]int32 {
		of := map[uint64]int32{}
		p := r.packGroups(groups)
		for i, g := range groups {
			of[g.hash] = p.partOf[i]
		}
		return of
	}
	before := partOf(groups)
	for range len(groups) / 100 {
		g := groups[rnd.IntN(len(groups))]
		g.hash = rnd.Uint64()
		groups = append(groups, g)
	}
	sortByHash(groups)
	moved := 0
	for hash, at := range partOf(groups) {
		if was, ok := before[hash]; ok && was != at {
			moved++
		}
	}
	t.Logf("%d of %d domains moved", moved, len(before))
	if moved > len(before)/10 {
		t.Errorf("1%% more domains move %d of %d domains", moved, len(before))
	}
}

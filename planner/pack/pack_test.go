package pack

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
func (s *shape) sample(r *Rules, scale int) (groups []Group, urls int64) {
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
		g := Group{Hash: urlkey.Hash(fmt.Sprintf("d%d.example", i)), URLs: size(hi, w), Domains: 1}
		hosts := min(g.URLs, max(s.hosts, 1))
		delay := testDelay
		if s.slow > 0 && i%s.slow == 0 {
			delay = 30 * time.Second
		}
		g.Hosts, g.Longest = int32(hosts), float64((g.URLs+hosts-1)/hosts)*max(delay, r.Service).Seconds()
		groups, urls = append(groups, g), urls+g.URLs
	}
	sortByHash(groups)
	return groups, urls
}

func sortByHash(groups []Group) {
	slices.SortFunc(groups, func(a, b Group) int { return cmp.Compare(a.Hash, b.Hash) })
}

// testDelay is the delay between two requests to a host.
const testDelay = 2 * time.Second

func packRules(_ testing.TB, partitionURLs int) *Rules {
	return &Rules{PartitionURLs: partitionURLs, AddressDelay: 200 * time.Millisecond, Service: 1500 * time.Millisecond, Slots: 200}
}

func podHours(r *Rules, parts []Partition) (hours float64) {
	for _, p := range parts {
		hours += r.Seconds(p.URLs, p.Longest) / 3600
	}
	return hours
}

// leastHours returns a lower bound of the pod-hours of the groups of one bucket. The first k
// partitions hold at most as many URLs as k full partitions. The next partition therefore takes at
// least as long as the slowest group that does not fit into k full partitions. The URLs that fit
// into none of these partitions need further time on all slots.
func leastHours(r *Rules, groups []Group) float64 {
	order := slices.SortedFunc(slices.Values(groups), func(a, b Group) int { return cmp.Compare(b.Longest, a.Longest) })
	p := packing{Rules: r, groups: order, limit: int64(r.PartitionURLs)}
	rest := int64(0) // URLs left over if all partitions so far are full
	for _, g := range order {
		rest += min(g.URLs, p.limit)
	}
	least, bound, size, full := r.Seconds(rest, 0), 0.0, int64(0), int64(0)
	for i, g := range order {
		if size >= full {
			bound, full, rest = bound+g.Longest, full+p.limit, max(rest-p.limit, 0)
			least = max(least, bound+r.Seconds(rest, 0))
		}
		size += min(p.size(int32(i)), p.limit)
	}
	return least / 3600
}

// byBucket passes the groups of each bucket to the function visit.
func byBucket(groups []Group, buckets int, visit func([]Group)) {
	for len(groups) > 0 {
		n := slices.IndexFunc(groups, func(g Group) bool {
			return urlkey.BucketOf(g.Hash, buckets) != urlkey.BucketOf(groups[0].Hash, buckets)
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
		buckets := int(max(1, (urls+1_999_999)/2_000_000))
		parts := r.Assign(groups, nil, buckets)
		checkPacking(t, r, groups, parts)
		least, before := 0.0, 0.0
		byBucket(groups, buckets, func(g []Group) {
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
func byTime(r *Rules, groups []Group) []Partition {
	total := int64(0)
	for _, g := range groups {
		total += g.URLs
	}
	count := min(max(1, (total+int64(r.PartitionURLs)/2)/int64(r.PartitionURLs)), int64(len(groups)))
	room := (total + count - 1) / count
	parts := make([]Partition, count)
	var large, small []Group
	for _, g := range groups {
		if g.URLs*64 > room {
			large = append(large, g)
		} else {
			small = append(small, g)
		}
	}
	slices.SortStableFunc(large, func(a, b Group) int { return cmp.Compare(b.Longest, a.Longest) })
	for _, g := range large {
		best, earliest := 0, math.Inf(1)
		for i, p := range parts {
			end := r.Seconds(p.URLs+g.URLs, max(p.Longest, g.Longest))
			if (p.URLs+g.URLs <= room || p.URLs == 0) && (end < earliest || end == earliest && p.URLs < parts[best].URLs) {
				best, earliest = i, end
			}
		}
		parts[best].add(&g)
	}
	at := 0
	for _, g := range small {
		for at < len(parts)-1 && parts[at].URLs+g.URLs/2 >= room {
			at++
		}
		parts[at].add(&g)
	}
	return parts
}

// checkPacking checks that each group is in one partition, and that no partition exceeds its
// limits.
func checkPacking(t *testing.T, r *Rules, groups []Group, parts []Partition) {
	t.Helper()
	seen := make([]bool, len(groups))
	for n, p := range parts {
		want := Partition{Bucket: p.Bucket, Groups: p.Groups}
		for k, i := range p.Groups {
			if seen[i] || k > 0 && p.Groups[k-1] >= i {
				t.Fatalf("partition %d has group %d twice, or before group %d", n, i, p.Groups[max(k-1, 0)])
			}
			seen[i] = true
			want.add(&groups[i])
		}
		if p.URLs != want.URLs || p.Hosts != want.Hosts || p.Domains != want.Domains || p.Longest != want.Longest {
			t.Fatalf("partition %d is %+v, its groups make %+v", n, p, want)
		}
		if len(p.Groups) == 0 || len(p.Groups) > 1 && (p.URLs > int64(r.PartitionURLs) || p.Hosts > partitionHosts+int64(len(p.Groups))) {
			t.Fatalf("partition %d has %d groups, %d URLs, %d hosts", n, len(p.Groups), p.URLs, p.Hosts)
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
		groups := make([]Group, 1+rnd.IntN(300))
		most := 1 + rnd.IntN(2*r.PartitionURLs)
		for i := range groups {
			g := Group{Hash: rnd.Uint64(), URLs: 1 + int64(rnd.IntN(1+rnd.IntN(most))), Domains: 1}
			g.Hosts, g.Longest = int32(1+rnd.Int64N(g.URLs)), float64(g.URLs)*float64(rnd.IntN(4))
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
	partOf := func(groups []Group) map[uint64]int32 {
		of := map[uint64]int32{}
		p := r.packGroups(groups)
		for i, g := range groups {
			of[g.Hash] = p.partOf[i]
		}
		return of
	}
	before := partOf(groups)
	for range len(groups) / 100 {
		g := groups[rnd.IntN(len(groups))]
		g.Hash = rnd.Uint64()
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

func TestUnitsOfAddresses(t *testing.T) {
	r := packRules(t, 1000)
	r.AddressDelay = time.Millisecond
	groups := make([]Group, 5000)
	addresses := make([]uint64, len(groups))
	for i := range groups {
		groups[i] = Group{Hash: uint64(i), URLs: 3, Hosts: 1, Domains: 1, Longest: 6}
		switch {
		case i < 1001:
			addresses[i] = 1 // a content delivery network
		case i < 2001:
			addresses[i] = 2 // the 3000 URLs of this address fill three partitions
		case i < 2011:
			addresses[i] = 3
		}
	}
	units, unitOf := r.unite(groups, addresses, Networks(addresses))
	sizes := map[int64]int{}
	for _, u := range units {
		sizes[u.URLs]++
	}
	if sizes[3] != 1001+5000-2011+1 || sizes[999] != 3 || sizes[30] != 1 || len(sizes) != 3 {
		t.Errorf("units by URLs: %v", sizes)
	}
	if u := units[unitOf[2001]]; u.Domains != 10 || u.Hosts != 10 || u.Longest != 6 || unitOf[2010] != unitOf[2001] {
		t.Errorf("unit %+v", u)
	}
	checkPacking(t, r, groups, r.packGroups(units).partitions(unitOf, 0, 0))
	if !slices.IsSortedFunc(units, func(a, b Group) int { return int(int64(a.Hash) - int64(b.Hash)) }) {
		t.Error("units are not in the order of hashes")
	}
}

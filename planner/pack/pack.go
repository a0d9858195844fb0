// Package pack divides the domains of a round into partitions.
//
// The input is a group for each domain, with its number of URLs and the predicted time of its slowest host.
// The output is partitions of whole domains within a bucket, for which few pod-hours are predicted. The same
// groups give the same partitions.
//
// Package pack imports formats packages only.
package pack

import (
	"cmp"
	"slices"
	"time"

	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// Group holds the planned URLs of one domain. Domains with the same hash share a group. All URLs of
// a group go to the same partition.
type Group struct {
	Hash    uint64
	URLs    int64
	Domains int32
	Hosts   int32
	Longest float64 // predicted time of the group's slowest host, in seconds
	Off     int64   // offset of the group's first record in its list, in bytes
}

// Partition is a set of groups of one bucket.
type Partition struct {
	Bucket  int
	URLs    int64
	Domains int64
	Hosts   int64
	Longest float64 // predicted time of the partition's slowest host, in seconds
	Groups  []int32 // indices of the groups, ascending
}

// Rules holds the limits and figures by which groups are packed.
type Rules struct {
	PartitionURLs int           // largest number of URLs of a partition of several groups
	AddressDelay  time.Duration // least gap between two requests to an address; 0: domains at one address may be in different partitions
	Window        time.Duration // time after which a fetch task ends; 0 means no bound
	Service       time.Duration // mean time of one fetch
	Slots         int           // number of concurrent fetches of a task
}

// WithinWindow limits a predicted time to the window, in seconds.
func (r *Rules) WithinWindow(seconds float64) float64 {
	if r.Window > 0 {
		return min(seconds, r.Window.Seconds())
	}
	return seconds
}

func (p *Partition) add(g *Group) {
	p.URLs += g.URLs
	p.Domains += int64(g.Domains)
	p.Hosts += int64(g.Hosts)
	p.Longest = max(p.Longest, g.Longest)
}

// Seconds predicts the time of a partition, in seconds. The prediction is the time of the
// slowest host, or the time of all fetches on all slots if that is longer.
func (r *Rules) Seconds(urls int64, longest float64) float64 {
	return max(longest, float64(urls)*r.Service.Seconds()/float64(r.Slots))
}

// Assign divides groups into partitions, bucket by bucket. The parameter groups must be sorted by
// hash. The parameter addresses holds the hash of each group's address, or is nil if no addresses
// are known.
func (r *Rules) Assign(groups []Group, addresses []uint64, buckets int) []Partition {
	var out []Partition
	var apart map[uint64]bool
	if addresses != nil {
		apart = Networks(addresses)
	}
	for first := 0; first < len(groups); {
		bucket := urlkey.BucketOf(groups[first].Hash, buckets)
		end := first
		for end < len(groups) && urlkey.BucketOf(groups[end].Hash, buckets) == bucket {
			end++
		}
		units, unitOf := groups[first:end], []int32(nil)
		if addresses != nil && r.AddressDelay > 0 {
			units, unitOf = r.unite(units, addresses[first:end], apart)
		}
		out = append(out, r.packGroups(units).partitions(unitOf, first, bucket)...)
		first = end
	}
	return out
}

// partitionHosts is the largest number of hosts in a partition of several groups. A fetch task
// keeps the state of each host in memory, and the state of each slow or failing host in its
// checkpoint.
const partitionHosts = 100_000

// A group is small if it needs at most 1/smallShare of a partition.
const smallShare = 64

// packing divides the groups of one bucket into partitions.
type packing struct {
	*Rules
	groups []Group
	limit  int64   // capacity of a partition, in URLs
	partOf []int32 // partition of each group
	count  int32   // number of partitions
	rooms  rooms
}

// packGroups divides groups so that the sum of the predicted times of all partitions is small. A
// partition lasts as long as its slowest host. Therefore, packGroups places the slowest groups
// first and fills one partition after the other. This rule is called first fit by decreasing time.
// Schedulers of parallel batch jobs use the same rule.
//
// A group is quick if it needs less than half of the time that a full partition of the other groups
// takes. packGroups places the quick groups last, because they do not make a full partition slower.
func (r *Rules) packGroups(groups []Group) *packing {
	p := &packing{Rules: r, groups: groups, limit: int64(r.PartitionURLs), partOf: make([]int32, len(groups))}
	order := make([]int32, len(groups))
	urls, size := int64(0), int64(0) // sums over the groups that have no partition
	for i := range order {
		order[i] = int32(i)
		urls, size = urls+groups[i].URLs, size+p.size(int32(i))
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(groups[b].Longest, groups[a].Longest), cmp.Compare(a, b))
	})
	p.rooms = newRooms(p.limit, int(min(2*size/p.limit+2, int64(len(groups)))))
	busy := r.Seconds(p.limit-p.limit/smallShare, 0)
	for n, i := range order {
		if groups[i].Longest < busy/2*float64(urls)/float64(size) {
			p.placeQuick(order[n:])
			break
		}
		urls, size = urls-groups[i].URLs, size-p.size(i)
		p.placeGroup(i)
	}
	return p
}

// size returns the room that group i takes in a partition, in URLs.
func (p *packing) size(i int32) int64 {
	g := &p.groups[i]
	return max(g.URLs, int64(g.Hosts)*p.limit/partitionHosts)
}

// placeGroup gives a group to the first partition that has room for it.
func (p *packing) placeGroup(i int32) {
	at := p.rooms.firstFit(p.size(i))
	p.setPartition(i, at)
	p.rooms.reserve(at, p.size(i))
}

func (p *packing) setPartition(i, at int32) {
	p.partOf[i], p.count = at, max(p.count, at+1)
}

// placeQuick places the quick groups, slowest first, but keeps the small groups for the end. If the
// small groups need several new partitions, placeQuick sorts them by hash and gives each new
// partition an equal share. With this rule, few groups move to another partition if a later round
// has some more groups.
func (p *packing) placeQuick(quick []int32) {
	var small []int32
	rest := int64(0)
	for _, i := range quick {
		if size := p.size(i); size <= p.limit/smallShare {
			small, rest = append(small, i), rest+size
		} else {
			p.placeGroup(i)
		}
	}
	if rest -= p.rooms.totalRoom(p.count); rest <= p.limit {
		for _, i := range small {
			p.placeGroup(i)
		}
		return
	}
	slices.Sort(small)
	var further []int32
	rest = 0
	for _, i := range small {
		if at := p.rooms.firstFit(p.size(i)); at < p.count {
			p.placeGroup(i)
		} else {
			further, rest = append(further, i), rest+p.size(i)
		}
	}
	share := p.limit - p.limit/smallShare // leaves room for one small group
	n := (rest + share - 1) / share
	placed, open := int64(0), p.count
	for _, i := range further {
		p.setPartition(i, open+int32(placed*n/rest))
		placed += p.size(i)
	}
}

// partitions returns the partitions of a bucket. If the packed groups are units of several groups,
// unitOf holds the unit of each group. Otherwise, unitOf is nil. The parameter first is the index
// of the bucket's first group.
func (p *packing) partitions(unitOf []int32, first, bucket int) []Partition {
	parts := make([]Partition, p.count)
	for i := range p.groups {
		parts[p.partOf[i]].add(&p.groups[i])
	}
	partOf := p.partOf
	if unitOf != nil {
		partOf = make([]int32, len(unitOf))
		for i, unit := range unitOf {
			partOf[i] = p.partOf[unit]
		}
	}
	counts := make([]int, p.count)
	for _, at := range partOf {
		counts[at]++
	}
	members := make([]int32, len(partOf))
	for i, n := range counts {
		parts[i].Bucket, parts[i].Groups, members = bucket, members[:0:n], members[n:]
	}
	for i, at := range partOf {
		parts[at].Groups = append(parts[at].Groups, int32(first+i))
	}
	return parts
}

// rooms is a tree of the remaining room in each partition. Each leaf stands for a partition, and
// each inner node holds the largest room of the leaves below it. The root is at index 1, the
// children of node n are at 2n and 2n+1, and the leaves come last.
type rooms struct {
	tree  []int64
	limit int64
}

// newRooms returns the rooms of at least n empty partitions. First fit leaves at most one partition
// that is less than half full. It therefore needs at most 2 × (sum of sizes) ÷ limit + 1
// partitions.
func newRooms(limit int64, n int) rooms {
	leaves := 1
	for leaves < n {
		leaves *= 2
	}
	return rooms{slices.Repeat([]int64{limit}, 2*leaves), limit}
}

// firstFit returns the first partition with room for size. A group that is larger than a partition
// needs an empty one.
func (r *rooms) firstFit(size int64) int32 {
	leaves := len(r.tree) / 2
	n := 1
	for n < leaves {
		if n *= 2; r.tree[n] < min(size, r.limit) {
			n++
		}
	}
	return int32(n - leaves)
}

// reserve reduces the room of a partition.
func (r *rooms) reserve(at int32, size int64) {
	n := len(r.tree)/2 + int(at)
	r.tree[n] = max(r.tree[n]-size, 0)
	for n /= 2; n > 0; n /= 2 {
		r.tree[n] = max(r.tree[2*n], r.tree[2*n+1])
	}
}

// totalRoom returns the sum of the rooms of the first n partitions.
func (r *rooms) totalRoom(n int32) (sum int64) {
	for _, room := range r.tree[len(r.tree)/2:][:n] {
		sum += room
	}
	return sum
}

// sharedDomains is the largest number of domains at one address that the planner keeps together. An
// address with more domains is taken for that of a content delivery network.
const sharedDomains = 1000

// Networks returns the addresses that more than sharedDomains groups share. The result also
// contains 0, which means that the address is unknown.
func Networks(addresses []uint64) map[uint64]bool {
	out := map[uint64]bool{0: true}
	order := slices.Sorted(slices.Values(addresses))
	for i := range order {
		if i >= sharedDomains && order[i-sharedDomains] == order[i] {
			out[order[i]] = true
		}
	}
	return out
}

// unite joins groups of a bucket that share an address into units. A unit must fit into a
// partition, so the groups at an address may form several units. unite also returns the index of
// each group's unit. The predicted time of a unit allows for the delay between requests to its
// address.
func (r *Rules) unite(groups []Group, addresses []uint64, apart map[uint64]bool) (units []Group, unitOf []int32) {
	order := make([]int32, len(groups))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(addresses[a], addresses[b]) })
	p := packing{Rules: r, groups: groups, limit: int64(r.PartitionURLs)}
	leader, size := make([]int32, len(groups)), int64(0) // leader holds the first group of each unit
	for n, i := range order {
		if n > 0 && !apart[addresses[i]] && addresses[i] == addresses[order[n-1]] && size+p.size(i) <= p.limit {
			leader[i], size = leader[order[n-1]], size+p.size(i)
		} else {
			leader[i], size = i, p.size(i)
		}
	}
	unitOf = make([]int32, len(groups))
	for i, g := range groups {
		if leader[i] == int32(i) {
			unitOf[i], units = int32(len(units)), append(units, g)
			continue
		}
		unitOf[i] = unitOf[leader[i]]
		u := &units[unitOf[i]]
		u.URLs, u.Domains, u.Hosts = u.URLs+g.URLs, u.Domains+g.Domains, u.Hosts+g.Hosts
		u.Longest = r.WithinWindow(max(u.Longest, g.Longest, float64(u.URLs)*r.AddressDelay.Seconds()))
	}
	return units, unitOf
}

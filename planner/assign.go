package planner

import (
	"cmp"
	"slices"
	"time"

	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// partition is a set of groups of one bucket.
type partition struct {
	bucket  int
	urls    int64
	domains int64
	hosts   int64
	longest float64 // predicted time of the partition's slowest host, in seconds
	groups  []int32 // indices of the groups, ascending
}

func (p *partition) add(g *group) {
	p.urls += g.urls
	p.domains += int64(g.domains)
	p.hosts += int64(g.hosts)
	p.longest = max(p.longest, g.longest)
}

// predictSeconds predicts the time of a partition, in seconds. The prediction is the time of the
// slowest host, or the time of all fetches on all slots if that is longer.
func (r *rules) predictSeconds(urls int64, longest float64) float64 {
	return max(longest, r.busySeconds(urls, r.measured))
}

// busySeconds returns the time in which so many fetches keep all slots busy, in seconds.
func (r *rules) busySeconds(urls int64, service time.Duration) float64 {
	return float64(urls) * service.Seconds() / float64(r.Slots)
}

// knownFactor is the number of known URLs that count as one planned URL in the size of a bucket. A
// reduce task does most of its work on planned URLs and only streams known URLs.
const knownFactor = 5

// buckets returns the number of reduce buckets for a round with the given number of URLs. If the buckets of the
// previous round are too small for the URLs, each bucket is split in two. Buckets are never joined,
// so in most rounds a task reads the files of only one bucket of earlier rounds.
func (r *rules) buckets(urls int64, req Request) int {
	if req.Buckets == 0 {
		return int(max(1, (urls+r.BucketURLs-1)/r.BucketURLs))
	}
	n := req.Buckets
	for int64(n)*r.BucketURLs < max(urls, req.Known/knownFactor) {
		n *= 2
	}
	return n
}

// assign divides groups into partitions, bucket by bucket. The parameter groups must be sorted by
// hash. The parameter addresses holds the hash of each group's address, or is nil if no addresses
// are known.
func (r *rules) assign(groups []group, addresses []uint64, buckets int) []partition {
	var out []partition
	var apart map[uint64]bool
	if addresses != nil {
		apart = networks(addresses)
	}
	for first := 0; first < len(groups); {
		bucket := urlkey.BucketOf(groups[first].hash, buckets)
		end := first
		for end < len(groups) && urlkey.BucketOf(groups[end].hash, buckets) == bucket {
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
	*rules
	groups []group
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
func (r *rules) packGroups(groups []group) *packing {
	p := &packing{rules: r, groups: groups, limit: int64(r.PartitionURLs), partOf: make([]int32, len(groups))}
	order := make([]int32, len(groups))
	urls, size := int64(0), int64(0) // sums over the groups that have no partition
	for i := range order {
		order[i] = int32(i)
		urls, size = urls+groups[i].urls, size+p.size(int32(i))
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(groups[b].longest, groups[a].longest), cmp.Compare(a, b))
	})
	p.rooms = newRooms(p.limit, int(min(2*size/p.limit+2, int64(len(groups)))))
	busy := r.predictSeconds(p.limit-p.limit/smallShare, 0)
	for n, i := range order {
		if groups[i].longest < busy/2*float64(urls)/float64(size) {
			p.placeQuick(order[n:])
			break
		}
		urls, size = urls-groups[i].urls, size-p.size(i)
		p.placeGroup(i)
	}
	return p
}

// size returns the room that group i takes in a partition, in URLs.
func (p *packing) size(i int32) int64 {
	g := &p.groups[i]
	return max(g.urls, int64(g.hosts)*p.limit/partitionHosts)
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
func (p *packing) partitions(unitOf []int32, first, bucket int) []partition {
	parts := make([]partition, p.count)
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
		parts[i].bucket, parts[i].groups, members = bucket, members[:0:n], members[n:]
	}
	for i, at := range partOf {
		parts[at].groups = append(parts[at].groups, int32(first+i))
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

package planner

import (
	"cmp"
	"math"
	"slices"

	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// partition is a set of groups of one bucket: large ones, each placed by itself, and one run of
// adjacent small ones. The planner reads a run in one piece.
type partition struct {
	bucket  int
	urls    int64
	domains int64
	hosts   int64
	longest float64 // predicted seconds of its slowest domain
	large   []int   // indices of groups, in order
	small   [2]int  // the small groups among groups[small[0]:small[1]]
	isLarge func(*group) bool
}

// seconds predicts how long a partition takes: the time of its slowest domain, or of all
// its fetches on all slots, whichever is longer.
func (r *rules) seconds(urls int64, longest float64) float64 {
	return max(longest, float64(urls)*r.Service.Seconds()/float64(r.Slots))
}

func (p *partition) add(g *group) {
	p.urls += g.urls
	p.domains += int64(g.domains)
	p.hosts += int64(g.hosts)
	p.longest = max(p.longest, g.longest)
}

// buckets is the number of reduce buckets for a number of URLs.
func (r *rules) buckets(urls int64) int {
	return int(max(1, (urls+r.BucketURLs-1)/r.BucketURLs))
}

// assign makes the partitions of groups, which are in order of hash, bucket by bucket.
func (r *rules) assign(groups []group, buckets int) []partition {
	var out []partition
	for first := 0; first < len(groups); {
		bucket := urlkey.BucketOf(groups[first].hash, buckets)
		end := first
		for end < len(groups) && urlkey.BucketOf(groups[end].hash, buckets) == bucket {
			end++
		}
		out = append(out, r.assignBucket(groups, first, end, bucket)...)
		first = end
	}
	return out
}

// assignBucket makes the partitions of one bucket. It first places large groups, the
// slowest first. Each goes to the partition that has room and the earliest predicted end
// (longest processing time first: at worst a third above the optimum). Then small groups
// fill the remaining room, in order.
func (r *rules) assignBucket(groups []group, first, end, bucket int) []partition {
	total := int64(0)
	for _, g := range groups[first:end] {
		total += g.urls
	}
	count := max(1, (total+int64(r.PartitionURLs)/2)/int64(r.PartitionURLs))
	count = min(count, int64(end-first))
	room := (total + count - 1) / count
	isLarge := func(g *group) bool { return g.urls*64 > room }

	parts := make([]partition, count)
	for i := range parts {
		parts[i].bucket, parts[i].isLarge = bucket, isLarge
	}
	var large []int
	for i := first; i < end; i++ {
		if isLarge(&groups[i]) {
			large = append(large, i)
		}
	}
	slices.SortFunc(large, func(a, b int) int {
		return cmp.Or(cmp.Compare(groups[b].longest, groups[a].longest), cmp.Compare(groups[b].urls, groups[a].urls), cmp.Compare(a, b))
	})
	for _, i := range large {
		p := &parts[r.place(parts, &groups[i], room)]
		p.add(&groups[i])
		p.large = append(p.large, i)
	}
	at := 0
	for i := first; i < end; i++ {
		if isLarge(&groups[i]) {
			continue
		}
		for at < len(parts)-1 && parts[at].urls+groups[i].urls/2 >= room {
			at++
			parts[at].small = [2]int{i, i}
		}
		if parts[at].small[1] == 0 {
			parts[at].small[0] = i
		}
		parts[at].add(&groups[i])
		parts[at].small[1] = i + 1
	}
	parts = slices.DeleteFunc(parts, func(p partition) bool { return p.urls == 0 })
	for i := range parts {
		slices.Sort(parts[i].large)
	}
	return parts
}

// place chooses the partition of a large group.
func (r *rules) place(parts []partition, g *group, room int64) int {
	best, bestSeconds := 0, 0.0
	for i := range parts {
		urls, seconds := parts[i].urls+g.urls, math.Inf(1) // infinite if the partition has no room
		if urls <= room || parts[i].urls == 0 {
			seconds = r.seconds(urls, max(parts[i].longest, g.longest))
		}
		if i == 0 || seconds < bestSeconds || seconds == bestSeconds && parts[i].urls < parts[best].urls {
			best, bestSeconds = i, seconds
		}
	}
	return best
}

// runs calls visit with the groups of a partition, in runs of adjacent ones.
func (p *partition) runs(groups []group, visit func([]group) error) error {
	for _, i := range p.large {
		if err := visit(groups[i : i+1]); err != nil {
			return err
		}
	}
	for i := p.small[0]; i < p.small[1]; {
		if p.isLarge(&groups[i]) {
			i++
			continue
		}
		end := i + 1
		for end < p.small[1] && !p.isLarge(&groups[end]) {
			end++
		}
		if err := visit(groups[i:end]); err != nil {
			return err
		}
		i = end
	}
	return nil
}

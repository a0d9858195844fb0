package planner

import (
	"cmp"
	"math"
	"slices"

	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// partition is a set of groups of one bucket. A partition has large groups, and one run of adjacent
// small groups. The planner reads the run in one piece.
type partition struct {
	bucket  int
	urls    int64
	domains int64
	hosts   int64
	longest float64 // predicted time of the partition's slowest domain, in seconds
	large   []int   // indices of the large groups, ascending
	small   [2]int  // bounds of the run groups[small[0]:small[1]], whose small groups belong to the partition
	isLarge func(*group) bool
}

// predictSeconds predicts the time of a partition, in seconds. The prediction is the time of the
// slowest domain, or the time of all fetches on all slots if that is longer.
func (r *rules) predictSeconds(urls int64, longest float64) float64 {
	return max(longest, float64(urls)*r.Service.Seconds()/float64(r.Slots))
}

func (p *partition) add(g *group) {
	p.urls += g.urls
	p.domains += int64(g.domains)
	p.hosts += int64(g.hosts)
	p.longest = max(p.longest, g.longest)
}

// buckets returns the number of reduce buckets for a number of URLs.
func (r *rules) buckets(urls int64) int {
	return int(max(1, (urls+r.BucketURLs-1)/r.BucketURLs))
}

// assign makes the partitions of groups, bucket by bucket. The argument groups is sorted by hash.
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

// assignBucket makes the partitions of one bucket. assignBucket first places the large groups, the
// slowest first. Each large group goes to the partition that has room and the earliest predicted
// end. With the slowest group first, the slowest partition takes at most a third more time than in
// the best assignment. Small groups fill the remaining room in the order of the list.
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

// place returns the index of the partition that gets a large group.
func (r *rules) place(parts []partition, g *group, room int64) int {
	best, bestSeconds := 0, 0.0
	for i := range parts {
		urls, seconds := parts[i].urls+g.urls, math.Inf(1) // the predicted end of a partition without room is infinite
		if urls <= room || parts[i].urls == 0 {
			seconds = r.predictSeconds(urls, max(parts[i].longest, g.longest))
		}
		if i == 0 || seconds < bestSeconds || seconds == bestSeconds && parts[i].urls < parts[best].urls {
			best, bestSeconds = i, seconds
		}
	}
	return best
}

// eachRun calls visit with each run of adjacent groups of a partition.
func (p *partition) eachRun(groups []group, visit func([]group) error) error {
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

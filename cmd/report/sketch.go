package report

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// aggregate says how the values of a key add up.
type aggregate int

const (
	sum aggregate = iota
	largest
	smallest // of values that are not 0, such as times
	last     // value of the key's newest row
)

// entry is a key of a top with its values.
type entry struct {
	key    string
	values []int64
	missed int64 // how much of the ranked value the key may have had before it was entered
}

// top counts the keys of a stream and keeps the keys with the largest ranked value. It holds at
// most twice keep keys: when it is full, it drops the smaller half. A key that comes back begins at
// 0, and its missed value is the largest value that was ever dropped. A value is therefore too low
// by at most missed, and the value of an absent key is at most dropped. The result depends on the
// rows and their order only.
type top struct {
	keep     int
	rank     int // index of the value that ranks keys
	how      []aggregate
	unique   bool // true: a key has one row in a round, so a key that was dropped in this round does not come back in it
	entries  map[string]*entry
	dropped  int64 // largest ranked value, plus missed, of a dropped key
	before   int64 // dropped at the end of the previous round
	lost     int64 // number of drops
	returned bool  // true: a key may have come back after it was dropped
	earlier  int64 // number of drops at the end of the previous round
}

func newTop(keep, rank int, how ...aggregate) *top {
	return &top{keep: keep, rank: rank, how: how, entries: map[string]*entry{}}
}

// add adds values to a key.
func (t *top) add(key string, values ...int64) {
	e := t.entries[key]
	if e == nil {
		if len(t.entries) == 2*t.keep {
			t.shrink()
		}
		e = &entry{key: strings.Clone(key), values: slices.Clone(values), missed: t.dropped}
		if t.unique {
			e.missed = t.before
		}
		if t.how[t.rank] == largest {
			e.missed = 0 // a key that was dropped has no larger value than the keys that stayed
		}
		t.entries[e.key] = e
		t.returned = t.returned || !t.unique && t.lost > 0 || t.unique && t.earlier > 0
		return
	}
	for i, v := range values {
		switch t.how[i] {
		case sum:
			e.values[i] += v
		case largest:
			e.values[i] = max(e.values[i], v)
		case smallest:
			if e.values[i] == 0 || v != 0 && v < e.values[i] {
				e.values[i] = v
			}
		case last:
			e.values[i] = v
		}
	}
}

// nextRound says that the rows of another round follow.
func (t *top) nextRound() { t.before, t.earlier = t.dropped, t.lost }

// sorted returns the entries by their upper bounds, the largest first.
func (t *top) sorted() []*entry {
	all := make([]*entry, 0, len(t.entries))
	for _, e := range t.entries {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(b.values[t.rank]+b.missed, a.values[t.rank]+a.missed), strings.Compare(a.key, b.key))
	})
	return all
}

func (t *top) shrink() {
	for i, e := range t.sorted() {
		if i >= t.keep {
			t.dropped = max(t.dropped, e.values[t.rank]+e.missed)
			t.lost++
			delete(t.entries, e.key)
		}
	}
}

// histogram counts values of 0 and more in buckets. The width of a bucket is at most 1/64 of its
// values.
type histogram struct {
	counts []int64
	n      int64
	max    int64
}

const (
	subBits = 6
	within  = 1.0 / (1 << (subBits + 1)) // largest relative error of the middle of a bucket
)

func (h *histogram) add(v int64) {
	v = max(v, 0)
	if h.counts == nil {
		h.counts = make([]int64, (64-subBits)<<subBits)
	}
	h.counts[bucketOf(v)]++
	h.n++
	h.max = max(h.max, v)
}

func bucketOf(v int64) int {
	shift := max(0, bits.Len64(uint64(v))-subBits-1)
	return shift<<subBits + int(v>>shift)
}

// quantile returns a number such that a share q of the values is not larger. Its relative error is
// at most within. The histogram must have a value.
func (h *histogram) quantile(q float64) int64 {
	rank := max(1, int64(math.Ceil(q*float64(h.n))))
	var seen int64
	for i, n := range h.counts {
		if seen += n; seen >= rank {
			shift := max(0, i>>subBits-1)
			least := int64(i-shift<<subBits) << shift
			return min(least+(int64(1)<<shift)/2, h.max)
		}
	}
	return h.max
}

// steps are the possible distances of two points of a timeline, in seconds. Each divides the next.
var steps = []int64{1, 5, 10, 30, 60, 300, 600, 1800, 3600, 3 * 3600, 6 * 3600, 86400}

// longestStep bounds the step, for a crawl with more rounds than a timeline has points.
const longestStep = 1 << 32

// point is a time of a timeline, in a round.
type point struct {
	round int
	at    int64 // milliseconds since 1970, a multiple of the step
}

// timeline adds values by time. If it gets more than most points, it takes the next larger step, so
// the result does not depend on the order of the values.
type timeline struct {
	most    int
	step    int64 // seconds
	values  int   // number of values of a point
	points  map[point][]int64
	lastAt  point
	lastSum []int64 // values of the point lastAt
}

func newTimeline(most, values int) *timeline {
	return &timeline{most: most, step: steps[0], values: values, points: map[point][]int64{}}
}

// at returns the values of the point for a time. The caller adds to them.
func (t *timeline) at(round int, ms int64) []int64 {
	p := point{round, floor(ms, t.step)}
	if p == t.lastAt && t.lastSum != nil {
		return t.lastSum
	}
	values := t.points[p]
	if values == nil {
		for len(t.points) >= t.most && t.step < longestStep {
			t.coarsen()
			if p = (point{round, floor(ms, t.step)}); t.points[p] != nil {
				break
			}
		}
		if values = t.points[p]; values == nil {
			values = make([]int64, t.values)
			t.points[p] = values
		}
	}
	t.lastAt, t.lastSum = p, values
	return values
}

func floor(ms, step int64) int64 {
	w := step * 1000
	at := ms / w * w
	if at > ms {
		at -= w
	}
	return at
}

func (t *timeline) coarsen() {
	i := slices.Index(steps, t.step)
	if i >= 0 && i+1 < len(steps) {
		t.step = steps[i+1]
	} else {
		t.step *= 2
	}
	coarse := map[point][]int64{}
	for p, values := range t.points {
		q := point{p.round, floor(p.at, t.step)}
		if coarse[q] == nil {
			coarse[q] = make([]int64, t.values)
		}
		for i, v := range values {
			coarse[q][i] += v
		}
	}
	t.points, t.lastSum = coarse, nil
}

// sorted returns the points by round and time.
func (t *timeline) sorted() []point {
	all := make([]point, 0, len(t.points))
	for p := range t.points {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b point) int { return cmp.Or(cmp.Compare(a.round, b.round), cmp.Compare(a.at, b.at)) })
	return all
}

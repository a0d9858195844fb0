// Package sketch adds up streams of rows in bounded memory: the most frequent keys, percentiles, and
// values over time. What it returns depends on the rows and their order only. It imports nothing of
// crawlbatch.
package sketch

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// Aggregate says how the values of a key add up.
type Aggregate int

const (
	Sum      Aggregate = iota // the sum of the values
	Largest                   // the largest value
	Smallest                  // the smallest value
	First                     // the smallest of the values that are not 0, such as times
	Last                      // value of the key's newest row
)

// Entry is a key of a Top with its values.
type Entry struct {
	Key    string
	Values []int64
	Missed int64 // how much of the ranked value the key may have had before it was entered
}

// Top counts the keys of a stream and keeps the keys with the largest ranked value. It holds at
// most twice keep keys: when it is full, it drops the smaller half. A key that comes back begins at
// 0, and its Missed value is the largest value that was ever dropped. A value is therefore too low
// by at most Missed, and the value of an absent key is at most dropped. The result depends on the
// rows and their order only.
type Top struct {
	keep     int
	rank     int // index of the value that ranks keys
	how      []Aggregate
	Unique   bool // true: a key has one row in a round, so a key that was dropped in this round does not come back in it
	Entries  map[string]*Entry
	dropped  int64 // largest ranked value, plus Missed, of a dropped key
	before   int64 // dropped at the end of the previous round
	Lost     int64 // number of drops
	Returned bool  // true: a key may have come back after it was dropped
	earlier  int64 // number of drops at the end of the previous round
}

// NewTop returns a Top that counts at least keep keys exactly. how says how each value of a key adds up, and
// rank is the index of the value that ranks keys.
func NewTop(keep, rank int, how ...Aggregate) *Top {
	return &Top{keep: keep, rank: rank, how: how, Entries: map[string]*Entry{}}
}

// Add adds values to a key.
func (t *Top) Add(key string, values ...int64) {
	e := t.Entries[key]
	if e == nil {
		if len(t.Entries) == 2*t.keep {
			t.shrink()
		}
		e = &Entry{Key: strings.Clone(key), Values: slices.Clone(values), Missed: t.dropped}
		if t.Unique {
			e.Missed = t.before
		}
		if t.how[t.rank] == Largest {
			e.Missed = 0 // a key that was dropped has no larger value than the keys that stayed
		}
		t.Entries[e.Key] = e
		t.Returned = t.Returned || !t.Unique && t.Lost > 0 || t.Unique && t.earlier > 0
		return
	}
	for i, v := range values {
		switch t.how[i] {
		case Sum:
			e.Values[i] += v
		case Largest:
			e.Values[i] = max(e.Values[i], v)
		case Smallest:
			e.Values[i] = min(e.Values[i], v)
		case First:
			if e.Values[i] == 0 || v != 0 && v < e.Values[i] {
				e.Values[i] = v
			}
		case Last:
			e.Values[i] = v
		}
	}
}

// NextRound says that the rows of another round follow.
func (t *Top) NextRound() { t.before, t.earlier = t.dropped, t.Lost }

// Sorted returns the entries by their upper bounds, the largest first.
func (t *Top) Sorted() []*Entry {
	all := make([]*Entry, 0, len(t.Entries))
	for _, e := range t.Entries {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *Entry) int {
		return cmp.Or(cmp.Compare(b.Values[t.rank]+b.Missed, a.Values[t.rank]+a.Missed), strings.Compare(a.Key, b.Key))
	})
	return all
}

func (t *Top) shrink() {
	for i, e := range t.Sorted() {
		if i >= t.keep {
			t.dropped = max(t.dropped, e.Values[t.rank]+e.Missed)
			t.Lost++
			delete(t.Entries, e.Key)
		}
	}
}

// Histogram counts values of 0 and more in buckets. The width of a bucket is at most 1/64 of its
// values.
type Histogram struct {
	counts []int64
	N      int64 // number of values
	Max    int64 // largest value
}

const (
	subBits = 6
	Within  = 1.0 / (1 << (subBits + 1)) // largest relative error of a Quantile
)

// Add adds a value. A negative value counts as 0.
func (h *Histogram) Add(v int64) {
	v = max(v, 0)
	if h.counts == nil {
		h.counts = make([]int64, (64-subBits)<<subBits)
	}
	h.counts[bucketOf(v)]++
	h.N++
	h.Max = max(h.Max, v)
}

func bucketOf(v int64) int {
	shift := max(0, bits.Len64(uint64(v))-subBits-1)
	return shift<<subBits + int(v>>shift)
}

// Quantile returns a number such that a share q of the values is not larger. Its relative error is
// at most Within. The histogram must have a value.
func (h *Histogram) Quantile(q float64) int64 {
	rank := max(1, int64(math.Ceil(q*float64(h.N))))
	var seen int64
	for i, n := range h.counts {
		if seen += n; seen >= rank {
			shift := max(0, i>>subBits-1)
			least := int64(i-shift<<subBits) << shift
			return min(least+(int64(1)<<shift)/2, h.Max)
		}
	}
	return h.Max
}

// steps are the possible distances of two points of a timeline, in seconds. Each divides the next.
var steps = []int64{1, 5, 10, 30, 60, 300, 600, 1800, 3600, 3 * 3600, 6 * 3600, 86400}

// longestStep bounds the step, for a crawl with more rounds than a timeline has points.
const longestStep = 1 << 32

// Point is a time of a timeline, in a round.
type Point struct {
	Round int
	At    int64 // milliseconds since 1970, a multiple of the step
}

// Timeline adds values by time. If it gets more than most points, it takes the next larger step, so
// the result does not depend on the order of the values.
type Timeline struct {
	most    int
	Step    int64 // distance of two points, seconds
	values  int   // number of values of a point
	Points  map[Point][]int64
	lastAt  Point
	lastSum []int64 // values of the point lastAt
}

// NewTimeline returns a Timeline of at most most points, each with a number of values.
func NewTimeline(most, values int) *Timeline {
	return &Timeline{most: most, Step: steps[0], values: values, Points: map[Point][]int64{}}
}

// At returns the values of the point for a time. The caller adds to them.
func (t *Timeline) At(round int, ms int64) []int64 {
	p := Point{round, floor(ms, t.Step)}
	if p == t.lastAt && t.lastSum != nil {
		return t.lastSum
	}
	values := t.Points[p]
	if values == nil {
		for len(t.Points) >= t.most && t.Step < longestStep {
			t.coarsen()
			if p = (Point{round, floor(ms, t.Step)}); t.Points[p] != nil {
				break
			}
		}
		if values = t.Points[p]; values == nil {
			values = make([]int64, t.values)
			t.Points[p] = values
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

func (t *Timeline) coarsen() {
	i := slices.Index(steps, t.Step)
	if i >= 0 && i+1 < len(steps) {
		t.Step = steps[i+1]
	} else {
		t.Step *= 2
	}
	coarse := map[Point][]int64{}
	for p, values := range t.Points {
		q := Point{p.Round, floor(p.At, t.Step)}
		if coarse[q] == nil {
			coarse[q] = make([]int64, t.values)
		}
		for i, v := range values {
			coarse[q][i] += v
		}
	}
	t.Points, t.lastSum = coarse, nil
}

// Sorted returns the points by round and time.
func (t *Timeline) Sorted() []Point {
	all := make([]Point, 0, len(t.Points))
	for p := range t.Points {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Point) int { return cmp.Or(cmp.Compare(a.Round, b.Round), cmp.Compare(a.At, b.At)) })
	return all
}

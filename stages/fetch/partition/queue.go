package partition

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"crawlbatch.io/crawlbatch/stages/fetch/polite"
)

// Queue is the queue of a host's planned rows, without those that Host.Queue leaves out. It
// implements polite.Rows.
type Queue struct {
	ranges []rowRange
	skip   *roaring.Bitmap
	left   int
}

// Queue makes a queue of the host's rows, without the rows in skip. A nil skip means none. The
// bitmap must not change afterwards.
func (h *Host) Queue(skip *roaring.Bitmap) *Queue {
	q := &Queue{ranges: slices.Clone(h.ranges), skip: skip}
	for _, r := range h.ranges {
		q.left += int(r.to - r.from)
		if skip != nil {
			q.left -= int(skip.CardinalityInRange(uint64(r.from), uint64(r.to)))
		}
	}
	return q
}

// Len returns the number of remaining rows.
func (q *Queue) Len() int { return q.left }

// Band returns the band of the row that Pop returns next.
func (q *Queue) Band() polite.Band {
	for len(q.ranges) > 1 && q.ranges[0].from == q.ranges[0].to {
		q.ranges = q.ranges[1:]
	}
	if len(q.ranges) == 0 {
		return polite.Batch
	}
	return q.ranges[0].band
}

// Pop removes and returns the next row. It returns false if no row is left.
func (q *Queue) Pop() (int64, bool) {
	for len(q.ranges) > 0 {
		r := &q.ranges[0]
		if r.from == r.to {
			q.ranges = q.ranges[1:]
			continue
		}
		n := r.from
		r.from++
		if q.skip == nil || !q.skip.Contains(uint32(n)) {
			q.left--
			return int64(n), true
		}
	}
	return 0, false
}

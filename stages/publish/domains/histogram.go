package domains

import "math/bits"

const (
	parts      = 5                 // a power of two has 2^parts bins
	longest    = int64(1)<<40 - 1  // longest time of its own bin, in microseconds: 12 days
	exactBelow = int64(2) << parts // smaller times have bins of their own
)

// binOf returns the bin of a time in microseconds. Times of 0 or more have ascending bins.
func binOf(us int64) int32 {
	us = min(max(us, 0), longest)
	shift := max(bits.Len64(uint64(us))-parts-1, 0)
	return int32(shift<<parts) + int32(us>>shift)
}

// middleOf returns the middle of a bin, in milliseconds.
func middleOf(bin int32) float64 {
	if int64(bin) < exactBelow {
		return float64(bin) / 1000
	}
	shift := bin>>parts - 1
	least, width := int64(bin-shift<<parts)<<shift, int64(1)<<shift
	return (float64(least) + float64(float64(width-1)/2)) / 1000
}

// histogram counts times by bin, in the order of bins.
type histogram struct {
	bins []bin
	n    int64
}

type bin struct {
	bin int32
	n   int64
}

// add adds n times to a bin that no later call precedes.
func (h *histogram) add(number int32, n int64) {
	h.bins = append(h.bins, bin{number, n})
	h.n += n
}

// percentile returns the time with the nearest rank, in milliseconds, or nil without times.
func (h *histogram) percentile(p int64) *float64 {
	rank := (h.n*p + 99) / 100 // the rank is at least 1 if there are times
	for _, b := range h.bins {
		if rank -= b.n; rank <= 0 {
			ms := middleOf(b.bin)
			return &ms
		}
	}
	return nil
}

package schema

import (
	"encoding/hex"
	"iter"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"crawlbatch.io/crawlbatch/formats/logarithm"
)

// LinkSketch stands for the set of the distinct targets of a capture's links. It is their number in
// decimal, a colon, and 128 hexadecimal digits: an odd sketch (Mitzenmacher, Pagh and Pham, WWW 2014).
// An empty LinkSketch means that the set is not known.
//
// Each target flips one of the sketch's bits. Targets of both sets cancel each other in the exclusive or
// of two sketches, so only the targets of one set count. The bits form four levels of 256, 128, 64 and 64
// bits. Each level takes three quarters of the targets that the levels before it leave, and the last
// level takes all of them. So one level fits the difference of small sets, and another that of large sets.
type LinkSketch string

// sketchLevels holds the first byte of each level, and the length of the sketch.
var sketchLevels = [...]int{0, 32, 48, 56, 64}

// SketchLinks returns the sketch of targets, which may repeat. The hash of a target is the first 64 bits of
// its SHA-1.
func SketchLinks(targets iter.Seq[string]) LinkSketch {
	hashes := make([]uint64, 0, 256)
	for t := range targets {
		hashes = append(hashes, uint64(TitleHash(t)))
	}
	slices.Sort(hashes)
	hashes = slices.Compact(hashes)
	var sketch [64]byte
	for _, h := range hashes {
		level := min(bits.LeadingZeros64(h)/2, len(sketchLevels)-2)
		bit := h % uint64(8*(sketchLevels[level+1]-sketchLevels[level]))
		sketch[sketchLevels[level]+int(bit/8)] ^= 1 << (bit % 8)
	}
	return LinkSketch(hex.AppendEncode(append(strconv.AppendInt(nil, int64(len(hashes)), 10), ':'), sketch[:]))
}

// Compare returns how many targets are new since the last capture, and how many are gone. Both are
// estimates, but equal sets give 0 and 0, and the difference of both numbers is exact. Both are nil if a
// set is not known.
func (s LinkSketch) Compare(last LinkSketch) (added, removed *int32) {
	n, sketch := s.decode()
	m, other := last.decode()
	if sketch == nil || other == nil {
		return nil, nil
	}
	for i := range sketch {
		sketch[i] ^= other[i]
	}
	grown := n - m
	// Each replaced target counts twice in the size. The estimate is a little larger than the number of set
	// bits, which is the size if no two targets share a bit. So a rounded number would often be too large.
	replaced := math.Floor((estimateSize(sketch) - math.Abs(float64(grown))) / 2)
	both := min(max(int32(replaced), 0), n, m)
	return new(both + max(grown, 0)), new(both + max(-grown, 0))
}

// decode returns the number of targets and the bits. The bits are nil if the sketch is empty or damaged.
func (s LinkSketch) decode() (n int32, sketch []byte) {
	number, digits, _ := strings.Cut(string(s), ":")
	count, err := strconv.ParseUint(number, 10, 31)
	sketch, err2 := hex.DecodeString(digits)
	if err != nil || err2 != nil || len(sketch) != sketchLevels[len(sketchLevels)-1] {
		return 0, nil
	}
	return int32(count), sketch
}

// estimateSize estimates how many targets flipped the bits of a sketch. Of d targets in a level of m bits,
// m/2 * (1 - (1 - 2/m)^d) bits are expected to be set. A level that is nearly half full says little. Then
// it does not count, and neither do the levels before it: the levels after it stand for all targets.
func estimateSize(sketch []byte) (size float64) {
	last := len(sketchLevels) - 2
	for level := last; level >= 0; level-- {
		set, m := 0, float64(8*(sketchLevels[level+1]-sketchLevels[level]))
		for _, b := range sketch[sketchLevels[level]:sketchLevels[level+1]] {
			set += bits.OnesCount8(b)
		}
		even := max(1-2*float64(set)/m, 1/m)
		if level < last && even < 0.28 {
			return size * float64(uint(1)<<(2*(level+1))) // the levels after this one have 1/4 of all targets, or 1/16, or 1/64
		}
		size += logarithm.Of(even) / logarithm.Of(1-2/m)
	}
	return size
}

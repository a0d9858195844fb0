package pack

import "encoding/binary"

// EncodeGroups packs the groups of partitions, whose numbers begin with the number skipped.
func EncodeGroups(partitions []Partition, skipped int) (packed []byte) {
	for _, p := range partitions {
		packed = binary.AppendUvarint(packed, uint64(len(p.Groups)))
		before := int32(skipped)
		for _, g := range p.Groups {
			packed, before = binary.AppendUvarint(packed, uint64(g-before)), g
		}
	}
	return packed
}

// DecodeGroups returns the groups of each partition that EncodeGroups packed.
func DecodeGroups(packed []byte) (partitions [][]int32) {
	next := func() int32 {
		n, size := binary.Uvarint(packed)
		packed = packed[size:]
		return int32(n)
	}
	for len(packed) > 0 {
		groups, last := make([]int32, next()), int32(0)
		for i := range groups {
			last += next()
			groups[i] = last
		}
		partitions = append(partitions, groups)
	}
	return partitions
}

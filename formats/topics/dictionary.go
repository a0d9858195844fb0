package topics

import (
	"bytes"
	"hash/maphash"
)

// dictionary numbers texts from 0, in the order in which they come. It is a hash table with linear probing. Unlike a
// map of strings, it has no pointers to its texts: the garbage collector does not visit millions of them, and a text
// takes about 20 bytes besides its own.
type dictionary struct {
	slots []uint64 // upper half: part of a text's hash; lower half: its number + 1. 0: the slot is free
	ends  []uint32 // end of each text in texts
	texts []byte
}

// seed is secret, so that no site can make many terms with equal hashes.
var seed = maphash.MakeSeed()

// leastSlots is the number of slots of a small dictionary. Numbers of slots are powers of two.
const leastSlots = 1 << 10

// number returns the number of a text, and whether the text is new.
func (d *dictionary) number(text []byte) (n int32, added bool) {
	if 4*len(d.ends) >= 3*len(d.slots) {
		d.grow()
	}
	hash := uint32(maphash.Bytes(seed, text))
	at, n := d.find(hash, text)
	if n >= 0 {
		return n, false
	}
	n = int32(len(d.ends))
	d.texts = append(d.texts, text...)
	d.ends = append(d.ends, uint32(len(d.texts)))
	d.slots[at] = uint64(hash)<<32 | uint64(n+1)
	return n, true
}

// known returns the number of a text, or -1 if number was never called for the text.
func (d *dictionary) known(text []byte) int32 {
	if len(d.slots) == 0 {
		return -1
	}
	_, n := d.find(uint32(maphash.Bytes(seed, text)), text)
	return n
}

// find returns the number of a text and its slot, or -1 and the slot for it.
func (d *dictionary) find(hash uint32, text []byte) (at uint32, n int32) {
	mask := uint32(len(d.slots) - 1)
	for at = hash & mask; d.slots[at] != 0; at = (at + 1) & mask {
		if slot := d.slots[at]; uint32(slot>>32) == hash && bytes.Equal(d.text(int32(uint32(slot))-1), text) {
			return at, int32(uint32(slot)) - 1
		}
	}
	return at, -1
}

func (d *dictionary) grow() {
	old := d.slots
	d.slots = make([]uint64, max(leastSlots, 2*len(old)))
	mask := uint32(len(d.slots) - 1)
	for _, slot := range old {
		if slot == 0 {
			continue
		}
		at := uint32(slot>>32) & mask
		for d.slots[at] != 0 {
			at = (at + 1) & mask
		}
		d.slots[at] = slot
	}
}

// text returns the text with a number. It is valid until the next call of number or clear.
func (d *dictionary) text(n int32) []byte {
	begin := uint32(0)
	if n > 0 {
		begin = d.ends[n-1]
	}
	return d.texts[begin:d.ends[n]]
}

// clear removes all texts and keeps the memory.
func (d *dictionary) clear() {
	clear(d.slots)
	d.ends, d.texts = d.ends[:0], d.texts[:0]
}

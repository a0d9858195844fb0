package simhash

// counter counts, for each of 64 bits, how many of the added words have the bit set. The counts are
// bit-sliced: bit i of planes[p] is bit p of the count for bit i. One addition thus updates all 64
// counts.
type counter struct {
	planes  [40]uint64 // enough for 2^40 - 1 words, more than any text has
	pending [8]uint64  // the last n%8 words are not counted in planes yet
	n       int        // number of added words
}

// add adds a word. A tree of full adders (Harley and Seal) adds eight words at a time, which is much
// faster than eight single additions.
func (c *counter) add(w uint64) {
	c.pending[c.n%8] = w
	c.n++
	if c.n%8 != 0 {
		return
	}
	p := &c.pending
	ones, twosA := fullAdd(c.planes[0], p[0], p[1])
	ones, twosB := fullAdd(ones, p[2], p[3])
	twos, foursA := fullAdd(c.planes[1], twosA, twosB)
	ones, twosA = fullAdd(ones, p[4], p[5])
	ones, twosB = fullAdd(ones, p[6], p[7])
	twos, foursB := fullAdd(twos, twosA, twosB)
	fours, eights := fullAdd(c.planes[2], foursA, foursB)
	c.planes[0], c.planes[1], c.planes[2] = ones, twos, fours
	c.carry(3, eights)
}

// fullAdd adds three bits at each of 64 positions.
func fullAdd(a, b, c uint64) (sum, carry uint64) {
	u := a ^ b
	return u ^ c, a&b | u&c
}

// carry adds w to the counts. Each bit of w counts as 2^plane.
func (c *counter) carry(plane int, w uint64) {
	for ; w != 0 && plane < len(c.planes); plane++ {
		c.planes[plane], w = c.planes[plane]^w, c.planes[plane]&w
	}
}

// majority returns the bits that are set in more than half of the words.
func (c *counter) majority() uint64 {
	for _, w := range c.pending[:c.n%8] {
		c.carry(0, w)
	}
	// The loop compares all 64 counts with half of n in parallel, from the highest plane down.
	half := uint64(c.n / 2)
	var more uint64
	equal := ^uint64(0)
	for p := len(c.planes) - 1; p >= 0; p-- {
		if half>>p&1 == 0 {
			more |= equal & c.planes[p]
			equal &^= c.planes[p]
		} else {
			equal &= c.planes[p]
		}
	}
	return more
}

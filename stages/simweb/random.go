package simweb

import "math/bits"

// key identifies an item of the web (the seed, a host, a page, a paragraph …). All random
// properties of an item are functions of its key.
type key uint64

// mix is the finaliser of SplitMix64 (Steele, Lea, Flood 2014). Different inputs give different
// outputs. Changing one input bit changes each output bit with a probability of one half.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	x ^= x >> 31
	return x
}

const golden = 0x9e3779b97f4a7c15

// at derives the key of item n from k.
func (k key) at(n int) key { return key(mix(uint64(k) + golden*(uint64(n)+1))) }

// named derives the key of the item with the given name from k.
func (k key) named(name string) key {
	for i := 0; i < len(name); i++ {
		k = key(mix(uint64(k) ^ uint64(name[i])*golden))
	}
	return k.at(len(name))
}

// below derives a number from 0 to n-1 from k.
func (k key) below(n int) int {
	hi, _ := bits.Mul64(mix(uint64(k)), uint64(n))
	return int(hi)
}

// unit derives a number from 0 up to but not including 1 from k.
func (k key) unit() float64 { return float64(mix(uint64(k))>>11) / (1 << 53) }

// stream is a sequence of random numbers.
type stream uint64

func (s *stream) next() key {
	*s += golden
	return key(mix(uint64(*s)))
}

func (s *stream) below(n int) int {
	hi, _ := bits.Mul64(uint64(s.next()), uint64(n))
	return int(hi)
}

func (s *stream) between(least, most int) int { return least + s.below(most-least+1) }

// permute returns element i of a permutation of 0 … n-1 that k chooses. It is affine: a·i + b
// modulo n.
func permute(k key, i, n int) int {
	if n < 2 {
		return 0
	}
	a := 1 + k.at(0).below(n-1)
	for gcd(a, n) != 1 {
		a = a%(n-1) + 1
	}
	return (i*a + k.at(1).below(n)) % n
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

package webgraph

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"unsafe"

	"crawlbatch.io/crawlbatch/formats/logarithm"
)

const (
	registers    = 256 // registers of a counter; the standard error of a count is 1.04 / sqrt(registers), 6.5 %
	counterWords = registers / 8
	maxDistance  = 200 // vertices at a greater distance do not count; this bounds the time that a long chain takes
)

// counter is a HyperLogLog counter. A word holds eight registers of one byte. Registers are below 128.
type counter [counterWords]uint64

// element returns the counter of a set that holds only the element with the given number.
func element(number uint64) (c counter) {
	// The finalizer of SplitMix64 makes a hash of the number.
	h := number + 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	h ^= h >> 31
	register, zeros := h%registers, bits.LeadingZeros64(h|registers)
	c[register/8] = uint64(zeros+1) << (register % 8 * 8)
	return c
}

// unite adds the elements of another set: each register becomes the greater of the two.
func (c *counter) unite(other *counter) {
	const high = 0x8080808080808080
	for i, y := range other {
		x := c[i]
		greater := ((x | high) - y) & high >> 7 * 0xff // 0xff in each byte in which x is not below y
		c[i] = x&greater | y&^greater
	}
}

// bytes returns the memory of the counter, for a scratch file.
func (c *counter) bytes() []byte { return unsafe.Slice((*byte)(unsafe.Pointer(c)), registers) }

// inverse holds the powers of 1/2.
var inverse = func() (powers [128]float64) {
	for i := range powers {
		powers[i] = math.Ldexp(1, -i)
	}
	return powers
}()

// size estimates the number of elements (Flajolet, Fusy, Gandouet, Meunier: HyperLogLog, 2007).
func (c *counter) size() float64 {
	var sum float64
	empty := 0
	for _, word := range c {
		for range 8 {
			if word&0xff == 0 {
				empty++
			}
			sum += inverse[word&0x7f]
			word >>= 8
		}
	}
	const alpha = 0.7213 / (1 + 1.079/registers)
	estimate := alpha * registers * registers / sum
	if estimate <= 2.5*registers && empty > 0 {
		return registers * logarithm.Of(registers/float64(empty))
	}
	return estimate
}

// ball holds the vertices from which a path of at most the current distance leads to a vertex.
type ball struct {
	harmonic float64 // harmonic centrality, if only these vertices count
	size     float64 // estimated number of these vertices
}

// grow updates the ball. size is its estimated size at the given distance. If the ball already has a larger
// size, nothing changes.
func (b *ball) grow(size float64, distance int) {
	if size > b.size {
		b.harmonic += (size - b.size) / float64(distance)
		b.size = size
	}
}

// balls is the state of HyperBall.
type balls struct {
	linked, dangling []ball    // balls of the sources and of the dangling vertices
	sets             []counter // sets of the vertices in the ball of each source, at the last distance
	grown            *os.File  // scratch file of the sets that grow at the current distance, in the order of the sources
	grew, grows      []bool    // whether the set of each source grew at the last distance, and at the current one
}

// Harmonic estimates the harmonic centrality of all vertices. The harmonic centrality of a vertex
// is the sum of 1/d over all other vertices with a path to the vertex, where d is the length of the
// shortest such path. The method is HyperBall (Boldi and Vigna: In-Core Computation of Geometric
// Centralities with HyperBall, 2013). While Harmonic runs, it takes 274 bytes more for each vertex with
// outlinks and 16 bytes for each dangling vertex.
func (g *Graph) Harmonic(ctx context.Context) (err error) {
	n := len(g.out)
	s := &balls{linked: make([]ball, n), dangling: make([]ball, g.danglingRows), sets: make([]counter, n), grew: make([]bool, n), grows: make([]bool, n)}
	path := filepath.Join(g.dir, "sets")
	if s.grown, err = os.Create(path); err != nil {
		return fmt.Errorf("create scratch file: %w", err)
	}
	defer func() { err = errors.Join(err, s.grown.Close(), os.Remove(path)) }()
	one := element(0)
	for i := range s.sets {
		s.sets[i], s.grew[i] = element(uint64(i)*2), true
		s.linked[i].size = one.size()
	}
	for i := range s.dangling {
		s.dangling[i].size = one.size()
	}
	for distance := 1; distance <= maxDistance; distance++ {
		more, err := s.expand(ctx, g, distance)
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	g.centrality = balls{linked: s.linked, dangling: s.dangling}
	return nil
}

// expand makes all balls one step larger, and reports whether a ball of a source grew.
func (s *balls) expand(ctx context.Context, g *Graph, distance int) (more bool, err error) {
	if _, err := s.grown.Seek(0, io.SeekStart); err != nil {
		return false, fmt.Errorf("write scratch file: %w", err)
	}
	w, c := bufio.NewWriterSize(s.grown, 256<<10), new(counter)
	for b, err := range readEdges(ctx, g.linked) {
		if err != nil {
			return false, err
		}
		for i, t := range b.targets {
			*c = s.sets[t]
			// If the set of a source did not grow at the last distance, c contains it already.
			for _, from := range b.sourcesOf(i) {
				if s.grew[from] {
					c.unite(&s.sets[from])
				}
			}
			if *c != s.sets[t] {
				s.linked[t].grow(c.size(), distance)
				s.grows[t], more = true, true
				if _, err := w.Write(c.bytes()); err != nil {
					return false, fmt.Errorf("write scratch file: %w", err)
				}
			}
		}
	}
	if err := w.Flush(); err != nil {
		return false, fmt.Errorf("write scratch file: %w", err)
	}
	row := 0
	for b, err := range readEdges(ctx, g.dangling) {
		if err != nil {
			return false, err
		}
		for i := range b.targets {
			s.expandDangling(row, b.sourcesOf(i), distance)
			row++
		}
	}
	return more, s.replaceGrown()
}

// replaceGrown replaces the sets that grew at the current distance, which ends.
func (s *balls) replaceGrown() error {
	if _, err := s.grown.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read scratch file: %w", err)
	}
	r := bufio.NewReaderSize(s.grown, 256<<10)
	for t, grown := range s.grows {
		if !grown {
			continue
		}
		if _, err := io.ReadFull(r, s.sets[t].bytes()); err != nil {
			return fmt.Errorf("read scratch file: %w", err)
		}
	}
	s.grew, s.grows = s.grows, s.grew
	clear(s.grows)
	return nil
}

// expandDangling makes the ball of a vertex without outlinks one step larger. Such a vertex keeps no
// set, so its set is computed again from the sets of all its sources.
func (s *balls) expandDangling(row int, sources []int32, distance int) {
	grew := false
	for _, from := range sources {
		grew = grew || s.grew[from]
	}
	if !grew {
		return
	}
	c := element(uint64(row)*2 + 1)
	for _, from := range sources {
		c.unite(&s.sets[from])
	}
	s.dangling[row].grow(c.size(), distance)
}

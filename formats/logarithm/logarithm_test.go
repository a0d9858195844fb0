package logarithm

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"
)

// numbers calls each for the quotients of small numbers, for numbers of all magnitudes, and for those at
// the bounds of the reduction.
func numbers(each func(x float64)) {
	for n := range 256 {
		for d := range 256 {
			each(float64(n+1) / float64(d+1))
		}
	}
	for _, x := range []float64{math.Sqrt2 / 2, math.Sqrt2, 1, 2, 0.5, math.E, 1e300, 1e-300} {
		for _, near := range []float64{x, math.Nextafter(x, 0), math.Nextafter(x, 1e308)} {
			each(near)
		}
	}
	r := rand.New(rand.NewPCG(17, 1))
	for range 100_000 {
		each(math.Ldexp(1+r.Float64(), r.IntN(2000)-1000))
	}
}

// The digest is that of math.Log and math.Log10 of Go 1.26 on amd64.
func TestLogarithmsHaveTheSameBitsOnEachMachine(t *testing.T) {
	sum := fnv.New64a()
	numbers(func(x float64) {
		var b [16]byte
		binary.LittleEndian.PutUint64(b[:8], math.Float64bits(Of(x)))
		binary.LittleEndian.PutUint64(b[8:], math.Float64bits(Decimal(x)))
		sum.Write(b[:])
	})
	if got, want := fmt.Sprintf("%x", sum.Sum64()), "ea8deedef41daf21"; got != want {
		t.Errorf("the digest of the results is %s, want %s", got, want)
	}
}

func TestLogarithmsAreRight(t *testing.T) {
	numbers(func(x float64) {
		if got, want := Of(x), math.Log(x); math.Abs(got-want) > 4e-16*math.Abs(want) {
			t.Errorf("Of(%v) = %v, want %v", x, got, want)
		}
		if got, want := Decimal(x), math.Log10(x); math.Abs(got-want) > 8e-16*math.Abs(want) {
			t.Errorf("Decimal(%v) = %v, want %v", x, got, want)
		}
	})
}

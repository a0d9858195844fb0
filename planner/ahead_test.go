package planner

import (
	"errors"
	"testing"
)

// ahead keeps the order and the error of what it runs, and ends it when its reader stops.
func TestAheadYieldsTheSame(t *testing.T) {
	failure, running := errors.New("failure"), false
	numbers := func(yield func(int, error) bool) {
		running = true
		defer func() { running = false }()
		for i := range 10 * aheadRows * aheadBatches {
			if !yield(i, nil) {
				return
			}
		}
		yield(0, failure)
	}
	for _, most := range []int{0, 1, aheadRows, 3*aheadRows + 1, 1 << 30} {
		n := 0
		for i, err := range ahead(numbers) {
			if err != nil {
				if err != failure || n != 10*aheadRows*aheadBatches {
					t.Errorf("after %d numbers: %v", n, err)
				}
				n = most
				break
			}
			if i != n {
				t.Fatalf("number %d is %d", n, i)
			}
			if n == most {
				break
			}
			n++
		}
		if n != most || running {
			t.Errorf("%d of %d numbers, running: %v", n, most, running)
		}
	}
}
